"""The results of an experiment: the landscape, its frontier, and the models to choose from it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fado.experiment.config import Config, config_from, rename_former
from fado.experiment.results._frame import frame_of, parts_of
from fado.experiment.results._looks import intervention_names, looks_of
from fado.experiment.results._report import RULE, points_table, write_report
from fado.experiment.store import DONE, Store
from fado.metrics import RATIO_NAMES, RATIO_TITLES, hypervolume, pareto_frontier
from fado.reporting import landscape_chart, select_points

if TYPE_CHECKING:
    import pandas as pd

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
        Rows and positives of every part and group of the data.
    positive : str, optional
        The target and its positive label; stores of the first releases do not tell.
    settings : dict, optional
        Every setting by its place, as the store tells them; those of the configuration if there are none.

    Attributes
    ----------
    frame : DataFrame
        One row per trial: ``intervention`` and its settings (``algorithm``, ``utility``, ``alpha``, and those
        of every registered intervention, such as ``strength``, ``scaling`` and ``prevalence_correction``),
        the number and the parameters of the ``model``, ``training_rows``, the metrics as ``validation_...``
        and ``test_...``, and ``status``: ``done``, ``failed``, ``pending``, or ``no training set`` if the
        intervention leaves nothing to train on.

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
    ) -> None:
        self.frame = frame
        self.config = config
        self.summary = summary
        self.positive = positive
        self.settings = config.flat() if settings is None else settings

    @classmethod
    def load(cls, store: str | os.PathLike[str]) -> Results:
        """Read the results that a store holds so far.

        Parameters
        ----------
        store : path-like
            The store's directory.
        """
        with Store.reading(store) as opened:
            config = config_from(opened.about["configuration"], stored=True)
            about = opened.about
            return cls(
                frame_of(opened, config),
                config,
                about["summary"],
                about.get("positive"),
                rename_former(about["settings"]),
            )

    def __repr__(self) -> str:
        counts = self.frame["status"].value_counts()
        told = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        return f"Results of {len(self.frame):,} models ({told})"

    def pareto(self, metric: str, part: str = "test") -> pd.DataFrame:
        """Give the models that no other beats in both the true-positive rate and a ratio.

        Models with an undefined metric, with constant scores, or beyond the false-positive budget are never
        among them.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio.
        part : {"test", "validation"}, default="test"
            The part of the data that models are judged on.

        Returns
        -------
        DataFrame
            Rows of `frame`, by falling true-positive rate.
        """
        frontier = self.frame[self.on_frontier(metric, part)]
        return frontier.sort_values(f"{part}_tpr", ascending=False, kind="stable")

    def on_frontier(self, metric: str, part: str = "test") -> Any:
        """Mark the rows of `frame` that `pareto` gives."""
        return pareto_frontier(self.comparable_points(metric, part))

    def select(self, metric: str, at_least: float = 0.8) -> pd.DataFrame:
        """Choose for every intervention the model of highest true-positive rate that keeps a ratio.

        Models are chosen on the validation part. Without one they are chosen on the test part, with a
        warning, as the paper does: their test metrics then flatter them.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio to be kept.
        at_least : float, default=0.8
            What it must reach; 0.8 is the 80 % rule.

        Returns
        -------
        DataFrame
            One row of `frame` per intervention that has such a model, the best first. With `bootstrap` in
            the configuration the metrics' intervals are among the columns.
        """
        if self.chosen_on == "test":
            warnings.warn(
                "There is no validation part: models are chosen on the test part, and their metrics there "
                "flatter them.",
                UserWarning,
                stacklevel=2,
            )
        return self.best(metric, at_least)

    @property
    def chosen_on(self) -> str:
        """The part that `select` chooses on: validation, or test if there is none."""
        return parts_of(self.config)[0]

    def best(self, metric: str, at_least: float = 0.8) -> pd.DataFrame:
        """Do what `select` does, without its warning."""
        part = self.chosen_on
        points = self.comparable_points(metric, part)
        allowed = self.frame[points[:, 1] >= at_least]
        best = allowed.sort_values(f"{part}_tpr", ascending=False, kind="stable")
        return best.drop_duplicates("intervention")

    def hypervolume(self, metric: str, n_boot: int = 200) -> pd.DataFrame:
        """Measure for every intervention the area of the landscape that its models cover.

        Parameters
        ----------
        metric : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
            The ratio; the other side of the area is the true-positive rate, on the test part.
        n_boot : int, default=200
            Resamples of the models for the interval.

        Returns
        -------
        DataFrame
            Indexed by intervention: ``hypervolume``, ``low`` (which 97.5 % of the areas over resamples of the
            drawn models exceed, the same resamples for every intervention), ``high``, and ``models``, how
            many points it is made of. A resample lacks some models and covers no more than all do: the range
            says how much hangs on a few of them, and ends at the area itself. More points cover more:
            compare interventions of as many.
        """
        import pandas as pd

        points = self.comparable_points(metric, "test")
        models, count = self.frame["model"].to_numpy(), self.config.models.count
        draws = np.random.default_rng(self.config.seed).integers(0, count, size=(n_boot, count))
        found = {}
        for name in self.interventions:
            own = (self.frame["intervention"] == name).to_numpy() & ~np.isnan(points).any(axis=1)
            mine, of_model = points[own], models[own]
            areas = [hypervolume(mine[np.isin(of_model, draw)]) for draw in draws]
            low = np.quantile(areas, 0.025) if areas else np.nan
            area = hypervolume(mine)
            found[name] = {"hypervolume": area, "low": low, "high": area, "models": int(own.sum())}
        return pd.DataFrame.from_dict(found, orient="index").rename_axis("intervention")

    def plot(self, metric: str, *, zoom: bool = False) -> Any:
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

        Returns
        -------
        altair.Chart
            It shows in notebooks; ``chart.save("landscape.png")`` writes PNG, SVG, PDF or HTML.
        """
        points, looks = select_points(points_table(self, [metric]), 0), looks_of(self.frame)
        return landscape_chart(points, title=RATIO_TITLES[metric], rule=RULE, looks=looks, zoom=zoom)

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

    def comparable_points(self, metric: str, part: str = "test") -> Any:
        """Give true-positive rate and ratio of every row, NaN where a model may not be compared."""
        if metric not in RATIO_NAMES:
            raise ValueError(f"`metric` must be {' or '.join(map(repr, RATIO_NAMES))}, got {metric!r}.")
        parts = parts_of(self.config)
        if part not in parts:
            raise ValueError(f"`part` must be {' or '.join(map(repr, parts))}, got {part!r}.")
        points = self.frame[[f"{part}_tpr", f"{part}_{metric}"]].to_numpy(dtype=np.float64, copy=True)
        in_budget = self.frame[f"{part}_fpr"] <= self.config.evaluation.max_fpr
        comparable = in_budget.to_numpy() & (self.frame["status"] == DONE).to_numpy()
        points[~comparable | np.isnan(points).any(axis=1)] = np.nan
        return points
