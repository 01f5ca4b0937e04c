"""Values that are used for rows they were not made for."""

import numpy as np
import pandas as pd
import pytest

from fado import OutOfBagEntropy, UtilityAwarePrevalenceSampler, UtilityAwareReweigher, Valuation, explore

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=400), "b": RNG.normal(size=400)})
z = pd.Series(np.where(RNG.random(400) < 0.4, "f", "m"), name="z")
y = pd.Series((X["a"] + (z == "f") + RNG.normal(size=400) > 0.5).astype(int), name="y")
OTHER_ROWS = "made with other labels `y`, or with the rows in another order"


@pytest.fixture(scope="module")
def valuation():
    return OutOfBagEntropy(random_state=0, n_jobs=1).fit(X, y, sensitive_features=z).valuation_


USES = {
    "sampling": lambda X, y, z, v: UtilityAwarePrevalenceSampler().fit(
        X, y, sensitive_features=z, valuation=v
    ),
    "reweighing": lambda X, y, z, v: UtilityAwareReweigher().fit(X, y, sensitive_features=z, valuation=v),
    "exploring": lambda X, y, z, v: explore(X, y, sensitive_features=z, valuation=v),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_rows_in_another_order_are_noticed(use, valuation):
    order = np.argsort(X["a"].to_numpy())
    with pytest.warns(UserWarning, match=OTHER_ROWS):
        use(X.iloc[order], y.iloc[order], z.iloc[order], valuation)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("same", [y, y.astype(bool), y.map({0: "no", 1: "yes"}), 1 - y], ids=range(4))
def test_other_names_of_the_same_labels_are_fine(use, same, valuation):
    use(X, same, z, valuation)  # a warning would be an error


def test_the_valuation_of_some_rows_is_used_for_those(valuation):
    rows = np.flatnonzero(X["b"] > 0)
    USES["reweighing"](X.iloc[rows], y.iloc[rows], z.iloc[rows], valuation[rows])


def test_a_file_keeps_what_tells(valuation, tmp_path):
    valuation.save(tmp_path / "v.parquet")
    loaded = Valuation.load(tmp_path / "v.parquet")
    USES["reweighing"](X, y, z, loaded)
    with pytest.warns(UserWarning, match=OTHER_ROWS):
        USES["reweighing"](X[::-1], y[::-1], z[::-1], loaded)


def test_labels_of_another_number_are_another_target(valuation):
    USES["reweighing"](X, y + (X["a"] > 1), z, valuation)
    USES["reweighing"](X, X["a"], z, valuation)


def test_a_continuous_target_and_given_probabilities_tell_nothing():
    valued = (
        OutOfBagEntropy(random_state=0, n_jobs=1).fit(X, X["a"] - X["b"], sensitive_features=z).valuation_
    )
    given = Valuation.from_probabilities(RNG.random(400), {"z": RNG.random(400)})
    for valuation in (valued, given):
        USES["reweighing"](X, y, z, valuation)
