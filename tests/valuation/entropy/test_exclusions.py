"""Which columns the models of protected attributes must not see, and those that give them away together."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from tests.valuation.same import messages_of

from fado import InBagEntropy, OutOfBagEntropy
from fado.datasets import make_account_fraud
from fado.tabular import Variable
from fado.valuation._probabilities import Moments
from fado.valuation.entropy._exclusions import is_given_away, warn_of_giveaways

N = 4000


def one_hot_ages(n=N, seed=0):
    rng = np.random.default_rng(seed)
    band = rng.integers(4, 24, n) * 4
    frame = pd.get_dummies(pd.Series(band), prefix="age")
    frame["income"] = rng.normal(size=n)
    y = frame["income"] + (band >= 50) + rng.normal(size=n) > 0.5
    return frame, y, {"old": band >= 50}


def postcode_and_shop(n=N, seed=0):
    rng = np.random.default_rng(seed)
    postcode, shop = rng.integers(0, 5, n), rng.integers(0, 5, n)
    frame = pd.DataFrame({"postcode": [f"p{j}" for j in postcode], "shop": shop, "x": rng.normal(size=n)})
    return frame, frame["x"] + rng.normal(size=n) > 0, {"z": (postcode + shop) % 2}


def warned(valuator, X, y, z):
    return messages_of(valuator.fit, X, y, sensitive_features=z)


def out_of_bag(**settings):
    return OutOfBagEntropy(**{"n_bags": 5, "random_state": 0, **settings})


@pytest.mark.parametrize("valuator", [out_of_bag(), InBagEntropy(random_state=0)], ids=["oob", "inbag"])
def test_dummies_of_an_age_are_named_with_a_pattern(valuator):
    X, y, z = one_hot_ages()
    (message,) = warned(valuator, X, y, z)
    assert "Models of the protected attribute 'old' are almost certain about almost every row" in message
    assert re.search(
        r"mainly 'age_\d\d', 'age_\d\d', 'age_\d\d', 'age_\d\d', 'age_\d\d' and \d+ more\.", message
    )
    assert 'name them in `z_exclude`, for example `["age_*"]`' in message
    assert "fairness drops out of utilities" in message
    assert valuator.valuation_["old"].mean() < 0.1
    assert warned(valuator.set_params(z_exclude=["age_*"]), X, y, z) == []
    assert valuator.valuation_["old"].mean() > 0.7


@pytest.mark.parametrize("valuator", [out_of_bag(), InBagEntropy(random_state=0)], ids=["oob", "inbag"])
def test_two_columns_that_tell_only_together_are_named(valuator):
    (message,) = warned(valuator, *postcode_and_shop())
    assert "mainly 'shop', 'postcode'." in message
    assert 'for example `["shop", "postcode"]`' in message
    assert valuator.valuation_["z"].mean() < 0.05


def test_models_that_tell_no_gains_are_believed_without_names():
    models = RandomForestClassifier(30)
    (message,) = warned(out_of_bag(estimators=models, n_jobs=1), *one_hot_ages(2000))
    assert "determine it together. Its values" in message
    assert 'for example `["age_*"]`' in message


def test_a_column_that_tells_alone_is_named_once():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 90, N), "x": rng.normal(size=N)})
    messages = warned(out_of_bag(), X, X["x"] + rng.normal(size=N) > 0, {"old": X["age"] >= 50})
    assert len(messages) == 1
    assert "'age' of X alone determine" in messages[0]


def test_the_target_may_give_it_away():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    z = rng.integers(0, 2, N)
    (message,) = warned(out_of_bag(), X, np.where(z == 1, "yes", "no"), {"z": z})
    assert "mainly the target." in message
    assert "`z_sees_target=False`" in message
    assert "z_exclude" not in message


def test_a_class_that_nearly_all_rows_have_is_not_accused_of_it():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc"))
    rare = np.arange(N) % 200 == 0
    for valuator in (out_of_bag(), out_of_bag(estimators=LogisticRegression())):
        assert warned(valuator, X, X["a"] + rng.normal(size=N) > 0, {"rare": rare}) == []
        assert (valuator.valuation_["rare"] < 0.2).mean() > 0.9


def test_a_rare_class_that_is_given_away_is_found():
    X, y, _ = one_hot_ages(10_000)
    (message,) = warned(out_of_bag(), X, y, {"oldest": X["age_88"] | X["age_92"]})
    assert re.search(r"mainly 'age_(88|92)', 'age_(88|92)'", message)


@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(1), RandomForestClassifier(30)], ids=["knn", "forest"]
)
def test_rows_that_a_model_has_memorised_give_nothing_away(model):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1000, 3)), columns=list("abc"))
    valuator = InBagEntropy(model, random_state=0, n_jobs=1)
    assert warned(valuator, X, X["a"] + rng.normal(size=1000) > 0, {"coin": rng.integers(0, 2, 1000)}) == []


def test_persons_stay_together_among_the_rows_that_confirm():
    """Copies of a row give nothing away where they are known to belong together."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(200), 10)
    X = rng.normal(size=(200, 3))[person] + 1e-6 * rng.normal(size=(2000, 3))
    z, y = rng.integers(0, 2, 200)[person], rng.integers(0, 2, 200)[person]
    valuator = InBagEntropy(KNeighborsClassifier(1), random_state=0, n_jobs=1)
    with pytest.warns(UserWarning, match="almost certain about almost every row"):
        valuator.fit(X, y, sensitive_features={"z": z})
    assert messages_of(valuator.fit, X, y, sensitive_features={"z": z}, groups=person) == []


def test_a_generated_fraud_table_gives_no_age_away():
    frame = make_account_fraud(4000, random_state=0)
    X, old = frame.drop(columns=["fraud_bool", "month", "customer_age"]), frame["customer_age"] >= 50
    assert warned(out_of_bag(), X, frame["fraud_bool"], {"old": old}) == []


@pytest.mark.parametrize(
    ("labels", "agreement", "given_away"),
    [
        ([0, 1] * 50, 0.976, True),  # two rows differ with probability .5: a doubt of .025 is allowed
        ([0, 1] * 50, 0.974, False),
        ([0] * 90 + [1] * 10, 0.992, True),  # with probability .18: .009 is
        ([0] * 90 + [1] * 10, 0.99, False),
        ([0, 1] * 9, 1.0, False),  # 9 disagreements prove little
        ([0, 1] * 10, 1.0, True),
    ],
    ids=range(6),
)
def test_the_rule_by_hand(labels, agreement, given_away):
    moments = Moments(len(labels) + 1)  # nobody scored the last row
    moments.add(np.arange(len(labels)), np.zeros(len(labels)), np.full(len(labels), agreement))
    variable = Variable("z", "classes", np.array([*labels, 0]), (0, 1))
    assert is_given_away(variable, moments) == given_away


def test_numbers_are_never_given_away():
    moments = Moments(100)
    moments.add(np.arange(100), np.zeros(100), np.ones(100))
    assert not is_given_away(Variable("z", "continuous", np.arange(100.0)), moments)


def test_many_names_are_cut_short_and_signs_of_patterns_are_not_made_into_one():
    names = [f"a[{j}]_x" for j in range(3)] + [f"b*_{j}" for j in range(3)] + ["t_1", "t_2"]
    variable = Variable("z", "classes", np.array([0, 1]), (0, 1))
    gains = np.array([1.0] * len(names) + [0.0])
    with pytest.warns(UserWarning, match="and 3 more") as caught:
        warn_of_giveaways(variable, 0.01, names, gains)
    example = '["a[0]_x", "a[1]_x", "a[2]_x", "b*_0", "b*_1"]'
    assert example in str(caught[0].message)


# --- columns that are hidden by hand

FEW = 60
TABLE = pd.DataFrame(
    np.random.default_rng(0).normal(size=(FEW, 6)),
    columns=["age_20", "age_30", "AGE_40", "page_1", "a*", "ab"],
)
Y = np.arange(FEW) % 2
Z = {"old": np.arange(FEW) // 2 % 2, "sex": np.arange(FEW) // 4 % 2}


def excluded(z_exclude, frame=TABLE):
    valuator = InBagEntropy(z_exclude=z_exclude, random_state=0, n_jobs=1)
    return valuator.fit(frame, Y, sensitive_features=Z).excluded_columns_


@pytest.mark.parametrize(
    ("pattern", "columns"),
    [
        ("age_*", ["age_20", "age_30"]),
        ("age_?0", ["age_20", "age_30"]),
        ("[aA]*_*0", ["age_20", "age_30", "AGE_40"]),
        ("a*", ["a*"]),  # a column that is called so
        ("a?", ["a*", "ab"]),
        ("*", list(TABLE.columns)),
    ],
)
def test_patterns_match_as_in_a_shell(pattern, columns):
    assert excluded([pattern]) == {"old": columns, "sex": columns}
    assert excluded(pattern) == {"old": columns, "sex": columns}


def test_patterns_and_names_stand_side_by_side_and_per_attribute():
    both = ["age_*", "ab", "age_20"]
    assert excluded({"old": both}) == {"old": ["age_20", "age_30", "ab"], "sex": []}
    assert excluded({"old": "age_*", "sex": ["AGE*"]}) == {"old": ["age_20", "age_30"], "sex": ["AGE_40"]}


def test_names_that_are_numbers_match_too():
    frame = TABLE.set_axis([10, 11, 20, 21, 30, 31], axis=1)
    assert excluded(["1?", 31], frame)["old"] == ["10", "11", "31"]


def test_a_pattern_that_matches_nothing_names_what_comes_close():
    with pytest.raises(
        ValueError, match=r"the pattern 'agee_\*', which matches no column of X; did you mean"
    ):
        excluded(["agee_*"])
    with pytest.raises(ValueError, match=r"'age_25', which is not a column of X; did you mean 'age_20'"):
        excluded({"sex": ["age_25"]})
