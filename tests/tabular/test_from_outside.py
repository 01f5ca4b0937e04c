"""What tables, targets and attributes may come as, through the public names that take them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from fado import OutOfBagEntropy, RandomPrevalenceSampler
from fado.metrics import evaluate

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")

N = 160
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.6, size=(N, 4))
Y = (COUNTS[:, 0] + RNG.normal(size=N) > 0.5).astype(int)
Z = (COUNTS[:, 1] + Y + RNG.normal(size=N) > 1).astype(int)
SCORES = (Y + RNG.normal(size=N)).round(3)


def value(X=COUNTS, y=Y, z=Z):
    fitted = OutOfBagEntropy(n_bags=3, unseen_fraction=0.4, random_state=0, n_jobs=1)
    return fitted.fit(X, y, sensitive_features=z).valuation_.values.to_numpy()


def sample(X=COUNTS, y=Y, z=Z):
    sampler = RandomPrevalenceSampler(random_state=0)
    sampler.fit_resample(X, y, sensitive_features=z)
    return sampler.sample_indices_


def validated(y=Y, scores=SCORES, z=Z):
    return dict(evaluate(y, scores, sensitive_features=z, max_fpr=0.2))


PLAIN = value(), sample(), validated()


def check(X=COUNTS, y=Y, z=Z, scores=SCORES):
    """Whatever form they have, the values, the rows that stay and the metrics are the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the matrix subclass")
        np.testing.assert_array_equal(value(X, y, z), PLAIN[0])
        np.testing.assert_array_equal(sample(X, y, z), PLAIN[1])
        assert validated(y, scores, z) == PLAIN[2]


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


COLUMNS = {
    "big-endian": lambda a: a.astype(">i8"),
    "longdouble": lambda a: a.astype(np.longdouble),
    "masked": np.ma.masked_array,
    "pandas sparse": lambda a: pd.Series(a, dtype="Sparse[int]", name="z"),
    "categories": lambda a: pd.Series(a, dtype="category", name="z"),
    "polars 128 bits": lambda a: pl.Series("z", a, dtype=pl.Int128),
    "arrow": pa.array,
    "nullable": lambda a: pd.Series(a, dtype="Int64", name="z"),
}


ATTRIBUTES = [matrix(Z).T, pl.LazyFrame({"z": Z}), pd.DataFrame({"z": pd.Series(Z, dtype="Sparse[int]")})]
SCORED = [list, pd.Series, pl.Series, pa.array, lambda scores: scores.astype(">f8")]
GIVEN = {f"X, {name}": {"X": X} for name, X in TABLES.items()}
GIVEN |= {f"y, {name}": {"y": form(Y)} for name, form in COLUMNS.items()}
GIVEN |= {f"z, {name}": {"z": form(Z)} for name, form in COLUMNS.items()}
GIVEN |= {f"table of z, {number}": {"z": z} for number, z in enumerate(ATTRIBUTES)}
GIVEN |= {f"scores, {number}": {"scores": form(SCORES)} for number, form in enumerate(SCORED)}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_values_samples_and_metrics_do_not_depend_on_the_form(given):
    check(**given)
