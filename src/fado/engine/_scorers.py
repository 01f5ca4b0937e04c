"""Scorers of several models: of label and groups, of a student; and any scorer from its parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from fado._typing import Floats
from fado.engine._base import ConstantScorer, LabelArray, Schema, Scorer, of_both_classes
from fado.engine._lightgbm import LightGBMScorer
from fado.engine._sklearn import SklearnScorer
from fado.tabular import Table

_LEAST = 1e-3  # of a sum of coefficients: where it is none or negative, odds decide nothing
_SURE = 1e-6  # how far from 0 and 1 probabilities are kept


def combine_probabilities(
    positive: Floats,
    groups: Sequence[tuple[Floats, Floats]],
    negative_coefficients: Sequence[Floats],
    positive_coefficients: Sequence[Floats],
) -> Floats:
    """Score rows: their log odds, moved by their probabilities of groups times coefficients.

    Parameters
    ----------
    positive : ndarray of shape (n_rows,)
        The probability of the positive label.
    groups : sequence of pairs of ndarray of shape (n_rows, n_groups)
        Per attribute, the probabilities of its groups if the label is negative, and if it is positive.
    negative_coefficients, positive_coefficients : sequence of ndarray of shape (n_groups,)
        Per attribute, the coefficients of the groups; 0 leaves a group unchanged.

    Examples
    --------
    A row with even odds, certainly of the second group, whose negatives count twice:

    >>> sure = np.array([[0.0, 1.0]])
    >>> coefficients = [np.array([0.0, 1.0])], [np.zeros(2)]
    >>> combine_probabilities(np.array([0.5]), [(sure, sure)], *coefficients).round(4)
    array([-0.6931])
    """
    p = np.clip(positive, _SURE, 1 - _SURE)
    scores: Floats = np.log(p) - np.log1p(-p)
    for label, given in enumerate((negative_coefficients, positive_coefficients)):
        sums = np.ones(len(p))
        for probabilities, counted in zip(groups, given, strict=True):
            sums += probabilities[label] @ counted
        scores += (1 if label else -1) * np.log(np.maximum(sums, _LEAST))
    return scores


def groups_given_labels(scorer: Any, table: Table) -> tuple[Floats, Floats]:
    """Return rows' probabilities of groups if their label is negative, and if it is positive.

    Parameters
    ----------
    scorer : Scorer or Model
        Of the groups; one that sees the target is used once for each label.
    table : Table
        The rows.
    """
    first, second = (scorer.score(table, np.full(table.n_rows, label, dtype=np.int32)) for label in (0, 1))
    return first, second


@dataclass(frozen=True, eq=False)
class CombinedScorer:
    """A model of the label and one of the groups of each attribute; see `fado.engine.Scorer`.

    A score is the logistic function of what `combine_probabilities` returns. It ranks rows, and is not a
    probability.

    Parameters
    ----------
    label : Scorer
        Of two classes.
    groups : tuple of Scorer
        Of each attribute's groups; they may see the target.
    negative, positive : tuple of ndarray
        The coefficients of each attribute's groups.
    """

    label: Scorer
    groups: tuple[Scorer, ...]
    negative: tuple[Floats, ...]
    positive: tuple[Floats, ...]

    kind: ClassVar[str] = "combined"
    n_classes: ClassVar[int] = 2
    sees_target: ClassVar[bool] = False

    @property
    def schema(self) -> Schema | None:
        """The columns of the table that the model of the label learnt from."""
        return self.label.schema

    def score(self, table: Table, target: LabelArray | None = None) -> Floats:
        """Score rows with all models."""
        known = [groups_given_labels(scorer, table) for scorer in self.groups]
        label = self.label.score(table)[:, 1]
        return of_both_classes(expit(combine_probabilities(label, known, self.negative, self.positive)))

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Return the coefficients and the models' plain parts, and their contents one after the other."""
        parts = [scorer.parts() for scorer in (self.label, *self.groups)]
        plain = {
            "kind": self.kind,
            "models": [model for model, _ in parts],
            "sizes": [len(content) for _, content in parts],
            "negative": [numbers.tolist() for numbers in self.negative],
            "positive": [numbers.tolist() for numbers in self.positive],
        }
        return plain, b"".join(content for _, content in parts)

    @classmethod
    def from_parts(cls, plain: Mapping[str, Any], content: bytes) -> CombinedScorer:
        """Read what `parts` returned."""
        models, sizes = plain.get("models"), plain.get("sizes")
        if not (
            isinstance(models, list)
            and isinstance(sizes, list)
            and len(models) == len(sizes) >= 2
            and all(isinstance(model, Mapping) and model.get("kind") in _SINGLE for model in models)
            and all(type(size) is int and size >= 0 for size in sizes)
            and sum(sizes) == len(content)
        ):
            raise ValueError("The description of the combined models is broken.")
        ends = np.cumsum(sizes).tolist()
        label, *groups = (
            scorer_from(model, content[end - size : end])
            for model, size, end in zip(models, sizes, ends, strict=True)
        )
        coefficients = []
        for name in ("negative", "positive"):
            lists: Any = plain.get(name)
            are_lists = isinstance(lists, list) and all(isinstance(each, list) for each in lists)
            if not are_lists or [len(each) for each in lists] != [group.n_classes for group in groups]:
                raise ValueError("There must be one coefficient for each group of each attribute.")
            numbers = [number for each in lists for number in each]
            if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
                raise ValueError("The coefficients of groups must be finite numbers.")
            coefficients.append(tuple(np.array(each, dtype=np.float64) for each in lists))
        if label.n_classes != 2 or label.sees_target:
            raise ValueError("The model of the label must be of two classes and see features alone.")
        return cls(label, tuple(groups), *coefficients)


@dataclass(frozen=True, eq=False)
class StudentScorer:
    """A model of numbers that learnt the log odds of other models' scores; see `fado.engine.Scorer`.

    Parameters
    ----------
    student : Scorer
        Of numbers.
    """

    student: Scorer

    kind: ClassVar[str] = "student"
    n_classes: ClassVar[int] = 2
    sees_target: ClassVar[bool] = False

    @property
    def schema(self) -> Schema | None:
        """The columns of the table that the student learnt from."""
        return self.student.schema

    def score(self, table: Table, target: LabelArray | None = None) -> Floats:
        """Return the logistic function of what the student predicts."""
        return of_both_classes(expit(self.student.score(table)))

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Return the student's own parts."""
        plain, content = self.student.parts()
        return {"kind": self.kind, "model": plain}, content

    @classmethod
    def from_parts(cls, plain: Mapping[str, Any], content: bytes) -> StudentScorer:
        """Read what `parts` returned."""
        model = plain.get("model")
        if not isinstance(model, Mapping) or model.get("kind") not in _SINGLE:
            raise ValueError("The description of the model that learnt scores is broken.")
        student = scorer_from(model, content)
        if student.n_classes != 0 or student.sees_target:
            raise ValueError("The model that learnt scores must be one of numbers that sees features alone.")
        return cls(student)


_SINGLE: dict[str, Any] = {scorer.kind: scorer for scorer in (LightGBMScorer, SklearnScorer, ConstantScorer)}
_KINDS: dict[str, Any] = {**_SINGLE, "combined": CombinedScorer, "student": StudentScorer}


def scorer_from(plain: Mapping[str, Any], content: bytes) -> Scorer:
    """Make a scorer from its parts.

    Parameters
    ----------
    plain, content
        What `Scorer.parts` returned.

    Raises
    ------
    ValueError
        If they are not what `parts` returns, or the content is not to be trusted.
    """
    kind = plain.get("kind")
    if kind not in _KINDS:
        raise ValueError(f"There is no model of kind {kind!r}: it must be one of {', '.join(_KINDS)}.")
    parts = {name: part for name, part in plain.items() if name != "kind"}
    scorer: Scorer = _KINDS[kind].from_parts(parts, content)
    return scorer
