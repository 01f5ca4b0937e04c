"""The same rows, sparse or dense, get the same models; threads never grow under a fit."""

import subprocess
import sys
import threading
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from lightgbm import LGBMClassifier

from fado import InBagEntropy, OutOfBagEntropy
from fado.engine import LightGBMEngine, Task, engine_class
from fado.engine._bins import DenseColumns, SparseColumns, bin_columns, binning, fitting, subset
from fado.tabular import Table, column_from, variable_from

N = 800
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.3, size=(N, 30))
NUMBERS = np.where(RNG.random((N, 30)) < 0.7, 0.0, RNG.normal(size=(N, 30)))
NUMBERS[RNG.random(NUMBERS.shape) < 0.02] = np.nan
SIGNAL = COUNTS[:, :6].sum(axis=1) + np.nan_to_num(NUMBERS[:, :3]).sum(axis=1) + RNG.normal(size=N)
Y = (SIGNAL > 2).astype(int)
Z = (COUNTS[:, 3:9].sum(axis=1) + Y + RNG.normal(size=N) > 3).astype(int)
OUT = np.arange(0, N, 4, dtype=np.int32)
IN = np.setdiff1d(np.arange(N, dtype=np.int32), OUT)
THREE = variable_from(column_from("y", np.digitize(SIGNAL, [1, 3])))
SEEING = replace(variable_from(column_from("z", Z)), sees_target=True, excluded=frozenset({4}))


def with_explicit_zeros(X):
    """A matrix with zeros that are stored, and an entry in two parts."""
    rows, columns = np.indices(X.shape)
    parts = np.r_[X.ravel(), 0.5, -0.5]
    places = np.r_[rows.ravel(), 0, 0], np.r_[columns.ravel(), 1, 1]
    return scipy.sparse.coo_matrix((parts, places), shape=X.shape)


FORMS = {
    "csr": scipy.sparse.csr_matrix,
    "csc array": scipy.sparse.csc_array,
    "single": lambda X: scipy.sparse.csr_matrix(X, dtype=np.float32),
    "long": lambda X: scipy.sparse.csr_matrix(X, dtype=np.longdouble),
    "whole": lambda X: scipy.sparse.csr_matrix(X, dtype=np.int64),
    "stored zeros": with_explicit_zeros,
    "pandas": lambda X: pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(X)),
    "pandas, whole": lambda X: pd.DataFrame(X).astype("Sparse[int]"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_default_models_of_the_same_rows_are_the_same(form):
    dense = OutOfBagEntropy(n_bags=5, random_state=0).fit(COUNTS, Y, sensitive_features=Z).valuation_
    sparse = OutOfBagEntropy(n_bags=5, random_state=0).fit(form(COUNTS), Y, sensitive_features=Z).valuation_
    for field in dense.fields:
        np.testing.assert_array_equal(getattr(sparse, field).to_numpy(), getattr(dense, field).to_numpy())
    assert sparse.metadata["trees"] == dense.metadata["trees"]
    assert sparse.metadata["split_gains"]["shares"] == dense.metadata["split_gains"]["shares"]


@pytest.mark.parametrize("valuator", [OutOfBagEntropy(n_bags=5), InBagEntropy()], ids=str)
@pytest.mark.parametrize("X", [NUMBERS, COUNTS > 0], ids=["numbers and gaps", "flags"])
def test_values_of_a_number_are_the_same(valuator, X):
    valuator.set_params(random_state=0)
    sparse = valuator.fit(scipy.sparse.csr_matrix(X), SIGNAL, sensitive_features=Z).valuation_.values
    dense = valuator.fit(X, SIGNAL, sensitive_features=Z).valuation_.values
    np.testing.assert_array_equal(sparse, dense)


@pytest.mark.parametrize("by_content", [False, True])
@pytest.mark.parametrize("parameters", [{}, {"colsample_bytree": 0.4}], ids=["all columns", "columns drawn"])
def test_models_and_all_that_they_say_are_the_same(by_content, parameters):
    tables = Table.from_input(NUMBERS), Table.from_input(scipy.sparse.csr_matrix(NUMBERS))
    others = Table.from_input(NUMBERS[OUT]), Table.from_input(scipy.sparse.csc_matrix(NUMBERS[OUT]))
    estimator = LGBMClassifier(n_estimators=15, **parameters)
    results = []
    for table, other in zip(tables, others, strict=True):
        assert engine_class(estimator, table) is LightGBMEngine
        engine = LightGBMEngine(table, THREE, by_content=by_content)
        model = engine.fit(Task(estimator, SEEING, IN, 7, OUT))
        again = engine.fit(Task(estimator, SEEING, IN, 7, other, scored_target=THREE.labels[OUT]))
        assert model.gains[4] == 0
        results.append([model.scores, model.gains, model.score(IN), again.scores])
        for rows in others:  # either model takes either form
            np.testing.assert_allclose(model.score(rows, THREE.labels[OUT]), model.scores, rtol=1e-12)
    for dense, sparse in zip(*results, strict=True):
        np.testing.assert_array_equal(sparse, dense)


@pytest.mark.parametrize("share", [0.9, 0.6, 0.1], ids=str)
def test_what_is_usual_does_not_depend_on_the_form(share):
    for filled in (1.0, NUMBERS[:, :4], np.nan):
        X = np.where(RNG.random((N, 4)) < share, filled, RNG.normal(size=(N, 4)))
        columns = SparseColumns(scipy.sparse.csr_matrix(X))
        assert columns.has_many_usual() == DenseColumns(Table.from_input(X).columns).has_many_usual()


def test_a_very_wide_matrix_is_never_dense():
    rows, each, n_columns = N, 10, 20_000
    places = np.repeat(np.arange(rows), each), RNG.integers(0, n_columns, rows * each)
    X = scipy.sparse.csr_matrix((np.ones(rows * each), places), shape=(rows, n_columns))
    tracemalloc.start()
    engine = LightGBMEngine(Table.from_input(X), THREE, by_content=True)
    tasks = [Task(LGBMClassifier(n_estimators=2), SEEING, np.arange(500, dtype=np.int32), 0, None)]
    engine.prepare(tasks)
    engine.fit(tasks[0]).score(np.arange(500, rows, dtype=np.int32))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < rows * n_columns * 8 / 5


def test_the_matrix_of_the_user_is_left_as_it_is():
    X = with_explicit_zeros(COUNTS).tocsr()
    stored = X.nnz
    LightGBMEngine(Table.from_input(X), by_content=True)
    assert X.nnz == stored


# A table is binned by several threads, then subsets of it are made while other fits run: where the number of
# threads grows under a fit, a busy machine crashes within some of these rounds.
CROWDED = """
import numpy as np
from lightgbm import LGBMClassifier
from fado.engine import LightGBMEngine, Task
from fado.execution import ThreadExecutor
from fado.tabular import Table, column_from, variable_from
rng = np.random.default_rng(0)
table = Table.from_input(rng.normal(size=(2000, 8)))
variables = [variable_from(column_from("y", rng.integers(0, classes, 2000))) for classes in (3, 2)]
model = LGBMClassifier(n_estimators=10, num_leaves=15)
everything = np.arange(2000, dtype=np.int32)
tasks = [
    Task(model, variable, everything[everything % 10 != bag], bag, everything[everything % 10 == bag])
    for variable in variables
    for bag in range(10)
]
def fit(task, engine, stop):
    fitted = engine.fit(task, stop)
    assert np.abs(fitted.score(task.scored) - fitted.scores).max() < 1e-12
    return fitted.scores
def fit_all():
    engine = LightGBMEngine(table, workers=4)
    engine.prepare(tasks[:10])  # the others' bins are the same
    return np.concatenate([scores.ravel() for scores in ThreadExecutor(4).run(fit, tasks, engine)])
first = fit_all()
assert all(np.array_equal(first, fit_all()) for _ in range(11))
print("the same every time")
"""


def test_fits_side_by_side_neither_crash_nor_differ():
    done = subprocess.run([sys.executable, "-c", CROWDED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "the same every time"


def test_subsets_of_a_table_that_many_threads_binned_name_one_thread():
    columns = DenseColumns([column_from("x", np.arange(100.0))])
    binned = bin_columns(columns, {}, workers=4)
    part = subset(binned, np.arange(50, dtype=np.int32), np.zeros(50))
    assert binned.params["num_threads"] == 1
    assert part.params["num_threads"] == 1


def test_binning_alone_may_use_every_thread_and_beside_a_fit_one():
    with binning(8) as threads:
        assert threads == 8
    with fitting(), binning(8) as threads:
        assert threads == 1


def test_a_fit_waits_for_a_table_to_be_binned():
    started = threading.Event()

    def fit():
        with fitting():
            started.set()

    thread = threading.Thread(target=fit)
    with binning(8):
        thread.start()
        assert not started.wait(0.05)
    thread.join(5)
    assert started.is_set()
