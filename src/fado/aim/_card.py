"""What the card of an aimed model shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fado._typing import Bools, Floats, Integers
from fado.aim._choose import Aimed, untouched_threshold
from fado.aim._curve import Rows
from fado.aim._groups import Attribute, groups_of, numbered_as, read_rows_apart, weights_of
from fado.aim._lines import Lines
from fado.metrics import predicted_positive
from fado.models import Facts, GroupRates
from fado.tabular import Groups, Problem, columns_that_determine, match_positive, title_in_full


def describe(
    settings: Any, aimed: Aimed, lines: dict[str, float], problem: Problem, target: Any, why: str, fits: int
) -> Facts:
    """Gather how a model was made, without its figures."""
    untouched = aimed.point.coefficients.moves_nothing
    factors = {
        f"log factor of {label}s, {moved['group']}": moved[label]
        for moved in aimed.lines.log_factors(aimed.point.coefficients)
        for label in ("negative", "positive")
    }
    giveaways = [
        columns_that_determine(variable, problem.table, frozenset()) for variable in problem.protected
    ]
    return Facts(
        target=target if isinstance(target, str) and target else "y",
        protected=[variable.name for variable in problem.protected],
        unknown=list(map(str, problem.unknown)),
        ratio=next(iter(lines)),
        at_least=next(iter(lines.values())),
        lines=lines,
        budget=aimed.lines.budget,
        reached=aimed.reached,
        confidence=aimed.lines.confidence,
        why=why,
        estimator=type(settings.estimator).__name__,
        parameters=settings.estimator.get_params(deep=True),
        intervention="" if untouched else f"aimed {settings.by}",
        settings={} if untouched else factors,
        fits=fits,
        models=len(aimed.points),
        chosen=_how_chosen(aimed, settings.by),
        giveaways=[problem.table.names[column] for column in sorted(set().union(*giveaways))],
        left_out=[
            title
            for attribute in aimed.lines.attributes
            for title, compared in zip(attribute.groups.titles, attribute.compared, strict=True)
            if not compared
        ],
        min_group_size=settings.min_group_size,
        seed=aimed.lines.seed,
    )


def _how_chosen(aimed: Aimed, by: str) -> str:
    """State how the point was selected."""
    every = f"{len(aimed.points)} {'fits' if by == 'weights' else 'points of the trade-off'}"
    line = "the line" if len(aimed.lines.limits) == 1 else "all lines"
    again = ""
    if aimed.refitted:
        first, last = aimed.point.threshold, aimed.threshold
        moved = f"moved from {first:.6g} to {last:.6g}, where it is expected to select as many"
        again = (
            " The figures are those of models fitted on folds, for rows that they have not seen. The final "
            "model was fitted again on all rows, and its threshold "
            f"{moved if last != first else f'stayed at {first:.6g}'}."
        )
    if aimed.point.coefficients.moves_nothing and aimed.reached:
        return f"The untouched model reaches {line}, and is left as it is.{again}"
    if not aimed.reached:
        return f"None of {every} reached {line}; the closest was kept.{again}"
    if by == "student":
        return f"Of {every}, the student was trained on the one that was likely to reach {line}."
    if aimed.lines.confidence is not None and by == "scores":
        return (
            f"Of {every}, tested from the most equal one back, it is the last whose lower bounds reach "
            f"{line} at {100 * aimed.lines.confidence:g} % confidence.{again}"
        )
    return f"Of {every}, it has the highest true-positive rate of those that reach {line}.{again}"


def with_figures(facts: Facts, aimed: Aimed, positive: Bools, metrics: dict[str, float]) -> Facts:
    """Add the training rows, whose labels are given, and the figures on validation rows."""
    attributes, rows = aimed.lines.attributes, aimed.rows
    groups = [
        count
        for groups in _titled(attributes, [attribute.groups.codes for attribute in attributes])
        for count in GroupRates.of("training", positive, groups)
    ]
    after = aimed.scores, aimed.point.threshold
    before = rows.scores, untouched_threshold(aimed.lines, rows)
    return _with_part(replace(facts, groups=groups), aimed.lines, "validation", rows, after, before, metrics)


def with_test_rows(facts: Facts, aimed: Aimed, how: str, test: Any, labels: tuple[Any, Any]) -> Facts:
    """Add the figures of the model and of the untouched one on test data, at their thresholds."""
    problem = read_rows_apart(test, "test", facts.unknown)
    positive = match_positive(problem.labels, labels, second="`test` has")
    models = (aimed.scorer, aimed.threshold), (aimed.untouched, aimed.untouched_threshold)
    after, before = ((scorer.score(problem.table)[:, 1], threshold) for scorer, threshold in models)
    lines = aimed.lines
    others = groups_of(problem.protected, how, problem.n_rows)
    if len(others) != len(lines.attributes):
        raise ValueError(
            f"The rows have {len(problem.protected)} protected attributes, unlike the training rows: give "
            "both the same."
        )
    attributes, codes = [], []
    for number, attribute in enumerate(lines.attributes):  # new groups are not compared
        every = numbered_as(attribute.groups, others.get(attribute.name, list(others.values())[number]))
        compared = np.append(
            attribute.compared, np.zeros(len(every) - len(attribute.compared), dtype=np.bool_)
        )
        attributes.append(Attribute(attribute.name, every, compared))
        codes.append(every.codes)
    rows = Rows(positive, tuple(codes), weights_of(problem))
    return _with_part(facts, replace(lines, attributes=tuple(attributes)), "test", rows, after, before)


def _with_part(
    facts: Facts,
    lines: Lines,
    name: str,
    rows: Rows,
    after: tuple[Floats, float],
    before: tuple[Floats, float],
    metrics: dict[str, float] | None = None,
) -> Facts:
    """Add the figures of another part of the data."""
    decided, untouched = (predicted_positive(*scored) for scored in (after, before))
    rates = [
        rate
        for groups in _titled(lines.attributes, rows.groups)
        for rate in GroupRates.of(name, rows.positive, groups, decided, untouched, rows.weights, lines.level)
    ]
    return replace(
        facts,
        measured={**facts.measured, name: metrics or lines.measure(rows, *after)},
        before={**facts.before, name: lines.measure(rows, *before)},
        groups=[*facts.groups, *rates],
    )


def _titled(attributes: Sequence[Attribute], codes: Sequence[Integers]) -> list[Groups]:
    """Give some rows' groups of each attribute, with titles for people."""
    pairs = zip(attributes, codes, strict=True)
    groups = [(attribute.name, replace(attribute.groups, codes=part)) for attribute, part in pairs]
    return [title_in_full(name, part) if len(groups) > 1 else part for name, part in groups]
