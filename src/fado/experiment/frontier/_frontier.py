"""What a search for the frontier found, and the models to take from it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fado.aim import lines_of
from fado.experiment._data import Data
from fado.experiment._dossier import dossier_content, write_dossier
from fado.experiment._results import Results
from fado.experiment._store import Store
from fado.experiment.config import Given
from fado.experiment.frontier._choosing import choose_row
from fado.experiment.frontier._handing import train_choice
from fado.experiment.results import results_shown
from fado.models import ChosenModel

if TYPE_CHECKING:
    from pathlib import Path

    import optuna
    import pandas as pd

__all__ = ["Frontier"]


class Frontier:
    """The models that a search found, and the trade-off between performance and ratios among them.

    `find_frontier` returns it.

    Parameters
    ----------
    results : Results
        The metrics of all models.
    data : Data
        The rows.
    lines : mapping of str to float
        The ratios that were aimed at, and the line of each.
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
    lines : dict of str to float
        The ratios that were aimed at, and the line of each: 0.8 for a ratio that was given by name.
    ratio : str
        The first of them.
    """

    def __init__(
        self,
        results: Results,
        data: Data,
        lines: Mapping[str, float],
        fits: int,
        store: Path,
        given: Given,
    ) -> None:
        self.results = results
        self.lines = dict(lines)
        self.ratio = next(iter(self.lines))
        self._data = data
        self._fits = fits
        self._store = store
        self._given = given

    def __repr__(self) -> str:
        models, fits = (
            f"{count:,} {what}{'' if count == 1 else 's'}"
            for count, what in ((len(self.frame), "model"), (self._fits, "fit"))
        )
        return f"Frontier of {models} in {fits}, aimed at {' and '.join(self.lines)}"

    def _repr_html_(self) -> str:
        return results_shown(repr(self), self.results, self.ratio)

    @property
    def frame(self) -> pd.DataFrame:
        """`Results.frame`, one row per model, with the column ``cost``: how much of a whole fit it took.

        The points of a model's curve have the intervention ``aimed`` and take none: ``demand`` is 0 where
        the lines were asked for and 1 where equal rates were. The model of the groups takes one fit more.
        """
        return self.results.frame

    def best(
        self, at_least: float | Mapping[str, float] | None = None, confidence: float | None = None
    ) -> ChosenModel | None:
        """Give the model of highest true-positive rate whose ratios reach their lines, on validation rows.

        The model is trained once more, to the same bits; its threshold is that of the validation rows.

        Parameters
        ----------
        at_least : float or mapping of str to float, optional
            The line, in (0, 1], of all ratios or of each. None takes `lines`.
        confidence : float, optional
            In (0.5, 1). If given, lower bounds of all ratios at this confidence must reach the lines. They
            come from the counts of validation rows, over all pairs of groups. Along one model's curve they
            are looked at from the most equal point back. The best of many models may only be lucky: half of
            the error is for the model that is best without an intervention, the other half for all others.

        Returns
        -------
        ChosenModel or None
            The fitted model with its threshold, metrics and card. None if no model reached the lines; then
            `closest` gives the one that came closest.
        """
        return self._chosen(at_least, confidence, or_closest=False)

    def closest(
        self, at_least: float | Mapping[str, float] | None = None, confidence: float | None = None
    ) -> ChosenModel | None:
        """Give the model that `best` gives or, if none reached the lines, the one that came closest.

        Parameters
        ----------
        at_least, confidence
            As for `best`.

        Returns
        -------
        ChosenModel or None
            Its `reached_` tells whether it reached the lines. None if no model can be compared: each has an
            undefined ratio, equal scores only, or exceeds the budget of decisions.
        """
        return self._chosen(at_least, confidence, or_closest=True)

    def _chosen(self, at_least: Any, confidence: float | None, *, or_closest: bool) -> ChosenModel | None:
        choice = choose_row(self.results, self._data, self._lines(at_least), confidence)
        if choice is None or not (choice.reached or or_closest):
            return None
        with Store.reading(self._store) as store:
            return train_choice(self.results, choice, self._data, store, given=self._given, fits=self._fits)

    def _lines(self, at_least: Any) -> dict[str, float]:
        """Read the line of each ratio."""
        if at_least is None:
            return self.lines
        if not isinstance(at_least, Mapping):
            return {ratio: lines_of(ratio, at_least)[ratio] for ratio in self.lines}
        lines = lines_of(at_least)
        if lines.keys() != self.lines.keys():
            raise ValueError(
                f"`at_least` must have a line for each of {', '.join(self.lines)}, got {', '.join(lines)}."
            )
        return lines

    def plot(self, *, zoom: bool = False) -> Any:
        """Draw all models by true-positive rate and the ratio that was aimed at; see `Results.plot`."""
        return self.results.plot(self.ratio, zoom=zoom)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write charts and tables of all models to one HTML page; see `Results.report`."""
        self.results.report(path)

    def dossier(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        in_use: Any = None,
        less: Sequence[float] = (0.0, 0.005, 0.01, 0.02),
    ) -> dict[str, Any]:
        """Set the model in use beside alternatives of nearly equal performance, and say what was searched.

        Alternatives are selected on validation rows: for each allowed loss of true-positive rate, the model
        of the highest ratios. All models decide at the threshold of their validation rows, and are measured
        on validation and test rows. The dossier describes a search; whether that is enough is for others to
        say.

        Parameters
        ----------
        path : path-like, optional
            The page to write (``.html``), or the same as data (``.json``).
        in_use : classifier, optional
            The model in use: fitted, with `predict_proba`, on the same columns. At its own ``threshold_``, if
            it has one, else at the one that keeps the budget on validation rows. None takes the best
            untouched model of the search.
        less : sequence of float, default=(0.0, 0.005, 0.01, 0.02)
            By how much an alternative's true-positive rate may be lower.

        Returns
        -------
        dict
            What the page shows.
        """
        content = dossier_content(
            self.results, self._data, self.lines, fits=self._fits, in_use=in_use, less=less
        )
        if path is not None:
            write_dossier(content, path)
        return content

    def to_mlflow(self, experiment_name: str = "fado", tracking_uri: str | None = None) -> pd.Series[str]:
        """Log every fit as an MLflow run; see `Results.to_mlflow`."""
        return self.results.to_mlflow(experiment_name, tracking_uri)

    def to_optuna(self, storage: Any, study_name: str | None = None) -> optuna.Study:
        """Add every fit to an Optuna study of the ratio that was aimed at; see `Results.to_optuna`."""
        return self.results.to_optuna(storage, study_name, metric=self.ratio)
