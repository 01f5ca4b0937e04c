"""`fado demo`: the main job on generated data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from fado.cli._errors import in_sentences

__all__ = ["demo"]


@in_sentences
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the demo's files.")] = Path("demo"),
) -> None:
    """Generate account-opening fraud data and value its rows."""
    from fado.cli.value import value
    from fado.datasets import make_account_fraud

    start = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    data = out / "account_fraud.parquet"
    make_account_fraud(100_000, random_state=0).to_parquet(data)
    print(f"Generated 100,000 applications for a bank account: {data}")
    value(
        data, target="fraud_bool", protected=["customer_age>=50"], out=out / "values.parquet", drop=["month"]
    )
    print(f"Done in {time.monotonic() - start:.0f} s.")
