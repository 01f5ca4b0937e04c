"""What is told of groups without holding their rows: counts, rates and mean values, added part by part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular import TARGET, Variable
from fado.valuation.bulk._scoring import Scored

__all__ = ["GroupLine", "GroupSums", "group_lines"]

_MOST_GROUPS = 100  # of an attribute: more are no summary
_GRAIN = 2.0**30  # values are cut to so many parts of 1, whose sums are exact in any order

Sums = dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True)
class GroupLine:
    """One group of a protected attribute.

    Parameters
    ----------
    title : str
        Its label.
    n_rows : int
        How many rows it has.
    share : float
        Its share of all rows, by weight if rows have weights.
    positive : float or None
        Its positive rate, by weight if rows have weights; None if the target has no positive label.
    mean_y, mean_z : float
        The mean values of its rows for the target and for the attribute, without weights.
    """

    title: str
    n_rows: int
    share: float
    positive: float | None
    mean_y: float
    mean_z: float


class GroupSums:
    """Sums over the rows of each group, per protected attribute of classes.

    Parameters
    ----------
    variables : sequence of Variable
        The target, then the attributes.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._target, *others = variables
        self._groups = {
            own.name: len(own.classes)
            for own in others
            if own.kind == "classes" and len(own.classes) <= _MOST_GROUPS
        }
        n_labels = len(self._target.classes)
        self._n_labels = n_labels if 0 < n_labels <= _MOST_GROUPS else 1
        self._sums: dict[str, Sums] = {name: {} for name in self._groups}

    def add(self, scored: Scored) -> None:
        """Add some rows."""
        weights = np.ones(scored.n_rows) if scored.weights is None else scored.weights
        labels = scored.labels[TARGET] if self._n_labels > 1 else np.zeros(scored.n_rows, dtype=np.int64)
        for name, n_groups in self._groups.items():
            codes = scored.labels[name]
            joint = codes.astype(np.int64) * self._n_labels + labels
            new: Sums = {
                "rows": np.bincount(codes, minlength=n_groups).astype(np.float64),
                "weights": np.bincount(joint, weights, n_groups * self._n_labels).astype(np.float64),
            }
            for which in (TARGET, name):
                values = scored.fields["values"][which]
                known = np.isfinite(values)
                side = "y" if which == TARGET else "z"
                new[f"sum_{side}"] = np.bincount(codes[known], _GRAIN * values[known] // 1, n_groups) / _GRAIN
                new[f"count_{side}"] = np.bincount(codes[known], minlength=n_groups).astype(np.float64)
            _add(self._sums[name], new)

    def to_plain(self) -> dict[str, dict[str, list[float]]]:
        """Give the sums as JSON can hold them."""
        return {name: {key: own.tolist() for key, own in sums.items()} for name, sums in self._sums.items()}


def group_lines(
    classes: Mapping[str, Sequence[Any]], plain: Iterable[Any], positive: int | None
) -> dict[str, list[GroupLine]]:
    """Add up the sums of all parts, and give the groups of every attribute, the largest first.

    Parameters
    ----------
    classes : mapping of str to sequence
        The labels of every attribute.
    plain : iterable
        What `GroupSums.to_plain` gave of each part.
    positive : int or None
        The code of the target's positive label, if there is one.
    """
    totals: dict[str, Sums] = {}
    for part in plain:
        for name, sums in part.items():
            _add(totals.setdefault(name, {}), {key: np.array(own) for key, own in sums.items()})
    return {name: _lines(classes[name], sums, positive) for name, sums in totals.items()}


def _lines(labels: Sequence[Any], sums: Mapping[str, Any], positive: int | None) -> list[GroupLine]:
    weights = sums["weights"].reshape(len(labels), -1)
    means = {side: _ratio(sums[f"sum_{side}"], sums[f"count_{side}"]) for side in ("y", "z")}
    shares = weights.sum(axis=1) / weights.sum()
    has_rate = positive is not None and positive < weights.shape[1] and weights.shape[1] > 1
    rates = _ratio(weights[:, positive], weights.sum(axis=1)) if has_rate else None
    return [
        GroupLine(
            str(labels[code]),
            int(sums["rows"][code]),
            float(shares[code]),
            None if rates is None else float(rates[code]),
            float(means["y"][code]),
            float(means["z"][code]),
        )
        for code in np.argsort(-sums["rows"], kind="stable")
        if sums["rows"][code]
    ]


def _ratio(above: Any, below: Any) -> npt.NDArray[np.float64]:
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)


def _add(total: Sums, new: Mapping[str, npt.NDArray[np.float64]]) -> None:
    for key, own in new.items():
        total[key] = total[key] + own if key in total else own
