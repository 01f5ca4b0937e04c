"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fado._checks import check_count
from fado.cli._errors import refuse
from fado.tabular import MIN_GROUP_SIZE

__all__ = [
    "Alpha",
    "Bags",
    "Dask",
    "Data",
    "Drop",
    "Exclude",
    "GroupNames",
    "Jobs",
    "MinGroupSize",
    "Out",
    "Performance",
    "Positive",
    "Protected",
    "ProtectedIfTrained",
    "Ratio",
    "Seed",
    "SeedIfTrained",
    "Target",
    "TargetIfTrained",
    "Values",
    "ValuesIfUsed",
    "Weight",
]

# beyond these no machine gets through: a slip of the finger is noticed before anything is read
MOST_BAGS = 100_000
MOST_JOBS = 4_096
MOST_SEEDS = 2**32 - 1
MOST_ROWS = 10**12


def _within(least: int, most: int) -> Callable[[typer.CallbackParam, int | None], int | None]:
    """Make a check of an option that is a number."""

    def check(option: typer.CallbackParam, number: int | None) -> int | None:
        if number is None:
            return None
        try:
            return check_count(option.opts[0], number, least, most)
        except ValueError as error:
            refuse(error)

    return check


Data = Annotated[Path, typer.Argument(metavar="DATA", help="The table: a .csv or .parquet file.")]
_TARGET = typer.Option(
    metavar='COL|"COL>=9"',
    help="The column to be predicted; or whether a comparison holds, written as for `--protected`, whose "
    "columns no model sees: 'readmitted != NO', 'amount >= 1000'.",
)
Target = Annotated[str, _TARGET]
TargetIfTrained = Annotated[str | None, _TARGET]
_PROTECTED = typer.Option(
    metavar='COL|"COL>=50"',
    help="A protected attribute. May be repeated. A column, or a comparison by >=, >, <=, <, ==, != or "
    "in: 'age>=50', 'race in [White, Asian]'. & joins comparisons that all must hold, | those of which one "
    "must: 'age_65 == 1 | age_75 == 1'. & binds tighter; parentheses change that. Put names and values that "
    "contain such signs in quotes: '\"a>=b\" >= 3'.",
)
Protected = Annotated[list[str], _PROTECTED]
ProtectedIfTrained = Annotated[list[str] | None, _PROTECTED]
GroupNames = Annotated[
    list[str] | None,
    typer.Option(
        metavar='"COL>=50: NAME, NAME"|"COL: GROUP=NAME, ..."',
        help="What groups of a protected attribute are called. Of a comparison, first the rows where it "
        "holds: 'age>=50: 50 and over, under 50'. Of a column, by its values: 'sex: 1=men, 2=women'. Put "
        "names that hold a comma or = in quotes. May be repeated, once per attribute. Without it, groups of "
        "a comparison are called by what it compares: age >= 50 and age < 50.",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="The target's positive label; the larger of two if not given."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL|'AGE_*'",
        help="A column, or a pattern of columns, that models of protected attributes must not see. "
        "May be repeated.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL|'ID_*'",
        help="A column, or a pattern of columns, that no model may see, like an id. May be repeated.",
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="A column that says how much each row counts, like survey weights; no model sees it.",
    ),
]
_SEED: dict[str, Any] = {
    "metavar": "N",
    "callback": _within(0, MOST_SEEDS),
    "help": "The same seed gives the same result.",
}
Seed = Annotated[int, typer.Option(**_SEED)]
SeedIfTrained = Annotated[int | None, typer.Option(**_SEED, show_default="0")]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=_within(-MOST_JOBS, MOST_JOBS),
        help="How many fits run side by side; one per core if not given.",
    ),
]
Bags = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=_within(1, MOST_BAGS),
        show_default="10 for entropy, else the method's own",
        help="How many bags of rows models are trained on.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="The scheduler of a Dask cluster to run the fits on."),
]
Ratio = Annotated[
    Literal["fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"] | None,
    typer.Option(
        show_default="fpr_ratio",
        help="The ratio between groups by which a row's value for a protected attribute is measured; for "
        "methods that measure a ratio.",
    ),
]
Performance = Annotated[
    Literal["tpr_at_fpr", "log_loss", "accuracy"] | None,
    typer.Option(
        show_default="the method's own",
        help="The metric of performance by which a row's value for the target is measured; for methods that "
        "measure one.",
    ),
]
MinGroupSize = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=_within(0, MOST_ROWS),
        show_default=str(MIN_GROUP_SIZE),
        help="Groups of fewer rows that are also less than 1 % of the table are too small to be compared; "
        "0 compares all.",
    ),
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="The file to write, .csv or .parquet.")]
_VALUES = "The values of the rows, as `fado value` writes them"
Values = Annotated[Path, typer.Option(metavar="FILE|DIR", help=f"{_VALUES}.")]
ValuesIfUsed = Annotated[
    Path | None, typer.Option(metavar="FILE|DIR", help=f"{_VALUES}; for methods that use values.")
]
Alpha = Annotated[
    float | None,
    typer.Option(
        metavar="A",
        help="Weight of performance against fairness in a utility, 0 to 1; for methods that use values.",
    ),
]
