"""All commands under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from fado._version import __version__
from fado.cli.demo import demo
from fado.cli.experiment import experiment
from fado.cli.explore import explore
from fado.cli.reweigh import reweigh
from fado.cli.sample import sample
from fado.cli.value import value

__all__ = ["app"]

app = typer.Typer(
    name="fado",
    help="Fairness-aware data valuation: value rows, resample, reweigh, explore, compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(value)
app.command()(sample)
app.command()(reweigh)
app.command()(explore)
app.add_typer(experiment, name="experiment")
app.command()(demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"fado {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Fairness-aware data valuation: value rows, resample, reweigh, explore, compare."""
