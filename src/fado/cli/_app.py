"""All commands under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from fado._version import __version__
from fado.cli._methods import offer_methods
from fado.cli.aim import aim
from fado.cli.demo import demo
from fado.cli.experiment import experiment
from fado.cli.explore import explore
from fado.cli.frontier import frontier
from fado.cli.generate import generate
from fado.cli.predict import predict
from fado.cli.query import query
from fado.cli.reweigh import reweigh
from fado.cli.sample import sample
from fado.cli.value import value

__all__ = ["build_app"]


def build_app() -> typer.Typer:
    """Build the program, with every utility and intervention that is registered by now."""
    app = typer.Typer(
        name="fado",
        help="Fairness-aware data valuation: value rows, resample, reweigh, explore, compare.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_program)
    app.command()(value)
    app.command()(offer_methods(sample, "rows"))
    app.command()(offer_methods(reweigh, "weights"))
    app.command()(query)
    app.command()(generate)
    app.command()(explore)
    app.command()(aim)
    app.command()(frontier)
    app.command()(predict)
    app.add_typer(experiment, name="experiment")
    app.command()(demo)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"fado {__version__}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Fairness-aware data valuation: value rows, resample, reweigh, explore, compare."""
