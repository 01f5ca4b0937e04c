"""Whether a model still holds its lines on new rows, or whether these rows are too few to decide."""

from __future__ import annotations

import datetime
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado._storage import replacing
from fado.engine import Schema
from fado.metrics import (
    RATIOS,
    Budget,
    GroupCounts,
    compared_counts,
    count_by_group,
    measure,
    min_max_ratio,
    ratio_interval,
)
from fado.models._card import held_against, is_above
from fado.models._facts import ColumnSummary, Facts
from fado.reporting import shown_table
from fado.tabular import UNKNOWN, Column, Groups, Problem, Table, group_rows

KIND, LAYOUT = "fado check", 1  # what its file says that it is
COUNTS = ("rows", "positives", "false_positives", "true_positives")
VERDICTS = {True: "held", False: "missed", None: "undecided"}
_ROUNDING = 1e-12
_ENOUGH = 5  # events of a group that an interval needs
_NEVER = 1_000  # times as many rows are as good as never
DRIFT_LIMIT = 0.2  # the index above which a column has drifted, if chance does not explain it
_FALSE_ALARMS = 0.001  # the share of checks without drift in which any column is said to have drifted
_NAMED = 5  # levels that a check names


@dataclass(frozen=True)
class Check:
    """Whether a model still reaches its lines on some rows; `ChosenModel.check` returns it.

    Parameters
    ----------
    held : bool or None
        True if the lower end of every ratio's interval reaches its line. False if the upper end of one is
        below its line. None if these rows are too few to decide.
    sentence : str
        The same in words, with the ratio and its interval; if there are too few rows, how many events there
        are and about how many rows would be enough.
    metrics : mapping of str to float
        The metrics at the model's threshold, as `fado.metrics.evaluate` names them. The ends of intervals
        have ``_low`` and ``_high`` appended.
    level : float
        The confidence level of all intervals: 0.95 or, if the model was chosen with a `confidence`, such that
        each end has that confidence.
    lines : mapping of str to float
        The ratios that were required, and the line of each.
    budget : Budget
        The budget that set the threshold, on other rows.
    budget_kept : bool
        Whether the model's threshold keeps the budget on these rows too.
    groups : tuple of mapping
        Per group ``group``, ``rows``, ``positives``, ``false_positives``, ``true_positives``, whether it is
        ``compared``, the ``reason`` if not ("small" or "unknown"), and whether the data of the model had it
        (``known``; None if that is not known).
    missing : mapping of str to int
        The attributes that are unknown in some rows, and in how many.
    columns : tuple of mapping
        Per column that the model was trained on: ``stability_index``, the ``limit`` above which the column
        has ``drifted``, the shares ``missing`` and ``missing_before``, and how many rows have levels that the
        model has not seen (``unseen``), with the most frequent of these (``unseen_levels``).
    notes : tuple of str
        Further sentences: which groups are left out or new, what is undefined, which columns drifted.
    date : str
        The day of the check, as ``2026-05-31``.
    min_group_size : int
        Groups of fewer rows that are also less than 1 % of the table are not compared.

    See Also
    --------
    fado.models.check_trend : Many checks, by month or day.
    fado.metrics.audit : The same figures for any predictions, without a model.
    """

    held: bool | None
    sentence: str
    metrics: Mapping[str, float]
    level: float
    lines: Mapping[str, float]
    budget: Budget
    budget_kept: bool
    groups: tuple[Mapping[str, Any], ...]
    missing: Mapping[str, int]
    columns: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]
    date: str
    min_group_size: int

    @property
    def drifted(self) -> tuple[str, ...]:
        """The names of the columns that drifted."""
        return tuple(own["column"] for own in self.columns if own.get("drifted"))

    def to_plain(self) -> dict[str, Any]:
        """Return all of it as plain data for JSON, with None for what is undefined."""
        counts = counts_of(self.groups)
        told = asdict(self) | {
            "kind": KIND,
            "format": LAYOUT,
            "verdict": VERDICTS[self.held],
            "rows": int(counts.negatives.sum() + counts.positives.sum()),
            "budget": asdict(self.budget)
            | {"used": budget_used(self.budget, counts), "kept": self.budget_kept},
            "new_groups": [own["group"] for own in self.groups if own["known"] is False],
            "drifted": self.drifted,
        }
        del told["budget_kept"]
        return dict(without_nan(told))

    def write_json(self, path: str | os.PathLike[str]) -> None:
        """Write all of it as a JSON file, whole or not at all."""
        with replacing(path, "The check") as temporary:
            text = json.dumps(self.to_plain(), indent=1, ensure_ascii=False, allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")

    def _repr_html_(self) -> str:
        import pandas as pd

        names = [name for name in self.metrics if not name.endswith(("_low", "_high"))]
        of = f"{100 * self.level:g} % interval"
        numbers = {
            what: [self.metrics.get(f"{name}{end}") for name in names]
            for what, end in (("value", ""), (f"{of}, low", "_low"), (f"{of}, high", "_high"))
        }
        table = pd.DataFrame({"metric": names, **numbers})
        return shown_table(self.sentence, self.notes, table)


def without_nan(value: Any) -> Any:
    """Return plain data with None for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: without_nan(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def is_positive(problem: Problem, classes: tuple[Any, Any]) -> npt.NDArray[np.bool_]:
    """Mark the rows of the positive label, the second of two; other labels raise a ValueError."""
    labels = problem.labels
    strange = [label for label in labels.classes if label not in classes]
    if strange:
        raise ValueError(
            f"`y` holds the label {strange[0]!r}, but the model distinguishes {classes[0]!r} and "
            f"{classes[1]!r}: pass these labels."
        )
    if len(labels.classes) == 1:
        raise ValueError(
            f"`y` holds one label only ({labels.classes[0]!r}): a model is checked on rows of both labels."
        )
    return labels.codes == labels.classes.index(classes[1])


def check_line(
    problem: Problem,
    positive: npt.NDArray[np.bool_],
    scores: npt.NDArray[np.float64],
    threshold: float,
    facts: Facts,
    *,
    columns: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    day: datetime.date,
) -> Check:
    """Measure decisions at a threshold, and compare the required ratios with their lines."""
    groups = group_rows(problem.protected)
    compared = groups.compared(facts.min_group_size)
    reasons_left = groups.reasons(facts.min_group_size)
    level = facts.level
    metrics, reasons = measure(
        positive,
        scores,
        groups.codes,
        groups.names,
        budget=facts.budget,
        n_boot=1,  # any number: nothing is drawn at a given threshold
        threshold=threshold,
        left_out=~compared,
        confidence=level,
    )
    counts = count_by_group(positive, scores >= threshold, groups.codes, len(groups))
    kept = compared_counts(counts, compared)
    names = [name for name, kept in zip(groups.names, compared, strict=True) if kept]
    judged = [judge_ratio(ratio, line, kept, (1 - level) / 2) for ratio, line in facts.lines.items()]
    found = [own.held for own in judged]
    held = False if False in found else None if None in found else True
    sentence = _sentence(judged, held, kept, facts)
    if held is None and _decides(kept):
        sentence += "".join(
            _lacking(own, kept, names, len(positive), level) for own in judged if own.held is None
        )
    missing = _missing(problem)
    known = _known(groups, problem, facts)
    rows = np.stack([counts.negatives + counts.positives, *counts[1:]], axis=1).tolist()
    return Check(
        held,
        sentence,
        metrics,
        level,
        facts.lines,
        facts.budget,
        facts.budget.kept(metrics),
        tuple(
            {"group": title, **dict(zip(COUNTS, own, strict=True)), "compared": not reason, "reason": reason}
            | {"known": seen}
            for title, own, reason, seen in zip(groups.titles, rows, reasons_left, known, strict=True)
        ),
        missing,
        tuple(columns),
        (*_group_notes(groups, known, missing, problem, facts), *reasons, *notes),
        day.isoformat(),
        facts.min_group_size,
    )


def counts_of(groups: Sequence[Mapping[str, Any]]) -> GroupCounts:
    """Return the counts of groups from the entries of a check."""
    rows, *others = (np.array([own[name] for own in groups], dtype=np.int64) for name in COUNTS)
    return GroupCounts(rows - others[0], *others)


def budget_used(budget: Budget, counts: GroupCounts, n_checks: int = 1) -> float:
    """Return which share of a budget decisions used; NaN for a fixed threshold."""
    selected = int(counts.false_positives.sum() + counts.true_positives.sum())
    n_rows = int(counts.negatives.sum() + counts.positives.sum())
    events, members = {
        "fpr": (int(counts.false_positives.sum()), int(counts.negatives.sum())),
        "selection_rate": (selected, n_rows),
        "top_k": (selected, n_checks),
        "threshold": (0, 0),
    }[budget.kind]
    return events / members / budget.limit if members else math.nan


class Judged(NamedTuple):
    """A ratio with the ends of its interval, NaN where undefined, and whether it reaches its line."""

    ratio: str
    line: float
    value: float
    low: float
    high: float
    held: bool | None


def judge_ratio(ratio: str, line: float, counts: GroupCounts, error: float) -> Judged:
    """Compare a ratio between groups with its line: surely at or above it, surely below, or undecided.

    Parameters
    ----------
    ratio : str
        Its name.
    line : float
        The lowest ratio that is accepted.
    counts : GroupCounts
        The counts of the groups that are compared.
    error : float
        The error of each end of the interval.

    Examples
    --------
    >>> counts = GroupCounts(*(np.array(own) for own in ([1000, 1000], [9, 9], [50, 100], [5, 5])))
    >>> judge_ratio("fpr_ratio", 0.8, counts, 0.025).held
    False
    >>> judge_ratio("fpr_ratio", 0.6, counts, 0.025).held is None
    True
    """
    if not _decides(counts):
        return Judged(ratio, line, math.nan, math.nan, math.nan, None)
    events, members = RATIOS[ratio].counts(counts)
    value = float(min_max_ratio(events, members))
    low, high = ratio_interval(events, members, error)
    held = True if is_above(low, line) else False if not (math.isnan(high) or is_above(high, line)) else None
    return Judged(ratio, line, value, low, high, held)


def _decides(counts: GroupCounts) -> bool:
    """Return whether two or more groups are left, with rows that are selected and rows that are not."""
    selected = counts.false_positives.sum() + counts.true_positives.sum()
    return len(counts.negatives) > 1 and 0 < selected < counts.negatives.sum() + counts.positives.sum()


def _sentence(judged: Sequence[Judged], held: bool | None, counts: GroupCounts, facts: Facts) -> str:
    lines = "lines are" if len(judged) > 1 else "line is"
    told = "; ".join(held_against(own.ratio, (own.value, own.low, own.high), facts) for own in judged)
    if held is None and not _decides(counts):
        return f"Whether the {lines} held is undecided: {told}."
    if held is None:
        return f"There are too few rows to decide whether the {lines} held: {told}."
    return f"The {lines} {'held' if held else 'not held'}: {told}."


def _lacking(judged: Judged, counts: GroupCounts, names: Sequence[str], n_rows: int, level: float) -> str:
    """State how few events there are, and about how many rows would be enough."""
    rate = RATIOS[judged.ratio]
    events, members = rate.counts(counts)
    least = int(np.argmin(events))
    told = (
        f" For {judged.ratio}, group {names[least]} has the fewest {rate.events}: {events[least]:,} of "
        f"{members[least]:,} {rate.members}."
    )
    times = _times_as_many(judged, events, members, level)
    if math.isnan(times):
        return told
    if times > _NEVER:
        return f"{told} The ratio is too close to its line for any realistic number of rows."
    needed = times * n_rows
    step = 10 ** max(math.floor(math.log10(needed)) - 1, 0)
    if_so = "if the ratio does not change" if judged.low > 0 else "even if rates were equal"
    return f"{told} About {math.ceil(needed / step) * step:,} rows like these would be needed, {if_so}."


def _times_as_many(
    judged: Judged, events: npt.NDArray[Any], members: npt.NDArray[Any], level: float
) -> float:
    """Return how many times as many rows would be enough: intervals shrink as the square root of rows.

    Without an interval, as many as equal rates would need to be surely above the line.
    """
    from scipy.special import ndtri

    _, line, value, low, high, _ = judged
    if low > 0:
        far, near = math.log(value / line), math.log(value / (low if value > line else high))
        return (near / far) ** 2 if abs(far) > _ROUNDING else math.inf
    smallest = np.sort(members)[:2] * (events.sum() / max(members.sum(), 1))
    if not smallest.all():
        return math.nan
    sure = float(ndtri((1 + level) / 2)) ** 2 * (1 / smallest).sum() / max(math.log(line) ** 2, _ROUNDING)
    return float(max(sure, _ENOUGH / smallest[0], 2.0))


def _missing(problem: Problem) -> dict[str, int]:
    """Count the rows in which an attribute is unknown."""
    counts = {own.name: int((~own.given).sum()) for own in problem.protected}
    return {name: count for name, count in counts.items() if count}


def _known(groups: Groups, problem: Problem, facts: Facts) -> list[bool | None]:
    """Mark the groups that the data of the model had; None where other attributes were counted."""
    before = {own.group for part in facts.parts for own in part.groups}
    if not before & set(groups.titles) or not _same_attributes(problem, facts):
        return [None] * len(groups)
    return [title in before or group == groups.unknown for group, title in enumerate(groups.titles)]


def _same_attributes(problem: Problem, facts: Facts) -> bool:
    names = [variable.name for variable in problem.protected]
    return not problem.names_given or sorted(names) == sorted(facts.protected)


def _group_notes(
    groups: Groups,
    known: Sequence[bool | None],
    missing: Mapping[str, int],
    problem: Problem,
    facts: Facts,
) -> list[str]:
    """State which groups are left out, of other attributes, new, absent, or missing in some rows."""
    notes = []
    if told := groups.tell_small("left out of ratios", facts.min_group_size):
        notes.append(f"{told}.")
    if not _same_attributes(problem, facts):
        theirs = [own.name for own in problem.protected]
        drawn, these = (" and ".join(map(repr, own)) for own in (facts.protected, theirs))
        notes.append(f"The line is between the groups of {drawn}, but these rows have the groups of {these}.")
    new = [
        f"{name} ({size:,} rows)"
        for name, size, seen in zip(groups.names, groups.sizes, known, strict=True)
        if seen is False
    ]
    if new:
        notes.append(f"Groups that the data of the model did not have: {list_names(new)}.")
    if known and known[0] is not None:
        trained = {own.group for part in facts.parts[:1] for own in part.groups}
        gone = sorted(trained - {*groups.titles, UNKNOWN})
        if gone:
            notes.append(
                f"Groups of the training rows without rows here: {list_names(list(map(repr, gone)))}."
            )
    for name, count in missing.items():
        notes.append(
            f"{name!r} is unknown in {count:,} of {problem.n_rows:,} rows, which are compared with no group."
        )
    return notes


def compare_columns(
    summaries: Sequence[ColumnSummary], schema: Schema | None, table: Table
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure how far each column of new rows is from the training rows, and name those that drifted.

    The distance is the population stability index: over the bins of a column, the sum of
    (now - before) * log(now / before) of the shares of rows. Without drift, the index of n rows against m is
    about (1 / n + 1 / m) times a chi-square with one degree of freedom fewer than there are bins.

    Parameters
    ----------
    summaries : sequence of ColumnSummary
        One per column of the schema, or none.
    schema : Schema or None
        The columns that the model was trained on.
    table : Table
        New rows, which the model has scored.
    """
    if schema is None or table.is_sparse:
        return [], [] if schema is None else ["Columns of a sparse matrix are not compared."]
    found: list[dict[str, Any]] = []
    for j, place in enumerate(schema.find(table, ())):
        column, known = None if place is None else table.column(place), schema.levels[j]
        if column is None:
            continue
        told: dict[str, Any] = {"column": schema.names[j]}
        if summaries and not (column.levels is not None and summaries[j].levels is None):
            told |= _distance(summaries[j], column, len(summaries))
        told |= {"unseen": 0, "unseen_levels": []}
        if known is not None and column.levels is not None:
            told |= _unseen(column, set(known))
        found.append(told)
    return found, _notes(found, told_of=bool(summaries))


def _distance(summary: ColumnSummary, column: Column, n_columns: int) -> dict[str, Any]:
    """Measure how far a column is from its summary, and whether that is drift."""
    from scipy.special import chdtri

    index, n_bins = summary.distance(column)
    n_before = sum(summary.counts)
    chance = 0.0
    if n_bins > 1 and n_before:
        unsure = 1 / n_before + 1 / len(column)
        chance = unsure * float(chdtri(n_bins - 1, _FALSE_ALARMS / n_columns))
    limit = max(DRIFT_LIMIT, chance)
    missing = int(summary.count(column)[-1]) / len(column)
    return {
        "stability_index": index,
        "limit": limit,
        "drifted": index > limit,
        "missing": missing,
        "missing_before": summary.counts[-1] / n_before if n_before else 0.0,
    }


def _unseen(column: Column, known: set[str]) -> dict[str, Any]:
    """Count the rows of levels that the model has not seen, and name the most frequent."""
    levels = column.levels or ()
    codes = column.codes()
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    strange = [code for code, level in enumerate(levels) if level not in known and counts[code]]
    strange.sort(key=lambda code: -counts[code])
    named = [levels[code] for code in strange[:_NAMED]]
    return {"unseen": int(counts[strange].sum()), "unseen_levels": named}


def _notes(found: Sequence[dict[str, Any]], *, told_of: bool) -> list[str]:
    """State which columns drifted, and which hold levels that the model has not seen."""
    notes = []
    drifted = sorted((own for own in found if own.get("drifted")), key=lambda own: -own["stability_index"])
    if drifted:
        named = list_names([f"{own['column']!r} ({own['stability_index']:.2f})" for own in drifted], 10)
        notes.append(
            f"{len(drifted)} of {len(found)} columns drifted from the training rows, by a population "
            f"stability index above {DRIFT_LIMIT:g} and beyond chance: {named}."
        )
    unseen = [
        f"{own['column']!r} in {own['unseen']:,} rows ({', '.join(map(repr, own['unseen_levels']))})"
        for own in found
        if own["unseen"]
    ]
    if unseen:
        told = list_names(unseen, 10)
        notes.append(f"Levels that the model has not seen, which it treats as missing: {told}.")
    if not told_of:
        notes.append("The model has no summary of its training columns: drift cannot be detected.")
    return notes
