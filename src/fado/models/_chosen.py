"""The selected model, as its user keeps it."""

from __future__ import annotations

import copy
import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from fado._checks import check_choice
from fado._records import label_from, label_to
from fado._storage import replacing
from fado._typing import Bools, Floats
from fado.engine import Scorer
from fado.metrics import predicted_positive, predictions_frame
from fado.models._card import card_content, exceeded
from fado.models._check import Check, check_rows
from fado.models._drift import ColumnSummary, compare_columns
from fado.models._facts import RATES, Facts
from fado.reporting import card_text, page_in_frame, render_page
from fado.tabular import Problem, Table, check_known, group_rows, match_positive, read_problem

if TYPE_CHECKING:
    import pandas as pd


class ChosenModel:
    """A fitted model, the threshold at which it decides, and the facts about how it was selected.

    `AimedEstimator.to_model`, `Frontier.best`, `Results.fit_best` and `fado.load_model` return it. It
    predicts like a scikit-learn classifier, and works with scikit-learn's scorers, displays and inspection
    tools. It cannot be refitted: where a tool fits its estimator, wrap the model in scikit-learn's
    `FrozenEstimator`.

    Parameters
    ----------
    scorer : Scorer
        The fitted model, from `fado.engine.Model.detach`.
    classes : tuple
        The negative and the positive label: text, whole numbers, numbers or booleans.
    threshold : float
        Rows that score at least this are predicted positive.
    metrics : mapping of str to float
        The metrics on the rows that selected the model.
    facts : Facts
        How the model was made and selected.
    sample_weight : ndarray, optional
        The weights of the rows that the model was trained on.
    columns : sequence of ColumnSummary, optional
        The summaries of the training columns, from `fado.models.summarize_columns`; `check` detects drift
        with them.

    Attributes
    ----------
    labels : tuple
        The negative label and the positive one, always in this order.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order, as scikit-learn needs them.
    threshold_ : float
        Rows that score at least this are predicted positive.
    metrics_ : dict of str to float
        The metrics on the rows that selected the model.
    sample_weight_ : ndarray or None
        The weights of the rows that the model was trained on.
    columns_ : tuple of ColumnSummary
        The summaries of the training columns; empty if they were not kept.
    facts_ : Facts
        How the model was made and selected.
    reached_ : bool
        Whether the model reached its lines on the rows that selected it.
    rates_ : DataFrame
        ``tpr``, ``fpr`` and ``selection_rate`` of every group in every part, with ``_before`` for the
        untouched model and ``_after`` for this one.
    n_features_in_ : int
        The number of columns that the model was trained on.
    feature_names_in_ : ndarray of str
        The names of these columns; missing if the model was trained on an array without names.

    See Also
    --------
    fado.load_model : Reads a saved model.
    fado.AimedEstimator : Trains a model that reaches a line.
    fado.find_frontier : Searches for the best models at every level of ratios.

    References
    ----------
    Mitchell et al. (2019). Model cards for model reporting. FAT* '19, arXiv:1810.03993.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fado.engine import SklearnEngine, Task
    >>> from fado.metrics import Budget
    >>> from fado.models import ChosenModel, Facts
    >>> from fado.tabular import Table, Variable
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> late = Variable("y", "classes", (X[:, 0] > 0).astype(np.int32), ("in time", "late"))
    >>> task = Task(LogisticRegression(), late, np.arange(200), seed=0)
    >>> scorer = SklearnEngine(Table.from_input(X)).fit(task).detach()
    >>> facts = Facts(target="payment", protected=["sex"], ratio="fpr_ratio", at_least=0.8,
    ...               budget=Budget("threshold", 0.6), reached=True)
    >>> model = ChosenModel(scorer, classes=("in time", "late"), threshold=0.6, metrics={}, facts=facts)
    >>> model.predict([[-0.5], [0.02], [0.5]])
    array(['in time', 'in time', 'late'], dtype='<U7')
    >>> model.predict_proba([[0.0]]).round(2)
    array([[0.5, 0.5]])
    """

    _estimator_type = "classifier"  # for tools that do not read tags

    def __init__(
        self,
        scorer: Scorer,
        *,
        classes: tuple[Any, Any],
        threshold: float,
        metrics: Mapping[str, float],
        facts: Facts,
        sample_weight: npt.ArrayLike | None = None,
        columns: Sequence[ColumnSummary] = (),
    ) -> None:
        if scorer.n_classes != 2 or scorer.sees_target:
            raise ValueError("`scorer` must be of a model of two classes that sees features alone.")
        negative, positive = (label_from(label_to(label)) for label in classes)
        if negative == positive:
            raise ValueError(f"`classes` must be two different labels, got {positive!r} twice.")
        if np.isnan(threshold):
            raise ValueError("`threshold` must be a number, got nan.")
        self.scorer = scorer
        self.labels = (negative, positive)
        self.threshold_ = float(threshold)
        self.metrics_ = {str(name): float(value) for name, value in metrics.items()}
        self.facts_ = facts
        self.sample_weight_ = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        names = () if scorer.schema is None else scorer.schema.names
        self.columns_ = tuple(columns) if names else ()
        if self.columns_ and tuple(column.name for column in self.columns_) != names:
            raise ValueError("`columns` must sum up the columns of the model, in their order.")

    def __repr__(self) -> str:
        facts = self.facts_
        lines = " and ".join(f"{ratio} of at least {line:g}" for ratio, line in facts.lines.items())
        aim = f"{lines} {'reached' if facts.reached else 'not reached'}"
        over = {part: exceeded(metrics, facts.budget) for part, metrics in facts.measured.items()}
        aim += "".join(f", budget on {part} rows {text}" for part, text in over.items() if text)
        return f"ChosenModel({facts.estimator or self.scorer.kind}, threshold={self.threshold_:.6g}, {aim})"

    def _repr_html_(self) -> str:
        return page_in_frame(self.card("html"), height=500)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> ChosenModel:
        return self  # it does not change

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_class=False),
        )

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The two labels in ascending order; labels without an order stay negative, positive."""
        return _as_array(self.labels if self._positive else self.labels[::-1])

    @property
    def _positive(self) -> int:
        """The place of the positive label in `classes_`."""
        negative, positive = self.labels
        alike = isinstance(positive, str) is isinstance(negative, str)
        return 0 if alike and positive < negative else 1

    @property
    def reached_(self) -> bool:
        """Whether the model reached its lines on the rows that selected it."""
        return self.facts_.reached

    @property
    def n_features_in_(self) -> int:
        """The number of columns that the model was trained on."""
        if self.scorer.schema is None:
            raise AttributeError("A model with the same score for every row has no `n_features_in_`.")
        return len(self.scorer.schema.names)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """The names of the columns that the model was trained on."""
        if self.scorer.schema is None or not self.scorer.schema.named:
            raise AttributeError(
                "The model was trained on columns without names: it has no `feature_names_in_`."
            )
        return np.array(self.scorer.schema.names, dtype=object)

    @property
    def rates_(self) -> pd.DataFrame:
        """The rates of every group before and after, one row per part and group."""
        import pandas as pd

        rows = []
        for group in self.facts_.groups:
            if group.part not in self.facts_.measured:
                continue
            row: dict[str, Any] = {"part": group.part, "group": group.group, "rows": group.rows}
            for rate in RATES:
                row[f"{rate}_before"] = group.before.get(rate, np.nan)
                row[f"{rate}_after"] = group.after.get(rate, np.nan)
            rows.append(row)
        return pd.DataFrame(rows)

    def score_rows(self, X: Any) -> Floats:
        """Return the score of every row; higher scores are decided positive first.

        Without an intervention, the score is the estimator's probability of the positive label. After an
        intervention (`facts_.intervention`) it ranks rows and is not a probability. To calibrate it, use
        scikit-learn's ``CalibratedClassifierCV(FrozenEstimator(model))``.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table
            The features. Columns are found by name, in any order; without names, by position.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._score(Table.from_input(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return 1 minus the score and the score of every row, in the order of `classes_`.

        They are probabilities only if the scores are; see `score_rows`.
        """
        scores = self.score_rows(X)
        both = (1.0 - scores, scores) if self._positive else (scores, 1.0 - scores)
        return np.column_stack(both)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the positive label for rows that score at least `threshold_`, else the negative label."""
        return self.decide(self.score_rows(X))

    def decision_function(self, X: Any) -> Floats:
        """Return the distance of every score from `threshold_`, positive on the side of ``classes_[1]``."""
        above = self.score_rows(X) - self.threshold_
        return above if self._positive else -above

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`.

        Parameters
        ----------
        X : table or array
            The features.
        y : array-like of shape (n_rows,)
            The true labels.
        sample_weight : array-like of shape (n_rows,), optional
            The weights of the rows.

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def fit(self, X: Any = None, y: Any = None, **_: Any) -> ChosenModel:
        """Raise a TypeError: the model is fitted and does not change."""
        raise TypeError(
            "A ChosenModel is fitted and cannot be refitted: where a tool fits its estimator, pass "
            "`sklearn.frozen.FrozenEstimator(model)`."
        )

    def decide(self, scores: Floats) -> npt.NDArray[Any]:
        """Return the decision for every score at `threshold_`.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,)
            The scores from `score_rows`.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return _as_array(self.labels)[predicted_positive(scores, self.threshold_).astype(np.intp)]

    def check(
        self,
        X: Any,
        y: Any = None,
        sensitive_features: Any = None,
        *,
        unknown: Any = None,
        date: datetime.date | str | None = None,
    ) -> Check:
        """Check on new rows whether the model still reaches its lines, and whether the rows have changed.

        Decisions are those at `threshold_`. Columns are compared with the training columns, and the share
        selected with that of the rows that selected the model, to detect drift. This needs no labels: leave
        out `y` and `sensitive_features`.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table
            The features.
        y : array-like of shape (n_rows,), optional
            The true labels; both must occur.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            The protected attributes; the groups are their combinations. Needed with `y`. Rows with a missing
            value are not compared.
        unknown : value or list of values, optional
            Values of the attributes that mean the same as a missing one; None means those that the model was
            fitted with.
        date : date or str, optional
            The day of the rows, such as ``"2026-05-31"``; None is today.

        Returns
        -------
        Check
            Whether the lines are held, missed or undecided, also as a sentence; all metrics with their
            intervals; the share selected; groups and columns that have changed.

        Raises
        ------
        ValueError
            If there are labels without protected attributes or the other way round, `y` lacks one of the two
            labels or has another label, or `date` is not a day.
        """
        day = _day(date)
        problem, positive = None, None
        if y is None and sensitive_features is None:
            table = Table.from_input(X)
            scores = self._score(table)
        elif y is None:
            raise ValueError(
                "`y` is needed with `sensitive_features`: a ratio needs labels and groups. Leave out both to "
                "check columns and the share selected alone."
            )
        else:
            problem, positive, scores = self._validated(X, y, sensitive_features, unknown)
            table = problem.table
        columns, notes = compare_columns(self.columns_, self.scorer.schema, table)
        return check_rows(
            problem, positive, scores, self.threshold_, self.facts_, columns=columns, notes=notes, day=day
        )

    def predictions_frame(
        self, X: Any, y: Any, sensitive_features: Any, *, unknown: Any = None
    ) -> pd.DataFrame:
        """Return decisions, labels and groups in the form that Aequitas and fairlearn expect.

        Parameters
        ----------
        X, y, sensitive_features, unknown
            As for `check`.

        Returns
        -------
        DataFrame
            ``score`` is the decision at `threshold_` and ``label_value`` the label, both 1 if positive and
            else 0; then every attribute as text. `fado.metrics.predictions_frame` does the same for the
            scores of any model.
        """
        problem, positive, scores = self._validated(X, y, sensitive_features, unknown)
        attributes = {variable.name: group_rows([variable]).by_row for variable in problem.protected}
        return predictions_frame(positive, scores, sensitive_features=attributes, threshold=self.threshold_)

    @overload
    def card(self, format: Literal["markdown", "html"] = ..., **stated: Any) -> str: ...

    @overload
    def card(self, format: Literal["dict"], **stated: Any) -> dict[str, Any]: ...

    def card(
        self, format: Literal["markdown", "html", "dict"] = "markdown", **stated: Any
    ) -> str | dict[str, Any]:
        """Return the model's card: the verdict on test rows first, then the evidence.

        Parameters
        ----------
        format : {"markdown", "html", "dict"}, default="markdown"
            Text, a page that needs no network, or the plain data that both are rendered from: ``fields``,
            ``verdict``, ``lead``, ``sections``.
        **stated : str
            What only people know: `purpose`, `owner`, `data`, `contact` and `date`. The default of each is
            what was passed to `save`, else "not stated".

        Returns
        -------
        str or dict
        """
        check_choice("format", format, ("markdown", "html", "dict"))
        content = self._content(stated)
        if format == "dict":
            return content
        return render_page("card.html", content) if format == "html" else card_text(content)

    def card_page(self, path: str | os.PathLike[str], **stated: Any) -> None:
        """Write the model's card as one HTML page that needs no network.

        Parameters
        ----------
        path : path-like
            Where to write it; it must end in ``.html``.
        **stated : str
            As for `card`.
        """
        if Path(path).suffix.lower() != ".html":
            raise ValueError(f"A card's page must end in .html, got {str(path)!r}.")
        page = self.card("html", **stated)
        with replacing(path, "The model's card") as temporary:
            temporary.write_text(page, encoding="utf-8")

    def save(self, directory: str | os.PathLike[str], **stated: Any) -> None:
        """Save the model and its card in a directory, from which `fado.load_model` reads it.

        If writing fails, nothing is changed.

        Parameters
        ----------
        directory : path-like
            A directory that is new, empty, or holds only a saved model, which is then replaced.
        **stated : str
            As for `card`; saved with the model.
        """
        from fado.models._saved import write_model

        saved = copy.copy(self)
        saved.facts_ = self._stating(stated)
        write_model(saved, directory)

    def _validated(
        self, X: Any, y: Any, sensitive_features: Any, unknown: Any
    ) -> tuple[Problem, Bools, Floats]:
        """Read rows with labels and groups: the problem, which rows are positive, and their scores."""
        unknown = self.facts_.unknown if unknown is None else unknown
        problem = read_problem(X, y, sensitive_features, unknown=unknown)
        if not problem.protected:
            raise ValueError("`sensitive_features` is needed: without groups there is no ratio to check.")
        check_known(problem.protected)
        positive = match_positive(problem.labels, self.labels, "the model knows", "`y` has")
        return problem, positive, self._score(problem.table)

    def _score(self, table: Table) -> Floats:
        if table.n_rows == 0:
            raise ValueError("`X` has no rows (n_samples = 0): give at least one.")
        scores = self.scorer.score(table)[:, 1]
        if self.scorer.schema is not None:
            self.scorer.schema.warn_of_lost_names(table)
        finite = np.isfinite(scores)
        if not finite.all():
            row = int(np.argmin(finite))
            raise ValueError(f"The model gives row {row} the score {scores[row]}, which is not a number.")
        return scores

    def _stating(self, stated: Mapping[str, Any]) -> Facts:
        """Return the facts with what people state added."""
        given = {name: text for name, text in stated.items() if text is not None}
        return replace(self.facts_, stated={**self.facts_.stated, **given}) if given else self.facts_

    def _content(self, stated: Mapping[str, Any]) -> dict[str, Any]:
        return card_content(self._stating(stated), self.labels, self.threshold_, self.scorer)


def _day(given: datetime.date | str | None) -> datetime.date:
    """Read a day, today if none is given."""
    if given is None:
        return datetime.datetime.now().astimezone().date()
    if isinstance(given, datetime.datetime):
        return given.date()
    try:
        return given if isinstance(given, datetime.date) else datetime.date.fromisoformat(given)
    except (ValueError, TypeError):
        raise ValueError(f"`date` must be a day such as '2026-05-31', got {given!r}.") from None


def _as_array(labels: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Return two labels as an array that keeps their types."""
    return np.array(labels, dtype=None if type(labels[0]) is type(labels[1]) else object)
