"""One rule for rows whose group is unknown, through every public entry: counted, and compared nowhere."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import fado
from fado import metrics
from fado.aim import trade_off
from fado.cli._app import build_app
from fado.experiment import Experiment
from fado.interventions import FairlearnGrid
from fado.valuation import removal_effects

pytestmark = pytest.mark.filterwarnings("ignore:Protected attribute 'z' is unknown")

# Of 100 negatives each, 10 of "f" and 20 of "m" score high, and none of the unknown: the ratio is 0.5, not 0.
# Of 40 and 60 positives of "f" and "m", half score high, and all 100 of the unknown, half of whose rows are
# positive, more than of any group.
CELLS = [("f", 0, 1, 10), ("f", 0, 0, 90), ("m", 0, 1, 20), ("m", 0, 0, 80), (None, 0, 0, 100)]
CELLS += [("f", 1, 1, 20), ("f", 1, 0, 20), ("m", 1, 1, 30), ("m", 1, 0, 30), (None, 1, 1, 100)]
Z, Y, HIGH = (np.repeat([cell[j] for cell in CELLS], [cell[3] for cell in CELLS]) for j in range(3))
KNOWN = np.array([group is not None for group in Z])
X = pd.DataFrame({"high": HIGH, "noise": np.random.default_rng(0).normal(size=len(Y))})
SETTINGS = {"n_estimators": 5, "verbosity": -1, "n_jobs": 1}


class HighScores(LogisticRegression):
    """Scores rows by the first column."""

    def predict_proba(self, X):
        high = np.asarray(X, dtype=float)[:, 0]
        return np.column_stack([1 - high, high])


def ratio_of(name):
    def measured(z):
        return getattr(metrics, name)(Y, HIGH, **z)

    return measured


def of_evaluate(z):
    return metrics.evaluate(Y, HIGH, **z)["fpr_ratio"]


def of_by_group(z):
    table = metrics.by_group(Y, HIGH, **z)
    assert table["rows"].to_dict() == {"f": 140, "m": 160, "unknown": 200}
    assert table["reason"].to_dict() == {"f": "", "m": "", "unknown": "unknown"}
    rates = table.loc[table["compared"], "fpr"]
    return rates.min() / rates.max()


def of_audit(z):
    report = metrics.audit(Y, HIGH, **z)
    assert report.frame["group"].tolist() == ["f", "m", "unknown"]
    return report.ratios.set_index("ratio")["value"]["fpr_ratio"]


def of_frame(z):
    frame = metrics.predictions_frame(Y, HIGH, **z)
    assert (frame["z"] == "unknown").tolist() == (~KNOWN).tolist()
    return metrics.fpr_ratio(
        frame["label_value"], frame["score"], sensitive_features=frame["z"], unknown="unknown"
    )


def of_scorer(z):
    model = HighScores().fit(X, Y)
    score = metrics.aim_scorer("fpr_ratio", 0.9, budget=("threshold", 0.5))(model, X, Y, **z)
    return score + 0.9 + 1  # how far below the line


def aimed_at(z, at_least=0.4):
    model = fado.AimedEstimator(
        HighScores(), at_least=at_least, budget=("threshold", 0.5), max_fits=2, cv=2, random_state=0
    )
    return model.fit(X, Y, **z)


def of_aim(z):
    return aimed_at(z).metrics_["fpr_ratio"]


def of_check(z):
    model = aimed_at(z).to_model()
    assert "Not compared in ratios: unknown." in model.card()
    check = model.check(X, Y, z["sensitive_features"])  # the model remembers `unknown`
    groups = {group["group"]: (group["rows"], group["reason"]) for group in check.groups}
    assert groups == {"f": (140, ""), "m": (160, ""), "unknown": (200, "unknown")}
    assert "'z' is unknown in 200 of 500 rows, which are compared with no group." in check.notes
    return check.metrics["fpr_ratio"]


def of_influence(z):
    """Measure a LightGBM model on the rows that it learns from."""
    rows = X[["high"]]
    validation = rows, Y, z["sensitive_features"]
    settings = {"max_fpr": 0.1, "n_jobs": 1, "random_state": 0, "parts": [[0]]}
    values = fado.Valuation.from_values({"y": HIGH, "z": HIGH})
    model = LGBMClassifier(**SETTINGS)
    frame = removal_effects(values, model, rows, Y, **z, validation=validation, **settings)
    return frame.set_index("column")["metric"]["z"]


def of_explore(z):
    seen = fado.explore(X, Y, **z, valuation=fado.Valuation({"y": HIGH / 2, "z": HIGH / 2}), retrain=0)
    (shown,) = seen.to_dict()["attributes"]
    assert [(group["name"], group["rows"], group["compared"]) for group in shown["groups"]] == [
        ("f", 140, True),
        ("m", 160, True),
        ("unknown", 200, False),
    ]
    assert shown["left_out"] == "The group of 200 rows is unknown: they are compared with no other."
    gaps = {gap["name"]: gap for gap in shown["biases"]}
    assert "unknown" not in " ".join(str(gap["sentence"]) for gap in gaps.values())
    return 0.5


MEASURES = [ratio_of("fpr_ratio"), ratio_of("equalized_odds_ratio"), of_evaluate, of_by_group, of_audit]
MEASURES += [of_frame, of_scorer, of_aim, of_check, of_influence, of_explore]


@pytest.mark.parametrize("measured", MEASURES)
def test_ratios_are_those_of_the_others(measured, attribute):
    assert measured(attribute) == pytest.approx(0.5)


@pytest.fixture(params=["missing", "declared", "declared number"])
def attribute(request):
    if request.param == "missing":
        return {"sensitive_features": pd.Series(Z, name="z")}
    if request.param == "declared":
        declared = pd.Series(np.where(KNOWN, Z, "?"), name="z")
        return {"sensitive_features": declared, "unknown": ["?", "never there"]}
    return {"sensitive_features": pd.Series(Z, name="z").fillna("-1"), "unknown": -1}


@pytest.mark.parametrize(
    "intervention",
    [
        fado.RandomPrevalenceSampler(random_state=0),
        fado.UtilityAwarePrevalenceSampler(),
        fado.Reweigher(),
        fado.UtilityAwareReweigher(prevalence_correction=1.0, normalize=False, floor=0.5),
        FairlearnGrid("DemographicParity", point=0.6),
    ],
    ids=lambda intervention: type(intervention).__name__,
)
def test_training_sets_leave_rows_of_no_known_group_as_they_are(intervention, attribute):
    if isinstance(intervention, FairlearnGrid):
        pytest.importorskip("fairlearn")
    utilities = fado.Valuation({"y": X["noise"].rank(pct=True), "z": X["noise"].rank(pct=True)})
    valued = {"valuation": utilities} if intervention.uses_values else {}
    chosen = intervention.fit(X, Y, **attribute, **valued).training_set_
    factors = np.zeros(len(Y))
    factors[chosen.rows] = 1.0 if chosen.weights is None else chosen.weights
    rates = [np.average(Y[group == Z], weights=factors[group == Z]) for group in ("f", "m")]
    if not isinstance(intervention, FairlearnGrid):  # which does not make them equal
        assert rates[0] == pytest.approx(rates[1], abs=0.01)
        assert max(rates) < 0.4  # the highest of theirs was 0.375, that of the unknown rows is 0.5
    if not intervention.uses_values or chosen.weights is None:
        assert (factors[~KNOWN] == 1).all()


def test_no_rows_are_made_of_an_unknown_group(attribute):
    sampler = fado.UtilityAwareOverSampler(random_state=0, valuator=fado.OutOfBagEntropy(n_bags=2))
    valuation = fado.Valuation({"y": HIGH / 2, "z": HIGH / 2})
    sampler.fit_resample(X, Y, **attribute, valuation=valuation)
    # 40 positives of 140 are to be 37.5 %, as 60 of 160 are: 20 more of 160
    assert sampler.synthetic_.sum() == 20
    assert (Z[sampler.parents_] == "f").all()


def test_aiming_moves_and_bounds_the_others(attribute):
    with pytest.warns(UserWarning, match="The line fpr_ratio 0.8 was not reached"):
        model = aimed_at(attribute, at_least=0.8)
    assert model.log_factors_["group"].tolist() == ["f", "m"]
    assert not any("unknown" in column for column in model.path_.columns)


def test_values_keep_a_class_for_unknown_rows(attribute, tmp_path):
    z = pd.Series(Z, name="z")
    fitted = [
        fado.OutOfBagEntropy(
            n_bags=5, keep_models=True, keep_probabilities=True, random_state=0, n_jobs=1
        ).fit(X, Y, **given)
        for given in ({"sensitive_features": z}, attribute)
    ]
    first, second = (valuator.valuation_ for valuator in fitted)
    assert first.classes["z"] == second.classes["z"] == ("f", "m", "unknown")
    pd.testing.assert_frame_equal(first.values, second.values)
    new = fitted[1].value(X, Y, attribute["sensitive_features"]).field("label_probability", "z")
    np.testing.assert_array_equal(new, fitted[0].value(X, Y, z).field("label_probability", "z"))
    fitted[1].models_.save(tmp_path / "models")
    loaded = fado.valuation.load_models(tmp_path / "models")
    again = loaded.value(X, Y, attribute["sensitive_features"]).field("label_probability", "z")
    np.testing.assert_array_equal(again, new)
    curve = trade_off(second, Y, sensitive_features=attribute["sensitive_features"], max_fpr=0.1)
    assert not any("unknown" in column for column in curve.columns)


def test_an_experiment_counts_them_and_leaves_them_out(tmp_path):
    X.assign(y=Y, z=np.where(KNOWN, Z, "?")).to_csv(tmp_path / "rows.csv", index=False)
    config = {
        "data": {"path": str(tmp_path / "rows.csv"), "target": "y", "protected": "z", "unknown": "?"},
        "split": {"method": "random", "train": 0.4, "validation": 0.3, "test": 0.3},
        "interventions": {"rw": True},
        "models": {"count": 1, "space": {"n_estimators": 5}},
        "evaluation": {"max_fpr": 0.3},
    }
    results = Experiment(config).run(tmp_path / "store", n_jobs=1)
    assert [entry["group"] for entry in results.left_out] == ["z=unknown"]
    assert results.frame["validation_fpr_ratio"].gt(0).all()
    seen = {(entry["group"], entry["left_out"], entry["unknown"]) for entry in results.summary}
    assert seen == {("z='f'", False, False), ("z='m'", False, False), ("z=unknown", True, True)}


def run(*words):
    done = CliRunner().invoke(build_app(), [word for text in words for word in str(text).split()])
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(("protected", "unknown"), [("z", "?"), ("age>=50", "-1")])
def test_commands_take_values_that_mean_unknown(tmp_path, monkeypatch, protected, unknown):
    monkeypatch.chdir(tmp_path)
    age = np.where(KNOWN, 40 + 20 * (Z == "m"), -1)
    X.assign(y=Y, z=np.where(KNOWN, Z, "?"), age=age).to_csv("rows.csv", index=False)
    named = f"--protected {protected} --unknown {unknown}"
    audited = run("audit rows.csv --label y --decision high --out audit.csv", named)
    assert "fpr_ratio 0.500" in audited
    row = pd.read_csv("audit.csv").set_index("group").loc["unknown", ["rows", "compared", "reason"]]
    assert row.tolist() == [200, False, "the group is unknown"]
    run("reweigh rows.csv --target y --intervention rw --out w.csv", named)
    weights = pd.read_csv("w.csv")["weight"]
    assert (weights[~KNOWN] == 1).all()
    assert np.ptp([np.average(Y[group == Z], weights=weights[group == Z]) for group in ("f", "m")]) < 1e-9
    run("aim rows.csv --target y --drop z --drop age --at-least 0.4 --threshold 0.5 --out model", named)
    predict = "predict model rows.csv --target y --out s.csv"
    checked = run(predict, f"--protected {protected}")  # the model remembers `--unknown`
    assert "is unknown in 200 of 500 rows, which are compared with no group" in checked
    assert run(predict, named) == checked


def test_one_warning_names_the_attribute_and_the_count():
    z = {"sensitive_features": {"sex": Z}}
    with pytest.warns(UserWarning, match="'sex' is unknown in 200 of 500 rows: they are counted") as caught:
        metrics.evaluate(Y, HIGH, **z)
    assert len(caught) == 1
    everyone = {"sensitive_features": {"sex": ["?"] * len(Y)}, "unknown": "?"}
    for measured in (metrics.evaluate, metrics.audit):
        with pytest.raises(ValueError, match="'sex' is unknown in every row: leave it out, or correct"):
            measured(Y, HIGH, **everyone)
    with pytest.raises(ValueError, match="'sex' is unknown in every row"):
        fado.Reweigher().fit(X, Y, **everyone)
