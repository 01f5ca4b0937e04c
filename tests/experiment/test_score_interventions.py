"""Interventions on scores: ours and a user's own, by validation rows, without another fit of the model."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from tests.aim.conftest import draw_applicants
from typer.testing import CliRunner

from fado.cli._app import build_app
from fado.cli.sample import entries_of
from fado.experiment import Experiment, Results
from fado.experiment._config import config_from
from fado.experiment._data import data_from
from fado.experiment._results_page import looks_of
from fado.experiment._runner import run_experiment
from fado.experiment._score_inputs import ScoreInputs
from fado.experiment._store import Store
from fado.experiment._training import Trainer
from fado.experiment._trial import Trial
from fado.interventions import BaseScoreIntervention, Setting, register_intervention
from fado.metrics import Budget
from fado.tabular import Table, read_problem

APPLICANTS = draw_applicants(5000, seed=0)
PARTS = {"train": np.arange(0, 2500), "validation": np.arange(2500, 4000), "test": np.arange(4000, 5000)}
TABLE = {
    "data": {"given": True, "target": "y", "protected": ["sex"]},
    "split": {"method": "given"},
    "interventions": {
        "rps": False,
        "rw": False,
        "aimed": {"lines": [0.7, 0.8]},
        "student": True,
        "group_thresholds": {"ratios": ["fpr_ratio", "tpr_ratio"]},
    },
    "models": {"count": 2, "space": {"n_estimators": {"log_uniform": [30, 60]}, "num_leaves": 6}},
    "evaluation": {"max_fpr": 0.1},
}


def config_of(**changes):
    return config_from(copy.deepcopy(TABLE) | changes)


def data_of(config, sex=APPLICANTS.sex):
    problem = read_problem(APPLICANTS.X, APPLICANTS.y, {"sex": sex})
    return data_from(problem, PARTS, config)


def run(config, store, **settings):
    run_experiment(config, store, data=data_of(config), **{"n_jobs": 1, "isolated": False} | settings)
    return Results.load(store)


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """The results of an experiment with every intervention on scores."""
    return run(config_of(), tmp_path_factory.mktemp("scores") / "store", n_jobs=2)


def of(results, name, ratio="fpr_ratio", line=0.8):
    frame = results.frame
    return frame[
        (frame["intervention"] == name) & (frame["ratio"] == ratio) & (frame["at_least"] == line)
    ].set_index("model")


def test_every_model_reaches_every_line(changed):
    frame = changed.frame
    assert (frame["status"] == "done").all()
    assert changed.notes == []  # every model is moved
    assert frame["intervention"].value_counts().to_dict() == {
        "aimed": 4, "group thresholds": 4, "none": 2, "student": 2,
    }  # fmt: skip
    untouched = frame[frame["intervention"] == "none"].set_index("model")
    for name, ratio, line in (
        ("aimed", "fpr_ratio", 0.8),
        ("aimed", "fpr_ratio", 0.7),
        ("group thresholds", "fpr_ratio", 0.8),
        ("group thresholds", "tpr_ratio", 0.8),
    ):
        reached = of(changed, name, ratio, line)[f"validation_{ratio}"]
        assert sorted(reached.index) == [0, 1]
        assert (reached >= line).all()
        assert (untouched[f"validation_{ratio}"] < line).all()
    # students come close on rows that neither they nor their factors saw
    after = of(changed, "student")["validation_fpr_ratio"]
    assert (after > untouched["validation_fpr_ratio"] + 0.1).all()


def test_models_are_fitted_once_for_all_and_need_not_be_asked_for_themselves(changed, monkeypatch, tmp_path):
    fits, fit = [], Trainer.fitted
    monkeypatch.setattr(Trainer, "fitted", lambda *given: fits.append(given[1].recipe) or fit(*given))
    results = run(config_of(interventions=TABLE["interventions"] | {"none": False}), tmp_path)
    expected = changed.frame[changed.frame["intervention"] != "none"].reset_index(drop=True)
    pd.testing.assert_frame_equal(results.frame, expected, check_exact=True)
    assert fits == ["none", "none"]


def test_known_groups_get_a_threshold_each(changed):
    frame = changed.frame
    label = frame.index[(frame["intervention"] == "group thresholds") & (frame["ratio"] == "fpr_ratio")][0]
    model = frame["model"][label]
    untouched = frame.index[(frame["intervention"] == "none") & (frame["model"] == model)][0]
    plain, moved = (changed.scores(row, "validation") for row in (untouched, label))
    selected = moved >= frame["validation_threshold"][label]
    sex, negative = APPLICANTS.sex[PARTS["validation"]], APPLICANTS.y[PARTS["validation"]] == 0
    shifts, rates = [], []
    for members in (sex == "f", sex == "m"):
        shifts += [set((logit(moved) - logit(plain))[members].round(6))]
        rates += [selected[negative & members].mean()]
        # one threshold of moved scores is a threshold of each group for the scores of the model itself
        assert plain[members & selected].min() > plain[members & ~selected].max()
    assert [len(shift) for shift in shifts] == [1, 1]
    assert shifts[0] != shifts[1]
    assert frame["validation_fpr_ratio"][label] == pytest.approx(min(rates) / max(rates))


def test_models_that_reach_the_line_untouched_have_a_row_and_a_note(tmp_path):
    aimed = {"lines": [0.05, 0.1], "ratios": ["fpr_ratio", "tpr_ratio"]}
    results = run(config_of(interventions={"rps": False, "rw": False, "aimed": aimed}), tmp_path / "store")
    frame = results.frame
    assert len(frame) == 2 + 8
    for row in frame.index[2:]:
        np.testing.assert_array_equal(results.scores(row), results.scores(int(frame["model"][row])))
    assert results.notes == [
        f"aimed: 2 of 2 models already reach a {ratio} of {line} on validation rows: "
        "their scores stay the same."
        for ratio in ("fpr_ratio", "tpr_ratio")
        for line in (0.05, 0.1)
    ]
    results.report(tmp_path / "report.html")
    assert results.notes[0] in (tmp_path / "report.html").read_text()
    printed = CliRunner().invoke(build_app(), ["experiment", "status", str(tmp_path / "store")]).stdout
    assert results.notes[0] in printed.splitlines()


def test_workers_change_nothing_and_a_run_resumes(changed, tmp_path):
    config = config_of()
    again = run(config, tmp_path, n_jobs=1, isolated=True)
    pd.testing.assert_frame_equal(again.frame, changed.frame, check_exact=True)
    for row in changed.frame.index:
        np.testing.assert_array_equal(again.scores(row), changed.scores(row))
    assert len(run(config, tmp_path).frame) == len(changed.frame)


def test_a_model_that_fails_leaves_nothing_to_change(tmp_path):
    table = copy.deepcopy(TABLE)
    table["models"] = {"count": 2, "estimator": "sklearn.naive_bayes.GaussianNB", "space": {}}
    config = config_from(table)
    X = APPLICANTS.X[["skill", "height"]].to_numpy().copy()
    X[::7] = np.nan
    data = data_from(read_problem(X, APPLICANTS.y, {"sex": APPLICANTS.sex}), PARTS, config)
    run_experiment(config, tmp_path, n_jobs=1, data=data)
    results = Results.load(tmp_path)
    assert (results.frame["status"] == "failed").all()
    assert results.frame["error"].nunique() == 1


def test_an_aimed_model_can_be_handed_over(changed):
    model = changed.fit_best("fpr_ratio", 0.8, data=data_of(config_of()))
    assert model.reached_
    row = changed.frame.index[changed.frame["validation_threshold"] == model.threshold_][0]
    X = APPLICANTS.X.iloc[PARTS["validation"]]
    np.testing.assert_array_equal(model.score_rows(X), changed.scores(row, "validation"))
    assert model.metrics_["fpr_ratio"] == changed.frame["validation_fpr_ratio"][row] >= 0.8


def test_a_page_says_what_needs_the_group(changed):
    looks = {look["name"]: look["needs_group"] for look in looks_of(changed.frame)}
    assert looks == {"none": False, "aimed": False, "student": False, "group thresholds": True}


def test_commands_that_change_rows_do_not_offer_them():
    for command in ("sample", "reweigh"):
        assert not {"aimed", "student", "group_thresholds"} & set(entries_of(command))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"split": {"method": "given", "validation": False}}, "adjusts scores on validation rows"),
        (
            {
                "data": {"given": True, "target": "y", "protected": ["sex", "age"]},
                "evaluation": {"groups": "each"},
            },
            "compares the groups of all attributes crossed",
        ),
        ({"interventions": {"aimed": {"lines": []}}}, "`interventions.aimed.lines` is empty"),
        ({"interventions": {"aimed": {"lines": [0]}}}, "must be above 0, got 0"),
        ({"interventions": {"aimed": {"lines": [1.2]}}}, "aimed.lines"),
        ({"interventions": {"aimed": {"ratios": ["auc"]}}}, "aimed.ratios"),
    ],
    ids=str,
)
def test_what_cannot_be_changed_is_refused(changes, match):
    with pytest.raises((ValueError, TypeError), match=match):
        config_of(**changes)


def test_a_switch_is_enough():
    config = config_of(interventions={"rps": False, "aimed": True})
    assert config.interventions["aimed"] == {"ratios": ("fpr_ratio",), "lines": (0.8,)}
    assert config.evaluation.keep_scores
    assert not config_of(interventions={"rps": False, "aimed": False}).evaluation.keep_scores


def test_groups_too_small_to_compare_are_refused_in_words(tmp_path):
    config = config_of()
    with pytest.raises(ValueError, match="fewer than two groups are large"):
        run_experiment(config, tmp_path, n_jobs=1, data=data_of(config, np.full(5000, "f")))


@pytest.fixture(scope="module")
def parts():
    data = data_of(config_of())
    return data.part("train"), data.part("validation", "test")


def known_of(parts, compared=(True, True)):
    return ScoreInputs(*parts, 1500, np.array(compared), Budget("fpr", 0.1), 0)


def test_what_is_known_of_evaluated_rows_owes_nothing_to_their_labels_and_groups(parts):
    training, evaluation = parts
    rng = np.random.default_rng(0)
    others = replace(
        evaluation,
        positive=rng.permutation(evaluation.positive),
        groups=replace(evaluation.groups, codes=rng.permutation(evaluation.groups.codes)),
    )
    first, second = known_of(parts).group_probabilities(), known_of((training, others)).group_probabilities()
    for own, theirs in zip(first, second, strict=True):
        np.testing.assert_array_equal(own, theirs)
        np.testing.assert_allclose(own.sum(axis=1), 1)
    mean = np.where(evaluation.positive[:, np.newaxis], first[1], first[0])
    right = mean.argmax(axis=1) == evaluation.groups.codes
    assert 0.85 < right.mean() < 0.99  # heights overlap


def test_scores_owe_nothing_to_labels_and_groups_of_test_rows(changed, tmp_path):
    """Test rows of other labels and groups have the same scores, validation rows being the same."""
    rng, rows = np.random.default_rng(0), PARTS["test"]
    y, sex = APPLICANTS.y.copy(), APPLICANTS.sex.copy()
    y[rows], sex[rows] = rng.permutation(y[rows]), rng.permutation(sex[rows])
    config = config_of(interventions={"rps": False, "rw": False, "aimed": True, "student": True})
    problem = read_problem(APPLICANTS.X, y, {"sex": sex})
    run_experiment(config, tmp_path, n_jobs=1, data=data_from(problem, PARTS, config))
    other, settings = Results.load(tmp_path), ["intervention", "model", "at_least"]
    same = changed.frame.reset_index().set_index(settings)["index"]
    for row, key in other.frame[settings][other.frame["intervention"] != "none"].iterrows():
        np.testing.assert_array_equal(other.scores(row), changed.scores(same[tuple(key)]))


def test_training_rows_are_known_by_models_that_did_not_see_them(parts):
    """With features that are noise, a model that had seen a row would know its group."""
    rng = np.random.default_rng(0)
    n = len(parts[0].positive)
    noise = replace(parts[0], table=Table.from_input(rng.random((n, 2))))

    def hits(training):
        negative, positive = known_of((training, parts[1])).training_groups()
        known = np.where(training.positive[:, np.newaxis], positive, negative)
        return (known.argmax(axis=1) == training.groups.codes).mean()

    assert hits(noise) < 0.72  # the label tells a part of it
    pairs = np.arange(n) // 2
    same = np.repeat(rng.random((n // 2, 2)), 2, axis=0)
    groups = replace(parts[0].groups, codes=np.repeat(rng.integers(0, 2, n // 2), 2))
    twins = replace(
        parts[0], table=Table.from_input(same), groups=groups, positive=rng.random(n) < 0.5, blocks=pairs
    )
    assert hits(replace(twins, blocks=None)) > 0.6  # its twin gave it away
    assert 0.4 < hits(twins) < 0.6


def test_groups_that_are_not_compared_come_last(parts):
    known = known_of(parts, (True, False))
    rows = known.rows(np.zeros(2500), None, None, None, needs_group=True)
    assert rows.n_compared == 1
    np.testing.assert_array_equal(rows.known_groups, np.where(parts[1].groups.codes == 0, 0, 1))
    assert rows.n_validation == 1500


SEEN = {}


def test_an_intervention_of_ones_own_is_one_class_and_one_name(tmp_path):
    steps = Setting("steps", "number", 10.0, "steps_tried", help="How many different scores there are.")

    @register_intervention("coarse", settings=[steps])
    class Coarse(BaseScoreIntervention):
        """Leaves only a few different scores, and looks at all that it may."""

        def __init__(self, steps=10.0):
            self.steps = steps

        def _rescore(self, rows):
            SEEN[self.steps] = (rows.n_validation, len(rows.scores), rows.budget, rows.group_probabilities)
            with pytest.raises(ValueError, match="registered with `needs_group=True`"):
                rows.known_groups  # noqa: B018 - looking is what is refused
            assert len(rows.positive) == len(rows.groups) == len(rows.weights) == rows.n_validation
            return np.round(rows.scores * self.steps) / self.steps

    asked = {"rps": False, "rw": False, "coarse": {"steps_tried": [5.0, 50.0]}}
    results = run(config_of(interventions=asked), tmp_path / "store")
    frame = results.frame
    assert frame["intervention"].tolist() == ["none"] * 2 + ["coarse"] * 4
    assert frame["steps"][2:].tolist() == [5.0, 5.0, 50.0, 50.0]
    for row in range(2, 6):
        plain = results.scores(int(frame["model"][row]))
        expected = np.round(plain * frame["steps"][row]) / frame["steps"][row]
        np.testing.assert_array_equal(results.scores(row), expected)
    n_validation, n_rows, budget, (negative, positive) = SEEN[5.0]
    assert (n_validation, n_rows, budget) == (1500, 2500, Budget("fpr", 0.1))
    assert negative.shape == positive.shape == (2500, 2)
    assert results.fit_best("fpr_ratio", 0.01, data=data_of(config_of())).facts_.intervention == ""


def test_scores_that_are_none_fail_in_words(tmp_path):
    @register_intervention("short")
    class Short(BaseScoreIntervention):
        def _rescore(self, rows):
            return rows.scores[:-1]

    @register_intervention("endless")
    class Endless(BaseScoreIntervention):
        def _rescore(self, rows):
            return np.full(len(rows.scores), np.inf)

    asked = {"rps": False, "rw": False, "short": True, "endless": True}
    results = run(config_of(interventions=asked), tmp_path)
    errors = results.frame.drop_duplicates("intervention").set_index("intervention")["error"]
    assert errors["short"].endswith("one score for each of 2,500 rows, got an array of shape (2499,).")
    assert errors["endless"].endswith("gives some rows scores that are not finite.")
    assert results.frame["status"].value_counts().to_dict() == {"failed": 4, "done": 2}


def test_students_learn_with_the_settings_of_the_model(changed):
    config = config_of()
    trainer = Trainer(data_of(config), config)
    frame = changed.frame
    row = frame.index[frame["intervention"] == "student"][0]
    parameters = {"n_estimators": int(frame["n_estimators"][row]), "num_leaves": 6, "random_state": 0}
    recipe = Trial("student", {"ratio": "fpr_ratio", "at_least": 0.8}, parameters=parameters)
    scorer, scores = trainer.scorer(recipe)
    np.testing.assert_array_equal(scores[:1500], changed.scores(row, "validation"))
    assert scorer.kind == "student"
    trees = scorer.student.text.count("\nTree=")
    assert trees == 3 * parameters["n_estimators"]  # as those of `AimedEstimator`
    table = data_of(config).part("validation").table
    np.testing.assert_array_equal(scorer.score(table)[:, 1], changed.scores(row, "validation"))


def test_the_plan_counts_what_the_run_does(tmp_path, capsys):
    asked = {"none": True, "rps": False, "rw": False, "aimed": {"lines": [0.7, 0.8]}, "student": True}
    chosen = Experiment(copy.deepcopy(TABLE) | {"interventions": asked})
    assert repr(chosen).endswith(" = 8 rows, 2 fits, 6 changes of scores")
    run(chosen.config, tmp_path, progress=True)
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("fits: 2 of 2 done, 0 failed")
    assert line.endswith("scores changed: 6 of 6")


def test_the_store_of_another_line_is_refused(tmp_path):
    run(config_of(interventions={"rps": False, "rw": False, "aimed": True}), tmp_path)
    with Store.reading(tmp_path) as store:
        assert store.keeps_scores
    with pytest.raises(ValueError, match=r"interventions\.aimed\.lines"):
        run(config_of(interventions={"rps": False, "rw": False, "aimed": {"lines": [0.9]}}), tmp_path)
