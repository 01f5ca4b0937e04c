"""What every engine promises, over both."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fado.engine import LightGBMEngine, SklearnEngine, Task, engine_class, scorer_from
from fado.execution import JoblibExecutor, ThreadExecutor
from fado.tabular import Table, column_from, variable_from

N = 600
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "number": RNG.normal(size=N),
        "gaps": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
        "count": RNG.integers(0, 9, N),
        "flag": RNG.random(N) < 0.3,
        "text": RNG.choice(["red", "green", "blue", "grey"], N),
        "kind": pd.Categorical(RNG.choice(["p", "q", "r"], N), categories=["r", "q", "p", "unused"]),
    }
)
FRAME.loc[RNG.random(N) < 0.1, "text"] = None
SIGNAL = FRAME["number"] + (FRAME["text"] == "green") + FRAME["gaps"].fillna(1) + (FRAME["kind"] == "q")
SIGNAL = (SIGNAL + RNG.normal(scale=0.5, size=N)).to_numpy()
TABLE = Table.from_input(FRAME)
OUT = np.sort(RNG.permutation(N)[:150]).astype(np.int32)
IN = np.setdiff1d(np.arange(N), OUT).astype(np.int32)


def variable(name, labels, **about):
    return replace(variable_from(column_from(name, labels)), **about)


TARGET = variable("y", (SIGNAL > 1).astype(int))
THREE = variable("y", np.digitize(SIGNAL, [0.5, 1.5]))
NUMBER = variable("y", SIGNAL)
PROTECTED = variable(
    "z", (FRAME["count"] + 3 * TARGET.labels > 5).to_numpy(), excluded=frozenset({2, 4}), sees_target=True
)
BLIND = replace(PROTECTED, sees_target=False)
VARIABLES = {"two": TARGET, "three": THREE, "number": NUMBER, "protected": PROTECTED, "blind": BLIND}

SETTINGS = {
    "lightgbm": {"n_estimators": 15, "min_child_samples": 5},
    "lightgbm, columns drawn": {"n_estimators": 15, "min_child_samples": 5, "colsample_bytree": 0.6},
    "lightgbm, by content": {"n_estimators": 15, "min_child_samples": 5, "colsample_bytree": 0.6},
    "lightgbm, shared bins": {"n_estimators": 15, "subsample": 0.5, "subsample_freq": 1},
    "sklearn": {"min_samples_leaf": 5, "max_features": 0.7},
}  # fmt: skip
every_engine = pytest.mark.parametrize("kind", SETTINGS)
each_engine = pytest.mark.parametrize("kind", ["lightgbm", "sklearn"])


def make(kind, table=TABLE, target=TARGET):
    if kind == "sklearn":
        return SklearnEngine(table, target)
    return LightGBMEngine(
        table, target, by_content="content" in kind, prefilter="shared" not in kind, workers=2
    )


def estimator_for(kind, learnt, **changes):
    parameters = SETTINGS[kind] | changes
    if kind == "sklearn":
        return (DecisionTreeClassifier if learnt.kind == "classes" else DecisionTreeRegressor)(**parameters)
    return (LGBMClassifier if learnt.kind == "classes" else LGBMRegressor)(**parameters)


def task_for(kind, learnt, rows=IN, scored=OUT, **about):
    return Task(estimator_for(kind, learnt), learnt, rows, 7, scored, **about)


def target_at(rows):
    return TARGET.labels[rows]


def through_json(scorer):
    plain, content = scorer.parts()
    return scorer_from(json.loads(json.dumps(plain)), content)


def assert_near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@every_engine
@pytest.mark.parametrize("name", VARIABLES)
@pytest.mark.parametrize("scored", [None, OUT])
def test_scores_of_rows_handed_over_anew_equal_those_of_the_fit(kind, name, scored):
    learnt, engine = VARIABLES[name], make(kind)
    model = engine.fit(task_for(kind, learnt, scored=scored))
    rows, others = (IN, OUT) if scored is None else (OUT, IN)
    assert model.scores.dtype == np.float64
    assert len(model.scores) == len(rows)
    again = Table.from_input(FRAME.iloc[rows])  # it reads the levels for itself
    assert_near(model.score(rows), model.scores)
    for table in (again, TABLE.take(rows)):
        assert_near(model.score(table, target_at(rows)), model.scores)
    assert_near(model.score(others), model.score(TABLE.take(others), target_at(others)))
    if scored is not None:
        tasks = [task_for(kind, learnt, scored=again, scored_target=target_at(rows)) for _ in range(2)]
        engine.prepare(tasks)
        for task in tasks:
            np.testing.assert_array_equal(engine.fit(task).scores, model.scores)


@every_engine
@pytest.mark.parametrize("target", [TARGET, THREE, NUMBER], ids=["two", "three", "number"])
@pytest.mark.parametrize("learnt", [PROTECTED, BLIND], ids=["protected", "blind"])
def test_rows_are_scored_with_other_labels_as_if_they_had_them(kind, target, learnt):
    model = make(kind, target=target).fit(task_for(kind, learnt))
    others = np.roll(target.labels[OUT], 1)
    expected = model.score(TABLE.take(OUT), others)
    np.testing.assert_array_equal(model.score(OUT, others), expected)
    assert bool(np.abs(expected - model.scores).max() > 0.1) is learnt.sees_target


@each_engine
@pytest.mark.parametrize(("code", "n_classes"), [(0, 2), (1, 2), (2, 3)])
def test_rows_of_one_class_make_a_model_that_is_certain_of_it(kind, code, n_classes):
    learnt = TARGET if n_classes == 2 else THREE
    rows = np.flatnonzero(learnt.labels == code).astype(np.int32)
    model = make(kind).fit(task_for(kind, learnt, rows))
    scorer = through_json(model.detach())
    assert scorer.schema is None
    expected = np.eye(n_classes)[code]
    for scores, n_rows in (
        (model.scores, len(OUT)),
        (model.score(IN), len(IN)),
        (model.score(TABLE), N),
        (scorer.score(TABLE), N),
        (make(kind).fit(task_for(kind, learnt, rows, scored=None)).scores, len(rows)),
    ):
        np.testing.assert_array_equal(scores, np.repeat(expected[None], n_rows, axis=0))
    assert model.gains is None
    assert model.n_trees is None


@each_engine
@pytest.mark.parametrize("absent", [0, 1])
def test_a_class_that_the_rows_lack_has_probability_zero(kind, absent):
    model = make(kind).fit(task_for(kind, THREE, IN[THREE.labels[IN] != absent]))
    assert (model.scores[:, absent] == 0).all()
    np.testing.assert_allclose(model.scores.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(through_json(model.detach()).score(TABLE), model.score(TABLE))


@every_engine
def test_columns_are_found_by_name_and_a_level_that_was_not_there_is_missing(kind):
    model = make(kind).fit(task_for(kind, TARGET))
    shuffled = FRAME[["kind", "flag", "text", "gaps", "number", "count"]].assign(more=1).iloc[OUT]
    unseen, missing = (Table.from_input(FRAME.assign(text=text)) for text in ("mauve", None))
    for scorer in (model, through_json(model.detach())):
        assert_near(scorer.score(Table.from_input(shuffled)), model.scores)
        np.testing.assert_array_equal(scorer.score(unseen), scorer.score(missing))


@every_engine
def test_a_table_that_does_not_fit_is_refused(kind):
    lacking = FRAME.rename(columns={"number": "numbers"})
    expected = r"The table has no column 'number', which the model learnt from; did you mean 'numbers'\?"
    with pytest.raises(ValueError, match=expected):
        make(kind).fit(task_for(kind, TARGET, scored=Table.from_input(lacking)))
    model = make(kind).fit(task_for(kind, TARGET))
    for table, sentence in (
        (lacking, expected),
        (np.zeros((3, 2)), "The table has 2 columns, and the model learnt from 6"),
        (FRAME.assign(number="one"), "Column 'number' holds text, but .* learnt from numbers: convert it"),
        (FRAME.assign(text=1), "Column 'text' holds numbers, but the model learnt from text"),
    ):
        for scorer in (model, through_json(model.detach())):
            with pytest.raises(ValueError, match=sentence):
                scorer.score(Table.from_input(table))


@every_engine
def test_a_column_that_the_model_does_not_see_may_lack(kind):
    engine, other = make(kind), Table.from_input(FRAME.drop(columns=["count", "text"]).iloc[OUT])
    model = engine.fit(task_for(kind, BLIND, scored=other))
    assert_near(model.score(other), model.scores)
    assert_near(model.score(OUT), model.scores)
    scorer = through_json(model.detach())
    np.testing.assert_array_equal(scorer.score(other), model.score(other))
    another_kind = Table.from_input(FRAME.assign(text=1.0).iloc[OUT])  # in a column that is not looked at
    np.testing.assert_array_equal(scorer.score(another_kind), model.score(other))
    with pytest.raises(ValueError, match="no column 'count'"):  # the same table, for who sees it
        engine.fit(task_for(kind, TARGET, scored=other))


@each_engine
def test_arrays_are_taken_by_position_and_names_may_be_shared(kind):
    frame = FRAME[["number", "gaps"]]
    X = frame.to_numpy()
    model = make(kind, Table.from_input(X)).fit(task_for(kind, TARGET))
    assert_near(model.score(Table.from_input(X[OUT])), model.scores)
    assert_near(model.score(Table.from_input(frame.iloc[OUT])), model.scores)
    twins = FRAME[["number", "gaps", "count"]].set_axis(["a", "a", "b"], axis=1)
    model = make(kind, Table.from_input(twins)).fit(task_for(kind, TARGET))
    assert_near(model.score(Table.from_input(twins.iloc[OUT])), model.scores)
    with pytest.raises(ValueError, match="Column 'a' appears more than once"):
        model.score(Table.from_input(twins.iloc[OUT, ::-1]))


@each_engine
def test_models_that_see_the_target_need_it(kind):
    model = make(kind).fit(task_for(kind, PROTECTED))
    for scorer, subject in ((model, "models of 'z' see"), (through_json(model.detach()), "model sees")):
        with pytest.raises(ValueError, match=f"The {subject} the target: pass its labels"):
            scorer.score(TABLE)
        with pytest.raises(ValueError, match="must have one label per row, got 1 for 600 rows"):
            scorer.score(TABLE, np.zeros(1, dtype=int))
    with pytest.raises(ValueError, match="models of 'z' see the target, but the engine was given none"):
        make(kind, target=None).fit(task_for(kind, PROTECTED))


@every_engine
@pytest.mark.parametrize("prepared", [False, True])
def test_pickled_engines_and_models_score_the_same(kind, prepared):
    engine, task = make(kind), task_for(kind, PROTECTED)
    if prepared:
        engine.prepare([task])
    model = engine.fit(task)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(engine)).fit(task).scores, model.scores)
    kept = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(kept.scores, model.scores)
    np.testing.assert_array_equal(kept.score(OUT), model.score(OUT))
    np.testing.assert_array_equal(kept.score(TABLE, TARGET.labels), model.score(np.arange(N)))


@pytest.mark.parametrize("kind", [name for name in SETTINGS if name != "lightgbm"])  # which draws nothing
def test_the_seed_takes_the_place_of_none_given(kind):
    engine, task = make(kind), task_for(kind, THREE)
    scores = engine.fit(task).scores
    np.testing.assert_array_equal(engine.fit(task).scores, scores)
    assert np.abs(engine.fit(replace(task, seed=8)).scores - scores).max() > 0
    seeded = replace(task, estimator=estimator_for(kind, THREE, random_state=3))
    np.testing.assert_array_equal(engine.fit(seeded).scores, engine.fit(replace(seeded, seed=8)).scores)
    assert task.estimator.random_state is None


def fit_scores(task, engine, stop):
    return engine.fit(task, stop).scores


@every_engine
def test_neither_workers_nor_order_change_a_score(kind):
    engine = make(kind)
    tasks = [task_for(kind, learnt) for learnt in (THREE, PROTECTED, NUMBER) for _ in range(2)]
    expected = [make(kind).fit(task).scores for task in tasks]
    executor = ThreadExecutor if engine.in_threads else JoblibExecutor
    for workers in (1, 2):
        engine.prepare(tasks)
        found = executor(workers).run(fit_scores, reversed(tasks), engine)
        for one, other in zip(reversed(expected), found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_each_estimator_gets_the_engine_that_honours_it():
    assert engine_class(LGBMClassifier(), TABLE) is LightGBMEngine
    assert engine_class(LGBMClassifier(class_weight="balanced"), TABLE) is SklearnEngine
    assert engine_class(DecisionTreeClassifier(), TABLE) is SklearnEngine
    assert LightGBMEngine.in_threads
    assert not SklearnEngine.in_threads
