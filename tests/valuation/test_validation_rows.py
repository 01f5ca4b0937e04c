import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

from fado.metrics import RATIO_NAMES, evaluate
from fado.tabular import read_problem
from fado.valuation._validation_rows import read_validation_rows

RNG = np.random.default_rng(0)
N = 500
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] + RNG.normal(size=N) > 0.5).astype(int)
Z = RNG.choice(list("abc"), N, p=[0.5, 0.3, 0.2])
P = 1 / (1 + np.exp(-X[:, 0] - 0.8 * (Z == "b") + 0.4 * (Z == "c")))
WEIGHTS = RNG.uniform(0, 3, N)


def rows(weights=None):
    return read_validation_rows(read_problem(X, Y, {"z": Z}, sample_weight=weights), None, "this")


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_metrics_are_those_of_evaluate(weights):
    expected = evaluate(Y, P, sensitive_features=Z, max_fpr=0.1, sample_weight=weights)
    for ratio in RATIO_NAMES:
        measured = rows(weights).measure(P, "tpr_at_fpr", ratio, 0.1)
        assert measured == {"y": pytest.approx(expected["tpr"]), "z": pytest.approx(expected[ratio])}
    measured = rows(weights).measure(P, "accuracy", "fpr_ratio", 0.1)["y"]
    assert measured == pytest.approx(accuracy_score(Y, P >= 0.5, sample_weight=weights))
    measured = rows(weights).measure(P, "log_loss", "fpr_ratio", 0.1)["y"]
    assert measured == pytest.approx(-log_loss(Y, P, sample_weight=weights))


@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_a_sure_mistake_costs_what_it_costs_in_scikit_learn(precision):
    sure = np.where(P > 0.5, 1, 0).astype(precision)
    measured = rows().measure(sure, "log_loss", "fpr_ratio", 0.1)["y"]
    expected = -log_loss(Y, np.column_stack([1 - sure, sure]))
    assert measured == pytest.approx(expected, rel=1e-6)  # 36 per mistake in double precision, and 16
    assert -37 < expected < 0


@pytest.mark.parametrize("ratio", RATIO_NAMES)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_coefficients_are_the_slopes_of_the_ratio(ratio, weights):
    validated = rows(weights)
    (groups,) = validated.attributes
    degrees = np.where(P > 0.6, 0.9, 0.2) + 0.05 * (Z == "b")

    def of(degrees):
        members = {"fpr_ratio": Y == 0, "selection_rate_ratio": Y >= 0}.get(ratio, Y == 1)
        events = 1 - degrees if ratio == "fnr_ratio" else degrees
        own = np.ones(N) if weights is None else weights
        rates = [np.average(events[members & (g == Z)], weights=own[members & (g == Z)]) for g in "abc"]
        return min(rates) / max(rates)

    coefficients = validated.ratio_coefficients(groups, ratio, degrees)
    for row in range(0, N, 50):
        moved = degrees.copy()
        moved[row] += 1e-6
        assert coefficients[row] == pytest.approx((of(moved) - of(degrees)) / 1e-6, abs=1e-7)


def test_rates_are_sums_of_coefficients():
    validated = rows(WEIGHTS)
    predicted = validated.decide(P, 0.1)
    measured = validated.measure(P, "tpr_at_fpr", "fpr_ratio", 0.1)["y"]
    assert validated.performance_coefficients("tpr_at_fpr") @ predicted == pytest.approx(measured)
    half, nothing = P >= 0.5, np.average(Y == 0, weights=WEIGHTS)
    accuracy = validated.performance_coefficients("accuracy") @ half + nothing
    assert accuracy == pytest.approx(accuracy_score(Y, half, sample_weight=WEIGHTS))


def test_labels_that_weigh_nothing():
    with pytest.raises(ValueError, match="Every positive among the validation rows weighs nothing"):
        rows(np.where(Y == 1, 0.0, 1.0))


@pytest.mark.parametrize(
    ("ratio", "lacking"),
    [
        ("fpr_ratio", "negatives"),
        ("fnr_ratio", "positives"),
        ("tpr_ratio", "positives"),
        ("selection_rate_ratio", "rows"),
    ],
)
def test_a_group_that_weighs_nothing_lacks_what_the_ratio_is_about(ratio, lacking):
    validated = rows(np.where(Z == "b", 0.0, 1.0))
    with pytest.raises(
        ValueError, match=f"`{ratio}` of 'z' is undefined: group 'b' has no {lacking} of any weight"
    ):
        validated.extremes(validated.attributes[0], ratio, P > 0.5)


@pytest.mark.parametrize(("ratio", "allowed"), [("fpr_ratio", "more"), ("fnr_ratio", "fewer")])
def test_a_ratio_without_events_is_undefined(ratio, allowed):
    validated = rows()
    never = np.full(N, ratio == "fnr_ratio")
    with pytest.raises(ValueError, match=f"use more validation rows or allow {allowed} false positives"):
        validated.extremes(validated.attributes[0], ratio, never)
