"""The contract of valuators: any of them, also a user's own, serves wherever one is asked for."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from fado import (
    DataShapley,
    InBagEntropy,
    KNNShapley,
    LinearUtility,
    OutOfBagEntropy,
    ReweighedEstimator,
    TreeInfluence,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
    explore,
)
from fado.cli._app import build_app
from fado.experiment import Experiment
from fado.valuation import BaseValuator, make_valuator, register_valuator, valuator_names

RNG = np.random.default_rng(0)
N = 300
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)}, index=RNG.permutation(N) + 1000)
SEX = pd.Series(RNG.choice(["f", "m"], size=N), name="sex", index=X.index)
Y = (X["a"] + (SEX == "m") + RNG.normal(size=N) > 1).astype(int)


class SignedValues(BaseValuator):
    """Gives signed values that depend on the seed alone."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def _value(self, problem, validation, seed):
        self.validated_ = None if validation is None else validation.n_rows
        generator = np.random.default_rng(seed)
        names = [variable.name for variable in problem.variables]
        return Valuation.from_values({name: generator.normal(size=problem.n_rows) for name in names})


class Plain:
    """Has nothing of scikit-learn but `fit`."""

    def fit(self, X, y, sensitive_features=None):
        self.valuation_ = Valuation.from_values({"y": np.arange(len(X)), "sex": np.arange(len(X))})
        return self


@pytest.mark.parametrize(
    "valuator", [SignedValues(), Plain(), InBagEntropy()], ids=lambda v: type(v).__name__
)
def test_it_serves_samplers_and_reweighers(valuator):
    sampler = UtilityAwarePrevalenceSampler(valuator=valuator, random_state=0)
    rows = sampler.fit(X, Y, sensitive_features=SEX).sample_indices_
    again = UtilityAwarePrevalenceSampler(random_state=0)
    again.fit(X, Y, sensitive_features=SEX, valuation=sampler.valuation_)
    np.testing.assert_array_equal(rows, again.sample_indices_)
    assert 0 < len(rows) < N
    weights = UtilityAwareReweigher(valuator=valuator, random_state=0).fit(X, Y, sensitive_features=SEX)
    assert weights.sample_weight_.mean() == pytest.approx(1)
    assert weights.sample_weight_.min() == 0


def test_the_least_of_signed_utilities_go_first():
    values = np.where(Y == 1, 0.0, RNG.normal(size=N))
    valuation = Valuation.from_values({"y": values, "sex": np.zeros(N)})
    sampler = UtilityAwarePrevalenceSampler(LinearUtility(alpha=1.0), random_state=0)
    kept = sampler.fit(X, Y, sensitive_features=SEX, valuation=valuation).sample_indices_
    gone = np.setdiff1d(np.arange(N), kept)
    group = SEX.iloc[gone].unique()
    assert len(group) == 1
    stayed = np.intersect1d(kept, np.flatnonzero((group[0] == SEX) & (Y == 0)))
    assert values[gone].max() < values[stayed].min()


def test_explore_draws_signed_values_around_their_neutral_point():
    valuation = SignedValues(random_state=1).fit(X, Y, sensitive_features=SEX).valuation_
    seen = explore(X, Y, sensitive_features=SEX, valuation=valuation, retrain=0).to_dict()
    attribute = seen["attributes"][0]
    scale = attribute["values"]["scales"]["v_z"]
    assert scale["neutral"] == 0
    assert scale["low"] == -scale["high"] < -1
    assert sum(sum(cell["histogram"]) for cell in attribute["values"]["v_z"]) == N
    assert list(attribute["alpha"]["utilities"]) == ["linear"]  # the others refuse signed values
    assert attribute["plane"]["corners"][0]["name"] == "high for both"
    assert sum(corner["rows"] for corner in attribute["plane"]["corners"]) == N
    assert "high for both" in explore(X, Y, sensitive_features=SEX, valuation=valuation, retrain=0).html()


def test_validation_rows_are_read_and_handed_on():
    validation = (X[:50], Y[:50], SEX[:50])
    valuator = SignedValues(random_state=1).fit(X, Y, sensitive_features=SEX, validation=validation)
    assert valuator.validated_ == 50
    with pytest.raises(
        ValueError, match=r"`validation` must be a tuple of three, \(X, y, sensitive_features\)"
    ):
        valuator.fit(X, Y, validation=(X, Y))
    plain, validated = (
        OutOfBagEntropy(n_bags=5, random_state=0).fit(X, Y, sensitive_features=SEX, validation=own).valuation_
        for own in (None, validation)
    )
    assert_frame_equal(plain.values, validated.values)


def test_groups_and_the_index_of_a_pandas_table_are_handed_on():
    persons = RNG.integers(0, 50, size=N)
    sampler = UtilityAwarePrevalenceSampler(valuator=OutOfBagEntropy(n_bags=5), random_state=0)
    sampler.fit_resample(X, Y, sensitive_features=SEX, groups=persons)
    by_hand = OutOfBagEntropy(n_bags=5, random_state=0).fit(X, Y, sensitive_features=SEX, groups=persons)
    assert_frame_equal(sampler.valuation_.values, by_hand.valuation_.values)
    assert by_hand.valuation_.values.index.equals(X.index)
    assert list(by_hand.valuation_.take([5, 2]).values.index) == list(X.index[[5, 2]])


def test_everything_that_fit_takes_is_requested():
    with config_context(enable_metadata_routing=True):
        requests = OutOfBagEntropy().get_metadata_routing().fit.requests
    names = ["sensitive_features", "unknown", "sample_weight", "groups", "validation"]
    assert requests == dict.fromkeys(names, True)


def test_a_search_reaches_the_utility_of_a_reweigher():
    valuation = InBagEntropy(random_state=0).fit(X, Y, sensitive_features=SEX).valuation_
    model = ReweighedEstimator(DecisionTreeClassifier(max_depth=2), UtilityAwareReweigher(LinearUtility(0.5)))
    search = GridSearchCV(model, {"reweigher__utility__alpha": [0.0, 1.0]}, cv=3)
    search.fit(X, Y, sensitive_features=SEX, valuation=valuation)
    alphas = [entry["reweigher__utility__alpha"] for entry in search.cv_results_["params"]]
    assert alphas == [0.0, 1.0]
    assert search.best_estimator_.reweigher_.utility.alpha == search.best_params_["reweigher__utility__alpha"]


def test_reweighers_seed_what_they_draw():
    first, again, other = (
        UtilityAwareReweigher(valuator=SignedValues(), random_state=seed)
        .fit(X, Y, sensitive_features=SEX)
        .sample_weight_
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


class Overriding(OutOfBagEntropy):
    """Changes what the fit of its parent leaves behind."""

    def fit(self, X, y, **given):
        super().fit(X, y, **given)
        self.valuation_ = Valuation.from_values({"y": np.arange(len(X)), "sex": np.arange(len(X))})
        return self


@pytest.mark.parametrize("valuator", [Plain(), Overriding(n_bags=5)], ids=["plain", "overriding"])
def test_the_fit_of_the_user_is_the_one_that_counts(valuator):
    weights = UtilityAwareReweigher(valuator=valuator).fit(X, Y, sensitive_features=SEX).sample_weight_
    assert np.all(np.diff(weights) > 0)


def test_a_valuator_that_takes_no_weights_is_told_in_a_sentence():
    with pytest.raises(ValueError, match=r"Plain.fit takes no `sample_weight`: value the rows first"):
        UtilityAwareReweigher(valuator=Plain()).fit(X, Y, sensitive_features=SEX, sample_weight=np.ones(N))


def test_an_unnamed_array_fits_values_of_one_attribute():
    valuation = InBagEntropy(random_state=0).fit(X, Y, sensitive_features=SEX).valuation_
    seen = explore(X, Y, sensitive_features=SEX.to_numpy(), valuation=valuation, retrain=0)
    assert seen.to_dict()["attributes"][0]["name"] == "sex"
    with pytest.raises(ValueError, match="has no values for 'gender'"):
        explore(X, Y, sensitive_features={"gender": SEX}, valuation=valuation, retrain=0)


def test_integer_names_are_names_everywhere():
    frame = X.rename(columns={"a": 0, "b": 1}).assign(**{"2": SEX}).rename(columns={"2": 2})
    valuator = InBagEntropy(random_state=0, z_exclude={2: [1]}, kinds={2: "classes"})
    valuation = valuator.fit(frame, Y, sensitive_features=2).valuation_
    assert valuator.excluded_columns_ == {"2": ["1", "2"]}
    np.testing.assert_array_equal(LinearUtility(alpha=0, betas={2: 1.0})(valuation), valuation["2"])


def test_a_registered_valuator_serves_experiments_and_commands(tmp_path):
    register_valuator("signed")(SignedValues)
    assert valuator_names()[:2] == ("oob", "inbag")
    assert valuator_names()[-1] == "signed"
    with pytest.raises(ValueError, match="There is a valuator called 'signed' already, SignedValues"):
        register_valuator("signed")(InBagEntropy)
    with pytest.raises(ValueError, match=r"The algorithm must be 'oob' or .* got 'cubic'"):
        make_valuator("cubic")
    X.assign(sex=SEX, y=Y).to_csv(tmp_path / "t.csv", index=False)
    told = {"path": str(tmp_path / "t.csv"), "target": "y", "protected": "sex", "drop": ["sex"]}
    experiment = Experiment(
        {
            "data": told,
            "split": {"method": "random", "train": 0.6, "test": 0.4},
            "valuation": {"algorithms": ["signed"]},
            "interventions": {"uaps": {"alphas": [1.0]}},
            "models": {"count": 1, "space": {"n_estimators": 5}},
        }
    )
    frame = experiment.run(tmp_path / "store", n_jobs=1).frame
    assert set(frame["algorithm"].dropna()) == {"signed"}
    assert (frame["status"] == "done").all()
    arguments = ["value", told["path"], "--target", "y", "--protected", "sex", "--valuator", "signed"]
    done = CliRunner().invoke(build_app(), [*arguments, "--out", str(tmp_path / "v.parquet")])
    assert done.exit_code == 0, done.output
    assert Valuation.load(tmp_path / "v.parquet").scales["sex"].is_signed


class Interrupted(LogisticRegression):
    """Fails, or is interrupted, when it is to learn from a table that says so."""

    def __init__(self, error=None, after=0):
        super().__init__()
        self.error = error
        self.after = after

    def fit(self, X, y, sample_weight=None):
        type(self).fits = getattr(type(self), "fits", 0) + 1
        if self.error is not None and type(self).fits > self.after:
            raise self.error
        return super().fit(X, y, sample_weight)


def state_of(valuator):
    return {name: value for name, value in vars(valuator).items() if name != "estimators"}


@pytest.mark.parametrize(
    ("error", "after"), [(KeyboardInterrupt(), 0), (SystemExit(), 9), (ValueError("no"), 3)]
)
def test_a_refit_that_ends_early_leaves_the_old_state(error, after):
    valuator = OutOfBagEntropy(LogisticRegression(), n_bags=5, random_state=0, n_jobs=1)
    valuator.fit(X, Y, sensitive_features={"sex": SEX})
    before = state_of(valuator)
    Interrupted.fits = 0
    valuator.set_params(estimators=Interrupted(error, after))
    other = X.assign(c=RNG.normal(size=N)).rename(columns={"a": "aa"})[:200]
    with pytest.raises(RuntimeError if isinstance(error, Exception) else type(error)):
        valuator.fit(other, Y[:200], sensitive_features={"gender": SEX[:200]})
    assert state_of(valuator) == before
    assert all(value is before[name] for name, value in state_of(valuator).items())
    assert list(valuator.feature_names_in_) == ["a", "b"]
    valuator.set_params(estimators=LogisticRegression())
    valuator.fit(other, Y[:200], sensitive_features={"g": SEX[:200]})
    assert valuator.n_features_in_ == 3
    assert valuator.valuation_.protected == ["g"]
    assert list(valuator.excluded_columns_) == ["g"]


@pytest.mark.parametrize("kind", [OutOfBagEntropy, InBagEntropy])
def test_a_first_fit_that_fails_leaves_nothing_fitted(kind):
    valuator = kind(Interrupted(KeyboardInterrupt()), random_state=0, n_jobs=1)
    for y, error in ((Y, KeyboardInterrupt), (np.ones(N), ValueError)):
        with pytest.raises(error):
            valuator.fit(X, y, sensitive_features={"sex": SEX})
        assert [name for name in vars(valuator) if name.endswith("_")] == []


class Fragile(SignedValues):
    """Changes itself before it fails."""

    def _value(self, problem, validation, seed):
        self.half_ = True
        raise KeyboardInterrupt


def test_what_a_valuator_of_ones_own_had_begun_is_undone():
    valuator = Fragile()
    with pytest.raises(KeyboardInterrupt):
        valuator.fit(X, Y)
    assert vars(valuator) == {"random_state": None}


@pytest.mark.filterwarnings("ignore:.*too close to say", "ignore:After .* fits")  # few rows, few fits
@pytest.mark.parametrize(
    "valuator",
    [
        OutOfBagEntropy(n_bags=5, random_state=0),
        InBagEntropy(LogisticRegression(), random_state=0, n_jobs=1),  # a user's own model
        TreeInfluence(random_state=0),
        KNNShapley(random_state=0),
        DataShapley(semivalue="banzhaf", max_fits=110, random_state=0, n_jobs=1),
    ],
    ids=lambda valuator: type(valuator).__name__,
)
def test_the_scale_of_weights_changes_no_value(valuator):
    weights = np.random.default_rng(1).uniform(0.5, 3.0, N)

    def valued(weights):
        return clone(valuator).fit(X, Y, sensitive_features=SEX, sample_weight=weights).valuation_.values

    expected = valued(weights)
    assert expected["sex"].nunique() > 1
    assert_frame_equal(valued(2.0**-60 * weights), expected, check_exact=True)
    assert_frame_equal(valued(1e-50 * weights), expected, rtol=1e-9, atol=1e-12)
    if isinstance(valuator, OutOfBagEntropy | InBagEntropy):  # equal weights are none
        assert_frame_equal(valued(np.full(N, 1 / N)), valued(None), rtol=1e-6)
