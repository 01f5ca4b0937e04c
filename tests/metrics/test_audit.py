"""Audits of predictions alone: worked examples, and intervals that cover."""

import json

import numpy as np
import pandas as pd
import pytest

from fado.metrics import audit, by_group, evaluate, threshold_at_fpr


def rows(n=900, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "race": rng.choice(["a", "b", "c"], n)})
    return y, 0.6 * rng.random(n) + 0.3 * y + 0.1 * (frame["sex"] == "m"), frame


def test_pairs_are_numbers_beside_an_attribute_of_one_group():
    report = audit(None, [0, 1, 1] * 20, sensitive_features={"sex": ["f", "m"] * 30, "town": ["Ulm"] * 60})
    assert report.pairs["ratio"].dtype == np.float64
    assert set(report.pairs["attribute"]) == {"sex", "sex and town"}


def test_a_worked_example_of_selection_rates_as_the_law_lists_them():
    selected = np.repeat([1, 0, 1, 0, 1, 0], [60, 40, 30, 70, 1, 1])
    sex = np.repeat(["man", "woman", None], [100, 100, 2])
    report = audit(None, selected, sensitive_features={"sex": sex}, least_share=0.02)
    law = report.local_law_144()
    assert law["category"].tolist() == ["man", "woman", "unknown"]
    assert law["applicants"].tolist() == [100, 100, 2]
    assert law["selected"].tolist()[:2] == [60, 30]
    assert law["selection_rate"].tolist()[:2] == [0.6, 0.3]
    assert law.loc[2, ["selected", "selection_rate"]].isna().all()  # of two people
    assert law["impact_ratio"].tolist()[:2] == [1.0, 0.5]
    assert np.isnan(law["impact_ratio"][2])
    assert law["note"].tolist() == ["", "", "the group is unknown"]
    assert report.frame["positives"].isna().all()
    assert report.frame["tpr"].isna().all()
    assert report.ratios.set_index("ratio").loc["tpr_ratio", "reason"] == "there are no labels"


def test_scores_are_listed_by_the_share_above_the_median():
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    report = audit(None, scores, sensitive_features={"sex": list("aabbabbb")}, threshold=0.75, least_shown=0)
    law = report.local_law_144().set_index("category")
    assert law["selected"].to_dict() == {"a": 1, "b": 3}  # above 0.45
    assert law["scoring_rate"].to_dict() == {"a": pytest.approx(1 / 3), "b": 0.6}
    assert law.loc["a", "impact_ratio"] == pytest.approx((1 / 3) / 0.6)
    assert report.frame["selected"].tolist() == [0, 1]  # from 0.75 on


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_neighbouring_scores_are_on_either_side_of_the_median(dtype):
    low = np.nextafter(dtype(0.5), dtype(1))
    scores = np.array([low, low, np.nextafter(low, dtype(1)), 0.9], dtype=dtype)  # their mean rounds up
    report = audit(None, scores, sensitive_features=list("abab"), threshold=0.75, least_shown=0)
    law = report.local_law_144()
    assert law["selected"].tolist() == [1, 1]


def test_aequitas_counts_and_divides_alike():
    aequitas = pytest.importorskip("aequitas.group")
    y, scores, frame = rows()
    decisions = (scores >= 0.5).astype(int)
    theirs, _ = aequitas.Group().get_crosstabs(frame.assign(score=decisions, label_value=y))
    theirs = theirs.set_index(["attribute_name", "attribute_value"])
    ours = audit(y, decisions, sensitive_features=frame).frame.set_index(["attribute", "group"])
    for theirs_name, name in (
        ("tpr", "tpr"),
        ("fpr", "fpr"),
        ("fnr", "fnr"),
        ("precision", "precision"),
        ("pprev", "selection_rate"),
    ):
        for key, value in theirs[theirs_name].items():
            assert ours.loc[key, name] == pytest.approx(value)


def test_decisions_are_taken_as_they_are():
    y = np.array([0, 0, 0, 1, 1, 1, 0, 1])
    decisions = np.array([0, 1, 0, 1, 1, 0, 1, 1])
    sex = {"sensitive_features": {"sex": list("aaaabbbb")}, "least_shown": 0}
    expected = audit(y, decisions, **sex).frame
    assert expected["selected"].tolist() == [2, 3]
    for same in (decisions.astype(bool), decisions.astype(float), pd.Series(decisions)):
        pd.testing.assert_frame_equal(audit(y, same, **sex).frame, expected)
    labels, said = (np.where(own == 1, "yes", "no") for own in (y, decisions))
    pd.testing.assert_frame_equal(audit(labels, said, **sex).frame, expected)


def test_rates_are_those_of_by_group_at_the_same_threshold():
    y, scores, frame = rows()
    report = audit(y, scores, sensitive_features=frame["sex"], max_fpr=0.1)
    ours = report.frame.set_index("group")
    theirs = by_group(y, scores, sensitive_features=frame["sex"], max_fpr=0.1)
    rates = ("selection_rate", "tpr", "fpr", "fnr")
    shared = ["rows", "positives", *(f"{rate}{end}" for rate in rates for end in ("", "_low", "_high"))]
    pd.testing.assert_frame_equal(ours[shared], theirs[shared], check_names=False)
    found = evaluate(y, scores, sensitive_features=frame["sex"], max_fpr=0.1)
    assert report.about["threshold"] == found["threshold"]
    line = report.ratios.set_index("ratio").loc["fpr_ratio"]
    assert line["value"] == pytest.approx(found["fpr_ratio"])
    assert line["low"] < line["value"] < line["high"]
    rates = ours["fpr"]
    assert (line["lowest"], line["highest"]) == (rates.idxmin(), rates.idxmax())


def test_every_combination_is_listed_and_unknown_rows_have_their_line():
    y, scores, frame = rows()
    frame["old"] = np.arange(900) % 2 == 0
    frame.loc[:4, "race"] = None
    report, three = audit(y, scores > 0.5, sensitive_features=frame), "sex and race and old"
    names = report.frame["attribute"].unique().tolist()
    assert names == ["sex", "race", "old", "sex and race", "sex and old", "race and old", three]
    unknown = report.frame[report.frame["group"] == "unknown"]
    assert unknown["attribute"].tolist() == ["race", "sex and race", "race and old", three]
    assert (unknown["rows"] == 5).all()
    assert not unknown["compared"].any()
    assert report.frame.groupby("attribute")["rows"].sum().tolist() == [900] * 7
    assert "unknown" not in {*report.pairs["group"], *report.pairs["other"]}


def test_small_groups_are_shown_and_not_compared():
    decisions = np.tile([1, 0], 1010)
    race = {"sensitive_features": {"race": np.repeat(["a", "b", "c"], [1700, 300, 20])}}
    frame = audit(None, decisions, **race).frame
    assert frame["compared"].tolist() == [True, True, False]
    assert frame["reason"][2] == "20 rows, 0.99 % of all: fewer than 30 and less than 1 %"
    assert frame["selection_rate"][2] == 0.5
    assert np.isnan(frame["impact_ratio"][2])
    assert audit(None, decisions, **race, min_group_size=0).frame["compared"].all()
    by_share = audit(None, decisions, **race, least_share=0.2).frame
    assert by_share["compared"].tolist() == [True, False, False]
    assert by_share["reason"][1] == "300 rows, 15 % of those whose group is known: less than 20 %"


def test_groups_below_ten_rows_are_shown_without_rates():
    y, scores, _ = rows(60)
    race = np.repeat(["a", "b", "few", None], [30, 18, 9, 3])
    both = {"sensitive_features": {"race": race}, "threshold": 0.5}
    report, whole = audit(y, scores, **both), audit(y, scores, **both, least_shown=0)
    shown = report.frame.set_index("group")
    assert shown["rows"].to_dict() == {"a": 30, "b": 18, "few": 9, "unknown": 3}
    rates = shown.drop(columns=["attribute", "rows", "compared", "reason"])
    assert rates.loc[["few", "unknown"]].isna().all(axis=None)
    why = ["", "", "9 rows: fewer than 10, too few to be shown", "the group is unknown"]
    assert shown["reason"].tolist() == why
    assert shown["compared"].tolist() == [True, True, False, False]
    assert whole.frame["compared"].tolist() == [True, True, True, False]
    bins = report.calibration
    assert {*report.pairs["group"], *bins["group"]} == {"a", "b"}
    assert (bins["positives"].isna() == (bins["rows"] < 10)).all()
    assert bins["positives"].isna().any()
    law = report.local_law_144().set_index("category")
    assert law.loc["few", ["selected", "scoring_rate", "impact_ratio"]].isna().all()
    assert "few" not in str(report)
    assert [line["selected"] is None for line in report.to_dict()["groups"]] == [False, False, True, True]
    with pytest.raises(ValueError, match="`least_shown` must be"):
        audit(y, scores, **both, least_shown=-1)


def test_pairs_and_impact_ratios_have_intervals_that_cover():
    rng = np.random.default_rng(1)
    rates, sizes = np.array([0.30, 0.24, 0.15]), np.array([400, 300, 200])
    group = np.repeat(["a", "b", "c"], sizes)
    truth = dict(zip("abc", rates / 0.30, strict=True))
    inside = {"impact": [], "pair": [], "gap": [], "ratio": []}
    for _ in range(200):
        decisions = (rng.random(900) < np.repeat(rates, sizes)).astype(int)
        report = audit(None, decisions, sensitive_features={"race": group})
        for line in report.frame.itertuples():
            inside["impact"].append(line.impact_ratio_low <= truth[line.group] <= line.impact_ratio_high)
        pair = report.pairs.query("group == 'a' and other == 'c'").iloc[0]
        inside["pair"].append(pair["ratio_low"] <= 2.0 <= pair["ratio_high"])
        inside["gap"].append(pair["difference_low"] <= 0.15 <= pair["difference_high"])
        least = report.ratios.iloc[0]
        inside["ratio"].append(least["low"] <= 0.5 <= least["high"])
    assert all(np.mean(found) >= 0.93 for found in inside.values())


def test_calibration_by_group():
    y = np.array([0, 1, 1, 1, 0, 0, 0, 1])
    scores = np.array([0.2, 0.2, 0.8, 0.8, 0.2, 0.2, 0.8, 0.8])
    sex = {"sensitive_features": {"sex": list("aaaabbbb")}, "threshold": 0.5}
    report = audit(y, scores, **sex, least_shown=0)
    told = report.calibration[["group", "bin", "rows", "mean_score", "positives"]].to_numpy().tolist()
    assert told == [
        ["a", 1, 2, 0.2, 0.5],
        ["a", 2, 2, 0.8, 1.0],
        ["b", 1, 2, 0.2, 0.0],
        ["b", 2, 2, 0.8, 0.5],
    ]
    assert audit(y, scores > 0.5, sensitive_features={"sex": list("aaaabbbb")}).calibration is None


def test_what_is_written_can_be_read(tmp_path):
    y, scores, frame = rows()
    frame["sex"] = frame["sex"].map({"f": "</script><b>", "m": "men"})
    report = audit(y, scores, sensitive_features=frame, max_fpr=0.1)
    report.write_csv(tmp_path / "audit.csv")
    report.write_json(tmp_path / "audit.json")
    report.write_html(tmp_path / "audit.html")
    read = pd.read_csv(tmp_path / "audit.csv", keep_default_na=True)
    np.testing.assert_allclose(read["fpr"], report.frame["fpr"])
    told = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert [line["group"] for line in told["groups"]] == report.frame["group"].tolist()
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "</script><b>" not in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        ([0.2, 1.5, 0.4, 0.1], {}, r"Scores must be in \[0, 1\], got 1.5 in row 1: scale them"),
        (
            ["no", "yes", "later", "no"],
            {},
            "of two values, 0 and 1 or labels, got 'later', 'no', 'yes': pass 0 and 1",
        ),
        ([0, 1, 0, 1], {"threshold": 0.5}, "are for scores, and these are decisions: leave them out"),
        ([0.1, 0.2, np.inf, 0.4], {}, "`scores` must be finite, got inf in row 2; drop or fill such rows"),
        ([0, 1, 0, 1], {"least_share": 1.5}, r"`least_share` must be in \[0, 1\), got 1.5"),
        ([0, 1, 0, 1], {"confidence": 2}, r"`confidence` must be in \(0, 1\), got 2"),
        ([0, 1, 0, 1], {"sensitive_features": list("aab")}, "has 3 rows, and there are 4 decisions"),
        ([0, 1, 0, 1], {"sensitive_features": {"sex": [None] * 4}}, "'sex' is unknown in every row"),
        ([], {}, "must have at least one row, got none"),
    ],
)
def test_what_cannot_be_audited(given, settings, message):
    y = None if given == [] else [0, 1, 0, 1]
    settings = {"sensitive_features": list("aabb")} | settings
    with pytest.raises(ValueError, match=message):
        audit(y, given, **settings)


@pytest.mark.parametrize("y", [None, [0, 1, 0, 1]])
@pytest.mark.parametrize(
    "given", [[0.0, np.nan, np.nan, 1.0], [0.2, np.nan, np.nan, 0.4], [False, None, None, True], [None] * 4]
)
def test_missing_decisions_are_refused_and_not_counted_as_selected(y, given):
    first = given.index(None) if None in given else 1
    message = f"in every row, got a missing value in row {first}, the first of {4 if first == 0 else 2}; drop"
    with pytest.raises(ValueError, match=f"`scores_or_decisions` must hold a score or a decision {message}"):
        audit(y, given, sensitive_features=list("aabb"), threshold=None)


def test_a_group_without_weight_takes_no_impact_ratio_from_the_others():
    settings = {"sensitive_features": list("aabbcc"), "sample_weight": [1, 1, 1, 1, 0, 0]}
    frame = audit(None, [1, 1, 1, 0, 1, 0], **settings, least_shown=0).frame
    np.testing.assert_array_equal(frame["impact_ratio"], [1.0, 0.5, np.nan])
    for end in ("low", "high"):
        assert frame[f"impact_ratio_{end}"].notna().tolist() == [True, True, False]


def test_rows_without_weight_set_no_threshold_and_a_label_needs_weight():
    y, scores, groups = [0, 0, 1, 1, 1, 0], [0.2, 0.5, 0.6, 0.7, 0.9, 0.1], list("aabbab")
    for weights in ([1, 1, 0, 1, 1, 1], [2, 1, 0, 3, 1, 1]):
        report = audit(y, scores, sensitive_features=groups, max_fpr=0.2, sample_weight=weights)
        assert report.about["threshold"] == threshold_at_fpr(y, scores, 0.2, sample_weight=weights) == 0.7
        assert report.about["selected"] == 2
    for given, weights in ((scores, [0, 0, 1, 1, 1, 0]), ([0, 1, 1, 0, 1, 1], [1, 1, 0, 0, 0, 1])):
        for measured in (audit, evaluate):
            with pytest.raises(
                ValueError, match="`sample_weight` must be above zero in some row of each lab"
            ):
                measured(y, given, sensitive_features=groups, sample_weight=weights)


def test_scores_without_labels_need_a_threshold():
    with pytest.raises(ValueError, match="Without labels no false-positive rate is known: pass `threshold`"):
        audit(None, [0.1, 0.9], sensitive_features=list("ab"))
    report = audit(
        None, [0.1, 0.9, 0.5, 0.6], sensitive_features=list("aabb"), budget=("top_k", 2), least_shown=0
    )
    assert report.frame["selected"].tolist() == [1, 1]
    assert report.ratios["value"][0] == 1.0


def test_an_audit_prints_its_ratios_and_names_the_positive_label():
    y, decisions = [1, 2, 2, 1, 2, 2], [1, 2, 2, 2, 2, 1]
    report = audit(y, decisions, sensitive_features={"sex": list("mmmfff")}, least_shown=0)
    assert report.about["positive_label"] == "2"
    first, *ratios = repr(report).splitlines()
    assert first == "Audit of 6 rows by sex, 4 selected"
    assert ratios[1].startswith("sex: tpr_ratio 0.500 (")
    assert ratios[1].endswith("), f over m")
    assert audit(None, [1, 0, 1, 0], sensitive_features=list("aabb")).about["positive_label"] is None
