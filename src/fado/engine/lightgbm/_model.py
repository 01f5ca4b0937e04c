"""A grown booster, and how to lay out rows for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fado.engine._base import FloatArray, LabelArray, Rows
from fado.engine.lightgbm._boosting import Classes
from fado.engine.lightgbm._features import Features
from fado.engine.lightgbm._matrix import in_order, input_for_scores
from fado.engine.lightgbm._scorer import LightGBMScorer
from fado.engine.lightgbm._threads import fitting
from fado.engine.lightgbm._trees import Forest, read_trees
from fado.tabular import Table, Variable

if TYPE_CHECKING:
    import lightgbm

__all__ = ["LightGBMModel"]


class LightGBMModel:
    """What LightGBM learnt; see `fado.engine.Model`.

    Made within `fado.engine.lightgbm._threads.fitting`.

    Parameters
    ----------
    booster : lightgbm.Booster
        Grown.
    scores : ndarray
        Of the rows that the task asked for.
    variable : Variable
        What was learnt.
    classes : Classes
        Those that occurred.
    features : Features
        The columns of the engine's table.
    layout : tuple of int
        Which of them the booster sees, in its order.
    parameters : mapping
        The booster's.
    """

    def __init__(
        self,
        booster: lightgbm.Booster,
        scores: FloatArray,
        variable: Variable,
        classes: Classes,
        features: Features,
        layout: tuple[int, ...],
        parameters: Mapping[str, Any],
    ) -> None:
        self.scores = scores
        self._parameters = parameters
        self.gains = np.zeros(features.n_columns + 1)
        self.gains[list(layout)] = booster.feature_importance("gain")
        self.n_trees = booster.current_iteration()
        self._booster = booster
        self._variable = variable
        self._classes = classes
        self._features = features
        self._layout = layout
        most = parameters.get("max_cat_to_onehot", 4)
        levelled = features.levelled()
        self._many_sided = frozenset(
            place
            for place, j in enumerate(layout)
            if j in levelled and booster.train_set.feature_num_bin(place) > most
        )

    def __getstate__(self) -> dict[str, Any]:
        with fitting():
            return self.__dict__ | {"_booster": self._booster.model_to_string(num_iteration=-1)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import lightgbm

        with fitting():
            self.__dict__.update(state | {"_booster": lightgbm.Booster(model_str=state["_booster"])})

    @property
    def forest(self) -> Forest:
        """The trees alone, as arrays: without the booster, which holds the rows that it learnt from."""
        with fitting():
            trees = read_trees(self._booster.model_to_string(num_iteration=-1))
        return Forest(
            tuple(trees), self._variable, self._layout, self._parameters, frozenset(self._many_sided)
        )

    def score(self, rows: Rows | Table, target: LabelArray | None = None) -> FloatArray:
        """Score rows by what they hold, not by their bins."""
        if isinstance(rows, Table):
            columns = self._features.of_table(rows, target, self._variable)
        else:
            columns = self._features.of_rows(rows, target, self._variable)
        numbers = input_for_scores(in_order(columns, self._layout))
        with fitting():
            predicted = np.asarray(self._booster.predict(numbers, num_threads=1), dtype=np.float64)
        return self._classes.spread(predicted)

    def detach(self) -> LightGBMScorer:
        """Give the booster alone, as text, and the columns that it takes."""
        with fitting():
            text = self._booster.model_to_string(num_iteration=-1)
        return LightGBMScorer(
            text,
            self._features.schema,
            self._layout,
            tuple(self._features.seen(self._variable)),
            sparse=self._features.is_sparse,
            n_classes=len(self._variable.classes),
            present=self._classes.present,
            sees_target=self._variable.sees_target,
        )
