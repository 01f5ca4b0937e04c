"""The models of landscapes as plain data: each setting and each model's parameters told once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["select_points", "tabulate_points"]

MILLION = 1_000_000


def tabulate_points(
    frame: pd.DataFrame,
    views: Sequence[Mapping[str, Any]],
    *,
    setting_columns: Sequence[str],
    model_columns: Sequence[str],
    metrics: Sequence[str],
    counts: Sequence[str] = (),
    barred: Mapping[str, Any],
) -> dict[str, Any]:
    """Give the models of several landscapes as plain data.

    Metrics are told in millionths, rounded down: whether one reaches a line of at most six decimals is what
    the metric itself says.

    Parameters
    ----------
    frame : DataFrame
        One row per model, with ``intervention``, ``alpha`` (missing where there is none), the number of the
        ``model``, and the columns named below.
    views : sequence of dict
        Of each landscape the ``ratio``, as columns of `frame` call it behind the name of a part
        (``"fpr_ratio"`` for ``test_fpr_ratio``), and its ``frontiers``: masks of the rows that are on them.
    setting_columns, model_columns : sequence of str
        The columns that tell an intervention's settings, and those that tell a model's parameters.
    metrics, counts : sequence of str
        The columns of metrics, and those of whole numbers.
    barred : mapping
        Of each part that models are measured on, the mask of the rows that may not be compared there.

    Returns
    -------
    dict
        ``settings`` and ``models``, what is told of each; per row the positions of its ``setting`` and its
        ``model`` among them; ``metrics`` and ``counts``, by name, None where there is none; ``barred``, the
        positions of rows, by part; and ``views``, with positions for masks.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "intervention": ["none", "UAR"], "alpha": [None, 0.5], "model": [0, 0], "trees": [5, 5],
    ...     "test_tpr": [0.7, 0.6], "test_fpr_ratio": [0.5, 0.7999999]})
    >>> table = tabulate_points(
    ...     frame, [{"ratio": "fpr_ratio", "frontiers": [[True, True]]}], setting_columns=["alpha"],
    ...     model_columns=["trees"], metrics=["test_tpr", "test_fpr_ratio"], barred={"test": [False, False]})
    >>> table["settings"][1], table["models"]
    ({'intervention': 'UAR', 'alpha': 0.5, 'setting': 'alpha 0.5'}, ['0: trees 5'])
    >>> table["setting"], table["model"], table["metrics"]["test_fpr_ratio"]
    ([0, 1], [0, 0], [500000, 799999])
    """
    told = frame[["intervention", "alpha"]].assign(setting=_settings_text(frame, setting_columns))
    settings = [{str(key): _plain(value) for key, value in row.items()} for row in told.to_dict("records")]
    setting, kinds = _told_once([(row["intervention"], row["alpha"], row["setting"]) for row in settings])
    model, models = _told_once(_models_text(frame, model_columns))
    return {
        "settings": [dict(zip(("intervention", "alpha", "setting"), kind, strict=True)) for kind in kinds],
        "models": models,
        "setting": setting,
        "model": model,
        "metrics": {name: _millionths(frame[name].to_numpy(dtype=np.float64)) for name in metrics},
        "counts": {name: _whole(frame[name]) for name in counts},
        "barred": {part: _positions(mask) for part, mask in barred.items()},
        "views": [
            {"ratio": view["ratio"], "frontiers": [_positions(mask) for mask in view["frontiers"]]}
            for view in views
        ],
    }


def select_points(table: dict[str, Any], which: int) -> list[dict[str, Any]]:
    """Give the points of one landscape on the test part, those on a frontier last, to be drawn on top."""
    view = table["views"][which]
    tpr, ratio = (table["metrics"][f"test_{name}"] for name in ("tpr", view["ratio"]))
    barred, frontier = set(table["barred"]["test"]), set().union(*view["frontiers"])
    points = [
        {
            **table["settings"][table["setting"][row]],
            "model": table["models"][table["model"][row]],
            "tpr": tpr[row] / MILLION,
            "ratio": ratio[row] / MILLION,
            "frontier": row in frontier,
        }
        for row in range(len(tpr))
        if row not in barred and tpr[row] is not None and ratio[row] is not None
    ]
    return sorted(points, key=lambda point: point["frontier"])


def _told_once(told: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Give the position of everything told among what is told, and that, each once."""
    number = {one: position for position, one in enumerate(dict.fromkeys(told))}
    return [number[one] for one in told], list(number)


def _settings_text(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Say the settings of every row in a few words."""
    return [_words(row) for row in frame[list(names)].to_dict("records")] if names else [""] * len(frame)


def _models_text(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Say the number and the parameters of every row's model in a few words."""
    return [f"{row.pop('model')}: {_words(row)}" for row in frame[["model", *names]].to_dict("records")]


def _words(row: dict[Any, Any]) -> str:
    known = {name: _plain(value) for name, value in row.items() if _plain(value) is not None}
    return ", ".join(
        value if isinstance(value, str) else f"{name} {value:.4g}" for name, value in known.items()
    )


def _millionths(numbers: Any) -> list[int | None]:
    """Count the millionths that numbers reach; None where there is no finite number."""
    finite = np.isfinite(numbers)
    known = np.where(finite, numbers, 0.0)
    whole = np.floor(known * MILLION)
    whole += (whole + 1) / MILLION <= known  # the product is rounded, and may be so across a whole number
    whole -= whole / MILLION > known
    return [int(one) if there else None for one, there in zip(whole, finite, strict=True)]


def _positions(mask: Any) -> list[int]:
    return [int(position) for position in np.flatnonzero(np.asarray(mask, dtype=np.bool_))]


def _whole(column: pd.Series) -> list[int | None]:
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return [None if math.isnan(number) else int(number) for number in numbers]


def _plain(value: Any) -> Any:
    """Give a value as JSON has it, None for what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value
