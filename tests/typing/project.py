"""A user's project, as a type checker sees it; `test_typing.py` has it checked, and nothing runs it."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import pandas as pd
from lightgbm import LGBMClassifier

import fado
from fado import (
    AimedEstimator,
    CobbDouglasUtility,
    DataShapley,
    DifferenceUtility,
    InBagEntropy,
    KNNShapley,
    LinearUtility,
    OnlineEntropy,
    OutOfBagEntropy,
    RandomPrevalenceSampler,
    ReweighedEstimator,
    Reweigher,
    TreeInfluence,
    UtilityAwareOverSampler,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
    check_columns,
    explore,
    explore_files,
    find_frontier,
    load_model,
    reweigh_files,
    sample_files,
    value_files,
)
from fado.active import UtilityQuery
from fado.datasets import load_baf, make_account_fraud, protected_from, temporal_split
from fado.experiment import Experiment, Frontier, Results
from fado.exploration import Exploration
from fado.interventions import BaseIntervention, FilesChange, TrainingSet, register_intervention
from fado.metrics import (
    Budget,
    by_group,
    equalized_odds_ratio,
    evaluate,
    fnr_ratio,
    fpr_ratio,
    hypervolume,
    pareto_frontier,
    predictions_frame,
    selection_rate_ratio,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_ratio,
)
from fado.models import Check, ChosenModel
from fado.valuation import BaseValuator, Scale, load_models, register_valuator, retraining_check

Numbers = npt.NDArray[np.float64]

X = make_account_fraud(1000, variant="II", random_state=0)
assert_type(X, pd.DataFrame)
assert_type(load_baf("Base.csv"), pd.DataFrame)
y, old = X.pop("fraud_bool"), X["customer_age"] >= 50
protected_from(X, "customer_age>=50").sum()
train, test = temporal_split(X, train=range(6), test=(6, 7))
assert_type(fado.__version__, str)


def values() -> None:
    """Give every row its worth."""
    fitted = OutOfBagEntropy(n_bags=5, random_state=0, keep_models=True).fit(X, y, sensitive_features=old)
    assert_type(fitted, OutOfBagEntropy)
    assert_type(fitted.valuation_, Valuation)
    assert_type(fitted.value(X), Valuation)
    assert_type(fitted.valuation_.values, pd.DataFrame)
    assert_type(fitted.valuation_.summary(), pd.DataFrame)
    assert_type(fitted.valuation_["y"], Numbers)
    assert_type(fitted.valuation_[[0, 1]], Valuation)
    assert_type(InBagEntropy().fit(X, y).valuation_, Valuation)
    assert_type(TreeInfluence(random_state=0).fit(X, y, sensitive_features=old), TreeInfluence)
    assert_type(KNNShapley().fit(X, y, sensitive_features=old), KNNShapley)
    assert_type(DataShapley().fit(X, y, sensitive_features=old), DataShapley)
    assert_type(DataShapley(semivalue=("distributional", 50)).fit(X, y).valuation_, Valuation)
    assert_type(OnlineEntropy(random_state=0).learn(X, y), OnlineEntropy)
    assert_type(OnlineEntropy(random_state=0).value(X), Valuation)
    assert_type(value_files("months", target="y", protected="age>=50", out="values"), Valuation)
    assert_type(Valuation.from_values({"y": [0.1]}, scales={"y": Scale("share", 0.0, 1.0, None)}), Valuation)
    assert_type(Valuation.load("values.parquet"), Valuation)
    assert_type(load_models("models").value(X), Valuation)
    effects = fitted.valuation_
    assert_type(
        retraining_check(effects, LGBMClassifier(), X, y, sensitive_features=old, validation=(X, y, old)),
        pd.DataFrame,
    )


def interventions(valuation: Valuation) -> None:
    """Change a training set by its values."""
    for utility in (LinearUtility(alpha=0.5), DifferenceUtility(alpha=0.5), CobbDouglasUtility(alpha=0.5)):
        assert_type(utility(valuation), Numbers)
    sampler = UtilityAwarePrevalenceSampler(LinearUtility(alpha=0.5), random_state=0)
    _, _ = sampler.fit_resample(X, y, sensitive_features=old, valuation=valuation)
    assert_type(sampler.sample_indices_, npt.NDArray[np.integer[Any]])
    assert_type(sampler.target_rate_, float)
    RandomPrevalenceSampler(random_state=0).fit_resample(X, y, sensitive_features=old)
    assert_type(UtilityAwareOverSampler().synthetic_, npt.NDArray[np.bool_])
    reweigher = UtilityAwareReweigher().fit(X, y, sensitive_features=old)
    assert_type(reweigher, UtilityAwareReweigher)
    assert_type(reweigher.sample_weight_, Numbers)
    assert_type(Reweigher().fit(X, y, sensitive_features=old).training_set_, TrainingSet)
    assert_type(
        ReweighedEstimator(LGBMClassifier(), reweigher).fit(X, y, sensitive_features=old), ReweighedEstimator
    )
    for change in (sample_files, reweigh_files):
        assert_type(change("months", target="y", protected="age>=50", out="train"), FilesChange)
    UtilityQuery(OutOfBagEntropy(keep_models=True)).query(X, n=5).tolist()


def models() -> None:
    """Find the best model above a line, and keep it."""
    model = AimedEstimator(LGBMClassifier(), ratio="fpr_ratio", at_least=0.8, random_state=0)
    assert_type(model.fit(X, y, sensitive_features=old), AimedEstimator)
    assert_type(model.reached_, bool)
    assert_type(model.path_, pd.DataFrame)
    assert_type(model.log_factors_, pd.DataFrame)
    assert_type(model.chance_on(5_000), float)
    assert_type(model.threshold_, float)
    assert_type(model.predict_proba(X), Numbers)
    assert_type(model.to_model(), ChosenModel)
    frontier = find_frontier(X, y, sensitive_features=old, max_fits=20)
    assert_type(frontier, Frontier)
    assert_type(frontier.frame, pd.DataFrame)
    best = frontier.best(at_least=0.8)
    assert_type(best, ChosenModel | None)
    if best is not None:
        best.save(Path("model"))
        assert_type(best.metrics_, dict[str, float])
        assert_type(best.check(X, y, old), Check)
        assert_type(best.check(X, y, old).held, bool | None)
        assert_type(best.predictions_frame(X, y, old), pd.DataFrame)
        assert_type(best.card(), str)
    assert_type(load_model("model").predict_proba(X), Numbers)


def measure(scores: Numbers) -> None:
    """Measure a model."""
    validated = evaluate(y, scores, sensitive_features=old, max_fpr=0.05, n_boot=100)
    assert_type(validated, dict[str, float])
    evaluate(y, scores, sensitive_feature=old)  # type: ignore[call-arg]  # it must be said: names are checked
    threshold = threshold_at_fpr(y, scores, max_fpr=0.05)
    assert_type(threshold, float)
    assert_type(tpr_at_fpr(y, scores), float)
    for ratio in (fpr_ratio, fnr_ratio, tpr_ratio, selection_rate_ratio, equalized_odds_ratio):
        assert_type(ratio(y, scores >= threshold, sensitive_features=old), float)
    assert_type(by_group(y, scores, sensitive_features=old, budget=Budget("top_k", 500)), pd.DataFrame)
    assert_type(predictions_frame(y, scores, sensitive_features=old), pd.DataFrame)
    assert_type(pareto_frontier([[0.5, 0.8]]), npt.NDArray[np.bool_])
    assert_type(hypervolume([[0.5, 0.8]]), float)


def look(valuation: Valuation) -> None:
    """Look at data, values and experiments."""
    assert_type(check_columns(X, y, old), pd.DataFrame)
    seen = explore(X, y, sensitive_features=old, valuation=valuation, retrain=0)
    assert_type(seen, Exploration)
    seen.write_html("explore.html")
    assert_type(
        explore_files("months", values="values", target="y", protected="age>=50", retrain=0), Exploration
    )
    results = Experiment.from_toml("experiment.toml").run(store="runs/first", n_jobs=2)
    assert_type(results, Results)
    assert_type(Results.load("runs/first").frame, pd.DataFrame)
    assert_type(results.pareto("fpr_ratio"), pd.DataFrame)
    assert_type(results.winners("fpr_ratio", at_least=0.8), pd.DataFrame)
    assert_type(results.scores(0), Numbers)
    results.report("report.html")


@register_valuator("constant")
class Constant(BaseValuator):
    """A valuator of one's own."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def _value(self, problem: Any, validation: Any, seed: int) -> Valuation:
        return Valuation.from_values({"y": np.zeros(problem.n_rows)})


@register_intervention("halved")
class Halved(BaseIntervention):
    """An intervention of one's own."""

    def _choose(
        self, labels: Any, groups: Any, utilities: Any, sample_weight: Any, generator: np.random.RandomState
    ) -> TrainingSet:
        return TrainingSet(np.arange(len(labels.codes) // 2))


assert_type(Constant().fit(X, y), Constant)
assert_type(Halved().fit(X, y, sensitive_features=old), Halved)
