"""Reports the columns of a table before anything is fitted: ids, leaks, text that should be numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fado._typing import Integers
from fado.tabular import (
    FEWEST_OF_LEVEL,
    Column,
    Table,
    Variable,
    doubt_of,
    protected_columns,
    target_column,
    variable_from,
)

__all__ = ["check_columns"]

REVEALS_TARGET, REVEALS_GROUP = 0.8, 0.4  # of the uncertainty that a column alone removes
_SAMPLE, _FOLDS, _SEED = 20_000, 5, 0
_MOST_BINS, _ROWS_OF_BIN = 128, 10
_MOST_CLASSES = 50  # the others count as one
_PRIOR_ROWS = 1.0  # by which the entries of a bin are drawn to those of all rows
_HEADER = ["column", "kind", "finding", "measured", "what to do"]
_FIXES = {
    "id": "leave it out: no other row has these entries",
    "date as text": "turn it into numbers, such as days since a date",
    "number as text": "turn it into numbers",
    "constant": "leave it out: all rows have the same entry",
    "rare levels": f"merge them: models learn levels of fewer than {FEWEST_OF_LEVEL} rows as missing",
}


def check_columns(
    X: Any, y: Any = None, sensitive_features: Any = None, *, unknown: Any = None
) -> pd.DataFrame:
    """Report columns that need a decision before a model learns them.

    Nothing is changed, and no model is trained. What a column reveals is measured on up to 20,000 rows, drawn
    with a fixed seed; all other findings are of all rows.

    Parameters
    ----------
    X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features.
    y : array-like of shape (n_rows,), optional
        The target.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
        The protected attributes.
    unknown : value or list of values, optional
        Entries of the protected attributes that mean the same as a missing one, such as ``"?"`` or ``-1``.

    Returns
    -------
    DataFrame
        A row for every finding: ``column``, ``kind`` (``numbers``, ``text``, ``categories`` or ``booleans``),
        ``finding``, ``measured`` and ``what to do``. The findings:

        ``id``
            Text of which more than 90 % of the entries differ, in at least 30 rows. Or whole numbers that do,
            and that are a counter (they repeat less than a tenth as often as the most varied measurement
            with their range would), do not fit a float, or are in a column called id. `measured` is the share
            of different entries.
        ``date as text``, ``number as text``
            All different texts but up to three words are dates, or numbers such as "16,789.24", "1.234,5",
            "12 %" or "$ 12". `measured` is the share of those that are.
        ``constant``
            There are no two different entries.
        ``reveals target``, ``reveals group``
            The column alone removes at least 80 % of the uncertainty about the target, or 40 % of that about
            a protected attribute. `measured` is that share, out of fold: of the log-loss, or, for numbers, of
            the variance of their ranks. Numbers are cut into at most 128 bins.
        ``rare levels``
            Fewer than five rows have some levels. `measured` is the share of the rows that have one of them.

    See Also
    --------
    fado.OutOfBagEntropy : Its models warn of columns that reveal an attribute together.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"id": [f"c{j}" for j in range(60)], "paid": ["12 %", "8 %", "5 %"] * 20})
    >>> check_columns(X.assign(sent=[1, 2] * 30), y=[0, 1] * 30)[["column", "finding", "measured"]].round(2)
      column         finding  measured
    0     id              id      1.00
    1   paid  number as text      1.00
    2   sent  reveals target      0.97
    """
    table = Table.from_input(X)
    target = None if y is None else target_column(y, table.n_rows)
    columns = protected_columns(sensitive_features, table, unknown)
    made_of = {column.name: [table.names[j]] for column, j in columns if j is not None}
    return report_columns(table, target, [column for column, _ in columns], made_of)


def report_columns(
    table: Table, target: Column | None, protected: Sequence[Column], made_of: Mapping[str, Collection[str]]
) -> pd.DataFrame:
    """Report the columns of a table; those that an attribute is made of do not count as revealing it."""
    variables = [*([] if target is None else [target]), *protected]
    measures = [(column is target, _Measure(variable_from(column))) for column in variables]
    rows: list[tuple[str, str, str, float, str]] = []
    for j, name in enumerate(table.names):
        try:
            column = table.column(j)
        except (TypeError, ValueError):  # of a type that no model takes, as a fit will say
            continue
        doubt = None if table.is_sparse else doubt_of(column)
        findings = _counted(column) if doubt is None else [(*doubt, _FIXES[doubt[0]])]
        for is_target, measure in measures:
            share = 0.0 if name in made_of.get(measure.name, ()) else measure.share(column)
            if is_target and share >= REVEALS_TARGET:
                findings.append(("reveals target", share, "use it only if it is known before the target is"))
            elif not is_target and share >= REVEALS_GROUP:
                fix = f"leave it out if decisions must not depend on {measure.name!r}"
                findings.append(("reveals group", share, fix))
        rows += [(name, _kind(column), *finding) for finding in findings]
    return pd.DataFrame(rows, columns=_HEADER).astype({"measured": float})


def _kind(column: Column) -> str:
    if column.levels is None:
        return "booleans" if column.is_boolean else "numbers"
    return "text" if column.declared is None else "categories"


def _counted(column: Column) -> list[tuple[str, float, str]]:
    """Return what the counts of a column's entries say: it is constant, or has rare levels."""
    if column.levels is None:
        numbers = column.numbers()
        known = numbers[~np.isnan(numbers)]
        same = len(known) in (0, len(numbers)) and bool((known == known[:1]).all())
        return [("constant", np.nan, _FIXES["constant"])] if same else []
    codes = column.codes()
    counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    if len(counts) == 0 or counts.max() == len(codes):
        return [("constant", np.nan, _FIXES["constant"])]
    rare = counts[counts < FEWEST_OF_LEVEL]
    return [("rare levels", rare.sum() / len(codes), _FIXES["rare levels"])] if len(rare) else []


class _Measure:
    """The share of the uncertainty about a variable that a column alone removes, out of fold."""

    def __init__(self, variable: Variable) -> None:
        self.name = variable.name
        generator = np.random.default_rng(_SEED)
        rows = np.flatnonzero(variable.given)
        if len(rows) > _SAMPLE:
            rows = np.sort(generator.choice(rows, _SAMPLE, replace=False))
        self._rows = rows
        self._folds = generator.permutation(len(rows)) % _FOLDS
        labels = variable.labels[rows]
        self._codes: Integers | None = None
        if variable.kind == "classes":
            _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
            place = np.empty(len(counts), dtype=np.int64)
            place[np.argsort(-counts, kind="stable")] = np.minimum(np.arange(len(counts)), _MOST_CLASSES)
            self._codes = place[codes]
        else:
            self._ranks = pd.Series(labels).rank().to_numpy() / len(rows) - 0.5

    def share(self, column: Column) -> float:
        """Return the share, 0 if there are too few rows to tell."""
        if len(self._rows) < _FOLDS * _ROWS_OF_BIN:
            return 0.0
        bins = _bins(column.take(self._rows))
        n_bins = int(bins.max()) + 1
        cells = self._folds * n_bins + bins
        if self._codes is not None:
            n_classes = int(self._codes.max()) + 1
            size = _FOLDS * n_bins * n_classes
            counts = np.bincount(cells * n_classes + self._codes, minlength=size)
            counts = counts.reshape(_FOLDS, n_bins, n_classes)
            others = counts.sum(axis=0) - counts  # of the other folds
            prior = others.sum(axis=1, keepdims=True) + 1 / n_classes
            prior /= prior.sum(axis=2, keepdims=True)
            learnt = (others + _PRIOR_ROWS * prior) / (others.sum(axis=2, keepdims=True) + _PRIOR_ROWS)
            loss, without = -(counts * np.log(learnt)).sum(), -(counts * np.log(prior)).sum()
        else:
            powers = (None, self._ranks, self._ranks**2)
            sums = [np.bincount(cells, power, _FOLDS * n_bins).reshape(_FOLDS, n_bins) for power in powers]
            rows, firsts = (of_fold.sum(axis=0) - of_fold for of_fold in sums[:2])
            prior = firsts.sum(axis=1, keepdims=True) / rows.sum(axis=1, keepdims=True)
            learnt = (firsts + _PRIOR_ROWS * prior) / (rows + _PRIOR_ROWS)
            loss, without = (
                (sums[2] - 2 * mean * sums[1] + mean**2 * sums[0]).sum() for mean in (learnt, prior)
            )
        return max(1 - float(loss / without), 0.0) if without > 0 else 0.0


def _bins(column: Column) -> Integers:
    """Cut a column into bins of about equally many rows; levels that occur once share one, as missing do."""
    numbers = column.numbers()
    missing = np.isnan(numbers)
    if column.levels is None:
        known = numbers[~missing]
        n_bins = min(_MOST_BINS, len(known) // _ROWS_OF_BIN)
        at = np.arange(1, max(n_bins, 1)) / max(n_bins, 1)
        edges = np.quantile(known, at, method="inverted_cdf") if len(at) else known[:0]
        return np.where(missing, 0, np.searchsorted(np.unique(edges), numbers) + 1)
    _, codes, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    bins = np.where(counts > 1, np.cumsum(counts > 1) + 1, 1)[codes]
    return np.where(missing, 0, bins)
