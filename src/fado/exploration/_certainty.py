"""Where sure ends and unsure begins: the cut in the values of a variable.

Values of classes are entropies. A model that has learnt nothing about a row still knows how frequent each
class is, and the entropy of these shares, not 1, is what it would say of every row: with one positive in a
hundred that is 0.08. Models are called unsure of a row from **half of that** on, midway between certainty and
no knowledge. Two classes of equal size give 0.5.

Values of a number tell how near the mean its prediction lies, as a share of the one farthest prediction, so
no fixed point of their scale means anything. The share of the rows that are called sure, those farthest from
the mean, is the share that models remove of the error that guessing the mean makes: none if they remove
nothing, all if they remove all of it. Where that is not known, the cut is the median.

Values of other scales, such as effects, are cut at their neutral point, or in the middle of the scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fado.exploration import _intervals
from fado.exploration._intervals import Estimate
from fado.exploration._material import Material
from fado.exploration._wording import percent, plain_number
from fado.tabular import Variable

__all__ = ["Cut", "cut_of", "error_removed", "shares_entropy"]


@dataclass(frozen=True)
class Cut:
    """The value from which on models are called unsure of a variable, and how it was chosen.

    Parameters
    ----------
    number : float
        The cut.
    why : str
        What the number is, for a sentence.
    uninformed : float or None
        What a model would say of every row that knows only how frequent each class is.
    """

    number: float
    why: str
    uninformed: float | None = None


def cut_of(material: Material, variable: Variable) -> Cut:
    """Choose the cut for the target or for a protected attribute."""
    scale, values = material.valuation.scales[variable.name], material.valuation[variable.name]
    name = material.shown_name(variable)
    if not scale.is_unit or scale.neutral is not None:
        span = material.span(variable.name)
        if span.neutral is not None and span.low < span.neutral < span.high:
            return Cut(span.neutral, "the value of a row that neither helps nor harms")
        return Cut((span.low + span.high) / 2, "the middle of the scale")
    if variable.kind == "classes":
        return _class_cut(variable, name)
    removed = error_removed(material, variable)
    if removed is None:
        return Cut(float(np.median(values)), f"the median, since {name} is a number")
    share = min(max(removed.number, 0.0), 1.0)
    return Cut(
        float(np.quantile(values, share)),
        f"so that {percent(share)} of the rows count as sure: the share that models remove of the error that "
        f"guessing the mean of {name} makes",
    )


def shares_entropy(labels: npt.NDArray[np.integer], n_classes: int) -> float:
    """Give the normalised entropy of the classes' shares: what a model without knowledge would say.

    Examples
    --------
    >>> import numpy as np
    >>> shares_entropy(np.array([0, 1, 1, 0]), 2), round(shares_entropy(np.array([1] + 99 * [0]), 2), 3)
    (1.0, 0.081)
    """
    shares = np.bincount(labels, minlength=n_classes) / len(labels)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum() / np.log2(n_classes)) if n_classes > 1 else 0.0


def error_removed(material: Material, variable: Variable) -> Estimate | None:
    """Estimate which share models remove of the error of guessing a number's mean; None if unknown."""
    agreement = material.agreement(variable.name)
    largest_error = (material.valuation.provenance.largest_error or {}).get(variable.name)
    if agreement is None or largest_error is None:
        return None
    known = variable.known
    errors = (1.0 - agreement[known]) * largest_error
    return _intervals.skill(errors, np.abs(variable.labels[known] - variable.labels[known].mean()))


def _class_cut(variable: Variable, name: str) -> Cut:
    uninformed = shares_entropy(variable.labels, len(variable.classes))
    if not uninformed:
        return Cut(0.5, f"the middle of the scale, since all rows have one {name}")
    return Cut(
        uninformed / 2,
        f"half of {plain_number(uninformed)}, which knowing only the classes' shares of {name} would give",
        uninformed,
    )
