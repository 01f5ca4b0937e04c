"""What is said of something along a continuous attribute."""

import numpy as np
import pandas as pd
import pytest

from fado import Valuation, explore
from fado.exploration._biases import Estimate, difference, trend_of

N = 4000
AGE = np.random.default_rng(0).permutation(N) / N * 60 + 20


def prevalence_of(y, age=AGE, agreement=None):
    n_rows = len(age)
    parts = {"values": np.full(n_rows, 0.5), "agreement": np.full(n_rows, 0.5)}
    parts = {part: {"y": array, "age": array} for part, array in parts.items()}
    if agreement is not None:
        parts["agreement"]["y"] = agreement
    X = pd.DataFrame({"x": np.arange(n_rows)})
    seen = explore(X, y, sensitive_features={"age": age}, valuation=Valuation(**parts), retrain=0)
    biases = {bias["id"]: bias for bias in seen.to_dict()["attributes"][0]["biases"]}
    return biases["prevalence"], biases["separability"]


def drawn(rates):
    """Labels whose rate in each quarter of age is exact."""
    labels = np.empty(N, dtype=object)
    for quarter, rate in enumerate(rates):
        rows = np.argsort(AGE)[quarter * N // 4 : (quarter + 1) * N // 4]
        chosen = np.random.default_rng(quarter).permutation(rows)[: round(rate * len(rows))]
        labels[rows] = "no"
        labels[chosen] = "yes"
    return pd.Series(labels, name="claim")


def test_a_steady_rise_and_fall_are_called_so():
    bias, _ = prevalence_of(drawn([0.1, 0.2, 0.3, 0.4]))
    assert bias["sentence"].startswith("The rate of “yes” rises with age: from 10 % in “age up to ")
    assert "to 40 % in “age over " in bias["sentence"]
    assert "turning" not in bias
    bias, _ = prevalence_of(drawn([0.4, 0.3, 0.2, 0.1]))
    assert bias["sentence"].startswith("The rate of “yes” falls with age: from 40 % in “age up to ")


@pytest.mark.parametrize(
    ("rates", "course"),
    [
        ([0.4, 0.1, 0.1, 0.5], "falls, then rises"),
        ([0.1, 0.4, 0.5, 0.2], "rises, then falls"),
        ([0.1, 0.4, 0.1, 0.5], "rises and falls"),
    ],
)
def test_a_course_that_turns_is_called_what_it_is(rates, course):
    bias, _ = prevalence_of(drawn(rates))
    assert (
        f"The rate of “yes” {course} along age: highest with 50 % in " in bias["sentence"] or max(rates) < 0.5
    )
    assert f"lowest with {100 * min(rates):.0f} % in " in bias["sentence"]
    assert "rises with" not in bias["sentence"]
    assert bias["measure"].startswith("rank correlation")
    assert bias["turning"]["number"] == pytest.approx(max(rates) - min(rates))
    assert bias["turning"]["low"] > 0


def test_a_course_that_turns_is_seen_behind_a_clear_rank_correlation():
    bias, _ = prevalence_of(drawn([0.2, 0.1, 0.4, 0.5]))
    assert bias["number"] > 0.2
    assert "falls, then rises along age" in bias["sentence"]


def test_a_dent_that_chance_explains_is_no_turn_but_is_told():
    bias, _ = prevalence_of(drawn([0.1, 0.2, 0.195, 0.3]))
    assert "rises with age, though not from every quarter to the next" in bias["sentence"]


def test_flat_is_neither():
    bias, _ = prevalence_of(drawn([0.2, 0.2, 0.2, 0.2]))
    assert bias["sentence"] == "The rate of “yes” does not clearly rise or fall with age."


def test_agreement_that_turns_is_called_so():
    turning = np.abs(AGE - 50) / 40
    _, bias = prevalence_of(drawn([0.2, 0.2, 0.2, 0.2]), agreement=turning)
    assert "Models' agreement on claim falls, then rises along age: highest with" in bias["sentence"]
    assert bias["bars_are"].startswith("agreement on claim")
    quarters = [turning[np.argsort(AGE)[q * N // 4 : (q + 1) * N // 4]].mean() for q in range(4)]
    assert [bar["number"] for bar in bias["bars"]] == pytest.approx(quarters)


def test_a_mean_that_turns_is_told_in_its_own_numbers():
    bias, _ = prevalence_of(pd.Series((AGE - 50) ** 2, name="cost"))
    assert "The mean of cost falls, then rises along age: highest with " in bias["sentence"]
    assert "%" not in bias["sentence"]


def test_too_few_rows_for_quarters_are_told():
    bias, _ = prevalence_of(np.arange(30) % 2, age=np.linspace(20, 80, 30))
    assert bias["sentence"] == "There are too few rows to follow the rate of “y = 1” along age."


def test_chance_seldom_makes_a_turn():
    rng = np.random.default_rng(0)
    turns = 0
    for _ in range(300):
        numbers = rng.normal(0, 1, (4, 200))
        means, spreads = numbers.mean(axis=1), numbers.std(axis=1) / np.sqrt(200)
        quarters = [Estimate(m, m - 1.96 * s, m + 1.96 * s) for m, s in zip(means, spreads, strict=True)]
        turns += bool(trend_of(Estimate(0.0, -0.1, 0.1), quarters, difference)[1])
    assert turns <= 0.08 * 300
