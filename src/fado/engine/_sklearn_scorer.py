"""A fitted estimator without the rows that it learnt from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeGuard, get_args

import numpy as np

from fado.engine._base import FloatArray, LabelArray
from fado.engine._layout import Form, Plan
from fado.engine._missing import MissingValuesError, explaining_missing
from fado.engine._schema import Schema
from fado.engine._skops import read_estimator, write_estimator
from fado.engine._target import check_labels
from fado.tabular import Table, Variable

__all__ = ["SklearnScorer", "predict_rows"]

_ROUNDING = 1e-4  # of probabilities in single precision, and to spare


def predict_rows(estimator: Any, features: Any, n_classes: int) -> FloatArray:
    """Give the probabilities of all classes, also of those that the estimator never saw; or numbers.

    Parameters
    ----------
    estimator : estimator
        Fitted to codes of classes, or to numbers.
    features : array, sparse matrix or DataFrame
        As it takes them.
    n_classes : int
        How many classes there are; 0 for numbers.
    """
    if n_classes == 0:
        return np.asarray(estimator.predict(features), dtype=np.float64)
    predicted = np.asarray(estimator.predict_proba(features), dtype=np.float64)
    classes = np.asarray(estimator.classes_, dtype=np.intp)
    if predicted.shape != (len(predicted), len(classes)):
        raise ValueError(
            f"`{type(estimator).__name__}` gave probabilities of shape {predicted.shape} for "
            f"{len(classes)} classes: `predict_proba` must give one column per class."
        )
    spread = np.zeros((len(predicted), n_classes))
    spread[:, classes] = predicted
    sums = spread.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Rounding is put right; what is no distribution stays as it is, for those who read it to refuse.
        return np.where(np.abs(sums - 1.0) <= _ROUNDING, spread / sums, spread)


@dataclass(frozen=True, eq=False)
class SklearnScorer:
    """A fitted estimator, and how to lay out rows for it; see `fado.engine.Scorer`.

    Parameters
    ----------
    estimator : estimator
        Fitted to codes of classes, or to numbers.
    plan : Plan
        How to lay out rows.
    n_classes : int
        How many classes there are; 0 for numbers.
    target : Variable or None
        The target without its rows, if the estimator sees it.
    """

    estimator: Any
    plan: Plan
    n_classes: int = 2
    target: Variable | None = None

    kind: ClassVar[str] = "sklearn"

    @property
    def sees_target(self) -> bool:
        """Whether the estimator sees the target."""
        return self.target is not None

    @property
    def schema(self) -> Schema:
        """The columns of the table that the estimator learnt from."""
        return self.plan.schema

    def score(self, table: Table, target: LabelArray | None = None) -> FloatArray:
        """Score rows; of two classes, give the probability of class 1."""
        from threadpoolctl import threadpool_limits

        theirs = None
        if self.target is not None:
            theirs = replace(self.target, labels=check_labels(target, table.n_rows))
        features = self.plan.lay_out(table, theirs)
        try:
            with explaining_missing(self.estimator, self.plan, features), threadpool_limits(1):
                scores = predict_rows(self.estimator, features, self.n_classes)
        except MissingValuesError:
            raise
        except Exception as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise ValueError(f"{type(self.estimator).__name__} cannot score these rows: {reason}") from error
        return scores[:, 1] if self.n_classes == 2 else scores

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Give how to lay out rows, and the estimator as skops writes it."""
        names = None if self.plan.names is None else self.plan.names.tolist()
        if names is not None and not _are_names(names):
            raise ValueError(
                f"{type(self.estimator).__name__} cannot be saved: it learnt from columns whose names are "
                "neither text nor whole numbers; rename them and train it again."
            )
        content, name = write_estimator(self.estimator)
        plain = {
            "kind": self.kind,
            "form": self.plan.form,
            "kept": list(self.plan.kept),
            "schema": self.schema.to_plain(),
            "names": names,
            "estimator": name,
            "n_classes": self.n_classes,
            "target": None
            if self.target is None
            else {"name": self.target.name, "classes": [str(label) for label in self.target.classes]},
        }
        return plain, content

    @classmethod
    def from_parts(cls, plain: Mapping[str, Any], content: bytes) -> SklearnScorer:
        """Read what `parts` gave."""
        schema = Schema.from_plain(plain.get("schema", {}))
        form: Any = plain.get("form")
        kept, names, estimator, n_classes = (
            plain.get(key) for key in ("kept", "names", "estimator", "n_classes")
        )
        if not (
            form in get_args(Form)
            and isinstance(kept, list)
            and all(isinstance(j, int) and 0 <= j < len(schema.names) for j in kept)
            and ((form in ("frame", "columns")) is (names is not None))
            and (names is None or (_are_names(names) and len(names) == len(kept)))
            and isinstance(estimator, str)
            and type(n_classes) is int
            and n_classes >= 0
        ):
            raise ValueError("The columns that the estimator takes are not told as they should be.")
        target = _target_of(plain.get("target"))
        plan = Plan(form, tuple(kept), schema, _index(names))
        return cls(_predictor(read_estimator(content, estimator), n_classes), plan, n_classes, target)


def _predictor(estimator: Any, n_classes: int) -> Any:
    """Give an estimator back, if it predicts what it must: so many classes, or numbers."""
    name = type(estimator).__name__
    if n_classes == 0:
        if not callable(getattr(type(estimator), "predict", None)):
            raise ValueError(f"The content is of {name}, which predicts nothing.")
        return estimator
    try:
        classes = np.asarray(estimator.classes_)
        fits = callable(estimator.predict_proba) and classes.ndim == 1 and classes.dtype.kind in "iu"
    except AttributeError:
        fits = False
    if not fits or len(np.unique(classes)) != len(classes) or not set(classes) <= set(range(n_classes)):
        raise ValueError(f"The content is of {name}, which gives no probabilities of {n_classes} classes.")
    return estimator


def _target_of(told: Any) -> Variable | None:
    """Make the target that an estimator sees, without rows, of what is told of it."""
    if told is None:
        return None
    name, classes = (told.get(key) if isinstance(told, Mapping) else None for key in ("name", "classes"))
    if not isinstance(name, str) or not _are_names(classes):
        raise ValueError("The target that the estimator sees is not told as it should be.")
    return Variable(name, "classes" if classes else "continuous", np.zeros(0), tuple(classes))


def _are_names(given: Any) -> TypeGuard[list[str | int]]:
    return isinstance(given, list) and all(
        isinstance(own, str | int) and not isinstance(own, bool) for own in given
    )


def _index(names: list[str | int] | None) -> Any:
    import pandas as pd

    return None if names is None else pd.Index(names)
