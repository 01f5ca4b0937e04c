"""Rows to look at: labels that models contradict, effects on the ratio, what their removal changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.metrics import log_loss

from fado._messages import list_names
from fado._typing import Bools, Floats
from fado.exploration._biases import Estimate, Z, share, share_gap, widest_gap
from fado.exploration._explored import (
    FEWEST_MEMBERS,
    ExploredRows,
    Protected,
    ShownGroups,
    cells_of,
    percent,
    plain_number,
    quoted,
)
from fado.exploration._removals import find_slices, label_cells
from fado.exploration._slices import (
    SliceFinder,
)
from fado.metrics import RATIO_NAMES, RATIOS, measure
from fado.tabular import MIN_GROUP_SIZE, group_rows
from fado.valuation import Scale, Valuation

if TYPE_CHECKING:
    import pandas as pd

    from fado.exploration._consequences import Consequences


CONTRADICTED = 0.1  # probability of the row's own label, at the most
NAMED_LIMITS = 5
MOST_ROWS = 10  # listed, of a group or of all
MOST_SLICES = 8
INFLUENCE = "influence"  # what TreeInfluence's values say of their algorithm
_PREFIX = "effect of the row's weight on "
_CHANGES = ["ratio_change", "ratio_error", "performance_change", "performance_error"]
_MEASURED = [f"measured_{name}" for name in _CHANGES]
_COLUMNS = {
    "cells": ["group", "label", "rows", "ratio_effect", "performance_effect"],
    "slices": ["slice", "rows", "share", "ratio_change", "performance_change", "p_value", *_MEASURED],
    "changes": ["slice", "rows", *_CHANGES],
    "curve": ["share", "rows", *_MEASURED],
}


def suspicious_part(finder: SliceFinder, attribute: Protected, show_rows: bool) -> dict[str, Any] | None:
    """Count the rows whose label the models contradict, per group and label, and name the worst.

    A label is contradicted if models give it a probability of at most 10 %, and at most half of its share
    among all rows. A number is contradicted if its error is beyond Tukey's far fence. None for values that do
    not contain the models' agreement with the labels.
    """
    explored, groups = finder.explored, attribute.groups
    agreement = explored.agreement("y")
    if agreement is None:
        return None
    limits, contradicted = _limits(explored, agreement), contradicted_rows(explored, agreement)
    # the agreement of calibrated models, for two labels
    expected = np.square(agreement) + np.square(1.0 - agreement) if explored.is_binary else None
    per_group = []
    for group in groups.rated:
        rows = np.flatnonzero(groups.members(group))
        per_group.append(
            {"group": groups.names[group], "rows": len(rows), "contradicted": int(contradicted[rows].sum())}
            | _shares(rows, contradicted)
            | {"expected": _expected_share(explored, rows, agreement, limits)}
        )
    listed = []
    for group, name in enumerate(groups.names):
        rows = np.flatnonzero(groups.members(group) & contradicted)
        rows = rows[np.argsort(agreement[rows], kind="stable")[:MOST_ROWS]]
        listed.append(
            {
                "group": name,
                "rows": [
                    _entry(explored, row, {"agreement": float(agreement[row])}, show_rows) for row in rows
                ],
            }
        )

    def slices(target: Floats) -> list[dict[str, Any]]:
        found = []
        for one in finder.find(target, highest=True):
            rows = one.rows(finder.columns)
            found.append(
                finder.described(one, [attribute.name], groups)
                | {
                    "p_value": one.p_value,
                    "mean_agreement": float(agreement[rows].mean()),
                    "expected_agreement": None if expected is None else float(expected[rows].mean()),
                    "contradicted_share": float(contradicted[rows].mean()),
                }
            )
        return found

    return {
        "limit": float(limits.max()),
        "rule": _rule(explored, limits),
        "groups": per_group,
        "labels": [
            {"group": group, "label": label, "rows": len(rows)} | _shares(rows, contradicted)
            for group, label, rows in cells_of(groups, explored.labels)
        ],
        "sentence": _contradictions(explored, attribute, per_group, int(contradicted.sum())),
        "rows": listed,
        "least_agreement": slices(1.0 - agreement),
        "beyond_doubt": None if expected is None else slices(expected - agreement),
    }


def contradicted_rows(explored: ExploredRows, agreement: Floats) -> Bools:
    """Mark the rows whose label the models contradict."""
    limits = _limits(explored, agreement)
    is_number = explored.target.kind == "continuous"
    return np.asarray(agreement <= (limits[0] if is_number else limits[explored.target.labels]))


def _limits(explored: ExploredRows, agreement: Floats) -> Floats:
    """Give the agreement up to which a row is contradicted: per label, or one for a continuous target."""
    if explored.target.kind == "continuous":
        low, high = np.quantile(agreement, [0.25, 0.75])
        return np.array([low - 3.0 * (high - low)])
    labels = explored.target.labels
    shares = np.bincount(labels, minlength=len(explored.target.classes)) / len(labels)
    return np.minimum(CONTRADICTED, shares / 2)


def _rule(explored: ExploredRows, limits: Floats) -> str:
    """Say when a label is contradicted."""
    if explored.target.kind == "continuous":
        return (
            "A number is contradicted if the models' error is beyond Tukey's far fence (agreement below "
            f"{plain_number(float(limits[0]))})."
        )
    rule = f"A label is contradicted if models give it a probability of at most {percent(CONTRADICTED)}"
    lower = [code for code in range(len(limits)) if 0 < limits[code] < CONTRADICTED]
    if not lower:
        return f"{rule}."
    told = [f"{percent(float(limits[code]))} for {quoted(explored.speak_label(code))}" for code in lower]
    return (
        f"{rule}, and of at most half of the label's share. For rare labels that is less: "
        f"{list_names(told, NAMED_LIMITS)}."
    )


def _shares(rows: npt.NDArray[np.intp], contradicted: Bools) -> dict[str, float]:
    found = share(int(contradicted[rows].sum()), len(rows))
    return {"share": found.number, "low": found.low, "high": found.high}


def _expected_share(
    explored: ExploredRows, rows: npt.NDArray[np.intp], agreement: Floats, limits: Floats
) -> float | None:
    """Give the share of contradicted labels that calibrated models predict."""
    if not explored.is_binary:
        return None
    own, labels = agreement[rows], explored.target.labels[rows]
    other = 1.0 - own
    expected = own[own <= limits[labels]].sum() + other[other <= limits[1 - labels]].sum()
    return float(expected / len(rows))


def _entry(explored: ExploredRows, row: np.intp, told: dict[str, Any], show_rows: bool) -> dict[str, Any]:
    """List a row by its number; its entries, as text, only if they are to be shown."""
    entry = {"row": explored.row_number(int(row))} | told
    if show_rows:
        target, place, features = explored.target, int(explored.rows[row]), []
        for column in explored.problem.table.columns:
            value = column.data[place].as_py()
            if value is None or value != value:
                value = "(missing)"
            elif column.levels is not None:
                value = column.levels[value]
            features.append([column.name, str(value)])
        label = target.labels[row]
        entry["label"] = str(target.classes[label]) if target.kind == "classes" else f"{label:.6g}"
        entry["features"] = features
    return entry


def _contradictions(
    explored: ExploredRows, attribute: Protected, per_group: list[dict[str, Any]], n_contradicted: int
) -> str:
    what = "numbers" if explored.target.kind == "continuous" else "labels"
    verb = "confidently contradict" if explored.is_binary else "contradict"
    if not n_contradicted:
        return f"Models {verb} none of the {what}."
    rated = attribute.groups.rated
    shares = [Estimate(one["share"], one["low"], one["high"]) for one in per_group]
    widest = widest_gap(shares, [rated.index(group) for group in attribute.groups.compared], share_gap)
    if not widest.is_clear:
        none = "; no clear difference between groups was found" if widest.known else ""
        return f"Models {verb} {percent(n_contradicted / len(explored))} of the {what}{none}."
    high, low = (attribute.spoken[rated[one]] for one in (widest.high, widest.low))
    return (
        f"Models {verb} {percent(shares[widest.high].number)} of the {what} in {high} and "
        f"{percent(shares[widest.low].number)} in {low}."
    )


def effects_part(consequences: Consequences, attribute: Protected, show_rows: bool) -> dict[str, Any] | None:
    """Give the effects of rows on the ratio between an attribute's groups and on the performance.

    ``now`` has the metrics without any change, ``cells`` and ``rows`` have effects, ``slices`` and ``curve``
    the changes ``measured`` on validation data, and ``headline`` is the removal that helps most, if any does;
    ``reason`` says why nothing was measured. All counts are of the explored rows. None if values are not
    effects and nothing was measured.
    """
    explored, found = consequences.explored, consequences.of(attribute)
    by_values = explored.valuation.scales[attribute.name].is_signed
    if not by_values and not found:
        return None
    ratio, performance = metrics_of(explored.valuation, attribute.name, consequences)
    times = 1.0  # that a row with an effect stands for, among the explored rows
    if by_values:
        weights = 1.0 if explored.weights is None else explored.weights  # values are per unit of weight
        on_ratio, on_target = (explored.valuation[name] * weights for name in (attribute.name, "y"))
    else:
        on_ratio, on_target = np.zeros((2, len(explored)))
        on_ratio[explored.sample], on_target[explored.sample] = found["effects"]
        times = len(explored) / len(explored.sample)
    on_performance = None if performance is None else on_target
    stand_for = times if explored.sampled is None else times * explored.sampled.times  # in the whole table
    slices, curve = _slices(consequences, attribute, on_ratio), _curve(explored, attribute, found)
    worst = np.argsort(on_ratio, kind="stable")[:MOST_ROWS]
    return {
        "lead": _lead(ratio, performance, attribute.name, explored, is_sample=stand_for != 1),
        "ratio": ratio,
        "performance": performance,
        "now": _level_now(explored, attribute) or (found["measured"]["before"] if found else None),
        "harmful": round(times * int((on_ratio < 0).sum())),
        "cells": cell_effects(
            attribute.groups,
            explored.labels,
            stand_for * on_ratio,
            None if on_performance is None else stand_for * on_performance,
        ),
        "slices": slices,
        "curve": curve,
        "headline": most_helpful([*slices, *curve]),
        "harmful_rows": cell_counts(explored, attribute, on_ratio < 0, times),
        "rows": [
            _entry(explored, row, _effects(on_ratio[row], on_performance, row), show_rows)
            for row in worst
            if on_ratio[row] < 0
        ],
        "measured": found.get("measured"),
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
    ...     own = {"ratio_change": ratio, "performance_change": performance}
    ...     return {"measured": own | {"ratio_error": 0.02, "performance_error": 0.01}}
    >>> best = most_helpful([removal(-0.13, -0.6), removal(0.48, -0.07), removal(0.1, -0.02)])
    >>> best["measured"]["ratio_change"]
    0.48
    >>> most_helpful([removal(-0.13, -0.6), removal(0.03, 0.0), removal(0.3, -0.4)]) is None
    True
    """
    figures = [(one, one["measured"]) for one in removals if one["measured"] is not None]
    reach = float(ndtri(1 - 0.025 / max(len(figures), 1)))
    helping = [
        (own["ratio_change"] / max(-own["performance_change"], Z * own["performance_error"], 1e-6), one)
        for one, own in figures
        if own["ratio_change"] > max(reach * own["ratio_error"], -own["performance_change"], 0.0)
    ]
    return max(helping, key=lambda entry: entry[0])[1] if helping else None


def cell_counts(
    explored: ExploredRows, attribute: Protected, rows: Bools, times: float = 1.0
) -> list[dict[str, Any]]:
    """Count rows per group and label, the most frequent first; fewer than ten are left out."""
    counts = [
        {"group": group, "label": label, "rows": round(times * int(rows[own].sum()))}
        for group, label, own in cells_of(attribute.groups, explored.labels)
        if rows[own].sum() >= FEWEST_MEMBERS
    ]
    return sorted(counts, key=lambda one: -one["rows"])


def _curve(explored: ExploredRows, attribute: Protected, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Describe the most harmful rows; those of a sample stand for the same share of all rows."""
    times, described = len(explored) / len(explored.sample), []
    for one in found.get("curve", []):
        rows = np.zeros(len(explored), dtype=np.bool_)
        rows[explored.sample[one["rows"]]] = True
        own = {"rows": round(times * int(rows.sum())), "cells": cell_counts(explored, attribute, rows, times)}
        described.append(one | own)
    return described


def _effects(on_ratio: float, on_performance: Floats | None, rows: Any) -> dict[str, float | None]:
    performance = None if on_performance is None else float(on_performance[rows].sum())
    return {"ratio_effect": float(on_ratio), "performance_effect": performance}


def cell_effects(
    groups: ShownGroups, labels: ShownGroups, on_ratio: Floats, on_performance: Floats | None
) -> list[dict[str, Any]]:
    """Add up effects per group and label; small groups, and cells of fewer than ten rows, are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.exploration._explored import show_groups
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
        {"group": group, "label": label, "rows": len(rows)}
        | _effects(on_ratio[rows].sum(), on_performance, rows)
        for group, label, rows in cells_of(groups, labels)
    ]


def _slices(consequences: Consequences, attribute: Protected, on_ratio: Floats) -> list[dict[str, Any]]:
    """List the slices with their measured changes; if nothing was measured, by the sum of effects."""
    explored, columns = consequences.explored, consequences.columns
    slices = consequences.of(attribute).get("slices")
    if slices is None:
        nothing = {"ratio_change": None, "performance_change": None, "measured": None}
        gains, cells = -on_ratio[explored.sample], label_cells(explored)
        slices = [
            {"found": one, "rows": one.rows(columns)} | nothing
            for one in find_slices(explored, columns, gains, MOST_SLICES, cells)
        ]
    return [
        {key: own for key, own in one.items() if key not in ("found", "forecast")}
        | {
            "conditions": one["found"].texts,
            "cells": cell_counts(explored, attribute, one["rows"]),
            "rows": int(one["rows"].sum()),
            "share": float(one["rows"].mean()),
            "p_value": one["found"].p_value,
        }
        for one in slices
    ]


def _lead(
    ratio: str, performance: str | None, attribute: str, explored: ExploredRows, *, is_sample: bool
) -> str:
    scaled = " Sums are scaled up from the sample to all rows." if is_sample else ""
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
        return dict.fromkeys(_MEASURED) | {f"measured_{key}": own for key, own in (figures or {}).items()}

    slices = [one | {"slice": " and ".join(one["conditions"])} for one in part["slices"]]
    curve = [one | {"slice": f"the most harmful {percent(one['share'])}"} for one in part["curve"]]
    rows = {
        "cells": part["cells"],
        "slices": [one | measured(one["measured"]) for one in slices],
        "changes": [one | one["measured"] for one in [*slices, *curve] if one["measured"] is not None],
        "curve": [one | measured(one["measured"]) for one in curve],
    }
    frames = {key: pd.DataFrame(own, columns=_COLUMNS[key]) for key, own in rows.items()}
    for frame in frames.values():
        numbers = [column for column in frame.columns if frame[column].isna().all()]
        frame[numbers] = frame[numbers].astype("float64")  # what is not known is NaN
    return frames


def metrics_of(
    valuation: Valuation, attribute: str, consequences: Consequences | None = None
) -> tuple[str, str | None]:
    """Name the ratio and the performance metric of effects, or of measured changes.

    Examples
    --------
    >>> from fado.valuation import Scale, Valuation
    >>> metrics_of(Valuation.from_values({"y": [0.1], "sex": [-0.2]}), "sex")
    ('ratio', 'performance')
    >>> scales = {name: Scale(f"effect of the row's weight on {on}")
    ...           for name, on in {"y": "accuracy", "sex": "fpr_ratio"}.items()}
    >>> metrics_of(Valuation.from_values({"y": [0.1], "sex": [-0.2]}, scales=scales), "sex")
    ('FPR ratio', 'accuracy')
    """
    on_ratio, on_performance = (_metric(valuation.scales[name]) for name in (attribute, "y"))
    budget, is_known = _budget(valuation), valuation.scales["y"].is_signed
    if consequences is not None and not valuation.scales[attribute].is_signed:
        (on_ratio, on_performance, budget), is_known = consequences.goal, True
    shown = {
        None: "performance",
        "tpr_at_fpr": "TPR" if budget is None else f"TPR at {100 * budget:.3g} % FPR",
        "log_loss": "minus log-loss",
    }
    performance = shown.get(on_performance, on_performance) if is_known else None
    ratio = f"{RATIOS[on_ratio].short_title} ratio" if on_ratio in RATIOS else on_ratio or "ratio"
    return ratio, performance


def _metric(scale: Scale) -> str | None:
    """Read the name of the metric from the meaning of a scale; None if it names none."""
    name = scale.meaning.removeprefix(_PREFIX)
    return None if name == scale.meaning or name.startswith("a metric") else name


def _budget(valuation: Valuation) -> float | None:
    budget: Any = valuation.provenance.settings.get("max_fpr")
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < 1:
        return None
    return float(budget)


def _level_now(explored: ExploredRows, attribute: Protected) -> dict[str, float] | None:
    """Give ratio and performance of the models behind the values, on rows they were not trained on.

    None if that is unknown: for values of other methods, and for values measured on other rows.
    """
    provenance, scored = explored.valuation.provenance, explored.scores()
    fairness, budget = provenance.settings.get("fairness"), _budget(explored.valuation)
    if provenance.algorithm != INFLUENCE or fairness not in RATIO_NAMES or budget is None:
        return None
    if scored is None or attribute.is_continuous:
        return None
    (positive, scores), weights = scored, explored.weights
    groups = group_rows([attribute.variable])
    left_out = ~groups.compared(MIN_GROUP_SIZE)
    measured, _ = measure(
        positive, scores, groups.codes, groups.names, max_fpr=budget, sample_weight=weights, left_out=left_out
    )
    performance = {
        "tpr_at_fpr": measured["tpr"],
        "accuracy": float(
            np.average(explored.valuation.field("label_probability", "y") >= 0.5, weights=weights)
        ),
        "log_loss": -log_loss(positive, scores, sample_weight=weights),
    }.get(str(provenance.settings.get("performance")))
    if performance is None or np.isnan([performance, measured[fairness]]).any():
        return None
    return {"ratio": float(measured[fairness]), "performance": float(performance)}
