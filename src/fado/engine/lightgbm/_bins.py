"""Tables in bins, and some rows of them with labels and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado.engine._base import Rows
from fado.engine.lightgbm._matrix import Columns, SparseColumns, input_for_bins
from fado.engine.lightgbm._parameters import BINNING
from fado.engine.lightgbm._threads import binning

if TYPE_CHECKING:
    import lightgbm

__all__ = ["bin_columns", "many_usual_values", "subset"]

_ROWS_THAT_TELL = 2000
_MANY = 0.2


def many_usual_values(columns: Columns) -> bool:
    """Tell whether many of a table's entries are usual: zero, or a value in at least 70 % of the rows.

    LightGBM need not count them. Many are a fifth; a sample of the rows tells.
    """
    n_rows = columns.matrix.shape[0] if isinstance(columns, SparseColumns) else len(columns[0])
    rows = np.linspace(0, n_rows - 1, min(n_rows, _ROWS_THAT_TELL)).astype(np.int64)
    if isinstance(columns, SparseColumns):
        return bool(columns.usual_shares(rows).mean() >= _MANY)
    usual = []
    for column in columns:
        sample = column.take(rows).numbers()
        _, counts = np.unique(sample, return_counts=True)
        most = counts.max() / len(rows)
        usual.append(most if most >= 0.7 else np.mean(sample == 0.0) if column.levels is None else 0.0)
    return bool(np.mean(usual) >= _MANY)


def bin_columns(
    columns: Columns,
    parameters: dict[str, Any],
    workers: int,
    reference: lightgbm.Dataset | None = None,
    *,
    least_rows: int = 1,
) -> lightgbm.Dataset:
    """Bin a table; with a reference, into the bins of that one.

    Parameters
    ----------
    columns : sequence of Column, or SparseColumns
        The features.
    parameters : dict
        Of a booster; those that decide the bins are read, and must be those of the reference.
    workers : int
        Threads for the binning; the bins do not depend on it.
    reference : lightgbm.Dataset, optional
        A binned table of the same columns.
    least_rows : int
        No model will ever split off fewer rows. A column that cannot be split then, such as a constant one,
        is never drawn by models that draw columns.
    """
    import lightgbm

    data, levelled = input_for_bins(columns)
    decisive = {name: parameters[name] for name in BINNING if name in parameters}
    settings = decisive | {"verbosity": -1, "min_data_in_leaf": least_rows}
    dataset = lightgbm.Dataset(
        data,
        reference=reference,
        label=np.zeros(data.shape[0], dtype=np.float32),
        categorical_feature=levelled,
        params=settings,
    )
    with binning(workers) as threads:
        dataset.params = {**settings, "num_threads": threads}
        dataset.construct()
        dataset.params = {**settings, "num_threads": 1}  # its subsets name the number again, while fits run
    return dataset


def subset(
    binned: lightgbm.Dataset,
    rows: Rows,
    labels: npt.NDArray[Any] | None = None,
    weights: npt.NDArray[np.floating[Any]] | None = None,
) -> lightgbm.Dataset:
    """Give some rows of a binned table with labels (else those of the table) and, if any, weights.

    LightGBM takes whatever weights it is given, all zero or negative: they must have been checked before.
    Call it, and all that follows with the subset, within `fado.engine.lightgbm._threads.fitting`.
    """
    part = binned.subset([])
    part.used_indices = rows  # type: ignore[assignment]  # `subset` would sort them as a Python list
    part.construct()
    if labels is not None:
        part.set_field("label", labels.astype(np.float32))  # `set_label` looks through every library first
    return part if weights is None else part.set_weight(weights.astype(np.float32, copy=False))
