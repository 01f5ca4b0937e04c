import subprocess
import sys
import threading

import numpy as np

from fado.engine._bins import DenseColumns, bin_columns, binning, fitting, subset
from fado.tabular import column_from

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


def test_binning_alone_may_use_every_thread():
    with binning(8) as threads:
        assert threads == 8


def test_binning_beside_a_fit_uses_one_thread():
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
