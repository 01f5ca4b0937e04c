"""What aiming would cost: the trade-off between ratios and true positives, by the values' own models."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado.aim import trade_off_of
from fado.exploration._material import Attribute, Material
from fado.exploration._wording import quoted
from fado.metrics import Budget
from fado.tabular import Problem, group_rows
from fado.valuation import Valuation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["aim_part"]

LINE = 0.8
MAX_FPR = 0.05
CONFIDENCE = 0.9
TITLES = {
    "fpr_ratio": "false-positive-rate ratio",
    "tpr_ratio": "true-positive-rate ratio",
    "fnr_ratio": "false-negative-rate ratio",
    "selection_rate_ratio": "selection-rate ratio",
}
_REACH = 1.96  # standard errors to either side: a 95 % interval
_AT = f"at {100 * MAX_FPR:g} % false positives"
_SURE = f"{100 * CONFIDENCE:g} %"


def aim_part(material: Material, attribute: Attribute) -> dict[str, Any] | None:
    """Give what each level of each ratio costs; None where there are no probabilities to tell it from.

    Returns
    -------
    dict or None
        The ``line``, the budget ``max_fpr``, the ``confidence`` of lower bounds, the compared ``groups``, a
        ``note`` on how far to trust it, and per entry of ``ratios`` the ``points``, the untouched one first,
        which of them answers (``answer``) and which does so with confidence (``sure``), and ``sentences``.
    """
    if not _has_probabilities(material, attribute):
        return None
    problem, valuation = _searched(material, attribute)
    fine, place = attribute.fine, attribute.groups.place
    shown = zip(fine.names, fine.titles, place, strict=True)
    titles = {name: title for name, title, own in shown if own in attribute.groups.compared}
    groups = group_rows(problem.protected)
    compared = np.array([name in titles for name in groups.names])
    positive = problem.labels.is_positive
    if compared.sum() < 2 or positive.all() or not positive.any():
        return None
    blind = attribute.position is None and not material.excluded_columns(attribute.name)
    return {
        "line": LINE,
        "max_fpr": MAX_FPR,
        "confidence": CONFIDENCE,
        "rows": problem.n_rows,
        "groups": [titles[name] for name in groups.names if name in titles],
        "note": _note(material, attribute, problem.n_rows),
        "ratios": [
            _ratio(name, _curve(valuation, problem, compared, name, material.seed), valuation, blind=blind)
            for name in TITLES
        ],
    }


def _has_probabilities(material: Material, attribute: Attribute) -> bool:
    """Tell whether there are two labels, and probabilities of both and of the attribute's groups."""
    probabilities = material.valuation.probabilities
    if attribute.is_continuous or material.positive is None or len(material.target.classes) != 2:
        return False
    if probabilities is None:
        return False
    for name, classes in (("y", material.target.classes), (attribute.name, attribute.variable.classes)):
        if name not in probabilities:
            return False
        valued = material.valuation.classes.get(name)
        if valued is None and probabilities[name].shape[-1] != len(classes):
            return False
        if valued is not None and not set(classes) <= set(valued):
            return False
    return probabilities["y"].shape[1] == 2


def _searched(material: Material, attribute: Attribute) -> tuple[Problem, Valuation]:
    """Give the searched rows as a problem of one attribute, in which every row counts the same."""
    problem, valuation, variable = material.problem, material.valuation, attribute.variable
    if len(material.sample) < problem.n_rows:
        problem = problem.take(material.rows[material.sample])
        valuation, variable = valuation.take(material.sample), variable.take(material.sample)
    own = replace(
        problem,
        protected=(variable,),
        positions=(None,),
        names_given=True,
        sources=problem.sources[:1],
        sample_weight=None,
    )
    return own, valuation


def _curve(
    valuation: Valuation, problem: Problem, compared: npt.NDArray[np.bool_], name: str, seed: int
) -> pd.DataFrame:
    return trade_off_of(
        valuation,
        problem,
        [compared],
        lines={name: LINE},
        budget=Budget("fpr", MAX_FPR),
        confidence=CONFIDENCE,
        seed=seed,
    )


def _ratio(name: str, frame: pd.DataFrame, valuation: Valuation, *, blind: bool) -> dict[str, Any]:
    """Give the curve of one ratio, and what it says."""
    columns = ["tpr", "tpr_low", "tpr_high", "ratio", "low", "tpr_change", "tpr_change_error"]
    rates = [own for own in map(str, frame.columns) if own.startswith(f"{name.removesuffix('_ratio')}[")]
    points = [
        {key: float(row[key]) for key in columns} | {"rates": [float(row[rate]) for rate in rates]}
        for _, row in frame.iterrows()
    ]
    answer = _answer(frame)
    sure = _sure(frame, answer)
    how = "out-of-bag decisions" if _is_out_of_bag(valuation) else "decisions from the given probabilities"
    return {
        "ratio": name,
        "title": TITLES[name],
        "points": points,
        "answer": answer,
        "sure": sure,
        "sentences": _sentences(frame, TITLES[name], answer, sure, how, len(valuation), blind=blind),
    }


def _answer(frame: pd.DataFrame) -> int | None:
    """Find the point of the highest true-positive rate at the line; the untouched one, if it is there."""
    above = frame[frame["ratio"] >= LINE]
    if above.empty:
        return None
    best = above.sort_values(["tpr", "ratio"], ascending=False, kind="stable").index[0]
    return 0 if 0 in above.index else int(best)


def _sure(frame: pd.DataFrame, answer: int | None) -> int | None:
    """Go back from the most equal point as long as lower bounds are at the line: no correction is needed."""
    if answer is None:
        return None
    place, reached = int(frame["ratio"].argmax()), frame["low"].to_numpy() >= LINE
    if not reached[place]:
        return None
    while place != answer and place and reached[place - 1]:
        place -= 1
    return place


def _sentences(
    frame: pd.DataFrame,
    title: str,
    answer: int | None,
    sure: int | None,
    how: str,
    n_rows: int,
    *,
    blind: bool,
) -> list[str]:
    """Say what the line costs by estimate, and what it costs to be sure of it."""
    if frame["ratio"].isna().all():
        return [
            f"There is no {title} {_AT}: a compared group has no rows that it counts, or all rates are 0."
        ]
    untouched, most = frame.iloc[0], frame.iloc[int(frame["ratio"].argmax())]
    if answer is None:
        which = "decision that does not see the group" if blind else "decision of these models"
        return [
            f"No {which} reaches {LINE}: the most equal has {_down(most['ratio'])}.",
            f"With {_SURE} confidence that is above {_down(most['low'])}.",
        ]
    if answer == 0:
        start = f"Untouched, the {title} is {_down(untouched['ratio'])} {_AT}: {LINE} costs nothing."
    else:
        own = frame.iloc[answer]
        rates = f"({untouched['tpr']:.3f} to {own['tpr']:.3f})"
        by = f"{how} that do not see the group" if blind else how
        start = f"A {title} of {LINE} {_cost(own)} {rates} {_AT}, by {by}."
    if sure is None:
        return [
            start,
            f"These {n_rows:,} rows are too few to be sure: the most equal point has "
            f"{_down(most['ratio'])}, and its lower bound at {_SURE} confidence, {_down(most['low'])}, is "
            f"below {LINE}.",
        ]
    own = frame.iloc[sure]
    if sure == answer:
        return [start, f"With {_SURE} confidence the ratio there is above {_down(own['low'])}."]
    figures = f"{_down(own['ratio'])}, with a lower bound of {_down(own['low'])}"
    return [start, f"Being {_SURE} sure of it {_cost(own)}; the ratio there is {figures}."]


def _cost(point: pd.Series[Any]) -> str:
    """Write what a point costs, with the interval of the paired difference."""
    cost, reach = -100 * point["tpr_change"], 100 * _REACH * point["tpr_change_error"]
    decimals = max(1, int(np.ceil(-np.log10(reach))))
    number, around = f"{abs(cost):.{decimals}f} points", f"(plus or minus {reach:.{decimals}f})"
    if cost > reach:
        return f"costs about {number} {around} of true-positive rate"
    # Untouched decisions are the best that the models know: what looks like a gain is no more than that.
    return f"has no measurable cost: {number} {around} {'less' if cost >= 0 else 'more'} true-positive rate"


def _down(number: float) -> str:
    """Write a ratio so that one below a line never looks as if it were at it."""
    return f"{np.floor(1000 * number + 1e-9) / 1000:.3f}"


def _is_out_of_bag(valuation: Valuation) -> bool:
    return valuation.provenance.algorithm == "out-of-bag"


def _note(material: Material, attribute: Attribute, n_rows: int) -> str:
    """Say what the curve was measured on, and where an aimed model may differ."""
    drawn = "" if n_rows == len(material) else f"{n_rows:,} "
    rows = (
        f"{drawn}out-of-bag rows, which the models had not seen"
        if _is_out_of_bag(material.valuation)
        else f"{drawn}rows by the given probabilities, as if their models had not seen these rows"
    )
    said = [
        f"Measured on {rows}; but each point was chosen on these rows, so fresh rows will be a little worse."
    ]
    name = quoted(attribute.name)
    if attribute.position is not None:
        said.append(
            f"{name} is itself among the features: here the models of the target may see it, those of the "
            "group do not. An aimed model that sees it can reach more."
        )
    elif material.excluded_columns(attribute.name):
        said.append(
            f"Columns that give {name} away were kept from its models. An aimed model that sees them can "
            "reach more."
        )
    if attribute.groups.others is not None:
        said.append("Groups that are shown as one are not compared here; with them the cost may be higher.")
    return " ".join(said)
