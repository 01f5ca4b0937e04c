"""A booster without the rows that it learnt from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
import pyarrow as pa

from fado.engine._base import FloatArray
from fado.engine._schema import Schema
from fado.engine.lightgbm._features import columns_of
from fado.engine.lightgbm._matrix import SparseColumns, in_order, input_for_scores
from fado.engine.lightgbm._threads import fitting
from fado.tabular import Column, Table

if TYPE_CHECKING:
    import lightgbm

__all__ = ["LightGBMScorer"]


@dataclass(frozen=True)
class LightGBMScorer:
    """LightGBM's own text of a booster, and the columns that it takes; see `fado.engine.Scorer`.

    Parameters
    ----------
    text : str
        The booster. LightGBM ends the process at a text that is damaged: hand over none that may be.
    schema : Schema
        The columns of the table that it learnt from.
    layout : tuple of int
        Which of them it takes, in its order; the number after the last is a column that it never looks at.
    seen : tuple of int
        Those that it may look at.
    sparse : bool
        Whether it learnt from a sparse matrix.
    """

    text: str
    schema: Schema
    layout: tuple[int, ...]
    seen: tuple[int, ...]
    sparse: bool

    kind: ClassVar[str] = "lightgbm"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_booster"}

    @cached_property
    def _booster(self) -> lightgbm.Booster:
        import lightgbm

        with fitting():
            return lightgbm.Booster(model_str=self.text)

    def score(self, table: Table) -> FloatArray:
        """Give every row's probability of class 1."""
        found, seen = self.schema.find(table, self.seen), set(self.seen)
        places = [place if j in seen else None for j, place in enumerate(found)]
        columns = columns_of(table, self.schema, places, sparse=self.sparse)
        if len(self.schema.names) in self.layout:
            unseen = Column("", pa.chunked_array([pa.array(np.zeros(table.n_rows))]))
            if isinstance(columns, SparseColumns):
                columns = columns.with_column(unseen)
            else:
                columns = [*columns, unseen]
        numbers = input_for_scores(in_order(columns, self.layout))
        booster = self._booster
        with fitting():
            return np.asarray(booster.predict(numbers, num_threads=1), dtype=np.float64)

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Give the columns, and the booster's text."""
        plain = {
            "kind": self.kind,
            "schema": self.schema.to_plain(),
            "layout": list(self.layout),
            "seen": list(self.seen),
            "sparse": self.sparse,
        }
        return plain, self.text.encode()

    @classmethod
    def from_parts(cls, plain: Mapping[str, Any], content: bytes) -> LightGBMScorer:
        """Read what `parts` gave; the content must be known to be whole."""
        schema = Schema.from_plain(plain.get("schema", {}))
        layout, seen, sparse = plain.get("layout"), plain.get("seen"), plain.get("sparse")
        n_columns = len(schema.names)
        if not (
            isinstance(sparse, bool)
            and _are_positions(layout, n_columns + 1)
            and _are_positions(seen, n_columns)
        ):
            raise ValueError("The columns that the booster takes are not told as they should be.")
        text = content.decode()
        _check_header(text, len(layout))
        return cls(text, schema, tuple(layout), tuple(seen), sparse)


def _are_positions(given: Any, end: int) -> TypeGuard[list[int]]:
    return isinstance(given, list) and all(
        isinstance(own, int) and not isinstance(own, bool) and 0 <= own < end for own in given
    )


def _check_header(text: str, n_columns: int) -> None:
    """Refuse a text that is of no booster of two classes, or of one that takes other columns."""
    head = text.partition("\n\n")[0].splitlines()
    told = dict(line.partition("=")[::2] for line in head[1:])
    if head[:1] != ["tree"] or not told.get("objective", "").startswith("binary"):
        raise ValueError("The content is of no LightGBM model of two classes.")
    if told.get("max_feature_idx") != str(n_columns - 1):
        raise ValueError(f"The booster does not take the {n_columns} columns that it is said to take.")
