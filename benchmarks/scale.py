"""How long, and in how much memory, tables of any size are valued from files.

    python benchmarks/scale.py [--folder DIR] [--rows 1000000 10000000] [--columns 30] [--memory 4GB] [--uses]

Tables as in fraud detection (1.5 % positives, a third of the columns coarse) are generated into Parquet files
of 500,000 rows below `--folder`, unless they stand there. Each is valued by `fado.value_files` in a process
of its own, which tells the most memory that it held at once; the bound is `--memory`, and 1.2 times that plus
300 MB is what a run may take. A run that was ended goes on when
the benchmark is started again: its time is then that of the rest, which is said.

Up to `--compare` rows the same table is valued in memory too, by `OutOfBagEntropy` with seeds 0 and 1: the
rank correlation of values from files with those of seed 0 (1 if all rows are learnt from), beside that of
the two seeds, which is the ceiling of what any values of ten bags from a sample can reach.

`--uses` also measures what values are for: `fado sample`, `fado reweigh` and `fado explore` from the same
files, under the same bound, each a process of its own. `--json FILE` keeps the figures, and `--picture FILE`
draws all that were kept.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import spearmanr

from _data import rare_positives
from fado._memory import parse_memory

ROWS_OF_A_FILE = 500_000
CHILD = """
import json, sys, time
import fado
folder, out, memory, train_rows = json.loads(sys.argv[1])
start = time.monotonic()
valuation = fado.value_files(
    folder, target="y", protected="z", out=out, memory=memory, train_rows=train_rows, progress=True
)
told = valuation.metadata
print(json.dumps({
    "seconds": time.monotonic() - start,
    "peak": 1024 * int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]),
    "train_rows": told["train_rows"],
}))
"""


def generate(folder, n_rows, n_columns):
    """Write the table, file by file; those that stand there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n_rows, ROWS_OF_A_FILE)):
        path = folder / f"{number:05d}.parquet"
        if path.exists():
            continue
        X, y, z = rare_positives(min(ROWS_OF_A_FILE, n_rows - start), n_columns, seed=number)
        columns = {f"x{j}": X[:, j] for j in range(n_columns)}
        hidden = path.with_name(f"_{path.name}")
        pq.write_table(pa.table({**columns, "z": z, "y": y}), hidden, row_group_size=100_000)
        hidden.rename(path)


def value(folder, out, memory, train_rows):
    """Value the table in a process of its own."""
    resumed = (out / "_plan.json").exists()
    asked = json.dumps([str(folder), str(out), memory, train_rows])
    done = subprocess.run([sys.executable, "-c", CHILD, asked], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1]) | {"resumed": resumed}


def watch(process):
    """Wait for a process, and give the most memory that it held.

    What the system tells of it afterwards counts this process too, from which it was forked.
    """
    peak = 0
    while process.poll() is None:
        with contextlib.suppress(OSError, StopIteration):
            told = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            peak = 1024 * int(next(line for line in told if line.startswith("VmHWM")).split()[1])
        time.sleep(0.05)
    return peak


def use(folder, out, memory):
    """Run the commands that take values, and give the seconds and the peak memory of each."""
    shared = ["--target", "y", "--protected", "z", "--values", out, "--memory", memory]
    made = folder.parent / f"{folder.name}-used"
    commands = {
        "sample": ["--alpha", "0.5", "--out", made / "sample"],
        "reweigh": ["--alpha", "0.5", "--out", made / "weights"],
        "explore": ["--out", made / "page.html"],
    }
    told = {}
    for name, own in commands.items():
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        asked = [Path(sys.executable).with_name("fado"), name, folder, *shared, *own]
        start = time.monotonic()
        process = subprocess.Popen([str(word) for word in asked], stdout=subprocess.DEVNULL)
        peak = watch(process)
        assert process.returncode == 0, name
        told[name] = {"seconds": time.monotonic() - start, "peak": peak}
    shutil.rmtree(made)
    return told


def draw(figures, path):
    """Draw time and memory by the number of rows."""
    import altair as alt
    import pandas as pd

    frame = pd.DataFrame(figures)
    bound = parse_memory(figures[-1]["memory"])
    rows = alt.X(
        "rows:Q", title="rows", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", values=[*frame.rows])
    )
    size = {"width": 280, "height": 180}
    base = alt.Chart(frame)
    seconds = base.mark_line(point=True).encode(
        rows, alt.Y("seconds:Q", title="seconds to value them", scale=alt.Scale(type="log"))
    )
    held = base.transform_calculate(gigabytes="datum.peak / 1e9").mark_line(point=True)
    peak = held.encode(rows, alt.Y("gigabytes:Q", title="peak memory, GB", scale=alt.Scale(domainMin=0)))
    line = (
        alt.Chart(pd.DataFrame({"bound": [bound / 1e9]}))
        .mark_rule(strokeDash=[4, 4], color="#888888")
        .encode(y="bound:Q")
    )
    chart = seconds.properties(**size) | (peak + line).properties(**size)
    chart.save(path, scale_factor=2)


def in_memory(folder, out):
    """Compare ranks with values in memory; say how far two seeds agree, and how long one takes."""
    from fado import OutOfBagEntropy, Valuation

    table = pq.read_table(folder).to_pandas()
    X, y, z = table.drop(columns=["y", "z"]), table["y"], table["z"]
    start = time.monotonic()
    by_seed = [
        OutOfBagEntropy(random_state=seed).fit(X, y, sensitive_features={"z": z}).valuation_
        for seed in (0, 1)
    ]
    seconds = (time.monotonic() - start) / 2
    found = Valuation.load(out)
    for name in ("y", "z"):
        ours = spearmanr(found[name], by_seed[0][name]).statistic
        ceiling = spearmanr(by_seed[1][name], by_seed[0][name]).statistic
        print(f"  ranks of {name}: {ours:.3f} with values in memory, {ceiling:.3f} of two seeds in memory")
    print(f"  in memory: {seconds:.0f} s")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("scale-data"))
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--train-rows", type=int, default=None)
    parser.add_argument("--compare", type=int, default=1_000_000)
    parser.add_argument("--uses", action="store_true", help="measure sample, reweigh and explore too")
    parser.add_argument("--json", type=Path, help="keep the figures here, beside those that are there")
    parser.add_argument("--picture", type=Path, help="draw the figures of --json")
    parser.add_argument("--keep", action="store_true", help="keep the tables and the values")
    arguments = parser.parse_args()
    print(f"{'rows':>13}{'seconds':>9}{'rows/s':>9}{'peak MB':>9}{'train rows':>12}")
    for n_rows in arguments.rows:
        folder = arguments.folder / f"{n_rows}x{arguments.columns}"
        out = arguments.folder / f"{n_rows}x{arguments.columns}-values"
        generate(folder, n_rows, arguments.columns)
        told = value(folder, out, arguments.memory, arguments.train_rows)
        print(
            f"{n_rows:>13,}{told['seconds']:>9.0f}{n_rows / told['seconds']:>9,.0f}{told['peak'] / 1e6:>9.0f}"
            f"{told['train_rows']:>12,}{' (the rest of a run)' if told['resumed'] else ''}",
            flush=True,
        )
        figures = {"rows": n_rows, "memory": arguments.memory, **told}
        if arguments.uses:
            figures["uses"] = use(folder, out, arguments.memory)
            for name, own in figures["uses"].items():
                print(f"  fado {name}: {own['seconds']:.0f} s, peak {own['peak'] / 1e6:.0f} MB", flush=True)
        if arguments.json:
            keep(arguments.json, figures)
        if n_rows <= arguments.compare:
            in_memory(folder, out)
        if not arguments.keep:
            shutil.rmtree(folder)
            shutil.rmtree(out)
    if arguments.picture:
        draw(json.loads(arguments.json.read_text()), arguments.picture)


def keep(path, figures):
    """Put figures beside those that are there, in the place of those of as many rows."""
    there = json.loads(path.read_text()) if path.exists() else []
    others = [own for own in there if own["rows"] != figures["rows"]]
    path.write_text(json.dumps(sorted([*others, figures], key=lambda own: own["rows"]), indent=1))


if __name__ == "__main__":
    main()
