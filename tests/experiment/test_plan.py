"""The plan: how many rows and fits there are, and which models."""

import tomllib
from collections import Counter

import numpy as np
import pytest

from fado.experiment._config import config_from
from fado.experiment._plan import Plan, Setting
from fado.experiment._presets import preset_text
from fado.experiment._sets import training_set
from fado.experiment._space import Parameter, drawn
from fado.valuation import Valuation


@pytest.fixture(scope="module")
def paper():
    return Plan.of(config_from(tomllib.loads(preset_text("paper"))))


def test_the_papers_grid(paper):
    counts = Counter(setting.intervention for setting in paper.settings)
    assert counts == {"none": 1, "RPS": 1, "RW": 1, "UAPS": 66, "UAR": 132}
    assert len(paper.settings) == 201
    assert len(paper.models) == 25
    assert paper.n_rows == 5025
    # Per algorithm (and scaling) 33 settings: at alpha 1 three utilities are one, at alpha 0 two of them.
    assert len(paper.recipes) == 3 + 2 * 30 + 4 * 30
    assert paper.n_fits == 183 * 25


def test_recipes_are_the_training_sets_that_differ(paper):
    """By content: of the paper's 183 recipes two leave nothing to train on, and no two others are equal."""
    rng = np.random.default_rng(0)
    n = 4000
    groups = np.where(rng.random(n) < 0.3, "old", "young")
    positive = rng.random(n) < np.where(groups == "old", 0.1, 0.04)
    valuations = {
        name: Valuation.from_probabilities(rng.beta(1, 4, n), {"z": rng.beta(2, 3, n)})
        for name in ("oob", "inbag")
    }
    sets, impossible = {}, []
    for setting in paper.settings:
        recipe = setting.recipe(1)
        try:
            made = training_set(setting, positive, groups, valuations, negative="clip", seed=0)
        except ValueError:
            impossible.append(setting)
            continue
        assert sets.setdefault(recipe, made.digest()) == made.digest()
    assert [(s.intervention, s.utility, s.alpha, s.scaling) for s in impossible] == [
        ("UAR", "difference", 0.0, "none")
    ] * 2
    assert len(sets) == len(set(sets.values())) == 181
    assert len(sets) * len(paper.models) == 4525


def test_with_several_attributes_utilities_differ_at_alpha_0():
    one = Setting("UAR", "oob", "cobb-douglas", 0.0, scaling="minmax")
    assert one.recipe(1).utility == "linear"
    assert one.recipe(2).utility == "cobb-douglas"


def test_models_stay_the_same_whatever_else_is_drawn():
    space = {"n_estimators": Parameter(low=20, high=300), "learning_rate": Parameter(low=0.02, high=0.5)}
    few, many = drawn(space, 3, seed=7), drawn(dict(reversed(space.items())), 25, seed=7)
    assert few == many[:3]
    assert drawn(space, 3, seed=8) != few


def test_log_uniform_draws_reach_both_ends_evenly():
    ints = [p["k"] for p in drawn({"k": Parameter(low=1, high=3)}, 3000, seed=0)]
    counts = Counter(ints)
    assert set(counts) == {1, 2, 3}
    for value in (1, 2, 3):
        share = np.log((value + 1) / value) / np.log(4)
        assert abs(counts[value] / 3000 - share) < 0.03
    floats = np.array([p["k"] for p in drawn({"k": Parameter(low=0.02, high=0.5)}, 2000, seed=0)])
    assert 0.02 <= floats.min() < 0.021
    assert 0.49 < floats.max() <= 0.5
    assert abs((floats < 0.1).mean() - 0.5) < 0.03  # 0.1 is the geometric middle


def test_the_papers_models_lie_in_its_space(paper):
    for model in paper.models:
        assert model["boosting_type"] == "goss"
        assert 20 <= model["n_estimators"] <= 10_000
        assert 10 <= model["num_leaves"] <= 1000
        assert 5 <= model["min_child_samples"] <= 300
        assert 2 <= model["max_depth"] <= 20
        assert 0.02 <= model["learning_rate"] <= 0.5
    assert len({model["n_estimators"] for model in paper.models}) > 20
