"""The model that a frontier gives: which one, and that it is the one that was measured."""

import json
import math
import re

import numpy as np
import pytest
from tests.aim.conftest import draw_applicants
from tests.experiment.conftest import model_of, search

from fado import load_model
from fado.aim import count_events
from fado.experiment._choice import _curves, choose_row
from fado.metrics import evaluate

LINE = 0.8
APPLICANTS = draw_applicants(6000, seed=0)


@pytest.fixture(scope="module")
def frontier():
    return search(APPLICANTS, max_fits=9)


def part_of(frontier, part):
    rows = frontier._data.parts[part]
    return APPLICANTS.X.iloc[rows], APPLICANTS.y[rows], APPLICANTS.sex[rows]


def expected_row(frame, line):
    """Found by hand: of the rows above the line, the one of highest true-positive rate."""
    whole = frame.index[~frame["cost"].between(0, 1, inclusive="neither")]
    above = [row for row in whole if frame["validation_fpr_ratio"][row] >= line]
    return max(above, key=lambda row: (frame["validation_tpr"][row], frame["validation_fpr_ratio"][row]))


@pytest.mark.parametrize("line", [0.05, 0.55, 0.7, LINE])
def test_it_is_the_best_above_the_line(frontier, line):
    frame, best = frontier.frame, frontier.best(line)
    row = expected_row(frame, line)
    for name in ("tpr", "fpr", "fpr_ratio", "tpr_ratio", "threshold"):
        assert best.metrics_[name] == frame[f"validation_{name}"][row]
    assert best.reached_
    assert repr(frontier.closest(line).facts_) == repr(best.facts_)
    assert best.facts_.parameters["num_leaves"] == frame["num_leaves"][row]
    assert best.facts_.parameters["n_estimators"] == frame["n_estimators"][row]
    assert best.facts_.intervention == frame["intervention"][row].replace("none", "")


def test_it_is_trained_again_to_the_same_model_and_measured_at_one_threshold(frontier, tmp_path):
    best = frontier.best(LINE)
    row = expected_row(frontier.frame, LINE)
    X, y, sex = part_of(frontier, "validation")
    scores = best.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(scores, frontier.results.scores(row, "validation"))
    measured = evaluate(y, scores, sensitive_features=sex, max_fpr=0.1)
    for name in ("tpr", "fpr_ratio", "threshold"):
        assert measured[name] == best.metrics_[name]
    X, y, sex = part_of(frontier, "test")
    selected = best.predict(X) == 1
    told = best.facts_.measured["test"]
    assert told["threshold"] == best.threshold_ == best.metrics_["threshold"]
    assert told["tpr"] == pytest.approx(selected[y == 1].mean())
    rates = [selected[(y == 0) & (sex == group)].mean() for group in "fm"]
    assert told["fpr_ratio"] == pytest.approx(min(rates) / max(rates))
    best.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), best.predict_proba(X))
    assert loaded.predict(X).tolist() == best.predict(X).tolist()
    assert repr(loaded.facts_) == repr(best.facts_)  # some figures are NaN


def test_an_aimed_model_is_two_models_and_an_untouched_one_is_itself(frontier):
    assert frontier.best(LINE).sample_weight_ is None
    kinds = {"": "lightgbm", "aimed": "combined"}
    assert frontier.best(LINE).scorer.kind == "combined"
    best = frontier.best(0.05)
    assert best.scorer.kind == kinds[best.facts_.intervention]


def chosen(frontier, line, confidence):
    return choose_row(frontier.results, frontier._data, {"fpr_ratio": line}, confidence)


def bound_of(frontier, row, level):
    """Counted by hand on validation rows, at the row's own threshold."""
    rows = frontier._data.parts["validation"]
    codes = (APPLICANTS.sex[rows] == "m").astype(np.int64)
    selected = frontier.results.scores(row, "validation") >= frontier.frame["validation_threshold"][row]
    (counts,) = count_events(APPLICANTS.y[rows] == 1, codes, [0, 1], selected, ["fpr_ratio"])
    return counts.bound(level)


def test_confidence_is_harder(frontier):
    choices = [chosen(frontier, 0.3, confidence) for confidence in (None, 0.6, 0.95)]
    assert all(choice.reached for choice in choices[:2])
    rates = [frontier.frame["validation_tpr"][choice.row] for choice in choices[:2]]
    assert rates[1] <= rates[0]
    sure = frontier.best(0.3, confidence=0.6)
    assert "at 60 % confidence for all of them together" in sure.facts_.chosen
    assert frontier.best(0.6, confidence=0.999) is None
    unsure = frontier.closest(0.6, confidence=0.999)
    assert not unsure.reached_
    assert "too few validation rows for this confidence" in unsure.facts_.why
    assert "with 99.9 % confidence; this one comes closest" in unsure.facts_.chosen
    for model in (sure, unsure):  # the bound that decided, in all places
        bound = model.facts_.measured["validation"]["fpr_ratio_low"]
        sure_of = f"{100 * model.facts_.confidence:g} % confidence"
        assert re.search(rf"% interval {bound:.3f} to [0-9.]+, each end at {sure_of}", model.card())
        assert (bound >= model.facts_.at_least) is model.reached_
    assert f"(lower bound {bound:.3f} at 99.9 % confidence)" in unsure.facts_.why


def test_a_bound_is_shared_among_the_curves_and_not_among_their_points(frontier):
    """The best untouched model has half of the error; of the others, twice those above the line, or all."""
    frame, line, confidence = frontier.frame, 0.5, 0.7
    whole = np.flatnonzero(~frame["cost"].between(0, 1, inclusive="neither"))
    curves = _curves(frontier.results, whole)
    assert len(curves) == frame.loc[whole, "model"].nunique() > 1
    assert all(frame["intervention"][curve[0]] == "none" for curve in curves)
    ratios, rates = (frame[f"validation_{name}"].to_numpy() for name in ("fpr_ratio", "tpr"))
    first = max(range(len(curves)), key=lambda number: rates[curves[number][0]])
    above = [(ratios[curve] >= line).any() for curve in curves]
    among = min(2 * (sum(above) - above[first]), len(curves) - 1)
    passed = {}
    for number, curve in enumerate(curves):
        level = 1 - 0.15 if number == first else 1 - 0.15 / among
        for row in curve[np.argmax(ratios[curve]) :: -1]:
            if ratios[row] < line or bound_of(frontier, row, level) < line:
                break
            passed[row] = level
    best = max(passed, key=lambda row: (rates[row], ratios[row]))
    row = chosen(frontier, line, confidence).row
    assert (rates[row], ratios[row]) == (rates[best], ratios[best])
    assert row in passed


@pytest.fixture(scope="module")
def single():
    """A search of one model."""
    return search(APPLICANTS, max_fits=2)


def test_one_curve_needs_no_correction(single):
    assert len(_curves(single.results, np.arange(len(single.frame)))) == 1
    ratios, rates = (single.frame[f"validation_{name}"].to_numpy() for name in ("fpr_ratio", "tpr"))
    order = np.argsort(single.frame["demand"].fillna(-np.inf).to_numpy(), kind="stable")
    passed = []
    for row in order[np.argmax(ratios[order]) :: -1]:
        if bound_of(single, row, 0.9) < 0.5:
            break
        passed.append((rates[row], ratios[row]))
    row = chosen(single, 0.5, 0.9).row
    assert (rates[row], ratios[row]) == max(passed)


def test_what_nothing_reached_is_none_and_the_closest_says_why(single):
    assert single.best(1.0) is None
    closest, n = single.closest(1.0), len(single.frame)
    highest = single.frame["validation_fpr_ratio"].max()
    assert not closest.reached_
    assert closest.metrics_["fpr_ratio"] == highest < 1
    assert closest.facts_.why == f"The highest fpr_ratio of {n} models is {highest:.3f}."
    assert f"None of {n} models reached fpr_ratio of at least 1; this one" in closest.facts_.chosen


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"at_least": 0}, r"`at_least` must be in \(0, 1\]"),
        ({"at_least": 80}, r"`at_least` must be in \(0, 1\]"),
        ({"confidence": 0.3}, r"`confidence` must be in \(0.5, 1\)"),
    ],
)
def test_lines_that_no_ratio_can_reach_are_refused(frontier, asked, match):
    with pytest.raises(ValueError, match=match):
        frontier.best(**asked)


def test_the_card_says_what_was_tried(frontier):
    best = frontier.best(LINE)
    frame = frontier.frame
    whole = frame[~frame["cost"].between(0, 1, inclusive="neither")]
    n, above = len(whole), (whole["validation_fpr_ratio"] >= LINE).sum()
    card = best.card()
    assert f"selected from {n} candidates, with {math.ceil(frame['cost'].sum() + 1)} fits" in card
    assert f"Of {n} models, {above} reached fpr_ratio of at least 0.8" in card
    for part, rows in frontier._data.parts.items():
        groups = [group for group in best.facts_.groups if group.part.startswith(part)]
        assert sum(group.rows for group in groups) == len(rows)
        assert sum(group.positives for group in groups) == APPLICANTS.y[rows].sum()
        assert sorted(group.group for group in groups) == ["f", "m"]
    table = card.split("Data and groups")[1].split("##")[0]
    cells = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert (cells[0], sorted(cells[2:])) == ("group", ["f", "m"])


def test_where_no_model_can_be_compared_there_is_none():
    """At a threshold that no score reaches nobody is selected: no ratio is defined."""
    found = search(APPLICANTS, max_fits=2, budget=("threshold", 0.999999))
    assert found.best(0.5) is None
    assert found.closest(0.5) is None


def test_the_landscape_is_drawn_and_opens_on_what_was_asked_for(tmp_path):
    applicants = draw_applicants(1500, seed=0)
    found = search(applicants, max_fits=2, ratio="tpr_ratio")
    (points,) = (values for values in found.plot().to_dict()["datasets"].values() if len(values) > 1)
    assert {"none", "aimed"} == {point["intervention"] for point in points}
    for at_least, line in ((None, 0.8), (0.9, 0.9), ({"tpr_ratio": 0.7}, 0.7)):
        found.report(tmp_path / "page.html", at_least)
        page = (tmp_path / "page.html").read_text()
        start = page.index('id="data">') + len('id="data">')
        content = json.loads(page[start : page.index("</script>", start)])
        assert (content["points"]["views"][0]["ratio"], content["rule"]) == ("tpr_ratio", line)
        assert content["titles"][0] == "Ratio of true-positive rates"
        assert content["notes"] == []
    found = search(applicants, max_fits=2, ratio={"fpr_ratio": 0.8, "tpr_ratio": 0.75})
    found.report(tmp_path / "page.html")
    told = "that reach all of fpr_ratio 0.8 and tpr_ratio 0.75. This page selects by one ratio at a time"
    assert told in (tmp_path / "page.html").read_text()


def test_before_and_after_are_told_for_every_group(frontier):
    frame, best = frontier.frame, frontier.best(LINE)
    whole = frame[(frame["intervention"] == "none") & (frame["cost"] == 1)]
    untouched = whole["validation_tpr"].idxmax()
    before = best.facts_.before
    for name in ("tpr", "fpr_ratio", "threshold"):
        assert before["validation"][name] == frame[f"validation_{name}"][untouched]
    assert before["test"]["threshold"] == before["validation"]["threshold"]
    for part in ("validation", "test"):
        _, y, sex = part_of(frontier, part)
        after = best.score_rows(part_of(frontier, part)[0])
        scores = {"before": frontier.results.scores(untouched, part), "after": after}
        thresholds = {"before": before["validation"]["threshold"], "after": best.threshold_}
        for own in best.facts_.groups:
            if own.part != part:
                continue
            members = sex == own.group
            assert (own.rows, own.positives) == (members.sum(), y[members].sum())
            for when, told in (("before", own.before), ("after", own.after)):
                selected = scores[when] >= thresholds[when]
                assert told["tpr"] == pytest.approx(selected[members & (y == 1)].mean())
                assert told["fpr"] == pytest.approx(selected[members & (y == 0)].mean())
                assert told["selection_rate"] == pytest.approx(selected[members].mean())


@pytest.fixture(scope="module")
def two():
    return search(APPLICANTS, max_fits=4, ratio={"fpr_ratio": 0.7, "tpr_ratio": 0.8})


def test_several_lines_must_all_hold(two):
    frame = two.frame
    assert set(frame["ratio"].dropna()) == {"fpr_ratio=0.7, tpr_ratio=0.8"}
    best = two.best()
    assert best.facts_.lines == {"fpr_ratio": 0.7, "tpr_ratio": 0.8}
    whole = frame[~frame["cost"].between(0, 1, inclusive="neither")]
    above = whole[(whole["validation_fpr_ratio"] >= 0.7) & (whole["validation_tpr_ratio"] >= 0.8)]
    assert best.metrics_["tpr"] == above["validation_tpr"].max()
    lower = two.best(0.6)
    assert lower.facts_.lines == {"fpr_ratio": 0.6, "tpr_ratio": 0.6}
    assert lower.metrics_["tpr"] >= best.metrics_["tpr"]
    other = two.best({"fpr_ratio": 0.5, "tpr_ratio": 0.9})
    assert other.metrics_["fpr_ratio"] >= 0.5
    assert other.metrics_["tpr_ratio"] >= 0.9
    with pytest.raises(ValueError, match="`at_least` must have a line for each of fpr_ratio, tpr_ratio"):
        two.best({"fpr_ratio": 0.5})
    assert two.best(1.0) is None
    assert "the closest has fpr_ratio" in two.closest(1.0).facts_.why


def test_the_card_and_the_check_of_several_lines(two, tmp_path):
    best = two.best()
    assert "Required was a fpr_ratio of at least 0.7 and a tpr_ratio of at least 0.8 between" in best.card()
    best.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    X, y, sex = part_of(two, "validation")
    check = loaded.check(X, y, {"z": sex})
    assert check.held is None  # what was chosen by a ratio need not be above the line for sure
    assert check.sentence.startswith(
        "There are too few rows to decide whether the lines are held: fpr_ratio 0."
    )
    assert [own.name for own in loaded.columns_] == list(X.columns)
    assert "at least 0.7 required; tpr_ratio 0." in check.sentence
    for name in ("fpr_ratio", "tpr_ratio", "tpr"):
        assert check.metrics[name] == best.metrics_[name]


def test_students_are_models_of_the_features_alone():
    found = search(APPLICANTS, max_fits=16, students=True, lines=(0.6, 0.7))
    students = found.frame[found.frame["intervention"] == "student"]
    assert students["at_least"].tolist() == [0.6, 0.7]
    assert found.frame["cost"].sum() + 1 <= 16
    assert students["cost"].tolist() == [11, 1]
    X = part_of(found, "validation")[0]
    for row in students.index:
        model = model_of(found, row)
        np.testing.assert_array_equal(model.score_rows(X), found.results.scores(row, "validation"))
        assert model.scorer.kind == "student"


@pytest.mark.parametrize(
    ("ratio", "lines"),
    [
        ("equalized_odds_ratio", "fpr_ratio=0.6, tpr_ratio=0.6"),
        ({"fpr_ratio": 0.5, "tpr_ratio": 0.7}, "fpr_ratio=0.5, tpr_ratio=0.7"),
        ("fpr_ratio=0.5, tpr_ratio=0.7", "fpr_ratio=0.5, tpr_ratio=0.7"),
    ],
)
def test_students_of_several_ratios(ratio, lines):
    frame = search(APPLICANTS, ratio=ratio, max_fits=15, students=True, lines=(0.6,)).frame
    assert frame.loc[frame["intervention"] == "student", "ratio"].tolist() == [lines]


def test_test_rows_can_be_given():
    fresh = draw_applicants(900, seed=1)
    found = search(APPLICANTS, max_fits=2, test=tuple(fresh))
    model = found.closest(LINE)
    np.testing.assert_array_equal(model.score_rows(fresh.X) >= model.threshold_, model.predict(fresh.X) == 1)
    selected = model.predict(fresh.X) == 1
    assert model.facts_.measured["test"]["tpr"] == pytest.approx(selected[fresh.y == 1].mean())
    assert len(found._data.parts["train"]) == pytest.approx(0.8 * 6000, abs=4)
