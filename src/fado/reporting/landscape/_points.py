"""The points of landscapes as plain data: one per model, each setting and each model told once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["select_points", "tabulate_points"]


def tabulate_points(
    frame: pd.DataFrame,
    ratios: pd.DataFrame,
    on_frontier: pd.DataFrame,
    *,
    setting_columns: Sequence[str],
    model_columns: Sequence[str],
) -> dict[str, Any]:
    """Give the points of several landscapes as plain data, each setting and model told once.

    Parameters
    ----------
    frame : DataFrame
        One row per model, with ``intervention``, ``alpha`` (missing where there is none), the number of the
        ``model``, its ``test_tpr``, and the columns named below.
    ratios : DataFrame
        One column per landscape, with the rows of `frame`; NaN where a model cannot be compared.
    on_frontier : DataFrame
        Of the same form: whether a model is on the frontier.
    setting_columns : sequence of str
        The columns of `frame` that tell an intervention's settings.
    model_columns : sequence of str
        The columns of `frame` that tell a model's parameters.

    Returns
    -------
    dict
        ``settings`` and ``models``, what is told of each; ``rows``, per model the positions of its setting
        and its model, its true-positive rate, and per ratio a pair: the ratio, None where the model cannot
        be compared, and whether it is on the frontier.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "intervention": ["none", "UAR"], "alpha": [None, 0.5], "model": [0, 0], "trees": [5, 5],
    ...     "test_tpr": [0.7, 0.6]})
    >>> table = tabulate_points(
    ...     frame, pd.DataFrame({"fpr_ratio": [0.5, 0.9]}), pd.DataFrame({"fpr_ratio": [True, True]}),
    ...     setting_columns=["alpha"], model_columns=["trees"])
    >>> table["settings"][1]
    {'intervention': 'UAR', 'alpha': 0.5, 'setting': 'alpha 0.5'}
    >>> table["models"], table["rows"][1]
    (['0: trees 5'], [1, 0, 0.6, (0.9, 1)])
    """
    settings = frame[["intervention", "alpha"]].assign(setting=_settings_text(frame, setting_columns))
    texts = _models_text(frame, model_columns)
    number = {text: position for position, text in enumerate(dict.fromkeys(texts))}
    told = settings.drop_duplicates()
    place = {tuple(map(str, row)): position for position, row in enumerate(told.itertuples(index=False))}
    pairs = [
        [
            (_plain(ratio), int(front))
            for ratio, front in zip(ratios[metric].round(5), on_frontier[metric], strict=True)
        ]
        for metric in ratios.columns
    ]
    rows = [
        [place[tuple(map(str, setting))], number[text], _plain(round(tpr, 5)), *own]
        for setting, text, tpr, *own in zip(
            settings.itertuples(index=False), texts, frame["test_tpr"], *pairs, strict=True
        )
        if any(ratio is not None for ratio, _ in own)
    ]
    known = [{str(name): _plain(value) for name, value in row.items()} for row in told.to_dict("records")]
    return {"settings": known, "models": list(number), "rows": rows}


def select_points(table: dict[str, Any], which: int) -> list[dict[str, Any]]:
    """Give the points of one landscape of a table, those on the frontier last, to be drawn on top."""
    points = [
        {
            **table["settings"][setting],
            "model": table["models"][model],
            "tpr": tpr,
            "ratio": pairs[which][0],
            "frontier": bool(pairs[which][1]),
        }
        for setting, model, tpr, *pairs in table["rows"]
        if pairs[which][0] is not None
    ]
    return sorted(points, key=lambda point: point["frontier"])


def _settings_text(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Say the settings of every row in a few words."""
    return [_words(row) for row in frame[list(names)].to_dict("records")]


def _models_text(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Say the number and the parameters of every row's model in a few words."""
    return [f"{row.pop('model')}: {_words(row)}" for row in frame[["model", *names]].to_dict("records")]


def _words(row: dict[Any, Any]) -> str:
    known = {name: _plain(value) for name, value in row.items() if _plain(value) is not None}
    return ", ".join(
        value if isinstance(value, str) else f"{name} {value:.4g}" for name, value in known.items()
    )


def _plain(value: Any) -> Any:
    """Give a value as JSON has it, None for what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value
