"""A model's card as plain data, which every format is rendered from: the verdict first, then its evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import le
from typing import Any

import numpy as np

from fado._messages import list_names
from fado._version import __version__
from fado.engine import CombinedScorer, Schema, Scorer, StudentScorer
from fado.metrics import RATIO_NAMES, RATIO_TITLES, RATIOS, Budget, is_above
from fado.models._facts import FEW, RATES, STATED, Facts

_NAMED = 20  # columns that the card lists
_NAN = float("nan")
_WORST_FIRST = ("missed", "missed by the estimate", None, "reached by the estimate", "reached")


def judge(metrics: Mapping[str, float], facts: Facts) -> str | None:
    """Hold ratios against their lines, for sure or by their estimates; None if one is undefined."""
    outcomes = [_judged(ends_of(metrics, ratio), line) for ratio, line in facts.lines.items()]
    return next(outcome for outcome in _WORST_FIRST if outcome in outcomes)


def _judged(ends: tuple[float, float, float], line: float) -> str | None:
    number, low, high = ends
    if np.isnan(number):
        return None
    if is_above(low, line) or not (np.isnan(high) or is_above(high, line)):
        return "reached" if is_above(low, line) else "missed"
    return f"{'reached' if is_above(number, line) else 'missed'} by the estimate"


def is_over(metrics: Mapping[str, float], budget: Budget) -> bool:
    """Return whether a budget is exceeded beyond doubt: the whole interval is above its limit."""
    spent = budget.spent
    if spent is None:
        return False
    lowest = metrics.get("selected" if spent == "selected" else f"{spent}_low", _NAN)
    return bool(lowest > budget.limit)


def exceeded(metrics: Mapping[str, float], budget: Budget) -> str:
    """State by how much a budget is exceeded, such as "exceeded: 6.7 % for 5 %"; empty if it is not."""
    spent, limit = budget.spent, budget.limit
    number = _NAN if spent is None else metrics.get(spent, _NAN)
    if not number > limit:
        return ""
    if spent == "selected":
        return f"exceeded: {number:,.0f} rows for {limit:,}"
    sure = "" if is_over(metrics, budget) else " by the estimate"
    return f"exceeded{sure}: {100 * number:.{digits_for(number, limit, le) - 2}f} % for {100 * limit:g} %"


def verdict_on(metrics: Mapping[str, float], facts: Facts) -> str:
    """State whether the lines are reached and the budget is kept, with the figures that decide it."""
    lines = "lines are" if len(facts.lines) > 1 else "line is"
    sure = "" if facts.confidence is None else f" with {100 * facts.confidence:g} % confidence"
    outcome = judge(metrics, facts)
    if outcome is None:
        verdict = f"whether the {lines} reached is undecided"
    elif "estimate" in outcome:
        verdict = f"the {lines} {outcome}, but not {sure.strip() or 'for sure'}"
    else:
        verdict = f"the {lines} {outcome}{sure}"
    figures = "; ".join(held_against(ratio, ends_of(metrics, ratio), facts) for ratio in facts.lines)
    over = exceeded(metrics, facts.budget)
    return f"{verdict}, budget {over}; {figures}" if over else f"{verdict}: {figures}"


def held_against(ratio: str, ends: tuple[float, float, float], facts: Facts) -> str:
    """State a ratio with its interval, the confidence of the interval, and what was required of the ratio."""
    line, (number, low, high) = facts.lines[ratio], ends
    digits = max(digits_for(end, line) for end in ends)
    sure = f"{100 * (facts.confidence or (1 + facts.level) / 2):g} % confidence"
    beside = " (no interval)"
    if not np.isnan([low, high]).any():
        each = "" if facts.confidence is None else f", each end at {sure}"
        beside = f" ({100 * facts.level:g} % interval {low:.{digits}f} to {high:.{digits}f}{each})"
    elif not np.isnan(low):
        beside = f" (lower bound {low:.{digits}f} at {sure})"
    elif not np.isnan(high):
        enough = f"between groups with enough {RATIOS[ratio].events}"
        beside = f" (at most {high:.{digits}f} {enough}, at {sure})"
    elif np.isnan(number):
        beside = ""
    shown = "is undefined" if np.isnan(number) else f"{number:.{digits}f}"
    return f"{ratio} {shown}{beside}, at least {line:g} required"


def digits_for(number: float, limit: float, within: Callable[[float, float], bool] = is_above) -> int:
    """Return how many digits show whether a number is within its limit: 0.79998 is not 0.8."""
    digits = 3
    while not np.isnan(number) and within(round(number, digits), limit) != within(number, limit):
        digits += 1
    return digits


def ends_of(metrics: Mapping[str, float], name: str) -> tuple[float, float, float]:
    """Return a metric and the ends of its interval, NaN where undefined."""
    number, low, high = (metrics.get(f"{name}{end}", _NAN) for end in ("", "_low", "_high"))
    return number, low, high


def card_content(facts: Facts, labels: tuple[Any, Any], threshold: float, scorer: Scorer) -> dict[str, Any]:
    """Return the card: fields, a verdict, a lead, and sections of texts, points and tables of text."""
    # The verdict is on test rows, if there are any, else on those that selected the model.
    part = next((name for name in ("test", facts.chosen_on, *facts.measured) if name in facts.measured), None)
    tries = f"{facts.models:,} candidate{'s' if facts.models != 1 else ''}"
    fits = f"{facts.fits:,} fit{'s' if facts.fits != 1 else ''}"
    tried = [f"The model was selected from {tries}, with {fits}.", *([facts.chosen] if facts.chosen else [])]
    return {
        "title": "Model card",
        "fields": [[name, facts.stated.get(name) or "not stated"] for name in STATED],
        "verdict": _verdict(facts, part),
        "lead": _lead(facts, part),
        "sections": [
            *([] if part is None else [_before_after(facts, part, threshold), _groups(facts, part)]),
            _decisions(facts, labels, threshold, scorer),
            _section("What was tried", tried),
            _data(facts),
            _measured(facts, threshold),
            _limits(facts),
            _making(facts, threshold),
        ],
        "footer": f"FADO {__version__}",
    }


def _verdict(facts: Facts, part: str | None) -> dict[str, Any]:
    """Return the verdict as data: on which rows, what it is, and the figures."""
    metrics = {} if part is None else facts.measured[part]
    spent = facts.budget.spent
    known = spent is not None and not np.isnan(metrics.get(spent, _NAN))
    kept, over = facts.budget.kept(metrics) if known else None, is_over(metrics, facts.budget)
    outcome = ratios = judge(metrics, facts)
    if kept is False:
        sure = "" if over else " by the estimate"
        outcome = f"{ratios or 'undecided'}, budget exceeded{sure}"
    good = ratios == "reached" and kept is not False
    return {
        "rows": part,
        "outcome": outcome,
        "colour": "bad" if over or (ratios or "").startswith("missed") else "good" if good else "open",
        "level": facts.level,
        "confidence": facts.confidence,
        "ratios": {
            ratio: {"line": line}
            | {
                key: None if np.isnan(end) else float(end)
                for key, end in zip(("value", "low", "high"), ends_of(metrics, ratio), strict=True)
            }
            for ratio, line in facts.lines.items()
        },
        "budget_kept": kept,
    }


def _lead(facts: Facts, part: str | None) -> list[str]:
    """State the verdict, the budget, the figures on the rows that selected the model, and the requirement."""
    texts = []
    if part is not None:
        apart = " which were not used to make the model," if part == "test" != facts.chosen_on else ""
        texts.append(f"On {part} rows,{apart} {verdict_on(facts.measured[part], facts)}.")
        texts += _budget(facts, part)
    if part != "test":
        texts.append("There are no test rows: only an untouched test set shows what to expect on new data.")
    lines = "lines were" if len(facts.lines) > 1 else "line was"
    if part == facts.chosen_on:
        selected = f"{part.capitalize()} rows selected the model and its threshold"
        texts.append(f"{selected}, so figures on them are optimistic.")
    elif facts.chosen_on in facts.measured:
        verdict = verdict_on(facts.measured[facts.chosen_on], facts)
        texts.append(f"On {facts.chosen_on} rows, which selected the model, {verdict}.")
        texts += _budget(facts, facts.chosen_on)
    else:
        outcome = "reached" if facts.reached else "missed"
        texts.append(f"On the rows that selected the model, the {lines} {outcome}.")
    if facts.reached and not facts.intervention:
        as_it_is = "the untouched model reaches the line" + ("s" if len(facts.lines) > 1 else "")
        enough = {"reached", "reached by the estimate"} if facts.confidence is None else {"reached"}
        if part is None or judge(facts.measured[part], facts) in enough:
            texts.append(f"Nothing to do: {as_it_is}.")
        else:
            texts.append(f"Nothing was done: on {facts.chosen_on} rows {as_it_is}.")
    if facts.why:
        texts.append(facts.why)
    lines = " and a ".join(f"{ratio} of at least {line:g}" for ratio, line in facts.lines.items())
    sure = "" if facts.confidence is None else f", with {100 * facts.confidence:g} % confidence"
    required = f"a {lines} between the groups of {_attributes(facts)}{sure}, at {facts.budget}"
    return [*texts, f"The model predicts {facts.target!r}. Required was {required}."]


def _budget(facts: Facts, part: str) -> list[str]:
    """State whether the budget is kept, with both numbers; nothing where that was not measured."""
    text = budget_against(facts.measured[part], facts)
    return [f"On {part} rows the budget is {text}"] if text else []


def budget_against(metrics: Mapping[str, float], facts: Facts) -> str:
    """State whether a budget is kept, with both numbers; empty where that was not measured."""
    limit, spent = facts.budget.limit, facts.budget.spent
    if spent is None or np.isnan(metrics.get(spent, _NAN)):
        return ""
    number = metrics[spent]
    kept = "kept" if facts.budget.kept(metrics) else "exceeded"
    if spent == "selected":
        return f"{kept}: {number:,.0f} rows selected, at most {limit:,} allowed."
    shown = _short(metrics, spent, digits_for(number, limit, le))
    shown = shown.replace("(", f"({100 * facts.level:g} % interval ")
    return f"{kept}: {RATES[spent]} {shown}, at most {limit:g} allowed."


def _before_after(facts: Facts, part: str, threshold: float) -> dict[str, Any]:
    """Compare the untouched model with this one in what was required."""
    after, before = facts.measured[part], {} if _is_untouched(facts, part) else facts.before.get(part, {})
    required = {ratio: f"at least {line:g}" for ratio, line in facts.lines.items()}
    if facts.budget.spent is not None:
        required[facts.budget.spent] = f"at most {facts.budget.limit:,g}"
    columns = {"untouched model": before, "this model": after} if before else {"this model": after}
    rows = [
        [
            _title(name),
            required.get(name, ""),
            *(_flagged(metrics, name, facts) for metrics in columns.values()),
        ]
        for name in dict.fromkeys([*facts.lines, *RATES, *required])
        if name in after
    ]
    text = f"On {part} rows, {_at(facts, part, threshold)}; in brackets {100 * facts.level:g} % intervals."
    if before:
        text += " The untouched model has its own threshold, set in the same way."
    return _section("Before and after", [text], header=["metric", "required", *columns], rows=rows)


def _flagged(metrics: Mapping[str, float], name: str, facts: Facts) -> str:
    """Return a metric with its interval, and flag it where it is not what was required."""
    number, low, _ = ends_of(metrics, name)
    if np.isnan(number):
        return "undefined"
    if name == facts.budget.spent:
        text = _short(metrics, name, 0 if name == "selected" else digits_for(number, facts.budget.limit, le))
        return text if facts.budget.kept(metrics) else f"{text} exceeded"
    if name not in facts.lines:
        return _short(metrics, name)
    line = facts.lines[name]
    text = _short(metrics, name, digits_for(number, line))
    if not is_above(number, line):
        return f"{text} missed"
    return f"{text} not sure" if facts.confidence is not None and not is_above(low, line) else text


def _at(facts: Facts, part: str, threshold: float) -> str:
    """State which threshold a part was measured at, and what set it."""
    first, at = (facts.measured.get(one, {}).get("threshold", threshold) for one in (facts.chosen_on, part))
    if at != threshold:
        why = "before the model was refitted" if part == facts.chosen_on else "which was set again on them"
        return f"at a threshold of {at:.6g}, {why} (the model decides at {threshold:.6g})"
    setting = f"which the budget set on {facts.chosen_on} rows"
    if first != threshold:
        setting = f"moved from {first:.6g} when the model was refitted"
    if facts.budget.spent is None:
        setting = "which was given"
    return f"at the model's threshold, {threshold:.6g}, {setting}"


def _is_untouched(facts: Facts, part: str) -> bool:
    """Return whether nothing was done, so that before and after are the same."""
    groups = [group for group in facts.groups if group.part == part]
    return not facts.intervention and all(group.before == group.after for group in groups)


def _groups(facts: Facts, part: str) -> dict[str, Any]:
    """Return the rates of every group, for the untouched model and for this one."""
    groups = [group for group in facts.groups if group.part == part]
    if not any(group.after or group.rows is None for group in groups):
        return _section("Every group", [f"No rates of groups were measured on {part} rows."])
    whens = {"untouched": "before", "this model": "after"}
    if _is_untouched(facts, part) or not any(group.before for group in groups):
        del whens["untouched"]
    rows = []
    for group in groups:
        if group.rows is None:
            rows.append([group.group, f"fewer than {FEW}", "", "", *[""] * len(RATES)])
            continue
        for model, when in whens.items():
            rates = [_short(getattr(group, when), name) for name in RATES]
            rows.append([group.group, f"{group.rows:,}", f"{group.positives:,}", model, *rates])
    texts = [
        f"On {part} rows; in brackets {100 * facts.level:g} % intervals. The true-positive rate is a share "
        "of a group's positives, the false-positive rate of its other rows, the selection rate of all."
    ]
    if facts.left_out:
        texts.append(f"Not compared in ratios: {list_names(list(facts.left_out))}.")
    return _section(
        "Every group", texts, header=["group", "rows", "positives", "model", *RATES.values()], rows=rows
    )


def _short(rates: Mapping[str, float], name: str, digits: int = 3) -> str:
    """Return a metric with its interval, whose level stands above the table."""
    number, low, high = ends_of(rates, name)
    if np.isnan(number):
        return "undefined"
    ends = "" if np.isnan([low, high]).any() else f" ({low:.{digits}f} to {high:.{digits}f})"
    return f"{number:.{digits}f}{ends}"


def _decisions(facts: Facts, labels: tuple[Any, Any], threshold: float, scorer: Scorer) -> dict[str, Any]:
    negative, positive = labels
    score = f"the probability that its estimator gives to {facts.target!r} being {positive!r}"
    if facts.intervention:
        score = "which ranks rows and is not a probability"
    by = "One model decides from the features alone."
    if scorer.kind == StudentScorer.kind:
        by = "One model decides from the features alone: a student, trained on adjusted scores of others."
    if scorer.kind == CombinedScorer.kind:
        by = "Two models decide from the features: the second estimates how likely each group is, and "
        by += "adjusts the score of the first."
    texts = [
        f"{by} One threshold applies to all rows. The group of a row is not needed.",
        f"Every row gets a score, {score}. A row is decided {positive!r} if it scores at least "
        f"{threshold:.6g}, else {negative!r}. The budget that set this threshold: {facts.budget}.",
    ]
    columns = [] if scorer.schema is None else _columns(facts, scorer.schema)
    return _section("How decisions are made", [*texts, *columns])


def _columns(facts: Facts, schema: Schema) -> list[str]:
    """State which columns are the features, and which of them make or determine a protected attribute."""
    names = list(schema.names)
    listed = f"The model was trained on {len(names)} column{'s' if len(names) > 1 else ''}"
    if schema.named:
        listed += f": {list_names([repr(name) for name in names], _NAMED)}."
    else:
        listed += " without names."
    made_of = [name for name in names if any(_mentions(attribute, name) for attribute in facts.protected)]
    telling = [name for name in facts.giveaways if name not in made_of]
    texts = [listed]
    if facts.estimator == "Pipeline":
        texts.append(
            "The steps of its pipeline keep what they learnt, also levels of text that few rows have."
        )
    if made_of and schema.named:
        texts.append(
            f"They include {list_names(list(map(repr, made_of)))}, from which a protected attribute is made."
        )
    if telling:
        alone = "alone determines" if len(telling) == 1 else "each alone determine"
        texts.append(f"{list_names(list(map(repr, telling)))} {alone} a protected attribute.")
    if not (made_of or telling) and schema.named:
        texts.append("None of them is a protected attribute by name, but they may reveal one.")
    return texts


def _mentions(attribute: str, column: str) -> bool:
    """Return whether an attribute is a column, or an expression with a comparison of it."""
    begins, ends = r"(?:^|[(&|]|\b(?i:and|or)\b)[\s(\"'`]*", r"[\"'`]*\s*(?:$|[<>=!)]|(?i:in)\s*\[)"
    return re.search(begins + re.escape(column) + ends, attribute.strip()) is not None


def _data(facts: Facts) -> dict[str, Any]:
    parts = list(dict.fromkeys(group.part for group in facts.groups))
    names = list(dict.fromkeys(group.group for group in facts.groups))
    counts = {}
    for group in facts.groups:
        texts = [f"fewer than {FEW}", ""]
        if group.rows is not None and group.positives is not None:
            texts = [f"{group.rows:,}", f"{group.positives / group.rows:.4f}"]
        counts[group.part, group.group] = texts
    header = ["group"]
    for part in parts:
        header += [f"{part} rows", f"{part} positive rate"]
    rows = [
        [name, *(text for part in parts for text in counts.get((part, name), ["0", ""]))] for name in names
    ]
    texts = [f"Groups are those of {_attributes(facts)}."]
    if any(group.rows is None for group in facts.groups):
        texts.append(f"Numbers of groups of fewer than {FEW} rows are not shown.")
    if facts.left_out:
        few = f"fewer than {facts.min_group_size} rows and less than 1 %"
        texts.append(f"Not compared, being unknown or {few}: {list_names(list(facts.left_out))}.")
    return _section("Data and groups", texts, header=header, rows=rows)


def _measured(facts: Facts, threshold: float) -> dict[str, Any]:
    if not facts.measured:
        return _section("All measurements", ["Nothing was measured."])
    rows = [
        [_title(name), *(_short(metrics, name) for metrics in facts.measured.values())]
        for name in (*RATES, *RATIO_NAMES)
        if any(name in metrics for metrics in facts.measured.values())
    ]
    texts = [
        "This model, on all parts. A ratio is the lowest rate of a group over the highest; 1 is equal rates. "
        f"In brackets: {100 * facts.level:g} % intervals, where they can be given.",
        *(f"On {part} rows it was measured {_at(facts, part, threshold)}." for part in facts.measured),
    ]
    if facts.confidence is not None and facts.chosen_on in facts.measured:
        texts.append(
            f"On {facts.chosen_on} rows the lower ends of {' and '.join(facts.lines)} are the bounds that "
            f"had to reach the lines, at {100 * facts.confidence:g} % confidence."
        )
    header = ["metric", *(f"{part} rows" for part in facts.measured)]
    return _section("All measurements", texts, header=header, rows=rows)


def _title(name: str) -> str:
    if name == "selected":
        return "rows selected"
    return RATES.get(name) or f"{name}: {RATIO_TITLES[name]}"


def _limits(facts: Facts) -> dict[str, Any]:
    points = [
        "All figures were measured on the data above. They may not hold for other people, at other times or "
        "at another threshold: check the model regularly on new data.",
        f"The model was optimised only for {' and '.join(facts.lines)} between the groups of "
        f"{_attributes(facts)}. Other ratios, other groups and subgroups may be far from equal.",
        "A ratio compares rates of errors or decisions. It does not prove that decisions are fair or lawful.",
    ]
    if facts.models > 1:
        points.append(
            f"It is the best of {facts.models:,} candidates. Figures on the data that selected it are "
            "optimistic; figures on an untouched test set are not."
        )
    if facts.left_out:
        points.append("Nothing is known about groups that were not compared.")
    points.append("Labels are used as they are: if they are biased, so are the rates computed from them.")
    return _section("Limits", [], points=points)


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
    return _section("How it was made", [], header=["setting", "value"], rows=rows)


def _attributes(facts: Facts) -> str:
    return " and ".join(repr(name) for name in facts.protected)


def _section(
    title: str, texts: list[str], points: Sequence[str] = (), header: Sequence[str] = (), rows: Any = ()
) -> dict[str, Any]:
    return {
        "title": title,
        "texts": texts,
        "points": list(points),
        "header": list(header) if rows else [],
        "rows": list(rows),
    }
