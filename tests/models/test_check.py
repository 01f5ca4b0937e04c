"""A check says whether the line is held, and when rows cannot tell."""

import datetime
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tests.models.made import LATE, SEX, X, chosen, facts_of, fitted, remade, rows_with, stub

from fado import load_model
from fado.metrics import Budget, GroupCounts, evaluate, ratio_limits, rows_needed
from fado.models import GroupRates, check_trend, summarize_columns
from fado.tabular import Groups

MODEL = chosen()
LABELS = np.where(LATE, "yes", "no")


def rows_of(a, b, n, n_positives=10):
    """Rows of two groups of n negatives each, of which a and b are selected, and no positive but one."""
    positives = np.arange(2 * n_positives) == 0
    scores = np.r_[np.arange(n) < a, np.arange(n) < b, positives].astype(float)
    groups = np.r_[np.repeat(["f", "m"], n), np.repeat(["f", "m"], n_positives)]
    return scores[:, None], np.repeat([0, 1], [2 * n, 2 * n_positives]), groups


@pytest.mark.parametrize(
    ("b", "held", "told"),
    [
        (2_000, True, "The line is held: fpr_ratio 1.000 ("),
        (1_640, None, "There are too few rows to decide whether the line is held: fpr_ratio 0.820 ("),
        (1_600, None, "There are too few rows to decide whether the line is held: fpr_ratio 0.800 ("),
        (1_000, False, "The line is not held: fpr_ratio 0.500 ("),
    ],
)
def test_the_whole_interval_must_be_on_one_side_of_the_line(b, held, told):
    check = stub().check(*rows_of(2_000, b, 20_000))
    assert check.held is held
    assert check.sentence.startswith(told)
    assert re.search(r" \(95 % interval 0\.\d{3} to [01]\.\d{3}\), at least 0\.8 required\.", check.sentence)
    low, high = (check.metrics[f"fpr_ratio_{end}"] for end in ("low", "high"))
    assert (low >= 0.8, high < 0.8) == (held is True, held is False)
    assert check.level == 0.95


def test_a_verdict_on_nothing_is_none_and_says_how_few_events_there_are():
    check = stub().check(*rows_of(2, 0, 20))  # 60 rows, 3 decisions
    assert check.held is None
    assert check.sentence == (
        "There are too few rows to decide whether the line is held: fpr_ratio 0.000 (no interval), at least "
        "0.8 required. For fpr_ratio, group 'm' has the fewest false positives: 0 of 20 negatives. These "
        "rows are too few to say how many would decide."
    )
    nothing = stub().check(*rows_of(0, 0, 200)).sentence  # of nothing nothing follows
    assert nothing.endswith("has the fewest false positives: 0 of 200 negatives.")


def test_how_many_rows_decide():
    check = stub().check(*rows_of(1_000, 750, 10_000))
    counts = GroupCounts(*np.array([[10_000, 10_000], [10, 10], [1_000, 750], [1, 0]]))
    needed = 20_020 * rows_needed(counts, check.lines, 0.025)
    assert check.held is None
    assert 100_000 < needed < 1_000_000
    assert check.sentence.endswith(
        f" About {10_000 * np.ceil(needed / 10_000):,.0f} rows like these decide in four of five tries."
    )


def test_a_clear_miss_is_told_though_another_group_is_too_small():
    def check(b):
        rows, y, groups = rows_of(2_000, b, 20_000)
        few = np.zeros((40, 1)), np.zeros(40, dtype=int), ["x"] * 40
        return stub(min_group_size=0).check(np.r_[rows, few[0]], np.r_[y, few[1]], np.r_[groups, few[2]])

    missed = check(500)
    assert np.isnan(missed.metrics["fpr_ratio_high"])
    assert missed.held is False
    assert "(at most 0.2" in missed.sentence
    assert " between groups with enough false positives, at 97.5 % confidence)" in missed.sentence
    assert check(2_000).held is None


def test_all_lines_must_be_held_and_one_that_is_missed_decides():
    both = {"fpr_ratio": 0.8, "tpr_ratio": 0.4}  # true positives: half of "a", all of "b"
    check = stub(lines=both).check(*rows_with(500, 20_000))  # 20 false positives against 500
    assert check.held is False
    assert check.sentence.startswith("The lines are not held: fpr_ratio 0.040 (")
    check = stub(lines=both).check(*rows_with(20, 20_000))  # equal, but of 20 each
    assert check.held is None
    assert check.sentence.startswith("There are too few rows to decide whether the lines are held: fpr_ratio")
    assert "For tpr_ratio" not in check.sentence  # which is told


def test_metrics_are_those_of_evaluate_at_the_threshold():
    metrics, settings = MODEL.check(X, LABELS, SEX).metrics, {"threshold": MODEL.threshold_, "n_boot": 1}
    expected = evaluate(LATE, MODEL.score_rows(X), sensitive_features=SEX, **settings)
    assert metrics == pytest.approx(expected, nan_ok=True)
    decided = MODEL.predict(X) == "yes"
    assert (metrics["tpr"], metrics["fpr"]) == (decided[LATE].mean(), decided[~LATE].mean())


def test_labels_may_be_written_as_equal_ones():
    rows, y, groups = rows_with(20)
    expected = stub().check(rows, y, groups)
    assert stub().check(rows, y.astype(bool), groups) == expected
    assert stub().check(rows, pd.Series(y.astype(float)), groups) == expected


def test_a_ratio_just_below_the_line_is_not_rounded_up_to_it():
    assert "fpr_ratio 0.7999 (" in stub().check(*rows_of(10_000, 7_999, 30_000)).sentence


def test_with_a_confidence_both_ends_have_it():
    rows = rows_of(2_000, 1_700, 20_000)
    low, high = ratio_limits(np.array([0.1, 0.085]), np.array([20_000.0, 20_000.0]), 0.1)
    for line, held in ((low - 0.001, True), (low + 0.001, None), (high - 0.001, None), (high + 0.001, False)):
        check = stub(at_least=line, confidence=0.9).check(*rows)
        assert check.held is held
        assert check.metrics["fpr_ratio_low"] == pytest.approx(low)
        assert check.metrics["fpr_ratio_high"] == pytest.approx(high)
        assert ", each end at 90 % confidence), at least 0." in check.sentence
        assert check.level == pytest.approx(0.8)


def test_what_is_undefined_cannot_be_told():
    rows, y, groups = rows_with(20)
    check = stub(threshold=2.0).check(rows, y, groups)
    assert check.held is None
    undecided = "Whether the line is held is undecided: fpr_ratio is undefined, at least 0.8 required."
    assert check.sentence == undecided
    assert "every row of group 'a', 'b' is predicted negative" in check.notes[0]


@pytest.mark.parametrize(
    ("budget", "kept", "used"),
    [
        (Budget("fpr", 0.1), True, 1.0),
        (Budget("fpr", 0.09), False, 0.1 / 0.09),
        (Budget("selection_rate", 0.5), True, 340 / 800 / 0.5),
        (Budget("selection_rate", 0.4), False, 340 / 800 / 0.4),
        (Budget("top_k", 340), True, 1.0),
        (Budget("top_k", 339), False, 340 / 339),
        (Budget("threshold", 0.5), True, None),
    ],
    ids=str,
)
def test_whether_the_budget_is_kept_on_these_rows_and_how_much_is_used(budget, kept, used):
    check = stub(budget=budget).check(*rows_with(20))  # 40 of 400 negatives and 300 of 400 positives
    assert check.budget_kept is kept
    assert check.to_plain()["budget"]["used"] == (used if used is None else pytest.approx(used))


def test_small_groups_and_other_attributes_are_noted():
    rows, y, groups = rows_with(20, 1000)
    groups[:5] = "c"
    notes = stub().check(rows, y, {"race": groups}).notes
    assert notes[0].startswith("Group 'c' (5 rows), with fewer than 30 rows")
    assert "between the groups of 'sex', but these rows have the groups of 'race'." in notes[1]


def test_names_of_columns_are_attributes_too():
    check = MODEL.check(X.assign(sex=SEX), LABELS, "sex")
    assert check == MODEL.check(X, LABELS, SEX)


ROWS, LABELLED, GROUPS = rows_with(20)


@pytest.mark.parametrize(
    ("y", "groups", "date", "match"),
    [
        (np.ones_like(LABELLED), GROUPS, None, r"`y` has only one label \(1\)"),
        (np.full(800, "maybe"), GROUPS, None, "`y` has the label 'maybe', and the model knows 0 and 1"),
        (LABELLED, None, None, "`sensitive_features` is needed"),
        (None, GROUPS, None, "`y` is needed with `sensitive_features`"),
        (LABELLED, GROUPS, "May", "`date` must be a day such as '2026-05-31', got 'May'"),
    ],
)
def test_rows_that_cannot_be_checked_are_refused_in_a_sentence(y, groups, date, match):
    with pytest.raises(ValueError, match=match):
        stub().check(ROWS, y, groups, date=date)


def test_groups_are_counted_and_new_missing_and_absent_ones_are_named():
    rows, y, groups = rows_with(20, 1000)
    trained = Groups(np.repeat([0, 1, 2], 20), ("'a'", "'b'", "'c'"), ("a", "b", "c"))
    facts = {"groups": GroupRates.of("training", np.zeros(60, dtype=bool), trained)}
    groups = groups.astype(object)
    groups[groups == "b"] = "d"
    groups[:40] = None
    check = stub(**facts).check(rows, y, pd.Series(groups, name="sex"))
    counts = {"rows": 1960, "positives": 1000, "false_positives": 0, "true_positives": 500}
    assert check.groups[0] == {"group": "a", **counts, "compared": True, "reason": "", "known": True}
    assert [own["known"] for own in check.groups] == [True, False, True]
    assert [own["reason"] for own in check.groups] == ["", "", "unknown"]
    assert check.missing == {"sex": 40}
    assert check.to_plain()["new_groups"] == ["d"]
    assert check.notes[:3] == (
        "Groups that the data of the model did not have: 'd' (2,000 rows).",
        "Groups of the training rows without rows here: 'b', 'c'.",
        "'sex' is unknown in 40 of 4,000 rows, which are compared with no group.",
    )


def test_all_of_it_is_plain_data(tmp_path):
    check = stub().check(*rows_of(2, 0, 20), date=datetime.date(2026, 5, 31))
    check.write_json(tmp_path / "check.json")
    told = json.loads((tmp_path / "check.json").read_text(encoding="utf-8"))
    assert told == check.to_plain()
    assert (told["kind"], told["format"], told["date"]) == ("fado check", 1, "2026-05-31")
    assert (told["held"], told["verdict"], told["rows"]) == (None, "undecided", 60)
    assert (told["lines"], told["level"]) == ({"fpr_ratio": 0.8}, 0.95)
    assert told["metrics"]["fpr"] == 2 / 40
    assert told["metrics"]["fpr_ratio_low"] is None
    assert told["budget"] == {"kind": "fpr", "limit": 0.1, "used": 0.5, "kept": True, "over": False}
    assert told["selection"] == {
        "rows": 60,
        "selected": 3,
        "share": 0.05,
        "low": pytest.approx(0.0104, abs=1e-4),  # Clopper and Pearson's
        "high": pytest.approx(0.1392, abs=1e-4),
        "expected": None,
        "expected_rows": None,
        "drifted": False,
    }
    assert told["sentence"] == check.sentence
    assert stub().check(*rows_of(2, 0, 20)).date == datetime.datetime.now().astimezone().date().isoformat()


def test_without_labels_columns_and_selection_are_checked():
    """0.05 * 5,000 negatives and 0.4 * 1,000 positives were selected: 650 of 6,000 rows."""
    counted = Groups(np.repeat([0, 1], 3_000), ("'a'", "'b'"), ("a", "b"))
    facts = {
        "measured": {"validation": {"tpr": 0.4, "fpr": 0.05}},
        "groups": GroupRates.of("validation", np.arange(6_000) % 6 == 0, counted),
    }
    model = stub(**facts)

    def night(selected, n):
        return model.check((np.arange(n) < selected).astype(float)[:, None], date="2026-05-31")

    check = night(108, 1_000)
    assert (check.held, check.verdict, check.groups) == (None, "no labels", ())
    assert check.sentence.startswith("Without labels, the required ratios cannot be checked")
    assert (check.budget_kept, check.over_budget, check.metrics) == (None, False, {"threshold": 0.5})
    assert check.selection["expected"] == pytest.approx(650 / 6_000)
    assert check.selection["expected_rows"] == 6_000
    assert json.loads(json.dumps(check.to_plain()))["budget"]["used"] is None
    # a factor of 1.5 is 0.1625 and 0.0722; of 20 rows none is no surprise, of 200 it is
    drifts = {(163, 1_000), (72, 1_000), (0, 200)}
    for selected, n in drifts | {(162, 1_000), (73, 1_000), (0, 20), (6, 20)}:
        assert night(selected, n).selection["drifted"] is ((selected, n) in drifts), (selected, n)
    assert night(163, 1_000).notes == (
        "The share selected is 16.3 % (95 % interval 14.1 % to 18.7 %), 10.8 % were expected: it differs by "
        "more than a factor of 1.5 and beyond chance.",
        *check.notes,
    )


@pytest.mark.parametrize(
    ("budget", "kept", "over"),
    [
        (Budget("selection_rate", 0.05), True, False),
        (Budget("selection_rate", 0.045), False, False),  # 50 of 1,000 may be chance
        (Budget("selection_rate", 0.03), False, True),
        (Budget("top_k", 49), False, True),
        (Budget("threshold", 0.5), True, False),
        (Budget("fpr", 0.001), None, False),
    ],
    ids=str,
)
def test_budgets_of_all_rows_need_no_labels(budget, kept, over):
    check = stub(budget=budget).check((np.arange(1_000) < 50).astype(float)[:, None])
    assert (check.budget_kept, check.over_budget) == (kept, over)


def test_a_broken_budget_stands_beside_the_verdict():
    check = stub(budget=Budget("fpr", 0.09)).check(*rows_of(2_000, 2_000, 20_000))
    assert (check.held, check.budget_kept, check.over_budget) == (True, False, True)
    assert check.sentence.endswith(
        "at least 0.8 required. The budget is exceeded: false-positive rate 0.100 (95 % interval 0.097 to "
        "0.103), at most 0.09 allowed."
    )


@pytest.mark.parametrize("estimator", [None, "logistic"])
def test_a_loaded_model_gives_the_same_check_to_the_bit(tmp_path, estimator):
    features = X if estimator is None else X[["debts", "flag"]].fillna(0.0).astype(float)
    fit, table = fitted(features, estimator and LogisticRegression())
    model = chosen(fit)
    facts = facts_of(measured={"validation": model.metrics_})
    model = remade(model, facts=facts, columns=summarize_columns(table))
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    new = features.iloc[::2]
    for rows in ((new,), (new, LABELS[::2], SEX[::2])):
        texts = [json.dumps(own.check(*rows, date="2026-05-31").to_plain()) for own in (model, loaded)]
        assert texts[0] == texts[1]
    assert repr(loaded) == repr(model)
    assert loaded.card() == model.card()


def test_the_checks_of_a_directory_are_one_table(tmp_path):
    both = stub(lines={"fpr_ratio": 0.8, "tpr_ratio": 0.4})
    nights = [
        both.check(*rows_with(500, 20_000), date="2026-05-02"),
        both.check(*rows_with(20, 20_000), date="2026-05-01"),
        both.check(rows_with(20)[0], date="2026-05-03"),
    ]
    for check in nights:
        check.write_json(tmp_path / f"{check.date}.json")
    (tmp_path / "notes.json").write_text("{}")  # not named like a check
    table = check_trend(tmp_path)
    assert table["date"].tolist() == [day for day in ("2026-05-01", "2026-05-02", "2026-05-03") for _ in "ab"]
    assert table["ratio"].tolist() == ["fpr_ratio", "tpr_ratio"] * 3
    assert table["verdict"].tolist() == ["undecided"] * 2 + ["missed"] * 2 + ["no labels"] * 2
    assert table["value"].tolist()[:4] == [1.0, 0.5, 0.04, 0.5]
    ends = [nights[0].metrics[f"fpr_ratio_{end}"] for end in ("low", "high")]
    assert table.loc[2, ["low", "high"]].tolist() == ends
    assert table["budget_used"].tolist()[::2] == pytest.approx([0.01, 0.13, np.nan], nan_ok=True)
    assert table["selected"].tolist()[::2] == [nights[place].selection["share"] for place in (1, 0, 2)]
    message = r"2026-05-04\.json' is not a check of this release: move it out"
    for broken in ("[]", "{", '{"kind": "fado check", "format": 1, "date": "2026-05-04"}'):
        (tmp_path / "2026-05-04.json").write_text(broken)
        with pytest.raises(ValueError, match=message):
            check_trend(tmp_path)
    with pytest.raises(ValueError, match="There is no directory"):
        check_trend(tmp_path / "none")
