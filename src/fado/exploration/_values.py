"""Values on the page: distributions, both values together, the alpha slider, whether another run agrees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from fado._checks import sklearn_seed
from fado._typing import Bools, Floats
from fado.exploration._biases import error_removed
from fado.exploration._explored import ExploredRows, Protected, percent, plain_number, quoted
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups, cells_of, divided
from fado.exploration._slices import SliceFinder, SlicePool, usable_utilities
from fado.interventions import PrevalenceSampling, minmax
from fado.tabular import Groups, Variable, mean_one
from fado.valuation import read_stability

BINS = 20
ALPHAS = tuple(step / 20 for step in range(21))
_CORNERS = {
    # whether values of y and z are above the cut: the name and the meaning of the corner
    (True, True): ("uncertain about both", "Highest utility: models can still learn from these rows, and the "
     "rows do not reveal their group."),
    (True, False): ("uncertain about the target only", "Models can still learn from these rows, but they can "
     "also predict their group: here a model may use the group."),
    (False, True): ("uncertain about the attribute only", "These rows do not reveal their group, but models "
     "learn little from them."),
    (False, False): ("certain about both", "Redundant, and the rows reveal their group: they are dropped "
     "first."),
}  # fmt: skip
_OTHER_CORNERS = {
    # the same for values that are not entropies
    (True, True): ("high for both", "Highest utility: above the cut for the target and for the attribute."),
    (True, False): ("high for the target only", "Good for the target, but not for the attribute."),
    (False, True): ("high for the attribute only", "Good for the attribute, but not for the target."),
    (False, False): ("low for both", "Lowest utility: these rows are dropped first."),
}


class Span(NamedTuple):
    """The ends of an axis, and its neutral point if there is one."""

    low: float
    high: float
    neutral: float | None = None


def span_around(values: Floats, neutral: float | None) -> Span:
    """Give a range around the neutral point, or 0, that contains all but a few extreme values."""
    centre = 0.0 if neutral is None else neutral
    reach = float(np.quantile(np.abs(values - centre), 0.995)) if len(values) else 0.0
    reach = reach if reach > 0 else 1.0
    return Span(centre - reach, centre + reach, neutral)


def span_of(explored: ExploredRows, name: str) -> Span:
    """Give the range in which the values of a variable are drawn."""
    scale = explored.valuation.scales[name]
    if scale.low is not None and scale.high is not None:
        return Span(scale.low, scale.high, scale.neutral)
    return span_around(explored.valuation[name], scale.neutral)


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


def cut_of(explored: ExploredRows, variable: Variable) -> tuple[float, str]:
    """Choose the cut between certain and uncertain in the values of a variable, and give the reason.

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
    name = explored.target_name if variable is explored.target else variable.name
    if not scale.is_unit or scale.neutral is not None:
        span = span_of(explored, variable.name)
        if span.neutral is not None and span.low < span.neutral < span.high:
            return span.neutral, "the value of a row that neither helps nor harms"
        return (span.low + span.high) / 2, "the middle of the scale"
    if variable.kind == "classes":
        uninformed = shares_entropy(variable)
        if not uninformed:
            return 0.5, f"the middle of the scale, since all rows have the same {name}"
        known = f"half of {plain_number(uninformed)}, the value of a model that knows only the shares"
        return uninformed / 2, f"{known} of the classes of {name}"
    removed = error_removed(explored, variable)
    if removed is None:
        return float(np.median(values)), f"the median, since {name} is continuous"
    share = min(max(removed.number, 0.0), 1.0)
    return (
        float(np.quantile(values, share)),
        f"so that {percent(share)} of the rows count as certain, the share of the error of guessing the mean "
        f"of {name} that models remove",
    )


def shares_entropy(variable: Variable) -> float:
    """Give the normalised entropy of the classes' shares: the value of a model without knowledge.

    Examples
    --------
    >>> import numpy as np
    >>> round(shares_entropy(Variable("y", "classes", np.array([1] + 99 * [0]), (False, True))), 3)
    0.081
    """
    n_classes = len(variable.classes)
    shares = np.bincount(variable.labels, minlength=n_classes) / len(variable.labels)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum() / np.log2(n_classes)) if n_classes > 1 else 0.0


def distributions(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    """Describe the values of the target and of one attribute, per group and label."""
    part: dict[str, Any] = {
        "labels": list(explored.labels.names),
        "groups": list(attribute.groups.names),
        "lead": _lead(explored, attribute),
        "scales": {},
    }
    for symbol, variable, name in (
        ("v_y", "y", explored.target_name),
        ("v_z", attribute.name, attribute.name),
    ):
        scale, span = explored.valuation.scales[variable], span_of(explored, variable)
        if scale.is_unit:
            says = f"how uncertain models are about its {name}, from 0 (certain) to 1 (no knowledge)"
        elif scale.neutral == 0.0:
            says = f"{scale.meaning}; above 0 the row helps, below 0 it harms"
        else:
            says = f"{scale.meaning}; the higher, the more the row is worth"
        part["scales"][symbol] = {
            **span._asdict(),
            "title": "how uncertain models are about" if scale.is_unit else "the worth of rows for",
            "sentence": f"{symbol} of a row: {says}.",
        }
        values, errors = explored.valuation[variable], explored.valuation.field("standard_error", variable)
        bins = binned(values, span)
        part[symbol] = [
            {
                "group": group,
                "label": label,
                "rows": len(rows),
                "histogram": np.bincount(bins[rows], minlength=BINS).tolist(),
                "quartiles": np.quantile(values[rows], [0.25, 0.5, 0.75]).tolist(),
                "mean": float(values[rows].mean()),
                "standard_error": _known_mean(errors[rows]),
            }
            for group, label, rows in cells_of(attribute.groups, explored.labels)
        ]
    return part


def _known_mean(numbers: Floats) -> float | None:
    """Give the mean of the known numbers; None if there are none."""
    known = numbers[~np.isnan(numbers)]
    return float(known.mean()) if len(known) else None


def _lead(explored: ExploredRows, attribute: Protected) -> str:
    """Say in a few sentences what the values of the target and of an attribute mean."""
    if not explored.is_unit(attribute.name):
        first, second = (explored.valuation.scales[name].meaning for name in ("y", attribute.name))
        both = first if first == second else f"{first} (target); {second} (attribute)"
        return f"A higher value means that the row is worth more. Meaning of a value: {both}."
    known = []
    for variable, name in (
        (explored.target, explored.target_name),
        (attribute.variable, attribute.name),
    ):
        entropy = shares_entropy(variable) if variable.kind == "classes" else 0.0
        if entropy:
            classes = f"a model that knows only the shares of the classes of {name} has"
            known.append(f"{classes} {plain_number(entropy)}")
        else:
            known.append(f"a model that knows only the mean of {name} has 1")
    return (
        f"A value says how uncertain models are: 0 is certain; {', and '.join(known)}. A high value for the "
        "target marks a row that models can still learn from. A high value for the attribute marks a row "
        "that does not reveal its group."
    )


def stability_part(explored: ExploredRows, frame: Any) -> dict[str, Any]:
    """Say whether another run would rank the rows the same way: as measured, or by the standard errors.

    ``rows``, ``changes`` and ``notes`` are those of `Valuation.stability`, with the target called ``"y"``.
    """
    if frame is None:
        groups = {
            one.name: np.array([*one.groups.names, "(small groups)"], dtype=object)[
                one.groups.codes
            ]  # the last: -1
            for one in explored.attributes
        }
        frame = explored.valuation.stability(sensitive_features=groups)
    part = read_stability(frame)
    names = {"y": explored.target_name} | {one.name: one.name for one in explored.attributes}
    rows = part["rows"] = [row for row in part["rows"] if row["column"] in names]
    if not rows:
        return {"sentence": "It is not known whether another run would rank the rows the same way.", **part}
    means = []
    for column, name in names.items():
        of_all = [
            row["rank_agreement"] for row in rows if (row["column"], row["group"]) == (column, "all rows")
        ]
        means += [f"{name} {plain_number(float(np.mean(of_all)))}"] if of_all else []
    least = min(rows, key=lambda row: row["rank_agreement"])
    where = "" if least["group"] == "all rows" else f" in {quoted(least['group'])}"
    sentence = (
        f"Rank correlation with values of another run (1: the same order of rows): {', '.join(means)}. "
        f"Lowest: {plain_number(least['rank_agreement'])}, {names[least['column']]}{where}, with other "
        f"{least['variation']}."
    )
    return {"sentence": sentence, **part}


def plane(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    """Count rows by the values of the target and of an attribute, and in the four corners.

    ``counts`` has one row per bin of the attribute's value and one column per bin of the target's.
    """
    names, unit, groups = ("y", attribute.name), explored.is_unit(attribute.name), attribute.groups
    valuation, positive = explored.valuation, explored.is_positive
    (cut_y, why_y), (cut_z, why_z) = (cut_of(explored, one) for one in (explored.target, attribute.variable))
    spans = [span_of(explored, name) for name in names]
    across, up = (binned(valuation[name], span) for name, span in zip(names, spans, strict=True))
    corners = []
    for (above_y, above_z), (name, meaning) in (_CORNERS if unit else _OTHER_CORNERS).items():
        rows = ((valuation["y"] >= cut_y) == above_y) & ((valuation[attribute.name] >= cut_z) == above_z)
        n_rows = int(rows.sum())
        known = n_rows >= FEWEST_MEMBERS
        corners.append(
            {
                "name": name,
                "meaning": meaning,
                "unsure_of_target": above_y,
                "unsure_of_attribute": above_z,
                "rows": n_rows,
                "share": n_rows / len(explored),
                "share_per_group": divided(groups.count(rows), groups.sizes),
                "positive_rate": float(positive[rows].mean()) if known and positive is not None else None,
            }
        )
    return {
        "counts": np.bincount(up * BINS + across, minlength=BINS * BINS).reshape(BINS, BINS).tolist(),
        "scales": {
            "v_y": {**spans[0]._asdict(), "cut": cut_y},
            "v_z": {**spans[1]._asdict(), "cut": cut_z},
        },
        "cuts": (
            f"The dashed lines separate {'certain from uncertain' if unit else 'low from high'}: "
            f"v_y at {plain_number(cut_y)}, {why_y}; v_z at {plain_number(cut_z)}, {why_z}."
        ),
        "titles": ["uncertain about", "uncertain about"] if unit else ["worth for", "worth for"],
        "corners": corners,
        "groups": list(groups.names),
    }


def alpha_part(
    finder: SliceFinder, names: Sequence[str], every_group: Groups, groups: ShownGroups
) -> dict[str, Any]:
    """Give the effects of the utility, the sampler and the reweigher, for every utility and alpha.

    The sampler equalises the positive rates of all compared groups; `groups` are those that are shown.
    """
    explored, drop, counted = finder.explored, None, None
    valuation, outcome, sizes = explored.valuation, explored.outcome, groups.sizes
    positive, least = explored.is_positive, explored.min_group_size
    if positive is not None and every_group.compared(least).sum() > 1:
        sampling = PrevalenceSampling(positive, every_group, min_group_size=least)
        shuffled = check_random_state(sklearn_seed(explored.seed)).permutation(len(explored))
        drop = partial(sampling.dropped, shuffled=shuffled)
        lost, positives = groups.count(drop(np.zeros(len(explored)))), groups.count(positive)
        counted = {  # the same for every utility
            "target_rate": sampling.target_rate,
            "dropped": lost.tolist(),
            "kept": (sizes - lost).tolist(),
            "rate_before": divided(positives, sizes),
            "rate_after": divided(positives, sizes - lost),
        }
    pool = SlicePool(finder, names)
    v_z = np.mean([valuation[name] for name in names], axis=0)

    def histograms(bins: npt.NDArray[np.int64], rows: Bools) -> list[list[int]]:
        there = rows & (groups.codes >= 0)
        cells = np.bincount(groups.codes[there] * BINS + bins[there], minlength=len(groups) * BINS)
        return cells.reshape(len(groups), BINS).tolist()

    def setting(utilities: Floats, span: Span) -> dict[str, Any]:
        """Give what the page shows for one utility at one alpha."""
        bins, weights = binned(utilities, span), mean_one(minmax(utilities))
        weight, effective = groups.total(weights), float(weights.sum() ** 2 / np.square(weights).sum())
        dropped = None if drop is None else drop(utilities)
        gone = None
        if dropped is not None:
            counts = groups.count(dropped)
            gone = {
                "histogram": histograms(bins, dropped),
                "mean_v_y": divided(groups.total(valuation["y"] * dropped), counts),
                "mean_v_z": divided(groups.total(v_z * dropped), counts),
            }
        return {
            "histogram": histograms(bins, np.ones(len(bins), dtype=bool)),
            "mean": divided(groups.total(utilities), sizes),
            "dropped": gone,
            "weights": {
                "effective_rows": effective,
                "effective_share": effective / len(weights),
                "largest": float(weights.max()),
                "share_per_group": (weight / weights.sum()).tolist(),
                "outcome_per_group": None
                if outcome is None
                else divided(groups.total(outcome * weights), weight),
            },
            "slices": pool.ranked(utilities),
        }

    shown = {}
    for name, kind in usable_utilities(valuation, names).items():
        every = [kind(alpha=alpha).over(names)(valuation) for alpha in ALPHAS]
        span = Span(*kind.ends) if explored.is_unit(*names) else span_around(np.concatenate(every), 0.0)
        shown[name] = {**span._asdict(), "settings": [setting(utilities, span) for utilities in every]}
    return {
        "attributes": list(names),
        "alphas": list(ALPHAS),
        "groups": list(groups.names),
        "rows": sizes.tolist(),
        "outcome_before": None if outcome is None else divided(groups.total(outcome), sizes),
        "sampling": counted,
        "slices": pool.described(groups),
        "utilities": shown,
    }
