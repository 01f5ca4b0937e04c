"""A forked child of a process that has used OpenMP: several threads would wait there for ever."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

START = """
import multiprocessing, os, pickle, signal, sys
import numpy as np
from lightgbm import LGBMClassifier
from fado import InBagEntropy, OutOfBagEntropy
from fado.engine import LightGBMEngine, Task
from fado.tabular import Table, column_from, variable_from
rng = np.random.default_rng(0)
X = rng.normal(size=(600, 8))
y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
rows = np.arange(600, dtype=np.int32)
task = Task(LGBMClassifier(n_estimators=20), variable_from(column_from("y", y)), rows, 0)
def value(valuator, n_jobs):
    fitted = valuator(random_state=0, n_jobs=n_jobs).fit(X, y, sensitive_features=X[:, 1] > 0.3)
    return fitted.valuation_.values
def in_child(do):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends a child that hangs
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(do(), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with {status}"
    return pickle.loads(content)
def fit_many_threads():
    LGBMClassifier(n_estimators=5, verbosity=-1, n_jobs=2).fit(X, y)
"""

AFTER_OUR_FIT = """
for valuator in (OutOfBagEntropy, InBagEntropy):
    expected = value(valuator, 2)
    for n_jobs in (1, 2):
        assert np.array_equal(in_child(lambda: value(valuator, n_jobs)), expected)
signal.alarm(60)
with multiprocessing.get_context("fork").Pool(2) as pool:
    for found in pool.starmap(value, [(InBagEntropy, 1), (InBagEntropy, 2)]):
        assert np.array_equal(found, expected)
"""

AFTER_THE_USERS_FIT = """
fit_many_threads()
found = [in_child(lambda: value(valuator, 2)) for valuator in (OutOfBagEntropy, InBagEntropy)]
assert np.array_equal(found[0], value(OutOfBagEntropy, 2))
assert np.array_equal(found[1], value(InBagEntropy, 2))
"""

WITH_THE_PARENTS_MODELS = """
engine = LightGBMEngine(Table.from_input(X), workers=2)
model = engine.fit(task)
fit_many_threads()  # the last to name a number of threads
sent = pickle.dumps(model)
assert np.array_equal(in_child(lambda: model.score(rows)), model.scores)
assert np.array_equal(in_child(lambda: engine.fit(task).scores), model.scores)
assert np.array_equal(in_child(lambda: pickle.loads(sent).score(rows)), model.scores)
assert np.array_equal(in_child(lambda: model).score(rows), model.scores)
"""


WHILE_FITTING = """
from fado.engine._bins import binning, fitting
with fitting(), binning(1):
    found = in_child(lambda: value(OutOfBagEntropy, 2))
with binning(2):  # the parent's threads would wait here
    assert np.array_equal(in_child(lambda: value(OutOfBagEntropy, 2)), found)
"""

CASES = {
    "after a fit of ours": AFTER_OUR_FIT,
    "after a fit of the user": AFTER_THE_USERS_FIT,
    "with the parent's models": WITH_THE_PARENTS_MODELS,
    "while the parent fits": WHILE_FITTING,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_a_forked_child_gives_the_same_and_does_not_wait(code):
    command = [sys.executable, "-W", "ignore", "-c", START + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
