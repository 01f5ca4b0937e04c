"""The model that a frontier gives: which one, and that it is the one that was measured."""

import numpy as np
import pytest
from tests.aim.conftest import draw_applicants
from tests.experiment.frontier.conftest import search

from fado import load_model
from fado.experiment.frontier import choose_row
from fado.experiment.frontier._choosing import _bound
from fado.metrics import evaluate

LINE = 0.8
APPLICANTS = draw_applicants(6000, seed=0)


@pytest.fixture(scope="module")
def frontier():
    return search(APPLICANTS, budget=9)


def part_of(frontier, part):
    rows = frontier._data.parts[part]
    return APPLICANTS.X.iloc[rows], APPLICANTS.y[rows], APPLICANTS.sex[rows]


def expected_row(frame, line):
    """Found by hand: of the rows above the line, the one of highest true-positive rate."""
    above = [row for row in frame.index if frame["validation_fpr_ratio"][row] >= line]
    return max(above, key=lambda row: (frame["validation_tpr"][row], frame["validation_fpr_ratio"][row]))


@pytest.mark.parametrize("line", [0.05, 0.55, 0.7, LINE])
def test_it_is_the_best_above_the_line(frontier, line):
    frame, best = frontier.frame, frontier.best(line)
    row = expected_row(frame, line)
    for name in ("tpr", "fpr", "fpr_ratio", "tpr_ratio", "threshold"):
        assert best.metrics_[name] == frame[f"validation_{name}"][row]
    assert best.reached_
    assert best.facts_.parameters["num_leaves"] == frame["num_leaves"][row]
    assert best.facts_.parameters["n_estimators"] == frame["n_estimators"][row]
    assert best.facts_.intervention == frame["intervention"][row].replace("none", "")


def test_it_is_trained_again_to_the_same_model(frontier):
    best = frontier.best(LINE)
    row = expected_row(frontier.frame, LINE)
    X, y, sex = part_of(frontier, "validation")
    scores = best.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(scores, frontier.results.scores(row, "validation"))
    measured = evaluate(y, scores, sensitive_features=sex, max_fpr=0.1)
    assert measured["tpr"] == best.metrics_["tpr"]
    assert measured["fpr_ratio"] == best.metrics_["fpr_ratio"]
    assert measured["threshold"] == best.threshold_


def test_test_rows_are_judged_at_the_threshold_of_validation_rows(frontier):
    best = frontier.best(LINE)
    X, y, sex = part_of(frontier, "test")
    selected = best.predict(X) == 1
    told = best.facts_.measured["test"]
    assert told["threshold"] == best.threshold_
    assert told["tpr"] == pytest.approx(selected[y == 1].mean())
    rates = [selected[(y == 0) & (sex == group)].mean() for group in "fm"]
    assert told["fpr_ratio"] == pytest.approx(min(rates) / max(rates))


def test_weights_are_those_of_the_training_rows(frontier):
    best = frontier.best(LINE)
    assert best.facts_.intervention == "aimed"
    assert len(best.sample_weight_) == len(frontier._data.parts["train"])
    positive = APPLICANTS.y[frontier._data.parts["train"]] == 1
    for label in (positive, ~positive):
        assert best.sample_weight_[label].mean() == pytest.approx(1, abs=1e-5)


def test_confidence_is_harder(frontier):
    choices = [choose_row(frontier.results, frontier._data, "fpr_ratio", 0.3, c) for c in (None, 0.6, 0.95)]
    assert all(choice.reached for choice in choices[:2])
    rates = [frontier.frame["validation_tpr"][choice.row] for choice in choices[:2]]
    assert rates[1] <= rates[0]
    sure = frontier.best(0.3, confidence=0.6)
    assert sure.metrics_["fpr_ratio_low"] >= 0.3
    assert "at 60 % confidence for the" in sure.facts_.chosen
    assert frontier.best(0.6, confidence=0.999) is None
    unsure = frontier.closest(0.6, confidence=0.999)
    assert not unsure.reached_
    assert "too few rows were judged to be sure" in unsure.facts_.why
    assert "with 99.9 % confidence; this one comes closest" in unsure.facts_.chosen


def test_a_bound_is_shared_among_those_that_reached_the_line(frontier):
    """The best of many was perhaps lucky: its bound is at a higher level than a single model's."""
    alone = frontier.best(0.3, confidence=0.6).metrics_["fpr_ratio_low"]
    choice = choose_row(frontier.results, frontier._data, "fpr_ratio", 0.3, 0.6)
    assert choice.above > 1
    assert choice.above == (frontier.frame["validation_fpr_ratio"] >= 0.3).sum()
    shared = _bound(frontier.results, frontier._data, choice.row, "fpr_ratio", 0.6, choice.above)
    assert 0.3 <= shared < alone


def test_what_nothing_reached_is_none_and_the_closest_says_why():
    blind = search(APPLICANTS, budget=2)
    assert blind.best(1.0) is None
    closest = blind.closest(1.0)
    highest = blind.frame["validation_fpr_ratio"].max()
    assert not closest.reached_
    assert closest.metrics_["fpr_ratio"] == highest < 1
    assert closest.facts_.why == f"The highest fpr_ratio of 2 models is {highest:.3f}."
    assert "None of 2 models reached fpr_ratio of at least 1; this one" in closest.facts_.chosen


def test_the_closest_is_the_best_where_there_is_one(frontier):
    assert repr(frontier.closest(LINE).facts_) == repr(frontier.best(LINE).facts_)


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
    n, above = len(frontier.frame), (frontier.frame["validation_fpr_ratio"] >= LINE).sum()
    card = best.card()
    assert f"chosen among {n} models, at the cost of 9 fits" in card
    assert f"Of {n} models, {above} reached fpr_ratio of at least 0.8" in card
    for part, rows in frontier._data.parts.items():
        told = next(own for own in best.facts_.parts if own.name.startswith(part))
        assert sum(group.rows for group in told.groups) == len(rows)
        assert sum(group.positives for group in told.groups) == APPLICANTS.y[rows].sum()


def test_it_can_be_saved_and_loaded(frontier, tmp_path):
    best = frontier.best(LINE)
    best.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    X = part_of(frontier, "test")[0]
    np.testing.assert_array_equal(loaded.predict_proba(X), best.predict_proba(X))
    assert loaded.predict(X).tolist() == best.predict(X).tolist()
    assert repr(loaded.facts_) == repr(best.facts_)  # some figures are NaN
    np.testing.assert_array_equal(loaded.sample_weight_, best.sample_weight_)


def test_where_no_model_can_be_compared_there_is_none():
    """At a threshold that no score reaches nobody is selected: no ratio is defined."""
    found = search(APPLICANTS, budget=1, decide=("threshold", 0.999999))
    assert found.best(0.5) is None
    assert found.closest(0.5) is None


def test_the_landscape_is_drawn(frontier, tmp_path):
    frontier.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "aimed" in page
    assert frontier.plot().to_dict()["datasets"] or frontier.plot().to_dict()["layer"]
