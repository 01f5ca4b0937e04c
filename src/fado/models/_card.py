"""What a model's card says, as plain data: the text and the page are both made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fado._messages import list_names
from fado._version import __version__
from fado.engine import Schema
from fado.metrics import RATIO_NAMES, RATIO_TITLES
from fado.models._facts import FEW, Facts, GroupCount

__all__ = ["card_content"]

_RATES = {
    "tpr": "true-positive rate",
    "fpr": "false-positive rate",
    "selection_rate": "selection rate",
}
_INFERRING = {"aimed", "aimed scores"}  # interventions that ask a model of the groups about every row
_MOVED = _INFERRING | {"aimed student", "student"}  # those after which scores are no probabilities
_NAMED = 20  # columns that the card lists


def card_content(
    facts: Facts, labels: tuple[Any, Any], threshold: float, schema: Schema | None
) -> dict[str, Any]:
    """Give the card: a title, a lead, and sections of texts, points and tables of text.

    Parameters
    ----------
    facts : Facts
        How the model was made and chosen.
    labels : tuple
        The negative and the positive label.
    threshold : float
        From which score on a row is decided positive.
    schema : Schema or None
        The columns that the model learnt from.
    """
    return {
        "title": "Model card",
        "lead": _lead(facts),
        "sections": [
            _decisions(facts, labels, threshold, schema),
            _data(facts),
            _tried(facts),
            _measured(facts),
            _limits(facts),
            _making(facts, threshold),
        ],
        "footer": f"FADO {__version__}",
    }


def _lead(facts: Facts) -> list[str]:
    lines = " and a ".join(f"{ratio} of at least {line:g}" for ratio, line in facts.lines.items())
    asked = f"{lines} between {_groups_of(facts)}"
    if facts.confidence is not None:
        asked += f", with a confidence of {100 * facts.confidence:g} %"
    outcome = "reached it" if facts.reached else "did not reach it"
    why = "" if facts.reached or not facts.why else f" {facts.why}"
    texts = [
        f"This model predicts {facts.target!r}. Asked for was a {asked}.",
        f"On the rows that it was chosen by, the model {outcome}.{why}",
    ]
    return [texts[0], _verdict(facts), *texts[1:]]


def _verdict(facts: Facts) -> str:
    """Say what test rows show, or that there are none."""
    tested = facts.measured.get("test")
    if tested is None:
        return "No test rows were measured: what follows stands on the rows that the model was chosen by."
    shown = " and ".join(f"{ratio} {_with_interval(tested, ratio)}" for ratio in facts.lines)
    ratios = {ratio: tested.get(ratio, float("nan")) for ratio in facts.lines}
    if any(np.isnan(own) for own in ratios.values()):
        return f"Test rows cannot tell whether it is reached: {shown}."
    reached = all(ratios[ratio] >= line for ratio, line in facts.lines.items())
    measured = {"fpr", "selected"} & set(tested) or facts.budget.kind == "threshold"
    over = "" if not measured or facts.budget.kept(tested) else f" They exceed the budget: {facts.budget}."
    return (
        f"On test rows, which had no part, the model {'reaches' if reached else 'misses'} it: {shown}.{over}"
    )


def _decisions(
    facts: Facts, labels: tuple[Any, Any], threshold: float, schema: Schema | None
) -> dict[str, Any]:
    _, positive = labels
    probability = f"the probability that {facts.target!r} is {positive!r}"
    if facts.intervention in _MOVED:
        probability = "which orders rows and is no probability"
    texts = [
        f"Every row gets a score, {probability}. It is decided {positive!r} from a score of "
        f"{threshold:.6g} on, and {labels[0]!r} below. What set this threshold, on the rows that the model "
        f"was chosen by: {facts.budget}.",
        "One threshold holds for all: a row's group is not asked for when it is decided.",
    ]
    if facts.intervention in _INFERRING:
        texts.append("A second model infers from the features how likely each group is, and moves the score.")
    if schema is not None:
        texts.append(_columns(facts, schema))
    return _section("What it decides", texts)


def _columns(facts: Facts, schema: Schema) -> str:
    names = [repr(name) for name in schema.names]
    told = f"The model learnt from {len(names)} column{'s' if len(names) > 1 else ''}"
    if not schema.named:
        return f"{told} without names."
    seen = [name for name in schema.names if any(_mentions(own, name) for own in facts.protected)]
    if seen:
        return (
            f"{told}: {list_names(names, _NAMED)}. Among them is "
            f"{list_names([repr(name) for name in seen])}, of which a protected attribute is made."
        )
    told = f"{told}: {list_names(names, _NAMED)}."
    return f"{told} No protected attribute is among them, but they may tell of it."


def _mentions(attribute: str, column: str) -> bool:
    """Tell whether an attribute is a column, or a comparison that begins with it."""
    rest = attribute.strip().strip("\"'`")
    if not rest.startswith(column):
        return False
    after = rest[len(column) :].lstrip("\"'` ")
    return not after or after[0] in "<>=!" or after.startswith("in ")


def _data(facts: Facts) -> dict[str, Any]:
    groups = list(dict.fromkeys(own.group for part in facts.parts for own in part.groups))
    counts = [{own.group: own for own in part.groups} for part in facts.parts]
    header = ["group"]
    for part in facts.parts:
        header += [f"{part.name} rows", f"{part.name} positive rate"]
    rows = [[group, *(text for part in counts for text in _counted(part.get(group)))] for group in groups]
    texts = [f"Groups are those of {_attributes(facts)}."]
    if any(own.rows is None for part in facts.parts for own in part.groups):
        texts.append(f"Numbers of groups of fewer than {FEW} rows are not told.")
    if facts.left_out:
        few = f"fewer than {facts.min_group_size} rows and less than 1 %"
        names = list_names([repr(name) for name in facts.left_out])
        texts.append(f"Too small to be compared, with {few}: {names}.")
    return _section("Data and groups", texts, table=(header, rows) if rows else None)


def _counted(count: GroupCount | None) -> tuple[str, str]:
    if count is None:
        return "0", ""
    if count.rows is None or count.positives is None:
        return f"fewer than {FEW}", ""
    return f"{count.rows:,}", f"{count.positives / count.rows:.4f}"


def _tried(facts: Facts) -> dict[str, Any]:
    tries = f"{facts.models:,} {'tries' if facts.models != 1 else 'try'}"
    fits = f"{facts.fits:,} fit{'s' if facts.fits != 1 else ''}"
    texts = [f"The model was chosen among {tries}, at the cost of {fits}."]
    return _section("What was tried", [*texts, *([facts.chosen] if facts.chosen else [])])


def _measured(facts: Facts) -> dict[str, Any]:
    if not facts.measured:
        return _section("What it reached", ["Nothing was measured."])
    names = [
        name
        for name in (*_RATES, *RATIO_NAMES)
        if any(name in metrics for metrics in facts.measured.values())
    ]
    rows = [
        [_title(name, facts), *(_with_interval(metrics, name) for metrics in facts.measured.values())]
        for name in names
    ]
    share = 0.95 if facts.confidence is None else 2 * facts.confidence - 1
    text = (
        "At this threshold, on rows of each part. A ratio is the lowest rate of a group over the highest: 1 "
        f"is equal rates. In brackets: {100 * share:g} % intervals, where they can be given."
    )
    return _section("What it reached", [text], table=(["metric", *facts.measured], rows))


def _title(name: str, facts: Facts) -> str:
    if name in _RATES:
        return _RATES[name]
    return f"{RATIO_TITLES[name]}{', aimed at' if name in facts.lines else ''}"


def _with_interval(metrics: Any, name: str) -> str:
    number, low, high = (metrics.get(f"{name}{end}", float("nan")) for end in ("", "_low", "_high"))
    if np.isnan(number):
        return "undefined"
    return f"{number:.3f}" if np.isnan(low) else f"{number:.3f} ({low:.3f} to {high:.3f})"


def _limits(facts: Facts) -> dict[str, Any]:
    points = [
        "What is told here was measured on rows like those above. On other people, at other times or at "
        "another threshold it may not hold: check it on new rows, again and again.",
        f"Only {' and '.join(facts.lines)} between {_groups_of(facts)} was aimed at. Other ratios, other "
        "groups and groups within these groups may be far from equal.",
        "A ratio compares rates of errors or decisions. It is no proof that decisions are fair or lawful.",
    ]
    if facts.models > 1:
        points.append(
            f"It is the best of {facts.models:,} tries. What it was chosen by flatters it; rows that had no "
            "part in the choice do not."
        )
    if facts.left_out:
        points.append("Of groups that were too small to be compared nothing is known.")
    points.append("Labels are taken as they are: if they are biased, equal rates against them are too.")
    return _section("What it does not promise", [], points=points)


def _making(facts: Facts, threshold: float) -> dict[str, Any]:
    about = {
        "estimator": facts.estimator,
        **{f"estimator: {name}": value for name, value in facts.parameters.items()},
        "intervention": facts.intervention or "none",
        **{f"intervention: {name}": value for name, value in facts.settings.items()},
        "threshold": threshold,
        "seed": facts.seed,
        **{f"version of {name}": value for name, value in facts.versions.items()},
    }
    rows = [[name, str(value)] for name, value in about.items() if value not in (None, "")]
    return _section("How it was made", [], table=(["setting", "value"], rows))


def _groups_of(facts: Facts) -> str:
    return f"the groups of {_attributes(facts)}"


def _attributes(facts: Facts) -> str:
    return " and ".join(repr(name) for name in facts.protected)


def _section(
    title: str,
    texts: list[str],
    *,
    points: list[str] | None = None,
    table: tuple[list[str], list[list[str]]] | None = None,
) -> dict[str, Any]:
    header, rows = table or ([], [])
    return {"title": title, "texts": texts, "points": points or [], "header": header, "rows": rows}
