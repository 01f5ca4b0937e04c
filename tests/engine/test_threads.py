import subprocess
import sys
import threading

import numpy as np

from fado._frames import column_from
from fado.engine._boosting import bin_columns, subset
from fado.engine._threads import binning, fitting

# A table is binned by several threads, then subsets of it are made while other fits run: where the number of
# threads grows under a fit, a busy machine crashes within some of these rounds.
CROWDED = """
import numpy as np
from lightgbm import LGBMClassifier
from fado import OutOfBagEntropy
rng = np.random.default_rng(0)
X, y, z = rng.normal(size=(2000, 8)), rng.integers(0, 3, 2000), rng.integers(0, 2, 2000)
model = LGBMClassifier(n_estimators=10, num_leaves=15)
valuator = OutOfBagEntropy(model, n_bags=10, random_state=0, n_jobs=4)
values = [valuator.fit(X, y, sensitive_features=z).valuation_.values.to_numpy() for _ in range(12)]
assert all(np.array_equal(values[0], other) for other in values[1:])
print("the same every time")
"""


def test_fits_side_by_side_neither_crash_nor_differ():
    done = subprocess.run([sys.executable, "-c", CROWDED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "the same every time"


def test_subsets_of_a_table_that_many_threads_binned_name_one_thread():
    columns = [column_from("x", np.arange(100.0))]
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
