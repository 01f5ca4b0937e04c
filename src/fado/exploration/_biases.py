"""The data's biases, named and sized: group sizes, prevalence, separability, base bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration import _intervals
from fado.exploration._certainty import error_removed
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups
from fado.exploration._intervals import Estimate, Gap, widest_gap
from fado.exploration._material import Attribute, Material
from fado.exploration._trend import trend_of
from fado.exploration._wording import percent, plain_number, quoted
from fado.tabular import MISSING

__all__ = ["biases"]

FloatArray = npt.NDArray[np.float64]

ONE_GROUP = "Only one group is large enough to be compared, so there is nothing to compare it with."
NO_GROUP = "No group is large enough to be compared."
NO_AGREEMENT = "The values came without the models' agreement with the labels, which this needs."


def biases(material: Material, attribute: Attribute) -> list[dict[str, Any]]:
    """Size the four biases of one protected attribute.

    Returns
    -------
    list of dict
        Each with ``id``, ``name``, ``measure``, ``format``, ``number``, ``low`` and ``high`` (None if
        unknown), ``sentence``, and the bars of its picture; along a continuous attribute with a course that
        turns, also ``turning``, the widest gap between its quarters, in the same form.
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
    compared = [group for group in groups.compared if sizes[group] >= FEWEST_MEMBERS]
    estimate, sentence = None, _too_few(attribute)
    if len(compared) > 1:
        most, *_, least = sorted(compared, key=lambda group: -sizes[group])
        estimate = _intervals.count_ratio(int(sizes[most]), int(sizes[least]))
        names = tuple(map(quoted, groups.names)) if attribute.is_continuous else attribute.spoken
        where = names[most]
        if attribute.is_continuous:
            where = f"The stretch {where} of {attribute.name}"
        times = plain_number(estimate.number)
        alike = times == "1" or estimate.holds(1.0)
        sentence = (
            f"{where} has {'about as' if alike else f'{times} times as'} many rows as {names[least]}: "
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


def _prevalence(material: Material, attribute: Attribute) -> dict[str, Any]:
    groups, found = attribute.groups, _outcomes(material, attribute.groups)
    name = "Prevalence disparity"
    parts = _quarters(attribute) if attribute.is_continuous else groups.compared
    widest = [widest_gap(outcome.per_group, parts, outcome.gap, len(found)) for outcome in found]
    best = max(range(len(found)), key=lambda j: widest[j].gap.number if widest[j].known else -1.0)
    outcome, gaping = found[best], widest[best]
    if attribute.is_continuous:
        along = _Along(attribute, outcome.name, outcome.rows, [outcome.per_group[part] for part in parts])
        sized = along.sized("prevalence", name, outcome.gap, outcome.write, outcome.format)
    else:
        sentence = _too_few(attribute) if not gaping.known else _no_difference(outcome.name)
        if gaping.is_clear:
            high, low = (outcome.per_group[group].number for group in (gaping.high, gaping.low))
            sentence = (
                f"The {outcome.name} is {outcome.write(high)} in {attribute.spoken[gaping.high]} and "
                f"{outcome.write(low)} in {attribute.spoken[gaping.low]}."
            )
            if material.target.kind == "classes" and material.positive is None:
                sentence += f" Of the {len(found)} labels it differs most."
        measure = f"gap in the {outcome.name}"
        sized = _bias("prevalence", name, measure, outcome.format, gaping.gap, sentence)
    return (
        sized
        | _pictured(_bars(groups, outcome.per_group), outcome.name, outcome.format)
        | {
            "labels": _label_shares(material, groups),
            "labels_per": [groups.names[group] for group in groups.compared],
        }
    )


@dataclass(frozen=True)
class _Outcome:
    """One thing that groups may differ in: per row, and its estimate per shown group."""

    name: str
    rows: npt.NDArray[Any]
    per_group: list[Estimate]
    is_share: bool

    @property
    def format(self) -> str:
        """How the page writes it."""
        return "percent" if self.is_share else "number"

    def write(self, number: float) -> str:
        """Write it in a sentence."""
        return percent(number) if self.is_share else plain_number(number)

    def gap(self, first: Estimate, second: Estimate) -> Estimate:
        """Estimate the difference of two groups."""
        return (_intervals.share_gap if self.is_share else _intervals.difference)(first, second)


def _outcomes(material: Material, groups: ShownGroups) -> list[_Outcome]:
    """List the rate of the positive label; without one, the share of every label; or a number's mean."""
    target = material.target
    if target.kind == "continuous":
        means = [_intervals.mean(target.labels[groups.members(group)]) for group in range(len(groups))]
        return [_Outcome(f"mean of {material.target_name}", target.labels, means, is_share=False)]
    found = []
    for code in range(len(target.classes)) if material.positive is None else [material.positive]:
        rows = target.labels == code
        events, sizes = groups.count(rows).tolist(), groups.sizes.tolist()
        rates = [_intervals.share(event, size) for event, size in zip(events, sizes, strict=True)]
        label = quoted(material.speak_label(code))
        name = f"share of {label}" if material.positive is None else f"rate of {label}"
        found.append(_Outcome(name, rows, rates, is_share=True))
    return found


def _label_shares(material: Material, groups: ShownGroups) -> list[dict[str, Any]] | None:
    """Give every label's share in all rows and in each compared group; None where one rate says all."""
    if material.target.kind == "continuous" or material.positive is not None:
        return None
    return [
        {
            "label": str(label),
            "share": float(outcome.rows.mean()),
            "groups": [outcome.per_group[group].number for group in groups.compared],
        }
        for label, outcome in zip(material.target.classes, _outcomes(material, groups), strict=True)
    ]


def _separability(material: Material, attribute: Attribute) -> dict[str, Any]:
    name, groups = "Separability disparity", attribute.groups
    agreement = material.agreement("y")
    if agreement is None:
        return _bias("separability", name, "", "number", None, NO_AGREEMENT) | _pictured([], "", "number")
    binary = material.target.kind == "classes" and len(material.target.classes) == 2
    by_area = binary and not attribute.is_continuous
    if by_area:
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
    if not by_area:
        bars["bars_are"] = f"{what}: {_agreement_is(material)}"
    if attribute.is_continuous:
        over = [estimates[part] for part in _quarters(attribute)]
        along = _Along(attribute, f"models' agreement on {material.target_name}", agreement, over)
        return along.sized("separability", name, _intervals.difference, _three_digits, "number") | bars
    widest = widest_gap(estimates, groups.compared, _intervals.difference)
    if not widest.known:
        return _bias("separability", name, f"gap in the {what}", "number", None, _too_few(attribute)) | bars
    sentence = _no_difference(what)
    if widest.is_clear:
        sentence = (
            f"Models tell {material.target_name} best in {attribute.spoken[widest.high]} "
            f"({what} {estimates[widest.high].number:.3f}) and worst in {attribute.spoken[widest.low]} "
            f"({estimates[widest.low].number:.3f})."
        )
    return _bias("separability", name, f"gap in the {what}", "number", widest.gap, sentence) | bars


def _agreement_is(material: Material) -> str:
    """Say what agreement with the target is."""
    if material.target.kind == "classes":
        return "mean probability that models give to a row's own label"
    return "1 is no error, 0 the largest of all"


def _base_bias(material: Material, attribute: Attribute) -> dict[str, Any]:
    name, z, groups = "Base bias", attribute.variable, attribute.groups
    agreement, provenance = material.agreement(z.name), material.valuation.provenance
    removed = error_removed(material, z) if attribute.is_continuous else None
    if agreement is None or (attribute.is_continuous and removed is None):
        return _bias("base", name, "", "number", None, NO_AGREEMENT) | _pictured([], "", "number")
    seen = (
        "the features" if provenance.settings.get("z_sees_target") is False else "the features and the target"
    )
    bars = _bars(groups, [_intervals.mean(agreement[groups.members(group)]) for group in range(len(groups))])
    if removed is not None:
        some = "no clear part" if removed.low <= 0 else percent(removed.number)
        sentence = f"From {seen}, models remove {some} of the error that guessing the mean of {z.name} makes."
        sized = _bias("base", name, "share of the mean's error removed", "percent", removed, sentence)
        return sized | _pictured(bars, f"agreement on {z.name}", "number")
    if len(groups.rated) < 2:
        sized = _bias("base", name, "", "number", None, _too_few(attribute))
    elif len(z.classes) == 2:
        estimate = _intervals.auc(np.where(z.labels == 1, agreement, 1.0 - agreement), z.labels == 1)
        how_well = "not clearly" if estimate.holds(0.5) else _how_well(estimate.number)
        sentence = (
            f"{quoted(z.name)} is {how_well} predicted from {seen}: an AUC of {estimate.number:.3f} (0.5 is "
            "chance)."
        )
        sized = _bias("base", name, f"AUC of {z.name}", "number", estimate, sentence)
    else:
        rows = groups.rated_rows
        shares = np.bincount(z.labels, minlength=len(z.classes)) / len(z.labels)
        estimate = _intervals.skill(1.0 - agreement[rows], 1.0 - shares[z.labels[rows]])
        some = "no clear part" if estimate.low <= 0 else percent(estimate.number)
        sentence = (
            f"From {seen}, models remove {some} of the doubt about {z.name} that knowing the groups' sizes "
            "leaves."
        )
        sized = _bias("base", name, "share of the doubt removed", "percent", estimate, sentence)
    for bar, group in zip(bars, groups.rated, strict=True):
        if group != groups.others:
            bar["reference"] = bar["rows"] / len(material)
    return (
        sized
        | _pictured(bars, "probability that models give to a row's own group", "percent")
        | {"references_are": "the group's share of rows, which a blind guess would give"}
    )


def _too_few(attribute: Attribute) -> str:
    return ONE_GROUP if attribute.groups.compared else NO_GROUP


def _no_difference(what: str) -> str:
    return f"No clear difference in the {what} was found between groups: the interval of the gap holds 0."


def _quarters(attribute: Attribute) -> list[int]:
    """List the groups that are stretches of a continuous attribute, in their order."""
    groups = attribute.groups
    return [group for group in groups.compared if groups.names[group] != MISSING]


@dataclass(frozen=True)
class _Along:
    """Something along a continuous attribute: what it is, per row, and per quarter."""

    attribute: Attribute
    what: str
    rows: npt.NDArray[Any]
    quarters: list[Estimate]

    def sized(
        self, which: str, name: str, gap: Gap, write: Callable[[float], str], form: str
    ) -> dict[str, Any]:
        """Size the bias by the rank correlation, and by the widest gap too if the course turns."""
        known, z = self.attribute.variable.known, self.attribute.variable.labels
        correlation = _intervals.rank_correlation(self.rows[known], z[known])
        subject, along = f"{self.what[0].upper()}{self.what[1:]}", self.attribute.name
        if not self.what.startswith("models'"):
            subject = f"The {self.what}"
        measure = f"rank correlation of {along} and {self.what}"
        if len(self.quarters) < 2:
            sentence = f"There are too few rows to follow the {self.what} along {along}."
            return _bias(which, name, measure, "number", correlation, sentence)
        trend = trend_of(correlation, self.quarters, gap)
        named = [self.attribute.spoken[part] for part in _quarters(self.attribute)]
        high, low = (f"{write(self.quarters[end].number)} in {named[end]}" for end in (trend.high, trend.low))
        if trend.course:
            widest = gap(self.quarters[trend.high], self.quarters[trend.low])
            sentence = (
                f"{subject} {trend.course} along {along}: highest with {high}, lowest with {low} (rank "
                f"correlation {correlation.number:.3f}, which misses a course that turns)."
            )
            turning = {
                "measure": f"gap in the {self.what} between quarters of {along}",
                "format": form,
                "number": widest.number, "low": widest.low, "high": widest.high,
            }  # fmt: skip
            return _bias(which, name, measure, "number", correlation, sentence) | {"turning": turning}
        if not trend.direction:
            sentence = f"{subject} does not clearly rise or fall with {along}."
        else:
            word = "rises" if trend.direction > 0 else "falls"
            first, last = (low, high) if trend.direction > 0 else (high, low)
            steady = "" if trend.every_step else ", though not from every quarter to the next"
            sentence = (
                f"{subject} {word} with {along}{steady}: from {first} to {last} "
                f"(rank correlation {correlation.number:.3f})."
            )
        return _bias(which, name, measure, "number", correlation, sentence)


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
        for group, (name, size, e) in enumerate(zip(groups.names, groups.sizes, estimates, strict=True))
        if size >= FEWEST_MEMBERS and group != groups.small
    ]


def _pictured(bars: list[dict[str, Any]], what: str, form: str) -> dict[str, Any]:
    return {"bars": bars, "bars_are": what, "bars_format": form}


def _three_digits(number: float) -> str:
    return f"{number:.3f}"


def _how_well(area: float) -> str:
    for limit, words in ((0.55, "hardly"), (0.7, "to some extent"), (0.85, "well")):
        if area < limit:
            return words
    return "very well"
