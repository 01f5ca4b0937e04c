"""Do values of other libraries serve? Each recipe where it lives, then `fado value --from` and `fado sample`.

    python benchmarks/elsewhere/run.py --pydvl pydvl/bin/python --datascope datascope/bin/python \
        --opendataval opendataval/bin/python

A library without an interpreter is left out. The head of each script says how to make its environment.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from fado import Valuation

HERE = Path(__file__).parent
LIBRARIES = ("pydvl", "opendataval", "datascope")
FADO = [sys.executable, "-c", "from fado.cli import main; main()"]


def make_loans(n_rows: int, seed: int) -> pd.DataFrame:
    """Make loans; of the old in one region more than half are labelled as defaults by mistake."""
    rng = np.random.default_rng(seed)
    old = (rng.random(n_rows) < 0.35).astype(int)
    region = rng.normal(size=n_rows) + 1.2 * old
    income, debt = rng.normal(size=n_rows), rng.normal(size=n_rows)
    default = debt - income + rng.normal(size=n_rows) > 1
    wrong = (old == 1) & (region > 1.5) & (rng.random(n_rows) < 0.6)
    return pd.DataFrame(
        {
            "id": 10_000 * (seed + 1) + rng.permutation(n_rows),
            "income": income,
            "debt": debt,
            "region": region,
            "old": old,
            "default": (default | wrong).astype(int),
        }
    )


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{Path(str(command[-1])).name}: {last}")
    return done


def try_library(name, python, folder, n_rows):
    """Make values with a library, take them in and sample with them; give what is to be shown."""
    data = folder / "rows.parquet"
    made, values, train = (folder / f"{name}{ending}" for ending in (".csv", "_v.parquet", "_train.parquet"))
    version = run([python, "-c", f"from importlib.metadata import version; print(version('{name}'))"])
    script = HERE / f"{name}_values.py"
    run([python, script, folder / "rows.csv", folder / "validation.csv", made])
    about = [data, "--target", "default", "--protected", "old"]
    given = pd.read_csv(made).set_index("id").loc[pd.read_parquet(data)["id"]]
    given.reset_index().to_csv(made, index=False)
    run([*FADO, "value", *about, "--from", made, "--out", values])
    run([*FADO, "sample", *about, "--values", values, "--alpha", 0.5, "--out", train])
    valuation = Valuation.load(values)
    kept = pd.read_parquet(train)
    np.testing.assert_array_equal(valuation.values.to_numpy(), given.to_numpy())  # matched row by row
    cells = [f"{valuation[which].sum():+.3f}" for which in ("y", "old")]
    return [version.stdout.strip(), *cells, f"{len(kept):,} of {n_rows:,}"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in LIBRARIES:
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"an interpreter that has {name}")
    parser.add_argument("--rows", type=int, default=600)
    arguments = parser.parse_args()
    print(f"{'library':<12} {'version':<9} {'sum of y':>9} {'of old':>9}  rows kept")
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows, validation = (make_loans(arguments.rows, seed) for seed in (0, 1))
        rows.to_parquet(folder / "rows.parquet")
        rows.sample(frac=1, random_state=0).to_csv(folder / "rows.csv", index=False)  # matched by their ids
        validation.to_csv(folder / "validation.csv", index=False)
        for name in LIBRARIES:
            python = getattr(arguments, name)
            if python is None:
                print(f"{name:<12} left out")
                continue
            try:
                version, v_y, v_z, kept = try_library(name, python, folder, arguments.rows)
            except (RuntimeError, OSError, AssertionError) as error:
                failed = True
                print(f"{name:<12} failed: {error}")
            else:
                print(f"{name:<12} {version:<9} {v_y:>9} {v_z:>9}  {kept}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
