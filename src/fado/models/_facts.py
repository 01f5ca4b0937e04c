"""How a model was made and selected, and what it reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_share
from fado._records import encode, record_from, simplify
from fado._version import library_versions
from fado.metrics import RATES as RATE_TABLE
from fado.metrics import RATIO_NAMES, Budget, effective_sizes, share_limits
from fado.tabular import MIN_GROUP_SIZE, Groups

FEW = 10  # rows below which the numbers of a group are not kept
RATES = {name: RATE_TABLE[name].title for name in ("tpr", "fpr", "selection_rate")}
STATED = ("purpose", "owner", "data", "contact", "date")  # what only people know


@dataclass(frozen=True)
class GroupRates:
    """The rows of a group in a part of the data, and its rates before and after an intervention.

    No number of a group of fewer than 10 rows is kept.

    Parameters
    ----------
    part, group : str
        The names of the part, such as "training", "validation" or "test", and of the group.
    rows, positives : int or None
        The numbers of rows; None for a group of fewer than 10 rows.
    after : mapping of str to float
        ``tpr``, ``fpr`` and ``selection_rate`` of the model, NaN where there are no rows to count. The ends
        of intervals have ``_low`` and ``_high`` appended. Empty for the training rows.
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
        after: npt.NDArray[np.bool_] | None = None,
        before: npt.NDArray[np.bool_] | None = None,
        sample_weight: npt.NDArray[np.float64] | None = None,
        level: float = 0.95,
    ) -> list[GroupRates]:
        """Count the rows of a part by group, and the decisions about them.

        Parameters
        ----------
        part : str
            The name of the part.
        positive : ndarray of bool
            The rows of the positive label.
        groups : Groups
            The rows' groups.
        after, before : ndarray of bool, optional
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
        rates = []
        for code in np.flatnonzero(groups.sizes).tolist():
            rows = groups.codes == code
            both = [
                {} if selected is None else _rates(selected[rows], positive[rows], weights[rows], level)
                for selected in (after, before)
            ]
            rates.append(cls(part, groups.titles[code], int(rows.sum()), int(positive[rows].sum()), *both))
        return rates


def _rates(
    selected: npt.NDArray[np.bool_],
    positive: npt.NDArray[np.bool_],
    weights: npt.NDArray[np.float64],
    level: float,
) -> dict[str, float]:
    rates: dict[str, float] = {}
    for name, of in {"tpr": positive, "fpr": ~positive, "selection_rate": np.ones_like(positive)}.items():
        members, events = weights[of], weights[of & selected]
        sums = [np.array([part.sum()]) for part in (events, members, events**2, members**2)]
        share = sums[0] / sums[1] if sums[1] else np.array([np.nan])
        low, high = share_limits(share, effective_sizes(*sums), (1 - level) / 2)
        rates |= {name: float(share[0]), f"{name}_low": float(low[0]), f"{name}_high": float(high[0])}
    return rates


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
    groups : sequence of GroupRates
        The groups of each part of the data, in the order in which the card shows the parts.
    measured : mapping of str to mapping
        For the name of each part, its metrics with their intervals at confidence `level`. In the part that
        selected the model, the lower ends of the ratios in `lines` are the bounds that had to reach the
        lines.
    before : mapping of str to mapping
        The same for the best model without an intervention, at its own threshold; empty if not known.
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
    groups: Sequence[GroupRates] = ()
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    before: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
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
        for name in ("protected", "giveaways", "left_out", "unknown", "groups"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("parameters", "settings", "measured", "before", "versions"):
            object.__setattr__(self, name, simplify(getattr(self, name)))
        stated = {key: str(text) if isinstance(text, date) else text for key, text in self.stated.items()}
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
    def from_plain(cls, content: Any) -> Facts:
        """Read what `to_plain` gave; anything else raises a ValueError."""
        try:
            return record_from(cls, content, "the facts")
        except (TypeError, ValueError) as error:
            raise ValueError(f"Its record of how it was made is broken: {error}") from error
