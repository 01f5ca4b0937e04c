"""The first answers of the page: gaps, columns that reveal the group, slices, the cost of a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._messages import COMPARE_TARGET, list_names
from fado.aim import trade_off_of
from fado.exploration._estimates import Estimate, Z, share, share_gap, widest_gap
from fado.exploration._explored import ExploredRows, Protected, percent, plain_number, quoted
from fado.exploration._groups import POOLED
from fado.metrics import RATES, Budget, best_first, predicted_positive
from fado.tabular import group_rows

if TYPE_CHECKING:
    import pandas as pd

LINE = 0.8
MAX_FPR = 0.05
CONFIDENCE = 0.9
_SHOWN = ("fpr", "tpr", "fnr", "selection_rate")
TITLES = {f"{name}_ratio": f"{RATES[name].title.replace(' ', '-')} ratio" for name in _SHOWN}
_RATIO = "fpr_ratio"
_AT = f"at {100 * MAX_FPR:g} % false positives"
_SURE = f"{100 * CONFIDENCE:g} %"
_POINT = ["tpr", "tpr_low", "tpr_high", "ratio", "low", "tpr_change", "tpr_change_error"]


def aim_part(explored: ExploredRows, attribute: Protected) -> dict[str, Any] | None:
    """Give the cost of each level of each ratio; None without the probabilities that this needs.

    Each of the ``ratios`` has its ``points``, the untouched one first; the ``answer``, the point that reaches
    the line; ``sure``, the point that does so with confidence; and ``sentences``.
    """
    binary = explored.is_binary and explored.positive is not None
    if not binary or attribute.is_continuous or not explored.valuation.probabilities:
        return None
    problem, valuation = explored.searched, explored.valuation
    if len(explored.sample) < len(explored):
        valuation = valuation.take(explored.sample)
    place = [one.name for one in explored.attributes].index(attribute.name)
    problem = replace(  # with one attribute, and without weights
        problem,
        protected=(problem.protected[place],),
        positions=(None,),
        names_given=True,
        sources=problem.sources[:1],
        sample_weight=None,
    )
    every, shown = attribute.every_group, attribute.groups
    titles = {
        name: title
        for name, title, number in zip(every.names, every.titles, shown.place, strict=True)
        if number in shown.compared
    }
    groups = group_rows(problem.protected)
    compared = np.array([name in titles for name in groups.names])
    positive = problem.labels.is_positive
    if compared.sum() < 2 or positive.all() or not positive.any():
        return None
    blind = attribute.position is None and not explored.excluded_columns(attribute.name)
    out_of_bag = valuation.provenance.algorithm == "out-of-bag"
    by = "out-of-bag decisions" if out_of_bag else "decisions from the given probabilities"
    by = f"{by} that do not use the group" if blind else by
    ratios = []
    for name, title in TITLES.items():
        try:
            frame = trade_off_of(
                valuation,
                problem,
                [compared],
                lines={name: LINE},
                budget=Budget("fpr", MAX_FPR),
                confidence=CONFIDENCE,
                seed=explored.seed,
            )
        except ValueError:  # the probabilities are not those of these labels and groups
            return None
        rates = [rate for rate in frame.columns if rate.startswith(f"{name.removesuffix('_ratio')}[")]
        answer = _answer(frame)
        sure = _sure(frame, answer)
        ratios.append(
            {
                "ratio": name,
                "title": title,
                "points": [
                    {key: float(row[key]) for key in _POINT} | {"rates": [float(row[rate]) for rate in rates]}
                    for _, row in frame.iterrows()
                ],
                "answer": answer,
                "sure": sure,
                "sentences": _costs(frame, title, answer, sure, by, blind, len(valuation)),
            }
        )
    return {
        "line": LINE,
        "max_fpr": MAX_FPR,
        "confidence": CONFIDENCE,
        "rows": problem.n_rows,
        "groups": [titles[name] for name in groups.names if name in titles],
        "note": _note(explored, attribute, problem.n_rows, out_of_bag),
        "ratios": ratios,
    }


def _answer(frame: pd.DataFrame) -> int | None:
    """Find the point of the highest true-positive rate at the line; the untouched one, if it is there."""
    rates, ratios = frame["tpr"].to_numpy(), frame["ratio"].to_numpy()
    best = int(best_first(rates, ratios, ratios >= LINE, keep_first=True)[0])
    return best if ratios[best] >= LINE else None


def _sure(frame: pd.DataFrame, answer: int | None) -> int | None:
    """Step back from the most equal point while lower bounds reach the line: this needs no correction."""
    if answer is None:
        return None
    place, reached = int(frame["ratio"].argmax()), frame["low"].to_numpy() >= LINE
    if not reached[place]:
        return None
    while place != answer and place and reached[place - 1]:
        place -= 1
    return place


def _costs(
    frame: pd.DataFrame, title: str, answer: int | None, sure: int | None, by: str, blind: bool, n_rows: int
) -> list[str]:
    """Say what reaching the line costs, by the estimate and with confidence."""
    if frame["ratio"].isna().all():
        return [f"The {title} is undefined {_AT}: all rates are 0, or a group has no rows to count."]
    untouched, most = frame.iloc[0], frame.iloc[int(frame["ratio"].argmax())]
    if answer is None:
        which = "decisions that do not use the group" if blind else "decisions of these models"
        return [
            f"No {which} reach {LINE}: the most equal ones have {_down(most['ratio'])}.",
            f"The lower bound at {_SURE} confidence is {_down(most['low'])}.",
        ]
    if answer == 0:
        start = f"Without any change, the {title} is {_down(untouched['ratio'])} {_AT}: {LINE} costs nothing."
    else:
        point = frame.iloc[answer]
        rates = f"({untouched['tpr']:.3f} to {point['tpr']:.3f})"
        start = f"A {title} of {LINE} {_cost(point)} {rates} {_AT}, by {by}."
    if sure is None:
        return [
            start,
            f"These {n_rows:,} rows are too few for {_SURE} confidence: the most equal point has a ratio of "
            f"{_down(most['ratio'])} with a lower bound of {_down(most['low'])}, below {LINE}.",
        ]
    point = frame.iloc[sure]
    if sure == answer:
        return [start, f"The lower bound of that ratio at {_SURE} confidence is {_down(point['low'])}."]
    figures = f"{_down(point['ratio'])}, with a lower bound of {_down(point['low'])}"
    return [start, f"Reaching it with {_SURE} confidence {_cost(point)}; the ratio there is {figures}."]


def _cost(point: pd.Series[Any]) -> str:
    """Write what a point costs, with the interval of the paired difference."""
    cost, reach = -100 * point["tpr_change"], 100 * Z * point["tpr_change_error"]
    decimals = max(1, int(np.ceil(-np.log10(reach))))
    number, around = f"{abs(cost):.{decimals}f} points", f"(plus or minus {reach:.{decimals}f})"
    if cost > reach:
        return f"costs about {number} {around} of true-positive rate"
    # Untouched decisions are the best of these models, so an apparent gain is chance.
    return f"has no measurable cost: {number} {around} {'less' if cost >= 0 else 'more'} true-positive rate"


def _down(number: float) -> str:
    """Write a ratio, rounded down, so that one below a line is never shown as if it had reached it."""
    return f"{np.floor(1000 * number + 1e-9) / 1000:.3f}"


def _note(explored: ExploredRows, attribute: Protected, n_rows: int, out_of_bag: bool) -> str:
    """Say on which rows the curve was measured, and how an aimed model may differ."""
    rows = "rows with the given probabilities, assuming that their models were not trained on these rows"
    if out_of_bag:
        rows = "out-of-bag rows, which the models were not trained on"
    rows = rows if n_rows == len(explored) else f"{n_rows:,} {rows}"
    note = (
        f"Measured on {rows}. Each point was selected on these rows, so expect slightly worse figures on new "
        "rows."
    )
    name = quoted(attribute.name)
    if attribute.position is not None:
        note += (
            f" {name} is itself a feature: here the models of the target may use it, the models of the group "
            "do not. An aimed model that uses it can reach higher ratios."
        )
    elif explored.excluded_columns(attribute.name):
        note += (
            f" Columns that determine {name} were hidden from its models. An aimed model that uses them can "
            "reach higher ratios."
        )
    if any(one.note == POOLED for one in attribute.groups.listed):
        note += (
            " Groups that are shown together as one are not compared here; with them the cost may be higher."
        )
    return note


def answers(explored: ExploredRows, attribute: Protected, parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answer in sentences what a reader asks first, from the other parts of the attribute's page.

    Each answer has ``id``, ``title``, ``sentence`` and ``command``, the command to run next (mostly None).
    """
    biases = {bias["id"]: bias for bias in parts["biases"]}
    rates = _decision_rates(explored, attribute)
    step, command = _next(explored, attribute, parts["aim"], rates)
    sentences = {
        ("gap", "Largest gap"): _gap(attribute, biases["prevalence"], rates),
        ("giveaway", "Columns that reveal the group"): _giveaway(
            attribute, explored.excluded_columns(attribute.name), biases["base"], parts["columns"]
        ),
        ("slice", "Removing rows"): _removal(parts.get("effects"), parts["not_measured"]),
    }
    if parts["aim"] is not None:
        sentences["aim", f"Cost of a ratio of {LINE}"] = parts["aim"]["ratios"][0]["sentences"][0]
    sentences["next", "Next step"] = step
    return [
        {"id": key, "title": title, "sentence": sentence, "command": command if key == "next" else None}
        for (key, title), sentence in sentences.items()
    ]


def _decision_rates(explored: ExploredRows, attribute: Protected) -> dict[str, list[Estimate]]:
    """Estimate each group's false- and true-positive rate at the budget; empty if there are no scores."""
    positive, agreement = explored.is_positive, explored.label_probability("y")
    seen = explored.valuation.provenance.algorithm == "in-bag"  # by the models
    if positive is None or agreement is None or not explored.is_binary or seen:
        return {}
    if np.isnan(agreement).any() or positive.all() or not positive.any():
        return {}
    scores = np.where(positive, agreement, 1.0 - agreement)
    decided = predicted_positive(scores, Budget("fpr", MAX_FPR).threshold(positive, scores))
    count = attribute.groups.count
    return {
        RATES[name].title: list(map(share, count(decided & rows).tolist(), count(rows).tolist()))
        for name, rows in (("fpr", ~positive), ("tpr", positive))
    }


def _gap(attribute: Protected, bias: Mapping[str, Any], rates: Mapping[str, list[Estimate]]) -> str:
    """Say how much groups differ in the target, and in the rates of the models' decisions."""

    def interval(ends: Mapping[str, Any], form: str) -> str:
        numbers = [ends[key] for key in ("number", "low", "high")]
        number, low, high = (
            f"{100 * one:.1f}" if form == "percent" else plain_number(one) for one in numbers
        )
        return f"{number}{' points' if form == 'percent' else ''} (95 % interval {low} to {high})"

    sentence = str(bias["sentence"])
    if bias["number"] is not None:
        what = "Rank correlation" if bias["measure"].startswith("rank") else "Gap"
        sentence += f" {what}: {interval(bias, bias['format'])}."
    decisions = []
    for name, estimates in rates.items():
        widest = widest_gap(estimates, attribute.groups.compared, share_gap)
        gap = f"gap {interval(widest.gap._asdict(), 'percent')}"
        if widest.is_clear:
            decisions.append(f"the {name} is {widest.ends(estimates, attribute.spoken, percent)}, {gap}")
        elif widest.known:
            decisions.append(f"no clear difference in the {name} was found between groups, {gap}")
    if decisions:
        sentence += f" For decisions of these models {_AT}: {'; '.join(decisions)}."
    return sentence


def _giveaway(
    attribute: Protected, excluded: set[str], base: Mapping[str, Any], columns: Mapping[str, Any]
) -> str:
    """Say which columns reveal the group, and how well models predict it."""
    sentences = []
    kept = {attribute.name} if attribute.position is not None else excluded
    if kept:
        named = list_names([quoted(name) for name in sorted(kept)])
        sentences.append(f"Features that were hidden from the models of the group: {named}.")
    is_area = base["measure"].startswith("AUC")
    if any(row["reveals"]["clear"] for row in columns["columns"]):
        sentences.append(str(columns["sentence"]))
    if base["number"] is None:
        sentences.append("These values do not say how well models predict the group.")
    else:
        low, high = (f"{base[key]:.3f}" if is_area else percent(base[key]) for key in ("low", "high"))
        sentences.append(f"{base['sentence']} 95 % interval: {low} to {high}.")
    return " ".join(sentences)


def _removal(effects: Mapping[str, Any] | None, reason: str) -> str:
    """Say which measured removal helps most, and what it costs; or that none does, or why not."""
    if effects is None or effects["measured"] is None:
        return reason
    how = f"found on one half of the rows, measured on the other half, {effects['measured']['fits']:,} fits"
    ratio, performance = effects["ratio"], effects["performance"] or "performance"
    best, tried = effects["headline"], [*effects["slices"], *effects["curve"]]
    n_tried = sum(one["measured"] is not None for one in tried)
    if best is None:
        return (
            f"No removal that was tried ({n_tried}) clearly raises the {ratio} by more than it costs in "
            f"{performance} ({how})."
        )
    measured, rows = best["measured"], f"{best['rows']:,} rows"
    if "conditions" in best:
        what = f"the {rows} where {quoted(' and '.join(best['conditions']))}"
    else:
        cells = [
            f"{one['rows']:,} of {quoted(one['group'])} labelled {quoted(one['label'])}"
            for one in best["cells"]
        ]
        rows = f"{rows}: {list_names(cells)}" if cells else rows
        what = f"the most harmful {percent(best['share'])} of the rows ({rows})"
    changes = []
    for key, title in (("ratio", ratio), ("performance", performance)):
        change, reach = measured[f"{key}_change"], Z * measured[f"{key}_error"]
        if abs(change) > reach:
            verb = "raises" if change > 0 else "lowers"
            changes.append(f"{verb} the {title} by {abs(change):.3f} (plus or minus {reach:.3f})")
        else:
            changes.append(f"does not change the {title} measurably")
    return (
        f"Removing {what} {' and '.join(changes)}. Of the {n_tried} removals that were tried, it raises the "
        f"{ratio} most for its cost in {performance} ({how})."
    )


def _next(
    explored: ExploredRows,
    attribute: Protected,
    aim: Mapping[str, Any] | None,
    rates: Mapping[str, list[Estimate]],
) -> tuple[str, str | None]:
    """Say what to do next, and give the command for it."""
    compared, name = attribute.groups.compared, TITLES[_RATIO]
    if not explored.is_binary:
        return f"Ratios need decisions between two labels: {COMPARE_TARGET}, and explore that.", None
    if attribute.is_continuous:
        return (
            f"Ratios compare groups: cut {quoted(attribute.name)} into a few groups, and explore these.",
            None,
        )
    if len(compared) < 2:
        return "Fewer than two groups are large enough to be compared: collect more rows.", None
    if aim is None and not rates:
        return (
            "To see the ratio, let `explore` compute the values, or value the rows with "
            "`OutOfBagEntropy(keep_probabilities=True)`.",
            None,
        )
    false_positives = [rates[RATES["fpr"].title][group] for group in compared] if rates else []
    numbers = [rate.number for rate in false_positives]
    ratio = aim["ratios"][0]["points"][0]["ratio"] if aim is not None else np.nan
    if aim is None and max(numbers) > 0:
        ratio = min(numbers) / max(numbers)
    if np.isnan(ratio):
        return (
            f"The {name} is undefined {_AT}: a compared group has no negatives, or no row is selected.",
            None,
        )
    stands = f"Without any change, the {name} is {_down(ratio)} {_AT}"
    if ratio >= LINE:
        return f"{stands}, at or above {LINE}: no change is needed.", None
    sentence = f"{stands}, below {LINE}."
    if rates and not widest_gap(false_positives, range(len(false_positives)), share_gap).is_clear:
        sentence += " But the rates do not differ clearly: more rows may show that no change is needed."
    if aim is not None and aim["ratios"][0]["answer"] is None:
        sentence += " A model aimed at it comes as close as these rows allow."
    else:
        sentence += " Train a model aimed at it."
    return sentence, _python_call(explored, attribute)


def _python_call(explored: ExploredRows, attribute: Protected) -> str:
    """Write the call that aims a model, with the names of the parameters of `explore`."""
    features, groups = "X", "z" if len(explored.attributes) == 1 else f"z[{attribute.name!r}]"
    if attribute.position is not None:  # named columns of X: a model without them
        names = [one.name for one in explored.attributes]
        features, groups = f"X.drop(columns={names!r})", f"X[{attribute.name!r}]"
    label = "" if explored.positive == 1 else f", pos_label={explored.target.classes[0]!r}"
    made = f'AimedEstimator(LGBMClassifier(), ratio="{_RATIO}", at_least={LINE}{label})'
    unknown = f", unknown={list(explored.problem.unknown)!r}" if explored.problem.unknown else ""
    return f"{made}.fit({features}, y, sensitive_features={groups}{unknown})"
