"""The grid: how many rows and fits there are, which models, and what is proposed when."""

import tomllib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fado.experiment import Experiment
from fado.experiment._config import config_from, preset_text
from fado.experiment._data import data_from
from fado.experiment._models import Parameter, draw_models
from fado.experiment._store import Store
from fado.experiment._training import Trainer
from fado.experiment._trial import GridProposer, Trial
from fado.tabular import read_problem
from fado.valuation import Valuation


@pytest.fixture(scope="module")
def paper():
    return GridProposer.of(config_from(tomllib.loads(preset_text("paper"))))


def test_the_papers_grid_and_its_models(paper):
    counts = Counter(recipe.intervention for recipe in paper.recipes)
    assert counts == {"none": 1, "RPS": 1, "RW": 1, "UAPS": 66, "UAR": 132}
    assert len(paper.models) == 25
    assert paper.n_rows == 25 * 201
    # Per algorithm (and scaling) 33 settings: at alpha 1 three utilities are one, at alpha 0 two of them.
    assert len(paper.simplest_recipes) == 3 + 2 * 30 + 4 * 30
    assert paper.n_fits == 183 * 25
    space = {"n_estimators": (20, 10_000), "num_leaves": (10, 1000), "min_child_samples": (5, 300)}
    for name, (low, high) in (space | {"max_depth": (2, 20), "learning_rate": (0.02, 0.5)}).items():
        assert all(low <= model[name] <= high for model in paper.models), name
    assert {model["boosting_type"] for model in paper.models} == {"goss"}
    assert len({model["n_estimators"] for model in paper.models}) > 20


def test_simplest_recipes_are_the_training_sets_that_differ(paper):
    """By content: of the paper's 183 recipes two leave nothing to train on, and no two others are equal."""
    rng = np.random.default_rng(0)
    n = 4000
    old = (rng.random(n) < 0.3).astype(int)
    positive = rng.random(n) < np.where(old == 1, 0.1, 0.04)
    config = config_from(
        {
            "data": {"given": True, "target": "y", "protected": ["old"]},
            "split": {"method": "given", "validation": False},
            "interventions": {"rw": True},
            "models": {"space": {"n_estimators": 5}},
        }
    )
    problem = read_problem(np.zeros((2 * n, 1)), np.tile(positive, 2), {"old": np.tile(old, 2)})
    data = data_from(problem, {"train": np.arange(n), "test": np.arange(n, 2 * n)}, config)
    valuations = {
        name: Valuation.from_probabilities(rng.beta(1, 4, n), {"z": rng.beta(2, 3, n)})
        for name in ("oob", "inbag")
    }
    trainer = Trainer(data, config, valuations)
    sets, impossible = {}, []
    for recipe in paper.recipes:
        try:
            made = trainer.training_set(recipe)
        except ValueError:
            impossible.append(recipe)
            continue
        assert sets.setdefault(recipe.simplest(1).set_key, made.digest()) == made.digest()
    assert [recipe.recipe for recipe in impossible] == [
        f"UAR, algorithm {algorithm}, utility difference, alpha 0.0, scaling none, negative clip"
        for algorithm in ("oob", "inbag")
    ]
    assert len(sets) == len(set(sets.values())) == 181
    assert len(sets) * len(paper.models) == 4525


def test_settings_come_in_order_and_alpha_changes_fastest(table):
    table["interventions"] = {
        "rps": False,
        "corrected_uar": {"alphas": [0.5, 1.0], "floors": [0.1], "prevalence_corrections": [1.0, 2.0]},
    }
    none, rw, *corrected = GridProposer.of(config_from(table)).recipes
    assert [(recipe.intervention, recipe.settings) for recipe in (none, rw)] == [("none", {}), ("RW", {})]
    assert list(corrected[0].settings.items()) == [
        ("algorithm", "oob"), ("utility", "linear"), ("alpha", 0.5), ("scaling", "minmax"), ("floor", 0.1),
        ("prevalence_correction", 1.0),
    ]  # fmt: skip
    told = [(recipe.settings["prevalence_correction"], recipe.settings["alpha"]) for recipe in corrected]
    assert told == [(1.0, 0.5), (1.0, 1.0), (2.0, 0.5), (2.0, 1.0)]


def test_the_grid_proposes_what_was_not_proposed(table):
    grid = GridProposer.of(config_from(table))
    trials = grid.ask([])
    assert len(trials) == grid.n_rows == 30
    assert [(trial.intervention, trial.model) for trial in trials[:3]] == [
        ("none", 0), ("none", 1), ("RPS", 0)
    ]  # fmt: skip
    assert trials[2].settings == {"strength": 1.0}
    assert trials[2].parameters == grid.models[0]
    assert grid.ask([*trials[:3], *trials[5:]]) == trials[3:5]
    assert grid.ask([replace(trial, status="failed") for trial in trials]) == []


def test_models_stay_the_same_whatever_else_is_draw_models():
    space = {"n_estimators": Parameter(low=20, high=300), "learning_rate": Parameter(low=0.02, high=0.5)}
    few, many = draw_models(space, 3, seed=7), draw_models(dict(reversed(space.items())), 25, seed=7)
    assert few == many[:3]
    assert draw_models(space, 3, seed=8) != few


def test_log_uniform_draws_reach_both_ends_evenly():
    ints = [p["k"] for p in draw_models({"k": Parameter(low=1, high=3)}, 3000, seed=0)]
    counts = Counter(ints)
    assert set(counts) == {1, 2, 3}
    for value in (1, 2, 3):
        share = np.log((value + 1) / value) / np.log(4)
        assert abs(counts[value] / 3000 - share) < 0.03
    floats = np.array([p["k"] for p in draw_models({"k": Parameter(low=0.02, high=0.5)}, 2000, seed=0)])
    assert 0.02 <= floats.min() < 0.021
    assert 0.49 < floats.max() <= 0.5
    assert abs((floats < 0.1).mean() - 0.5) < 0.03  # 0.1 is the geometric middle


SETTINGS = {"algorithm": "oob", "utility": "difference", "alpha": 0.5, "scaling": "minmax"}


@pytest.mark.parametrize(
    ("name", "own", "expected"),
    [
        ("corrected UAR", {"floor": 1.0, "prevalence_correction": 1.0}, Trial("RW")),
        ("corrected UAR", {"floor": 1.0, "prevalence_correction": 0.0}, Trial("none")),
        ("UAPS", {"strength": 0.0}, Trial("none")),
        ("RPS", {"strength": 1.0}, Trial("RPS", {**SETTINGS, "strength": 1.0})),
        ("theirs", {"floor": 1.0}, Trial("theirs", {**SETTINGS, "floor": 1.0})),
    ],
)
def test_recipes_that_are_others_in_disguise(name, own, expected):
    assert Trial(name, {**SETTINGS, **own}).shared(1) == expected


def test_with_several_attributes_utilities_differ_at_alpha_0():
    one = Trial("UAR", {**SETTINGS, "utility": "cobb-douglas", "alpha": 0.0})
    assert one.simplest(1).settings == {**one.settings, "utility": "linear"}
    assert one.simplest(2).settings == one.settings


def test_interventions_that_give_the_same_weights_share_their_fits(table, tmp_path):
    table["interventions"] = {
        "rps": False,
        "uaps": {"alphas": [0.5], "strengths": [0.0]},
        "corrected_uar": {
            "alphas": [0.25, 0.5],
            "utilities": ["linear", "difference"],
            "floors": [1.0],
            "prevalence_corrections": [0, 1, 2],
        },
    }
    experiment = Experiment(table)
    results = experiment.run(tmp_path / "s", n_jobs=1)
    assert len(results.frame) == 2 * (2 + 1 + 12)
    # none (with UAPS of strength 0 and no correction), RW (a correction of 1), and a correction of 2
    with Store.reading(tmp_path / "s") as store:
        assert experiment.plan.n_fits == len({trial.fit for trial in store.trials}) == 2 * 3
    frame = results.frame.query("model == 0").set_index("intervention")
    metrics = [name for name in frame if name.startswith("test_")]
    corrected = frame.loc["corrected UAR"].set_index("prevalence_correction")[metrics]
    for name, power in (("none", 0), ("RW", 1)):
        assert len(corrected.loc[power]) == 4
        for _, row in corrected.loc[power].iterrows():
            np.testing.assert_array_equal(row, frame.loc[name, metrics])
