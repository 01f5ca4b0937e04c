"""The rows of the frame as other tools keep trials: plain settings, finite metrics, names that stay."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fado.experiment.search import PENDING, key_of
from fado.experiment.store import Store

if TYPE_CHECKING:
    from fado.experiment.results._results import Results

__all__ = ["Plain", "RowOut", "identity_of", "plain", "rows_out", "whole"]

Plain: TypeAlias = bool | int | float | str


@dataclass(frozen=True)
class RowOut:
    """One row of the frame.

    Parameters
    ----------
    label : object
        Its label in the frame's index.
    key : str
        A name that only this trial of this store has, in this status: what was sent before is known by it.
    intervention, model, status, error
        As the frame has them.
    settings, parameters : dict of str to bool, int, float or str
        The intervention's and the model's; only those that concern it.
    metrics : dict of str to float
        All numbers that were measured, by the names of the frame's columns; finite ones only.
    """

    label: Any
    key: str
    intervention: str
    settings: dict[str, Plain]
    model: int
    parameters: dict[str, Plain]
    metrics: dict[str, float]
    status: str
    error: str | None


def identity_of(results: Results) -> str:
    """Name an experiment by all that its results depend on."""
    with Store.reading(results.store) as store:
        about = store.about
    return key_of([about[name] for name in ("format", "fingerprint", "versions", "settings")])


def rows_out(results: Results, identity: str) -> list[RowOut]:
    """Read the rows of the frame, except those that are pending."""
    frame = results.frame
    columns = list(map(str, frame.columns))
    model, measured, status = (columns.index(name) for name in ("model", "training_rows", "status"))
    found = []
    for label, row in zip(frame.index, frame.itertuples(index=False, name=None), strict=True):
        told = dict(zip(columns, row, strict=True))
        name, number, state, error = (told[own] for own in ("intervention", "model", "status", "error"))
        if state == PENDING:
            continue
        settings = _known(told, columns[1:model])
        parameters = _known(told, columns[model + 1 : measured])
        parameters = {own: whole(value) for own, value in parameters.items()}
        numbers = {own: float(value) for own, value in _known(told, columns[measured:status]).items()}
        found.append(
            RowOut(
                label,
                key_of([identity, int(label), name, settings, int(number), parameters, state]),
                name,
                settings,
                int(number),
                parameters,
                {own: value for own, value in numbers.items() if math.isfinite(value)},
                state,
                error if isinstance(error, str) else None,
            )
        )
    return found


def _known(told: dict[str, Any], names: list[str]) -> dict[str, Plain]:
    """Give what is not missing, as plain data."""
    import pandas as pd

    values = {name: told[name] for name in names}
    return {
        name: plain(value)
        for name, value in values.items()
        if not (value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)))
    }


def plain(value: Any) -> Plain:
    """Give a value as plain data; a list and the like as text."""
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, Plain) else json.dumps(value, default=str)


def whole(value: Plain) -> Plain:
    """Give a whole number as one: a column of them that lacks some holds floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
