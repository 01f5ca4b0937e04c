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
    """The models that a search found, and the trade-off between performance and one ratio among them.

    `find_frontier` returns it.

    Parameters
    ----------
    results : Results
        The metrics of all models.
    data : Data
        The rows.
    ratio : str
        The ratio that was aimed at.
    fits : int
        How many whole fits the search took.
    store : pathlib.Path
        The directory that the search is kept in.
    given : Given
        The estimator that was passed to the search, if one was.

    Attributes
    ----------
    results : Results
        The metrics of all models, with methods such as `Results.pareto`.
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
        """`Results.frame`, one row per fit, with the column ``cost``: how much of a whole fit it took."""
        return self.results.frame

    def best(self, at_least: float = 0.8, confidence: float | None = None) -> ChosenModel | None:
        """Give the model of highest true-positive rate whose ratio reaches a line, on validation rows.

        The model is trained once more.

        Parameters
        ----------
        at_least : float, default=0.8
            The line, in (0, 1].
        confidence : float, optional
            In (0.5, 1). If given, the ratio's lower bound at this confidence must reach the line. The more
            models have a ratio that does, the stricter the bound, as the best of many may only be lucky.

        Returns
        -------
        ChosenModel or None
            The fitted model with its threshold, metrics and card. None if no model reached the line; then
            `closest` gives the one that came closest.
        """
        return self._chosen(at_least, confidence, or_closest=False)

    def closest(self, at_least: float = 0.8, confidence: float | None = None) -> ChosenModel | None:
        """Give the model that `best` gives or, if none reached the line, the one that came closest.

        Parameters
        ----------
        at_least, confidence
            As for `best`.

        Returns
        -------
        ChosenModel or None
            Its `reached_` tells whether it reached the line. None if no model can be compared: each has an
            undefined ratio, equal scores only, or exceeds the budget of decisions.
        """
        return self._chosen(at_least, confidence, or_closest=True)

    def _chosen(self, at_least: float, confidence: float | None, *, or_closest: bool) -> ChosenModel | None:
        choice = choose_row(self.results, self._data, self.ratio, at_least, confidence)
        if choice is None or not (choice.reached or or_closest):
            return None
        with Store.reading(self._store) as store:
            return train_choice(self.results, choice, self._data, store, given=self._given, fits=self._fits)

    def plot(self, *, zoom: bool = False) -> Any:
        """Draw all models by true-positive rate and the ratio that was aimed at; see `Results.plot`."""
        return self.results.plot(self.ratio, zoom=zoom)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write charts and tables of all models to one HTML page; see `Results.report`."""
        self.results.report(path)

    def to_mlflow(self, experiment_name: str = "fado", tracking_uri: str | None = None) -> pd.Series[str]:
        """Log every fit as an MLflow run; see `Results.to_mlflow`."""
        return self.results.to_mlflow(experiment_name, tracking_uri)

    def to_optuna(self, storage: Any, study_name: str | None = None) -> optuna.Study:
        """Add every fit to an Optuna study of the ratio that was aimed at; see `Results.to_optuna`."""
        return self.results.to_optuna(storage, study_name, metric=self.ratio)
