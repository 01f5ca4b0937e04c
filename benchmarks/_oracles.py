"""Drawn tables, and what metrics and interventions must say of them, in plain loops.

`tests/test_differential.py` runs a few cases of every check, `benchmarks/differential.py` thousands. Weights
are multiples of a quarter, so that sums are exact and the order of adding does not matter.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any

import fairlearn.metrics
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from hypothesis import strategies as st

from fado import (
    RandomPrevalenceSampler,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
)
from fado.metrics import (
    audit,
    by_group,
    equalized_odds_ratio,
    evaluate,
    fnr_ratio,
    fpr_ratio,
    predictions_frame,
    selection_rate_ratio,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_ratio,
)

LABELS = [(0, 1), (False, True), ("no", "yes"), (1, 2)]
LEVELS = [["a", "b", "c", "d"], [3, 1, 2, 10], [True, False], ["(missing)", "nan", "1"]]
PRECISIONS = [np.float16, np.float32, np.float64]
CONTAINERS = [list, np.asarray, pd.Series, pl.Series, pa.array]
RATES = {  # events among members, by label and decision
    "selection_rate": (lambda y, d: d, lambda y, d: True),
    "tpr": (lambda y, d: y and d, lambda y, d: y),
    "fpr": (lambda y, d: not y and d, lambda y, d: not y),
    "fnr": (lambda y, d: y and not d, lambda y, d: y),
    "precision": (lambda y, d: y and d, lambda y, d: d),
}
RATIOS = {
    "fpr_ratio": "fpr",
    "fnr_ratio": "fnr",
    "tpr_ratio": "tpr",
    "selection_rate_ratio": "selection_rate",
}


@dataclass
class Case:
    """A drawn table, and the settings of a call."""

    positive: list[bool]
    labels: tuple[Any, Any]  # the negative and the positive one
    scores: np.ndarray[Any, Any]  # of the precision in which they are passed
    weights: list[float] | None
    groups: list[list[Any]]  # of every attribute, None where it is missing
    budget: tuple[str, Any]
    min_group_size: int
    container: Callable[..., Any]
    with_labels: bool
    utilities: list[float]
    strength: float
    floor: float
    power: float

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.positive)

    @property
    def y(self) -> Any:
        """The labels as they are passed."""
        return self.container([self.labels[own] for own in self.positive])

    @property
    def given(self) -> Any:
        """The scores as they are passed."""
        if self.container in (np.asarray, pd.Series):
            return self.container(self.scores)
        if self.container in (pl.Series, pa.array) and self.scores.dtype != np.float16:
            return self.container(self.scores)
        return pa.array(self.scores) if self.container is pa.array else self.scores.tolist()

    @property
    def features(self) -> Any:
        """The protected attributes as they are passed."""
        if len(self.groups) == 1:
            return {"z": self.groups[0]}
        return {f"z{number}": column for number, column in enumerate(self.groups)}

    @property
    def weight(self) -> list[float]:
        """The weight of every row."""
        return [1.0] * self.n if self.weights is None else self.weights

    def titles(self, attributes: tuple[int, ...] | None = None) -> list[str | None]:
        """Each row's group, of the combination of some attributes; None where one of them is missing."""
        chosen = range(len(self.groups)) if attributes is None else attributes
        told: list[str | None] = []
        for row in range(self.n):
            parts = [(f"z{number}", self.groups[number][row]) for number in chosen]
            if any(value is None for _, value in parts):
                told.append(None)
            elif len(parts) == 1:
                told.append(str(parts[0][1]))
            else:
                told.append(", ".join(f"{name} = {value}" for name, value in parts))
        return told

    def lacks(self) -> bool:
        """Whether a score is missing, or a label has no weight: every metric refuses that."""
        known = not np.isnan(self.scores).any()
        return not known or any(
            not any(w > 0 for y, w in zip(self.positive, self.weight, strict=True) if y is label)
            for label in (True, False)
        )


@st.composite
def cases(draw: Any) -> Case:
    """Draw a table and settings."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.one_of(st.integers(2, 40), st.sampled_from([120, 450])))
    positive = rng.random(n) < draw(st.sampled_from([0.1, 0.5, 0.8]))
    positive[rng.permutation(n)[:2]] = [True, False]
    kind = draw(st.sampled_from(["decisions", "ties", "ties", "fine", "equal"]))
    scores = {
        "decisions": lambda: (rng.random(n) < 0.4).astype(float),
        "ties": lambda: rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], n),
        "fine": lambda: rng.random(n),
        "equal": lambda: np.full(n, 0.7),
    }[kind]().astype(draw(st.sampled_from(PRECISIONS)))
    n_negatives = n - int(positive.sum())
    edges = st.integers(1, max(1, n_negatives - 1)).map(lambda count: count / max(2, n_negatives))
    shares = st.one_of(edges, st.sampled_from([0.05, 0.1, 0.3, 2 / 3]), st.floats(0.01, 0.99))
    limit: dict[str, Any] = {
        "fpr": draw(shares),
        "selection_rate": draw(shares),
        "top_k": draw(st.integers(1, n + 2)),
        "threshold": draw(st.sampled_from([0.1, 0.7, 0.9, float(scores[0]), scores[0]])),
    }
    budget = draw(st.sampled_from(["fpr", "threshold", *limit]))
    if draw(st.integers(0, 9)) == 0:
        scores[rng.integers(0, n, draw(st.integers(1, 3)))] = np.nan
    weights = draw(st.sampled_from([None, None, [2.0], [0.25, 1.0, 3.0], [0.0, 0.25, 1.0], [0.0, 2.0]]))
    groups = []
    for _ in range(draw(st.integers(1, 2))):
        levels = draw(st.sampled_from(LEVELS))
        levels = levels[: draw(st.integers(1, len(levels)))]
        shares = rng.dirichlet(np.full(len(levels), draw(st.sampled_from([0.2, 2.0]))))
        column = [levels[code] for code in rng.choice(len(levels), n, p=shares)]
        if draw(st.booleans()):
            gone = rng.random(n) < 0.2
            gone[int(np.argmin(gone))] = False
            column = [None if lost else value for value, lost in zip(column, gone, strict=True)]
        groups.append(column)
    container = draw(st.sampled_from(CONTAINERS))
    if container is list or (container is pl.Series and scores.dtype == np.float16):
        scores = scores.astype(np.float64)  # so a list holds them
    drawn = None if weights is None else rng.choice(weights, n)
    if drawn is not None and not drawn.any():
        drawn[0] = 1.0
    return Case(
        positive=positive.tolist(),
        labels=draw(st.sampled_from(LABELS)),
        scores=scores,
        weights=None if drawn is None else drawn.tolist(),
        groups=groups,
        budget=(budget, limit[budget]),
        min_group_size=draw(st.sampled_from([0, 5, 30])),
        container=container,
        with_labels=draw(st.booleans()) or budget == "fpr",
        utilities=rng.permutation(n).astype(float).tolist()
        if draw(st.booleans())
        else rng.integers(0, 4, n).astype(float).tolist(),
        strength=draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])),
        floor=draw(st.sampled_from([0.0, 0.2, 1.0])),
        power=draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])),
    )


# --- what must come out -------------------------------------------------------------------------------------


def selected_at(scores: np.ndarray[Any, Any], threshold: Any) -> list[bool]:
    """Select scores that are at least the threshold, as a number of their precision."""
    at = scores.dtype.type(threshold)
    return [bool(score >= at) for score in scores]


def threshold_of(case: Case, budget: tuple[str, Any]) -> Any:
    """Try every score, the lowest first, and the next float above all."""
    kind, limit = budget
    if kind == "threshold":
        return limit
    rows = [row for row in range(case.n) if case.weight[row] > 0]
    counted = [row for row in rows if kind != "fpr" or not case.positive[row]]
    weight = [1.0] * case.n if kind == "top_k" else case.weight
    for threshold in sorted({case.scores[row] for row in rows}):
        passed = sum(weight[row] for row in counted if case.scores[row] >= threshold)
        total = sum(weight[row] for row in counted)
        if (passed if kind == "top_k" else passed / total) <= limit:
            return threshold
    return np.nextafter(max(case.scores[row] for row in rows), scores_type(case)(np.inf))


def scores_type(case: Case) -> Any:
    """Return the precision of the scores."""
    return case.scores.dtype.type


def rate(case: Case, name: str, selected: list[bool], rows: list[int]) -> float:
    """Return the share of weight of a rate's members that are events; NaN without members."""
    is_event, is_member = RATES[name]
    events = members = 0.0
    for row in rows:
        y, d = case.positive[row], selected[row]
        members += case.weight[row] * bool(is_member(y, d))
        events += case.weight[row] * bool(is_event(y, d))
    return events / members if members else math.nan


def members_of(titles: list[str | None]) -> dict[str, list[int]]:
    """Return the rows of every known group."""
    found: dict[str, list[int]] = {}
    for row, title in enumerate(titles):
        if title is not None:
            found.setdefault(title, []).append(row)
    return found


def is_small(size: int, total: int, min_group_size: int) -> bool:
    """Return whether a group has too few rows, and too small a share, to be compared."""
    return size < min_group_size and size / total < 0.01


def compared_of(case: Case, titles: list[str | None]) -> dict[str, list[int]]:
    """Return the rows of the groups that are compared."""
    groups, n = members_of(titles), len(titles)  # rows without a group are rows of the table
    return {title: rows for title, rows in groups.items() if not is_small(len(rows), n, case.min_group_size)}


def ratio_of(rates: list[float]) -> float:
    """Return the lowest rate over the highest; NaN if one is unknown, all are 0, or there is only one."""
    if len(rates) < 2 or any(map(math.isnan, rates)) or max(rates) == 0:
        return math.nan
    return min(rates) / max(rates)


def ratios_of(case: Case, selected: list[bool]) -> dict[str, float]:
    """Return all ratios between the compared groups."""
    groups = list(compared_of(case, case.titles()).values())
    return {
        name: ratio_of([rate(case, of, selected, rows) for rows in groups]) for name, of in RATIOS.items()
    }


def decisions_of(case: Case) -> tuple[list[bool], Any]:
    """Return which rows a budget selects, and its threshold; decisions of 0 and 1 stay as they are."""
    threshold = threshold_of(case, case.budget)
    if case.budget[0] == "fpr" and set(case.scores.tolist()) == {0.0, 1.0}:
        threshold = 1.0
    return selected_at(case.scores, threshold), threshold


# --- checks -------------------------------------------------------------------------------------------------


def outcome(function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call a function without its warnings; return its result, or the sentence with which it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=UserWarning)
        try:
            return function(*arguments, **settings)
        except ValueError as error:
            return str(error)


def same(ours: Any, expected: float) -> bool:
    """Return whether two numbers are equal but for the order of adding; NaN equals NaN."""
    return bool(np.isclose(float(ours), expected, rtol=1e-12, atol=1e-15, equal_nan=True))


def refused(case: Case, result: Any) -> bool:
    """Return whether a metric had to refuse; it must have said which row, or that a label has no weight."""
    if not case.lacks():
        assert not isinstance(result, str), result
        return False
    assert isinstance(result, str), "nothing was refused"
    missing, said = np.isnan(case.scores), "must be above zero in some row of each label" in result
    assert said or (missing.any() and f"in row {int(np.argmax(missing))}" in result), result
    return True


def settings_of(case: Case) -> dict[str, Any]:
    """Return the keywords of a budget and of weights."""
    kind, limit = case.budget
    passed: Any = {"budget": case.budget}
    if kind == "fpr":
        passed = {"max_fpr": limit}
    elif kind == "threshold" and case.strength < 0.5:  # either way to say it
        passed = {"threshold": limit}
    return {**passed, "sample_weight": case.weights}


def common(case: Case) -> dict[str, Any]:
    """Return the keywords that metrics with labels share."""
    pos_label = case.labels[1] if case.with_labels else None
    return {"pos_label": pos_label, "sensitive_features": case.features, **settings_of(case)}


def check_evaluate(case: Case) -> None:
    """Compare `evaluate` with loops over rows."""
    result = outcome(evaluate, case.y, case.given, **common(case), min_group_size=case.min_group_size)
    if refused(case, result):
        return
    selected, threshold = decisions_of(case)
    rows = [row for row in range(case.n) if case.weight[row] > 0]
    expected = {name: rate(case, name, selected, rows) for name in ("fpr", "tpr")} | ratios_of(case, selected)
    if case.budget[0] in ("selection_rate", "top_k"):
        expected["selection_rate"] = rate(case, "selection_rate", selected, rows)
    if case.budget[0] == "top_k":
        expected["selected"] = sum(selected[row] for row in rows)
    compared = [row for own in compared_of(case, case.titles()).values() for row in own]
    if len({selected[row] for row in compared if case.weight[row] > 0}) == 1:
        expected |= dict.fromkeys(RATIOS, math.nan)  # a model that decides nothing
    if len({case.scores[row] for row in rows}) == 1:
        expected = dict.fromkeys(expected, math.nan)
    assert set(result) == {"threshold", *expected}
    precision = scores_type(case)
    assert precision(result["threshold"]) == precision(threshold), (result["threshold"], threshold)
    for name, number in expected.items():
        assert same(result[name], number), (name, result[name], number)


def check_by_group(case: Case) -> None:
    """Compare `by_group` with loops, and with fairlearn where it has the number."""
    result = outcome(by_group, case.y, case.given, **common(case), min_group_size=case.min_group_size)
    if refused(case, result):
        return
    selected, _ = decisions_of(case)
    titles = case.titles()
    groups, compared = members_of(titles), compared_of(case, titles)
    alike = len({case.scores[row] for row in range(case.n) if case.weight[row] > 0}) == 1
    unknown = [title for title in result.index if title not in groups]
    assert len(unknown) == (None in titles)
    assert not result.loc[unknown, "compared"].any()
    for title, rows in groups.items():
        line = result.loc[title]
        assert line["rows"] == len(rows)
        assert line["positives"] == sum(case.positive[row] for row in rows)
        assert line["compared"] == (title in compared)
        for name in ("selection_rate", "tpr", "fpr", "fnr"):
            expected = math.nan if alike else rate(case, name, selected, rows)
            assert same(line[name], expected), (title, name, line[name], expected)
            assert math.isnan(expected) or line[f"{name}_low"] <= expected <= line[f"{name}_high"]
    peers = {"selection_rate": selection_rate, "tpr": true_positive_rate, "fpr": false_positive_rate}
    weightless = any(not any(case.weight[row] for row in rows) for rows in groups.values())
    if alike or None in titles or weightless:  # which fairlearn refuses
        return
    with np.errstate(invalid="ignore"):  # of groups whose label has no weight
        frame = MetricFrame(
            metrics=peers,
            y_true=case.positive,
            y_pred=selected,
            sensitive_features=pd.Series(titles),
            sample_params={name: {"sample_weight": case.weight} for name in peers},
        ).by_group
    for title, line in frame.iterrows():
        for name in peers:  # of which fairlearn has 0 where there are no members
            ours = result.loc[title, name]
            assert math.isnan(ours) or same(ours, line[name]), (title, name, ours, line[name])


def check_audit(case: Case) -> None:
    """Compare `audit` with loops over rows, for every attribute and every combination."""
    settings = settings_of(case)
    are_decisions = set(case.scores[~np.isnan(case.scores)].tolist()) <= {0.0, 1.0}
    given = case.given
    if are_decisions:
        settings = {"sample_weight": case.weights}
        if case.with_labels and not np.isnan(case.scores).any():  # labels are decisions, too
            given = case.container([case.labels[own == 1] for own in case.scores.tolist()])
    labels = case.y if case.with_labels else None
    result = outcome(
        audit,
        labels,
        given,
        sensitive_features=case.features,
        min_group_size=case.min_group_size,
        least_shown=0,
        **settings,
    )
    if (case.with_labels or np.isnan(case.scores).any()) and refused(case, result):
        return
    assert not isinstance(result, str), result
    selected = selected_at(case.scores, 1.0 if are_decisions else threshold_of(case, case.budget))
    assert result.about["selected"] == sum(selected)
    exact = [Fraction(float(score)) for score in case.scores]
    middle = median(exact)
    law = selected if are_decisions else [score > middle for score in exact]
    parts: list[tuple[int, ...]] = [(0,)] if len(case.groups) == 1 else [(0,), (1,), (0, 1)]
    for part in parts:
        titles, name = case.titles(part), "z"
        if len(case.groups) > 1:
            name = " and ".join(f"z{number}" for number in part)
        check_audit_part(case, result, name, titles, selected, law)


def check_audit_part(
    case: Case, result: Any, name: str, titles: list[str | None], selected: list[bool], law: list[bool]
) -> None:
    """Compare the tables of one attribute, or of one combination."""
    groups, compared = members_of(titles), compared_of(case, titles)
    tables = [table[table["attribute"] == name] for table in (result.frame, result.local_law_144())]
    lines, legal = tables[0].set_index("group"), tables[1].set_index("category")
    (unknown,) = [title for title in lines.index if title not in groups] or [None]
    assert (unknown is not None) == (None in titles)
    assert len(lines) == len(groups) + (None in titles)
    if unknown is not None:
        assert lines.loc[unknown, "rows"] == titles.count(None)
        assert not lines.loc[unknown, "compared"]
    rates = list(RATES) if case.with_labels else ["selection_rate"]
    for title, rows in groups.items():
        line = lines.loc[title]
        assert (line["rows"], line["selected"]) == (len(rows), sum(selected[row] for row in rows))
        assert line["compared"] == (title in compared) == (line["reason"] == "")
        for of in rates:
            expected = rate(case, of, selected, rows)
            assert same(line[of], expected), (title, of, line[of], expected)
        for table, decided, shown in ((lines, selected, "selection_rate"), (legal, law, legal.columns[3])):
            share = rate(case, "selection_rate", decided, rows)
            others = [rate(case, "selection_rate", decided, members) for members in compared.values()]
            highest = max((other for other in others if other > 0), default=math.nan)
            assert same(table.loc[title, shown], share), (title, shown, table.loc[title, shown], share)
            expected = share / highest if title in compared else math.nan
            assert same(table.loc[title, "impact_ratio"], expected), (title, "impact_ratio", expected)
    ratios = result.ratios[result.ratios["attribute"] == name].set_index("ratio")["value"]
    for of in RATES:
        shares = [rate(case, of, selected, rows) for rows in compared.values()]
        expected = ratio_of(shares) if of in rates else math.nan
        assert same(ratios[f"{of}_ratio"], expected), (name, of, ratios[f"{of}_ratio"], expected)


def check_decisions(case: Case) -> None:
    """Compare thresholds, the frame for other libraries and the single ratios with loops over rows."""
    frame = outcome(predictions_frame, case.y, case.given, **common(case))
    if np.isnan(case.scores).any():
        assert f"in row {int(np.argmax(np.isnan(case.scores)))}" in frame
        decided: Any = [None if math.isnan(score) else bool(score > 0.5) for score in case.scores.tolist()]
        functions: Any = (fpr_ratio, fnr_ratio, tpr_ratio, selection_rate_ratio, equalized_odds_ratio)
        for function in functions:
            told = outcome(function, case.y, case.container(decided), sensitive_features=case.features)
            assert f"in row {decided.index(None)}" in told
        return
    if case.lacks():
        return
    selected, _ = decisions_of(case)
    assert frame["score"].tolist() == [int(own) for own in selected]
    assert frame["label_value"].tolist() == [int(own) for own in case.positive]
    limit = case.budget[1] if case.budget[0] == "fpr" else 0.3
    about: Any = {"pos_label": case.labels[1], "sample_weight": case.weights}
    expected = threshold_of(case, ("fpr", limit))
    assert threshold_at_fpr(case.y, case.given, limit, **about) == float(expected)
    passed = selected_at(case.scores, expected)
    rows = [row for row in range(case.n) if case.weight[row] > 0]
    if len({case.scores[row] for row in rows}) > 1:
        assert same(tpr_at_fpr(case.y, case.given, limit, **about), rate(case, "tpr", passed, rows))
    about |= {"sensitive_features": case.features, "min_group_size": case.min_group_size}
    ratios = ratios_of(case, selected)
    functions = {"fpr_ratio": fpr_ratio, "fnr_ratio": fnr_ratio, "tpr_ratio": tpr_ratio}
    for name, function in (functions | {"selection_rate_ratio": selection_rate_ratio}).items():
        ours = outcome(function, case.y, case.container(selected), **about)
        assert same(ours, ratios[name]), (name, ours, ratios[name])
    both = [ratios["fpr_ratio"], ratios["tpr_ratio"]]
    ours = outcome(equalized_odds_ratio, case.y, case.container(selected), **about)
    assert same(ours, math.nan if any(map(math.isnan, both)) else min(both)), (ours, both)
    titles = case.titles()
    if not math.isnan(ours) and None not in titles and compared_of(case, titles) == members_of(titles):
        peer = fairlearn.metrics.equalized_odds_ratio(
            case.positive, selected, sensitive_features=case.titles(), sample_weight=case.weight
        )
        assert same(ours, peer), (ours, peer)


def sampled(case: Case, sampler: Any, valuation: Any = None) -> Any:
    """Fit a sampler, or return the sentence with which it refuses."""
    table = np.arange(case.n)[:, None]
    passed: Any = {} if valuation is None else {"valuation": valuation}
    about = {"sensitive_features": case.features, "sample_weight": case.weights}
    return outcome(sampler.fit, table, case.y, **about, **passed)


def wanted_of(case: Case, rate_of: dict[str, Any], target: Any) -> dict[str, Any]:
    """Return the negatives that each group keeps for a target rate, or what they may weigh."""
    groups, number = members_of(case.titles()), case.weights is None
    wanted = {}
    for title, rows in groups.items():
        negatives = sum(case.weight[row] for row in rows if not case.positive[row])
        positives = sum(case.weight[row] for row in rows if case.positive[row])
        wanted[title] = negatives
        if title in rate_of and positives and target is not None:
            strength = Fraction(case.strength) if number else case.strength
            aim = rate_of[title] + strength * (target - rate_of[title])
            left = (Fraction(positives) if number else positives) * (1 - aim) / aim
            wanted[title] = min(round(left) if number else left, negatives)
    return wanted


def check_samplers(case: Case) -> None:
    """Compare both prevalence samplers with the rule in their documentation."""
    groups, titles = members_of(case.titles()), case.titles()
    compared = compared_of(case, titles)
    number = case.weights is None
    rate_of, sizes = {}, {}
    for title, rows in compared.items():
        sizes[title] = sum(case.weight[row] for row in rows)
        if sizes[title]:
            positives = sum(case.weight[row] for row in rows if case.positive[row])
            rate_of[title] = (
                Fraction(positives) / Fraction(sizes[title]) if number else positives / sizes[title]
            )
    highest = max(rate_of.values(), default=None)
    thick = [own for title, own in rate_of.items() if sizes[title] >= 0.05 * sum(sizes.values())]
    total = sum(case.weight)  # rows without a group are rows of the table

    def going(target: Any) -> float:
        wanted = wanted_of(case, rate_of, target)
        negatives = {
            t: sum(case.weight[r] for r in rows if not case.positive[r]) for t, rows in groups.items()
        }
        return float(sum(negatives[title] - wanted[title] for title in groups))

    valuation = Valuation.from_values({"y": np.array(case.utilities)})
    settings: Any = {"strength": case.strength, "random_state": 0, "min_group_size": case.min_group_size}
    settings["pos_label"] = case.labels[1]
    fitted = {
        "random": sampled(case, RandomPrevalenceSampler(**settings)),
        "utility": sampled(case, UtilityAwarePrevalenceSampler(lambda own: own["y"], **settings), valuation),
    }
    for name, result in fitted.items():
        assert not isinstance(result, str), result
        target: Any = highest if len(rate_of) > 1 else None
        if (
            target is not None
            and case.min_group_size
            and (not thick or max(thick) != highest)
            and going(highest) > total / 2
        ):
            # found by halving: the highest that drops at most half, but at least that of the larger groups
            target = result.target_rate_
            floor = float(max(thick, default=0))
            assert target >= floor
            assert target == floor or going(target) <= total / 2
            assert total / 2 < going(min(float(target) * (1 + 1e-9), highest))
        assert same(result.target_rate_, math.nan if target is None else float(target))
        kept = set(result.sample_indices_.tolist())
        assert kept >= {row for row in range(case.n) if case.positive[row] or titles[row] is None}
        for title, wanted in wanted_of(case, rate_of, target).items():
            negatives = [row for row in groups[title] if not case.positive[row]]
            stay = [row for row in negatives if row in kept]
            left = sum(case.weight[row] for row in stay)
            if number:
                assert left == wanted, (name, title, left, wanted)
            else:
                assert abs(left - wanted) <= max(case.weight) / 2 + 1e-9, (name, title, left, wanted)
            gone = [case.utilities[row] for row in negatives if row not in kept]
            if name == "utility" and gone and stay:
                assert max(gone) <= min(case.utilities[row] for row in stay)
        labels = [int(case.positive[row]) for row in sorted(kept)]
        counted = {case.labels[code]: labels.count(code) for code in (0, 1)}
        assert result.sampling_strategy_ == counted


def factors_of(case: Case, base: list[float]) -> list[float]:
    """Return P(z) P(y) / P(z, y) of every row of a compared group by weights, 1 for all other rows."""
    compared = compared_of(case, case.titles())
    title_of = {row: title for title, rows in compared.items() for row in rows}
    weight = [own * times for own, times in zip(base, case.weight, strict=True)]

    def of(*keys: Any) -> float:
        return sum(
            weight[row]
            for row, title in title_of.items()
            if all(key in (title, case.positive[row]) and type(key) in (str, bool) for key in keys)
        )

    total = sum(weight[row] for row in title_of)
    cells = {
        (title, label): of(title) * of(label) / (total * of(title, label)) if of(title, label) > 0 else 1.0
        for title in compared
        for label in (True, False)
    }
    return [cells[title_of[row], case.positive[row]] if row in title_of else 1.0 for row in range(case.n)]


def check_reweighers(case: Case) -> None:
    """Compare both reweighers with their formulas."""
    plain = sampled(case, Reweigher(min_group_size=case.min_group_size))
    assert np.allclose(plain.sample_weight_, factors_of(case, [1.0] * case.n), rtol=1e-9, atol=0)
    low, high = min(case.utilities), max(case.utilities)
    base = [
        case.floor + (1 - case.floor) * ((own - low) / (high - low) if high > low else 1.0)
        for own in case.utilities
    ]
    reweigher = UtilityAwareReweigher(
        lambda own: own["y"],
        floor=case.floor,
        prevalence_correction=case.power,
        min_group_size=case.min_group_size,
    )
    aware = sampled(case, reweigher, Valuation.from_values({"y": np.array(case.utilities)}))
    factors = factors_of(case, base) if case.power else base
    expected = np.array(base) * np.array(factors) ** case.power
    expected /= expected.mean()
    assert not isinstance(aware, str), aware
    assert np.allclose(aware.sample_weight_, expected, rtol=1e-9, atol=1e-12)


# Every check with the cases on which it is run.
CHECKS: dict[str, tuple[Callable[[Case], None], Any]] = {
    "evaluate": (check_evaluate, cases()),
    "by_group": (check_by_group, cases()),
    "audit": (check_audit, cases()),
    "thresholds and single ratios": (check_decisions, cases()),
    "prevalence samplers": (check_samplers, cases()),
    "reweighers": (check_reweighers, cases()),
}
