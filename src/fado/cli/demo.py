"""`fado demo`: the main workflow on generated data."""

from __future__ import annotations

import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from typer import Option

from fado._storage import replacing, writing
from fado.cli.aim import aim
from fado.cli.experiment import print_winners
from fado.cli.explore import explore
from fado.cli.value import value

ROWS = 50_000
VARIANT = "II"  # whose untouched models are below the line
FITS = 48  # to measure what removing rows does


def demo(
    *,
    out: Annotated[Path, Option(metavar="DIR", help="The directory for the files of the demo.")] = Path(
        "demo"
    ),
) -> None:
    """Generate fraud data, explore it, compare interventions, and train a model that reaches a line."""
    from fado.datasets import make_account_fraud

    start = time.monotonic()
    with writing(out, "The demo's files"):
        out.mkdir(parents=True, exist_ok=True)
    data, values, report = out / "account_fraud.parquet", out / "values.parquet", out / "report.html"
    with replacing(data, "The demo's data") as temporary:
        make_account_fraud(ROWS, VARIANT, random_state=0).to_parquet(temporary)
    print(f"Generated {ROWS:,} bank account applications: {data}")
    named: dict[str, Any] = {
        "target": "fraud_bool",
        "protected": ["customer_age>=50"],
        "drop": ["month", "customer_age"],  # age defines the groups, and is not a feature
    }
    value(data, out=values, keep_probabilities=True, **named)
    explore(data, values=values, out=out / "explore.html", retrain=FITS, **named)
    experiment = _experiment(out / "experiment.toml", data)
    print(f"{experiment}: {out / 'experiment.toml'}")
    results = experiment.run(out / "store", progress=True)
    print_winners(results)
    results.report(report)
    print(f"Report of the experiment: {report}")
    # the months of the experiment
    named |= {"drop": ["customer_age"], "split": "month", "validation": ["4", "5"], "test": ["6", "7"]}
    aim(data, out=out / "model", **named)
    print(f"Done in {time.monotonic() - start:.0f} s.")


def _experiment(config: Path, data: Path) -> Any:
    """Write the quick example with the data of the demo, and without age as a feature."""
    from fado.experiment import Experiment

    with TemporaryDirectory() as folder:
        example = Path(folder) / config.name
        Experiment.write_example(example)
        text = example.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^generator = .*\nrows = .*$", f'path = "{data.name}"', text)
    text = text.replace("# drop = []", 'drop = ["customer_age"]')
    with replacing(config, "The demo's configuration") as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Experiment.from_toml(config)
