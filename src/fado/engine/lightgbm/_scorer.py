"""A booster without the rows that it learnt from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
import pyarrow as pa

from fado.engine._base import FloatArray, LabelArray
from fado.engine._schema import Schema
from fado.engine._target import check_labels
from fado.engine.lightgbm._boosting import spread
from fado.engine.lightgbm._features import columns_of, with_target
from fado.engine.lightgbm._matrix import in_order, input_for_scores
from fado.engine.lightgbm._text import check_text
from fado.engine.lightgbm._threads import fitting
from fado.tabular import Column, Table

if TYPE_CHECKING:
    import lightgbm

__all__ = ["LightGBMScorer"]

_OBJECTIVES_OF_NUMBERS = {"regression", "huber", "fair", "poisson"}


@dataclass(frozen=True)
class LightGBMScorer:
    """LightGBM's own text of a booster, and the columns that it takes; see `fado.engine.Scorer`.

    Parameters
    ----------
    text : str
        The booster.
    schema : Schema
        The columns of the table that it learnt from.
    layout : tuple of int
        Which of them it takes, in its order; the number after the last is the target.
    seen : tuple of int
        Those that it may look at.
    sparse : bool
        Whether it learnt from a sparse matrix.
    n_classes : int
        How many classes there are; 0 for numbers.
    present : tuple of int
        Those that the rows learnt from held.
    sees_target : bool
        Whether it looks at the target; where it does not, zeros stand for it.
    """

    text: str
    schema: Schema
    layout: tuple[int, ...]
    seen: tuple[int, ...]
    sparse: bool
    n_classes: int = 2
    present: tuple[int, ...] = (0, 1)
    sees_target: bool = False

    kind: ClassVar[str] = "lightgbm"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_booster"}

    @cached_property
    def _booster(self) -> lightgbm.Booster:
        import lightgbm

        with fitting():
            return lightgbm.Booster(model_str=self.text)

    def score(self, table: Table, target: LabelArray | None = None) -> FloatArray:
        """Score rows; of two classes, give the probability of class 1."""
        labels = check_labels(target, table.n_rows) if self.sees_target else np.zeros(table.n_rows)
        found, seen = self.schema.find(table, self.seen), set(self.seen)
        places = [place if j in seen else None for j, place in enumerate(found)]
        columns = columns_of(table, self.schema, places, sparse=self.sparse)
        if len(self.schema.names) in self.layout:
            columns = with_target(columns, Column("", pa.chunked_array([pa.array(labels)])))
        numbers = input_for_scores(in_order(columns, self.layout))
        booster = self._booster
        with fitting():
            predicted = np.asarray(booster.predict(numbers, num_threads=1), dtype=np.float64)
        return spread(predicted, self.present, self.n_classes)

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Give the columns, and the booster's text."""
        plain = {
            "kind": self.kind,
            "schema": self.schema.to_plain(),
            "layout": list(self.layout),
            "seen": list(self.seen),
            "sparse": self.sparse,
            "n_classes": self.n_classes,
            "present": list(self.present),
            "sees_target": self.sees_target,
        }
        return plain, self.text.encode()

    @classmethod
    def from_parts(cls, plain: Mapping[str, Any], content: bytes) -> LightGBMScorer:
        """Read what `parts` gave; the content is checked before LightGBM sees it."""
        schema = Schema.from_plain(plain.get("schema", {}))
        layout, seen, sparse = plain.get("layout"), plain.get("seen"), plain.get("sparse")
        n_classes, present, sees_target = (plain.get(key) for key in ("n_classes", "present", "sees_target"))
        n_columns = len(schema.names)
        if not (
            isinstance(sparse, bool)
            and _are_positions(layout, n_columns + 1)
            and _are_positions(seen, n_columns)
            and type(n_classes) is int
            and _are_positions(present, n_classes)
            and len(set(present)) == len(present) != 1
            and (len(present) == 0) is (n_classes == 0)
            and isinstance(sees_target, bool)
            and (not sees_target or n_columns in layout)
        ):
            raise ValueError("The columns that the booster takes are not told as they should be.")
        text = content.decode()
        _check_model(text, len(layout), len(present))
        places = tuple(layout), tuple(seen)
        scorer = cls(text, schema, *places, sparse, n_classes, tuple(present), sees_target)
        try:
            scorer._booster  # noqa: B018 - LightGBM reads it
        except Exception as error:
            raise ValueError(f"LightGBM cannot read the content: {str(error).splitlines()[0]}") from error
        return scorer


def _are_positions(given: Any, end: int) -> TypeGuard[list[int]]:
    return isinstance(given, list) and all(
        isinstance(own, int) and not isinstance(own, bool) and 0 <= own < end for own in given
    )


def _check_model(text: str, n_columns: int, n_present: int) -> None:
    """Refuse a text that is of no booster of so many classes, or of one that takes other columns."""
    told = check_text(text)
    objective, n_scores = told.get("objective", "").split(" ")[0], told.get("num_class")
    wanted = {"binary" if n_present == 2 else "multiclass"} if n_present else _OBJECTIVES_OF_NUMBERS
    expected = str(n_present if n_present > 2 else 1)
    if objective not in wanted or {n_scores, told["num_tree_per_iteration"]} != {expected}:
        what = {0: "numbers", 2: "two classes"}.get(n_present, f"{n_present} classes")
        raise ValueError(f"The content is of no LightGBM model of {what}.")
    if told["max_feature_idx"] != str(n_columns - 1):
        raise ValueError(f"The booster does not take the {n_columns} columns that it is said to take.")
