"""The effects of rows on the model, and what removing rows changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from fado._typing import Bools, Floats
from fado.exploration._consequences import Consequences
from fado.exploration._estimates import Z
from fado.exploration._explored import ExploredRows, Protected, percent
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups, cells_of
from fado.exploration._removals import find_slices, label_cells
from fado.exploration._suspicious import MOST_ROWS, row_entry
from fado.metrics import RATIOS

if TYPE_CHECKING:
    import pandas as pd

_PREFIX = "effect of the row's weight on "
_CHANGES = ["ratio_change", "ratio_error", "performance_change", "performance_error"]
_MEASURED = [f"measured_{name}" for name in _CHANGES]
_COLUMNS = {
    "cells": ["group", "label", "rows", "ratio_effect", "performance_effect"],
    "slices": ["slice", "rows", "share", "p_value", *_MEASURED],
    "changes": ["slice", "rows", *_CHANGES],
    "curve": ["share", "rows", *_MEASURED],
}


def effects_part(consequences: Consequences, attribute: Protected, show_rows: bool) -> dict[str, Any] | None:
    """Give the effects of rows on the ratio between an attribute's groups and on the performance.

    ``cells`` and ``rows`` have effects, ``slices`` and ``curve`` the changes ``measured`` on validation data,
    and ``headline`` is the removal that helps most, if any does; ``reason`` says why nothing was measured.
    All counts are of the explored rows. None if values are not effects and nothing was measured.
    """
    explored, results, groups = consequences.explored, consequences.of(attribute), attribute.groups
    by_values = explored.valuation.scales[attribute.name].is_signed
    if not by_values and not results:
        return None
    ratio, performance = _metric_titles(consequences, attribute.name)
    scale = 1.0 if by_values else len(explored) / len(explored.sample)  # a sampled row stands for so many
    if by_values:
        on_ratio, on_target = explored.effects(attribute.name), explored.effects("y")
    else:
        on_ratio, on_target = np.zeros((2, len(explored)))
        on_ratio[explored.sample], on_target[explored.sample] = results["effects"]
    on_performance = None if performance is None else on_target
    in_all = scale if explored.sampled is None else scale * explored.sampled.times
    pairs: list[tuple[Any, Any]] = results.get("slices", [])
    if not results:
        gains = -on_ratio[explored.sample]
        pairs = [
            (one, None) for one in find_slices(explored, consequences.columns, gains, label_cells(explored))
        ]
    slices = []
    for one, measured in pairs:
        rows = one.rows(consequences.columns)
        slices.append(
            {
                "conditions": one.texts,
                "rows": int(rows.sum()),
                "share": float(rows.mean()),
                "p_value": one.p_value,
                "measured": measured,
            }
        )
    curve, of_sample = [], len(explored) / len(explored.sample)
    for share, removed, measured in results.get("curve", []):
        rows = np.zeros(len(explored), dtype=np.bool_)
        rows[explored.sample[removed]] = True
        cells = cell_counts(groups, explored.labels, rows, of_sample)
        curve.append(
            {"share": share, "rows": round(of_sample * int(rows.sum())), "cells": cells, "measured": measured}
        )
    worst = np.argsort(on_ratio, kind="stable")[:MOST_ROWS].tolist()
    return {
        "lead": _lead(ratio, performance, attribute.name, explored, is_scaled=in_all != 1),
        "ratio": ratio,
        "performance": performance,
        "harmful": round(scale * int((on_ratio < 0).sum())),
        "cells": cell_effects(
            groups,
            explored.labels,
            in_all * on_ratio,
            None if on_performance is None else in_all * on_performance,
        ),
        "slices": slices,
        "curve": curve,
        "headline": most_helpful([*slices, *curve]),
        "harmful_rows": cell_counts(groups, explored.labels, on_ratio < 0, scale),
        "rows": [
            row_entry(explored, row, show_rows) | {"ratio_effect": float(on_ratio[row])}
            for row in worst
            if on_ratio[row] < 0
        ],
        "measured": results.get("measured"),
        "reason": consequences.reasons[attribute.name],
    }


def most_helpful(removals: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Choose the measured removal that raises the ratio most for each point of performance that it costs.

    It must clearly raise the ratio: the interval, which holds for all removals together, excludes 0. And the
    ratio must rise by more than the performance falls. A cost within its margin of error counts as that
    margin, so that chance does not make a removal cheap. None if there is no such removal.

    Examples
    --------
    >>> def removal(ratio, performance):
    ...     figures = {"ratio_change": ratio, "performance_change": performance}
    ...     return {"measured": figures | {"ratio_error": 0.02, "performance_error": 0.01}}
    >>> best = most_helpful([removal(-0.13, -0.6), removal(0.48, -0.07), removal(0.1, -0.02)])
    >>> best["measured"]["ratio_change"]
    0.48
    >>> most_helpful([removal(-0.13, -0.6), removal(0.03, 0.0), removal(0.3, -0.4)]) is None
    True
    """
    figures = [(one, one["measured"]) for one in removals if one["measured"] is not None]
    reach = float(ndtri(1 - 0.025 / max(len(figures), 1)))
    helping = [
        (its["ratio_change"] / max(-its["performance_change"], Z * its["performance_error"], 1e-6), one)
        for one, its in figures
        if its["ratio_change"] > max(reach * its["ratio_error"], -its["performance_change"], 0.0)
    ]
    return max(helping, key=lambda entry: entry[0])[1] if helping else None


def cell_counts(
    groups: ShownGroups, labels: ShownGroups, rows: Bools, scale: float = 1.0
) -> list[dict[str, Any]]:
    """Count rows per group and label, the most frequent first; fewer than ten are left out."""
    counts = [
        {"group": group, "label": label, "rows": round(scale * int(rows[members].sum()))}
        for group, label, members in cells_of(groups, labels)
        if rows[members].sum() >= FEWEST_MEMBERS
    ]
    return sorted(counts, key=lambda one: -one["rows"])


def cell_effects(
    groups: ShownGroups, labels: ShownGroups, on_ratio: Floats, on_performance: Floats | None
) -> list[dict[str, Any]]:
    """Add up effects per group and label; small groups, and cells of fewer than ten rows, are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.exploration._groups import show_groups
    >>> from fado.tabular import Groups
    >>> groups = show_groups(Groups(np.repeat([0, 1], [25, 20]), ("a", "b"), ("a", "b")))
    >>> labels = show_groups(Groups(np.repeat([0, 1, 0], [15, 10, 20]), ("no", "yes"), ("no", "yes")))
    >>> for cell in cell_effects(groups, labels, np.repeat([0.5, -1.0, 0.25], [15, 10, 20]), None):
    ...     print(cell["group"], cell["label"], cell["rows"], cell["ratio_effect"])
    a no 15 7.5
    a yes 10 -10.0
    b no 20 5.0
    """
    return [
        {
            "group": group,
            "label": label,
            "rows": len(rows),
            "ratio_effect": float(on_ratio[rows].sum()),
            "performance_effect": None if on_performance is None else float(on_performance[rows].sum()),
        }
        for group, label, rows in cells_of(groups, labels)
    ]


def _lead(
    ratio: str, performance: str | None, attribute: str, explored: ExploredRows, *, is_scaled: bool
) -> str:
    scaled = " Sums are scaled up from the sample to all rows." if is_scaled else ""
    if len(explored.sample) < len(explored):
        which = "all" if explored.sampled is None else "the"
        scaled += (
            f" Models were trained on {len(explored.sample):,} rows drawn at random; counts are of {which} "
            f"{len(explored):,} {'rows' if explored.sampled is None else 'sampled rows'}."
        )
    both = "" if performance is None else f" and the {performance}"
    return (
        "The effect of a row is an estimate of what its weight adds to a metric of the model: here the "
        f"{ratio} between the groups of {attribute}{both}. A negative effect on the ratio marks a row that "
        "makes the groups less equal. Effects show where to look; the changes below are measured by "
        f"retraining.{scaled}"
    )


def _metric_titles(consequences: Consequences, attribute: str) -> tuple[str, str | None]:
    """Name the ratio and the performance metric of effects, or of measured changes."""
    valuation, is_known = consequences.explored.valuation, True
    scales = [valuation.scales[name] for name in (attribute, "y")]
    budget: Any
    ratio, performance, budget = consequences.fairness, consequences.performance, consequences.max_fpr
    if scales[0].is_signed:  # the meaning of an effect names its metric
        meanings = [f"{one.meaning} " for one in scales]
        ratio, performance = (
            one.removeprefix(_PREFIX).strip() if one.startswith(_PREFIX) and " a metric" not in one else ""
            for one in meanings
        )
        budget, is_known = valuation.provenance.settings.get("max_fpr"), scales[1].is_signed
    titles = {
        "": "performance",
        "tpr_at_fpr": f"TPR at {100 * budget:.3g} % FPR" if isinstance(budget, float) else "TPR",
        "log_loss": "minus log-loss",
    }
    title = f"{RATIOS[ratio].short_title} ratio" if ratio in RATIOS else ratio or "ratio"
    return title, titles.get(performance, performance) if is_known else None


def effect_frames(summary: dict[str, Any], attribute: str | None) -> dict[str, pd.DataFrame]:
    """Give the effects of an attribute as tables: see `Exploration.effects`."""
    import pandas as pd

    entries = {entry["name"]: entry for entry in summary["attributes"]}
    name = next(iter(entries)) if attribute is None else attribute
    if name not in entries:
        raise ValueError(f"`attribute` must be one of {list(entries)}, got {attribute!r}.")
    part = entries[name].get("effects")
    if part is None:
        raise ValueError(f"The values of {name!r} are not effects. {entries[name]['not_measured']}")

    def measured(figures: dict[str, Any] | None) -> dict[str, Any]:
        return dict.fromkeys(_MEASURED) | {
            f"measured_{key}": number for key, number in (figures or {}).items()
        }

    slices = [one | {"slice": " and ".join(one["conditions"])} for one in part["slices"]]
    curve = [one | {"slice": f"the most harmful {percent(one['share'])}"} for one in part["curve"]]
    rows = {
        "cells": part["cells"],
        "slices": [one | measured(one["measured"]) for one in slices],
        "changes": [one | one["measured"] for one in [*slices, *curve] if one["measured"] is not None],
        "curve": [one | measured(one["measured"]) for one in curve],
    }
    frames = {key: pd.DataFrame(part, columns=_COLUMNS[key]) for key, part in rows.items()}
    for frame in frames.values():
        numbers = [column for column in frame.columns if frame[column].isna().all()]
        frame[numbers] = frame[numbers].astype("float64")  # what is not known is NaN
    return frames
