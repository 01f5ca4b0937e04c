"""Values that are used for rows they were not made for."""

import numpy as np
import pandas as pd
import pytest

from fado import (
    OutOfBagEntropy,
    TreeInfluence,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
    explore,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=400), "b": RNG.normal(size=400)})
z = pd.Series(np.where(RNG.random(400) < 0.4, "f", "m"), name="z")
y = pd.Series((X["a"] + (z == "f") + RNG.normal(size=400) > 0.5).astype(int), name="y")
OTHER_ROWS = "computed with other labels `y`, or with the rows in another order"


@pytest.fixture(scope="module")
def valuation():
    return OutOfBagEntropy(random_state=0, n_jobs=1).fit(X, y, sensitive_features=z).valuation_


USES = {
    "sampling": lambda X, y, z, v: UtilityAwarePrevalenceSampler().fit(
        X, y, sensitive_features=z, valuation=v
    ),
    "reweighing": lambda X, y, z, v: UtilityAwareReweigher().fit(X, y, sensitive_features=z, valuation=v),
    "exploring": lambda X, y, z, v: explore(X, y, sensitive_features=z, valuation=v, retrain=0),
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


def test_values_are_used_for_some_of_the_rows_and_for_other_targets(valuation):
    rows = np.flatnonzero(X["b"] > 0)
    USES["reweighing"](X.iloc[rows], y.iloc[rows], z.iloc[rows], valuation[rows])
    for other in (y + (X["a"] > 1), X["a"]):  # labels of another number are another target
        USES["reweighing"](X, other, z, valuation)
    continuous = OutOfBagEntropy(random_state=0, n_jobs=1).fit(X, X["a"] - X["b"], sensitive_features=z)
    given = Valuation.from_probabilities(RNG.random(400), {"z": RNG.random(400)})
    for tells_nothing in (continuous.valuation_, given):
        USES["reweighing"](X, y, z, tells_nothing)


def test_a_file_keeps_what_tells(valuation, tmp_path):
    valuation.save(tmp_path / "v.parquet")
    loaded = Valuation.load(tmp_path / "v.parquet")
    USES["reweighing"](X, y, z, loaded)
    with pytest.warns(UserWarning, match=OTHER_ROWS):
        USES["reweighing"](X[::-1], y[::-1], z[::-1], loaded)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(("valued", "asked"), [("gender", "z"), ("z", "gender")])
def test_an_attribute_that_is_called_z_is_no_other(use, valued, asked):
    values = Valuation.from_values({"y": RNG.normal(size=400), valued: RNG.normal(size=400)})
    with pytest.raises(ValueError, match=rf"values .*'{valued}'|values for '{asked}'"):
        use(X, y, z.rename(asked), values)


@pytest.mark.parametrize("use", [USES["sampling"], USES["reweighing"]])
def test_values_of_attributes_without_a_name_serve_any(use, tmp_path):
    unnamed = OutOfBagEntropy(n_bags=5, random_state=0).fit(X, y, sensitive_features=z.to_numpy())
    assert unnamed.valuation_.protected == ["z"]
    unnamed.valuation_.save(tmp_path / "v.parquet")
    for valuation in (unnamed.valuation_, Valuation.load(tmp_path / "v.parquet")):
        use(X, y, z.rename("gender"), valuation)
    named = OutOfBagEntropy(n_bags=5, random_state=0).fit(X, y, sensitive_features=z).valuation_
    use(X, y, z.to_numpy(), named)
    named.save(tmp_path / "named.parquet")
    for valuation in (named, Valuation.load(tmp_path / "named.parquet")):
        with pytest.raises(ValueError, match=r"`valuation` has values of 'z', and none of .* 'gender'"):
            use(X, y, z.rename("gender"), valuation)


@pytest.mark.filterwarnings("ignore:.*too close to say")
@pytest.mark.parametrize("valuator", [OutOfBagEntropy(n_bags=5), TreeInfluence()])
def test_models_of_another_attribute_are_none_of_z(valuator):
    valuator.set_params(random_state=0, keep_models=True)
    fitted = valuator.fit(X, y, sensitive_features=z.rename("gender"))
    with pytest.raises(
        ValueError, match="have learnt no protected attribute 'z', which `sensitive_features` names"
    ):
        fitted.value(X, y, z)
    fitted.value(X, y, z.to_numpy())


def test_validation_rows_of_another_attribute_are_none_of_z():
    with pytest.raises(
        ValueError, match="validation rows have no protected attribute 'z', which the valued rows have"
    ):
        TreeInfluence().fit(X, y, sensitive_features=z, validation=(X, y, z.rename("gender")))
