"""The biases of the data with 95 % intervals: group size, prevalence, separability, base bias."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._typing import Floats
from fado.exploration._estimates import (
    Estimate,
    Gap,
    auc,
    count_ratio,
    difference,
    mean,
    rank_correlation,
    share,
    share_gap,
    skill,
    widest_gap,
)
from fado.exploration._explored import ExploredRows, Protected, percent, plain_number, quoted
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups
from fado.tabular import Variable

_NO_AGREEMENT = "This needs the models' agreement with the labels, which the values do not contain."
_NAMES = {
    "group_size": "Group size disparity",
    "prevalence": "Prevalence disparity",
    "separability": "Separability disparity",
    "base": "Base bias",
}


def biases(explored: ExploredRows, attribute: Protected) -> list[dict[str, Any]]:
    """Estimate the four biases of one protected attribute.

    Each is a dict with ``id``, ``name``, ``measure``, ``format``, ``number``, ``low`` and ``high`` (None if
    unknown), ``sentence`` and the bars of its chart.
    """
    return [
        _group_size(explored, attribute),
        _prevalence(explored, attribute),
        _separability(explored, attribute),
        _base_bias(explored, attribute),
    ]


def error_removed(explored: ExploredRows, variable: Variable) -> Estimate | None:
    """Estimate which share of the error of guessing the mean models remove; None if unknown."""
    agreement = explored.label_probability(variable.name)
    largest_error = (explored.valuation.provenance.largest_error or {}).get(variable.name)
    if agreement is None or largest_error is None:
        return None
    known = variable.known
    errors = (1.0 - agreement[known]) * largest_error
    return skill(errors, np.abs(variable.labels[known] - variable.labels[known].mean()))


def _bias(
    which: str,
    measure: str,
    form: str,
    estimate: Estimate | None,
    sentence: str,
    bars: tuple[ShownGroups, Sequence[Estimate], str, str] | None = None,
) -> dict[str, Any]:
    """Describe a bias; `bars` has the groups, their estimates, what these are, and their format."""
    known = estimate is not None and np.isfinite(estimate.number)
    number, low, high = estimate if estimate is not None and known else (None, None, None)
    groups, estimates, bars_are, bars_format = bars or (None, (), "", "number")
    sizes = [] if groups is None else groups.sizes.tolist()
    return {
        "id": which, "name": _NAMES[which], "measure": measure, "format": form,
        "number": number, "low": low, "high": high, "sentence": sentence,
        "bars": [
            {"group": groups.names[group], "rows": size} | estimates[group]._asdict()
            for group, size in enumerate(sizes)
            if groups is not None and size >= FEWEST_MEMBERS
        ],
        "bars_are": bars_are, "bars_format": bars_format,
    }  # fmt: skip


def _between(
    attribute: Protected,
    which: str,
    what: str,
    estimates: Sequence[Estimate],
    gap: Gap,
    write: Callable[[float], str],
    form: str,
    numbers: npt.NDArray[Any],
    among: int = 1,
) -> dict[str, Any]:
    """Estimate a bias by the widest gap between groups; along a number, by the rank correlation of rows."""
    widest = widest_gap(estimates, attribute.groups.compared, gap, among)
    sentence = (
        f"No clear difference in the {what} was found between groups: the interval of the gap contains 0."
    )
    if not widest.known:
        sentence = _too_few(attribute)
    elif widest.is_clear:
        sentence = f"The {what} is {widest.ends(estimates, attribute.spoken, write)}."
    bars = attribute.groups, estimates, what, form
    if not attribute.is_continuous:
        return _bias(which, f"gap in the {what}", form, widest.gap, sentence, bars)
    known = attribute.variable.known
    correlation = rank_correlation(numbers[known], attribute.variable.labels[known])
    measure = f"rank correlation of {attribute.name} and {what}"
    return _bias(which, measure, "number", correlation, sentence, bars)


def _group_size(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    groups, names = attribute.groups, attribute.spoken
    if attribute.is_continuous:
        groups = _stretches(attribute)
        names = tuple(map(quoted, groups.names))
    sizes = groups.sizes
    shares = [share(int(size), len(explored)) for size in sizes]
    compared = [group for group in groups.compared if sizes[group] >= FEWEST_MEMBERS]
    estimate, sentence = None, _too_few(attribute)
    if len(compared) > 1:
        most, *_, least = sorted(compared, key=lambda group: -sizes[group])
        estimate = count_ratio(int(sizes[most]), int(sizes[least]))
        where = f"The range {names[most]} of {attribute.name}" if attribute.is_continuous else names[most]
        times = plain_number(estimate.number)
        alike = times == "1" or estimate.holds(1.0)
        sentence = (
            f"{where} has {'about as' if alike else f'{times} times as'} many rows as {names[least]}: "
            f"{percent(shares[most].number)} of all rows against {percent(shares[least].number)}."
        )
    bars = groups, shares, "share of rows", "percent"
    return _bias("group_size", "largest over smallest", "times", estimate, sentence, bars)


def _stretches(attribute: Protected) -> ShownGroups:
    """Cut the range of a continuous attribute, without its outer 2 % on each side, into four equal parts."""
    numbers = attribute.variable.labels
    low, high = np.nanquantile(numbers, [0.02, 0.98])
    edges = np.linspace(low, high, 5)
    codes = np.searchsorted(edges[1:-1], numbers)
    codes = np.where((numbers >= low) & (numbers <= high), codes, -1)
    bounds = [plain_number(edge, 4) for edge in edges.tolist()]
    return ShownGroups(codes, tuple(f"{low} to {high}" for low, high in pairwise(bounds)), 4)


def _prevalence(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    """Compare the rate of the positive label, the mean, or without either the share that differs most."""
    groups, target = attribute.groups, explored.target
    if target.kind == "continuous":
        what, means = f"mean of {explored.target_name}", _means(groups, target.labels)
        bias = _between(
            attribute, "prevalence", what, means, difference, plain_number, "number", target.labels
        )
        return bias | {"labels": None, "labels_per": []}
    codes = range(len(target.classes)) if explored.positive is None else [explored.positive]
    rates = [
        list(map(share, groups.count(target.labels == code).tolist(), groups.sizes.tolist()))
        for code in codes
    ]
    gaps = [widest_gap(one, groups.compared, share_gap, len(codes)) for one in rates]
    best = max(range(len(codes)), key=lambda j: gaps[j].gap.number if gaps[j].known else -1.0)
    kind = "share" if explored.positive is None else "rate"
    what = f"{kind} of {quoted(explored.speak_label(codes[best]))}"
    rows = target.labels == codes[best]
    bias = _between(
        attribute, "prevalence", what, rates[best], share_gap, percent, "percent", rows, len(codes)
    )
    labels = None
    if explored.positive is None:
        if gaps[best].is_clear and not attribute.is_continuous:
            bias["sentence"] += f" Of the {len(codes)} labels, this one differs most."
        labels = [
            {
                "label": str(target.classes[code]),
                "share": float((target.labels == code).mean()),
                "groups": [one[group].number for group in groups.compared],
            }
            for code, one in zip(codes, rates, strict=True)
        ]
    return bias | {"labels": labels, "labels_per": [groups.names[group] for group in groups.compared]}


def _separability(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    target, groups, agreement = explored.target_name, attribute.groups, explored.label_probability("y")
    if agreement is None:
        return _bias("separability", "", "number", None, _NO_AGREEMENT)
    if explored.is_binary and not attribute.is_continuous:
        is_one = explored.target.labels == 1
        scores = np.where(is_one, agreement, 1.0 - agreement)
        estimates = [auc(scores[rows], is_one[rows]) for rows in map(groups.members, range(len(groups)))]
        what = bars_are = f"AUC of {target}"
    else:
        estimates, what = _means(groups, agreement), f"models' agreement on {target}"
        is_class = explored.target.kind == "classes"
        meaning = "mean probability that models give to a row's own label"
        bars_are = f"{what}: {meaning if is_class else '1 is no error, 0 the largest error'}"
    write = "{:.3f}".format
    bias = _between(attribute, "separability", what, estimates, difference, write, "number", agreement)
    return bias | {"bars_are": bars_are}


def _base_bias(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    z, groups, agreement = attribute.variable, attribute.groups, explored.label_probability(attribute.name)
    removed = error_removed(explored, z) if attribute.is_continuous else None
    if agreement is None or (attribute.is_continuous and removed is None):
        return _bias("base", "", "number", None, _NO_AGREEMENT)
    sees_target = explored.valuation.provenance.settings.get("z_sees_target") is not False
    seen = f"the features{' and the target' if sees_target else ''}"
    means = _means(groups, agreement)
    if removed is not None:
        part = _clear_part(removed)
        sentence = f"Models that see {seen} remove {part} of the error of guessing the mean of {z.name}."
        bars = groups, means, f"agreement on {z.name}", "number"
        return _bias("base", "share of the mean's error removed", "percent", removed, sentence, bars)
    bars = groups, means, "probability that models give to a row's own group", "percent"
    if len(groups) < 2:
        bias = _bias("base", "", "number", None, _too_few(attribute), bars)
    elif len(z.classes) == 2:
        estimate = auc(np.where(z.labels == 1, agreement, 1.0 - agreement), z.labels == 1)
        how_well = ("hardly", "to some extent", "well", "very well")[
            bisect_right((0.55, 0.7, 0.85), estimate.number)
        ]
        sentence = (
            f"{quoted(z.name)} is {'not clearly' if estimate.holds(0.5) else how_well} predicted from "
            f"{seen}: an AUC of {estimate.number:.3f} (0.5 is chance)."
        )
        bias = _bias("base", f"AUC of {z.name}", "number", estimate, sentence, bars)
    else:
        rows = groups.codes >= 0
        shares = np.bincount(z.labels, minlength=len(z.classes)) / len(z.labels)
        estimate = skill(1.0 - agreement[rows], 1.0 - shares[z.labels[rows]])
        sentence = (
            f"Models that see {seen} remove {_clear_part(estimate)} of the uncertainty about {z.name} that "
            "remains if only the sizes of the groups are known."
        )
        bias = _bias("base", "share of the uncertainty removed", "percent", estimate, sentence, bars)
    for bar in bias["bars"][: groups.n_compared]:
        bar["reference"] = bar["rows"] / len(explored)
    return bias | {"references_are": "the group's share of rows, as random guessing would give"}


def _means(groups: ShownGroups, numbers: Floats) -> list[Estimate]:
    return [mean(numbers[groups.members(group)]) for group in range(len(groups))]


def _clear_part(estimate: Estimate) -> str:
    return "no clear part" if estimate.low <= 0 else percent(estimate.number)


def _too_few(attribute: Protected) -> str:
    which = "Only one" if attribute.groups.compared else "No"
    return f"{which} group is large enough to be compared."
