"""A strategy for scikit-activeml: query the candidates with the highest utility."""

from __future__ import annotations

import warnings
from collections.abc import Sized
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from skactiveml.base import SingleAnnotatorPoolQueryStrategy
from skactiveml.utils import MISSING_LABEL, check_missing_label, check_random_state, is_labeled
from sklearn.utils import column_or_1d

from fado._checks import MOST_ROWS, check_count, sklearn_seed
from fado._messages import warn_user
from fado._typing import Floats, Integers
from fado.active._query import pool_utilities, read_pool, value_pool
from fado.tabular import Problem, Table, note_features, read_problem, read_rows, take_rows
from fado.valuation import OutOfBagEntropy

_FEWEST = 20  # labels: the default models learn nothing from fewer


class UtilitySampling(SingleAnnotatorPoolQueryStrategy):
    """Query the rows with the highest utility to a model and its fairness; a scikit-activeml strategy.

    Every query trains the models of `OutOfBagEntropy` on the labelled rows, values the candidates with them,
    and selects those with the highest utility; ties are broken at random. With fewer than 20 labels, or while
    all labelled rows are of one class or one group, candidates are drawn at random. To use other models, use
    `UtilityQuery`.

    Parameters
    ----------
    utility : utility, optional
        How a row's values are combined. None means ``LinearUtility(0.75)`` with `sensitive_features`, and
        the value for the target alone without.
    missing_label : scalar, str, None or nan, default=nan
        The marker of a missing label in `y`.
    random_state : int, RandomState or None, default=None
        Seed of the models and of draws between equal utilities.

    See Also
    --------
    fado.active.UtilityQuery : Queries with any valuator, group shares and diversity.

    References
    ----------
    D. Kottke et al., "scikit-activeml: A Library and Toolbox for Active Learning Algorithms", Preprints,
    2021.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.active import UtilitySampling
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> sex = np.where(X[:, 1] + rng.normal(size=2000) > 1, "f", "m")
    >>> labels = (X[:, 0] + 0.3 * rng.normal(size=2000) > 0).astype(float)
    >>> y = np.where(np.arange(2000) < 500, labels, np.nan)
    >>> strategy = UtilitySampling(random_state=0)
    >>> rows = strategy.query(X, y, batch_size=50, sensitive_features=sex)
    >>> near = np.abs(X[:, 0]) < 0.5  # where labels are uncertain
    >>> print((rows < 500).sum(), near.mean().round(1), near[rows].mean().round(1))
    0 0.4 1.0
    """

    def __init__(
        self, utility: Any = None, missing_label: Any = MISSING_LABEL, random_state: Any = None
    ) -> None:
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.utility = utility

    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
        sensitive_features: Any = None,
        unknown: Any = None,
    ) -> Any:
        """Select the candidates to label next.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_samples, n_features)
            The features of labelled and unlabelled rows. Text, categories and missing values are allowed.
        y : array-like of shape (n_samples,)
            Their labels; `missing_label` for unlabelled rows.
        candidates : None, array of int, or table of shape (n_candidates, n_features), default=None
            The rows to select from: None means all unlabelled rows of `X`, integers are positions of rows of
            `X`, and a table contains other rows.
        batch_size : int, default=1
            How many to select; all candidates, with a warning, if there are fewer.
        return_utilities : bool, default=False
            Whether to return the utilities as well.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            The protected attributes of the rows of `X`. The models use those of labelled rows.
        unknown : value or list of values, optional
            Values of the protected attributes that mean the same as a missing one, such as ``"?"`` or ``-1``.

        Returns
        -------
        query_indices : ndarray of shape (batch_size,)
            Positions of the selected rows in `X`, or in `candidates` if that is a table.
        utilities : ndarray of shape (batch_size, n_samples) or (batch_size, n_candidates)
            Only with `return_utilities`: the utilities from which each row of the batch was selected; NaN
            for rows that are not candidates, or were selected before.
        """
        table = read_pool(X, "X")
        labels, missing_label = _read_labels(y, table.n_rows, self.missing_label)
        check_missing_label(missing_label, target_type=labels.dtype)
        labelled = is_labeled(labels, missing_label)
        rows, pool = _read_candidates(candidates, table, labelled)
        n_candidates = pool.n_rows if rows is None else len(rows)
        batch_size = check_count("batch_size", batch_size, 1, MOST_ROWS)
        if batch_size > n_candidates:
            there = f"the {n_candidates} candidates: all of them are selected."
            warn_user(f"`batch_size={batch_size}` is more than {there}")
        if not isinstance(return_utilities, bool):
            raise TypeError(f"`return_utilities` must be True or False, got {return_utilities!r}.")
        generator = check_random_state(sklearn_seed(self.random_state), int((~labelled).sum()) + 1)
        seed = int(generator.randint(2**31 - 1))
        problem = _labelled_problem(table, labels, labelled, sensitive_features, unknown)
        utilities = np.zeros(n_candidates)
        if problem is not None:
            source = pool.source if rows is None else take_rows(table.source, rows)
            utilities = self._utilities(problem, source, seed)
        note_features(self, table)
        self.missing_label_, self.random_state_ = self.missing_label, generator
        chosen = np.lexsort((generator.random_sample(n_candidates), -utilities))[:batch_size]
        of_all = utilities
        if rows is not None:
            chosen, of_all = rows[chosen], np.full(table.n_rows, np.nan)
            of_all[rows] = utilities
        return (chosen, _by_turn(of_all, chosen)) if return_utilities else chosen

    def _utilities(self, problem: Problem, pool: Any, seed: int) -> Floats:
        """Train models on the labelled rows, and give the utilities of the pool."""
        valuator = OutOfBagEntropy(keep_models=True, random_state=seed)
        with warnings.catch_warnings():  # with few labels, a class often has one row
            warnings.filterwarnings("ignore", message=".* has a class with one member")
            valuator.fit_problem(problem)
        utilities = pool_utilities(value_pool(valuator, pool), self.utility)
        least = np.nanmin(utilities) if not np.isnan(utilities).all() else 0.0
        return np.where(np.isnan(utilities), least, utilities)


def _read_labels(y: Any, n_rows: int, missing_label: Any) -> tuple[npt.NDArray[Any], Any]:
    """Give the labels and the marker of a missing one, which is always None for objects."""
    if isinstance(y, type | str) or not isinstance(y, Sized):
        raise TypeError(f"`y` must hold one label per row, or `missing_label`, got {y!r}.")
    labels: npt.NDArray[Any] = column_or_1d(np.asarray(y), warn=True)
    if len(labels) != n_rows:
        raise ValueError(f"`y` has {len(labels)} entries and X has {n_rows} rows: pass one entry per row.")
    is_nan = isinstance(missing_label, Real) and np.isnan(float(missing_label))
    if labels.dtype == object and (missing_label is None or is_nan):
        import pandas as pd

        return np.where(pd.isna(labels), np.array(None), labels), None
    return labels, missing_label


def _read_candidates(
    candidates: Any, table: Table, labelled: npt.NDArray[np.bool_]
) -> tuple[Integers | None, Table]:
    """Give the candidates as rows of the table, or as a separate table."""
    is_lazy = hasattr(candidates, "collect")  # and has no shape yet
    if candidates is None:
        rows = np.flatnonzero(~labelled)
    elif isinstance(candidates, Real | type | str) or not (
        isinstance(candidates, Sized) or hasattr(candidates, "shape") or is_lazy
    ):
        error = ValueError if isinstance(candidates, Real) else TypeError
        raise error(f"`candidates` must be rows of X, or a table of other rows, got {candidates!r}.")
    elif is_lazy or len(getattr(candidates, "shape", None) or np.shape(candidates)) != 1:
        return None, read_pool(candidates, "candidates")
    else:
        rows = np.unique(read_rows(candidates, table.n_rows, "`candidates`"))
    if not len(rows):
        raise ValueError("There is no candidate: every row has a label, or `candidates` is empty.")
    return rows, table


def _labelled_problem(
    table: Table,
    labels: npt.NDArray[Any],
    labelled: npt.NDArray[np.bool_],
    sensitive_features: Any,
    unknown: Any,
) -> Problem | None:
    """Give the labelled rows; None if they are too few, or all of one class or group."""
    rows = np.flatnonzero(labelled)
    if not len(rows):
        return None
    filled = np.where(labelled, labels, labels[rows[0]])
    everyone = read_problem(table.source, filled, sensitive_features, unknown=unknown)
    problem = everyone.take(rows)
    pairs = zip(everyone.protected, problem.protected, strict=True)
    alike = any(_varies(of_all) and not _varies(of_labelled) for of_all, of_labelled in pairs)
    return problem if len(rows) >= _FEWEST and _varies(problem.target) and not alike else None


def _varies(variable: Any) -> bool:
    known = variable.labels[variable.known]
    return bool(len(known)) and bool((known != known[0]).any())


def _by_turn(utilities: Floats, chosen: Integers) -> Floats:
    """Give the utilities at every turn; NaN for rows that were selected before."""
    by_turn = np.tile(utilities, (len(chosen), 1))
    for turn, row in enumerate(chosen):
        by_turn[turn + 1 :, row] = np.nan
    return by_turn
