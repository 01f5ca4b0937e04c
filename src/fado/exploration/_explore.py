"""The public name: explore a table and its values."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any

from fado._storage import replacing
from fado.exploration._consequences import check_retraining
from fado.exploration._effects import effect_frames
from fado.exploration._material import read_material
from fado.exploration._summary import summarise
from fado.reporting import explore_chart, explore_page, page_in_frame
from fado.tabular import MIN_GROUP_SIZE, read_problem
from fado.valuation import Valuation, read_stability

if TYPE_CHECKING:
    import altair
    import pandas as pd

__all__ = ["Exploration", "explore"]


class Exploration:
    """What there is to see in a table and its values, as data, as a page and as single charts.

    `explore` and `explore_files` make it.

    Parameters
    ----------
    summary : dict
        All that the page shows.
    """

    def __init__(self, summary: dict[str, Any]) -> None:
        self._summary = summary

    def to_dict(self) -> dict[str, Any]:
        """Give all that the page shows, as plain data that JSON can hold."""
        return copy.deepcopy(self._summary)

    def html(self) -> str:
        """Give the page as HTML text that loads nothing from elsewhere."""
        return explore_page(self._summary)

    def write_html(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, which appears whole or not at all.

        Parameters
        ----------
        path : path-like
            Where to write.
        """
        text = self.html()
        with replacing(path, "The page") as temporary:
            temporary.write_text(text, encoding="utf-8")

    def effects(self, attribute: str | None = None) -> dict[str, pd.DataFrame]:
        """Give tables of what rows do to the model, and of what changing them did.

        Parameters
        ----------
        attribute : str, optional
            A protected attribute; None is the first.

        Returns
        -------
        dict of str to DataFrame
            ``cells``: per group and label, the rows and the sums of their effects on the ratio and on the
            performance. ``slices``: rows that make groups less equal; what removing them changed, with its
            standard error, as ``measured_ratio_change``, ``measured_ratio_error`` and the same of the
            performance, NaN for slices that no model was trained without; ``ratio_change`` and
            ``performance_change`` are forecasts, NaN unless forecasts agree with what was measured on this
            table. ``changes``: the same for every ``action`` that was tried on a slice: "remove", "halve"
            (the weights) and "relabel" (the rows whose label models contradict). ``curve``: for the most
            harmful 2, 5 and 10 % of the rows.

        Raises
        ------
        ValueError
            If there is no such attribute, or the values are no effects and nothing was measured.

        Examples
        --------
        >>> from lightgbm import LGBMClassifier
        >>> from fado import explore
        >>> from fado.datasets import make_account_fraud
        >>> X = make_account_fraud(8000, variant="II", random_state=0).drop(columns="month")
        >>> y, old = X.pop("fraud_bool"), (X.pop("customer_age") >= 50).rename("old")
        >>> model = LGBMClassifier(n_estimators=20, num_leaves=7)
        >>> seen = explore(X, y, sensitive_features=old, estimator=model, retrain=24, random_state=0)
        >>> found = seen.effects("old")
        >>> found["curve"][["share", "rows"]]
           share  rows
        0   0.02   160
        1   0.05   400
        2   0.10   800
        >>> [name for name in found["slices"] if name.startswith("measured_ratio")]
        ['measured_ratio_change', 'measured_ratio_error']
        """
        return effect_frames(self._summary, attribute)

    def chart(
        self, name: str, attribute: str | None = None, *, utility: str = "linear", alpha: float = 0.5
    ) -> altair.Chart | altair.LayerChart | altair.FacetChart | altair.HConcatChart:
        """Draw one chart with Altair.

        Parameters
        ----------
        name : str
            "group_size", "prevalence", "separability", "base", "values", "plane", "utility", "columns" or
            "suspicious"; also "aim" if the values came with probabilities, "effects" if they are effects or
            changes were measured, "removal" if changes were measured, and "pool" if there is a pool.
        attribute : str, optional
            A protected attribute; None is the first.
        utility : {"linear", "difference", "cobb-douglas"}, default="linear"
            For the chart "utility": which utility.
        alpha : float, default=0.5
            For the chart "utility": the weight of performance, a multiple of 0.05 in [0, 1].
        """
        return explore_chart(self._summary, name, attribute, utility, alpha)

    def _repr_html_(self) -> str:
        return page_in_frame(self.html(), height=800)

    def __repr__(self) -> str:
        about = self._summary["about"]
        attributes = self._summary["attributes"]
        names = ", ".join(attribute["name"] for attribute in attributes)
        left_out = [f"{one['name']}: {one['left_out']}" for one in attributes if one["left_out"]]
        pool = self._summary.get("pool")
        beside = "" if pool is None else f", beside a pool of {pool['rows']:,}"
        sampled = about["sampled"]
        rows = f"{about['rows']:,}" + ("" if sampled is None else f" sampled of {sampled['of']:,}")
        return "\n".join([f"Exploration of {rows} rows by {names}{beside}", *left_out])


def explore(
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    valuation: Valuation | None = None,
    pool: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    pos_label: Any = None,
    max_rows: int = 50_000,
    min_group_size: int = MIN_GROUP_SIZE,
    show_rows: bool = False,
    retrain: int = 120,
    estimator: Any = None,
    stability: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
    z_exclude: Any = None,
) -> Exploration:
    """Explore a table and its values: its biases, its slices, its proxies, its suspicious rows.

    Parameters
    ----------
    X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features.
    y : array-like of shape (n_rows,)
        The target.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
        The protected attributes.
    valuation : Valuation, optional
        The values of these rows; without it, `OutOfBagEntropy` computes them. Rows without a value are left
        out. If they come with probabilities (``OutOfBagEntropy(keep_probabilities=True)``, as those computed
        here do), the page shows what aiming would cost.
    pool : table, or tuple of a table and a Valuation, optional
        Rows without labels, to be shown beside these. Columns are found by name; further ones are ignored. A
        table alone is valued by the models that value X. If you pass `valuation`, pass the pool with values
        of the same kind as well: ``(table, valuator.value(table))``.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts in the models, if values are computed or models are trained again. Effects
        are multiplied by it, scaled to a mean of 1. Everything else on the page counts rows.
    groups : array-like of shape (n_rows,), optional
        Which rows belong together, if values are computed: a bag holds or leaves out all of them together.
    pos_label : label, optional
        The positive label. None means the larger of two; a target of more classes then has none.
    max_rows : int, default=50_000
        In how many rows of X, and of the pool, slices are searched for, and on how many the cost of aiming is
        measured, at most; they are drawn at random. Everything else, also the figures of a slice that was
        found, is about every row.
    min_group_size : int, default=30
        Groups with at least so many rows are always compared. Groups with fewer rows that are also less than
        1 % of the table are counted and listed, but left out of rates, biases and everything else that
        compares groups; the page says which. 0 compares all groups of at least ten rows. Groups with fewer
        than ten are never named.
    show_rows : bool, default=False
        Whether to show the entries of the most suspicious and the most harmful rows, and not just their
        positions.
    retrain : int, default=120
        How many models may be trained to measure what removing rows, weighing them by half or relabelling
        them does; 0 trains none, and the page then shows no such figure. It needs a target of two classes.
        Half of the rows (at most `max_rows` of them) finds candidates, by :class:`TreeInfluence`; on the
        other half, in folds, models trained on all other rows with and without them are compared. Three
        fits more find the candidates.
    estimator : classifier, optional
        The model that is trained to measure; None means LightGBM's default settings. Pass your own.
    stability : DataFrame, optional
        How far the values agree with values made again, as ``valuation.stability(X, y, ...)`` gives it. None
        means its estimate without a fit.
    random_state : int, default=0
        Seed of the values if they are computed, of the rows that slices are searched for in, of the order of
        rows of equal utility, and of `retrain`.
    n_jobs : int, optional
        How many models are trained side by side; None uses every core. It changes no result.
    progress : bool, default=False
        Whether to show a progress bar.
    z_exclude : list of str, or mapping of attribute to such a list, optional
        If values are computed: columns that models of protected attributes must not see, such as those that
        an attribute was made from.

    Returns
    -------
    Exploration
        Its `write_html` writes the page; a notebook shows it.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from fado import explore
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], size=2000)
    >>> X = pd.DataFrame({"job": np.where(sex == "f", "nurse", "clerk"), "age": rng.integers(18, 80, 2000)})
    >>> X.loc[rng.random(2000) < 0.2, "job"] = "driver"
    >>> y = rng.random(2000) < np.where(sex == "f", 0.2, 0.4)
    >>> seen = explore(X, y, sensitive_features={"sex": sex}, retrain=0)
    >>> seen
    Exploration of 2,000 rows by sex
    >>> seen.to_dict()["attributes"][0]["columns"]["columns"][0]["name"]
    'job'
    """
    if sensitive_features is None:
        raise ValueError("There is no protected attribute to explore: pass one as `sensitive_features`.")
    check_retraining(retrain, estimator)
    if stability is not None:
        read_stability(stability)  # refused before rows are valued
    problem = read_problem(
        X, y, sensitive_features, sample_weight=sample_weight, groups=groups, pos_label=pos_label
    ).with_mean_weight_one()
    name = str(getattr(y, "name", None) or "y")
    material = read_material(
        problem,
        name,
        valuation,
        max_rows=max_rows,
        min_group_size=min_group_size,
        seed=random_state,
        pool=pool,
        z_exclude=z_exclude,
    )
    return Exploration(
        summarise(
            material,
            show_rows=show_rows,
            retrain=int(retrain),
            estimator=estimator,
            n_jobs=n_jobs,
            progress=progress,
            stability=stability,
        )
    )
