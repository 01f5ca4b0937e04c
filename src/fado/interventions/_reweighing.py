"""Reweighing: weights from utilities, from the cells of group and label, or from both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_choice, check_share
from fado._messages import insert_parameters, list_names, warn_user
from fado._typing import Floats
from fado.interventions._base import (
    BaseIntervention,
    TrainingSet,
    add_up,
    occurring,
    slices,
    warn_of_small,
)
from fado.tabular import MIN_GROUP_SIZE, Groups, Labels, Problem, check_min_group_size, mean_one
from fado.utility import LinearUtility


class _BaseReweigher(BaseIntervention):
    """Shared by the reweighers: every row is kept, and small groups have no cells."""

    changes = "weights"
    _row_bytes = 20, 28

    min_group_size: int
    sample_weight_: Floats

    def _check_settings(self) -> None:
        check_min_group_size(self.min_group_size)

    def _compared(self, labels: Labels, groups: Groups) -> tuple[Any, Labels, Groups]:
        """Return the index, labels and groups of the rows of compared groups; warn of the others."""
        groups = occurring(groups)
        names, counts = groups.names, _rows_per_cell(groups, labels)
        compared = groups.compared(self.min_group_size)
        warn_of_small(
            groups,
            self.min_group_size,
            outcome="their rows get the factor 1, and they count in no rate",
            alone="every row gets the factor 1",
        )
        if len(names) == 1:
            warn_user(
                f"There is only one group ({names[0]}), so there is no other rate to match: its rows all get "
                "the factor 1. Pass protected attributes as `sensitive_features`."
            )
        _warn_of_cells(
            (counts == 0) & compared[:, None] & counts[compared].any(axis=0),
            names,
            labels.classes,
            "No rows with label {} in group {}: no weights can equalise the rate of that label there.",
        )
        if compared.all():
            return slice(None), labels, groups
        rows = np.flatnonzero(compared[groups.codes])
        return rows, Labels(labels.codes[rows], labels.classes, labels.positive), groups.take(rows)


@insert_parameters()
class Reweigher(_BaseReweigher):
    """Weight rows so that label and group are independent (RW, Kamiran and Calders, 2012).

    A row of group z and label y gets the weight ``P(z) P(y) / P(z, y)``. With these weights, every label has
    the same share in every group.

    Parameters
    ----------
    min_group_size : int, default=30
        Rows of groups with fewer rows than this that are also less than 1 % of the table get the weight 1 and
        do not count in the probabilities. 0 includes every group.

    Attributes
    ----------
    sample_weight_ : ndarray of shape (n_rows,)
        The weights.
    {n_features_in_, feature_names_in_}

    Warns
    -----
    UserWarning
        If groups are small and so get the weight 1; if a group has no rows of some label, because no weights
        can make its rates equal to the others'; if there is only one group to compare.

    See Also
    --------
    fado.UtilityAwareReweigher : Weights from utilities, with or without this correction.
    fado.ReweighedEstimator : Trains an estimator with the weights.

    References
    ----------
    F. Kamiran and T. Calders, "Data preprocessing techniques for classification without discrimination",
    Knowledge and Information Systems 33 (2012).

    Examples
    --------
    >>> from fado import Reweigher
    >>> X = [[0], [1], [2], [3], [4], [5], [6], [7]]
    >>> y = [1, 0, 0, 0, 1, 1, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> Reweigher().fit(X, y, sensitive_features=sex).sample_weight_.round(3)
    array([2.   , 0.667, 0.667, 0.667, 0.667, 0.667, 0.667, 2.   ])
    """

    def __init__(self, *, min_group_size: int = MIN_GROUP_SIZE) -> None:
        self.min_group_size = min_group_size

    def _choose(
        self, labels: Labels, groups: Groups, utilities: Any, sample_weight: Any, generator: Any
    ) -> TrainingSet:
        weights = np.ones(len(labels.codes))
        rows, labels, groups = self._compared(labels, groups)
        if len(groups):
            factors = _cell_factors(groups, labels, None if sample_weight is None else sample_weight[rows])
            for part in slices(len(labels.codes)):
                at = part if isinstance(rows, slice) else rows[part]
                weights[at] = factors[groups.codes[part], labels.codes[part]]
            if len(groups) > 1 and np.ptp(weights) <= 1e-9:
                warn_user("The groups already have equal shares of each label: all weights are equal.")
        return TrainingSet(np.arange(len(weights)), weights)


@insert_parameters(LinearUtility)
class UtilityAwareReweigher(_BaseReweigher):
    """Weight rows by their utility (UAR) and, optionally, correct the weights for equal positive rates.

    A row of utility ``U`` gets the weight ``w = floor + (1 - floor) * minmax(U)``. This is multiplied by the
    Kamiran-Calders factor ``P(z) P(y) / P(z, y)`` of the row's group and label, to the power of
    `prevalence_correction`; the probabilities are those of rows weighted by ``w``. Last, weights are scaled
    to a mean of 1 (`normalize`).

    The defaults are the paper's UAR. ``prevalence_correction=1`` makes the weighted positive rates of all
    groups equal, whatever the utilities. With ``floor=1`` as well, the weights are those of `Reweigher` times
    a constant.

    Parameters
    ----------
    {utility, valuator}
    scaling : {"minmax", "none"}, default="minmax"
        ``"minmax"`` scales utilities to [0, 1]; ``"none"`` uses them as weights as they are. If all utilities
        are equal, all weights are.
    normalize : bool, default=True
        Whether to scale the weights to a mean of 1.
    negative : {"raise", "clip"}, default="raise"
        What happens to negative utilities if ``scaling="none"``: ``"raise"`` raises a ValueError, ``"clip"``
        gives the rows a weight of 0.
    prevalence_correction : float, default=0.0
        Power of the Kamiran-Calders factor, at least 0; 0 makes no correction.
    floor : float, default=0.0
        Weight of the row of least utility, in [0, 1], if that of the most useful row is 1; before the
        correction and the scaling to a mean of 1. Above 0 it needs ``scaling="minmax"``.
    random_state : int, RandomState or None, default=None
        Seed for a valuator without one.
    min_group_size : int, default=30
        With a correction, rows of groups with fewer rows than this that are also less than 1 % of the table
        get the factor 1 and do not count in the probabilities. 0 corrects every group.

    Attributes
    ----------
    sample_weight_ : ndarray of shape (n_rows,)
        The weights: finite, not negative, not all 0.
    valuation_ : Valuation
        The values that were used.
    {n_features_in_, feature_names_in_}

    Warns
    -----
    UserWarning
        If neither protected attributes nor a valuation are passed, because weights then depend on the value
        for performance alone. With a correction also: if groups are small and so not corrected; if a group
        has no rows of some label, or none with a weight above 0, because no factor can make its rate equal to
        the others'; if there is only one group to compare.

    See Also
    --------
    fado.Reweigher : Weights for equal positive rates, without utilities.
    fado.UtilityAwarePrevalenceSampler : Drops rows instead.
    fado.ReweighedEstimator : Trains an estimator with the weights.

    {References}

    Examples
    --------
    >>> from fado import LinearUtility, UtilityAwareReweigher, Valuation
    >>> X = [[0], [1], [2], [3]]
    >>> y = [1, 0, 1, 0]
    >>> sex = ["f", "f", "m", "m"]
    >>> p_y, p_sex = [0.5, 1.0, 0.5, 0.5], [0.5, 1.0, 1.0, 0.5]
    >>> valuation = Valuation.from_probabilities(p_y, {"sex": p_sex})
    >>> reweigher = UtilityAwareReweigher(LinearUtility(alpha=0.5), normalize=False)
    >>> reweigher.fit(X, y, sensitive_features=sex, valuation=valuation).sample_weight_
    array([1. , 0. , 0.5, 1. ])
    """

    uses_values = True

    def __init__(
        self,
        utility: Any = None,
        *,
        valuator: Any = None,
        scaling: str = "minmax",
        normalize: bool = True,
        negative: str = "raise",
        prevalence_correction: float = 0.0,
        floor: float = 0.0,
        random_state: Any = None,
        min_group_size: int = MIN_GROUP_SIZE,
    ) -> None:
        self.utility = utility
        self.valuator = valuator
        self.scaling = scaling
        self.normalize = normalize
        self.negative = negative
        self.prevalence_correction = prevalence_correction
        self.floor = floor
        self.random_state = random_state
        self.min_group_size = min_group_size

    @property
    def _counts_cells(self) -> bool:  # type: ignore[override]
        return self.prevalence_correction > 0

    def _utilities(
        self, problem: Problem, valuation: Any, arguments: dict[str, Any], utility: Any = None
    ) -> tuple[Any, Floats | None]:
        if valuation is None and not problem.protected:
            warn_user(
                "There are no protected attributes to value: weights depend on the value for performance "
                "alone. Pass protected attributes as `sensitive_features`."
            )
            utility = LinearUtility(alpha=1.0)
        return super()._utilities(problem, valuation, arguments, utility)

    def _choose(
        self, labels: Labels, groups: Groups, utilities: Any, sample_weight: Any, generator: Any
    ) -> TrainingSet:
        if utilities is None:
            raise ValueError("Weights by utility need utilities: pass a valuation.")
        if self.scaling == "minmax":
            weights = minmax(utilities)
            weights *= 1 - self.floor  # in place here and below, as there may be many rows
            weights += self.floor
        else:
            weights = self._unscaled(utilities)
        del utilities
        if self.prevalence_correction > 0:
            weights = self._corrected_logs(weights, labels, groups, sample_weight)
            if self.normalize:
                weights -= weights.max()
            with np.errstate(over="ignore"):
                np.exp(weights, out=weights)
            if not np.isfinite(weights).all() or not weights.any():
                raise ValueError("The weights are too large or too small for a float: set `normalize=True`.")
        weights = mean_one(weights) if self.normalize else weights
        return TrainingSet(np.arange(len(weights)), weights)

    def _unscaled(self, utilities: Floats) -> Floats:
        """Return utilities as weights, or refuse them."""
        n_negative = int((utilities < 0).sum())
        if n_negative and self.negative == "raise":
            raise ValueError(
                f"{n_negative} of {len(utilities)} utilities are negative (the least is "
                f'{utilities.min():.3g}) and cannot be weights: use `scaling="minmax"`, or '
                '`negative="clip"` for a weight of 0.'
            )
        if utilities.max() > 0:
            return np.maximum(utilities, 0.0)
        if n_negative:
            raise ValueError('No utility is above 0, so every weight would be 0: use `scaling="minmax"`.')
        return np.ones(len(utilities))

    def _corrected_logs(
        self, weights: Floats, labels: Labels, groups: Groups, sample_weight: Floats | None
    ) -> Floats:
        """Turn weights into logarithms, corrected by the cells of groups that are not small.

        Logarithms, because a factor may overflow where its product with a weight does not.
        """
        rows, labels, groups = self._compared(labels, groups)
        scale = weights[rows].max(initial=0.0)
        counted = weights[rows] / scale if scale > 0 else weights[rows].copy()
        _warn_of_cells(
            (_rows_per_cell(groups, labels) > 0) & (_rows_per_cell(groups, labels, counted > 0) == 0),
            groups.names,
            labels.classes,
            "All rows with label {} in group {} have the weight 0, which no correction changes: set `floor` "
            "above 0 to equalise the rate of that label there.",
        )
        if sample_weight is not None:
            counted *= sample_weight[rows]
        with np.errstate(divide="ignore"):  # in place, as there may be many rows
            if scale <= 0:
                return np.log(weights, out=weights)
            factors = _cell_factors(groups, labels, counted, logarithms=True)
            factors *= float(self.prevalence_correction)
            del counted
            logs = weights if isinstance(rows, slice) else np.log(weights)
            for part in slices(len(labels.codes)):
                at = part if isinstance(rows, slice) else rows[part]
                scaled = np.log(weights[at] / scale)
                logs[at] = scaled + factors[groups.codes[part], labels.codes[part]] + np.log(scale)
        return logs

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("scaling", self.scaling, ("minmax", "none"))
        check_choice("negative", self.negative, ("raise", "clip"))
        if check_share("floor", self.floor) > 0 and self.scaling == "none":
            raise ValueError(
                f'`floor={self.floor}` needs `scaling="minmax"`: unscaled utilities have no floor.'
            )
        power = self.prevalence_correction
        if not isinstance(power, Real) or not math.isfinite(power) or power < 0:
            raise ValueError(f"`prevalence_correction` must be a number of at least 0, got {power!r}.")


def minmax(utilities: Floats) -> Floats:
    """Scale utilities to [0, 1]; if all are equal, to 1."""
    low, high = utilities.min(), utilities.max()
    largest = max(abs(low), abs(high))
    if largest > 0:  # so that a difference can neither overflow nor vanish
        low, high = low / largest, high / largest
    if not high > low:
        return np.ones(len(utilities))
    utilities = utilities / largest
    utilities -= low
    utilities /= high - low
    return utilities


def _cell_factors(
    groups: Groups, labels: Labels, counted: Floats | None, *, logarithms: bool = False
) -> Floats:
    """Return the factor P(z) P(y) / P(z, y) of each group and label; 1 where the cell has no weight."""
    n_groups, n_labels = len(groups), len(labels.classes)
    z = add_up(groups.codes, n_groups, counted).astype(np.float64)[:, None]
    y = add_up(labels.codes, n_labels, counted).astype(np.float64)
    cell = add_up(groups.codes * n_labels + labels.codes, n_groups * n_labels, counted).astype(np.float64)
    cell, total = cell.reshape(n_groups, n_labels), float(len(groups.codes))
    if counted is not None:
        total = counted.sum()
    if not logarithms:
        return np.divide(z * y, total * cell, out=np.ones(cell.shape), where=cell > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_z, log_y, log_cell, log_total = (np.log(part) for part in (z, y, cell, total))
        return np.subtract(
            log_z + log_y - log_total, log_cell, out=np.zeros(cell.shape), where=np.isfinite(log_cell)
        )


def _rows_per_cell(groups: Groups, labels: Labels, among: Any = slice(None)) -> npt.NDArray[np.int64]:
    """Count rows by group and label."""
    shape = len(groups), len(labels.classes)
    cells = groups.codes * shape[1] + labels.codes
    return add_up(cells[among], shape[0] * shape[1]).reshape(shape)


def _warn_of_cells(
    marked: npt.NDArray[np.bool_], names: Sequence[str], classes: Sequence[Any], sentence: str
) -> None:
    """Warn, once per label, of the groups whose cell is marked."""
    for label, groups in zip(classes, marked.T, strict=True):
        if groups.any():
            named = list_names([names[group] for group in np.flatnonzero(groups).tolist()])
            warn_user(sentence.format(repr(label), named))
