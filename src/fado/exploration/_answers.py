"""What a reader wants to know first: gaps, what gives the group away, what slices do, what a line costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fado._messages import COMPARE_TARGET, list_names
from fado.exploration._aim import LINE, MAX_FPR, TITLES
from fado.exploration._intervals import Estimate, Z, share, share_gap, widest_gap
from fado.exploration._material import Attribute, Material
from fado.exploration._wording import percent, plain_number, quoted
from fado.metrics import threshold_at_fpr

__all__ = ["answers", "is_measurable"]

MOST_NAMED = 3  # columns that give the group away
LEAST_NAMED = 0.05  # the share that a column needs to be named after the first
ACTIONS = {"remove": "Removing", "halve": "Weighing by half", "relabel": "Relabelling"}
_RATIO = "fpr_ratio"
_AT = f"at {100 * MAX_FPR:g} % false positives"


def answers(material: Material, attribute: Attribute, parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answer in sentences what a reader asks first.

    Parameters
    ----------
    material : Material
        The rows.
    attribute : Attribute
        Of which groups are compared.
    parts : mapping
        What else the page has of the attribute: ``biases``, ``columns``, ``aim``, ``not_measured``, and
        ``effects``, if there are any.

    Returns
    -------
    list of dict
        Each with ``id``, ``title``, ``sentence``, and ``command``, what to type next (None for most).
    """
    biases = {bias["id"]: bias for bias in parts["biases"]}
    rates = _decision_rates(material, attribute)
    told = {
        "gap": ("The largest gap", " ".join([_gap(biases["prevalence"]), *_decisions(attribute, rates)])),
        "giveaway": (
            "What gives the group away",
            _giveaway(attribute, material.excluded_columns(attribute.name), biases["base"], parts["columns"]),
        ),
        "slice": ("What slices of the rows do", _slice(parts.get("effects"), parts["not_measured"])),
    }
    if parts["aim"] is not None:
        told["aim"] = (f"What a line of {LINE} costs", parts["aim"]["ratios"][0]["sentences"][0])
    step, command = _next(material, attribute, parts["aim"], rates)
    told["next"] = ("Next step", step)
    return [
        {"id": key, "title": title, "sentence": sentence, "command": command if key == "next" else None}
        for key, (title, sentence) in told.items()
    ]


def is_measurable(change: float | None, error: float | None) -> bool:
    """Tell whether a measured change is further from 0 than its 95 % interval reaches."""
    return change is not None and error is not None and abs(change) > Z * error


def _gap(bias: Mapping[str, Any]) -> str:
    """Say how far groups differ in the target, with the interval."""
    head = bias.get("turning") or bias
    if head["number"] is None:
        return str(bias["sentence"])
    what = "Rank correlation" if head["measure"].startswith("rank") else "Gap"
    return f"{bias['sentence']} {what}: {_with_interval(head, head['format'])}."


def _with_interval(estimate: Mapping[str, Any], form: str) -> str:
    """Write a number and its interval; a percentage is a gap between two."""
    numbers = [estimate[key] for key in ("number", "low", "high")]
    told, low, high = [f"{100 * one:.1f}" if form == "percent" else plain_number(one) for one in numbers]
    return f"{told}{' points' if form == 'percent' else ''} (95 % interval {low} to {high})"


def _decision_rates(material: Material, attribute: Attribute) -> dict[str, list[Estimate]]:
    """Estimate each group's false- and true-positive rate where scores decide; empty if there are none."""
    positive, agreement = material.is_positive, material.agreement("y")
    if (
        positive is None
        or len(material.target.classes) != 2
        or agreement is None
        or np.isnan(agreement).any()
        or positive.all()
        or not positive.any()
        or material.valuation.provenance.algorithm == "in-bag"  # these models have seen the rows
    ):
        return {}
    scores = np.where(positive, agreement, 1.0 - agreement)
    decided = scores >= threshold_at_fpr(positive, scores, MAX_FPR)
    count = attribute.groups.count
    return {
        name: [
            share(*pair) for pair in zip(count(decided & rows).tolist(), count(rows).tolist(), strict=True)
        ]
        for name, rows in (("false-positive rate", ~positive), ("true-positive rate", positive))
    }


def _decisions(attribute: Attribute, rates: Mapping[str, list[Estimate]]) -> list[str]:
    """Say how far groups differ in the rates of the models' decisions."""
    said = []
    for name, estimates in rates.items():
        widest = widest_gap(estimates, attribute.groups.compared, share_gap)
        gap = f"gap {_with_interval(widest.gap._asdict(), 'percent')}"
        if widest.is_clear:
            high, low = (
                f"{percent(estimates[group].number)} in {attribute.spoken[group]}"
                for group in (widest.high, widest.low)
            )
            said.append(f"the {name} is {high} and {low}, {gap}")
        elif widest.known:
            said.append(f"no clear difference in the {name} was found between groups, {gap}")
    return [f"Where these models decide {_AT}: {'; '.join(said)}."] if said else []


def _giveaway(
    attribute: Attribute, excluded: set[str], base: Mapping[str, Any], columns: Mapping[str, Any]
) -> str:
    """Say which columns give the group away, and how well models tell it."""
    said = []
    kept = {attribute.name} if attribute.position is not None else excluded
    if kept:
        named = list_names([quoted(name) for name in sorted(kept)])
        said.append(f"Among the features, though kept from the models of the group: {named}.")
    is_area = base["measure"].startswith("AUC")
    if base["number"] is None or base["low"] > (0.5 if is_area else 0.0):
        said.append(_strongest(attribute.name, columns))
    if base["number"] is None:
        said.append("How well models tell the group is not known of these values.")
    else:
        low, high = (f"{base[key]:.3f}" if is_area else percent(base[key]) for key in ("low", "high"))
        said.append(f"{base['sentence']} 95 % interval: {low} to {high}.")
    return " ".join(said)


def _strongest(attribute: str, columns: Mapping[str, Any]) -> str:
    """Name the columns that say most about the attribute."""
    basis, how = "alone", "the share of its variance that each explains alone"
    if columns["basis"] == "gains":
        basis, how = "gain", "the share of the split gain of its models"
    seen = [row for row in columns["columns"] if not row["left_out"] and row[f"{basis}_z"]]
    strong = [row for row in seen[:MOST_NAMED] if row[f"{basis}_z"] >= LEAST_NAMED] or seen[:1]
    if not strong:
        return str(columns["sentence"])
    *others, last = (f"{quoted(row['name'])} ({percent(row[f'{basis}_z'])})" for row in strong)
    named = f"{', '.join(others)} and {last} give" if others else f"{last} gives"
    return f"{named} {attribute} away most, by {how}."


def _slice(effects: Mapping[str, Any] | None, reason: str) -> str:
    """Say which slice moves the ratio most, as retraining measured it; or that none does, or why not."""
    if effects is None or effects["measured"] is None:
        return reason
    tried = [one for one in effects["slices"] if any(one["measured"].values())]
    if not tried:
        return "No slice of the rows stood out, so none was tried."
    found = [
        (abs(own["ratio_change"]), ACTIONS[action], one, own)
        for one in tried
        for action, own in one["measured"].items()
        if own is not None and is_measurable(own["ratio_change"], own["ratio_error"])
    ]
    n_fits = effects["measured"]["fits"]
    fits = f"found by effects on one half of the rows, measured on the other, {n_fits:,} fits"
    several = f"{len(tried)} slices that were" if len(tried) > 1 else "one slice that was"
    if not found:
        none = "None of the" if len(tried) > 1 else "The"
        verb = "changes" if len(tried) > 1 else "does not change"
        return f"{none} {several} tried {verb} the {effects['ratio']} measurably ({fits})."
    _, action, one, own = max(found, key=lambda entry: entry[0])
    said = f"{action} the {own['rows']:,} rows where {quoted(' and '.join(one['conditions']))} "
    said += _moved(effects["ratio"], own["ratio_change"], own["ratio_error"])
    if effects["performance"] is not None and own["performance_change"] is not None:
        said += f" and {_moved(effects['performance'], own['performance_change'], own['performance_error'])}"
    return f"{said}; of the {several} tried it moves the ratio most ({fits})."


def _moved(metric: str, change: float, error: float | None) -> str:
    if not is_measurable(change, error):
        return f"does not change the {metric} measurably"
    verb = "raises" if change > 0 else "lowers"
    return f"{verb} the {metric} by {abs(change):.3f} (plus or minus {Z * (error or 0.0):.3f})"


def _next(
    material: Material,
    attribute: Attribute,
    aim: Mapping[str, Any] | None,
    rates: Mapping[str, list[Estimate]],
) -> tuple[str, str | None]:
    """Say what to do, and what to type for it."""
    target, name = material.target, TITLES[_RATIO]
    if target.kind == "continuous" or len(target.classes) != 2:
        return f"Lines are for decisions between two labels: {COMPARE_TARGET}, and explore that.", None
    if attribute.is_continuous:
        return f"Lines are between groups: cut {quoted(attribute.name)} into a few, and explore these.", None
    if len(attribute.groups.compared) < 2:
        return "There are no two groups that are large enough to be compared: gather more rows.", None
    false_positives = (
        [rates["false-positive rate"][group] for group in attribute.groups.compared] if rates else []
    )
    ratio = _ratio_of(false_positives) if aim is None else aim["ratios"][0]["points"][0]["ratio"]
    if ratio is None or np.isnan(ratio):
        if aim is None and not rates:
            return (
                "To see where a line stands, let `explore` make the values, or value the rows with "
                "`OutOfBagEntropy(keep_probabilities=True)`.",
                None,
            )
        return f"No {name} is known {_AT}: a compared group has no negatives, or no row is decided.", None
    stands = f"Untouched, the {name} is {np.floor(1000 * ratio + 1e-9) / 1000:.3f} {_AT}"
    if ratio >= LINE:
        return f"{stands}: nothing has to be changed for a line of {LINE}.", None
    said = f"{stands}, below a line of {LINE}."
    if rates and not widest_gap(false_positives, range(len(false_positives)), share_gap).is_clear:
        said += " But the rates do not clearly differ: more rows may show that nothing has to be changed."
    if aim is not None and aim["ratios"][0]["answer"] is None:
        said += " A model that is aimed at it comes as near as these rows allow."
    else:
        said += " Aim a model at it."
    return said, _python_call(material, attribute)


def _ratio_of(rates: list[Estimate]) -> float:
    numbers = [rate.number for rate in rates]
    return min(numbers) / max(numbers) if max(numbers, default=0.0) > 0 else np.nan


def _python_call(material: Material, attribute: Attribute) -> str:
    """Write the call that aims, with the names that `explore` has for what was handed over."""
    groups = "z" if len(material.attributes) == 1 else f"z[{attribute.name!r}]"
    if attribute.position is not None:
        groups = repr(attribute.name)
    label = "" if material.positive == 1 else f", pos_label={material.target.classes[0]!r}"
    made = f'AimedEstimator(LGBMClassifier(), ratio="{_RATIO}", at_least={LINE}{label})'
    return f"{made}.fit(X, y, sensitive_features={groups})"
