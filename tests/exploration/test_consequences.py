"""What changing rows does: measured on validation rows, by hand and on tables whose truth is known."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from tests.exploration.conftest import Case

from fado import TreeInfluence, Valuation
from fado.exploration._consequences import Consequences, GroupDecisions, task_without
from fado.tabular import read_problem
from fado.valuation import BaseValuator

MODEL = LGBMClassifier(n_estimators=15, num_leaves=7, verbosity=-1)
N = 3000


@pytest.fixture(scope="module")
def case():
    """Positives are more frequent where "c" is high, and so is one group: negatives there are mistaken."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    z = np.where(X["c"] + 0.3 * rng.normal(size=N) > 0, "high", "low")
    y = pd.Series(np.where(X["a"] + X["c"] + rng.normal(size=N) > 0.8, "yes", "no"), name="late")
    valuator = TreeInfluence(MODEL, max_fpr=0.2, n_bags=3, random_state=0)
    valuation = valuator.fit(X, y, sensitive_features={"z": z}).valuation_
    return Case(X, y, {"z": z}, valuation)


def explored(case, **settings):
    return case.seen(**{"retrain": 72, "estimator": MODEL, "n_jobs": 1} | settings)


def part_of(seen):
    return seen.to_dict()["attributes"][0]["effects"]


@pytest.fixture(scope="module")
def seen(case):
    return explored(case)


def test_removing_the_most_harmful_rows_raises_the_ratio(seen):
    effects = part_of(seen)
    points = [one["measured"] for one in effects["curve"]]
    assert [one["rows"] for one in effects["curve"]] == [60, 150, 300]
    assert all(sum(cell["rows"] for cell in one["cells"]) <= one["rows"] for one in effects["curve"])
    assert points[-1]["ratio_change"] > 1.96 * points[-1]["ratio_error"] > 0
    assert points[0]["ratio_change"] < points[-1]["ratio_change"]

    changes = [one["measured"]["ratio_change"] for one in effects["slices"]]
    assert changes == sorted(changes, reverse=True)
    assert len(changes) > 1


def test_how_it_was_measured_is_told(seen):
    effects = part_of(seen)
    told = effects["measured"]
    assert told["search_rows"] + told["validation_rows"] == N
    assert abs(told["search_rows"] - told["validation_rows"]) <= 8  # a row per cell of group and label
    assert told["note"] == ""
    n_changes = sum(one["measured"] is not None for one in [*effects["slices"], *effects["curve"]])
    assert told["fits"] == 6 * (1 + n_changes) + 2 <= 72 + 2
    assert 0 < told["before"]["ratio"] < 1
    assert effects["reason"] == ""
    json.dumps(seen.to_dict(), allow_nan=False)


def test_frames_hold_what_was_measured(seen):
    measured, frames = part_of(seen)["slices"][0]["measured"], seen.effects("z")
    for name in ("ratio_change", "ratio_error", "performance_change", "performance_error"):
        assert frames["slices"][f"measured_{name}"][0] == measured[name]
    assert frames["changes"]["slice"].tolist()[-2:] == ["the most harmful 5 %", "the most harmful 10 %"]
    assert frames["changes"]["ratio_change"][0] == measured["ratio_change"]
    assert frames["curve"]["share"].tolist() == [0.02, 0.05, 0.1]


def test_no_change_touches_most_of_a_cell(case, seen):
    holds = {" = ": lambda own, text: own.astype(str) == text, " > ": lambda own, text: own > float(text)}
    holds[" ≤ "] = lambda own, text: own <= float(text)
    table = case.X.assign(late=case.y, z=case.z["z"])
    for one in part_of(seen)["slices"]:
        rows = np.ones(N, dtype=bool)
        for condition in one["conditions"]:
            sign = next(sign for sign in holds if sign in condition)
            name, _, text = condition.partition(sign)
            rows &= holds[sign](table[name], text).to_numpy()
        assert abs(rows.sum() - one["rows"]) <= 2  # edges are written with six digits
        cells = table.groupby(["z", "late"]).size()
        gone = table[rows].groupby(["z", "late"]).size().reindex(cells.index, fill_value=0)
        assert (gone <= cells / 2).all()


def test_the_same_seed_measures_the_same_with_any_workers(case, seen):
    assert explored(case, n_jobs=2).to_dict() == seen.to_dict()
    assert part_of(explored(case, random_state=1))["measured"] != part_of(seen)["measured"]


def test_every_model_has_the_caller_s_workers_and_bar_and_search_rows_alone_find_candidates(
    case, monkeypatch
):
    fits, real = [], BaseValuator.fit_problem

    def watched(self, problem, validation=None):
        fits.append((type(self).__name__, self.n_jobs, self.progress, problem.n_rows, validation))
        return real(self, problem, validation)

    monkeypatch.setattr(BaseValuator, "fit_problem", watched)
    found = part_of(explored(case, valuation=None, retrain=12, progress=True))
    assert [fit[:3] for fit in fits] == [("OutOfBagEntropy", 1, True), *[("TreeInfluence", 1, True)] * 2]
    validated = [fit[4].n_rows for fit in fits[1:]]
    assert sum(validated) == found["measured"]["search_rows"]
    assert [fit[3] for fit in fits[1:]] == [N - n_rows for n_rows in validated]


def test_features_of_any_library_and_either_positive_label_are_measured_alike(case, seen):
    import polars as pl

    other = case._replace(X=pl.from_pandas(case.X))
    assert part_of(explored(other))["measured"] == part_of(seen)["measured"]
    renamed = case._replace(y=case.y.map({"yes": "aye", "no": "nay"}))
    swapped = part_of(explored(renamed, pos_label="aye"))
    assert swapped["measured"] == part_of(seen)["measured"]
    assert swapped["slices"][0]["measured"] == part_of(seen)["slices"][0]["measured"]


def test_removed_rows_are_not_trained_on(case):
    problem = read_problem(case.X, case.y, case.z, sample_weight=np.full(N, 2.0))
    held, marked = np.arange(0, N, 2, dtype=np.int32), np.arange(N) < 10
    plain, gone = (task_without(problem, MODEL, rows, held[::3], 6) for rows in (marked & False, marked))
    assert not np.isin(plain.rows, plain.scored).any()
    assert len(plain.rows) + len(plain.scored) == N
    assert gone.rows.tolist() == [row for row in plain.rows if row >= 10]
    assert len(gone.weights) == len(gone.rows)
    assert {one.seed for one in (plain, gone)} == {6}
    assert marked.sum() == 10


def test_other_estimators_are_measured_and_lightgbm_ranks(case):
    linear = part_of(explored(case, estimator=LogisticRegression(), retrain=24))
    assert linear["measured"]["note"] == ""
    goss = LGBMClassifier(n_estimators=5, boosting_type="goss", verbosity=-1)  # its leaves tell no effects
    assert part_of(explored(case, estimator=goss, retrain=12))["reason"] == ""
    note = part_of(explored(case, estimator=KNeighborsClassifier(25), retrain=36))["measured"]["note"]
    assert note == "KNeighborsClassifier takes no seed: repeats differ only by their folds."


def test_values_of_other_methods_find_candidates_and_the_page_says_so(case):
    harm = np.where(case.X["b"] > 1.5, -0.01, 0.001) + 1e-5 * np.arange(N) / N
    values = Valuation.from_values({"y": np.zeros(N), "z": harm})
    found = part_of(explored(case, valuation=values, retrain=24))
    assert found["measured"]["note"].startswith("Slices were found with the values that you passed.")
    assert found["slices"][0]["conditions"][0].startswith("b > 1.")
    assert found["slices"][0]["measured"] is not None


def test_entropies_are_no_effects_and_influence_finds_candidates(case):
    found = part_of(explored(Case(case.X[["a", "b"]], case.y, case.z), retrain=12))
    assert (found["ratio"], found["performance"]) == ("FPR ratio", "TPR at 5 % FPR")
    assert found["measured"]["fits"] <= 12 + 2
    assert {cell["group"] for cell in found["cells"]} == {"high", "low"}
    assert any(cell["ratio_effect"] != 0 for cell in found["cells"])


def test_settings_of_influence_values_are_those_that_are_measured(case):
    valuator = TreeInfluence(MODEL, fairness="selection_rate_ratio", performance="accuracy", random_state=0)
    valuation = valuator.fit(case.X, case.y, sensitive_features=case.z).valuation_
    found = part_of(explored(case, valuation=valuation, retrain=12))
    assert (found["ratio"], found["performance"]) == ("selection-rate ratio", "accuracy")
    assert found["measured"]["before"]["performance"] > 0.7  # accuracy, where true positives are fewer


def test_groups_of_rows_stay_together_and_widen_errors(case):
    alone, together = (
        part_of(explored(case, retrain=12, groups=people))["measured"]["before"]["ratio_error"]
        for people in (None, np.repeat(np.arange(N // 4), 4))
    )
    assert together != alone


def test_what_cannot_be_measured_is_said_and_not_shown(case):
    X, y, z = case.X[["a", "b"]], case.y, case.z
    few = "Too few rows for retraining: at a budget of 5 % it needs 240 negatives, and there are 43."
    for given, sentence in (
        (Case(X[:60], y[:60], {"z": z["z"][:60]}), few),
        (Case(X, np.arange(N) % 3, z), "Retraining needs a target with two classes, and y has 3 classes"),
        (Case(X, y, {"c": case.X["c"]}), "Retraining needs groups, and c is a number"),
    ):
        part = explored(given).to_dict()["attributes"][0]
        assert part["not_measured"].startswith(sentence)
        assert "effects" not in part


def test_counts_are_of_all_rows_also_if_models_learn_from_a_sample(case):
    seen = explored(case, max_rows=2000, retrain=36)
    part = part_of(seen)
    assert part["measured"]["search_rows"] + part["measured"]["validation_rows"] == 2000
    assert "Models were trained on 2,000 rows drawn at random; counts are of all 3,000 rows." in part["lead"]
    assert [one["rows"] for one in part["curve"]] == [60, 150, 300]
    for one in part["slices"]:
        assert one["share"] == pytest.approx(one["rows"] / N)
    assert part["harmful"] == (case.valuation["z"] < 0).sum()
    assert sum(cell["rows"] for cell in part["harmful_rows"]) == part["harmful"]
    changes = seen.effects()["changes"].set_index("slice")["rows"].to_dict()
    assert changes["the most harmful 10 %"] == 300


def compared(codes, positive, weights=None, blocks=None):
    """Make the comparison of two groups' decisions, without the models around it."""
    problem = SimpleNamespace(sample_weight=weights, blocks=blocks)
    members = [np.flatnonzero(~np.asarray(positive) & (codes == group)) for group in (0, 1)]
    return GroupDecisions(problem, np.arange(len(codes), dtype=np.int32), members, missed=False, seed=0)


def test_a_change_is_that_of_the_groups_rates():
    # 10 negatives of group 0, 20 of group 1, 10 positives
    codes, positive = np.repeat([0, 1, 0], [10, 20, 10]), np.repeat([False, True], [30, 10])
    before, after = np.zeros((2, 3, 40)), np.zeros((2, 3, 40))
    before[:, 0, :1], before[:, 0, 10:18] = 1, 1  # 0.1 and 0.4
    after[:, 0, :2], after[:, 0, 10:18] = 1, 1  # 0.2 and 0.4
    before[:, 1], after[:, 1] = np.nan, np.nan
    before[:, 1, 30:], after[:, 1, 30:] = 0.5, 0.25
    own = compared(codes, positive)
    untouched, changed = (tuple(np.swapaxes(one, 0, 1)) for one in (before, after))
    found = own._change(untouched, changed)
    assert own.level(untouched)["ratio"] == pytest.approx(0.25)
    assert own.level(changed)["ratio"] == pytest.approx(0.5)
    assert found["ratio_change"] == pytest.approx(0.25)
    assert found["performance_change"] == pytest.approx(-0.25)
    assert found["performance_error"] == 0.0
    assert own._noise(untouched, [changed]) == [0.0, 0.0]


def test_errors_are_those_of_repeated_draws():
    rng = np.random.default_rng(0)
    n_rows, changes, errors = 4000, [], []
    codes, positive = np.repeat([0, 1], n_rows // 2), np.zeros(n_rows, dtype=bool)
    for _ in range(200):
        before = rng.random(n_rows) < np.where(codes == 0, 0.05, 0.1)
        after = before.copy()
        after[codes == 0] |= rng.random(n_rows // 2) < 0.02  # 0.069 of group 0
        none = np.zeros((1, n_rows))
        decided = (own[np.newaxis].astype(float) for own in (before, after))
        found = compared(codes, positive)._change(*((own, none, none) for own in decided))
        changes.append(found["ratio_change"])
        errors.append(found["ratio_error"])
    assert np.mean(changes) == pytest.approx(0.19, abs=0.01)
    assert np.mean(errors) == pytest.approx(np.std(changes), rel=0.12)


def test_errors_of_the_true_positive_rate_count_the_threshold():
    """1,500 rows, as in a fold: the threshold moves with the negatives, and with it the rate."""
    rng = np.random.default_rng(0)
    positive, changes, errors = np.arange(1500) % 4 == 0, [], []
    codes = np.arange(1500) // 2 % 2
    labels = SimpleNamespace(is_positive=positive)
    fake = SimpleNamespace(
        performance="tpr_at_fpr", max_fpr=0.05, _problem=SimpleNamespace(labels=labels, sample_weight=None)
    )
    for _ in range(200):
        both = rng.normal(size=1500) + 1.5 * positive
        scores = [both, both + 0.7 * rng.normal(size=1500)]
        before, after = (Consequences._decisions(fake, one, np.arange(1500)) for one in scores)
        found = compared(codes, positive)._change(tuple(before[:, np.newaxis]), tuple(after[:, np.newaxis]))
        changes.append(found["performance_change"])
        errors.append(found["performance_error"])
    assert np.mean(errors) == pytest.approx(np.std(changes), rel=0.12)  # 0.71 of it by the positives alone


def test_rows_of_one_block_count_as_one():
    codes, positive = np.repeat([0, 1], 400), np.zeros(800, dtype=bool)
    scored = np.random.default_rng(0).random(100).repeat(8)[np.newaxis]
    one, none = np.ones((1, 800)), np.zeros((1, 800))
    args = (one, none, none), (one, scored, none)
    alone = compared(codes, positive)._change(*args)["performance_error"]
    blocks = np.repeat(np.arange(100), 8)
    together = compared(codes, positive, blocks=blocks)._change(*args)["performance_error"]
    assert alone == pytest.approx(scored.std() / np.sqrt(800))
    assert together == pytest.approx(np.sqrt(8) * alone)
