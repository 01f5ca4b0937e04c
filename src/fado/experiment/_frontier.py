"""The result of a search for the frontier, and the models to take from it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fado._typing import Floats
from fado.aim import read_lines
from fado.experiment._choice import Choice, baseline_row, choose_row
from fado.experiment._data import Data
from fado.experiment._dossier import dossier_content, write_dossier
from fado.experiment._frame import same_data
from fado.experiment._models import describe_object, is_object
from fado.experiment._results import Results
from fado.experiment._results_page import results_shown, write_report
from fado.experiment._store import Store
from fado.experiment._training import Measuring, Trainer
from fado.experiment._trial import DONE, UNTOUCHED
from fado.interventions import intervention_entries
from fado.metrics import predicted_positive
from fado.models import ChosenModel, Facts, GroupRates, summarize_columns
from fado.valuation import Valuation

if TYPE_CHECKING:
    import pandas as pd


class Frontier:
    """The models of a search, and the trade-off between performance and ratios.

    `find_frontier` returns it.

    Parameters
    ----------
    results : Results
        The metrics of all models.
    data : Data
        The rows.
    lines : mapping of str to float
        The required ratios, and the line of each.
    fits : int
        The number of whole fits of the search.
    estimator : estimator, optional
        The estimator that was passed to the search, if any.

    Attributes
    ----------
    results : Results
        The metrics of all models, with methods such as `Results.pareto`.
    lines : dict of str to float
        The required ratios, and the line of each: 0.8 for a ratio that was given by name.
    ratio : str
        The first required ratio.

    See Also
    --------
    fado.find_frontier : Searches for the frontier.
    fado.models.ChosenModel : A model of the frontier, to keep.

    References
    ----------
    Li et al. (2018). Hyperband: a novel bandit-based approach to hyperparameter optimization. JMLR 18(185).
    """

    def __init__(
        self, results: Results, data: Data, lines: Mapping[str, float], fits: int, estimator: Any = None
    ) -> None:
        self.results = results
        self.lines = dict(lines)
        self.ratio = next(iter(self.lines))
        self._data = data
        self._fits = fits
        self._estimator = estimator

    def __repr__(self) -> str:
        n_models = len(self.frame)
        models = f"{n_models:,} model{'' if n_models == 1 else 's'}"
        fits = f"{self._fits:,} fit{'' if self._fits == 1 else 's'}"
        return f"Frontier of {models} in {fits}, for {' and '.join(self.lines)}"

    def _repr_html_(self) -> str:
        return results_shown(repr(self), self.results, self.ratio)

    @property
    def frame(self) -> pd.DataFrame:
        """`Results.frame`, one row per model, with the column ``cost``: the share of a whole fit.

        The points of a model's curve have the intervention ``aimed`` and cost nothing. Their ``demand`` is 0
        at the required lines and 1 at equal rates. The model of the groups costs one more fit.
        """
        return self.results.frame

    def best(
        self, at_least: float | Mapping[str, float] | None = None, confidence: float | None = None
    ) -> ChosenModel | None:
        """Return the model of highest true-positive rate whose ratios reach their lines on validation data.

        The model is trained again, with exactly the same result. Its threshold is set on validation data.

        Parameters
        ----------
        at_least : float or mapping of str to float, optional
            The line of all ratios, or of each, in (0, 1]. None takes `lines`.
        confidence : float, optional
            In (0.5, 1). If given, the lower bounds of all ratios at this confidence must reach the lines. The
            bounds come from the counts of validation rows, over all pairs of groups. Along the curve of one
            model they are tested from the most equal point back until one fails. Because the best of many
            models may be lucky, the model that is best without an intervention gets half of the error, and
            all others share the rest.

        Returns
        -------
        ChosenModel or None
            The fitted model with its threshold, metrics and card. None if no model reached the lines;
            `closest` then returns the closest one.
        """
        return self._chosen(at_least, confidence, or_closest=False)

    def closest(
        self, at_least: float | Mapping[str, float] | None = None, confidence: float | None = None
    ) -> ChosenModel | None:
        """Return the model of `best` or, if none reached the lines, the one that comes closest.

        Parameters
        ----------
        at_least, confidence
            As for `best`.

        Returns
        -------
        ChosenModel or None
            Its `reached_` states whether it reached the lines. None if no model can be compared: each has an
            undefined ratio, equal scores for all rows, or exceeds the budget.
        """
        return self._chosen(at_least, confidence, or_closest=True)

    def _chosen(self, at_least: Any, confidence: float | None, *, or_closest: bool) -> ChosenModel | None:
        choice = choose_row(self.results, self._data, self._lines(at_least), confidence)
        if choice is None or not (choice.reached or or_closest):
            return None
        with self.results.opened() as store:
            return train_choice(
                self.results, choice, self._data, store, estimator=self._estimator, fits=self._fits
            )

    def _lines(self, at_least: Any) -> dict[str, float]:
        """Read the line of each ratio."""
        if at_least is None:
            return self.lines
        if not isinstance(at_least, Mapping):
            return {ratio: read_lines(ratio, at_least)[ratio] for ratio in self.lines}
        lines = read_lines(at_least)
        if lines.keys() != self.lines.keys():
            raise ValueError(
                f"`at_least` must have a line for each of {', '.join(self.lines)}, got {', '.join(lines)}."
            )
        return lines

    def plot(self, *, zoom: bool = False) -> Any:
        """Draw all models by true-positive rate and the first ratio; see `Results.plot`."""
        return self.results.plot(self.ratio, zoom=zoom)

    def report(
        self, path: str | os.PathLike[str], at_least: float | Mapping[str, float] | None = None
    ) -> None:
        """Write charts and tables of all models to one HTML page; see `Results.report`.

        Parameters
        ----------
        path : path-like
            Where to write it; it must end in ``.html``.
        at_least : float or mapping of str to float, optional
            As for `best`. The page shows `ratio` and its line first.
        """
        lines, notes = self._lines(at_least), []
        if len(lines) > 1:
            required = " and ".join(f"{ratio} {line:g}" for ratio, line in lines.items())
            notes.append(
                f"The search is for models that reach all of {required}. This page selects by one ratio at a "
                "time, and may select another model than that of the card."
            )
        write_report(self.results, Path(path), self.ratio, lines[self.ratio], notes)

    def dossier(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        in_use: Any = None,
        less: Sequence[float] = (0.0, 0.005, 0.01, 0.02),
    ) -> dict[str, Any]:
        """Compare the model in use with alternatives of nearly equal performance, and describe the search.

        Alternatives are selected on validation data: for each allowed loss of true-positive rate, the model
        with the highest ratios. All thresholds are set on validation data, and all models are measured on
        validation and test data. The dossier describes a search. It does not judge whether the search is
        enough.

        Parameters
        ----------
        path : path-like, optional
            The file to write: a page (``.html``) or data (``.json``).
        in_use : classifier, optional
            The model in use: fitted, with `predict_proba`, on the same columns. Like the alternatives it is
            measured at the threshold that keeps the budget on validation data, because rates at different
            budgets cannot be compared; its own ``threshold_``, if it has one, is stated. None takes the best
            untouched model of the search.
        less : sequence of float, default=(0.0, 0.005, 0.01, 0.02)
            How much lower the true-positive rate of an alternative may be.

        Returns
        -------
        dict
            The content of the page.
        """
        content = dossier_content(
            self.results, self._data, self.lines, fits=self._fits, in_use=in_use, less=less
        )
        if path is not None:
            write_dossier(content, path)
        return content


DRAWS = 200


def train_choice(
    results: Results, choice: Choice, data: Data, store: Store, *, estimator: Any = None, fits: int
) -> ChosenModel:
    """Train the selected model again, measure it on all parts, and collect the facts for its card."""
    config, trials = results.config, store.trials
    trial = trials[choice.row]
    valuations = {}
    if "algorithm" in trial.settings:
        values = store.values(trial.settings["algorithm"])
        valuations = {trial.settings["algorithm"]: values} if isinstance(values, Valuation) else {}
    trainer = Trainer(data, config, valuations, estimator=estimator)
    scorer, scores = trainer.scorer(trial)
    # measured like the frame, but at the threshold of the model
    evaluation = replace(
        config.evaluation, threshold="validation", bootstrap=config.evaluation.bootstrap or DRAWS, metrics=()
    )
    measuring = Measuring.of(data, replace(config, evaluation=evaluation))
    if choice.confidence is not None:  # of each end of an interval
        measuring = replace(measuring, confidence=2 * choice.confidence - 1)
    after, measured = _by_part(measuring, scores, trial.fit)
    before: dict[str, Floats] = {}
    measured_before: dict[str, dict[str, float]] = {}
    baseline = baseline_row(results, choice.lines) if config.evaluation.keep_scores else None
    if baseline is not None:
        fit = trials[baseline].fit
        before, measured_before = _by_part(measuring, store.all_scores(fit), fit)
    first, (ratio, line) = next(iter(measured)), next(iter(choice.lines.items()))
    measured[first] |= {f"{name}_low": bound for name, bound in choice.bounds.items()}
    titles = dict(zip(data.groups.names, data.groups.titles, strict=True))
    groups = []
    for part in (name for name, rows in data.parts.items() if len(rows)):
        rows = data.part(part)
        decided, baseline_decided = (
            predicted_positive(scored[part], figures[part]["threshold"]) if part in scored else None
            for scored, figures in ((after, measured), (before, measured_before))
        )
        groups += GroupRates.of(
            "training" if part == "train" else part,
            rows.positive,
            rows.groups,
            decided,
            baseline_decided,
            rows.weights,
            measuring.confidence,
        )
    facts = Facts(
        target=config.data.target,
        protected=config.data.protected,
        unknown=[str(value) for value in config.data.unknown],
        ratio=ratio,
        at_least=line,
        lines=choice.lines,
        budget=config.evaluation.budget,
        reached=choice.reached,
        chosen_on=first,
        confidence=choice.confidence,
        why=choice.reason,
        estimator=config.models.estimator.rpartition(".")[2]
        if estimator is None
        else type(estimator).__name__,
        parameters=dict(trial.parameters),
        intervention="" if trial.intervention == UNTOUCHED.intervention else trial.intervention,
        settings=dict(trial.settings),
        fits=fits,
        models=choice.tried,
        chosen=choice.sentence,
        groups=groups,
        measured=measured,
        before=measured_before,
        left_out=[titles.get(entry["group"], entry["group"]) for entry in results.left_out],
        min_group_size=config.data.min_group_size,
        seed=config.seed,
    )
    return ChosenModel(
        scorer,
        classes=data.labels,
        threshold=measured[first]["threshold"],
        metrics=measured[first],
        facts=facts,
        sample_weight=trainer.training_set(trial).weights,
        columns=summarize_columns(data.problem.table, data.parts["train"]),
    )


def _by_part(
    measuring: Measuring, scores: Floats, fit: str
) -> tuple[dict[str, Floats], dict[str, dict[str, float]]]:
    """Return the scores of validation rows, if any, and of test rows, with their metrics."""
    cut, measured = measuring.n_validation, measuring.measure(scores, fit)
    by_part = {"validation": scores[:cut], "test": scores[cut:]} if cut else {"test": scores}
    prefixed = {part: [name for name in measured if name.startswith(f"{part}_")] for part in by_part}
    return by_part, {
        part: {name.removeprefix(f"{part}_"): measured[name] for name in names}
        for part, names in prefixed.items()
    }


def fit_best_of(
    results: Results, ratio: Any, at_least: float, *, confidence: float | None, data: Any, estimator: Any
) -> ChosenModel | None:
    """Do the work of `Results.fit_best`."""
    if results.lacking:
        raise ValueError(
            f"The experiment used {'; '.join(results.lacking)}, which is not registered here: import or "
            "install it first, and load the results again."
        )
    if len(results.attributes) > 1:
        raise ValueError(
            "`evaluation.groups` compares the groups of each attribute, but the lines of a model are between "
            'crossed groups: run the experiment with `evaluation.groups = "crossed"`.'
        )
    lines, name = read_lines(ratio, at_least), results.config.models.estimator
    if not is_object(name):
        if estimator is not None:
            raise ValueError(f"The experiment names its estimator, {name!r}: do not pass `estimator`.")
    elif estimator is None or describe_object(estimator) != name:
        raise ValueError(
            f"The experiment was run with an estimator that was passed in Python, {name!r}: pass it again, "
            "as `estimator`."
        )
    with results.opened() as store:
        rows = same_data(store, results.config, data)
        choice = choose_row(results, rows, lines, confidence)
        if choice is None or not choice.reached:
            return None
        done = results.frame["intervention"][results.frame["status"] == DONE]
        changed = [entry.name for entry in intervention_entries() if entry.changes_scores]
        fits = int((~done.isin(changed)).sum())
        return train_choice(results, choice, rows, store, estimator=estimator, fits=fits)
