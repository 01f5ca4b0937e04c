"""How a model was made and selected, what it reached, and what its training columns were like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_share
from fado._records import encode, record_from, simplify
from fado._version import library_versions
from fado.metrics import RATES as RATE_TABLE
from fado.metrics import RATIO_NAMES, Budget, effective_sizes, share_limits
from fado.tabular import MIN_GROUP_SIZE, Column, Groups, Table

FEW = 10  # rows below which the numbers of a group are not kept
RATES = {name: RATE_TABLE[name].title for name in ("tpr", "fpr", "selection_rate")}
_BINS = 10  # of numbers
_MOST_LEVELS = 50
_FEW_NUMBERS = 20  # different numbers up to which numbers are levels
_FIRST_ROWS = 1_000  # enough to recognise most columns of many numbers
STATED = ("purpose", "owner", "data", "contact", "date")  # what only people know


@dataclass(frozen=True)
class GroupCount:
    """The number of rows of a group, and how many of them are positive.

    No number of a group of fewer than 10 rows is kept.

    Parameters
    ----------
    group : str
        The group's name.
    rows, positives : int or None
        The numbers of rows; None for a group of fewer than 10 rows.

    See Also
    --------
    fado.models.Part : The groups of one part of the data.
    """

    group: str
    rows: int | None
    positives: int | None

    def __post_init__(self) -> None:
        if self.rows is None or self.rows < FEW:
            object.__setattr__(self, "rows", None)
            object.__setattr__(self, "positives", None)


@dataclass(frozen=True)
class Part:
    """The rows that trained, selected or tested a model, counted by group.

    Parameters
    ----------
    name : str
        The name of the part, such as "training", "validation" or "test".
    groups : tuple of GroupCount
        The groups that have rows in this part.

    See Also
    --------
    fado.models.GroupRates : The rates of a group in a part.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Groups
    >>> groups = Groups(np.repeat([0, 1], [30, 3]), ("'f'", "'m'"), ("f", "m"))
    >>> part = Part.of("test", np.arange(33) % 3 == 0, groups)
    >>> part.groups
    (GroupCount(group='f', rows=30, positives=10), GroupCount(group='m', rows=None, positives=None))
    """

    name: str
    groups: tuple[GroupCount, ...]

    @classmethod
    def of(cls, name: str, positive: npt.NDArray[np.bool_], groups: Groups) -> Part:
        """Count the rows of a part by group.

        Parameters
        ----------
        name : str
            The name of the part.
        positive : ndarray of bool
            The rows of the positive label.
        groups : Groups
            The rows' groups.
        """
        positives = np.bincount(groups.codes[positive], minlength=len(groups))
        counts = zip(groups.titles, groups.sizes.tolist(), positives.tolist(), strict=True)
        return cls(name, tuple(GroupCount(*own) for own in counts if own[1]))


@dataclass(frozen=True)
class GroupRates:
    """The rates of a group in a part, before and after an intervention.

    No rate of a group of fewer than 10 rows is kept.

    Parameters
    ----------
    part, group : str
        The names of the part and of the group.
    rows, positives : int or None
        The numbers of rows; None for a group of fewer than 10 rows.
    after : mapping of str to float
        ``tpr``, ``fpr`` and ``selection_rate`` of the model, NaN where there are no rows to count. The ends
        of intervals have ``_low`` and ``_high`` appended.
    before : mapping of str to float
        The rates of the best model without an intervention; empty if they are not known.

    See Also
    --------
    ChosenModel.rates_ : The rates of all groups as a table.
    """

    part: str
    group: str
    rows: int | None
    positives: int | None
    after: Mapping[str, float] = field(default_factory=dict)
    before: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rows is None or self.rows < FEW:
            for name, nothing in (("rows", None), ("positives", None), ("after", {}), ("before", {})):
                object.__setattr__(self, name, nothing)

    @classmethod
    def of(
        cls,
        part: str,
        positive: npt.NDArray[np.bool_],
        groups: Groups,
        after: npt.NDArray[np.bool_],
        before: npt.NDArray[np.bool_] | None = None,
        sample_weight: npt.NDArray[np.float64] | None = None,
        level: float = 0.95,
    ) -> list[GroupRates]:
        """Count the decisions of a part by group.

        Parameters
        ----------
        part : str
            The name of the part.
        positive : ndarray of bool
            The rows of the positive label.
        groups : Groups
            The rows' groups.
        after, before : ndarray of bool
            The rows that are predicted positive, by the model and by the one without an intervention.
        sample_weight : ndarray, optional
            The weights of the rows; None weighs all rows equally.
        level : float, default=0.95
            The confidence level of the intervals, which are Clopper and Pearson's.

        Examples
        --------
        >>> groups = Groups(np.repeat([0, 1], [12, 4]), ("'f'", "'m'"), ("f", "m"))
        >>> positive = np.arange(16) % 2 == 0
        >>> women, men = GroupRates.of("test", positive, groups, np.arange(16) < 3)
        >>> {name: round(rate, 3) for name, rate in women.after.items() if name.startswith("tpr")}
        {'tpr': 0.333, 'tpr_low': 0.043, 'tpr_high': 0.777}
        >>> men.rows, men.after
        (None, {})
        """
        weights = np.ones(len(positive)) if sample_weight is None else sample_weight
        found = []
        for code in np.flatnonzero(groups.sizes).tolist():
            own = groups.codes == code
            rates = [
                {} if selected is None else _rates(selected[own], positive[own], weights[own], level)
                for selected in (after, before)
            ]
            found.append(cls(part, groups.titles[code], int(own.sum()), int(positive[own].sum()), *rates))
        return found


def _rates(
    selected: npt.NDArray[np.bool_],
    positive: npt.NDArray[np.bool_],
    weights: npt.NDArray[np.float64],
    level: float,
) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, of in {"tpr": positive, "fpr": ~positive, "selection_rate": np.ones_like(positive)}.items():
        weighed, events = weights[of], weights[of & selected]
        sums = [np.array([own.sum()]) for own in (events, weighed, events**2, weighed**2)]
        share = sums[0] / sums[1] if sums[1] else np.array([np.nan])
        low, high = share_limits(share, effective_sizes(*sums), (1 - level) / 2)
        found |= {name: float(share[0]), f"{name}_low": float(low[0]), f"{name}_high": float(high[0])}
    return found


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that a model's card shows, as plain data.

    Entries of `parameters` and `settings` that are neither text, number, boolean, None, list nor mapping are
    replaced by the name of their class.

    Parameters
    ----------
    target : str
        The name of the target.
    protected : sequence of str
        The protected attributes whose groups are compared, by name or as they were written (``age >= 50``).
    ratio : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
        The required ratio, the first of several.
    at_least : float
        Its line: the lowest ratio that is accepted.
    lines : mapping of str to float
        All required ratios, and the line of each; by default `ratio` and `at_least`.
    budget : Budget
        The budget of decisions, which set the threshold.
    reached : bool
        Whether the lines were reached on the rows that selected the model.
    chosen_on : str, default="validation"
        The part that selected the model and its threshold.
    confidence : float, optional
        If given, the lower bound of the ratio at this confidence had to reach the line; if None, the ratio.
    why : str
        If a line was not reached, the reason in a sentence.
    estimator : str
        The name of the estimator's class.
    parameters : mapping
        The estimator's parameters.
    intervention : str
        The name of the intervention on the training rows; empty for none.
    settings : mapping
        The intervention's settings.
    fits, models : int
        The number of fits, and the number of models that this one was selected from.
    chosen : str
        A sentence about how the model was selected.
    parts : sequence of Part
        The parts of the data, in the order in which the card shows them.
    measured : mapping of str to mapping
        For the name of each part, its metrics with their intervals at confidence `level`. In the part that
        selected the model, the lower ends of the ratios in `lines` are the bounds that had to reach the
        lines.
    before : mapping of str to mapping
        The same for the best model without an intervention, at its own threshold; empty if not known.
    rates : sequence of GroupRates
        The rates of each group in each part.
    giveaways : sequence of str
        The features that each alone determine a protected attribute, as far as known.
    left_out : sequence of str
        The groups that were not compared: too small, or unknown.
    unknown : sequence of str
        The values of protected attributes that mean that a row's group is unknown, beside missing ones.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of the table were too small to be compared.
    seed : int, optional
        The seed of all random numbers.
    versions : mapping of str to str
        The versions of the libraries; by default, those that are installed.
    stated : mapping of str to str
        What only people know: ``purpose``, ``owner``, ``data``, ``contact``, ``date``, or some of these.

    See Also
    --------
    fado.models.ChosenModel : The model that has these facts.

    References
    ----------
    Mitchell et al. (2019). Model cards for model reporting. FAT* '19, arXiv:1810.03993.
    """

    target: str
    protected: Sequence[str]
    ratio: str
    at_least: float
    budget: Budget
    reached: bool
    lines: Mapping[str, float] = field(default_factory=dict)
    chosen_on: str = "validation"
    confidence: float | None = None
    why: str = ""
    estimator: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    intervention: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    fits: int = 1
    models: int = 1
    chosen: str = ""
    parts: Sequence[Part] = ()
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    before: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rates: Sequence[GroupRates] = ()
    giveaways: Sequence[str] = ()
    left_out: Sequence[str] = ()
    unknown: Sequence[str] = ()
    min_group_size: int = MIN_GROUP_SIZE
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=library_versions)
    stated: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", dict(self.lines) or {self.ratio: self.at_least})
        for ratio, line in {self.ratio: self.at_least, **self.lines}.items():
            if ratio not in RATIO_NAMES:
                raise ValueError(f"`ratio` must be one of {', '.join(RATIO_NAMES)}, got {ratio!r}.")
            check_share("at_least", line)
        if self.confidence is not None and not 0.5 < check_share("confidence", self.confidence) < 1:
            raise ValueError(f"`confidence` must be above 0.5 and below 1, got {self.confidence}.")
        if not isinstance(self.budget, Budget):
            raise TypeError(f"`budget` must be a fado.metrics.Budget, got {self.budget!r}.")
        for name in ("protected", "giveaways", "left_out", "unknown", "parts", "rates"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("parameters", "settings", "measured", "before", "versions"):
            object.__setattr__(self, name, simplify(getattr(self, name)))
        stated = {key: str(own) if isinstance(own, date) else own for key, own in self.stated.items()}
        for name, text in stated.items():
            if name not in STATED:
                raise TypeError(f"A card has fields for {', '.join(STATED)}, got {name!r}.")
            if not isinstance(text, str):
                raise TypeError(f"`{name}` must be text, got {text!r}.")
        object.__setattr__(self, "stated", stated)

    @property
    def level(self) -> float:
        """The confidence level of intervals: each end has the confidence that the lines require."""
        return 0.95 if self.confidence is None else 2 * self.confidence - 1

    def to_plain(self) -> dict[str, Any]:
        """Return all facts as plain data for JSON."""
        return encode(self) | {"versions": dict(self.versions)}  # readers may have other versions

    @classmethod
    def from_plain(cls, told: Any) -> Facts:
        """Read what `to_plain` gave; anything else raises a ValueError."""
        try:
            return record_from(cls, told, "the facts")
        except (TypeError, ValueError) as error:
            raise ValueError(f"Its record of how it was made is broken: {error}") from error


@dataclass(frozen=True)
class ColumnSummary:
    """How many training rows each bin of a column has; no number of fewer than 10 rows is kept.

    The bins are deciles of numbers, or levels.

    Parameters
    ----------
    name : str
        The column's name.
    edges : tuple of float, optional
        For numbers, the upper end of every bin but the last, which is open.
    levels : tuple of str, optional
        For levels, or at most 20 different numbers, the 50 most frequent.
    unseen : float, default=0.0
        The share of new rows that may be expected to have a level that no training row has: that of the
        training rows whose level occurs once (Good and Turing); 0 if these are fewer than 10.
    counts : tuple of int
        Rows per bin; all other levels share the bin after the levels. The last count is of missing entries.

    See Also
    --------
    fado.models.summarize_columns : The summaries of all columns of a table.
    ChosenModel.check : Compares new rows with these summaries, to detect drift.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> ColumnSummary.of(column_from("town", ["Ulm"] * 30 + ["Bonn"] * 20 + ["Kiel"] * 3 + [None] * 12))
    ColumnSummary(name='town', counts=(30, 20, 0, 12), edges=None, levels=('Ulm', 'Bonn'), unseen=0.0)
    >>> ColumnSummary.of(column_from("age", list(range(40)))).edges  # four bins of ten
    (9.0, 19.0, 29.0)
    """

    name: str
    counts: tuple[int, ...]
    edges: tuple[float, ...] | None = None
    levels: tuple[str, ...] | None = None
    unseen: float = 0.0

    @classmethod
    def of(cls, column: Column) -> ColumnSummary:
        """Choose the bins of a column, and count its rows."""
        if column.levels is None and not _has_few_numbers(column):
            bins = cls(column.name, (), edges=_edges(column.numbers()))
        else:
            codes, texts = _levels(column)
            counts = np.bincount(codes[codes >= 0], minlength=len(texts))
            frequent = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
            kept = tuple(texts[code] for code in frequent.tolist() if counts[code] >= FEW)
            once = int((counts == 1).sum())
            bins = cls(column.name, (), levels=kept, unseen=0.0 if once < FEW else once / len(column))
        counted = bins.count(column)
        return replace(bins, counts=tuple(np.where(counted < FEW, 0, counted).tolist()))

    def count(self, column: Column) -> npt.NDArray[np.int64]:
        """Count the rows of another column in these bins."""
        if self.levels is None:
            numbers = column.numbers()
            known = numbers[~np.isnan(numbers)]
            places, n_bins = np.searchsorted(np.array(self.edges), known), len(self.edges or ()) + 1
        else:
            place, others = {level: code for code, level in enumerate(self.levels)}, len(self.levels)
            codes, texts = _levels(column)
            told = np.array([place.get(text, others) for text in texts], dtype=np.int64)
            places, n_bins = told[codes[codes >= 0]], others + 1
        return np.append(np.bincount(places, minlength=n_bins), len(column) - len(places))

    def distance(self, column: Column) -> tuple[float, int]:
        """Return the population stability index of another column, and how many bins have rows."""
        both = np.array([self.counts, self.count(column)])
        both = both[:, both.any(axis=0)] + 0.5  # half a row more: an empty bin is no proof that none come
        before, now = both / both.sum(axis=1, keepdims=True)
        return float(((now - before) * np.log(now / before)).sum()), both.shape[1]

    @classmethod
    def from_plain(cls, told: Any) -> ColumnSummary:
        """Read an encoded summary; anything else raises a ValueError."""
        what = "the summary of its training columns"
        summary = record_from(cls, told, what)
        bins = summary.edges if summary.levels is None else summary.levels
        if bins is None or len(summary.counts) != len(bins) + 2 or min(summary.counts) < 0:
            raise ValueError(f"`counts` of {what} is broken, got {list(summary.counts)}.")
        return summary


def summarize_columns(
    table: Table, rows: npt.NDArray[np.integer[Any]] | None = None
) -> tuple[ColumnSummary, ...]:
    """Summarize the columns of training rows, so that drift can be detected later.

    Parameters
    ----------
    table : Table
        The columns that a model is trained on, in order.
    rows : ndarray of int, optional
        Positions of the rows that the model is trained on; None takes all rows.

    Returns
    -------
    tuple of ColumnSummary
        One per column; empty for a sparse matrix.
    """
    if table.is_sparse:
        return ()
    return tuple(ColumnSummary.of(own if rows is None else own.take(rows)) for own in table.columns)


def _has_few_numbers(column: Column) -> bool:
    """Return whether a column has so few different numbers that they are levels."""
    for rows in (slice(_FIRST_ROWS), slice(None)):
        numbers = column.numbers()[rows]
        if len(np.unique(numbers[~np.isnan(numbers)])) > _FEW_NUMBERS:
            return False
    return True


def _edges(numbers: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """Return the deciles, or fewer, so that no bin has fewer rows than may be kept."""
    known = np.sort(numbers[~np.isnan(numbers)])
    n_bins = min(_BINS, len(known) // FEW)
    if n_bins < 2:
        return ()
    at = np.quantile(known, np.arange(1, n_bins) / n_bins, method="inverted_cdf")
    kept: list[float] = []
    below = 0
    for edge in np.unique(at[np.isfinite(at)]).tolist():
        reached = int(np.searchsorted(known, edge, side="right"))
        if reached - below >= FEW and len(known) - reached >= FEW:
            kept.append(edge)
            below = reached
    return tuple(kept)


def _levels(column: Column) -> tuple[npt.NDArray[np.int32], Sequence[str]]:
    """Return codes into texts: the levels, or numbers as they are written, whatever their type."""
    if column.levels is not None:
        return column.codes(), column.levels
    codes, entries = column.encode()
    return codes, [f"{float(entry):.15g}" for entry in entries]
