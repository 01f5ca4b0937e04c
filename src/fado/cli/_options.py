"""Options that commands share, each declared once. Nothing here takes time to import."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer

from fado._checks import check_count
from fado.cli._app import in_sentences, refuse

Command = TypeVar("Command", bound=Callable[..., Any])

# beyond these no machine gets through: a slip of the finger is noticed before anything is read
MOST_BAGS = 100_000
MOST_JOBS = 4_096
MOST_SEEDS = 2**32 - 1
MOST_ROWS = 10**12
MIN_GROUP_SIZE = 30  # as in `fado.tabular`, which takes long to import


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
DataOrParts = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="The table: a .csv or .parquet file; or a directory or a pattern of such files, which are read "
        "part by part.",
    ),
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="The file to write, .csv or .parquet.")]
OutOrParts = Annotated[
    Path,
    typer.Option(
        metavar="FILE|DIR",
        help="The file to write, .csv or .parquet. For a table that is read part by part: a directory, or a "
        ".parquet file.",
    ),
]
_TARGET = typer.Option(
    metavar='COL|"COL>=9"',
    help="The column to be predicted; or whether a comparison holds, written as for `--protected`, whose "
    "columns no model sees: 'readmitted != NO', 'amount >= 1000'.",
)
_PROTECTED = typer.Option(
    metavar='COL|"COL>=50"',
    help="A protected attribute. May be repeated. A column, or a comparison by >=, >, <=, <, ==, != or "
    "in: 'age>=50', 'race in [White, Asian]'. & joins comparisons that all must hold, | those of which one "
    "must: 'age_65 == 1 | age_75 == 1'. & binds tighter; parentheses change that. Put names and values that "
    "contain such signs in quotes: '\"a>=b\" >= 3'.",
)
TargetIfTrained = Annotated[str | None, _TARGET]
ProtectedIfTrained = Annotated[list[str] | None, _PROTECTED]
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
        show_default="10 for oob, else the valuator's own",
        help="How many bags of rows models are trained on.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="The scheduler of a Dask cluster to run the fits on."),
]
_MIN_GROUP_SIZE: dict[str, Any] = {
    "metavar": "N",
    "callback": _within(0, MOST_ROWS),
    "help": "Groups of fewer rows that are also less than 1 % of the table are too small to be compared; 0 "
    "compares all.",
}
MinGroupSize = Annotated[int, typer.Option(**_MIN_GROUP_SIZE)]
MinGroupSizeIfUsed = Annotated[int | None, typer.Option(**_MIN_GROUP_SIZE, show_default=str(MIN_GROUP_SIZE))]
Alpha = Annotated[
    float | None,
    typer.Option(
        metavar="A",
        help="Weight of performance against fairness in a utility, 0 to 1; for interventions that use "
        "values.",
    ),
]
ValuesIfUsed = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE|DIR",
        help="The values of the rows, as `fado value` writes them; for interventions that use values.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        show_default="three quarters of what is free",
        help="Read the table part by part, and use no more memory than this, such as 4GB.",
    ),
]

Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="C", help="Ask that lower bounds of the ratios at this confidence reach their lines."
    ),
]

# options that a command gets together, as ``**named``, and passes on; see `command`
SHARED: dict[str, Any] = {
    "target": Annotated[str, _TARGET],
    "protected": Annotated[list[str], _PROTECTED],
    "positive": Positive,
    "drop": Drop,
    "weight": Weight,
    "group_names": GroupNames,
    "values": ValuesIfUsed,
    "alpha": Alpha,
    "min_group_size": MinGroupSizeIfUsed,
    "memory": Memory,
    "ratio": Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=LINE]",
            show_default="fpr_ratio",
            help="A ratio between groups that must reach a line: fpr_ratio, fnr_ratio, tpr_ratio, "
            "selection_rate_ratio or equalized_odds_ratio; its line as in fpr_ratio=0.8. May be repeated: "
            "all lines must hold.",
        ),
    ],
    "at_least": Annotated[
        float | None,
        typer.Option(metavar="R", show_default="0.8", help="The line of a ratio that comes without one."),
    ],
    "max_fpr": Annotated[
        float | None,
        typer.Option(
            metavar="F", show_default="0.05", help="The share of negatives that may be predicted positive."
        ),
    ],
    "max_selection_rate": Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Instead of `--max-fpr`: the share of all rows that may be predicted positive."
        ),
    ],
    "top_k": Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Instead of `--max-fpr`: how many rows of a part may be predicted positive."
        ),
    ],
    "threshold": Annotated[
        float | None,
        typer.Option(
            metavar="T", help="Instead of `--max-fpr`: rows that score at least this are predicted positive."
        ),
    ],
    "split": Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="A column, such as a month, by whose values `--validation` and `--test` set rows apart; no "
            "model sees it.",
        ),
    ],
    "validation": Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUE",
            help="A value of the `--split` column whose rows are validation rows. May be repeated.",
        ),
    ],
    "test": Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUE", help="A value of the `--split` column whose rows are test rows. May be repeated."
        ),
    ],
}
AIMED = (  # what `fado aim` and `fado frontier` share
    *("target", "protected", "positive", "drop", "weight", "group_names", "split", "validation", "test"),
    *("ratio", "at_least", "max_fpr", "max_selection_rate", "top_k", "threshold"),
)


def command(*shared: str) -> Callable[[Command], Command]:
    """Make a command of a function: options of `SHARED` as its ``**named``, errors as sentences."""

    def decorate(function: Command) -> Command:
        signature = inspect.signature(function, eval_str=True)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        required = [each for each in own if each.default is each.empty]
        named = [option_named(name, SHARED[name]) for name in shared]
        parameters = [*required, *named, *(each for each in own if each not in required)]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[each.replace(kind=each.KEYWORD_ONLY) for each in parameters]
        )
        return in_sentences(function)

    return decorate


def option_named(name: str, annotation: Any) -> inspect.Parameter:
    """Give a parameter that is None if it is not given, as far as its type allows that."""
    is_optional = type(None) in get_args(get_args(annotation)[0])
    default = None if is_optional else inspect.Parameter.empty
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
