"""Dials: interventions whose strength is searched for, per model, by validation rows."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.aim.conftest import draw_applicants
from typer.testing import CliRunner

from fado.cli._app import build_app
from fado.cli._methods import _methods
from fado.experiment import Results
from fado.experiment.config import config_from
from fado.experiment.results._looks import looks_of
from fado.experiment.run import data_from, run_experiment
from fado.experiment.run._told import GroupsTold
from fado.experiment.search import Dial, Outcome, Trial
from fado.tabular import Table, read_problem

DIALS = ("aimed", "group_thresholds", "inferred_thresholds")
APPLICANTS = draw_applicants(5000, seed=0)
PARTS = {
    "train": np.arange(0, 2500),
    "validation": np.arange(2500, 4000),
    "test": np.arange(4000, 5000),
}
TABLE = {
    "data": {"given": True, "target": "y", "protected": ["sex"]},
    "split": {"method": "given"},
    "interventions": {
        "rps": False,
        "rw": False,
        "aimed": {"targets": [0.8, 0.9]},
        "group_thresholds": {"ratios": ["fpr_ratio", "tpr_ratio"], "max_fits": 5},
        "inferred_thresholds": {"max_fits": 3},
    },
    "models": {"count": 2, "space": {"n_estimators": {"log_uniform": [10, 20]}, "num_leaves": 6}},
    "evaluation": {"max_fpr": 0.1},
}


def config_of(**changes):
    return config_from(copy.deepcopy(TABLE) | changes)


def data_of(config):
    problem = read_problem(APPLICANTS.X, APPLICANTS.y, {"sex": APPLICANTS.sex})
    return data_from(problem, PARTS, config)


@pytest.fixture(scope="module")
def dialled(tmp_path_factory):
    """The store and the results of an experiment with every dial."""
    config, store = config_of(), tmp_path_factory.mktemp("dials") / "store"
    run_experiment(config, store, n_jobs=2, data=data_of(config), isolated=False)
    return store, Results.load(store)


def test_models_that_reach_the_line_untouched_are_noted(tmp_path):
    aimed = {"targets": [0.05, 0.1], "ratios": ["fpr_ratio", "tpr_ratio"]}
    config, store = config_of(interventions={"rps": False, "rw": False, "aimed": aimed}), tmp_path / "store"
    run_experiment(config, store, n_jobs=1, data=data_of(config), isolated=False)
    results = Results.load(store)
    assert results.interventions == ["none"]
    assert (results.frame["validation_fpr_ratio"] >= 0.1).all()
    assert results.notes == [
        f"aimed: 2 of 2 models without an intervention reach a {ratio} of 0.1 on validation rows as they "
        "are, and are not aimed at it."
        for ratio in ("fpr_ratio", "tpr_ratio")
    ]
    results.report(tmp_path / "report.html")
    assert results.notes[0] in (tmp_path / "report.html").read_text()
    printed = CliRunner().invoke(build_app(), ["experiment", "status", str(store)]).stdout
    assert results.notes[0] in printed.splitlines()


def test_models_that_are_aimed_are_not_noted(dialled):
    _, results = dialled
    assert [note for note in results.notes if note.startswith("aimed:")] == []


def of(results, name, ratio="fpr_ratio"):
    frame = results.frame
    return frame[(frame["intervention"] == name) & (frame["ratio"] == ratio)]


@pytest.mark.parametrize(
    ("name", "ratio", "line"),
    [
        ("aimed", "fpr_ratio", 0.9),
        ("group thresholds", "fpr_ratio", 0.8),
        ("group thresholds", "tpr_ratio", 0.8),
        ("inferred thresholds", "fpr_ratio", 0.8),
    ],
)
def test_every_model_reaches_the_lines(dialled, name, ratio, line):
    frame = dialled[1].frame
    before = frame.loc[frame["intervention"] == "none"].set_index("model")[f"validation_{ratio}"]
    assert (before < 0.8).all()
    reached = of(dialled[1], name, ratio).groupby("model")[f"validation_{ratio}"].max()
    assert reached.index.tolist() == [0, 1]
    assert (reached >= line).all()


def test_fits_are_no_more_than_allowed(dialled):
    for name, ratio, most in [
        ("aimed", "fpr_ratio", 8),
        ("group thresholds", "fpr_ratio", 5),
        ("group thresholds", "tpr_ratio", 5),
        ("inferred thresholds", "fpr_ratio", 3),
    ]:
        counts = of(dialled[1], name, ratio)["model"].value_counts()
        assert counts.between(1, most).all()
    assert (dialled[1].frame["status"] == "done").all()


def test_scores_are_kept_and_the_untouched_models_are_there(dialled):
    results = dialled[1]
    assert len(results.scores(0, "validation")) == 1500
    assert results.frame["intervention"][:2].tolist() == ["none", "none"]


def test_thresholds_move_the_scores_of_the_untouched_model(dialled):
    results = dialled[1]
    frame = results.frame
    row = of(results, "group thresholds").index[-1]
    untouched = frame.index[(frame["intervention"] == "none") & (frame["model"] == frame["model"][row])][0]
    plain, moved = (results.scores(one, "validation") for one in (untouched, row))
    sex = APPLICANTS.sex[PARTS["validation"]]
    odds = [np.log(scores / (1 - scores)) for scores in (plain, moved)]
    shares = dict(zip(dict.fromkeys(APPLICANTS.sex), frame["direction"][row].split(), strict=True))
    for group, share in shares.items():
        expected = frame["strength"][row] * float(share)
        np.testing.assert_allclose((odds[0] - odds[1])[sex == group], expected, rtol=1e-6)
    # one threshold of moved scores is a threshold of each group for the scores of the model itself
    selected = moved >= frame["validation_threshold"][row]
    for group in "fm":
        own = plain[sex == group]
        assert own[selected[sex == group]].min() > own[~selected[sex == group]].max()
    negative = APPLICANTS.y[PARTS["validation"]] == 0
    rates = [selected[negative & (sex == group)].mean() for group in "fm"]
    assert frame["validation_fpr_ratio"][row] == pytest.approx(min(rates) / max(rates))


def test_workers_change_nothing_and_a_run_resumes(dialled, tmp_path):
    config = config_of()
    run_experiment(config, tmp_path, n_jobs=1, data=data_of(config))
    pd.testing.assert_frame_equal(Results.load(tmp_path).frame, dialled[1].frame, check_exact=True)
    run_experiment(config, tmp_path, n_jobs=1, data=data_of(config))
    assert len(Results.load(tmp_path).frame) == len(dialled[1].frame)


def test_a_page_says_what_needs_the_group(dialled, tmp_path):
    looks = {look["name"]: look["needs_group"] for look in looks_of(dialled[1].frame)}
    assert looks == {
        "none": False, "aimed": False, "group thresholds": True, "inferred thresholds": False,
    }  # fmt: skip
    dialled[1].report(tmp_path / "page.html")
    assert "group thresholds" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("changes", ["rows", "weights"])
def test_commands_that_change_rows_do_not_offer_them(changes):
    assert not set(DIALS) & set(_methods(changes))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"split": {"method": "given", "validation": False}}, "is aimed by validation rows"),
        (
            {
                "data": {"given": True, "target": "y", "protected": ["sex", "age"]},
                "evaluation": {"groups": "each"},
            },
            "moves the groups of all attributes crossed",
        ),
        ({"interventions": {"aimed": {"targets": []}}}, "`interventions.aimed.targets` is empty"),
        ({"interventions": {"aimed": {"ratios": []}}}, "`interventions.aimed.ratios` is empty"),
        ({"interventions": {"aimed": {"targets": [0]}}}, "must be above 0, got 0"),
        ({"interventions": {"aimed": {"targets": [1.2]}}}, "aimed.targets"),
        ({"interventions": {"aimed": {"ratios": ["auc"]}}}, "aimed.ratios"),
        ({"interventions": {"aimed": {"max_fits": 0}}}, "aimed.max_fits"),
        ({"interventions": {"aimed": {"strength": 1.0}}}, "strength"),
        ({"interventions": {"aimed": 3}}, "interventions.aimed"),
    ],
    ids=str,
)
def test_dials_that_cannot_be_turned_are_refused(changes, match):
    with pytest.raises((ValueError, TypeError), match=match):
        config_of(**changes)


def test_a_switch_is_enough():
    config = config_of(interventions={"rps": False, "aimed": True})
    assert config.interventions["aimed"] == {
        "ratios": ("fpr_ratio",), "targets": (0.8,), "max_fits": 8,
    }  # fmt: skip
    assert config.evaluation.keep_scores
    assert not config_of(interventions={"rps": False, "aimed": False}).evaluation.keep_scores


def test_groups_too_small_to_compare_are_refused_in_words(tmp_path):
    config = config_of(data={"given": True, "target": "y", "protected": ["sex"]})
    problem = read_problem(APPLICANTS.X, APPLICANTS.y, {"sex": np.full(5000, "f")})
    with pytest.raises(ValueError, match="no two groups that are large enough"):
        run_experiment(config, tmp_path, n_jobs=1, data=data_from(problem, PARTS, config))


def test_a_dial_stops_at_a_failed_fit_or_at_its_end(dialled):
    untouched = Trial("none", {}, 0, {})
    turned = Trial("aimed", {"ratio": "fpr_ratio", "strength": 1.0, "direction": "-0.5 0.5"}, 0, {})

    class Judged:
        ratio = "fpr_ratio"

    dial = Dial("aimed", Judged(), (0.8,), 1)
    first = Outcome(untouched, "done", {"validation_tpr": 0.5}, lambda: np.zeros(3))
    assert dial.next([first, Outcome(turned, "done", {"validation_tpr": 0.5}, lambda: np.zeros(3))]) is None
    assert Dial("aimed", Judged(), (0.8,), 9).next([first, Outcome(turned, "failed")]) is None


@pytest.fixture(scope="module")
def parts():
    data = data_of(config_of())
    return data.part("train"), data.part("validation", "test")


def told_of(parts, workers=1, **changes):
    return GroupsTold(*parts, np.array([True, True]), seed=0, workers=workers, **changes)


def test_groups_are_told_the_same_by_any_worker_and_after_a_journey(parts):
    one, two = told_of(parts), told_of(parts, workers=2)
    sent = pickle.loads(pickle.dumps(two))
    for name in ("of_training", "inferred", "known"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        np.testing.assert_array_equal(getattr(one, name), getattr(sent, name))
    np.testing.assert_allclose(one.of_training.sum(axis=1), 1)


def test_what_is_told_of_judging_rows_knows_neither_label_nor_group(parts):
    training, judging = parts
    rng = np.random.default_rng(0)
    others = replace(
        judging,
        positive=rng.permutation(judging.positive),
        groups=replace(judging.groups, codes=rng.permutation(judging.groups.codes)),
    )
    np.testing.assert_array_equal(told_of((training, others)).inferred, told_of(parts).inferred)
    right = told_of(parts).inferred.argmax(axis=1) == judging.groups.codes
    assert 0.85 < right.mean() < 0.99  # heights overlap


def test_training_rows_are_told_of_by_models_that_did_not_see_them(parts):
    """With features that are noise, a model that had seen a row would know its group."""
    rng = np.random.default_rng(0)
    n = len(parts[0].positive)
    noise = replace(parts[0], table=Table.from_input(rng.random((n, 2))))
    told = told_of((noise, parts[1])).of_training
    right = told.argmax(axis=1) == parts[0].groups.codes
    assert right.mean() < 0.72  # the label tells a part of it
    pairs = np.arange(n) // 2
    same = np.repeat(rng.random((n // 2, 2)), 2, axis=0)
    groups = replace(parts[0].groups, codes=np.repeat(rng.integers(0, 2, n // 2), 2))
    twins = replace(
        parts[0], table=Table.from_input(same), groups=groups, positive=rng.random(n) < 0.5, blocks=pairs
    )
    alone = told_of((replace(twins, blocks=None), parts[1])).of_training.argmax(axis=1) == groups.codes
    together = told_of((twins, parts[1])).of_training.argmax(axis=1) == groups.codes
    assert alone.mean() > 0.6  # its twin gave it away
    assert 0.4 < together.mean() < 0.6


def test_known_groups_are_one_hot_and_others_last(parts):
    training, judging = parts
    told = GroupsTold(training, judging, np.array([True, False]), seed=0, workers=1)
    assert told.n_groups == 2
    assert told.known.shape == (len(judging.positive), 2)
    np.testing.assert_array_equal(told.known.argmax(axis=1), np.where(judging.groups.codes == 0, 0, 1))
