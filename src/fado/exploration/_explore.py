"""Explore a table and its values, and show the result as data or as a page."""

from __future__ import annotations

import copy
import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._checks import seed_from
from fado._messages import insert_parameters
from fado._storage import replacing
from fado._version import __version__
from fado.exploration._answers import aim_part, answers
from fado.exploration._biases import biases
from fado.exploration._columns import column_reliance, columns_part
from fado.exploration._consequences import Consequences, check_retraining
from fado.exploration._effects import effect_frames, effects_part
from fado.exploration._explored import ExploredRows, Protected, quoted, read_explored
from fado.exploration._groups import listed_groups, show_groups, tell_left_out
from fado.exploration._slices import SliceFinder, binned_column
from fado.exploration._suspicious import suspicious_part
from fado.exploration._values import alpha_part, distributions, plane, stability_part
from fado.reporting import page_in_frame, render_page, without_nan
from fado.tabular import MIN_GROUP_SIZE, group_rows, read_problem
from fado.valuation import Valuation, read_stability

if TYPE_CHECKING:
    import pandas as pd

_HALF_WIDTH = 1.96 * 0.5  # of a 95 % interval: nothing on [0, 1] has a larger standard deviation than 0.5


@insert_parameters()
class Exploration:
    """The result of an exploration, as data and as a page.

    `explore` and `explore_files` return it.

    Parameters
    ----------
    summary : dict
        The content of the page.

    See Also
    --------
    fado.explore : Explore a table in memory.
    fado.explore_files : Explore a table in files.

    {References}
    """

    def __init__(self, summary: dict[str, Any]) -> None:
        self._summary = summary

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the page as plain data that can be written as JSON."""
        return copy.deepcopy(self._summary)

    def html(self) -> str:
        """Return the page as HTML text that loads nothing from elsewhere."""
        return render_page("explore.html", self._summary)

    def write_html(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file. If writing fails, no partial file is left.

        Parameters
        ----------
        path : path-like
            The file to write.
        """
        text = self.html()
        with replacing(path, "The page") as temporary:
            temporary.write_text(text, encoding="utf-8")

    def effects(self, attribute: str | None = None) -> dict[str, pd.DataFrame]:
        """Return tables of the effects of rows, and of measured changes.

        Parameters
        ----------
        attribute : str, optional
            A protected attribute; None means the first.

        Returns
        -------
        dict of str to DataFrame
            ``cells``: per group and label, the number of rows and the sums of their effects on the ratio and
            on the performance. ``slices``: candidates for a removal. ``measured_ratio_change`` and
            ``measured_ratio_error`` are the change when the slice is removed and its standard error, likewise
            for the performance; they are NaN for slices without retraining. ``changes``: every removal that
            was measured, of slices and of the most harmful rows. ``curve``: the changes when the most harmful
            2, 5 and 10 % of the rows are removed.

        Raises
        ------
        ValueError
            If there is no such attribute, or if the values are not effects and nothing was measured.

        Examples
        --------
        >>> from lightgbm import LGBMClassifier
        >>> from fado import explore
        >>> from fado.datasets import make_account_fraud
        >>> X = make_account_fraud(8000, variant="II", random_state=0).drop(columns="month")
        >>> y, old = X.pop("fraud_bool"), (X.pop("customer_age") >= 50).rename("old")
        >>> model = LGBMClassifier(n_estimators=20, num_leaves=7)
        >>> seen = explore(X, y, sensitive_features=old, estimator=model, retrain=24, random_state=0)
        >>> tables = seen.effects("old")
        >>> tables["curve"][["share", "rows"]]
           share  rows
        0   0.02   160
        1   0.05   400
        2   0.10   800
        >>> [name for name in tables["slices"] if name.startswith("measured_ratio")]
        ['measured_ratio_change', 'measured_ratio_error']
        """
        return effect_frames(self._summary, attribute)

    def _repr_html_(self) -> str:
        return page_in_frame(self.html(), height=800)

    def __repr__(self) -> str:
        about = self._summary["about"]
        attributes = self._summary["attributes"]
        names = ", ".join(attribute["name"] for attribute in attributes)
        left_out = [f"{one['name']}: {one['left_out']}" for one in attributes if one["left_out"]]
        sampled = about["sampled"]
        rows = f"{about['rows']:,}" + ("" if sampled is None else f" sampled of {sampled['of']:,}")
        return "\n".join([f"Exploration of {rows} rows by {names}", *left_out])


@insert_parameters()
def explore(
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    valuation: Valuation | None = None,
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
    """Explore a table and its values: biases, slices, proxies and suspicious rows.

    Parameters
    ----------
    X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features.
    y : array-like of shape (n_rows,)
        The target.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
        The protected attributes. Rows with a missing value are counted, and compared with no other.
    {unknown}
    valuation : Valuation, optional
        The values of these rows; None computes them with `OutOfBagEntropy`. Rows without a value are left
        out. If the values contain probabilities (``OutOfBagEntropy(keep_probabilities=True)``, as those
        computed here), the page shows the cost of reaching a line.
    sample_weight : array-like of shape (n_rows,), optional
        The weight of each row in the models, if values are computed or models are retrained. Effects are
        multiplied by the weights, scaled to a mean of 1. All other parts of the page count rows.
    groups : array-like of shape (n_rows,), optional
        Which rows belong together, if values are computed: a bag contains all of them or none.
    pos_label : label, optional
        The positive label. None means the larger of two labels; a target with more classes then has none.
    max_rows : int, default=50_000
        The largest number of rows that are searched for slices and used for the cost of reaching a line. They
        are drawn at random. All other figures, also those of slices, are about all rows.
    min_group_size : int, default=30
        Groups with at least this many rows are always compared. Smaller groups that are also less than 1 % of
        the table are counted and listed, but not compared; the page names them. 0 compares all groups with at
        least ten rows. Groups with fewer than ten rows are never named.
    show_rows : bool, default=False
        Whether to show the entries of the most suspicious and the most harmful rows, not only their
        positions.
    retrain : int, default=120
        How many models may be trained to measure the effect of removing rows; 0 trains none, and the page
        then has no such figures. It needs a target with two classes. One half of the rows (at most
        `max_rows`) finds candidates with :class:`TreeInfluence`, by two more fits. On the other half, in
        folds, models trained on all other rows, with and without the candidate, are compared.
    estimator : classifier, optional
        The model that is retrained; None means LightGBM with its default settings. Pass the model that you
        use.
    stability : DataFrame, optional
        The agreement of the values with those of another run, from ``valuation.stability(X, y, ...)``. None
        means its estimate without a fit.
    random_state : int, default=0
        Seed of the values if they are computed, of the searched rows, of the order of rows with equal
        utility, and of `retrain`.
    n_jobs : int, optional
        How many models are trained in parallel; None uses every core. Results do not depend on it.
    progress : bool, default=False
        Whether to show a progress bar.
    z_exclude : list of str, or mapping of attribute to such a list, optional
        If values are computed: columns that models of protected attributes must not use, such as the columns
        that an attribute was computed from.

    Returns
    -------
    Exploration
        Its `write_html` writes the page; a notebook shows it.

    See Also
    --------
    fado.explore_files : Explore a table in files.
    fado.OutOfBagEntropy : Compute values that say how uncertain models are.
    fado.TreeInfluence : Compute the effects of rows on a model.

    {References}

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
        read_stability(stability)  # refuses a wrong table before rows are valued
    problem = read_problem(
        X,
        y,
        sensitive_features,
        unknown=unknown,
        sample_weight=sample_weight,
        groups=groups,
        pos_label=pos_label,
        warn_of_columns=True,
    ).with_mean_weight_one()
    explored = read_explored(
        problem,
        str(getattr(y, "name", None) or "y"),
        valuation,
        max_rows=max_rows,
        min_group_size=min_group_size,
        seed=seed_from(random_state),
        z_exclude=z_exclude,
        n_jobs=n_jobs,
        progress=progress,
    )
    made = summarise(explored, show_rows, int(retrain), estimator, n_jobs, progress, stability)
    return Exploration(made)


def summarise(
    explored: ExploredRows,
    show_rows: bool,
    retrain: int,
    estimator: Any,
    n_jobs: int | None,
    progress: bool,
    stability: Any = None,
) -> dict[str, Any]:
    """Summarise the explored rows as plain data that can be written as JSON.

    There are ``about``, on the data and the values; one entry of ``attributes`` per protected attribute;
    ``together``, the slider's part for a utility of several attributes (None for one); and ``stability``,
    whether another run would rank the rows the same way.
    """
    finder = SliceFinder(explored)
    target = replace(explored.problem.sources[0], name=explored.target_name)
    columns = [*finder.columns, binned_column(len(finder.columns), target, explored.sample)]
    reliance = column_reliance(explored, n_jobs, progress)
    consequences = Consequences(explored, columns, retrain, estimator, n_jobs, progress)

    def attribute_part(attribute: Protected) -> dict[str, Any]:
        groups = attribute.groups
        effects = effects_part(consequences, attribute, show_rows)
        parts = {
            "name": attribute.name,
            "kind": attribute.variable.kind,
            "groups": listed_groups(groups, explored.sampled, attribute.whole),
            "shown": list(groups.names),
            "left_out": tell_left_out(groups, attribute.speak, explored.min_group_size),
            "biases": biases(explored, attribute),
            "values": distributions(explored, attribute),
            "plane": plane(explored, attribute),
            "alpha": alpha_part(finder, [attribute.name], attribute.every_group, groups),
            "aim": aim_part(explored, attribute),
            "columns": columns_part(explored, attribute, reliance),
            "suspicious": suspicious_part(finder, attribute, show_rows),
            "not_measured": consequences.reasons[attribute.name],
        } | ({} if effects is None else {"effects": effects})
        return parts | {"answers": answers(explored, attribute, parts)}

    return without_nan(
        {
            "about": _about(explored),
            "attributes": [attribute_part(one) for one in explored.attributes],
            "together": _together(explored, finder),
            "stability": stability_part(explored, stability),
        }
    )


def _together(explored: ExploredRows, finder: SliceFinder) -> dict[str, Any] | None:
    if len(explored.attributes) < 2:
        return None
    every_group = group_rows([one.variable for one in explored.attributes], quarters=True)
    shown = show_groups(every_group, explored.min_group_size)
    return {
        **alpha_part(finder, [one.name for one in explored.attributes], every_group, shown),
        "listed": listed_groups(shown),
        "left_out": tell_left_out(shown, quoted, explored.min_group_size),
    }


def _about(explored: ExploredRows) -> dict[str, Any]:
    target, provenance, positive = explored.target, explored.valuation.provenance, explored.positive
    outcome = None  # by which groups are compared
    if target.kind == "continuous":
        outcome = {"name": f"mean {explored.target_name}", "format": "number"}
    elif positive is not None:
        outcome = {"name": f"rate of {quoted(explored.speak_label(positive))}", "format": "percent"}
    return {
        "rows": len(explored),
        "weights_given": explored.problem.sample_weight is not None,
        "rows_without_value": explored.n_unvalued,
        "rows_searched": len(explored.sample),
        "sampled": _sampled(explored),
        "columns": explored.problem.table.n_columns,
        "target": {
            "name": explored.target_name,
            "kind": target.kind,
            "classes": [str(label) for label in target.classes],
            "positive": None if positive is None else str(target.classes[positive]),
        },
        "outcome": outcome,
        "algorithm": provenance.algorithm,
        "bags": provenance.settings.get("n_bags"),
        "seed": explored.seed,
        "version": __version__,
    }


def _sampled(explored: ExploredRows) -> dict[str, Any] | None:
    """Describe the sample that is explored; None if all rows are.

    ``error`` is the largest half-width of a 95 % interval of a share, or of a mean of values in [0, 1].
    """
    sampled = explored.sampled
    if sampled is None:
        return None
    error = share_error(len(explored), sampled.n_rows)
    is_unit = explored.is_unit(*(one.name for one in explored.attributes))
    what = "A share or a mean value" if is_unit else "A share"
    sentence = (
        f"This is a random sample of {len(sampled.places):,} of {sampled.n_rows:,} rows. {what} has an error "
        f"of at most {_points(error)} percentage points (95 %)"
    )
    groups = [
        (rows, one.spoken[group], one, group)
        for one in explored.attributes
        for group, rows in enumerate(one.groups.sizes.tolist())
    ]
    if groups:
        rows, name, attribute, group = min(groups, key=lambda entry: entry[0])
        # a quarter of a number is about the same share of the table and of the sample
        of = round(rows * sampled.times)
        if attribute.whole is not None:
            of, _ = sampled.together(attribute.whole, np.flatnonzero(attribute.groups.place == group))
        sentence += (
            f"; within the smallest group shown, {name} ({rows:,} of the sampled rows), of at most "
            f"{_points(share_error(rows, of))}"
        )
    return {
        "rows": len(sampled.places),
        "of": sampled.n_rows,
        "seed": sampled.seed,
        "error": error,
        "sentence": f"{sentence}.",
    }


def share_error(rows: int, of: int) -> float:
    """Give the largest half-width of a 95 % interval of a share, or of a mean on [0, 1].

    `rows` are drawn without replacement from `of`.

    Examples
    --------
    >>> round(share_error(2_500, 10**9), 4), share_error(100, 100)
    (0.0196, 0.0)
    """
    return _HALF_WIDTH / math.sqrt(rows) * math.sqrt(1.0 - rows / of)


def _points(share: float) -> str:
    """Write a share in percentage points with two significant digits, rounded up, since it is a bound."""
    points = 100 * share
    digits = 1 - math.floor(math.log10(points)) if points > 0 else 0
    step = 10.0**-digits
    return f"{math.ceil(points / step - 1e-9) * step:.{max(digits, 0)}f}"
