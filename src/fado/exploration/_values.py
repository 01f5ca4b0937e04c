"""Values on the page: distributions, both values together, the columns behind them, the alpha slider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from fado._checks import sklearn_seed
from fado._typing import Bools, Floats
from fado.exploration._biases import error_removed
from fado.exploration._explored import (
    FEWEST_MEMBERS,
    ExploredRows,
    Protected,
    ShownGroups,
    Span,
    cells_of,
    known_mean,
    percent,
    plain_number,
    quoted,
    span_around,
)
from fado.exploration._slices import SliceFinder, SlicePool, usable_utilities
from fado.interventions import PrevalenceSampling, minmax
from fado.tabular import Groups, Variable, mean_one
from fado.valuation import read_stability

BINS = 20
ALPHAS = tuple(step / 20 for step in range(21))
_CORNERS = (
    # uncertain about y, uncertain about z, the name and the meaning of the corner
    (True, True, "uncertain about both", "Highest utility: models can still learn from these rows, and the "
     "rows do not reveal their group."),
    (True, False, "uncertain about the target only", "Models can still learn from these rows, but they can "
     "also predict their group: here a model may use the group."),
    (False, True, "uncertain about the attribute only", "These rows do not reveal their group, but models "
     "learn little from them."),
    (False, False, "certain about both", "Redundant, and the rows reveal their group: they are dropped "
     "first."),
)  # fmt: skip
_OTHER_CORNERS = (
    # the same for values that are not entropies
    (True, True, "high for both", "Highest utility: above the cut for the target and for the attribute."),
    (True, False, "high for the target only", "Good for the target, but not for the attribute."),
    (False, True, "high for the attribute only", "Good for the attribute, but not for the target."),
    (False, False, "low for both", "Lowest utility: these rows are dropped first."),
)


def binned(values: Floats, span: Span) -> npt.NDArray[np.int64]:
    """Give the bin of every value, of `BINS` equally wide ones; the last holds its upper end.

    Examples
    --------
    >>> import numpy as np
    >>> binned(np.array([0.0, 0.049, 0.05, 1.0]), Span(0.0, 1.0))
    array([ 0,  0,  1, 19])
    """
    scaled = np.floor((values - span.low) / (span.high - span.low) * BINS + 1e-9)
    return np.clip(scaled, 0, BINS - 1).astype(np.int64)


class Cut(NamedTuple):
    """The value from which models count as uncertain, the reason, and the value without any knowledge."""

    number: float
    why: str
    uninformed: float | None = None


def cut_of(explored: ExploredRows, variable: Variable) -> Cut:
    """Choose the cut between certain and uncertain in the values of the target or of an attribute.

    Values of classes are entropies. A model that has learnt nothing about a row still knows the frequency of
    each class. Its value for every row is the entropy of these shares, not 1: with one positive in a hundred
    that is 0.08. The cut is **half of that**, midway between certainty and no knowledge. Two classes of equal
    size give 0.5.

    Values of a continuous variable say how close a prediction is to the mean, relative to the prediction that
    is farthest from it, so no fixed cut makes sense. The share of rows that count as certain is the share of
    the error of guessing the mean that models remove. If that is unknown, the cut is the median.

    Values of other scales, such as effects, are cut at their neutral point, or in the middle of the scale.
    """
    scale, values = explored.valuation.scales[variable.name], explored.valuation[variable.name]
    name = explored.shown_name(variable)
    if not scale.is_unit or scale.neutral is not None:
        span = explored.span(variable.name)
        if span.neutral is not None and span.low < span.neutral < span.high:
            return Cut(span.neutral, "the value of a row that neither helps nor harms")
        return Cut((span.low + span.high) / 2, "the middle of the scale")
    if variable.kind == "classes":
        uninformed = shares_entropy(variable.labels, len(variable.classes))
        if not uninformed:
            return Cut(0.5, f"the middle of the scale, since all rows have the same {name}")
        told = plain_number(uninformed)
        why = f"half of {told}, the value of a model that knows only the shares of the classes of {name}"
        return Cut(uninformed / 2, why, uninformed)
    removed = error_removed(explored, variable)
    if removed is None:
        return Cut(float(np.median(values)), f"the median, since {name} is continuous")
    share = min(max(removed.number, 0.0), 1.0)
    return Cut(
        float(np.quantile(values, share)),
        f"so that {percent(share)} of the rows count as certain, the share of the error of guessing the mean "
        f"of {name} that models remove",
    )


def shares_entropy(labels: npt.NDArray[np.integer], n_classes: int) -> float:
    """Give the normalised entropy of the classes' shares: the value of a model without knowledge.

    Examples
    --------
    >>> import numpy as np
    >>> shares_entropy(np.array([0, 1, 1, 0]), 2), round(shares_entropy(np.array([1] + 99 * [0]), 2), 3)
    (1.0, 0.081)
    """
    shares = np.bincount(labels, minlength=n_classes) / len(labels)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum() / np.log2(n_classes)) if n_classes > 1 else 0.0


def distributions(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    """Describe the values of the target and of one attribute, per group and label."""
    named = {"v_y": ("y", explored.target_name), "v_z": (attribute.name, attribute.name)}
    groups = attribute.groups
    return {
        "labels": list(explored.labels.names),
        "groups": [groups.names[group] for group in groups.rated],
        "lead": _lead(explored, attribute),
        "scales": {symbol: _scale(explored, symbol, *own) for symbol, own in named.items()},
    } | {symbol: list(_described(explored, groups, variable)) for symbol, (variable, _) in named.items()}


def _scale(explored: ExploredRows, symbol: str, variable: str, name: str) -> dict[str, Any]:
    """Give the range of values that is drawn, and what values mean."""
    scale = explored.valuation.scales[variable]
    if scale.is_unit:
        told = f"how uncertain models are about its {name}, from 0 (certain) to 1 (no knowledge)"
    elif scale.neutral == 0.0:
        told = f"{scale.meaning}; above 0 the row helps, below 0 it harms"
    else:
        told = f"{scale.meaning}; the higher, the more the row is worth"
    return {
        **explored.span(variable)._asdict(),
        "meaning": scale.meaning,
        "title": "how uncertain models are about" if scale.is_unit else "the worth of rows for",
        "sentence": f"{symbol} of a row: {told}.",
    }


def _lead(explored: ExploredRows, attribute: Protected) -> str:
    """Say in a few sentences what the values of the target and of an attribute mean."""
    if not explored.is_unit(attribute.name):
        first, second = (explored.valuation.scales[name].meaning for name in ("y", attribute.name))
        told = first if first == second else f"{first} (target); {second} (attribute)"
        return f"A higher value means that the row is worth more. Meaning of a value: {told}."
    known = []
    for variable in (explored.target, attribute.variable):
        name, uninformed = explored.shown_name(variable), cut_of(explored, variable).uninformed
        if uninformed is None:
            known.append(f"a model that knows only the mean of {name} has 1")
        else:
            known.append(
                f"a model that knows only the shares of the classes of {name} has {plain_number(uninformed)}"
            )
    return (
        f"A value says how uncertain models are: 0 is certain; {', and '.join(known)}. A high value for the "
        "target marks a row that models can still learn from. A high value for the attribute marks a row "
        "that does not reveal its group."
    )


def _described(explored: ExploredRows, groups: ShownGroups, variable: str) -> Iterator[dict[str, Any]]:
    values, error = explored.valuation[variable], explored.valuation.field("standard_error", variable)
    bins = binned(values, explored.span(variable))
    for group, label, rows in cells_of(groups, explored.labels):
        yield {
            "group": group,
            "label": label,
            "rows": len(rows),
            "histogram": np.bincount(bins[rows], minlength=BINS).tolist(),
            "quartiles": np.quantile(values[rows], [0.25, 0.5, 0.75]).tolist(),
            "mean": float(values[rows].mean()),
            "standard_error": known_mean(error[rows]),
        }


def stability_part(explored: ExploredRows, frame: Any) -> dict[str, Any]:
    """Say whether another run would rank the rows the same way: as measured, or by the standard errors.

    ``rows``, ``changes`` and ``notes`` are those of `Valuation.stability`, with the target called ``"y"``.
    """
    if frame is None:
        groups = {
            one.name: np.array([*one.groups.names, ""], dtype=object)[one.groups.codes]  # -1: below ten rows
            for one in explored.attributes
        }
        frame = explored.valuation.stability(sensitive_features=groups)
    told = read_stability(frame)
    names = {"y": explored.target_name} | {one.name: one.name for one in explored.attributes}
    rows = told["rows"] = [row for row in told["rows"] if row["column"] in names]
    if not rows:
        return {"sentence": "It is not known whether another run would rank the rows the same way.", **told}
    means = []
    for column, name in names.items():
        own = [row["rank_agreement"] for row in rows if (row["column"], row["group"]) == (column, "all rows")]
        means += [f"{name} {plain_number(float(np.mean(own)))}"] if own else []
    least = min(rows, key=lambda row: row["rank_agreement"])
    where = "" if least["group"] == "all rows" else f" in {quoted(least['group'])}"
    sentence = (
        f"Rank correlation with values of another run (1: the same order of rows): {', '.join(means)}. "
        f"Lowest: {plain_number(least['rank_agreement'])}, {names[least['column']]}{where}, with other "
        f"{least['variation']}."
    )
    return {"sentence": sentence, **told}


def plane(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    """Count rows by the values of the target and of an attribute, and in the four corners.

    ``counts`` has one row per bin of the attribute's value and one column per bin of the target's.
    """
    names, unit, groups = ("y", attribute.name), explored.is_unit(attribute.name), attribute.groups
    valuation, positive = explored.valuation, explored.is_positive
    cuts = [cut_of(explored, variable) for variable in (explored.target, attribute.variable)]
    across, up = (binned(valuation[name], explored.span(name)) for name in names)
    corners = []
    for unsure_y, unsure_z, name, meaning in _CORNERS if unit else _OTHER_CORNERS:
        unsure = [valuation[own] >= cut.number for own, cut in zip(names, cuts, strict=True)]
        rows = (unsure[0] == unsure_y) & (unsure[1] == unsure_z)
        n_rows = int(rows.sum())
        known = n_rows >= FEWEST_MEMBERS
        errors = [valuation.field("standard_error", name)[rows] for name in names]
        corners.append(
            {
                "name": name,
                "meaning": meaning,
                "unsure_of_target": unsure_y,
                "unsure_of_attribute": unsure_z,
                "rows": n_rows,
                "share": n_rows / len(explored),
                "share_per_group": groups.per_row(groups.count(rows), groups.sizes),
                "positive_rate": float(positive[rows].mean()) if known and positive is not None else None,
                "standard_error_y": known_mean(errors[0]) if known else None,
                "standard_error_z": known_mean(errors[1]) if known else None,
            }
        )
    return {
        "counts": np.bincount(up * BINS + across, minlength=BINS * BINS).reshape(BINS, BINS).tolist(),
        "scales": {
            key: {**explored.span(name)._asdict(), "cut": cut.number}
            for key, name, cut in zip(("v_y", "v_z"), names, cuts, strict=True)
        },
        "cuts": (
            f"The dashed lines separate {'certain from uncertain' if unit else 'low from high'}: "
            f"v_y at {plain_number(cuts[0].number)}, {cuts[0].why}; "
            f"v_z at {plain_number(cuts[1].number)}, {cuts[1].why}."
        ),
        "titles": ["uncertain about", "uncertain about"] if unit else ["worth for", "worth for"],
        "corners": corners,
        "groups": list(groups.names),
    }


def alpha_part(
    finder: SliceFinder, names: Sequence[str], fine: Groups, groups: ShownGroups
) -> dict[str, Any]:
    """Give the effects of the utility, the sampler and the reweigher, for every utility and alpha.

    The sampler equalises the positive rates of all groups in `fine`; `groups` are those that are shown.
    """
    explored, drop = finder.explored, None
    sampling = _sampling(explored, fine)
    if sampling is not None:
        shuffled = check_random_state(sklearn_seed(explored.seed)).permutation(len(explored))
        drop = partial(sampling.dropped, shuffled=shuffled)
    pool = SlicePool(finder, names, drop, None if sampling is None else sampling.droppable)
    valuation, outcome, sizes = explored.valuation, explored.outcome, groups.sizes
    v_z = np.mean([valuation[name] for name in names], axis=0)

    def outcomes(weights: Floats | float, counts: npt.NDArray[Any]) -> list[float | None] | None:
        return None if outcome is None else groups.per_row(groups.total(outcome * weights), counts)

    def setting(utilities: Floats, span: Span) -> dict[str, Any]:
        """Give what the page shows for one utility at one alpha."""
        bins, weights = binned(utilities, span), mean_one(minmax(utilities))
        weight, effective = groups.total(weights), float(weights.sum() ** 2 / np.square(weights).sum())
        dropped = None if drop is None else drop(utilities)
        gone = None
        if dropped is not None:
            counts = groups.count(dropped)
            gone = {
                "histogram": _histograms(groups, bins, dropped),
                "mean_v_y": groups.per_row(groups.total(valuation["y"] * dropped), counts),
                "mean_v_z": groups.per_row(groups.total(v_z * dropped), counts),
            }
        return {
            "histogram": _histograms(groups, bins, np.ones(len(bins), dtype=bool)),
            "mean": groups.per_row(groups.total(utilities), sizes),
            "dropped": gone,
            "weights": {
                "effective_rows": effective,
                "effective_share": effective / len(weights),
                "largest": float(weights.max()),
                "share_per_group": (weight / weights.sum()).tolist(),
                "outcome_per_group": outcomes(weights, weight),
            },
            "slices": pool.ranked(utilities, dropped),
        }

    counted = None
    if sampling is not None and drop is not None and explored.is_positive is not None:
        lost, positives = groups.count(drop(np.zeros(len(explored)))), groups.count(explored.is_positive)
        counted = {  # the same for every utility
            "target_rate": sampling.target_rate,
            "dropped": lost.tolist(),
            "kept": (sizes - lost).tolist(),
            "rate_before": groups.per_row(positives, sizes),
            "rate_after": groups.per_row(positives, sizes - lost),
        }
    shown = {}
    for name, kind in usable_utilities(valuation, names).items():
        every = [kind(alpha=alpha).over(names)(valuation) for alpha in ALPHAS]
        is_unit = explored.is_unit(*names)
        span = Span(*kind.ends) if is_unit else span_around(np.concatenate(every), 0.0)
        shown[name] = {**span._asdict(), "settings": [setting(utilities, span) for utilities in every]}
    return {
        "attributes": list(names),
        "alphas": list(ALPHAS),
        "groups": list(groups.names),
        "rows": sizes.tolist(),
        "small": groups.small,
        "outcome_before": outcomes(1.0, sizes),
        "sampling": counted,
        "slices": pool.described(groups),
        "utilities": shown,
    }


def _sampling(explored: ExploredRows, fine: Groups) -> PrevalenceSampling | None:
    """Give the sampler, if there are a positive label and two groups whose rates it can equalise."""
    if explored.is_positive is None or fine.compared(explored.min_group_size).sum() < 2:
        return None
    return PrevalenceSampling(explored.is_positive, fine, min_group_size=explored.min_group_size)


def _histograms(groups: ShownGroups, bins: npt.NDArray[np.int64], rows: Bools) -> list[list[int]]:
    there = rows & (groups.codes >= 0)
    cells = np.bincount(groups.codes[there] * BINS + bins[there], minlength=len(groups) * BINS)
    return cells.reshape(len(groups), BINS).tolist()
