"""What new rows say about a model: its minimum ratios, its budget, its columns, and what it selects."""

from __future__ import annotations

import datetime
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado._storage import replacing
from fado.metrics import (
    RATIOS,
    Budget,
    GroupCounts,
    compared_counts,
    count_by_group,
    measure,
    min_max_ratio,
    predicted_positive,
    ratio_interval,
    ratio_limits,
    rows_needed,
    share_limits,
)
from fado.models._card import budget_against, ends_of, held_against, is_over, judge
from fado.models._drift import FALSE_ALARMS
from fado.models._facts import Facts
from fado.reporting import shown_table, without_nan
from fado.tabular import UNKNOWN, Groups, Problem, group_rows

if TYPE_CHECKING:
    import pandas as pd

KIND, LAYOUT = "fado check", 1  # what its file says that it is
COUNTS = ("rows", "positives", "false_positives", "true_positives")
VERDICTS = {True: "held", False: "missed", None: "undecided"}
NO_LABELS = "no labels"
SELECTION_LIMIT = 1.5  # how many times as many rows, or as few, are selected after a drift
_NAME = re.compile(r"\d{4}-\d\d-\d\d\.json")
_COLUMNS = "date rows ratio value low high verdict budget_used selected drifted"


@dataclass(frozen=True)
class Check:
    """What new rows say about a model; `ChosenModel.check` returns it.

    Parameters
    ----------
    held : bool or None
        True if the lower end of every ratio's interval reaches its minimum. False if the upper end of one is
        below its minimum. None if these rows are too few to decide, or have no labels.
    sentence : str
        The same in words, with the ratio and its interval; if there are too few rows, how many events there
        are and how many rows would decide in four of five tries.
    metrics : mapping of str to float
        The metrics at the model's threshold, as `fado.metrics.evaluate` names them. The ends of intervals
        have ``_low`` and ``_high`` appended. Without labels only the threshold.
    level : float
        The confidence level of all intervals: 0.95 or, if the model was chosen with a `confidence`, such that
        each end has that confidence.
    lines : mapping of str to float
        The ratios that were required, and the minimum of each.
    budget : Budget
        The budget that set the threshold, on other rows.
    budget_kept : bool or None
        Whether the model's threshold keeps the budget on these rows too; None if that needs labels.
    over_budget : bool
        Whether the budget is exceeded beyond doubt: the whole interval is above its limit.
    selection : mapping
        The number of ``rows``, how many are ``selected``, their ``share`` with its ends ``low`` and ``high``;
        the share ``expected``, which is that of the rows that selected the model, and its number of rows
        (``expected_rows``), both None if not known; and whether the share has ``drifted``: it is more than
        1.5 times the expected one, or less than two thirds of it, and chance does not explain the difference.
    groups : tuple of mapping
        Per group ``group``, ``rows``, ``positives``, ``false_positives``, ``true_positives``, whether it is
        ``compared``, the ``reason`` if not ("small" or "unknown"), and whether the data of the model had it
        (``known``; None if that is not known). Without labels there are none.
    missing : mapping of str to int
        The attributes that are unknown in some rows, and in how many.
    columns : tuple of mapping
        Per column that the model was trained on: ``stability_index``, the ``limit`` above which the column
        has ``drifted``, the shares ``missing`` and ``missing_before``, whether the column is ``absent``, and
        how many rows have levels that the model has not seen (``unseen``), with the most frequent of these
        (``unseen_levels``). Such levels are drift, too, if they are in 20 % more rows than new rows of the
        same kind would have.
    notes : tuple of str
        Further sentences: which groups are left out or new, what is undefined, what drifted.
    date : str
        The day of the check, as ``2026-05-31``.

    See Also
    --------
    fado.models.check_trend : The checks of a directory as a table.
    fado.metrics.audit : The same figures for any predictions, without a model.
    """

    held: bool | None
    sentence: str
    metrics: Mapping[str, float]
    level: float
    lines: Mapping[str, float]
    budget: Budget
    budget_kept: bool | None
    over_budget: bool
    selection: Mapping[str, Any]
    groups: tuple[Mapping[str, Any], ...]
    missing: Mapping[str, int]
    columns: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]
    date: str

    @property
    def drifted(self) -> tuple[str, ...]:
        """The names of the columns that drifted."""
        return tuple(column["column"] for column in self.columns if column.get("drifted"))

    @property
    def verdict(self) -> str:
        """The word for `held`: "held", "missed", "undecided" or "no labels"."""
        return VERDICTS[self.held] if self.groups else NO_LABELS

    def to_plain(self) -> dict[str, Any]:
        """Return all of it as plain data for JSON, with None for what is undefined."""
        spent = "share" if self.budget.kind == "selection_rate" else "selected"
        if self.budget.kind == "fpr":
            used = self.metrics.get("fpr", math.nan) / self.budget.limit
        else:
            used = math.nan if self.budget.spent is None else self.selection[spent] / self.budget.limit
        plain = asdict(self) | {
            "kind": KIND,
            "format": LAYOUT,
            "verdict": self.verdict,
            "rows": self.selection["rows"],
            "budget": asdict(self.budget)
            | {"used": used, "kept": self.budget_kept, "over": self.over_budget},
            "new_groups": [group["group"] for group in self.groups if group["known"] is False],
            "drifted": self.drifted,
        }
        del plain["budget_kept"], plain["over_budget"]
        return dict(without_nan(plain))

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


def check_trend(directory: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the checks of a directory, one row per check and ratio, in the order of their days.

    Parameters
    ----------
    directory : path-like
        Where ``fado predict --history`` or `Check.write_json` wrote checks as ``2026-05-31.json``.

    Returns
    -------
    DataFrame
        ``date``, ``rows``, ``ratio``, its ``value`` with the ends ``low`` and ``high`` of its interval,
        ``verdict`` ("held", "missed", "undecided" or "no labels"), ``budget_used`` (1 is all of it),
        ``selected`` (the share of the rows), and ``drifted`` (the names of columns).

    Raises
    ------
    ValueError
        If a file of the directory is named like a check and is not one.

    See Also
    --------
    fado.models.ChosenModel.check : Makes a check.
    """
    import pandas as pd

    folder, rows = Path(directory), []
    if not folder.is_dir():
        raise ValueError(f"There is no directory {str(folder)!r} to read checks from.")
    for path in sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name)):
        try:
            check = json.loads(path.read_text(encoding="utf-8"))
            if (check["kind"], check["format"], check["date"]) != (KIND, LAYOUT, path.stem):
                raise ValueError("It is of another kind, release or day.")
            rows += [
                {
                    "date": check["date"],
                    "rows": int(check["rows"]),
                    "ratio": ratio,
                    **{key: _number(check["metrics"].get(f"{ratio}{end}")) for key, end in _ENDS.items()},
                    "verdict": str(check["verdict"]),
                    "budget_used": _number(check["budget"]["used"]),
                    "selected": _number(check["selection"]["share"]),
                    "drifted": tuple(map(str, check["drifted"])),
                }
                for ratio in check["lines"]
            ]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{str(path)!r} is not a check of this release: move it out of the directory."
            ) from error
    return pd.DataFrame(rows, columns=_COLUMNS.split())


_ENDS = {"value": "", "low": "_low", "high": "_high"}


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def check_rows(
    problem: Problem | None,
    positive: npt.NDArray[np.bool_] | None,
    scores: npt.NDArray[np.float64],
    threshold: float,
    facts: Facts,
    *,
    columns: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    day: datetime.date,
) -> Check:
    """Compare what is selected with what was expected and, with labels, ratios with their lines."""
    level, budget = facts.level, facts.budget
    selected = predicted_positive(scores, threshold)
    selection, selection_notes = _selection(int(selected.sum()), len(scores), facts)
    held, missing, groups_checked = None, dict[str, int](), list[dict[str, Any]]()
    group_notes: list[str] = []
    metrics: dict[str, float] = {"threshold": threshold}
    spent: Mapping[str, float] = {"selected": selection["selected"], "selection_rate": selection["share"]} | {
        f"selection_rate_{end}": selection[end] for end in ("low", "high")
    }
    sentence = "Without labels, the required ratios cannot be checked; columns and the share selected can."
    if problem is not None and positive is not None:
        groups = group_rows(problem.protected)
        compared = groups.compared(facts.min_group_size)
        spent, reasons = measure(
            positive,
            scores,
            groups.codes,
            groups.names,
            budget=budget,
            n_boot=1,  # any number: nothing is drawn at a given threshold
            threshold=threshold,
            left_out=~compared,
            confidence=level,
        )
        metrics = spent
        counts = count_by_group(positive, selected, groups.codes, len(groups))
        kept = compared_counts(counts, compared)
        # Two or more groups, with rows that are selected and rows that are not: else nothing is decided.
        n_selected = kept.false_positives.sum() + kept.true_positives.sum()
        n_compared = kept.negatives.sum() + kept.positives.sum()
        decides = len(kept.negatives) > 1 and 0 < n_selected < n_compared
        ratios: dict[str, float] = {}
        for ratio in facts.lines if decides else ():
            events, members = RATIOS[ratio].counts(kept)
            low, high = ratio_interval(events, members, (1 - level) / 2)
            ratios |= {
                ratio: float(min_max_ratio(events, members)),
                f"{ratio}_low": low,
                f"{ratio}_high": high,
            }
        held = {"reached": True, "missed": False}.get(judge(ratios, facts) or "")
        figures = "; ".join(held_against(ratio, ends_of(ratios, ratio), facts) for ratio in facts.lines)
        lines = "lines are" if len(facts.lines) > 1 else "line is"
        if held is not None:
            sentence = f"The {lines} {'held' if held else 'not held'}: {figures}."
        elif decides:
            sentence = f"There are too few rows to decide whether the {lines} held: {figures}."
            names = [name for name, is_compared in zip(groups.names, compared, strict=True) if is_compared]
            sentence += _lacking(ratios, kept, names, len(positive), facts)
        else:
            sentence = f"Whether the {lines} held is undecided: {figures}."
        if not budget.kept(metrics):
            sentence += f" The budget is {budget_against(metrics, facts)}"
        unknown = {variable.name: int((~variable.given).sum()) for variable in problem.protected}
        missing = {name: count for name, count in unknown.items() if count}
        known = _known(groups, problem, facts)
        rows = np.stack([counts.negatives + counts.positives, *counts[1:]], axis=1).tolist()
        groups_checked = [
            {"group": title, **dict(zip(COUNTS, numbers, strict=True))}
            | {"compared": not reason, "reason": reason, "known": is_known}
            for title, numbers, reason, is_known in zip(
                groups.titles, rows, groups.reasons(facts.min_group_size), known, strict=True
            )
        ]
        group_notes = [*_group_notes(groups, known, missing, problem, facts), *reasons]
    measured = budget.spent is None or budget.spent in spent
    return Check(
        held=held,
        sentence=sentence,
        metrics=metrics,
        level=level,
        lines=facts.lines,
        budget=budget,
        budget_kept=budget.kept(spent) if measured else None,
        over_budget=measured and is_over(spent, budget),
        selection=selection,
        groups=tuple(groups_checked),
        missing=missing,
        columns=tuple(columns),
        notes=(*group_notes, *selection_notes, *notes),
        date=day.isoformat(),
    )


def _selection(selected: int, n_rows: int, facts: Facts) -> tuple[dict[str, Any], list[str]]:
    """Compare the share selected with that of the rows that selected the model."""
    share = selected / n_rows
    low, high = share_limits(np.array([share]), np.array([n_rows]), (1 - facts.level) / 2)
    before = facts.measured.get(facts.chosen_on, {})
    # if attributes are compared each alone, every one of them counts all rows
    n_times = max(sum(f"{facts.ratio}[{name}]" in before for name in facts.protected), 1)
    groups = [group for group in facts.groups if group.part == facts.chosen_on]
    expected_rows, positives = (
        sum(getattr(group, name) or 0 for group in groups) // n_times for name in ("rows", "positives")
    )
    expected, drifted = math.nan, False
    if expected_rows:
        tpr, fpr = (before.get(rate, math.nan) for rate in ("tpr", "fpr"))
        expected = (tpr * positives + fpr * (expected_rows - positives)) / expected_rows
    if not math.isnan(expected):
        both, sizes = np.array([expected, share]), np.array([expected_rows, n_rows], dtype=np.float64)
        surely_less = ratio_limits(both, sizes, FALSE_ALARMS / 2)[1] < 1
        drifted = bool(both.max() > SELECTION_LIMIT * both.min() and surely_less)
    selection = {
        "rows": n_rows,
        "selected": selected,
        "share": share,
        "low": float(low[0]),
        "high": float(high[0]),
        "expected": None if math.isnan(expected) else expected,
        "expected_rows": None if math.isnan(expected) else expected_rows,
        "drifted": drifted,
    }
    notes = []
    if drifted:
        notes.append(
            f"The share selected is {100 * share:.3g} % ({100 * facts.level:g} % interval {100 * low[0]:.3g} "
            f"% to {100 * high[0]:.3g} %), {100 * expected:.3g} % were expected: it differs by more than a "
            f"factor of {SELECTION_LIMIT:g} and beyond chance."
        )
    return selection, notes


def _lacking(
    ratios: Mapping[str, float], counts: GroupCounts, names: Sequence[str], n_rows: int, facts: Facts
) -> str:
    """State how few events there are, and how many rows would decide."""
    text, needs_more = "", True
    for ratio, line in facts.lines.items():
        needs_more = needs_more and not math.isnan(ratios[ratio])
        if judge(ratios, replace(facts, lines={ratio: line})) in ("reached", "missed"):
            continue
        rate = RATIOS[ratio]
        events, members = rate.counts(counts)
        least = int(np.argmin(events))
        text += (
            f" For {ratio}, group {names[least]} has the fewest {rate.events}: {events[least]:,} of "
            f"{members[least]:,} {rate.members}."
        )
    if not needs_more:
        return text
    times = rows_needed(counts, facts.lines, (1 - facts.level) / 2)
    if math.isinf(times):
        return f"{text} These rows are too few to say how many would decide."
    needed = times * n_rows
    step = 10 ** max(math.floor(math.log10(needed)) - 1, 0)
    return f"{text} About {math.ceil(needed / step) * step:,} rows like these decide in four of five tries."


def _known(groups: Groups, problem: Problem, facts: Facts) -> list[bool | None]:
    """Mark the groups that the data of the model had; None where other attributes were counted."""
    before = {group.group for group in facts.groups}
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
    if small := groups.tell_small("left out of ratios", facts.min_group_size):
        notes.append(f"{small}.")
    if not _same_attributes(problem, facts):
        here = [variable.name for variable in problem.protected]
        drawn, these = (" and ".join(map(repr, names)) for names in (facts.protected, here))
        notes.append(f"The line is between the groups of {drawn}, but these rows have the groups of {these}.")
    new = [
        f"{name} ({size:,} rows)"
        for name, size, seen in zip(groups.names, groups.sizes, known, strict=True)
        if seen is False
    ]
    if new:
        notes.append(f"Groups that the data of the model did not have: {list_names(new)}.")
    if known and known[0] is not None:
        trained = {group.group for group in facts.groups if group.part == facts.groups[0].part}
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
