"""Commands from functions: options come from a function's signature and docstring, shared ones from here.

Nothing here takes time to import: help needs only this.
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
    *("target", "protected", "unknown", "positive", "drop", "keep_ids", "weight", "group_names"),
    *("split", "validation", "test"),
    *("ratio", "at_least", "max_fpr", "max_selection_rate", "top_k", "threshold"),
)
# of the built-in interventions, declared below since their registry takes long to import
SETTINGS = {
    "sample": ("strength",),
    "reweigh": ("scaling", "negative", "floor", "prevalence_correction", "constraint", "point"),
}
# larger numbers are typing errors, refused before anything is read
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
    unknown: list[str] | None = None,
    out: Path,
    positive: str | None = None,
    exclude: list[str] | None = None,
    drop: list[str] | None = None,
    keep_ids: bool = False,
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
    """Declare the options that commands share.

    Parameters
    ----------
    data : DATA
        The table: a .csv or .parquet file.
    data_in_parts : DATA
        The table: a .csv or .parquet file, or a directory or pattern of such files, which is read in parts.
    target : COL|"COL>=9"
        The column to be predicted, or a comparison such as 'readmitted != NO' or 'amount >= 1000', written as
        for `--protected`. The columns of a comparison are not features.
    protected : COL|"COL>=50"
        A protected attribute: a column, or a comparison with >=, >, <=, <, ==, != or in, such as 'age>=50' or
        'race in [White, Asian]'. Join comparisons with & (and) or | (or): 'age_65 == 1 | age_75 == 1'. &
        binds tighter than |; use parentheses to change that. Put names and values that contain such signs in
        quotes: '"a>=b" >= 3'. May be repeated.
    unknown : VALUE
        A value of the columns of `--protected` that means that a row's group is not known, such as '?' or -1.
        Such rows, and those without a value, are counted and compared with no group. May be repeated.
    out : FILE
        The file to write, .csv or .parquet.
    out_in_parts : FILE|DIR
        The file to write, .csv or .parquet. For a table that is read in parts: a directory or a .parquet
        file.
    positive : LABEL
        The positive label of the target; by default the larger of two.
    exclude : COL|'AGE_*'
        A column, or a pattern of columns, that models of protected attributes must not use. May be repeated.
    drop : COL|'ID_*'
        A column, or a pattern of columns, that is not a feature. May be repeated.
    keep_ids : flag
        Keep columns that look like ids as features; by default they are left out, and named.
    weight : COL
        A column of sample weights, such as survey weights; it is not a feature.
    group_names : "COL>=50: NAME, NAME"|"COL: GROUP=NAME, ..."
        Names for the groups of a protected attribute. For a comparison, first the name of the rows where it
        is true: 'age>=50: 50 and over, under 50'. For a column, by value: 'sex: 1=men, 2=women'. Put names
        that contain a comma or = in quotes. May be repeated, once per attribute. By default, groups of a
        comparison are named age >= 50 and age < 50.
    values : FILE|DIR
        The values of the rows, written by `fado value`; for interventions that use values.
    alpha : A
        Weight of performance versus fairness in the utility, 0 to 1; for interventions that use values.
    utility : choice, default=linear
        How the values of a row are combined into its utility; for interventions that use values.
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
        A ratio between groups and the line that it must reach, such as fpr_ratio=0.8. The ratio is fpr_ratio,
        fnr_ratio, tpr_ratio, selection_rate_ratio or equalized_odds_ratio. May be repeated: all lines must be
        reached.
    at_least : R, default=0.8
        The line for ratios that name none.
    confidence : C
        Require that the lower confidence bounds of the ratios, at this level, reach their lines.
    max_fpr : F, default=0.05
        The largest false-positive rate.
    max_selection_rate : S
        Instead of `--max-fpr`: the largest share of all rows that are predicted positive.
    top_k : K
        Instead of `--max-fpr`: how many rows of a part are predicted positive.
    threshold : T
        Instead of `--max-fpr`: rows with at least this score are predicted positive.
    split : COL
        A column, such as a month, whose values define validation and test data with `--validation` and
        `--test`; it is not a feature.
    validation : VALUE
        A value of the `--split` column whose rows are validation data. May be repeated.
    test : VALUE
        A value of the `--split` column whose rows are test data. May be repeated.
    bags : N, default=10 for oob, else that of the valuator
        The number of bags, random subsets of the rows that models are trained on.
    min_group_size : N, default=30
        Groups with fewer rows that are also less than 1 % of the table are not compared; 0 compares all.
    memory : SIZE, default=three quarters of the free memory
        Read the table in parts, and use at most this much memory, such as 4GB.
    seed : N, default=0
        The same seed gives the same result.
    jobs : N
        How many fits run in parallel; by default one per core.
    dask : ADDRESS
        The scheduler of a Dask cluster to run the fits on.
    """


def command(*names: str, in_parts: bool = False) -> Callable[[Command], Command]:
    """Make a command of a function: positional parameters are arguments, the others options.

    Options are described in its docstring or, by the same name, in that of `shared`. It gets the options of
    `shared` in `names` as ``**named``. Its errors are sentences. `in_parts` is for tables that can be read in
    parts.
    """

    def decorate(function: Command) -> Command:
        signature = inspect.signature(function, eval_str=True)
        declared = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        required = [each for each in declared if each.default is each.empty]
        named = [inspect.signature(shared, eval_str=True).parameters[name] for name in names]
        documented = _documented(shared)
        if in_parts:
            documented |= {name: documented[f"{name}_in_parts"] for name in ("data", "out")}
        documented |= _documented(function)
        parameters = [
            described(each, *documented.get(each.name, ("",)))
            for each in (*required, *named, *(each for each in declared if each not in required))
        ]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run = in_sentences(function)
        run.__doc__ = (inspect.getdoc(function) or "").partition("\n\nParameters\n")[0]
        return run

    return decorate


def _documented(function: Callable[..., Any]) -> dict[str, tuple[str, str, str | None]]:
    """Read a docstring: the description, metavar and default of every parameter."""
    entry = re.compile(r"^(\w+) : (.+?)(?:, default=(.+))?\n((?: {4}.+\n?)+)", re.MULTILINE)
    return {
        name: (" ".join(text.split()), metavar, default or None)
        for name, metavar, default, text in entry.findall(inspect.getdoc(function) or "")
    }


def described(
    parameter: inspect.Parameter, text: str, metavar: str | None = None, default: str | None = None
) -> inspect.Parameter:
    """Give a parameter with its description, for typer."""
    kind: Any = parameter.annotation
    info: dict[str, Any] = {"help": text}
    if parameter.name in BOUNDS:
        info["callback"] = _check_bounds
    if "Literal" not in str(kind) and kind is not bool:  # these show their choices
        info["metavar"] = metavar
    if parameter.kind is parameter.KEYWORD_ONLY:
        if parameter.default is None and default is not None:
            info["show_default"] = default
        flag = f"--{parameter.name.rstrip('_').replace('_', '-')}"
        kind = Annotated[kind, typer.Option(flag, **info)]
    else:
        kind = Annotated[kind, typer.Argument(**info)]
    return parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY)


def _check_bounds(option: typer.CallbackParam, number: int | None) -> int | None:
    """Refuse a number that must be a typing error."""
    if number is None:
        return None
    try:
        return check_count(option.opts[0], number, *BOUNDS[str(option.name)])
    except ValueError as error:
        refuse(error)
