"""The biases of the data with 95 % intervals: group size, prevalence, separability, base bias."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import combinations, groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

from fado._typing import Bools, Floats
from fado.exploration._explored import (
    FEWEST_MEMBERS,
    ExploredRows,
    Protected,
    ShownGroups,
    percent,
    plain_number,
    quoted,
)
from fado.tabular import Variable

Z = 1.959963984540054  # the normal distribution's 97.5 % quantile
ONE_GROUP = "Only one group is large enough to be compared."
NO_GROUP = "No group is large enough to be compared."
NO_AGREEMENT = "This needs the models' agreement with the labels, which the values do not contain."
_NAMES = {
    "group_size": "Group size disparity",
    "prevalence": "Prevalence disparity",
    "separability": "Separability disparity",
    "base": "Base bias",
}


class Estimate(NamedTuple):
    """A number and the ends of its 95 % interval."""

    number: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The standard error that the interval implies."""
        return (self.high - self.low) / (2 * Z)

    def holds(self, number: float) -> bool:
        """Say whether a number is in the interval, or whether that is unknown."""
        return not (self.low > number or self.high < number)

    def widened(self, times: int) -> Estimate:
        """Widen the interval so that this number of intervals hold together at 95 % (Bonferroni).

        Examples
        --------
        >>> tuple(round(part, 3) for part in Estimate(0.0, -1.96, 1.96).widened(3))
        (0.0, -2.394, 2.394)
        """
        wider = float(ndtri(1 - 0.025 / max(times, 1))) / Z
        below, above = self.number - self.low, self.high - self.number
        return Estimate(self.number, self.number - wider * below, self.number + wider * above)


UNKNOWN = Estimate(math.nan, math.nan, math.nan)
Gap = Callable[[Estimate, Estimate], Estimate]


def share(events: int, members: int) -> Estimate:
    """Estimate a share, with Wilson's interval.

    Examples
    --------
    >>> tuple(round(part, 4) for part in share(1, 10))
    (0.1, 0.0179, 0.4042)
    """
    if not members:
        return UNKNOWN
    p, weight = events / members, Z * Z / members
    centre, half = p + weight / 2, Z * math.sqrt(p * (1 - p) / members + weight / members / 4)
    return Estimate(p, max(0.0, (centre - half) / (1 + weight)), min(1.0, (centre + half) / (1 + weight)))


def share_gap(first: Estimate, second: Estimate) -> Estimate:
    """Estimate the difference of two shares, with Newcombe's interval."""
    gap = first.number - second.number
    low = math.hypot(first.number - first.low, second.high - second.number)
    high = math.hypot(first.high - first.number, second.number - second.low)
    return Estimate(gap, gap - low, gap + high)


def count_ratio(first: int, second: int) -> Estimate:
    """Estimate how many times larger one count of independent rows is than another."""
    ratio, factor = first / second, math.exp(Z * math.sqrt(1 / first + 1 / second))
    return Estimate(ratio, ratio / factor, ratio * factor)


def mean(numbers: Floats) -> Estimate:
    """Estimate a mean, with the normal interval."""
    centre = float(numbers.mean()) if len(numbers) else math.nan
    if len(numbers) < 2:
        return Estimate(centre, math.nan, math.nan)
    return _normal(centre, float(numbers.std(ddof=1)) / math.sqrt(len(numbers)))


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Estimate the difference of two independent estimates."""
    return _normal(first.number - second.number, math.hypot(first.spread, second.spread))


def auc(scores: Floats, positive: Bools) -> Estimate:
    """Estimate how often a positive row scores above a negative one, with DeLong's interval.

    Examples
    --------
    >>> import numpy as np
    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])).number
    0.75
    """
    m, n = int(positive.sum()), int((~positive).sum())
    if m < 2 or n < 2:
        return UNKNOWN
    overall = rankdata(scores)
    above = (overall[positive] - rankdata(scores[positive])) / n  # negatives below each positive
    below = 1.0 - (overall[~positive] - rankdata(scores[~positive])) / m  # positives above each negative
    area = _normal(float(above.mean()), math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))
    return Estimate(area.number, max(0.0, area.low), min(1.0, area.high))


def skill(errors: Floats, baseline: Floats) -> Estimate:
    """Estimate which share of a baseline's mean error is removed."""
    left = float(errors.mean() / baseline.mean())
    spread = float((errors - left * baseline).std(ddof=1)) / math.sqrt(len(errors)) / float(baseline.mean())
    return _normal(1 - left, spread)


def rank_correlation(first: npt.NDArray[np.generic], second: npt.NDArray[np.generic]) -> Estimate:
    """Estimate Spearman's correlation, with Bonett and Wright's interval."""
    a, b = rankdata(first), rankdata(second)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    if not scale or len(a) < 4:
        return UNKNOWN
    rho = float(a @ b) / scale
    reach = Z * math.sqrt((1 + rho * rho / 2) / (len(a) - 3))
    centre = math.atanh(min(max(rho, -1 + 1e-15), 1 - 1e-15))
    return Estimate(rho, math.tanh(centre - reach), math.tanh(centre + reach))


def _normal(centre: float, spread: float) -> Estimate:
    return Estimate(centre, centre - Z * spread, centre + Z * spread)


class WidestGap(NamedTuple):
    """The gap between the highest and the lowest of several estimates, and which groups these are."""

    gap: Estimate
    high: int = -1
    low: int = -1

    @property
    def known(self) -> bool:
        """Whether there were two to compare."""
        return self.high >= 0

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0, so that one of the two is clearly higher."""
        return self.known and not self.gap.holds(0.0)

    def told(self, estimates: Sequence[Estimate], names: Sequence[str], write: Callable[[float], str]) -> str:
        """Write the highest and the lowest, with the names of their groups."""
        ends = (f"{write(estimates[group].number)} in {names[group]}" for group in (self.high, self.low))
        return " and ".join(ends)


def widest_gap(estimates: Sequence[Estimate], compared: Sequence[int], gap: Gap, among: int = 1) -> WidestGap:
    """Find the widest gap between groups; its interval holds for all pairs together.

    Examples
    --------
    >>> found = widest_gap([share(10, 100), share(40, 100), share(20, 100)], [0, 1, 2], share_gap)
    >>> found.high, found.low, found.is_clear, [round(part, 3) for part in found.gap]
    (1, 0, True, [0.3, 0.157, 0.432])
    """
    known = [j for j in compared if np.isfinite(estimates[j].number)]
    if len(known) < 2:
        return WidestGap(UNKNOWN)
    high = max(known, key=lambda j: estimates[j].number)
    low = min(known, key=lambda j: estimates[j].number)
    pairs = among * len(known) * (len(known) - 1) // 2
    return WidestGap(gap(estimates[high], estimates[low]).widened(pairs), high, low)


def trend_of(correlation: Estimate, quarters: Sequence[Estimate], gap: Gap) -> tuple[int, str]:
    """Describe the trend by the rank correlation over rows and by the estimates of the quarters in order.

    It rises (1) if the rank correlation is clearly above 0 and no later quarter is clearly below an earlier
    one; it falls (-1) likewise. Clearly means that the 95 % interval of the difference excludes 0, corrected
    for the number of pairs of quarters (Bonferroni). Otherwise (0) the text describes the trend; it is "" if
    no quarter differs clearly.

    Examples
    --------
    >>> def quarters(*numbers):
    ...     return [Estimate(number, number - 0.01, number + 0.01) for number in numbers]
    >>> trend_of(Estimate(0.3, 0.2, 0.4), quarters(0.1, 0.2, 0.3, 0.4), difference)
    (1, '')
    >>> trend_of(Estimate(0.3, 0.2, 0.4), quarters(0.4, 0.1, 0.2, 0.6), difference)
    (0, 'falls, then rises')
    """
    pairs = list(combinations(quarters, 2))
    gaps = [gap(later, earlier).widened(len(pairs)) for earlier, later in pairs]
    rises, falls = any(one.low > 0 for one in gaps), any(one.high < 0 for one in gaps)
    if correlation.low > 0 and not falls:
        return 1, ""
    if correlation.high < 0 and not rises:
        return -1, ""
    if not (rises or falls):
        return 0, ""
    words = [
        word for word, _ in groupby("rises" if step > 0 else "falls" for step in _steps(quarters) if step)
    ]
    return 0, ", then ".join(words) if len(words) == 2 else "rises and falls"


def _steps(quarters: Sequence[Estimate]) -> list[int]:
    """Give the sign of each step from a quarter to the next."""
    return [int(np.sign(after.number - before.number)) for before, after in pairwise(quarters)]


def biases(explored: ExploredRows, attribute: Protected) -> list[dict[str, Any]]:
    """Estimate the four biases of one protected attribute.

    Each is a dict with ``id``, ``name``, ``measure``, ``format``, ``number``, ``low`` and ``high`` (None if
    unknown), ``sentence`` and the bars of its chart; for a continuous attribute whose trend changes direction
    also ``turning``, the widest gap between its quarters, in the same form.
    """
    return [
        _group_size(explored, attribute),
        _prevalence(explored, attribute),
        _separability(explored, attribute),
        _base_bias(explored, attribute),
    ]


def error_removed(explored: ExploredRows, variable: Variable) -> Estimate | None:
    """Estimate which share of the error of guessing the mean models remove; None if unknown."""
    agreement = explored.agreement(variable.name)
    largest_error = (explored.valuation.provenance.largest_error or {}).get(variable.name)
    if agreement is None or largest_error is None:
        return None
    known = variable.known
    errors = (1.0 - agreement[known]) * largest_error
    return skill(errors, np.abs(variable.labels[known] - variable.labels[known].mean()))


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
    sized = _bias("group_size", "largest over smallest", "times", estimate, sentence)
    return sized | _pictured(groups, shares, "share of rows", "percent")


def _stretches(attribute: Protected) -> ShownGroups:
    """Cut the range of a continuous attribute, without its outer 2 % on each side, into four equal parts."""
    numbers = attribute.variable.labels
    low, high = np.nanquantile(numbers, [0.02, 0.98])
    edges = np.linspace(low, high, 5)
    codes = np.searchsorted(edges[1:-1], numbers)
    codes = np.where((numbers >= low) & (numbers <= high), codes, -1)
    bounds = [plain_number(edge, 4) for edge in edges.tolist()]
    return ShownGroups(codes, tuple(f"{low} to {high}" for low, high in pairwise(bounds)))


def _prevalence(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    groups, found = attribute.groups, _outcomes(explored, attribute.groups)
    is_number = explored.target.kind == "continuous"
    gap, write, form = (difference, plain_number, "number") if is_number else (share_gap, percent, "percent")
    parts = groups.compared
    widest = [widest_gap(estimates, parts, gap, len(found)) for _, _, estimates in found]
    best = max(range(len(found)), key=lambda j: widest[j].gap.number if widest[j].known else -1.0)
    (what, rows, estimates), gaping = found[best], widest[best]
    if attribute.is_continuous:
        sized = _along(attribute, "prevalence", what, rows, estimates, gap, write, form)
    else:
        sentence = _too_few(attribute) if not gaping.known else _no_difference(what)
        if gaping.is_clear:
            sentence = f"The {what} is {gaping.told(estimates, attribute.spoken, write)}."
            if not is_number and explored.positive is None:
                sentence += f" Of the {len(found)} labels, this one differs most."
        sized = _bias("prevalence", f"gap in the {what}", form, gaping.gap, sentence)
    labels = None
    if not is_number and explored.positive is None:
        labels = [
            {
                "label": str(label),
                "share": float(rows.mean()),
                "groups": [estimates[group].number for group in groups.compared],
            }
            for label, (_, rows, estimates) in zip(explored.target.classes, found, strict=True)
        ]
    return (
        sized
        | _pictured(groups, found[best][2], what, form)
        | {"labels": labels, "labels_per": [groups.names[group] for group in groups.compared]}
    )


def _outcomes(
    explored: ExploredRows, groups: ShownGroups
) -> list[tuple[str, npt.NDArray[Any], list[Estimate]]]:
    """List the rate of the positive label, or the share of every label without one, or the mean."""
    target = explored.target
    if target.kind == "continuous":
        return [(f"mean of {explored.target_name}", target.labels, _means(groups, target.labels))]
    found = []
    for code in range(len(target.classes)) if explored.positive is None else [explored.positive]:
        rows = target.labels == code
        rates = list(map(share, groups.count(rows).tolist(), groups.sizes.tolist()))
        kind = "share" if explored.positive is None else "rate"
        found.append((f"{kind} of {quoted(explored.speak_label(code))}", rows, rates))
    return found


def _separability(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    target, groups, agreement = explored.target_name, attribute.groups, explored.agreement("y")
    if agreement is None:
        return _bias("separability", "", "number", None, NO_AGREEMENT) | _pictured()
    if explored.is_binary and not attribute.is_continuous:
        is_one = explored.target.labels == 1
        scores = np.where(is_one, agreement, 1.0 - agreement)
        estimates = [auc(scores[rows], is_one[rows]) for rows in map(groups.members, range(len(groups)))]
        what = bars_are = f"AUC of {target}"
    else:
        estimates, what = _means(groups, agreement), f"agreement on {target}"
        is_class = explored.target.kind == "classes"
        meaning = "mean probability that models give to a row's own label"
        bars_are = f"{what}: {meaning if is_class else '1 is no error, 0 the largest error'}"
    bars = _pictured(groups, estimates, bars_are, "number")
    if attribute.is_continuous:
        what, write = f"models' agreement on {target}", "{:.3f}".format
        sized = _along(attribute, "separability", what, agreement, estimates, difference, write, "number")
        return sized | bars
    widest = widest_gap(estimates, groups.compared, difference)
    sentence = _no_difference(what) if widest.known else _too_few(attribute)
    if widest.is_clear:
        sentence = (
            f"Models predict {target} best in {attribute.spoken[widest.high]} "
            f"({what} {estimates[widest.high].number:.3f}) and worst in {attribute.spoken[widest.low]} "
            f"({estimates[widest.low].number:.3f})."
        )
    return _bias("separability", f"gap in the {what}", "number", widest.gap, sentence) | bars


def _base_bias(explored: ExploredRows, attribute: Protected) -> dict[str, Any]:
    z, groups, agreement = attribute.variable, attribute.groups, explored.agreement(attribute.name)
    removed = error_removed(explored, z) if attribute.is_continuous else None
    if agreement is None or (attribute.is_continuous and removed is None):
        return _bias("base", "", "number", None, NO_AGREEMENT) | _pictured()
    sees_target = explored.valuation.provenance.settings.get("z_sees_target") is not False
    seen = f"the features{' and the target' if sees_target else ''}"
    means = _means(groups, agreement)
    if removed is not None:
        part = _clear_part(removed)
        sentence = f"Models that see {seen} remove {part} of the error of guessing the mean of {z.name}."
        sized = _bias("base", "share of the mean's error removed", "percent", removed, sentence)
        return sized | _pictured(groups, means, f"agreement on {z.name}", "number")
    if len(groups.rated) < 2:
        sized = _bias("base", "", "number", None, _too_few(attribute))
    elif len(z.classes) == 2:
        estimate = auc(np.where(z.labels == 1, agreement, 1.0 - agreement), z.labels == 1)
        how_well = "not clearly" if estimate.holds(0.5) else _how_well(estimate.number)
        sentence = (
            f"{quoted(z.name)} is {how_well} predicted from {seen}: an AUC of {estimate.number:.3f} (0.5 is "
            "chance)."
        )
        sized = _bias("base", f"AUC of {z.name}", "number", estimate, sentence)
    else:
        rows = groups.rated_rows
        shares = np.bincount(z.labels, minlength=len(z.classes)) / len(z.labels)
        estimate = skill(1.0 - agreement[rows], 1.0 - shares[z.labels[rows]])
        sentence = (
            f"Models that see {seen} remove {_clear_part(estimate)} of the uncertainty about {z.name} that "
            "remains if only the sizes of the groups are known."
        )
        sized = _bias("base", "share of the uncertainty removed", "percent", estimate, sentence)
    pictured = _pictured(groups, means, "probability that models give to a row's own group", "percent")
    for bar, group in zip(pictured["bars"], groups.rated, strict=True):
        if group != groups.others:
            bar["reference"] = bar["rows"] / len(explored)
    references = "the group's share of rows, as random guessing would give"
    return sized | pictured | {"references_are": references}


def _means(groups: ShownGroups, numbers: Floats) -> list[Estimate]:
    return [mean(numbers[groups.members(group)]) for group in range(len(groups))]


def _clear_part(estimate: Estimate) -> str:
    return "no clear part" if estimate.low <= 0 else percent(estimate.number)


def _how_well(area: float) -> str:
    return ("hardly", "to some extent", "well", "very well")[bisect_right((0.55, 0.7, 0.85), area)]


def _too_few(attribute: Protected) -> str:
    return ONE_GROUP if attribute.groups.compared else NO_GROUP


def _no_difference(what: str) -> str:
    return f"No clear difference in the {what} was found between groups: the interval of the gap contains 0."


def _along(
    attribute: Protected,
    which: str,
    what: str,
    rows: npt.NDArray[Any],
    estimates: Sequence[Estimate],
    gap: Gap,
    write: Callable[[float], str],
    form: str,
) -> dict[str, Any]:
    """Estimate a bias by the rank correlation; if the trend turns, also by the widest gap of quarters."""
    parts, along, known = attribute.groups.compared, attribute.name, attribute.variable.known
    correlation = rank_correlation(rows[known], attribute.variable.labels[known])
    measure = f"rank correlation of {along} and {what}"
    if len(parts) < 2:
        sentence = f"There are too few rows to show how the {what} changes with {along}."
        return _bias(which, measure, "number", correlation, sentence)
    quarters = [estimates[part] for part in parts]
    numbers = [quarter.number for quarter in quarters]
    ends = int(np.argmax(numbers)), int(np.argmin(numbers))
    high, low = (f"{write(numbers[end])} in {attribute.spoken[parts[end]]}" for end in ends)
    subject = f"M{what[1:]}" if what.startswith("models'") else f"The {what}"
    direction, course = trend_of(correlation, quarters, gap)
    if course:
        sentence = (
            f"{subject} {course} as {along} increases: highest with {high}, lowest with {low} (rank "
            f"correlation {correlation.number:.3f}, which does not show such a change of direction)."
        )
        widest = gap(quarters[ends[0]], quarters[ends[1]])
        named = {"measure": f"gap in the {what} between quarters of {along}", "format": form}
        return _bias(which, measure, "number", correlation, sentence) | {"turning": named | widest._asdict()}
    sentence = f"{subject} does not clearly rise or fall with {along}."
    if direction:
        word, first, last = ("rises", low, high) if direction > 0 else ("falls", high, low)
        is_steady = all(step == direction for step in _steps(quarters))
        steady = "" if is_steady else ", though not from every quarter to the next"
        sentence = (
            f"{subject} {word} with {along}{steady}: from {first} to {last} "
            f"(rank correlation {correlation.number:.3f})."
        )
    return _bias(which, measure, "number", correlation, sentence)


def _bias(which: str, measure: str, form: str, estimate: Estimate | None, sentence: str) -> dict[str, Any]:
    known = estimate is not None and np.isfinite(estimate.number)
    number, low, high = estimate if estimate is not None and known else (None, None, None)
    return {
        "id": which, "name": _NAMES[which], "measure": measure, "format": form,
        "number": number, "low": low, "high": high, "sentence": sentence,
    }  # fmt: skip


def _pictured(
    groups: ShownGroups | None = None,
    estimates: Sequence[Estimate] = (),
    what: str = "",
    form: str = "number",
) -> dict[str, Any]:
    """Give a bar per group that has enough rows for a rate."""
    bars = []
    if groups is not None:
        sizes = groups.sizes.tolist()
        bars = [
            {"group": groups.names[group], "rows": sizes[group]} | estimates[group]._asdict()
            for group in groups.rated
            if sizes[group] >= FEWEST_MEMBERS
        ]
    return {"bars": bars, "bars_are": what, "bars_format": form}
