"""What a search for the frontier found, and the models to take from it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fado.experiment.config import Given
from fado.experiment.frontier._choosing import choose_row, train_choice
from fado.experiment.results import Results, results_shown
from fado.experiment.run import Data
from fado.experiment.store import Store
from fado.models import ChosenModel

if TYPE_CHECKING:
    from pathlib import Path

    import optuna
    import pandas as pd

__all__ = ["Frontier"]


class Frontier:
    """The trade-off between performance and one ratio, as far as a budget of fits shows it.

    `find_frontier` gives it.

    Parameters
    ----------
    results : Results
        What all models achieve.
    data : Data
        The rows.
    ratio : str
        The ratio that was aimed at.
    fits : int
        How many whole fits it took.
    store : pathlib.Path
        Where the search is kept.
    given : Given
        The estimator that was handed over, if one was.

    Attributes
    ----------
    results : Results
        All models: `Results.pareto`, `Results.plot` and the rest.
    ratio : str
        The ratio that was aimed at.
    """

    def __init__(
        self,
        results: Results,
        data: Data,
        ratio: str,
        fits: int,
        store: Path,
        given: Given,
    ) -> None:
        self.results = results
        self.ratio = ratio
        self._data = data
        self._fits = fits
        self._store = store
        self._given = given

    def __repr__(self) -> str:
        models, fits = (
            f"{count:,} {what}{'' if count == 1 else 's'}"
            for count, what in ((len(self.frame), "model"), (self._fits, "fit"))
        )
        return f"Frontier of {models} in {fits}, aimed at {self.ratio}"

    def _repr_html_(self) -> str:
        return results_shown(repr(self), self.results, self.ratio)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per fit, as `Results.frame` has it, and ``cost``, which part of a whole fit it took."""
        return self.results.frame

    def best(self, at_least: float = 0.8, confidence: float | None = None) -> ChosenModel | None:
        """Give the model of highest true-positive rate whose ratio is above a line, on validation rows.

        Parameters
        ----------
        at_least : float, default=0.8
            The line, in (0, 1].
        confidence : float, optional
            In (0.5, 1). Then the ratio's lower bound must reach the line, at a level that is shared among
            all models whose estimates do: the best of many was perhaps lucky.

        Returns
        -------
        ChosenModel or None
            A fitted model with its threshold, its metrics, its card; None if nothing reached the line:
            `closest` gives what came closest.
        """
        return self._chosen(at_least, confidence, or_closest=False)

    def closest(self, at_least: float = 0.8, confidence: float | None = None) -> ChosenModel | None:
        """Give what `best` does, or, if nothing reached the line, the model that came closest.

        Returns
        -------
        ChosenModel or None
            Its `reached_` says which it is; None if no model can be compared at all.
        """
        return self._chosen(at_least, confidence, or_closest=True)

    def _chosen(self, at_least: float, confidence: float | None, *, or_closest: bool) -> ChosenModel | None:
        choice = choose_row(self.results, self._data, self.ratio, at_least, confidence)
        if choice is None or not (choice.reached or or_closest):
            return None
        with Store.reading(self._store) as store:
            return train_choice(self.results, choice, self._data, store, given=self._given, fits=self._fits)

    def plot(self, *, zoom: bool = False) -> Any:
        """Draw the landscape of the ratio that was aimed at; see `Results.plot`."""
        return self.results.plot(self.ratio, zoom=zoom)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the landscape to one HTML page, to choose from; see `Results.report`."""
        self.results.report(path)

    def to_mlflow(self, experiment_name: str = "fado", tracking_uri: str | None = None) -> pd.Series[str]:
        """Log every fit as a run of MLflow; see `Results.to_mlflow`."""
        return self.results.to_mlflow(experiment_name, tracking_uri)

    def to_optuna(self, storage: Any, study_name: str | None = None) -> optuna.Study:
        """Add every fit to a study of Optuna, by the ratio that was aimed at; see `Results.to_optuna`."""
        return self.results.to_optuna(storage, study_name, metric=self.ratio)
