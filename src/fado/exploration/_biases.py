"""The data's biases, named and sized: group sizes, prevalence, separability, base bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration import _intervals
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups
from fado.exploration._intervals import Estimate
from fado.exploration._material import Attribute, Material
from fado.exploration._wording import percent, plain_number, quoted

__all__ = ["biases"]

FloatArray = npt.NDArray[np.float64]

ONE_GROUP = "Only one group is large enough to be shown, so there is nothing to compare."
NO_AGREEMENT = "The values came without the models' agreement with the labels, which this needs."


def biases(material: Material, attribute: Attribute) -> list[dict[str, Any]]:
    """Size the four biases of one protected attribute.

    Returns
    -------
    list of dict
        Each with ``id``, ``name``, ``measure``, ``format``, ``number``, ``low`` and ``high`` (None if
        unknown), ``sentence``, and the bars of its picture.
    """
    return [
        _group_size(material, attribute),
        _prevalence(material, attribute),
        _separability(material, attribute),
        _base_bias(material, attribute),
    ]


def _group_size(material: Material, attribute: Attribute) -> dict[str, Any]:
    groups = _stretches(attribute) if attribute.is_continuous else attribute.groups
    sizes = groups.sizes
    shares = [_intervals.share(int(size), len(material)) for size in sizes]
    compared = [
        group for group, size in enumerate(sizes)
        if size >= FEWEST_MEMBERS and not (groups.has_pool and group == len(groups) - 1)
    ]  # fmt: skip
    estimate, sentence = None, ONE_GROUP
    if len(compared) > 1:
        most, least = max(compared, key=lambda g: sizes[g]), min(compared, key=lambda g: sizes[g])
        estimate = _intervals.count_ratio(int(sizes[most]), int(sizes[least]))
        names = groups.names if attribute.is_continuous else attribute.spoken
        where = quoted(names[most])
        if attribute.is_continuous:
            where = f"The stretch {where} of {attribute.name}"
        sentence = (
            f"{where} has {plain_number(estimate.number)} times as many rows as {quoted(names[least])}: "
            f"{percent(shares[most].number)} of all rows against {percent(shares[least].number)}."
        )
    name, measure = "Group size disparity", "largest over smallest"
    sized = _bias("group_size", name, measure, "times", estimate, sentence)
    return sized | _pictured(_bars(groups, shares), "share of rows", "percent")


def _stretches(attribute: Attribute) -> ShownGroups:
    """Cut a continuous attribute's range, without its outermost 2 % on either side, into four equal parts."""
    numbers = attribute.variable.labels
    low, high = np.nanquantile(numbers, [0.02, 0.98])
    edges = np.linspace(low, high, 5)
    codes = np.searchsorted(edges[1:-1], numbers)
    codes = np.where((numbers >= low) & (numbers <= high), codes, -1)
    names = tuple(f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges))
    return ShownGroups(codes, names)


@dataclass(frozen=True)
class _Outcome:
    """What groups may differ in: the rate of a label, or the mean of a number."""

    name: str
    rows: npt.NDArray[Any]
    per_group: list[Estimate]


def _outcomes(material: Material, groups: ShownGroups) -> list[_Outcome]:
    """List the rate of the positive label; without one, of every label; or a continuous target's mean."""
    target = material.target
    if target.kind == "continuous":
        means = [_intervals.mean(target.labels[groups.members(group)]) for group in range(len(groups))]
        return [_Outcome(f"mean of {material.target_name}", target.labels, means)]
    outcomes = []
    for code in range(len(target.classes)) if material.positive is None else [material.positive]:
        rows = target.labels == code
        events, sizes = groups.count(rows).tolist(), groups.sizes.tolist()
        rates = [_intervals.share(event, size) for event, size in zip(events, sizes, strict=True)]
        outcomes.append(_Outcome(f"rate of {quoted(str(target.classes[code]))}", rows, rates))
    return outcomes


def _prevalence(material: Material, attribute: Attribute) -> dict[str, Any]:
    outcomes = _outcomes(material, attribute.groups)
    form = "number" if material.target.kind == "continuous" else "percent"
    name = "Prevalence disparity"
    if attribute.is_continuous:
        known, z = attribute.variable.known, attribute.variable.labels
        found = [_intervals.rank_correlation(outcome.rows[known], z[known]) for outcome in outcomes]
        best = max(range(len(found)), key=lambda j: abs(found[j].number))
        outcome = outcomes[best]
        sentence = _dependence(found[best], attribute.name, f"the {outcome.name}")
        measure = f"rank correlation of {attribute.name} and {outcome.name}"
        sized = _bias("prevalence", name, measure, "number", found[best], sentence)
    else:
        gap = _intervals.difference if form == "number" else _intervals.share_gap
        widest = [_widest(outcome.per_group, gap) for outcome in outcomes]
        best = max(range(len(widest)), key=lambda j: widest[j].gap.number if widest[j].known else -1.0)
        outcome, gaping = outcomes[best], widest[best]
        sentence = ONE_GROUP
        if gaping.known:
            write = percent if form == "percent" else plain_number
            high, low = (outcome.per_group[group].number for group in (gaping.high, gaping.low))
            sentence = (
                f"The {outcome.name} is {write(high)} in {quoted(attribute.spoken[gaping.high])} and "
                f"{write(low)} in {quoted(attribute.spoken[gaping.low])}."
            )
        sized = _bias("prevalence", name, f"gap in the {outcome.name}", form, gaping.gap, sentence)
    return sized | _pictured(_bars(attribute.groups, outcome.per_group), outcome.name, form)


def _separability(material: Material, attribute: Attribute) -> dict[str, Any]:
    name, groups = "Separability disparity", attribute.groups
    agreement = material.agreement("y")
    if agreement is None:
        return _bias("separability", name, "", "number", None, NO_AGREEMENT) | _pictured([], "", "number")
    binary = material.target.kind == "classes" and len(material.target.classes) == 2
    if binary:
        is_one = material.target.labels == 1
        scores = np.where(is_one, agreement, 1.0 - agreement)
        estimates = [
            _intervals.auc(scores[rows], is_one[rows]) for rows in map(groups.members, range(len(groups)))
        ]
        what = f"AUC of {material.target_name}"
    else:
        estimates = [_intervals.mean(agreement[groups.members(g)]) for g in range(len(groups))]
        what = f"agreement on {material.target_name}"
    bars = _pictured(_bars(groups, estimates), what, "number")
    if attribute.is_continuous:
        known = attribute.variable.known
        estimate = _intervals.rank_correlation(agreement[known], attribute.variable.labels[known])
        sentence = _dependence(estimate, attribute.name, f"the models' agreement on {material.target_name}")
        measure = f"rank correlation of {attribute.name} and agreement on {material.target_name}"
        return _bias("separability", name, measure, "number", estimate, sentence) | bars
    widest = _widest(estimates, _intervals.difference)
    if not widest.known:
        return _bias("separability", name, f"gap in the {what}", "number", None, ONE_GROUP) | bars
    sentence = (
        f"Models tell {material.target_name} best in {quoted(attribute.spoken[widest.high])} "
        f"({what} {estimates[widest.high].number:.3f}) and worst in {quoted(attribute.spoken[widest.low])} "
        f"({estimates[widest.low].number:.3f})."
    )
    return _bias("separability", name, f"gap in the {what}", "number", widest.gap, sentence) | bars


def _base_bias(material: Material, attribute: Attribute) -> dict[str, Any]:
    name, z, groups = "Base bias", attribute.variable, attribute.groups
    agreement, provenance = material.agreement(z.name), material.valuation.provenance
    largest_error = (provenance.largest_error or {}).get(z.name)
    if agreement is None or (attribute.is_continuous and largest_error is None):
        return _bias("base", name, "", "number", None, NO_AGREEMENT) | _pictured([], "", "number")
    seen = (
        "the features" if provenance.settings.get("z_sees_target") is False else "the features and the target"
    )
    bars = _bars(groups, [_intervals.mean(agreement[groups.members(group)]) for group in range(len(groups))])
    if attribute.is_continuous and largest_error is not None:
        known = z.known
        errors = (1.0 - agreement[known]) * largest_error
        estimate = _intervals.skill(errors, np.abs(z.labels[known] - z.labels[known].mean()))
        sentence = (
            f"From {seen}, models remove {percent(max(estimate.number, 0.0))} of the error that guessing the "
            f"mean of {z.name} makes."
        )
        sized = _bias("base", name, "share of the mean's error removed", "percent", estimate, sentence)
        return sized | _pictured(bars, f"agreement on {z.name}", "number")
    if len(z.classes) == 2:
        estimate = _intervals.auc(np.where(z.labels == 1, agreement, 1.0 - agreement), z.labels == 1)
        sentence = (
            f"{quoted(z.name)} is {_how_well(estimate.number)} told from {seen}: an AUC of "
            f"{estimate.number:.3f}, where 0.5 is a coin."
        )
        sized = _bias("base", name, f"AUC of {z.name}", "number", estimate, sentence)
    else:
        shares = np.bincount(z.labels, minlength=len(z.classes)) / len(z.labels)
        estimate = _intervals.skill(1.0 - agreement, 1.0 - shares[z.labels])
        sentence = (
            f"From {seen}, models remove {percent(max(estimate.number, 0.0))} of the doubt about {z.name} "
            "that knowing the groups' sizes leaves."
        )
        sized = _bias("base", name, "share of the doubt removed", "percent", estimate, sentence)
    for bar in bars[: len(bars) - groups.has_pool]:
        bar["reference"] = bar["rows"] / len(material)
    return (
        sized
        | _pictured(bars, "probability that models give to a row's own group", "percent")
        | {"references_are": "the group's share of rows, which a blind guess would give"}
    )


def _bias(
    which: str, name: str, measure: str, form: str, estimate: Estimate | None, sentence: str
) -> dict[str, Any]:
    known = estimate is not None and np.isfinite(estimate.number)
    number, low, high = estimate if estimate is not None and known else (None, None, None)
    return {
        "id": which, "name": name, "measure": measure, "format": form,
        "number": number, "low": low, "high": high, "sentence": sentence,
    }  # fmt: skip


def _bars(groups: ShownGroups, estimates: Sequence[Estimate]) -> list[dict[str, Any]]:
    return [
        {"group": name, "rows": int(size), "number": e.number, "low": e.low, "high": e.high}
        for name, size, e in zip(groups.names, groups.sizes, estimates, strict=True)
        if size >= FEWEST_MEMBERS
    ]


def _pictured(bars: list[dict[str, Any]], what: str, form: str) -> dict[str, Any]:
    return {"bars": bars, "bars_are": what, "bars_format": form}


@dataclass(frozen=True)
class _Widest:
    """The gap between the highest and the lowest of several estimates, and which groups these are."""

    gap: Estimate
    high: int = -1
    low: int = -1

    @property
    def known(self) -> bool:
        """Whether there were two to compare."""
        return self.high >= 0


def _widest(estimates: Sequence[Estimate], gap: Callable[[Estimate, Estimate], Estimate]) -> _Widest:
    known = [j for j, estimate in enumerate(estimates) if np.isfinite(estimate.number)]
    if len(known) < 2:
        return _Widest(Estimate(np.nan, np.nan, np.nan))
    high = max(known, key=lambda j: estimates[j].number)
    low = min(known, key=lambda j: estimates[j].number)
    return _Widest(gap(estimates[high], estimates[low]), high, low)


def _dependence(estimate: Estimate, first: str, second: str) -> str:
    if estimate.low <= 0 <= estimate.high:
        return f"{second[0].upper()}{second[1:]} does not clearly rise or fall with {first}."
    direction = "rises" if estimate.number > 0 else "falls"
    return (
        f"{second[0].upper()}{second[1:]} {direction} with {first} (rank correlation {estimate.number:.3f})."
    )


def _how_well(area: float) -> str:
    for limit, words in ((0.55, "hardly"), (0.7, "to some extent"), (0.85, "well")):
        if area < limit:
            return words
    return "very well"
