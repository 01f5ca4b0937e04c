"""`fado experiment`: train the same models after every intervention, and compare them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from fado.cli import _options as opt
from fado.cli._app import stopping

if TYPE_CHECKING:
    from fado.experiment import Experiment, Results

SHOWN_RATIOS = ("fpr_ratio", "fnr_ratio", "selection_rate_ratio")
SHOWN_GROUPS = 5
FITS_FAILED = 1

HELP = "Compare interventions: train the same models after each, and measure them in the same way."
Config = Annotated[
    Path, Argument(metavar="CONFIG.toml", help="The TOML file of the experiment's configuration.")
]
Store = Annotated[Path, Argument(metavar="DIR", help="The directory of the experiment's results: its store.")]


def init(
    config: Config,
    *,
    preset: Annotated[
        Literal["quick", "paper"],
        Option(help="quick runs in less than a minute; paper is the whole grid of the paper."),
    ] = "quick",
) -> None:
    """Write a commented configuration that can be run unchanged."""
    from fado.experiment import Experiment

    Experiment.write_example(config, preset)
    print(f"Written to {config}. Run it with: fado experiment run {config} --store runs/{config.stem}")


def run(
    config: Config,
    *,
    store: Annotated[
        Path, Option(metavar="DIR", help="The directory for results; run the same command again to resume.")
    ],
    jobs: opt.Jobs = None,
    dask: opt.Dask = None,
    keep_ids: opt.KeepIds = False,
    retry_failed: Annotated[
        bool, Option("--retry-failed", help="Repeat fits that failed in an earlier run.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only print the number of fits and how long they may take.")
    ] = False,
) -> None:
    """Run an experiment, or resume a stopped one."""
    from fado.cli._columns import print_findings

    chosen = _read(config, store)
    chosen = chosen.without_columns(print_findings(chosen.check_columns(), keep_ids=keep_ids))
    if dry_run:
        _print_plan(chosen, jobs)
        return
    with stopping(store):
        results = chosen.run(store, n_jobs=jobs, client=dask, progress=True, retry_failed=retry_failed)
    print(results)
    print_winners(results)
    failed = results.frame[results.frame["status"] == "failed"]
    if len(failed):
        print(f"{len(failed):,} models failed; the first: {failed['error'].iloc[0]}", file=sys.stderr)
        raise SystemExit(FITS_FAILED)


def status(store: Store) -> None:
    """Print how many fits of an experiment are done, pending or failed."""
    from fado.cli._outputs import print_table
    from fado.experiment import Results

    results = Results.load(store)
    counts = results.frame.groupby(["intervention", "status"], sort=False).size().unstack(fill_value=0)
    print(results)
    _print_notes(results)
    print_table("", ["intervention", *counts.columns], [[name, *row] for name, row in counts.iterrows()])


def report(
    store: Store, *, out: Annotated[Path, Option(metavar="FILE.html", help="The page to write.")]
) -> None:
    """Write one HTML page with charts of all models, the best models and the configuration."""
    from fado.cli._outputs import check_output
    from fado.experiment import Results

    check_output(out, [], (".html",))
    Results.load(store).report(out)
    print(f"Written to {out}")


def _read(config: Path, store: Path) -> Experiment:
    """Read a configuration; if that fails, say which plug-ins the store was made with."""
    from fado.experiment import Experiment, Results

    try:
        return Experiment.from_toml(config)
    except ValueError as error:
        try:
            lacking = Results.of_store(store).lacking
        except (OSError, ValueError):
            lacking = []
        if not lacking:
            raise
        raise ValueError(
            f"{error} The store {str(store)!r} was made with {'; '.join(lacking)}, not registered here: "
            "install the package that registers it."
        ) from error


def print_winners(results: Results, at_least: float = 0.8) -> None:
    """Print the positive label, and for every ratio the best model of each intervention that reaches it.

    For an intervention without such a model, another table has the model that comes closest.
    """
    if results.positive:
        print(f"Positive label: {results.positive}.")
    _print_notes(results)
    for metric in SHOWN_RATIOS:
        _print_ratio(results, metric, at_least)


def _print_ratio(results: Results, metric: str, at_least: float) -> None:
    from fado.cli._outputs import print_table

    winners = results.winners(metric, at_least).to_dict("records")
    line = f"{metric} of at least {at_least} on {results.chosen_on} data"
    evaluation, achieve = results.config.evaluation, "their figures on test data"
    if results.chosen_on != "test" and evaluation.threshold == "test" and evaluation.budget.spent is not None:
        achieve += ", with a threshold that was set on test data"
    if evaluation.bootstrap:
        achieve += ", with 95 % intervals where there are enough events"
    best, closest = ([row for row in winners if row["reached"] is wanted] for wanted in (True, False))
    whose = "of these interventions " if best else ""
    for title, rows in (
        (f"Best models with a {line}; {achieve}", best),
        (f"No model {whose}has a {line}; the closest models, and {achieve}", closest),
    ):
        if rows:
            cells = [cells for row in rows for cells in _winner_cells(row, results.attributes)]
            print_table(title, ["intervention and settings", "TPR", metric, "model"], cells)
    if not winners:
        print(f"No model has a defined {metric}.")


def _winner_cells(winner: dict[Any, Any], attributes: Sequence[str]) -> list[list[Any]]:
    """Give a row of one model's settings and metrics, and a row for the ratio of each attribute."""
    from fado.cli._outputs import with_interval

    named = ", ".join(filter(None, [winner["intervention"], winner["settings"]]))
    first = [named, with_interval(winner, "tpr"), with_interval(winner, "ratio"), int(winner["model"])]
    below = attributes if len(attributes) > 1 else ()
    return [first, *([f"  {name}", "", with_interval(winner, f"ratio[{name}]"), ""] for name in below)]


def _print_notes(results: Results) -> None:
    """Print which groups are not compared, and other notes."""
    groups = []
    for small in results.left_out:
        rows = [f"{part} {rows}" for part, rows in small.items() if part not in ("group", "attribute")]
        groups.append(f"{small['group']} ({', '.join(rows)})")
    if groups:
        more = f" and {len(groups) - SHOWN_GROUPS} more" if len(groups) > SHOWN_GROUPS else ""
        print(f"Groups that are not compared, small or unknown: {'; '.join(groups[:SHOWN_GROUPS])}{more}.")
    for note in results.notes:
        print(note)


def _print_plan(chosen: Experiment, jobs: int | None) -> None:
    plan = chosen.plan
    print(chosen)
    print(f"{plan.n_rows - plan.n_fits:,} rows use the fit of another row with the same training set.")
    seconds = chosen.estimated_seconds(n_jobs=jobs)
    shown = f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{seconds / 60:.0f} minutes"
    print(
        f"The fits take about {shown if seconds >= 90 else f'{max(seconds, 1):.0f} seconds'} on this machine."
    )
