"""The `[evaluation]` of a configuration: the budget, the metrics, and what is kept."""

from __future__ import annotations

from typing import Any

from fado._checks import MOST_ROWS
from fado.experiment.config._given import Given
from fado.experiment.config._metrics import check_metric_name, metric_names
from fado.experiment.config._section import Section, as_text, is_number, shown
from fado.experiment.config._settings import CROSSED, EACH, EvaluationConfig

__all__ = ["read_evaluation"]

MOST_RESAMPLES = 100_000
_BUDGETS = ("max_fpr", "max_selection_rate", "top_k", "fixed_threshold")


def read_evaluation(section: Section, given: Given | None, *, stored: bool) -> EvaluationConfig:
    """Read how models are measured; a store may name metrics that are not registered any more."""
    evaluation = EvaluationConfig(
        **_budget(section),
        threshold=as_text(section.take("threshold", "test"), section.at("threshold"), ("test", "validation")),
        bootstrap=section.whole("bootstrap", 0, at_most=MOST_RESAMPLES),
        groups=section.text("groups", CROSSED, (CROSSED, EACH)),
        metrics=_metrics(section, given, stored=stored),
        keep_scores=section.switch("keep_scores", False),
    )
    section.done()
    return evaluation


def _budget(section: Section) -> dict[str, Any]:
    """Read the one budget that is set; the false-positive rate, if none is."""
    there = [name for name in _BUDGETS if name in section]
    if len(there) > 1:
        told = " and ".join(f"`{section.at(name)}`" for name in there)
        raise ValueError(f"{told} both set the threshold: keep one of them.")
    budget: dict[str, Any] = dict.fromkeys(_BUDGETS)
    kind = there[0] if there else "max_fpr"
    if kind == "top_k":
        budget[kind] = section.whole(kind, at_least=1, at_most=MOST_ROWS)
    elif kind == "fixed_threshold":
        budget[kind] = section.take(kind)
        if not is_number(budget[kind]):
            raise ValueError(f"`{section.at(kind)}` must be a number, got {shown(budget[kind])}.")
    else:
        budget[kind] = section.number(kind, 0.05, above=0, below=1)
    for name in _BUDGETS:  # whichever it is, all are known
        section.take(name, None)
    return budget


def _metrics(section: Section, given: Given | None, *, stored: bool) -> tuple[str, ...]:
    known = (*metric_names(), *(() if given is None else given.metrics))
    names = section.texts("metrics", (), () if stored else known)
    for name in names:
        if name not in known:
            check_metric_name(name)
    return names
