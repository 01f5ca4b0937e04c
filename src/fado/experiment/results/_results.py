"""The results of an experiment: the landscape, its frontier, and the models to choose from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado.experiment.config import EACH, Config, config_from, metric_names, ratio_name, rename_former
from fado.experiment.results._comparing import areas_of, mark_comparable
from fado.experiment.results._frame import frame_of, parts_of
from fado.experiment.results._looks import intervention_names, looks_of
from fado.experiment.results._mlflow import log_runs
from fado.experiment.results._optuna import add_trials
from fado.experiment.results._remeasure import Asked, kept_scores, remeasured_frame
from fado.experiment.results._report import RULE, points_table, write_report
from fado.experiment.results._shown import results_shown
from fado.experiment.results._winners import winners_of
from fado.experiment.store import Store, read_outcomes, read_trials
from fado.metrics import RATIO_NAMES, RATIO_TITLES, pareto_frontier
from fado.reporting import landscape_chart, select_points

if TYPE_CHECKING:
    import optuna
    import pandas as pd

    from fado.models import ChosenModel

__all__ = ["Results"]


class Results:
    """What the models of an experiment achieve.

    `Experiment.run` returns it; `Results.load` reads it from a store, finished or not.

    Parameters
    ----------
    frame : DataFrame
        One row per intervention, setting and model.
    config : Config
        The experiment's configuration.
    summary : list of dict
        Rows and positives of every part and group of the data, and whether ratios leave the group out.
    positive : str, optional
        The target and its positive label; stores of the first releases do not tell.
    settings : dict, optional
        Every setting by its place, as the store tells them; those of the configuration if there are none.
    store : pathlib.Path, optional
        The store that they come from, which may keep scores.

    Attributes
    ----------
    frame : DataFrame
        One row per trial: ``intervention`` and its settings (``algorithm``, ``utility``, ``alpha``, and those
        of every registered intervention, such as ``strength``, ``scaling`` and ``prevalence_correction``),
        the number and the parameters of the ``model``, ``training_rows``, the metrics as ``validation_...``
        and ``test_...``, and ``status``: ``done``, ``failed``, ``pending``, or ``no training set`` if the
        intervention leaves nothing to train on. If ``evaluation.groups`` is ``"each"``, a ratio is the least
        over the protected attributes, and those of each are there too, as ``test_fpr_ratio[sex]``.

    Examples
    --------
    See :class:`Experiment`.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        config: Config,
        summary: list[dict[str, Any]],
        positive: str | None = None,
        settings: dict[str, Any] | None = None,
        store: Path | None = None,
    ) -> None:
        self.frame = frame
        self.config = config
        self.summary = summary
        self.positive = positive
        self.settings = config.flat() if settings is None else settings
        self._store = store

    @classmethod
    def load(cls, store: str | os.PathLike[str]) -> Results:
        """Read the results that a store holds so far.

        Parameters
        ----------
        store : path-like
            The store's directory. If it names metrics that are not registered, a warning says so; their
            columns are there as they were measured.
        """
        results = cls.of_store(store)
        lacking = [name for name in results.config.evaluation.metrics if name not in metric_names()]
        if lacking:
            warn_user(
                f"The store {str(store)!r} has metrics that are not registered here, "
                f"{list_names(lacking)}: they are shown as they were measured."
            )
        return results

    @classmethod
    def of_store(cls, store: str | os.PathLike[str], config: Config | None = None) -> Results:
        """Do what `load` does, without its warning; with the configuration that was run, if it is at hand."""
        with Store.reading(store) as opened:
            about = opened.about
            if config is None:
                config = config_from(about["configuration"], stored=True)
            return cls(
                frame_of(read_outcomes(opened, read_trials(opened)), config),
                config,
                about["summary"],
                about.get("positive"),
                rename_former(about["settings"]),
                Path(store),
            )

    def __repr__(self) -> str:
        counts = self.frame["status"].value_counts()
        told = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        return f"Results of {len(self.frame):,} models ({told})"

    def _repr_html_(self) -> str:
        return results_shown(repr(self), self, RATIO_NAMES[0])

    @property
    def attributes(self) -> list[str]:
        """The protected attributes that are judged for themselves; none if they are crossed."""
        return list(self.config.attributes)

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """The groups too small to count in ratios: the ``group``, its ``attribute``, and its rows per part.

        The attribute is None if all are crossed.
        """
        found: dict[tuple[Any, str], dict[str, Any]] = {}
        for entry in self.summary:
            if entry.get("left_out"):
                about = {"group": entry["group"], "attribute": entry["attribute"]}
                found.setdefault((entry["attribute"], entry["group"]), about)[entry["part"]] = entry["rows"]
        return list(found.values())

    def pareto(self, metric: str, part: str = "test", *, attribute: str | None = None) -> pd.DataFrame:
        """Give the models that no other beats in both the true-positive rate and a ratio.

        Models with an undefined metric, with constant scores, or beyond the budget are never among them.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio.
        part : {"test", "validation"}, default="test"
            The part of the data that models are judged on.
        attribute : str, optional
            The protected attribute whose groups are compared, if ``evaluation.groups`` is ``"each"``; None
            is the least ratio over all of them.

        Returns
        -------
        DataFrame
            Rows of `frame`, by falling true-positive rate.
        """
        frontier = self.frame[self.on_frontier(metric, part, attribute=attribute)]
        return frontier.sort_values(f"{part}_tpr", ascending=False, kind="stable")

    def on_frontier(
        self, metric: str, part: str = "test", *, attribute: str | None = None
    ) -> npt.NDArray[np.bool_]:
        """Mark the rows of `frame` that `pareto` gives."""
        return pareto_frontier(self.comparable_points(metric, part, attribute=attribute))

    def select(self, metric: str, at_least: float = 0.8, *, attribute: str | None = None) -> pd.DataFrame:
        """Choose for every intervention the model of highest true-positive rate that keeps a ratio.

        Models are chosen on the validation part. Without one they are chosen on the test part, with a
        warning, as the paper does: their test metrics then flatter them.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio to be kept.
        at_least : float, default=0.8
            What it must reach; 0.8 is the 80 % rule.
        attribute : str, optional
            As for `pareto`.

        Returns
        -------
        DataFrame
            One row of `frame` per intervention that has such a model, the best first. With `bootstrap` in
            the configuration the metrics' intervals are among the columns.
        """
        if self.chosen_on == "test":
            warn_user(
                "There is no validation part: models are chosen on the test part, and their metrics there "
                "flatter them."
            )
        return self.best(metric, at_least, attribute=attribute)

    @property
    def chosen_on(self) -> str:
        """The part that `select` chooses on: validation, or test if there is none."""
        return parts_of(self.config)[0]

    def best(self, metric: str, at_least: float = 0.8, *, attribute: str | None = None) -> pd.DataFrame:
        """Do what `select` does, without its warning."""
        part = self.chosen_on
        points = self.comparable_points(metric, part, attribute=attribute)
        allowed = self.frame[points[:, 1] >= at_least]
        best = allowed.sort_values(f"{part}_tpr", ascending=False, kind="stable")
        return best.drop_duplicates("intervention")

    def closest(self, metric: str, at_least: float = 0.8, *, attribute: str | None = None) -> pd.DataFrame:
        """Choose for every intervention that `best` lacks the model that comes closest to the ratio.

        Returns
        -------
        DataFrame
            One row of `frame` per intervention whose models can be compared and all miss the ratio, the
            closest first; of models that come as close, that of the higher true-positive rate.
        """
        part = self.chosen_on
        points = self.comparable_points(metric, part, attribute=attribute)
        reached = set(self.frame.loc[points[:, 1] >= at_least, "intervention"])
        order = np.lexsort([-points[:, 0], -points[:, 1]])  # what cannot be compared comes last
        ordered = self.frame.iloc[order[~np.isnan(points[order]).any(axis=1)]]
        return ordered[~ordered["intervention"].isin(reached)].drop_duplicates("intervention")

    def winners(self, metric: str, at_least: float = 0.8, *, attribute: str | None = None) -> pd.DataFrame:
        """Tell of every intervention its best model above a line, or the one that comes closest.

        Models are chosen as `select` does, and told by what they achieve on the test part.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio to be kept.
        at_least : float, default=0.8
            What it must reach on the part that models are chosen on.
        attribute : str, optional
            As for `pareto`.

        Returns
        -------
        DataFrame
            ``intervention``, its ``settings`` in words, ``tpr`` and ``ratio`` on the test part, with ``_low``
            and ``_high`` if there are intervals, the ``model``, and whether the line was ``reached``. If each
            attribute is judged for itself, ``ratio[sex]`` and the like too. First those that reached it, by
            falling true-positive rate; then the closest, by falling ratio.
        """
        return winners_of(self, metric, at_least, attribute)

    def hypervolume(self, metric: str, n_boot: int = 200, *, attribute: str | None = None) -> pd.DataFrame:
        """Measure for every intervention the area of the landscape that its models cover.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio; the other side of the area is the true-positive rate, on the test part.
        n_boot : int, default=200
            Resamples of the models for the interval.
        attribute : str, optional
            As for `pareto`.

        Returns
        -------
        DataFrame
            Indexed by intervention: ``hypervolume``, ``low`` (which 97.5 % of the areas over resamples of the
            drawn models exceed, the same resamples for every intervention), ``high``, and ``models``, how
            many points it is made of. A resample lacks some models and covers no more than all do: the range
            says how much hangs on a few of them, and ends at the area itself. More points cover more:
            compare interventions of as many.
        """
        return areas_of(self, metric, n_boot, attribute)

    def plot(self, metric: str, *, zoom: bool = False, attribute: str | None = None) -> Any:
        """Draw the landscape as the paper does.

        The true-positive rate is on x, the ratio on y; circles are baselines, triangles sampling, squares
        reweighing; colour runs from green (alpha 0, fairness) to red (alpha 1, performance); models on the
        Pareto frontier are large and opaque; a line marks the 80 % rule.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio.
        zoom : bool, default=False
            Whether to show the corner of the best models instead of all.
        attribute : str, optional
            As for `pareto`.

        Returns
        -------
        altair.Chart
            It shows in notebooks; ``chart.save("landscape.png")`` writes PNG, SVG, PDF or HTML.
        """
        points = select_points(points_table(self, [(metric, attribute)]), 0)
        title = RATIO_TITLES[metric] + ("" if attribute is None else f", {attribute}")
        return landscape_chart(points, title=title, rule=RULE, looks=looks_of(self.frame), zoom=zoom)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one HTML page that needs no network.

        Parameters
        ----------
        path : path-like
            Where to write it; ends in ``.html``.
        """
        write_report(self, Path(path))

    @property
    def interventions(self) -> list[str]:
        """The interventions, in the order of the registry; those that it does not know come last."""
        return intervention_names(self.frame)

    def comparable_points(self, metric: str, part: str = "test", *, attribute: str | None = None) -> Any:
        """Give true-positive rate and ratio of every row, NaN where a model may not be compared."""
        if metric not in RATIO_NAMES:
            raise ValueError(f"`metric` must be {' or '.join(map(repr, RATIO_NAMES))}, got {metric!r}.")
        self._check_part(part)
        self._check_attribute(attribute)
        names = [f"{part}_tpr", f"{part}_{ratio_name(metric, attribute)}"]
        points = self.frame[names].to_numpy(dtype=np.float64, copy=True)
        comparable = mark_comparable(self.frame, part, self.config.evaluation.budget)
        points[~comparable | np.isnan(points).any(axis=1)] = np.nan
        return points

    def scores(self, row: Any, part: str = "test") -> npt.NDArray[np.float64]:
        """Give the scores of one model, of the rows of a part in their order.

        Parameters
        ----------
        row : int or Series
            The model: a label of the frame's index, or a row of the frame.
        part : {"test", "validation"}, default="test"
            The part.

        Raises
        ------
        ValueError
            If scores are not kept, by ``evaluation.keep_scores``, or the model has none.
        """
        self._check_part(part)
        return kept_scores(self._store, getattr(row, "name", row))[part]

    def remeasure(
        self,
        metrics: Mapping[str, Callable[..., Any]] | Sequence[str] = (),
        *,
        max_fpr: float | None = None,
        budget: Any = None,
        threshold: str | float | None = None,
        data: Any = None,
    ) -> pd.DataFrame:
        """Measure the models again from their kept scores, without a fit.

        Parameters
        ----------
        metrics : mapping of str to callable, or sequence of str
            Further metrics: functions by name, as for `Experiment`, or names of registered ones. Those of
            the configuration are measured too.
        max_fpr : float, optional
            Another false-positive budget.
        budget : Budget or pair of kind and limit, optional
            Another budget, as for `fado.metrics.evaluate`.
        threshold : {"test", "validation"} or float, optional
            Where the threshold of the test part comes from, or a fixed one.
        data : path-like or Data, optional
            The table, if it is not where the configuration says; it must hold the same rows.

        Returns
        -------
        DataFrame
            As `frame`, with other metrics. With nothing else asked for, it is equal to it.
        """
        asked = Asked(metrics, max_fpr, budget, threshold)
        return remeasured_frame(self._store, self.config, asked, data)

    def fit_best(
        self,
        metric: str,
        at_least: float = 0.8,
        *,
        confidence: float | None = None,
        data: Any = None,
        estimator: Any = None,
    ) -> ChosenModel | None:
        """Train the best model above a line once more, and give it with its threshold and its card.

        It is chosen on the validation part, among all interventions whose models decide alone; without such a
        part on the test part, as `select` does.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio to be kept.
        at_least : float, default=0.8
            What it must reach.
        confidence : float, optional
            As for `Frontier.best`; scores must be kept, by ``evaluation.keep_scores``.
        data : path-like or Data, optional
            The table, if it is not where the configuration says; it must hold the same rows.
        estimator : estimator, optional
            What was handed over to the experiment, if something was.

        Returns
        -------
        ChosenModel or None
            None if no model reached the line.
        """
        from fado.experiment.frontier import fit_best_of

        return fit_best_of(self, metric, at_least, confidence=confidence, data=data, estimator=estimator)

    def to_mlflow(self, experiment_name: str = "fado", tracking_uri: str | None = None) -> pd.Series[str]:
        """Log every row of `frame` as a run of MLflow, once however often it is called.

        A run has the intervention, its settings and the model's parameters as parameters, all metrics that
        are defined, and the tags ``fado.store``, ``fado.trial``, ``fado.status`` and ``fado.version``. In
        names, ``fpr_ratio[age>=50]`` becomes ``fpr_ratio/age ge 50``. Rows that are pending are left for the
        next time.

        Parameters
        ----------
        experiment_name : str, default="fado"
            MLflow's experiment; made if there is none.
        tracking_uri : str, optional
            Where runs are kept, such as ``"sqlite:///mlflow.db"`` or a server's address; None is MLflow's own
            setting.

        Returns
        -------
        Series of str
            The runs' ids, by the frame's index.
        """
        return log_runs(self, experiment_name, tracking_uri)

    def to_optuna(
        self,
        storage: Any,
        study_name: str | None = None,
        *,
        metric: str = "fpr_ratio",
        part: str | None = None,
        attribute: str | None = None,
    ) -> optuna.Study:
        """Add every row of `frame` to a study of Optuna, once however often it is called.

        The study maximises the true-positive rate and a ratio: its ``best_trials`` are those of `pareto`. A
        model that may not be compared is there as pruned, one that failed as failed. All other columns are
        the trials' user attributes.

        Parameters
        ----------
        storage : str, path-like or optuna.storages.BaseStorage
            The file of a SQLite database, or any storage of Optuna; ``optuna-dashboard sqlite:///FILE`` shows
            it.
        study_name : str, optional
            None names it by the experiment and the ratio.
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}, default="fpr_ratio"
            The ratio.
        part : {"validation", "test"}, optional
            Where both are measured; None is the part that models are chosen on.
        attribute : str, optional
            As for `pareto`.

        Returns
        -------
        optuna.Study
        """
        return add_trials(self, storage, study_name, metric, part or self.chosen_on, attribute)

    @property
    def store(self) -> Path:
        """The store that these results come from."""
        if self._store is None:
            raise ValueError("These results do not come from a store: load them from one.")
        return self._store

    def _check_part(self, part: str) -> None:
        parts = parts_of(self.config)
        if part not in parts:
            raise ValueError(f"`part` must be {' or '.join(map(repr, parts))}, got {part!r}.")

    def _check_attribute(self, attribute: str | None) -> None:
        if attribute is None or attribute in self.attributes:
            return
        if not self.attributes:
            raise ValueError(
                f"`attribute` is {attribute!r}, and the protected attributes of this experiment are crossed: "
                f'set `evaluation.groups = "{EACH}"` to judge each for itself.'
            )
        known = " or ".join(map(repr, self.attributes))
        raise ValueError(f"`attribute` must be {known}, got {attribute!r}.")
