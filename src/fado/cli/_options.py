"""From functions to commands: options are what a function's signature and docstring say, shared ones once.

Nothing here takes time to import: this is all that help needs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from fado._checks import check_count
from fado.cli._app import in_sentences, refuse

Command = TypeVar("Command", bound=Callable[..., Any])
Parity = Literal["FalsePositiveRateParity", "DemographicParity", "TruePositiveRateParity", "EqualizedOdds"]

MIN_GROUP_SIZE = 30  # as in `fado.tabular`, which takes long to import
AIMED = (  # what `fado aim` and `fado frontier` share
    *("target", "protected", "positive", "drop", "weight", "group_names", "split", "validation", "test"),
    *("ratio", "at_least", "max_fpr", "max_selection_rate", "top_k", "threshold"),
)
# of our own interventions, declared below as the registry has them, which takes long to import
SETTINGS = {
    "sample": ("strength",),
    "reweigh": ("scaling", "negative", "floor", "prevalence_correction", "constraint", "point"),
}
# beyond these no machine gets through: a slip of the finger is noticed before anything is read
BOUNDS = {
    "bags": (1, 100_000),
    "jobs": (-4_096, 4_096),
    "seed": (0, 2**32 - 1),
    "min_group_size": (0, 10**12),
}


def shared(
    data: Path,
    *,
    target: str,
    protected: list[str],
    out: Path,
    positive: str | None = None,
    exclude: list[str] | None = None,
    drop: list[str] | None = None,
    weight: str | None = None,
    group_names: list[str] | None = None,
    values: Path | None = None,
    alpha: float | None = None,
    utility: Literal["linear", "difference", "cobb-douglas"] | None = None,
    strength: float | None = None,
    scaling: Literal["minmax", "none"] | None = None,
    negative: Literal["raise", "clip"] | None = None,
    floor: float | None = None,
    prevalence_correction: float | None = None,
    constraint: Parity | None = None,
    point: float | None = None,
    ratio: list[str] | None = None,
    at_least: float | None = None,
    confidence: float | None = None,
    max_fpr: float | None = None,
    max_selection_rate: float | None = None,
    top_k: int | None = None,
    threshold: float | None = None,
    split: str | None = None,
    validation: list[str] | None = None,
    test: list[str] | None = None,
    bags: int | None = None,
    min_group_size: int | None = None,
    memory: str | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    dask: str | None = None,
) -> None:
    """Declare options for commands that do not describe these themselves.

    Parameters
    ----------
    data : DATA
        The table: a .csv or .parquet file.
    data_in_parts : DATA
        The table: a .csv or .parquet file; or a directory or a pattern of such files, which are read part by
        part.
    target : COL|"COL>=9"
        The column to be predicted; or whether a comparison holds, written as for `--protected`, whose columns
        no model sees: 'readmitted != NO', 'amount >= 1000'.
    protected : COL|"COL>=50"
        A protected attribute. May be repeated. A column, or a comparison by >=, >, <=, <, ==, != or in:
        'age>=50', 'race in [White, Asian]'. & joins comparisons that all must hold, | those of which one
        must: 'age_65 == 1 | age_75 == 1'. & binds tighter; parentheses change that. Put names and values that
        contain such signs in quotes: '"a>=b" >= 3'.
    out : FILE
        The file to write, .csv or .parquet.
    out_in_parts : FILE|DIR
        The file to write, .csv or .parquet. For a table that is read part by part: a directory, or a .parquet
        file.
    positive : LABEL
        The target's positive label; the larger of two if not given.
    exclude : COL|'AGE_*'
        A column, or a pattern of columns, that models of protected attributes must not see. May be repeated.
    drop : COL|'ID_*'
        A column, or a pattern of columns, that no model may see, like an id. May be repeated.
    weight : COL
        A column that says how much each row counts, like survey weights; no model sees it.
    group_names : "COL>=50: NAME, NAME"|"COL: GROUP=NAME, ..."
        What groups of a protected attribute are called. Of a comparison, first the rows where it holds:
        'age>=50: 50 and over, under 50'. Of a column, by its values: 'sex: 1=men, 2=women'. Put names that
        hold a comma or = in quotes. May be repeated, once per attribute. Without it, groups of a comparison
        are called by what it compares: age >= 50 and age < 50.
    values : FILE|DIR
        The values of the rows, as `fado value` writes them; for interventions that use values.
    alpha : A
        Weight of performance against fairness in a utility, 0 to 1; for interventions that use values.
    utility : choice, default=linear
        How a row's values combine into its utility; for interventions that use values.
    strength : S, default=1.0
        How far groups' rates move to the highest rate, 0 to 1.
    scaling : choice, default=minmax
        minmax scales utilities to [0, 1]; none takes them as they are.
    negative : choice, default=raise
        Without scaling, negative utilities are an error (raise) or a weight of 0 (clip).
    floor : F, default=0.0
        Weight of the least useful row over that of the most useful, 0 to 1.
    prevalence_correction : P, default=0.0 for uar, 1.0 for corrected_uar
        Power of the correction of rates: 0 for none, 1 for equal rates.
    constraint : choice, default=FalsePositiveRateParity
        What fairlearn makes equal between groups.
    point : P, default=0.5
        The place on fairlearn's grid of multipliers, 0 to 1.
    ratio : NAME[=LINE], default=fpr_ratio
        A ratio between groups that must reach a line: fpr_ratio, fnr_ratio, tpr_ratio, selection_rate_ratio
        or equalized_odds_ratio; its line as in fpr_ratio=0.8. May be repeated: all lines must hold.
    at_least : R, default=0.8
        The line of a ratio that comes without one.
    confidence : C
        Ask that lower bounds of the ratios at this confidence reach their lines.
    max_fpr : F, default=0.05
        The share of negatives that may be predicted positive.
    max_selection_rate : S
        Instead of `--max-fpr`: the share of all rows that may be predicted positive.
    top_k : K
        Instead of `--max-fpr`: how many rows of a part may be predicted positive.
    threshold : T
        Instead of `--max-fpr`: rows that score at least this are predicted positive.
    split : COL
        A column, such as a month, by whose values `--validation` and `--test` set rows apart; no model sees
        it.
    validation : VALUE
        A value of the `--split` column whose rows are validation rows. May be repeated.
    test : VALUE
        A value of the `--split` column whose rows are test rows. May be repeated.
    bags : N, default=10 for oob, else the valuator's own
        How many bags of rows models are trained on.
    min_group_size : N, default=30
        Groups of fewer rows that are also less than 1 % of the table are too small to be compared; 0
        compares all.
    memory : SIZE, default=three quarters of what is free
        Read the table part by part, and use no more memory than this, such as 4GB.
    seed : N, default=0
        The same seed gives the same result.
    jobs : N
        How many fits run side by side; one per core if not given.
    dask : ADDRESS
        The scheduler of a Dask cluster to run the fits on.
    """


def command(*names: str, in_parts: bool = False) -> Callable[[Command], Command]:
    """Make a command of a function: positional parameters are arguments, the others options.

    Options are described in its docstring or, by the same name, in that of `shared`. Those of `shared` that
    `names` lists it gets as ``**named``. Its errors are sentences. `in_parts` is for help on tables read so.
    """

    def decorate(function: Command) -> Command:
        signature = inspect.signature(function, eval_str=True)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        required = [each for each in own if each.default is each.empty]
        named = [inspect.signature(shared, eval_str=True).parameters[name] for name in names]
        told = _told(shared)
        if in_parts:
            told |= {name: told[f"{name}_in_parts"] for name in ("data", "out")}
        told |= _told(function)
        parameters = [
            described(each, *told.get(each.name, ("",)))
            for each in (*required, *named, *(each for each in own if each not in required))
        ]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run = in_sentences(function)
        run.__doc__ = (function.__doc__ or "").partition("\n")[0]
        return run

    return decorate


def _told(function: Callable[..., Any]) -> dict[str, tuple[str, str, str | None]]:
    """Read a docstring: of every parameter what it says, what stands for its value, and its default."""
    entry = re.compile(r"^(\w+) : (.+?)(?:, default=(.+))?\n((?: {4}.+\n?)+)", re.MULTILINE)
    found = entry.findall(inspect.getdoc(function) or "")
    return {
        name: (" ".join(text.split()), metavar, default or None) for name, metavar, default, text in found
    }


def described(
    parameter: inspect.Parameter, text: str, metavar: str | None = None, default: str | None = None
) -> inspect.Parameter:
    """Give a parameter with its description, as typer reads it."""
    kind: Any = parameter.annotation
    told: dict[str, Any] = {"help": text}
    if parameter.name in BOUNDS:
        told["callback"] = _check_bounds
    if "Literal" not in str(kind) and kind is not bool:  # which say themselves what they may be
        told["metavar"] = metavar
    if parameter.kind is parameter.KEYWORD_ONLY:
        if parameter.default is None and default is not None:
            told["show_default"] = default
        flag = f"--{parameter.name.rstrip('_').replace('_', '-')}"
        kind = Annotated[kind, typer.Option(flag, **told)]
    else:
        kind = Annotated[kind, typer.Argument(**told)]
    return parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY)


def _check_bounds(option: typer.CallbackParam, number: int | None) -> int | None:
    """Refuse a number that no machine gets through."""
    if number is None:
        return None
    try:
        return check_count(option.opts[0], number, *BOUNDS[str(option.name)])
    except ValueError as error:
        refuse(error)
