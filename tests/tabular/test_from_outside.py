"""What tables may come as, through the public names that take them; columns are in `test_column.py`."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from fado import OutOfBagEntropy, RandomPrevalenceSampler

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")

N = 160
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.6, size=(N, 4))
Y = (COUNTS[:, 0] + RNG.normal(size=N) > 0.5).astype(int)
Z = (COUNTS[:, 1] + Y + RNG.normal(size=N) > 1).astype(int)


def value(X):
    fitted = OutOfBagEntropy(n_bags=3, unseen_fraction=0.4, random_state=0, n_jobs=1)
    return fitted.fit(X, Y, sensitive_features=Z).valuation_.values.to_numpy()


def sample(X):
    sampler = RandomPrevalenceSampler(random_state=0)
    sampler.fit_resample(X, Y, sensitive_features=Z)
    return sampler.sample_indices_


PLAIN = value(COUNTS), sample(COUNTS)


def matrix(values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix(values)


TABLES = {
    "big-endian": COUNTS.astype(">i4"),
    "big-endian floats": COUNTS.astype(">f8"),
    "longdouble": COUNTS.astype(np.longdouble),
    "half": COUNTS.astype(np.float16),
    "np.matrix": matrix(COUNTS),
    "masked": np.ma.masked_array(COUNTS),
    "lists": COUNTS.tolist(),
    "counts, csr": scipy.sparse.csr_matrix(COUNTS),
    "counts, csc array": scipy.sparse.csc_array(COUNTS.astype(np.int8)),
    "sparse longdouble": scipy.sparse.csr_matrix(COUNTS.astype(np.longdouble)),
    "pandas sparse": pd.DataFrame(COUNTS).astype("Sparse[int]"),
    "pandas, partly sparse": pd.DataFrame(COUNTS).astype({1: "Sparse[int]"}),
    "polars 128 bits": pl.DataFrame(COUNTS).cast(pl.Int128),
    "polars lazy": pl.LazyFrame(COUNTS),
    "arrow": pa.table({f"c{j}": COUNTS[:, j] for j in range(4)}),
}


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
def test_values_and_samples_do_not_depend_on_the_form(X):
    np.testing.assert_array_equal(value(X), PLAIN[0])
    np.testing.assert_array_equal(sample(X), PLAIN[1])
