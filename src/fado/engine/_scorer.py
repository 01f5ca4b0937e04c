"""What is left of a fitted model without its rows: to be kept, and read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fado.engine._base import Model, Scorer
from fado.engine._combined import CombinedScorer, StudentScorer
from fado.engine._constant import ConstantScorer
from fado.engine._sklearn_scorer import SklearnScorer
from fado.engine.lightgbm import LightGBMScorer

__all__ = ["detach", "scorer_from"]

_KINDS: dict[str, Callable[[Mapping[str, Any], bytes], Scorer]] = {
    own.kind: own.from_parts for own in (LightGBMScorer, SklearnScorer, ConstantScorer)
}
_OF_OTHERS: dict[str, Callable[..., Scorer]] = {
    own.kind: own.from_parts for own in (CombinedScorer, StudentScorer)
}


def detach(model: Model) -> Scorer:
    """Take from a model all that scoring rows needs, without the rows that it learnt from.

    Parameters
    ----------
    model : Model
        What `Engine.fit` gave.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMClassifier
    >>> from fado.engine import LightGBMEngine, Task, detach
    >>> from fado.tabular import Table, Variable
    >>> table = Table.from_input(np.arange(100.0)[:, None])
    >>> large = Variable("y", "classes", np.repeat([0, 1], 50).astype(np.int32), ("no", "yes"))
    >>> model = LightGBMEngine(table).fit(Task(LGBMClassifier(n_estimators=5), large, np.arange(100), seed=0))
    >>> scorer = detach(model)
    >>> scorer.score(Table.from_input([[7.0], [93.0]])).round(2)
    array([0.3, 0.7])
    >>> bool((scorer.score(table) == model.score(table)).all())
    True
    """
    return model.detach()


def scorer_from(plain: Mapping[str, Any], content: bytes) -> Scorer:
    """Make a scorer of its parts.

    Parameters
    ----------
    plain, content
        What `Scorer.parts` gave.

    Raises
    ------
    ValueError
        If they are not what `parts` gives, or the content holds what is not to be trusted.
    """
    kind = plain.get("kind")
    if kind in _OF_OTHERS:
        return _OF_OTHERS[kind](plain, content, scorer_from)
    if kind not in _KINDS:
        known = ", ".join([*_KINDS, *_OF_OTHERS])
        raise ValueError(f"There is no model of kind {kind!r}: it must be one of {known}.")
    return _KINDS[kind](plain, content)
