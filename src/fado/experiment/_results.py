"""The results of an experiment: the landscape, its frontier, and the selection of models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_choice
from fado._messages import warn_user
from fado.experiment._choice import chosen_rows
from fado.experiment._config import EACH, Config, ratio_name
from fado.experiment._frame import frame_of, is_whole, parts_of, remeasured_frame
from fado.experiment._plugins import lacking_plugins
from fado.experiment._results_page import (
    ENDS,
    RULE,
    describe_settings,
    intervention_names,
    looks_of,
    notes_of,
    points_of,
    results_shown,
    warn_of_lacking,
    write_report,
)
from fado.experiment._store import Store
from fado.experiment._trial import DONE
from fado.metrics import RATIO_NAMES, RATIO_TITLES, hypervolume, pareto_frontier
from fado.reporting import landscape_chart

if TYPE_CHECKING:
    import pandas as pd

    from fado.models import ChosenModel


# The results whose store is open, and the store; each thread has its own.
_OPENED: ContextVar[tuple[Any, Any]] = ContextVar("_OPENED", default=(None, None))


class Results:
    """The metrics of all models of an experiment, and methods to select among them.

    `Experiment.run` returns it. `Results.load` reads it from a store, also while the experiment is running.

    Parameters
    ----------
    frame : DataFrame
        One row per trial: an intervention, its settings and a model.
    config : Config
        The experiment's configuration.
    summary : list of dict
        Rows and positives of every group in every part of the data, and whether ratios leave the group out.
    positive : str, optional
        The target and its positive label, if known.
    settings : dict, optional
        All settings by their keys; None takes those of `config`.
    store : pathlib.Path or Store, optional
        The directory of the store that the results come from, or a store in memory. Scores are read from it.
    lacking : sequence of str
        The valuators, utilities and interventions of the experiment that are not registered here.

    Attributes
    ----------
    frame : DataFrame
        One row per trial: ``intervention`` and its settings (``algorithm``, ``utility``, ``alpha``, and those
        of every registered intervention, such as ``strength``, ``scaling`` and ``prevalence_correction``),
        the number and the parameters of the ``model``, ``training_rows``, the metrics as ``validation_...``
        and ``test_...``, and ``status``: ``done``, ``failed``, ``pending``, or ``no training set`` if the
        intervention leaves nothing to train on. If ``evaluation.groups`` is ``"each"``, a ratio is the lowest
        of all protected attributes, and each attribute also has a column, such as ``test_fpr_ratio[sex]``.

    See Also
    --------
    fado.experiment.Experiment : Runs an experiment.
    fado.experiment.Frontier : The results of a search, with the models.

    References
    ----------
    Pombal et al. (2023). Fairness-aware data valuation for supervised learning. arXiv:2303.16963.

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
        store: Path | Store | None = None,
        lacking: Sequence[str] = (),
    ) -> None:
        self.frame = frame
        self.config = config
        self.summary = summary
        self.positive = positive
        self.settings = config.flat() if settings is None else settings
        self.store = store
        self.lacking = list(lacking)

    @classmethod
    def load(cls, store: str | os.PathLike[str]) -> Results:
        """Read the results that a store holds so far.

        Parameters
        ----------
        store : path-like
            The directory of the store. A warning names what the experiment used and is not registered here.
        """
        warn_of_lacking(results := cls.of_store(store), store)
        return results

    @classmethod
    def of_store(cls, store: str | os.PathLike[str], config: Config | None = None) -> Results:
        """Load results without a warning; `config` None takes that of the store."""
        with Store.reading(store) as opened:
            return cls.of(opened, config)

    @classmethod
    def of(cls, store: Store, config: Config | None = None) -> Results:
        """Return the results of an open store; `config` None takes that of the store."""
        about = store.about
        config = config or about.configuration
        return cls(
            frame_of(store.trials, config),
            config,
            about.summary,
            about.positive,
            None,
            store.path or store,
            lacking_plugins(config, about.plugins),
        )

    def __repr__(self) -> str:
        counts = self.frame["status"].value_counts()
        statuses = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        return f"Results of {len(self.frame):,} models ({statuses})"

    def _repr_html_(self) -> str:
        return results_shown(repr(self), self, RATIO_NAMES[0])

    @property
    def attributes(self) -> list[str]:
        """The protected attributes that are measured one by one; empty if they are combined."""
        return list(self.config.attributes)

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """The groups that are not compared, because they are too small or unknown, one dict each.

        It has ``group``, ``attribute`` (None if attributes are combined), and the number of rows per part.
        """
        groups: dict[tuple[Any, str], dict[str, Any]] = {}
        for entry in self.summary:
            if entry.get("left_out"):
                about = {"group": entry["group"], "attribute": entry["attribute"]}
                groups.setdefault((entry["attribute"], entry["group"]), about)[entry["part"]] = entry["rows"]
        return list(groups.values())

    @property
    def notes(self) -> list[str]:
        """Sentences about the results, such as how many models an intervention does not change."""
        return notes_of(self)

    def pareto(self, metric: str, part: str = "test", *, attribute: str | None = None) -> pd.DataFrame:
        """Return the Pareto frontier: models that no other beats in both true-positive rate and a ratio.

        Models with an undefined metric, with equal scores for all rows, or over the budget are left out.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio.
        part : {"test", "validation"}, default="test"
            The part of the data that models are measured on.
        attribute : str, optional
            The protected attribute whose groups are compared, if ``evaluation.groups`` is ``"each"``. None
            takes the lowest ratio of all attributes.

        Returns
        -------
        DataFrame
            Rows of `frame`, by true-positive rate from high to low.
        """
        frontier = self.frame[self.on_frontier(metric, part, attribute=attribute)]
        return frontier.sort_values(f"{part}_tpr", ascending=False, kind="stable")

    def on_frontier(
        self, metric: str, part: str = "test", *, attribute: str | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows of `frame` that `pareto` returns; same parameters."""
        return pareto_frontier(self.comparable_points(metric, part, attribute=attribute))

    def select(self, metric: str, at_least: float = 0.8, *, attribute: str | None = None) -> pd.DataFrame:
        """Select for every intervention the model of highest true-positive rate whose ratio reaches a line.

        Models are selected on validation data. Without a validation part they are selected on test data, as
        in the paper, with a warning: their test metrics are then optimistic.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio.
        at_least : float, default=0.8
            The line that the ratio must reach; 0.8 is the 80 % rule.
        attribute : str, optional
            As for `pareto`.

        Returns
        -------
        DataFrame
            One row of `frame` per intervention that has such a model, the best first, with the intervals of
            the metrics if the configuration sets ``evaluation.bootstrap``.

        See Also
        --------
        closest : Models that come closest to a line that they miss.
        fit_best : Trains the best model again.
        """
        if self.chosen_on == "test":
            warn_user(
                "There is no validation part: models are selected on the test part, so their test metrics "
                "are optimistic."
            )
        return self.best(metric, at_least, attribute=attribute)

    @property
    def chosen_on(self) -> str:
        """The part that selects models: ``"validation"``, or ``"test"`` if there is no validation part."""
        return parts_of(self.config)[0]

    def best(self, metric: str, at_least: float = 0.8, *, attribute: str | None = None) -> pd.DataFrame:
        """Select models without the warning of `select`; same parameters."""
        chosen = chosen_rows(self, metric, at_least, attribute)
        return chosen[chosen["reached"]].drop(columns="reached")

    def closest(self, metric: str, at_least: float = 0.8, *, attribute: str | None = None) -> pd.DataFrame:
        """Select the model closest to a line, for every intervention whose models all miss it.

        The parameters are those of `select`.

        Returns
        -------
        DataFrame
            One row of `frame` per such intervention, the closest first. Of equally close models, the one of
            the highest true-positive rate is selected.
        """
        chosen = chosen_rows(self, metric, at_least, attribute)
        return chosen[~chosen["reached"]].drop(columns="reached")

    def winners(self, metric: str, at_least: float = 0.8, *, attribute: str | None = None) -> pd.DataFrame:
        """Return for every intervention its best model above a line, or the one that comes closest.

        Models are selected as by `select`. The metrics are on test data.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio.
        at_least : float, default=0.8
            The line that the ratio must reach on the part that selects models.
        attribute : str, optional
            As for `pareto`.

        Returns
        -------
        DataFrame
            ``intervention``, its ``settings`` in words, ``tpr`` and ``ratio`` on test data, with ``_low`` and
            ``_high`` if there are intervals, the ``model``, and whether the line was ``reached``. If
            attributes are measured one by one, also ``ratio[sex]`` and so on. Models that reached the line
            come first, by true-positive rate; then the others, by ratio.
        """
        import pandas as pd

        chosen = chosen_rows(self, metric, at_least, attribute)
        shown = {"tpr": "test_tpr", "ratio": f"test_{ratio_name(metric, attribute)}"}
        shown |= {ratio_name("ratio", name): f"test_{ratio_name(metric, name)}" for name in self.attributes}
        table = pd.DataFrame(
            {
                "intervention": chosen["intervention"],
                "settings": pd.Series(describe_settings(self.frame), self.frame.index)[chosen.index],
                **{
                    f"{name}{end}": chosen[f"{column}{end}"]
                    for name, column in shown.items()
                    for end in ENDS
                    if f"{column}{end}" in chosen
                },
                "model": chosen["model"],
                "reached": chosen["reached"],
            }
        )
        best = table[table["reached"]].sort_values("tpr", ascending=False, kind="stable")
        closest = table[~table["reached"]].sort_values("ratio", ascending=False, kind="stable")
        return pd.concat([best, closest], ignore_index=True)

    def hypervolume(
        self, metric: str, n_boot: int = 200, *, part: str = "test", attribute: str | None = None
    ) -> pd.DataFrame:
        """Return for every intervention the area of the landscape that its models dominate.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio; the other side of the area is the true-positive rate.
        n_boot : int, default=200
            The number of bootstrap samples of models, from which ``low`` is computed.
        part : {"test", "validation"}, default="test"
            The part of the data that models are measured on.
        attribute : str, optional
            As for `pareto`.

        Returns
        -------
        DataFrame
            Indexed by intervention: the area ``hypervolume``, its range ``low`` to ``high``, and the number
            of ``models``. ``low`` is the area that 97.5 % of the bootstrap samples exceed; ``high`` is the
            area itself, which no sample exceeds. A wide range means that the area depends on a few models.
            More models dominate more area: compare interventions with the same number of models.
        """
        import pandas as pd

        points = self.comparable_points(metric, part, attribute=attribute)
        comparable = ~np.isnan(points).any(axis=1) & is_whole(self.frame)
        models, count = self.frame["model"].to_numpy(), self.config.models.count
        draws = np.random.default_rng(self.config.seed).integers(0, count, size=(n_boot, count))
        table = {}
        for name in self.interventions:
            rows = (self.frame["intervention"] == name).to_numpy() & comparable
            areas = [hypervolume(points[rows][np.isin(models[rows], draw)]) for draw in draws]
            low, area = np.quantile(areas, 0.025) if areas else np.nan, hypervolume(points[rows])
            table[name] = {"hypervolume": area, "low": low, "high": area, "models": int(rows.sum())}
        return pd.DataFrame.from_dict(table, orient="index").rename_axis("intervention")

    def plot(self, metric: str, *, zoom: bool = False, attribute: str | None = None) -> Any:
        """Draw the landscape: a chart of all models on test data, as in the paper; its title says so.

        The true-positive rate is on x, the ratio on y. Circles are baselines, triangles sampling, squares
        reweighing. Colours run from purple (alpha 0, fairness) to green (alpha 1, performance) and grow
        lighter, so that colour-blind readers can distinguish them. Models on the Pareto frontier are large
        and opaque. A line marks the 80 % rule.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio.
        zoom : bool, default=False
            Whether to show only the corner with the best models, which has the whole Pareto frontier.
        attribute : str, optional
            As for `pareto`.

        Returns
        -------
        altair.Chart
            Notebooks show it. ``chart.save("landscape.png")`` writes it as PNG, SVG, PDF or HTML.
        """
        points = points_of(self, metric, attribute)
        title = f"{RATIO_TITLES[metric]}{'' if attribute is None else f', {attribute}'}, on test rows"
        return landscape_chart(points, title=title, rule=RULE, looks=looks_of(self.frame), zoom=zoom)

    def report(self, path: str | os.PathLike[str], metric: str = "fpr_ratio", at_least: float = 0.8) -> None:
        """Write charts, the best models and the configuration to one HTML page that needs no network.

        The page shows all models on the part that selects them, and only the selected model on test data,
        unless the reader asks for all.

        Parameters
        ----------
        path : path-like
            Where to write it; it must end in ``.html``.
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}, default="fpr_ratio"
            The ratio that the page shows first; it has all ratios.
        at_least : float, default=0.8
            The line that the page shows first, in [0, 1].
        """
        write_report(self, Path(path), metric, at_least)

    @property
    def interventions(self) -> list[str]:
        """The interventions of `frame` in the order of registration; unregistered ones come last."""
        return intervention_names(self.frame)

    def comparable_points(self, metric: str, part: str = "test", *, attribute: str | None = None) -> Any:
        """Return true-positive rate and ratio of every row, NaN if it cannot be compared; see `pareto`."""
        check_choice("metric", metric, RATIO_NAMES)
        check_choice("part", part, tuple(parts_of(self.config)))
        if attribute is not None and not self.attributes:
            raise ValueError(
                f"`attribute` is {attribute!r}, but the protected attributes of this experiment are crossed: "
                f'set `evaluation.groups = "{EACH}"` to measure each one separately.'
            )
        if attribute is not None:
            check_choice("attribute", attribute, self.config.attributes)
        names = [f"{part}_tpr", f"{part}_{ratio_name(metric, attribute)}"]
        points = self.frame[names].to_numpy(dtype=np.float64, copy=True)
        budget = self.config.evaluation.budget
        spent = [name for name in ("fpr", "selection_rate", "selected") if f"{part}_{name}" in self.frame]
        rows = self.frame[[f"{part}_{name}" for name in spent]].to_numpy(dtype=np.float64)
        kept = [budget.kept(dict(zip(spent, row, strict=True))) for row in rows]
        comparable = np.array(kept, dtype=np.bool_) & (self.frame["status"] == DONE).to_numpy()
        points[~comparable | np.isnan(points).any(axis=1)] = np.nan
        return points

    def scores(self, row: Any, part: str = "test") -> npt.NDArray[np.float64]:
        """Return the scores of one model for the rows of a part, in the order of the rows.

        To read those of many models, call it within ``with results.opened():``, which reads the store once.

        Parameters
        ----------
        row : int or Series
            The model: a label of the frame's index, or a row of the frame.
        part : {"test", "validation"}, default="test"
            The part of the data.

        Raises
        ------
        ValueError
            If the store keeps no scores (set ``evaluation.keep_scores``), or the model is not done.
        """
        check_choice("part", part, tuple(parts_of(self.config)))
        row = getattr(row, "name", row)
        with self.opened("that keeps scores") as store:
            trials = store.trials
            if not isinstance(row, int | np.integer) or not 0 <= row < len(trials):
                raise ValueError(
                    f"`row` must be a label of the frame's index, 0 to {len(trials) - 1}, got {row!r}."
                )
            if trials[row].status != DONE:
                raise ValueError(f"The model in row {row} is not done, and has no scores.")
            return store.scores(trials[row].fit)[part]

    def remeasure(
        self,
        metrics: Mapping[str, Callable[..., Any]] | Sequence[str] = (),
        *,
        max_fpr: float | None = None,
        budget: Any = None,
        threshold: str | float | None = None,
        data: Any = None,
    ) -> pd.DataFrame:
        """Measure all models again from the saved scores, without training.

        It needs ``evaluation.keep_scores``. Pass at most one of `max_fpr`, `budget` and a fixed `threshold`.

        Parameters
        ----------
        metrics : mapping of str to callable, or sequence of str
            Metrics in addition to those of the configuration: functions by name, or names of registered
            metrics.
        max_fpr : float, optional
            Another limit of the false-positive rate.
        budget : Budget or pair of kind and limit, optional
            Another budget, as for `fado.metrics.evaluate`.
        threshold : {"test", "validation"} or float, optional
            The part whose rows set the threshold of the test part, or a fixed threshold.
        data : path-like or Data, optional
            The table, if it is not where the configuration says; it must hold the same rows.

        Returns
        -------
        DataFrame
            `frame` with the new metrics. Without arguments it equals `frame`.
        """
        with self.opened("that keeps scores") as store:
            return remeasured_frame(store, self.config, metrics, max_fpr, budget, threshold, data)

    def fit_best(
        self,
        metric: str,
        at_least: float = 0.8,
        *,
        confidence: float | None = None,
        data: Any = None,
        estimator: Any = None,
    ) -> ChosenModel | None:
        """Train the best model above a line again, and return it with its threshold and its card.

        It is the best model of `select`, without interventions whose models cannot be saved.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio.
        at_least : float, default=0.8
            The line that it must reach, in (0, 1].
        confidence : float, optional
            As for `Frontier.best`; it needs ``evaluation.keep_scores`` in the configuration.
        data : path-like or Data, optional
            The table, if it is not where the configuration says; it must hold the same rows.
        estimator : estimator, optional
            The estimator that was passed to `Experiment`, if any; it must be the same.

        Returns
        -------
        ChosenModel or None
            None if no model reached the line.

        Raises
        ------
        ValueError
            If several attributes are measured one by one, or data or estimator are not the experiment's.
        """
        from fado.experiment._frontier import fit_best_of

        return fit_best_of(self, metric, at_least, confidence=confidence, data=data, estimator=estimator)

    @contextmanager
    def opened(self, which: str = "") -> Iterator[Store]:
        """Open the store of these results for reading; without one, raise a ValueError.

        A store is checked as a whole when it is opened. Within this block, `scores` does not open it again.
        """
        if self.store is None:
            wanted = f"one {which}".rstrip()
            raise ValueError(f"These results do not come from a store: load them from {wanted}.")
        results, store = _OPENED.get()
        if results is self:
            yield store
            return
        with nullcontext(self.store) if isinstance(self.store, Store) else Store.reading(self.store) as store:
            outer = _OPENED.set((self, store))
            try:
                yield store
            finally:
                _OPENED.reset(outer)
