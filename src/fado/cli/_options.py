"""The options that commands share, and their help; nothing here takes long to import."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, CallbackParam, Option

from fado._checks import check_count
from fado.cli._app import refuse

MIN_GROUP_SIZE = 30  # as in `fado.tabular`, which takes long to import


def _between(low: int, high: int) -> Callable[[CallbackParam, int | None], int | None]:
    """Refuse, before anything is read, a number that must be a typing error."""

    def check(option: CallbackParam, number: int | None) -> int | None:
        try:
            return None if number is None else check_count(option.opts[0], number, low, high)
        except ValueError as error:
            refuse(error)

    return check


# some commands need these, others do not
TARGET = Option(
    metavar='COL|"COL>=9"',
    help="The column to be predicted, or a comparison such as 'readmitted != NO' or 'amount >= 1000', "
    "written as for `--protected`. The columns of a comparison are not features.",
)
PROTECTED = Option(
    metavar='COL|"COL>=50"',
    help="A protected attribute: a column, or a comparison with >=, >, <=, <, ==, != or in, such as "
    "'age>=50' or 'race in [White, Asian]'. Join comparisons with & (and) or | (or): 'age_65 == 1 | "
    "age_75 == 1'. & binds tighter than |; use parentheses to change that. Put names and values that contain "
    "such signs in quotes: '\"a>=b\" >= 3'. May be repeated.",
)
ALPHA = Option(help="Weight of performance versus fairness in the utility, 0 to 1.")

Data = Annotated[
    Path,
    Argument(
        metavar="DATA",
        help="The table: a .csv or .parquet file. For `value`, `sample`, `reweigh` and `explore`, also a "
        "directory or pattern of such files, which is read in parts.",
    ),
]
Target = Annotated[str, TARGET]
Protected = Annotated[list[str], PROTECTED]
Unknown = Annotated[
    list[str] | None,
    Option(
        metavar="VALUE",
        help="A value of the columns of `--protected` that means that a row's group is not known, such as "
        "'?' or -1. Such rows, and those without a value, are counted and compared with no group. May be "
        "repeated.",
    ),
]
Out = Annotated[Path, Option(metavar="FILE", help="The file to write, .csv or .parquet.")]
OutInParts = Annotated[
    Path,
    Option(
        metavar="FILE|DIR",
        help="The file to write, .csv or .parquet. For a table that is read in parts: a directory or a "
        ".parquet file.",
    ),
]
Positive = Annotated[
    str | None,
    Option(metavar="LABEL", help="The positive label of the target; by default the larger of two."),
]
Exclude = Annotated[
    list[str] | None,
    Option(
        metavar="COL|'AGE_*'",
        help="A column, or a pattern of columns, that models of protected attributes must not use. May be "
        "repeated.",
    ),
]
Drop = Annotated[
    list[str] | None,
    Option(
        metavar="COL|'ID_*'",
        help="A column, or a pattern of columns, that is not a feature. May be repeated.",
    ),
]
KeepIds = Annotated[
    bool,
    Option(
        "--keep-ids",
        help="Keep columns that look like ids as features; by default they are left out, and named.",
    ),
]
Weight = Annotated[
    str | None,
    Option(metavar="COL", help="A column of sample weights, such as survey weights; it is not a feature."),
]
GroupNames = Annotated[
    list[str] | None,
    Option(
        metavar='"COL>=50: NAME, NAME"|"COL: GROUP=NAME, ..."',
        help="Names for the groups of a protected attribute. For a comparison, first the name of the rows "
        "where it is true: 'age>=50: 50 and over, under 50'. For a column, by value: 'sex: 1=men, 2=women'. "
        "Put names that contain a comma or = in quotes. May be repeated, once per attribute. By default, "
        "groups of a comparison are named age >= 50 and age < 50.",
    ),
]
Values = Annotated[
    Path | None,
    Option(
        metavar="FILE|DIR",
        help="The values of the rows, written by `fado value`; `explore` and `generate` can do without.",
    ),
]
Utility = Annotated[
    Literal["linear", "difference", "cobb-douglas"] | None,
    Option(show_default="linear", help="How the values of a row are combined into its utility."),
]
MinGroupSize = Annotated[
    int,
    Option(
        callback=_between(0, 10**12),
        help="Groups with fewer rows that are also less than 1 % of the table are not compared; 0 compares "
        "all.",
    ),
]
Ratio = Annotated[
    list[str] | None,
    Option(
        metavar="NAME[=LINE]",
        show_default="fpr_ratio",
        help="A ratio between groups and the line that it must reach, such as fpr_ratio=0.8. The ratio is "
        "fpr_ratio, fnr_ratio, tpr_ratio, selection_rate_ratio or equalized_odds_ratio. May be repeated: all "
        "lines must be reached.",
    ),
]
AtLeast = Annotated[float, Option(help="The line for ratios that name none.")]
Confidence = Annotated[
    float | None,
    Option(help="Require that the lower confidence bounds of the ratios, at this level, reach their lines."),
]
MaxFpr = Annotated[float | None, Option(show_default="0.05", help="The largest false-positive rate.")]
MaxSelectionRate = Annotated[
    float | None,
    Option(help="Instead of `--max-fpr`: the largest share of all rows that are predicted positive."),
]
TopK = Annotated[
    int | None, Option(help="Instead of `--max-fpr`: how many rows of a part are predicted positive.")
]
Threshold = Annotated[
    float | None, Option(help="Instead of `--max-fpr`: rows with at least this score are predicted positive.")
]
Split = Annotated[
    str | None,
    Option(
        metavar="COL",
        help="A column, such as a month, whose values define validation and test data with `--validation` "
        "and `--test`; it is not a feature.",
    ),
]
Validation = Annotated[
    list[str] | None,
    Option(
        metavar="VALUE",
        help="A value of the `--split` column whose rows are validation data. May be repeated.",
    ),
]
Test = Annotated[
    list[str] | None,
    Option(
        metavar="VALUE", help="A value of the `--split` column whose rows are test data. May be repeated."
    ),
]
Bags = Annotated[
    int | None,
    Option(
        callback=_between(1, 100_000),
        show_default="10 for oob, else that of the valuator",
        help="The number of bags, random subsets of the rows that models are trained on.",
    ),
]
Memory = Annotated[
    str | None,
    Option(
        metavar="SIZE",
        show_default="three quarters of the free memory",
        help="Read the table in parts, and use at most this much memory, such as 4GB.",
    ),
]
Seed = Annotated[int, Option(callback=_between(0, 2**32 - 1), help="The same seed gives the same result.")]
Jobs = Annotated[
    int | None,
    Option(callback=_between(-4_096, 4_096), help="How many fits run in parallel; by default one per core."),
]
Dask = Annotated[
    str | None,
    Option(
        metavar="ADDRESS",
        help="The scheduler of a Dask cluster to run the fits on; tables read in parts must be files "
        "that its workers can read.",
    ),
]
