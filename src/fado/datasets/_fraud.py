"""A generator of account-opening fraud data with controlled bias."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fado._memory import check_room_for
from fado._messages import closest_names, list_names
from fado._typing import Bools, Floats
from fado.datasets._applicants import draw_applications, draw_separating_columns
from fado.datasets._baf import CATEGORIES, COLUMNS, EXTRA_COLUMNS, MONTHS, NUMBERS

# Every chunk has a seed of its own, so the first rows do not depend on how many follow.
_CHUNK = 10_000
_GOLDEN_RATIO = (np.sqrt(5) - 1) / 2
# Months before this one are for training, the rest for testing; variants IV and V change here.
_FIRST_LATE_MONTH = 6

_MONTH_SHARES = np.array([0.132, 0.128, 0.137, 0.150, 0.128, 0.120, 0.108, 0.097])
# Fraud rates of the months in percent; only their proportions matter.
_MONTH_RISK = np.array([1.10, 0.96, 0.88, 0.93, 1.12, 1.18, 1.36, 1.46])


@dataclass(frozen=True)
class Variant:
    """One variant; pairs are (majority, minority), the minority being the applicants of 50 and older.

    Attributes
    ----------
    minority_share : float
        Share of the rows in the minority.
    rates : tuple of float
        Fraud rates of the two groups.
    late_rates : tuple of float, optional
        Fraud rates from month 6 on, where they differ from the earlier months'.
    separable_majority : tuple of bool, optional
        Whether the columns x1 and x2 reveal the majority's fraud, in the early and in the late months.
        Without it the variant has no such columns.
    """

    minority_share: float
    rates: tuple[float, float]
    late_rates: tuple[float, float] | None = None
    separable_majority: tuple[bool, bool] | None = None


VARIANTS = {
    "base": Variant(0.23, (0.009, 0.018)),
    "I": Variant(0.10, (0.011, 0.011)),
    "II": Variant(0.50, (0.004, 0.019)),
    "III": Variant(0.50, (0.011, 0.011), separable_majority=(True, True)),
    "IV": Variant(0.50, (0.003, 0.017), late_rates=(0.015, 0.015)),
    "V": Variant(0.50, (0.011, 0.011), separable_majority=(True, False)),
}


def cell_shares(variant: Variant) -> Floats:
    """Share of the rows in every cell of month, group and label, as an array of shape (8, 2, 2)."""
    early = np.arange(MONTHS) < _FIRST_LATE_MONTH
    if variant.late_rates is None:
        rates = np.outer(_relative_risk(np.full(MONTHS, True)), variant.rates)
    else:
        rates = np.outer(_relative_risk(early), variant.rates)
        rates += np.outer(_relative_risk(~early), variant.late_rates)
    groups = np.array([1 - variant.minority_share, variant.minority_share])
    return _MONTH_SHARES[:, None, None] * groups[:, None] * np.stack([1 - rates, rates], axis=-1)


def _relative_risk(months: Bools) -> Floats:
    """Risk of each chosen month, relative to their mean; 0 for the others."""
    mean = np.average(_MONTH_RISK[months], weights=_MONTH_SHARES[months])
    return np.where(months, _MONTH_RISK / mean, 0.0)


def make_account_fraud(
    n_samples: int = 100_000,
    variant: str = "base",
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> pd.DataFrame:
    """Generate account-opening fraud data with controlled bias between two age groups.

    The table has the columns of the public Bank Account Fraud suite (BAF, NeurIPS 2022), so that code
    written for one runs on the other. **It is synthetic**: this function draws it at random, without any
    person's data and without any row of the suite. What was calibrated is listed below; everything else
    was invented to be plausible. A result on these data shows how a method behaves under a known bias. It
    is not evidence about real applicants, and not a result on the suite.

    Parameters
    ----------
    n_samples : int, default=100_000
        Number of rows. With a fixed ``random_state`` the first rows are the same for any number.
    variant : {"base", "I", "II", "III", "IV", "V"}, default="base"
        The bias of the data; see Notes.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Seed. The same integer gives the same table; a generator is advanced by one draw.

    Returns
    -------
    pandas.DataFrame
        ``fraud_bool``, 30 features and ``month`` (0 to 7; rows are not sorted by it), in the suite's order.
        Variants III and V have two more features, ``x1`` and ``x2``, at the end. Text columns are categories,
        and negative values stand for missing ones as in the suite (-1 in the columns of address and bank
        months, session length and device e-mails; any negative ``intended_balcon_amount``).

    See Also
    --------
    fado.datasets.load_baf : Load a file of the suite itself.
    fado.datasets.temporal_split : Split by month.
    fado.datasets.protected_from : Read the groups, from ``"customer_age>=50"``.

    Notes
    -----
    The groups are the applicants under 50 (majority) and of 50 and older (minority). Shares and fraud rates
    are the suite's published ones:

    ======= ================ ======================= =========================================================
    variant rows, in percent fraud rates, in percent what else differs
    ======= ================ ======================= =========================================================
    base    77 / 23          0.9 / 1.8
    I       90 / 10          1.1 / 1.1
    II      50 / 50          0.4 / 1.9
    III     50 / 50          1.1 / 1.1               x1 and x2 reveal the majority's fraud
    IV      50 / 50          0.3 / 1.7               from month 6 on 1.5 / 1.5
    V       50 / 50          1.1 / 1.1               as III, but only before month 6
    ======= ================ ======================= =========================================================

    They are met to within a few rows if `n_samples` is a multiple of 10,000, for any seed, because rows are
    spread evenly over months, groups and labels and not at random. A month has 9.7 to 15 percent of the
    rows; in the base data its fraud rate is between 0.88 and 1.47 percent, highest in the last two.

    Columns are noisy readings of four hidden traits of an applicant: affluence, irregularity, automation and
    maturity (the age). Fraud follows one of four schemes, each of which changes several traits together.
    The mix of schemes drifts over the months, and so do application velocities and operating systems. Fraud
    therefore shows in combinations of columns, and later months differ a little from earlier ones. One
    scheme is easy to detect; in all variants it is a smaller part of the older group's fraud.

    Difficulty was calibrated to the suite's published baselines: LightGBM models with random settings,
    trained on months 0 to 5 and measured on months 6 and 7 at a false-positive rate of 5 percent. Their
    median true-positive rate is about 0.5 on the base data and 0.7 on variant III; their median predictive
    equality (the lower of the groups' false-positive rates divided by the higher) is about 0.4 on the base
    data, 0.8 on I and 0.15 on II. ``benchmarks/account_fraud.py`` prints the figures next to the published
    ones. Marginal distributions were set by eye to look like the suite's; nothing else was fitted.

    References
    ----------
    S. Jesus, J. Pombal, D. Alves, A. Cruz, P. Saleiro, R. P. Ribeiro, J. Gama and P. Bizarro, "Turning the
    Tables: Biased, Imbalanced, Dynamic Tabular Datasets for ML Evaluation", NeurIPS 2022, arXiv:2211.13358.

    Examples
    --------
    >>> from fado.datasets import make_account_fraud, protected_from
    >>> frame = make_account_fraud(20_000, variant="II", random_state=0)
    >>> frame.shape
    (20000, 32)
    >>> older = protected_from(frame, "customer_age>=50")
    >>> frame["fraud_bool"].groupby(older).mean().round(3)
    customer_age>=50
    False    0.004
    True     0.019
    Name: fraud_bool, dtype: float64
    """
    if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
        raise ValueError(f"`n_samples` must be a positive integer, got {n_samples!r}.")
    check_room_for(f"`n_samples={n_samples}`", 8 * len(COLUMNS) * int(n_samples))
    if not isinstance(variant, str) or variant not in VARIANTS:
        raise ValueError(f"`variant` must be one of {', '.join(map(repr, VARIANTS))}, got {variant!r}.")
    entropy = _entropy(random_state)
    chosen = VARIANTS[variant]
    names = COLUMNS + (EXTRA_COLUMNS if chosen.separable_majority else ())
    columns: dict[str, Any] = {}
    for name in names:
        dtype = np.int8 if name in CATEGORIES else np.float64 if name in NUMBERS else np.int64
        columns[name] = np.empty(n_samples, dtype=dtype)
    starts = [*range(0, int(n_samples), _CHUNK), int(n_samples)]
    for chunk, (start, stop) in enumerate(pairwise(starts)):
        for name, values in _draw_chunk(chosen, entropy, chunk).items():
            columns[name][start:stop] = values[: stop - start]
    for name in CATEGORIES:
        columns[name] = pd.Categorical.from_codes(columns[name], pd.Index(CATEGORIES[name]))
    return pd.DataFrame(columns, copy=False)


def _draw_chunk(variant: Variant, entropy: int, chunk: int) -> dict[str, NDArray[np.generic]]:
    """Draw the rows of a chunk.

    Multiples of the golden ratio fill the unit interval more evenly than random numbers do: after any
    number of chunks every cell holds its share to within a few rows. Within a chunk the order is random.
    """
    rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(chunk,)))
    shares = cell_shares(variant)
    offset = np.random.default_rng(entropy).random()
    position = chunk * _CHUNK + rng.permutation(_CHUNK)
    cell = np.searchsorted(np.cumsum(shares)[:-1], (position * _GOLDEN_RATIO + offset) % 1, side="right")
    month, *group_and_label = np.unravel_index(cell, shares.shape)
    older, fraud = (code.astype(bool) for code in group_and_label)
    columns = draw_applications(rng, older, fraud, month)
    if variant.separable_majority:
        early, late = variant.separable_majority
        revealed = np.where(month < _FIRST_LATE_MONTH, early, late) & ~older
        columns |= draw_separating_columns(rng, fraud & revealed)
    return columns


def _entropy(random_state: int | np.random.Generator | np.random.RandomState | None) -> int:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, Integral) and random_state >= 0:
        return int(random_state)
    raise ValueError(
        f"`random_state` must be a non-negative integer, a numpy generator or None, got {random_state!r}."
    )


def temporal_split(
    frame: Any, column: str = "month", train: Any = range(6), test: Any = (6, 7)
) -> tuple[Any, Any]:
    """Split a table by the values of one column.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or pyarrow Table
        The table to split.
    column : str, default="month"
        The column to split by.
    train, test : value or iterable of values, default=range(6), (6, 7)
        The values of the training rows and of the test rows. They must not overlap. Rows with any other
        value, or none, are in neither part.

    Returns
    -------
    train, test : tables of the same type as ``frame``
        The two parts, rows in their original order; a pandas table keeps its index.

    Raises
    ------
    ValueError
        If there is no such column, a value is in both parts, or a part has no rows.

    See Also
    --------
    fado.datasets.make_account_fraud : Generated data with a column ``month``.

    Examples
    --------
    >>> from fado.datasets import make_account_fraud, temporal_split
    >>> frame = make_account_fraud(1_000, random_state=0)
    >>> train, test = temporal_split(frame)
    >>> print(train["month"].max(), test["month"].min())
    5 6
    >>> len(train) + len(test)
    1000
    """
    train_values, test_values = _values(train), _values(test)
    both = [value for value in train_values if value in test_values]
    if both:
        raise ValueError(f"`train` and `test` must not overlap, got {both} in both.")
    return (_part(frame, column, train_values, "train"), _part(frame, column, test_values, "test"))


def _values(chosen: Any) -> list[Any]:
    return list(chosen) if isinstance(chosen, Iterable) and not isinstance(chosen, str) else [chosen]


def _part(frame: Any, column: str, values: list[Any], name: str) -> Any:
    table, is_pandas = frame, isinstance(frame, pd.DataFrame)
    if not is_pandas:  # pandas alone must do for pandas tables; the others go through narwhals
        from fado.tabular import open_table

        table = open_table(frame)
    if column not in table.columns:
        names = [str(each) for each in table.columns]
        nearest = closest_names(str(column), names, f"; the table has {list_names(names, 10)}.")
        raise ValueError(f"`column` must name a column of the table, got {column!r}{nearest}")
    rows = table[column].isin(values) if is_pandas else table[column].is_in(values)
    if not rows.any():
        raise ValueError(f"`{name}` must hold values of column {column!r}, got {values}, which no row has.")
    return frame.take(np.flatnonzero(rows)) if is_pandas else table.filter(rows).to_native()
