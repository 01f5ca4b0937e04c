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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from fado._checks import check_count, check_instance
from fado._progress import tracked
from fado._records import shorten
from fado._typing import Floats
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
    texts_of,
    valuator_names,
)
from fado.valuation._provenance import NEW_ROWS, Scale
from fado.valuation._result import Valuation, rounded
from fado.valuation._retraining import agreement
from fado.valuation.entropy import OutOfBagEntropy

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


def measure_stability(
    valuation: Valuation,
    X: Any,
    y: Any,
    sensitive_features: Any,
    unknown: Any,
    valuator: Any,
    over: Any,
    n_seeds: int,
    given: Mapping[str, Any],
    n_jobs: int | None,
    *,
    show: bool,
) -> pd.DataFrame:
    """Measure how far values agree with recomputed values; `given` are further arguments of `fit`."""
    names = [over] if isinstance(over, str) else list(over) if isinstance(over, Iterable) else []
    if not names or any(name not in list(_VARIATIONS) for name in names):
        known = ", ".join(map(repr, _VARIATIONS))
        raise ValueError(f"`over` must hold one or more of {known}, got {over!r}.")
    wanted = [name for name in _VARIATIONS if name in names]
    check_count("n_seeds", n_seeds, 1, _MOST_SEEDS)
    if (X is None) is not (y is None):
        there, lacking = ("y", "X") if X is None else ("X", "y")
        raise ValueError(
            f"`{there}` needs `{lacking}`: pass both to recompute values, or neither to estimate from the "
            "standard errors."
        )
    if X is None:
        if "bags" not in wanted or valuator is not None:
            what = f"`over={over!r}`" if valuator is None else "`valuator`"
            raise ValueError(f"{what} needs `X` and `y`: without them, only other bags can be estimated.")
        return _estimate(valuation, _attributes_of(valuation, sensitive_features, unknown))
    problem = read_problem(
        X,
        y,
        sensitive_features,
        unknown=unknown,
        sample_weight=given["sample_weight"],
        groups=given["groups"],
        least_rows=2,
    ).with_mean_weight_one()
    if not problem.names_given and len(problem.protected) == len(valuation.protected) == 1:
        problem = problem.with_attribute_named(valuation.protected[0])
    check_alignment(valuation, problem)
    validation = None if given["validation"] is None else read_validation(given["validation"], unknown)
    notes: list[str] = []
    made: dict[str, list[dict[str, Floats]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they were given when the values were made
        valuator = _read_valuator(valuator, valuation, problem, validation, given, n_jobs, notes)
        changes = {name: list(_VARIATIONS[name](valuator, problem, validation, n_seeds)) for name in wanted}
        every = [(name, change) for name, made_with in changes.items() for change in made_with]
        for name, change in tracked(every, len(every), what="recomputed values", show=show):
            other = _changed(valuator, **change)
            made.setdefault(name, []).append(_value_again(other, problem, validation, y, sensitive_features))
    who = type(valuator).__name__
    notes += [f"{name}: {_LACKS[name].format(who)}" for name, own in changes.items() if not own]
    first = next((many[0] for many in made.values()), dict.fromkeys(valuation.variables))
    lost = ", ".join(repr(name) for name in valuation.variables if name not in first)
    if lost:
        notes.append(f"Values of {lost} were not recomputed: pass `sensitive_features`.")
    rows = []
    for column, variation in ((name, own) for name in valuation.variables if name in first for own in made):
        values, others = valuation[column], [own[column] for own in made[variation]]
        finite = np.logical_and.reduce([np.isfinite(own) for own in (values, *others)])
        for group, own in _groups(problem.protected, finite):
            figures = np.mean([agreement(values[own], other[own]) for other in others], axis=0)
            rows.append((column, variation, (group, own), figures))
    texts = {
        name: "; ".join(f"{setting}={value}" for change in made_with for setting, value in change.items())
        for name, made_with in changes.items()
    }
    return _frame(rows, texts, notes)


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


def _groups(attributes: Sequence[Variable], known: npt.NDArray[np.bool_]) -> list[Group]:
    """Return all known rows, and each group of at least ten; smaller groups only together."""
    parts: list[Group] = [(_ALL_ROWS, np.arange(len(known)))]
    for variable in attributes:
        groups = group_rows([variable], quarters=True)
        plain = len(attributes) == 1 and _ALL_ROWS not in groups.titles
        few = groups.sizes < _FEWEST
        by_group = np.split(np.argsort(groups.codes, kind="stable"), np.cumsum(groups.sizes)[:-1])
        for code in np.flatnonzero(~few):
            title = groups.titles[code]
            parts.append((title if plain else f"{variable.name} = {title}", by_group[code]))
        of = "" if plain else f" of {variable.name}"
        pooled = np.flatnonzero(few[groups.codes])
        parts.append((f"({few.sum()} groups{of} of fewer than {_FEWEST} rows)", pooled))
    found = [(name, members[known[members]]) for name, members in parts]
    return [(name, own) for name, own in found if len(own) >= (2 if name == _ALL_ROWS else _FEWEST)]


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
        {name: kind(own) for (name, kind), own in zip(_COLUMNS.items(), row, strict=True)}
        for row in frame[list(_COLUMNS)].itertuples(index=False)
        if (row.group == _ALL_ROWS or row.rows >= _FEWEST) and np.isfinite(row.rank_agreement)
    ]
    changes = {str(name): str(own) for name, own in frame.attrs.get("changes", {}).items()}
    return {"rows": rows, "changes": changes, "notes": list(frame.attrs.get("notes", ()))}


def _frame(
    compared: Iterable[tuple[str, str, Group, Any]], changes: Mapping[str, str], notes: list[str]
) -> pd.DataFrame:
    """Make the table of what was compared in which group, without groups whose values do not differ."""
    import pandas as pd

    rows = []
    for column, variation, (group, members), figures in compared:
        if np.isnan(figures[0]):
            notes.append(f"Values of {column!r} do not differ ({group}): there is nothing to rank.")
        else:
            rows.append((column, variation, group, len(members), *map(float, figures)))
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
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
        for group, own in _groups(attributes, known):
            figures = expected_agreement(values[own], error[own], counts[own])
            rows.append((column, "bags", (group, own), figures))
    return _frame(rows, {"bags": "another run of as many fits, estimated from the standard errors"}, notes)


def expected_agreement(values: Floats, error: Floats, counts: npt.NDArray[np.integer]) -> tuple[float, float]:
    """Estimate the agreement with values of another run; NaN if all are equal. Unknown counts are many."""
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
    """Turn the overlap of two halves' highest tenths into that of wholes, for normal variables."""
    from scipy.special import ndtri, owens_t

    # Two of correlation r both lie above the edge h of the highest tenth with a probability of
    # 0.1 - 2 T(h, a), where T is Owen's function and a**2 = (1 - r) / (1 + r). If r becomes
    # 2 r / (1 + r), then a**2 becomes a**2 / (2 - a**2).
    edge, steps = ndtri(0.9), np.linspace(0.0, 1.0, 1001)  # 1: no more than by chance
    a = np.interp(1 - overlap, 20 * owens_t(edge, steps), steps)
    return float(1 - 20 * owens_t(edge, a / np.sqrt(2 - a**2)))


def _read_valuator(
    given: Any,
    valuation: Valuation,
    problem: Problem,
    validation: Problem | None,
    beside: Mapping[str, Any],
    n_jobs: int | None,
    notes: list[str],
) -> Any:
    """Return a copy of the valuator of the values, with their seed, that keeps and shows nothing."""
    valuator = _noted_valuator(valuation, problem, validation, notes) if given is None else given
    check_instance("valuator", valuator)
    if not hasattr(valuator, "fit"):
        raise TypeError(f"`valuator` must be a valuator like OutOfBagEntropy(), got {valuator!r}.")
    useless = [name for name, own in beside.items() if own is not None]
    if useless and not isinstance(valuator, BaseValuator):
        raise ValueError(
            f"`{useless[0]}` is for valuators that derive from BaseValuator, got {type(valuator).__name__}: "
            "leave it out."
        )
    own, seed = _settings_of(valuator).get("random_state"), valuation.provenance.seed
    if seed is None:
        seed = int(own) if isinstance(own, Integral) else 0
    quiet = {"random_state": seed, "keep_models": False, "keep_probabilities": False, "progress": False}
    return _changed(valuator, **quiet, **({} if n_jobs is None else {"n_jobs": n_jobs}))


def _noted_valuator(
    valuation: Valuation, problem: Problem, validation: Problem | None, notes: list[str]
) -> Any:
    """Make the valuator that provenance describes; for entropies of unknown origin, the default one."""
    told = valuation.provenance
    name = _ALGORITHMS.get(told.algorithm, told.algorithm)
    if told.algorithm.endswith(NEW_ROWS):
        what = "These values are of rows that their models have not learnt from"
        raise ValueError(f"{what}, and cannot be recomputed from them: leave out `X` and `y`.")
    if name not in valuator_names():
        if not all(scale.is_unit and scale.neutral is None for scale in valuation.scales.values()):
            raise ValueError(
                f"It is not known what computed these values ({shorten(told.algorithm)}): pass the "
                "`valuator` that did."
            )
        notes.append("It is not known what computed these values: OutOfBagEntropy's are compared.")
        return OutOfBagEntropy()
    kinds = {own.name: told.kind_of(own.name) for own in problem.variables if told.kind_of(own.name)}
    hidden = {own.name: (told.excluded_columns or {}).get(own.name, ()) for own in problem.protected}
    valuator = make_valuator(name, **{**told.settings, "kinds": kinds, "z_exclude": hidden})
    if validation is None and "n_bags" in _settings_of(valuator) and "n_bags" not in told.settings:
        raise ValueError("These values are effects on validation data: pass them as `validation`.")
    if told.estimators is not None and isinstance(valuator, BaseValuator):
        models = texts_of(valuator._default_models(problem.table.n_columns))
        if told.estimators != models:
            raise ValueError(
                f"These values were computed by {shorten(', '.join(told.estimators))}, of which only the "
                "text is kept: pass the `valuator` that computed them."
            )
    return valuator


def _settings_of(valuator: Any) -> dict[str, Any]:
    return valuator.get_params(deep=False) if hasattr(valuator, "get_params") else {}


def _changed(valuator: Any, **settings: Any) -> Any:
    """Return a copy of a valuator with those of the settings that it has."""
    taken = {name: value for name, value in settings.items() if name in _settings_of(valuator)}
    copied = clone(valuator, safe=False)
    return copied.set_params(**taken) if taken else copied


def _value_again(
    valuator: Any, problem: Problem, validation: Problem | None, y: Any, sensitive_features: Any
) -> dict[str, Floats]:
    """Value the rows with another valuator, and return the values by variable."""
    if isinstance(valuator, BaseValuator):
        made = valuator.fit_problem(problem, validation).valuation_
    else:
        table = problem.table
        features = table.to_pandas() if table.source is None else table.source
        made = valuator.fit(features, y, sensitive_features=sensitive_features).valuation_
    return {own.name: made[name] for own, name in zip(problem.variables, made.variables, strict=False)}


def _other_seeds(
    valuator: Any, problem: Problem, validation: Problem | None, n_seeds: int
) -> Iterator[dict[str, int]]:
    if "random_state" in _settings_of(valuator):
        for seed in range(valuator.random_state + 1, valuator.random_state + 1 + n_seeds):
            yield {"random_state": seed}


def _other_bags(
    valuator: Any, problem: Problem, validation: Problem | None, _: int
) -> Iterator[dict[str, int]]:
    """Half and twice as many bags, as far as they work; effects on validation data have none."""
    settings = _settings_of(valuator)
    share = settings.get("unseen_fraction")
    if "n_bags" not in settings or (share is None and validation is not None):
        return
    n_units = units_of(problem)[0]
    least, most = (2, n_units) if share is None else (math.ceil(1 / share - 1e-9), MOST_BAGS)
    for n_bags in (settings["n_bags"] // 2, 2 * settings["n_bags"]):
        if least <= n_bags <= most:
            yield {"n_bags": n_bags}


_VARIATIONS: dict[str, Callable[[Any, Problem, Problem | None, int], Iterator[dict[str, int]]]] = {
    "seeds": _other_seeds,
    "bags": _other_bags,
}
_LACKS = {  # what a valuator does not have
    "seeds": "{} has no `random_state`.",
    "bags": "{} has none here.",
}


def card(valuation: Valuation, stability: Any, sensitive_features: Any, unknown: Any) -> str:
    """Write the card as Markdown; see `Valuation.card`."""
    from fado.reporting import card_text

    attributes = _attributes_of(valuation, sensitive_features, unknown)
    if stability is None:
        stability = valuation.stability(sensitive_features=sensitive_features, unknown=unknown)
    algorithm = valuation.provenance.algorithm
    made = f"They are values by {algorithm}."
    if algorithm == "given":
        made = "It is not known how they were computed."
    names = ", ".join(f"{name!r}{' (the target)' if name == 'y' else ''}" for name in valuation.variables)
    sections = {
        "What a value means": _meaning(valuation),
        "How values are distributed": _distribution(valuation, attributes),
        "How stable they are": _stability(read_stability(stability)),
        "What they do not show": _limits(valuation),
        "How they were computed": _making(valuation),
    }
    empty: dict[str, Any] = {"texts": [], "points": [], "header": [], "rows": []}
    return card_text(
        {
            "title": f"Values of {len(valuation):,} rows",
            "fields": [],
            "lead": [f"One number per row for {names}. {made}"],
            "sections": [{"title": title} | empty | own for title, own in sections.items()],
            "footer": f"FADO {__version__}",
        }
    )


def _meaning(valuation: Valuation) -> dict[str, Any]:
    points = []
    for name, scale in valuation.scales.items():
        kind = valuation.provenance.kind_of(name)
        ends = [f"{end:g}" for end in (scale.low, scale.high) if end is not None]
        lies = f" It lies between {' and '.join(ends)}." if len(ends) == 2 else ""
        neutral = "" if scale.neutral is None else f" {scale.neutral:g} is neutral."
        points.append(f"{name!r}{f' ({kind})' if kind else ''}: {scale.meaning}.{lies}{neutral}")
    return {"texts": ["A higher value means that the row is worth more."], "points": points}


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


def _stability(told: dict[str, Any]) -> dict[str, Any]:
    texts = [
        "Would recomputed values rank rows alike? Rank agreement is Spearman's correlation. Top overlap is "
        "the share of the highest tenth that stays there. Rows are ranked within a group."
    ]
    points = [f"{name}: {change}." for name, change in told["changes"].items()] + told["notes"]
    header = ["column", "recomputed with other", "group", "rows", "rank agreement", "top overlap"]
    rows = [
        [own["column"], own["variation"], own["group"], f"{own['rows']:,}"]
        + [f"{own[name]:.3f}" for name in _FIGURES]
        for own in told["rows"]
    ]
    if not rows:
        texts = ["It is not known whether another run would rank rows alike."]
    return {"texts": texts, "points": points, "header": header, "rows": rows}


def _limits(valuation: Valuation) -> dict[str, Any]:
    points = [
        "Values depend on these rows, columns and models. With others, or with the same columns prepared in "
        "another way, rows may rank differently.",
        "Agreement shows whether another run would give the same result, not whether it is right.",
        "Values of small groups rest on few rows: check a group's own agreement before acting on its rows.",
    ]
    if all(scale.is_unit for scale in valuation.scales.values()):
        points.append("A value does not depend on the row's own label: it does not find wrong labels.")
    if any(scale.is_signed for scale in valuation.scales.values()):
        points.append("Removing many rows does more than the sum of their values: train again and measure.")
    return {"points": points}


def _making(valuation: Valuation) -> dict[str, Any]:
    told = valuation.provenance
    about: dict[str, Any] = {"algorithm": told.algorithm, **told.settings, "seed": told.seed}
    about |= {"estimators": None if told.estimators is None else "; ".join(told.estimators)}
    for what, own in (("trees", told.trees), ("learning rate", told.learning_rates)):
        about |= {f"{what} of the models of {name!r}": number for name, number in (own or {}).items()}
    for name, columns in (told.excluded_columns or {}).items():
        about[f"columns hidden from the models of {name!r}"] = ", ".join(map(repr, columns)) or "none"
    about |= {f"version of {name}": version for name, version in told.versions.items()}
    rows = [[str(name), str(value)] for name, value in about.items() if value is not None]
    return {"header": ["setting", "value"], "rows": rows}
