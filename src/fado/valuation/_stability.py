"""Would another run rank rows alike? How far values agree with recomputed values.

Without another fit this is estimated. A value v is a mean over k fits and s its standard error. Of two fits,
one gave v + s and the other v - s. Of more, two random halves gave v + s t and v - s t, where t is sqrt(k -
1) times a coordinate of a random direction in k - 1 dimensions: nearly normal if k is large. The halves' rank
correlation r is that of values of half as many fits, and 2 r / (1 + r) that of values of as many (Spearman
and Brown). This assumes that two fits of one run differ as two fits of two runs do, and that ranks behave as
numbers do. For numbers it is 1 - mean(s**2) / variance(v), which is too high for the ranks of skewed values
such as entropies.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, owens_t
from sklearn.base import clone

from fado._checks import check_count, check_instance
from fado._progress import tracked
from fado._records import shorten
from fado._typing import Bools, Floats
from fado._version import __version__
from fado.tabular import (
    Problem,
    Variable,
    attribute_columns,
    group_rows,
    read_problem,
    variable_from,
)
from fado.valuation._bags import MOST_BAGS, units_of
from fado.valuation._base import (
    BaseValuator,
    check_alignment,
    make_valuator,
    read_validation,
    valuator_names,
)
from fado.valuation._provenance import NEW_ROWS, Scale
from fado.valuation._result import Valuation, rounded
from fado.valuation._retraining import agreement

if TYPE_CHECKING:
    import pandas as pd

Group = tuple[str, npt.NDArray[np.intp]]  # its name, and the positions of its rows

_ALL_ROWS = "all rows"
_FEWEST = 10  # rows of a group that is named
_FIGURES = {"rank_agreement": float, "top_overlap": float}
_COLUMNS = {"column": str, "variation": str, "group": str, "rows": int} | _FIGURES
_MOST_SEEDS = 1_000
_SPLITS, _SPLIT_ROWS = 20, 20_000  # of few rows, many random halves are averaged
_ALGORITHMS = {"out-of-bag": "oob", "in-bag": "inbag"}  # others are noted as they are registered
_VARIATIONS = {  # and why a valuator lacks it
    "seeds": "{} has no `random_state`.",
    "bags": "{} has none here.",
}


def measure_stability(
    valuation: Valuation,
    X: Any,
    y: Any,
    sensitive_features: Any,
    unknown: Any,
    valuator: Any,
    over: Any,
    n_seeds: int,
    weights_and_groups: Mapping[str, Any],
    validation: Any,
    n_jobs: int | None,
    *,
    show: bool,
) -> pd.DataFrame:
    """Measure how far values agree with recomputed values; see `Valuation.stability`."""
    names = [over] if isinstance(over, str) else list(over) if isinstance(over, Iterable) else []
    if not names or any(name not in list(_VARIATIONS) for name in names):
        known = ", ".join(map(repr, _VARIATIONS))
        raise ValueError(f"`over` must hold one or more of {known}, got {over!r}.")
    check_count("n_seeds", n_seeds, 1, _MOST_SEEDS)
    if (X is None) is not (y is None):
        there, missing = ("y", "X") if X is None else ("X", "y")
        raise ValueError(
            f"`{there}` needs `{missing}`: pass both to recompute values, or neither to estimate from the "
            "standard errors."
        )
    if X is None:
        if "bags" not in names or valuator is not None:
            what = f"`over={over!r}`" if valuator is None else "`valuator`"
            raise ValueError(f"{what} needs `X` and `y`: without them, only other bags can be estimated.")
        return _estimate(valuation, _attributes_of(valuation, sensitive_features, unknown))
    problem = read_problem(
        X, y, sensitive_features, unknown=unknown, **weights_and_groups, least_rows=2
    ).with_mean_weight_one()
    if not problem.names_given and len(problem.protected) == len(valuation.protected) == 1:
        problem = problem.with_attribute_named(valuation.protected[0])
    check_alignment(valuation, problem)
    validation = None if validation is None else read_validation(validation, unknown)
    made: dict[str, list[Valuation]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they were given when the values were made
        given, valuator = valuator, _read_valuator(valuator, valuation, problem, validation, n_jobs)
        changes = _changes(valuator, problem, validation, n_seeds)
        every = [(name, change) for name in _VARIATIONS if name in names for change in changes[name]]
        for name, change in tracked(every, len(every), what="recomputed values", show=show):
            other = _changed(valuator, change).fit_problem(problem, validation).valuation_
            if given is None and other.provenance.estimators != valuation.provenance.estimators:
                models = ", ".join(valuation.provenance.estimators or ())
                raise ValueError(
                    f"These values were computed by {shorten(models)}, of which only the text is kept: pass "
                    "the `valuator` that computed them."
                )
            made.setdefault(name, []).append(other)
    who = type(valuator).__name__
    notes = [
        f"{name}: {why.format(who)}"
        for name, why in _VARIATIONS.items()
        if name in names and not changes[name]
    ]
    columns = {variable.name: place for place, variable in enumerate(problem.variables)}
    lost = ", ".join(repr(name) for name in valuation.variables if name not in columns)
    if lost:
        notes.append(f"Values of {lost} were not recomputed: pass `sensitive_features`.")
    rows = []
    for column in (name for name in valuation.variables if name in columns):
        for variation, valuations in made.items():
            values = valuation[column]
            others = [other[other.variables[columns[column]]] for other in valuations]
            finite = np.logical_and.reduce([np.isfinite(each) for each in (values, *others)])
            for group, members in _groups(problem.protected, finite):
                figures = np.mean([agreement(values[members], each[members]) for each in others], axis=0)
                rows.append((column, variation, group, members, figures))
    texts = {
        name: "; ".join(f"{setting}={value}" for change in changes[name] for setting, value in change.items())
        for name in made
    }
    return _frame(rows, texts, notes)


def _read_valuator(
    valuator: Any, valuation: Valuation, problem: Problem, validation: Problem | None, n_jobs: int | None
) -> Any:
    """Return a copy of the valuator of the values, with their seed, that keeps and shows nothing."""
    provenance = valuation.provenance
    if valuator is None:
        name = _ALGORITHMS.get(provenance.algorithm, provenance.algorithm)
        if provenance.algorithm.endswith(NEW_ROWS):
            what = "These values are of rows that their models have not learnt from"
            raise ValueError(f"{what}, and cannot be recomputed from them: leave out `X` and `y`.")
        if name not in valuator_names():
            raise ValueError(
                f"It is not known what computed these values ({shorten(provenance.algorithm)}): pass the "
                "`valuator` that did."
            )
        kinds = {variable.name: provenance.kind_of(variable.name) for variable in problem.variables}
        kinds = {name: kind for name, kind in kinds.items() if kind}
        hidden = {
            variable.name: (provenance.excluded_columns or {}).get(variable.name, ())
            for variable in problem.protected
        }
        valuator = make_valuator(name, **{**provenance.settings, "kinds": kinds, "z_exclude": hidden})
        settings = valuator.get_params(deep=False)
        if validation is None and "n_bags" in settings and "n_bags" not in provenance.settings:
            raise ValueError("These values are effects on validation data: pass them as `validation`.")
    check_instance("valuator", valuator)
    if not isinstance(valuator, BaseValuator):
        raise TypeError(f"`valuator` must be a valuator like OutOfBagEntropy(), got {valuator!r}.")
    seed, random_state = provenance.seed, getattr(valuator, "random_state", None)
    if seed is None:
        seed = int(random_state) if isinstance(random_state, Integral) else 0
    quiet = {"random_state": seed, "keep_models": False, "keep_probabilities": False, "progress": False}
    return _changed(valuator, quiet if n_jobs is None else {**quiet, "n_jobs": n_jobs})


def _changed(valuator: Any, settings: Mapping[str, Any]) -> Any:
    """Return a copy of a valuator with those of the settings that it has."""
    known = valuator.get_params(deep=False)
    return clone(valuator).set_params(**{name: value for name, value in settings.items() if name in known})


def _changes(
    valuator: Any, problem: Problem, validation: Problem | None, n_seeds: int
) -> dict[str, list[dict[str, int]]]:
    """Return by variation what to change, one thing at a time: the next seeds; half and twice the bags.

    Effects on validation data have no bags, and fewer bags may not cover all rows.
    """
    settings, seeds, bags = valuator.get_params(deep=False), range(0), []
    if "random_state" in settings:
        seeds = range(settings["random_state"] + 1, settings["random_state"] + 1 + n_seeds)
    share = settings.get("unseen_fraction")
    if "n_bags" in settings and (share is not None or validation is None):
        least, most = (
            math.ceil(1 / share - 1e-9) if share else 2,
            MOST_BAGS if share else units_of(problem)[0],
        )
        bags = [
            n_bags for n_bags in (settings["n_bags"] // 2, 2 * settings["n_bags"]) if least <= n_bags <= most
        ]
    return {
        "seeds": [{"random_state": seed} for seed in seeds],
        "bags": [{"n_bags": n_bags} for n_bags in bags],
    }


def _attributes_of(valuation: Valuation, sensitive_features: Any, unknown: Any) -> list[Variable]:
    """Read attributes whose groups are reported separately, if there is no table."""
    if sensitive_features is None:
        return []
    columns = attribute_columns(sensitive_features, unknown)
    if len(columns) == len(valuation.protected) == 1 and not columns[0].named:
        columns = [replace(columns[0], name=valuation.protected[0])]
    for column in columns:
        if len(column) != len(valuation):
            raise ValueError(
                f"Protected attribute {column.name!r} has {len(column)} entries and the valuation has "
                f"{len(valuation)} rows: pass one entry per row, in the same order."
            )
    return [variable_from(column) for column in columns]


def _groups(attributes: Sequence[Variable], known: Bools) -> list[Group]:
    """Return all known rows, and each group of at least ten; smaller groups only together."""
    everyone = np.flatnonzero(known)
    parts: list[Group] = [(_ALL_ROWS, everyone)] if len(everyone) >= 2 else []
    for variable in attributes:
        groups = group_rows([variable], quarters=True)
        plain = len(attributes) == 1 and _ALL_ROWS not in groups.titles
        few, codes = groups.sizes < _FEWEST, groups.codes[everyone]
        named = [
            (title if plain else f"{variable.name} = {title}", everyone[codes == code])
            for code, title in enumerate(groups.titles)
            if not few[code]
        ]
        of = "" if plain else f" of {variable.name}"
        pooled = f"({few.sum()} groups{of} of fewer than {_FEWEST} rows)"
        parts += [part for part in (*named, (pooled, everyone[few[codes]])) if len(part[1]) >= _FEWEST]
    return parts


def read_stability(frame: Any) -> dict[str, Any]:
    """Read what `Valuation.stability` returned as plain data, without groups of too few rows.

    Parameters
    ----------
    frame : DataFrame
        With its six columns; its `attrs` may be lost.

    Returns
    -------
    dict
        ``rows``, a mapping by column name each; ``changes``, what was changed per variation; and ``notes``.

    Raises
    ------
    TypeError
        If it is not such a frame.

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
        {name: kind(entry) for (name, kind), entry in zip(_COLUMNS.items(), row, strict=True)}
        for row in frame[list(_COLUMNS)].itertuples(index=False)
        if (row.group == _ALL_ROWS or row.rows >= _FEWEST) and np.isfinite(row.rank_agreement)
    ]
    changes = {str(name): str(change) for name, change in frame.attrs.get("changes", {}).items()}
    return {"rows": rows, "changes": changes, "notes": list(frame.attrs.get("notes", ()))}


def _frame(
    compared: Iterable[tuple[str, str, str, npt.NDArray[np.intp], Any]],
    changes: Mapping[str, str],
    notes: list[str],
) -> pd.DataFrame:
    """Make the table of what was compared in which group, without groups whose values do not differ."""
    import pandas as pd

    rows = []
    for column, variation, group, members, figures in compared:
        if np.isnan(figures[0]):
            notes.append(f"Values of {column!r} do not differ ({group}): there is nothing to rank.")
        else:
            rows.append((column, variation, group, len(members), *map(float, figures)))
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    shown = {name: change for name, change in changes.items() if name in set(frame["variation"])}
    frame.attrs = {"changes": shown, "notes": list(dict.fromkeys(notes))}
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
                "predict another run. Pass `X` and `y`."
            )
            continue
        if not known.any():
            notes.append(
                f"Values of {column!r} have no standard errors, which need two fits. Pass `X` and `y`."
            )
        elif known.sum() < n_valued:
            notes.append(
                f"{known.sum():,} of {n_valued:,} values of {column!r} have standard errors: the figures "
                "are about these."
            )
        for group, members in _groups(attributes, known):
            figures = expected_agreement(values[members], error[members], counts[members])
            rows.append((column, "bags", group, members, figures))
    return _frame(rows, {"bags": "another run of as many fits, estimated from the standard errors"}, notes)


def expected_agreement(values: Floats, error: Floats, counts: npt.NDArray[np.integer]) -> tuple[float, float]:
    """Estimate the agreement with values of another run; NaN if all are equal. Unknown counts are many."""
    order = np.lexsort((counts, error, values))  # so that the order of the rows changes nothing
    values, error, counts = values[order], error[order], counts[order]
    halves = []
    for split in range(min(_SPLITS, 1 + _SPLIT_ROWS // len(values))):
        generator = np.random.default_rng(split)
        t, others = generator.normal(size=len(values)), generator.gamma(np.maximum(counts - 2, 0) / 2)
        t *= np.where(counts < 2, 1.0, np.sqrt(np.maximum(counts - 1, 1) / (t**2 + 2 * others)))
        halves.append(agreement(values + error * t, values - error * t))
    correlation, overlap = np.mean(halves, axis=0)
    correlation = np.maximum(correlation, 0.0)
    return float(2 * correlation / (1 + correlation)), _overlap_of_wholes(overlap)


def _overlap_of_wholes(overlap: float) -> float:
    """Turn the overlap of two halves' highest tenths into that of wholes, for normal variables."""
    # Two of correlation r both lie above the edge h of the highest tenth with a probability of
    # 0.1 - 2 T(h, a), where T is Owen's function and a**2 = (1 - r) / (1 + r). If r becomes
    # 2 r / (1 + r), then a**2 becomes a**2 / (2 - a**2).
    edge, steps = ndtri(0.9), np.linspace(0.0, 1.0, 1001)  # 1: no more than by chance
    a = np.interp(1 - overlap, 20 * owens_t(edge, steps), steps)
    return float(1 - 20 * owens_t(edge, a / np.sqrt(2 - a**2)))


def card(valuation: Valuation, stability: Any, sensitive_features: Any, unknown: Any) -> str:
    """Write the card as Markdown; see `Valuation.card`."""
    from fado.reporting import card_text

    attributes = _attributes_of(valuation, sensitive_features, unknown)
    if stability is None:
        stability = valuation.stability(sensitive_features=sensitive_features, unknown=unknown)
    provenance, scales = valuation.provenance, valuation.scales
    computed = f"They are values by {provenance.algorithm}."
    if provenance.algorithm == "given":
        computed = "It is not known how they were computed."
    names = ", ".join(f"{name!r}{' (the target)' if name == 'y' else ''}" for name in valuation.variables)
    meanings = []
    for name, scale in scales.items():
        kind = provenance.kind_of(name)
        ends = [f"{end:g}" for end in (scale.low, scale.high) if end is not None]
        lies = f" It lies between {' and '.join(ends)}." if len(ends) == 2 else ""
        neutral = "" if scale.neutral is None else f" {scale.neutral:g} is neutral."
        meanings.append(f"{name!r}{f' ({kind})' if kind else ''}: {scale.meaning}.{lies}{neutral}")
    limits = [
        "Values depend on these rows, columns and models. With others, or with the same columns prepared in "
        "another way, rows may rank differently.",
        "Agreement shows whether another run would give the same result, not whether it is right.",
        "Values of small groups rest on few rows: check a group's own agreement before acting on its rows.",
    ]
    if all(scale.is_unit for scale in scales.values()):
        limits.append("A value does not depend on the row's own label: it does not find wrong labels.")
    if any(scale.is_signed for scale in scales.values()):
        limits.append("Removing many rows does more than the sum of their values: train again and measure.")
    settings: dict[str, Any] = {"algorithm": provenance.algorithm, **provenance.settings}
    settings |= {"seed": provenance.seed, "estimators": "; ".join(provenance.estimators or ()) or None}
    for what, numbers in (("trees", provenance.trees), ("learning rate", provenance.learning_rates)):
        settings |= {f"{what} of the models of {name!r}": number for name, number in (numbers or {}).items()}
    for name, columns in (provenance.excluded_columns or {}).items():
        settings[f"columns hidden from the models of {name!r}"] = ", ".join(map(repr, columns)) or "none"
    settings |= {f"version of {name}": version for name, version in provenance.versions.items()}
    sections: dict[str, dict[str, Any]] = {
        "What a value means": {
            "texts": ["A higher value means that the row is worth more."],
            "points": meanings,
        },
        "How values are distributed": _distribution(valuation, attributes),
        "How stable they are": _stability(read_stability(stability)),
        "What they do not show": {"points": limits},
        "How they were computed": {
            "header": ["setting", "value"],
            "rows": [[str(name), str(value)] for name, value in settings.items() if value is not None],
        },
    }
    empty: dict[str, Any] = {"texts": [], "points": [], "header": [], "rows": []}
    return card_text(
        {
            "title": f"Values of {len(valuation):,} rows",
            "fields": [],
            "lead": [f"One number per row for {names}. {computed}"],
            "sections": [{"title": title} | empty | section for title, section in sections.items()],
            "footer": f"FADO {__version__}",
        }
    )


def _distribution(valuation: Valuation, attributes: Sequence[Variable]) -> dict[str, Any]:
    points, rows = [], []
    groups = _groups(attributes, np.ones(len(valuation), dtype=np.bool_))[1:]
    for name, scale in valuation.scales.items():
        values = valuation[name]
        lost = int(np.isnan(values).sum())
        mean, *quartiles = _figures(values, scale)
        missing = f"; {lost:,} rows have no value" if lost else ""
        points.append(f"{name!r}: mean {mean}, quartiles {', '.join(quartiles)}{missing}.")
        for group, members in groups:
            rows.append([name, group, f"{len(members):,}", *_figures(values[members], scale)])
    header = ["column", "group", "rows", "mean", "25 %", "50 %", "75 %"]
    texts = [f"Groups of fewer than {_FEWEST} rows are not named."] if groups else []
    return {"texts": texts, "points": points, "header": header, "rows": rows}


def _figures(values: Floats, scale: Scale) -> list[str]:
    known = values[~np.isnan(values)]
    if not len(known):
        return ["none"] * 4
    numbers = [known.mean(), *np.quantile(known, [0.25, 0.5, 0.75])]
    return [f"{rounded(float(number), scale):g}" for number in numbers]


def _stability(measured: dict[str, Any]) -> dict[str, Any]:
    if not measured["rows"]:
        texts = ["It is not known whether another run would rank rows alike."]
        return {"texts": texts, "points": measured["notes"]}
    texts = [
        "Would recomputed values rank rows alike? Rank agreement is Spearman's correlation. Top overlap is "
        "the share of the highest tenth that stays there. Rows are ranked within a group."
    ]
    points = [f"{name}: {change}." for name, change in measured["changes"].items()] + measured["notes"]
    header = ["column", "recomputed with other", "group", "rows", "rank agreement", "top overlap"]
    rows = [
        [row["column"], row["variation"], row["group"], f"{row['rows']:,}"]
        + [f"{row[name]:.3f}" for name in _FIGURES]
        for row in measured["rows"]
    ]
    return {"texts": texts, "points": points, "header": header, "rows": rows}
