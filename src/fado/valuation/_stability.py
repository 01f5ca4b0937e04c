"""Would another run rank rows alike? How far values agree with values that were made again.

Without another fit this is estimated. A value v is a mean over k fits and s its standard error. Of two fits,
one said v + s and the other v - s. Of more, two random halves said v + s t and v - s t, where t is
sqrt(k - 1) times a coordinate of a random direction in k - 1 dimensions: nearly normal if k is large. The
halves' rank correlation r is that of values of half as many fits, and 2 r / (1 + r) that of values of as many
(Spearman and Brown). This assumes that two fits of one run differ as two fits of two runs do, and that ranks
behave as numbers do. Of numbers it is 1 - mean(s**2) / variance(v), which is too high for the ranks of skewed
values such as entropies.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_count
from fado._progress import tracked
from fado.tabular import Variable, attribute_columns, group_rows, read_problem, variable_from
from fado.valuation._alignment import check_alignment
from fado.valuation._base import read_validation
from fado.valuation._made_again import VARIATIONS, WITHOUT, read_valuator, value_again
from fado.valuation._result import Valuation
from fado.valuation._retraining import rank_correlation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FEWEST", "attributes_of", "measure_stability", "named_groups", "read_stability"]

FloatArray = npt.NDArray[np.float64]
Part = tuple[str, npt.NDArray[np.intp]]

ALL_ROWS = "all rows"
FEWEST = 10  # rows of a group that is named

_COLUMNS = ["column", "variation", "group", "rows", "rank_agreement", "top_overlap"]
_MOST_SEEDS = 1_000
_SPLITS, _SPLIT_ROWS = 20, 20_000  # of few rows, many random halves are averaged


def measure_stability(
    valuation: Valuation,
    X: Any,
    y: Any,
    sensitive_features: Any,
    valuator: Any,
    over: Any,
    n_seeds: int,
    given: Mapping[str, Any],
    n_jobs: int | None,
    *,
    show: bool,
) -> pd.DataFrame:
    """Tell how far values agree with values made again; `given` is what else `fit` was given."""
    wanted = _read_over(over)
    check_count("n_seeds", n_seeds, 1, _MOST_SEEDS)
    if (X is None) is not (y is None):
        there, lacking = ("y", "X") if X is None else ("X", "y")
        raise ValueError(
            f"`{there}` needs `{lacking}`: pass both to make values again, or neither to estimate from the "
            "standard errors."
        )
    if X is None:
        if "bags" not in wanted or valuator is not None:
            what = f"`over={over!r}`" if valuator is None else "`valuator`"
            raise ValueError(f"{what} needs `X` and `y`: without them, only other bags can be estimated.")
        return _estimate(valuation, attributes_of(valuation, sensitive_features))
    problem = read_problem(
        X, y, sensitive_features, sample_weight=given["sample_weight"], groups=given["groups"], least_rows=2
    ).with_mean_weight_one()
    if not problem.names_given and len(problem.protected) == len(valuation.protected) == 1:
        problem = problem.with_attribute_named(valuation.protected[0])
    check_alignment(valuation, problem)
    validation = None if given["validation"] is None else read_validation(given["validation"])
    notes: list[str] = []
    made: dict[str, list[dict[str, FloatArray]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they were given when the values were made
        valuator = read_valuator(valuator, valuation, problem, validation, given, n_jobs, notes)
        ways = {name: list(VARIATIONS[name](valuator, problem, validation, n_seeds)) for name in wanted}
        every = [(name, way) for name, own in ways.items() for way in own]
        for name, way in tracked(every, len(every), what="values made again", show=show):
            made.setdefault(name, []).append(value_again(way, y, sensitive_features))
    notes += [WITHOUT[name].format(type(valuator).__name__) for name, own in ways.items() if not own]
    first = next((many[0] for many in made.values()), dict.fromkeys(valuation.variables))
    lacking = ", ".join(repr(name) for name in valuation.variables if name not in first)
    if lacking:
        notes.append(f"Values of {lacking} were not made again: pass `sensitive_features`.")
    rows = [
        _compared(valuation[column], [own[column] for own in many], column, variation, *part, notes)
        for column in valuation.variables
        if column in first
        for variation, many in made.items()
        for part in named_groups(problem.protected, problem.n_rows)
    ]
    return _frame(rows, {name: "; ".join(text for text, *_ in own) for name, own in ways.items()}, notes)


def _read_over(over: Any) -> list[str]:
    names = [over] if isinstance(over, str) else list(over) if isinstance(over, Iterable) else []
    if not names or any(name not in list(VARIATIONS) for name in names):
        known = ", ".join(map(repr, VARIATIONS))
        raise ValueError(f"`over` must hold one or more of {known}, got {over!r}.")
    return [name for name in VARIATIONS if name in names]


def attributes_of(valuation: Valuation, sensitive_features: Any) -> list[Variable]:
    """Read attributes whose groups are told apart, where there is no table."""
    if sensitive_features is None:
        return []
    columns = attribute_columns(sensitive_features)
    if len(columns) == len(valuation.protected) == 1 and not columns[0].named:
        columns = [replace(columns[0], name=valuation.protected[0])]
    for column in columns:
        if len(column) != len(valuation):
            raise ValueError(
                f"Protected attribute {column.name!r} has {len(column)} entries and the valuation has "
                f"{len(valuation)} rows: pass one entry per row, in the same order."
            )
    return [variable_from(column) for column in columns]


def named_groups(attributes: Sequence[Variable], n_rows: int) -> list[Part]:
    """Give all rows, and those of every group; groups of fewer than ten only together, if they are ten.

    Of several attributes, a group's name begins with that of its attribute.
    """
    parts: list[Part] = [(ALL_ROWS, np.arange(n_rows))]
    for variable in attributes:
        groups = group_rows([variable], quarters=True)
        plain = len(attributes) == 1 and ALL_ROWS not in groups.titles
        few = groups.sizes < FEWEST
        by_group = np.split(np.argsort(groups.codes, kind="stable"), np.cumsum(groups.sizes)[:-1])
        for code in np.flatnonzero(~few):
            title = groups.titles[code]
            parts.append((title if plain else f"{variable.name} = {title}", by_group[code]))
        pooled = np.flatnonzero(few[groups.codes])
        if len(pooled) >= FEWEST:
            of = "" if plain else f" of {variable.name}"
            parts.append((f"({few.sum()} groups{of} of fewer than {FEWEST} rows)", pooled))
    return parts


def read_stability(frame: Any) -> dict[str, Any]:
    """Read what `Valuation.stability` gave as plain data, without what is about too few rows of a group.

    Parameters
    ----------
    frame : DataFrame
        With its six columns; its `attrs` may be lost.

    Returns
    -------
    dict
        ``rows``, a mapping by column name each; ``changes``, per variation what was changed; and ``notes``.

    Raises
    ------
    TypeError
        If it is no such frame.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import Valuation
    >>> from fado.valuation import read_stability
    >>> valuation = Valuation({"y": np.arange(4.0)}, {"y": np.zeros(4)})
    >>> read_stability(valuation.stability())["rows"][0]["rank_agreement"]
    1.0
    """
    if not set(_COLUMNS) <= set(getattr(frame, "columns", ())):
        raise TypeError(f"`stability` must be what `Valuation.stability` gives, got {type(frame).__name__}.")
    rows = [
        {
            "column": str(row.column),
            "variation": str(row.variation),
            "group": str(row.group),
            "rows": int(row.rows),
            "rank_agreement": float(row.rank_agreement),
            "top_overlap": float(row.top_overlap),
        }
        for row in frame[_COLUMNS].itertuples(index=False)
        if (row.group == ALL_ROWS or row.rows >= FEWEST) and np.isfinite(row.rank_agreement)
    ]
    changes, notes = frame.attrs.get("changes", {}), frame.attrs.get("notes", ())
    return {
        "rows": rows,
        "changes": {str(name): str(own) for name, own in changes.items()},
        "notes": list(notes),
    }


def _frame(
    rows: Iterable[dict[str, Any] | None], changes: Mapping[str, str], notes: Iterable[str]
) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame([row for row in rows if row is not None], columns=_COLUMNS)
    told = {name: change for name, change in changes.items() if name in set(frame["variation"])}
    frame.attrs = {"changes": told, "notes": list(dict.fromkeys(notes))}
    return frame


def _estimate(valuation: Valuation, attributes: Sequence[Variable]) -> pd.DataFrame:
    """Estimate from standard errors how far the values of another run would agree."""
    rows, notes = [], []
    for column in valuation.variables:
        values = valuation[column]
        error, counts = (valuation.field(field, column) for field in ("standard_error", "counts"))
        known, n_valued = np.isfinite(values) & np.isfinite(error), int(np.isfinite(values).sum())
        if valuation.provenance.algorithm.startswith("influence"):
            notes.append(
                "Influences are sums over models that are measured on different rows: their spread does not "
                "tell of another run. Pass `X` and `y`."
            )
        elif not known.any():
            notes.append(
                f"Values of {column!r} have no standard errors, which need two fits. Pass `X` and `y`."
            )
        else:
            if known.sum() < n_valued:
                notes.append(
                    f"{known.sum():,} of {n_valued:,} values of {column!r} have standard errors: the figures "
                    "are about these."
                )
            for group, members in named_groups(attributes, len(valuation)):
                own = members[known[members]]
                if _are_enough(own, group):
                    figures = expected_agreement(values[own], error[own], counts[own])
                    rows.append(_row(column, "bags", group, own, figures, notes))
    return _frame(rows, {"bags": "another run of as many fits, estimated from the standard errors"}, notes)


def _compared(
    values: FloatArray,
    others: Sequence[FloatArray],
    column: str,
    variation: str,
    group: str,
    members: npt.NDArray[np.intp],
    notes: list[str],
) -> dict[str, Any] | None:
    """Compare values with others in a group; of several others, give the mean of the figures."""
    known = np.isfinite(values) & np.logical_and.reduce([np.isfinite(other) for other in others])
    own = members[known[members]]
    if not _are_enough(own, group):
        return None
    figures = np.mean([agreement(values[own], other[own]) for other in others], axis=0)
    return _row(column, variation, group, own, figures, notes)


def _are_enough(rows: npt.NDArray[np.intp], group: str) -> bool:
    return len(rows) >= (2 if group == ALL_ROWS else FEWEST)


def _row(
    column: str, variation: str, group: str, rows: npt.NDArray[np.intp], figures: Any, notes: list[str]
) -> dict[str, Any] | None:
    """Give a row of the frame; None, and a note, where values are all equal."""
    if np.isnan(figures[0]):
        notes.append(f"Values of {column!r} do not differ ({group}): there is nothing to rank.")
        return None
    return dict(zip(_COLUMNS, (column, variation, group, len(rows), *map(float, figures)), strict=True))


def agreement(values: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Give the rank correlation of two values of the same rows, and the overlap of their highest tenths.

    Rows that tie for the last places of a tenth belong to it in part.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.arange(20.0)
    >>> correlation, overlap = agreement(values, np.where(values == 19, -1.0, values))
    >>> round(correlation, 3), overlap
    (0.714, 0.5)
    """
    tenths = [_in_highest_tenth(own) for own in (values, others)]
    return rank_correlation(values, others), float(np.minimum(*tenths).sum() / tenths[0].sum())


def _in_highest_tenth(values: FloatArray) -> FloatArray:
    """Tell to which part each row belongs to the tenth with the highest values, of one row at least."""
    n_highest = max(1, round(len(values) / 10))
    last = np.partition(values, -n_highest)[-n_highest]
    above, tied = values > last, values == last
    return above + tied * ((n_highest - above.sum()) / tied.sum())


def expected_agreement(
    values: FloatArray, error: FloatArray, counts: npt.NDArray[np.integer]
) -> tuple[float, float]:
    """Estimate the agreement with values of another run; NaN if all values are equal.

    Unknown counts, below two, are taken for many.
    """
    order = np.lexsort((counts, error, values))  # so that the order of the rows changes nothing
    values, error, counts = values[order], error[order], counts[order]
    found = []
    for split in range(min(_SPLITS, 1 + _SPLIT_ROWS // len(values))):
        generator = np.random.default_rng(split)
        t, beside = generator.normal(size=len(values)), generator.gamma(np.maximum(counts - 2, 0) / 2)
        t *= np.where(counts < 2, 1.0, np.sqrt(np.maximum(counts - 1, 1) / (t**2 + 2 * beside)))
        found.append(agreement(values + error * t, values - error * t))
    correlation, overlap = np.mean(found, axis=0)
    correlation = np.maximum(correlation, 0.0)
    return float(2 * correlation / (1 + correlation)), _overlap_of_wholes(overlap)


def _overlap_of_wholes(overlap: float) -> float:
    """Turn the overlap of two halves' highest tenths into that of wholes, as normal variables have it.

    Two of correlation r both lie above the edge h of the highest tenth with a probability of
    0.1 - 2 T(h, a), where T is Owen's function and a**2 = (1 - r) / (1 + r). If r becomes 2 r / (1 + r), then
    a**2 becomes a**2 / (2 - a**2).
    """
    from scipy.special import ndtri, owens_t

    edge, steps = ndtri(0.9), np.linspace(0.0, 1.0, 1001)  # 1: no more than by chance
    a = np.interp(1 - overlap, 20 * owens_t(edge, steps), steps)
    return float(1 - 20 * owens_t(edge, a / np.sqrt(2 - a**2)))
