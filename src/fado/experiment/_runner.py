"""The run of an experiment: get trials, train and measure them, and save the outcomes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from shutil import rmtree
from typing import Any

from fado._messages import warn_user
from fado._progress import open_bar, progress_stream, set_total
from fado._typing import Floats
from fado._version import library_versions
from fado.execution import (
    LostTask,
    NotSentError,
    ProcessExecutor,
    ThreadExecutor,
    n_workers,
    on_cluster,
    opened_client,
)
from fado.experiment._config import Config
from fado.experiment._data import Data, read_data
from fado.experiment._models import LIGHTGBM, estimator_versions, make_estimator
from fado.experiment._plugins import plugins_used, registrations
from fado.experiment._results import Results
from fado.experiment._store import FORMAT, SHELF, About, Store
from fado.experiment._training import OUT_OF_MEMORY, Job, Trainer, run_jobs
from fado.experiment._trial import (
    DONE,
    FAILED,
    IMPOSSIBLE,
    PENDING,
    UNTOUCHED,
    GridProposer,
    Proposer,
    Trial,
    key_of,
)
from fado.tabular import Problem, Table, on_shelf, warn_of_doubtful_columns
from fado.valuation import Valuation, make_valuator

SECONDS_BETWEEN_LINES = 5.0
_LARGE = 2**25  # bytes from which a table is shared with workers as a file
_TREES, _MOST_MODELS = 5, 10  # that are timed for an estimate
_FEW_MODELS = 3  # of an estimator whose fits are not made of trees
_LATE = {
    FAILED: "The fit did not end within `models.deadline`, {:g} s, and was ended.",
    IMPOSSIBLE: "The training set was not made within `models.deadline`, {:g} s; its making was ended.",
}
_CRASHED = {
    FAILED: "The process crashed inside this fit {} times; it was set aside.",
    IMPOSSIBLE: "The process crashed {} times while this training set was made; it was set aside.",
}
_NO_VALUES = "The process crashed {} times while these values were made; they were set aside."


def run_experiment(
    config: Config,
    store: str | os.PathLike[str] | None,
    *,
    n_jobs: int | None = None,
    client: Any = None,
    progress: bool = False,
    retry_failed: bool = False,
    proposer: Proposer | None = None,
    data: Data | None = None,
    estimator: Any = None,
    metrics: Mapping[str, Callable[..., Any]] | None = None,
    isolated: bool = True,
) -> Results:
    """Run the trials that the store lacks, and return all results; None keeps the store in memory.

    Parameters
    ----------
    config : Config
        The experiment.
    store, n_jobs, client, progress, retry_failed, isolated
        As for `Experiment.run`.
    proposer : Proposer, optional
        Proposes trials; None tries the grid of the configuration.
    data : Data, optional
        The rows, from `data_from`, for data that are passed in Python; None reads those of the configuration.
    estimator, metrics
        As for `Experiment`, if they were passed in Python.
    """
    workers = n_workers(n_jobs)
    with opened_client(client) as opened:
        if data is None:
            data = read_data(config)
            warn_of_doubtful_columns(data.problem.table)
        if config.on_scores and data.compared.sum() < 2:
            raise ValueError(
                f"`interventions.{config.on_scores[0]}` compares groups, but fewer than two groups are large "
                "enough in every part."
            )
        proposer = GridProposer.of(config) if proposer is None else proposer
        made = make_estimator(config.models.estimator, config.models.pipeline, estimator)
        about = About(
            format=FORMAT,
            configuration=config,
            versions=library_versions() | estimator_versions(made),
            fingerprint=data.fingerprint(),
            summary=data.summary(),
            positive=data.positive_label,
            plugins=plugins_used(config),
        )
        opening = nullcontext(Store.in_memory(about)) if store is None else Store.writing(store, about)
        with opening as kept:
            if retry_failed:
                kept.forget_failed()
            run = partial(_Run, config, data, kept, workers, progress, estimator, metrics)
            if opened is not None:
                from fado.execution import DaskExecutor  # Dask is an extra

                run(DaskExecutor(opened), opened).finish(proposer)
                return Results.of(kept, config)
            if isolated and ProcessExecutor.is_supported():
                try:
                    with ProcessExecutor(
                        workers, setup=registrations(), deadline=config.models.deadline
                    ) as executor:
                        run(executor).finish(proposer)
                    return Results.of(kept, config)
                except NotSentError as error:
                    warn_user(
                        "The run happens in this process, which a crash would end, because something cannot "
                        f"be sent to another process ({error})."
                    )
            run(ThreadExecutor(workers)).finish(proposer)
            return Results.of(kept, config)


@dataclass
class _Run:
    """One run on an open store."""

    config: Config
    data: Data
    store: Store
    workers: int
    progress: bool
    estimator: Any
    metrics: Mapping[str, Callable[..., Any]] | None
    executor: Any
    client: Any = None

    def __post_init__(self) -> None:
        self._line = ProgressLine(show=self.progress)
        self._valuations: dict[str, Valuation] = {}
        self._no_values: dict[str, str] = {}
        self._impossible: dict[str, str] = {}
        self._trainer: Trainer | None = None
        shared = [self._shared(trial) for trial in self.store.rows.values() if trial.status != PENDING]
        self._outcomes = {trial.fit_key: trial for trial in shared}
        self._waiting: dict[str, list[int]] = {}  # the numbers of trials, by the fit that they need

    def _shared(self, trial: Trial) -> Trial:
        return trial.shared(len(self.config.data.protected))

    def finish(self, proposer: Proposer) -> None:
        """Run proposed trials until there are no more; first those that were proposed earlier."""
        with ExitStack() as held, self._line:
            numbers = sorted(number for number in self.store.rows if number >= 0)
            while numbers or (new := proposer.ask(self.store.trials)):
                # trials are saved before they are run
                self._run_trials(numbers or self.store.add(new), held)
                numbers = []

    def _run_trials(self, numbers: Sequence[int], held: ExitStack) -> None:
        """Run each fit that these trials need, and is not known, once."""
        fits: dict[str, Trial] = {}
        for number in numbers:
            trial = replace(self._shared(self.store.rows[number]), status=PENDING)
            fits.setdefault(trial.fit_key, trial)
            self._waiting.setdefault(trial.fit_key, []).append(number)
        changes = [trial for trial in fits.values() if trial.changes_scores]
        for trial in changes:  # which need the scores of a model on all rows
            model = trial.untouched()
            if fits.setdefault(model.fit_key, model) is model and model.fit_key not in self._outcomes:
                number = min([0, *self.store.rows]) - 1
                self.store.rows[number] = model
                self._waiting[model.fit_key] = [number]
        self._load_values(fits.values(), held)
        self._line.expect(len(fits) - len(changes), len(changes))
        known = [self._outcomes[key] for key in fits if key in self._outcomes]
        self._save(known)
        for trial in known:
            self._line.add(failed=trial.status == FAILED, was_done=True, is_change=trial.changes_scores)
        new = sorted(
            (trial for key, trial in fits.items() if key not in self._outcomes),
            key=lambda trial: -trial.parameters.get("n_estimators", 100),
        )
        sets = dict.fromkeys(trial.set_key for trial in fits.values())
        order = {key: place for place, key in enumerate(sets)}
        trained = [trial for trial in new if not trial.changes_scores]
        self._run_jobs(self._possible(sorted(trained, key=lambda trial: order[trial.set_key])))
        self._run_jobs(self._on_scores([trial for trial in new if trial.changes_scores]))

    def _run_jobs(self, batches: Iterable[list[Job]], *, alone: bool = False) -> None:
        """Run fits and save the outcomes; those out of memory, or lost with others, are tried alone."""
        again: list[Job] = []
        # An error while results are saved ends the fits before the store is closed.
        with closing(self.executor.run_unordered(run_jobs, batches, self._trainer)) as results:
            for batch in results:
                ended: list[Job] = []
                for result in batch:
                    if not isinstance(result, LostTask):
                        ended += result
                    elif len(result.task) == 1:
                        ended.append(Job(self._lost(result)))
                    else:
                        again += result.task
                if not alone:
                    again += [self._job(job.trial) for job in ended if job.trial.status == OUT_OF_MEMORY]
                    ended = [job for job in ended if job.trial.status != OUT_OF_MEMORY]
                self._keep(ended)
        for job in again:
            self._run_jobs([[job]], alone=True)

    def _keep(self, jobs: Sequence[Job]) -> None:
        """Save the outcomes of fits, for every trial that waits for one of them."""
        trials = [
            replace(job.trial, status=FAILED) if job.trial.status == OUT_OF_MEMORY else job.trial
            for job in jobs
        ]
        self._save(trials, {job.trial.fit: job.scores for job in jobs if job.scores is not None})
        for trial in trials:
            impossible = trial.status == IMPOSSIBLE
            if impossible:
                self._impossible[trial.set_key] = str(trial.error)
            failed, is_change = trial.status == FAILED, trial.changes_scores
            self._line.add(failed=failed, was_done=impossible, is_change=is_change)

    def _save(self, fits: Iterable[Trial], scores: dict[str, Floats] | None = None) -> None:
        """Save the outcomes of fits for the trials that wait for them."""
        rows, changed = self.store.rows, dict[int, Trial]()
        for fit in fits:
            self._outcomes[fit.fit_key] = fit
            waiting = self._waiting.pop(fit.fit_key, [])
            changed |= {n: rows[n].with_outcome(fit) for n in waiting if rows[n].status == PENDING}
        self.store.write(changed, scores, len(self.data.parts["validation"]))

    def _lost(self, lost: LostTask[list[Job]]) -> Trial:
        """Return the outcome of a fit whose workers died."""
        ((trial, _),) = lost.task
        if not lost.deaths:  # of a cluster
            return replace(trial, status=FAILED, error=lost.reason)
        status = FAILED if lost.phase or trial.changes_scores else IMPOSSIBLE
        late = _LATE[status].format(self.config.models.deadline) if lost.late else None
        return replace(trial, status=status, error=late or _CRASHED[status].format(lost.deaths))

    def _possible(self, trials: Iterable[Trial]) -> Iterator[list[Job]]:
        """Return fits one by one, without those that have no training set."""
        for trial in trials:
            lacking = self._no_values.get(trial.settings.get("algorithm", ""))
            error = lacking or self._impossible.get(trial.set_key)
            if error is None:
                yield [Job(trial)]
            else:
                self._keep([Job(replace(trial, status=IMPOSSIBLE, error=error))])

    def _on_scores(self, trials: Sequence[Trial]) -> Iterator[list[Job]]:
        """Return the trials on scores, model by model, which share the fits of that model."""
        by_model: dict[str, list[Trial]] = {}
        for trial in trials:
            by_model.setdefault(key_of(dict(trial.parameters)), []).append(trial)
        for of_model in by_model.values():
            model = self._outcomes.get(of_model[0].untouched().fit_key)
            if model is None or model.status != DONE:
                error = "The model was not trained." if model is None else model.error
                self._keep([Job(replace(trial, status=FAILED, error=error)) for trial in of_model])
                continue
            ready = [self._job(trial) for trial in of_model]
            if isinstance(self.executor, ThreadExecutor):  # threads share fits anyway
                yield from ([job] for job in ready)
            else:
                yield ready

    def _job(self, trial: Trial) -> Job:
        """Return a fit with the scores of its model, if it changes them."""
        trial = replace(self._shared(trial), status=PENDING, error=None)
        if not trial.changes_scores:
            return Job(trial)
        model = self._outcomes[trial.untouched().fit_key]
        return Job(trial, self.store.all_scores(model.fit))

    def _load_values(self, trials: Iterable[Trial], held: ExitStack) -> None:
        """Read the values of the training part from the store, or compute them; then make the trainer."""
        needed = dict.fromkeys(str(trial.settings.get("algorithm", "")) for trial in trials)
        known = {"", *self._valuations, *self._no_values}
        new = [name for name in needed if name not in known]
        for algorithm in new:
            values = self.store.values(algorithm)
            if values is None:
                values = self._make_values(algorithm)
                self.store.save_values(algorithm, values)
            if isinstance(values, str):
                self._no_values[algorithm] = values
            else:
                self._valuations[algorithm] = values
        if self._trainer is None or new:
            self._trainer = Trainer(
                self.data,
                self.config,
                dict(self._valuations),
                workers=self.workers,
                estimator=self.estimator,
                metrics=self.metrics,
                named=self.store.named,
                tables=self._on_shelf(held),
            )

    def _on_shelf(self, held: ExitStack) -> tuple[Table, Table] | None:
        """Write large tables into files, for workers on this machine."""
        tables = [self.data.part("train").table, self.data.part("validation", "test").table]
        size = sum(column.data.nbytes for table in tables for column in table.columns)
        is_near, path = isinstance(self.executor, ProcessExecutor), self.store.path
        if path is None or not is_near or size < _LARGE or not tables[0].is_named:
            return None
        folder = path / SHELF
        folder.mkdir(exist_ok=True)
        held.callback(rmtree, folder, ignore_errors=True)
        training, evaluation = (
            held.enter_context(on_shelf(table, folder / str(place))) for place, table in enumerate(tables)
        )
        return training, evaluation

    def _make_values(self, algorithm: str) -> Valuation | str:
        """Value the training part; return the reason if that crashes repeatedly.

        On a cluster, values from many fits are computed by all workers, others by one worker.
        """
        from lightgbm import LGBMClassifier, LGBMRegressor

        config, there = self.config, self.data.problem.table.names
        kinds = (LGBMClassifier, LGBMRegressor)
        estimators = [kind(**model) for model in config.valuation.models for kind in kinds]
        valuator = make_valuator(
            algorithm,
            estimators=estimators or None,
            n_bags=config.valuation.bags,
            unseen_fraction=config.valuation.unseen_fraction,
            z_exclude={
                name: [*self.data.excluded, *(source for source in sources if source in there)]
                for name, sources in self.data.sources.items()
            },
            random_state=config.seed,
            n_jobs=self.workers,
            progress=self.progress,
        )
        problem = self.data.problem.take(self.data.parts["train"])
        sends_fits = self.client is not None and getattr(valuator, "sends_fits", False)
        if sends_fits or isinstance(self.executor, ThreadExecutor):
            with on_cluster(self.client):
                return _value(valuator, problem)
        (made,) = self.executor.run(_value, [valuator], problem)
        if not isinstance(made, LostTask):
            return made
        if not made.deaths:
            name = type(valuator).__name__
            raise RuntimeError(f"{name} was lost with its workers ({made.reason}): run again.")
        return _NO_VALUES.format(made.deaths)


def _value(valuator: Any, problem: Problem, stop: threading.Event | None = None) -> Valuation:
    """Value rows; executors call this."""
    valuation: Valuation = valuator.fit_problem(problem).valuation_
    return valuation


class ProgressLine:
    """Shows fits done, failed, per second, and time left: a bar on terminals and in notebooks, else lines.

    Parameters
    ----------
    show : bool
        False keeps silent.
    """

    def __init__(self, *, show: bool) -> None:
        self._show, self._bar = show, None
        self._total = self._skipped = self._done = self._failed = self._n_changes = self._changed = 0
        self._start = self._printed = time.monotonic()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._show:
            self._print()

    def expect(self, more: int, changes: int = 0) -> None:
        """Add to the expected numbers of fits and of changes of scores; the clock starts with the first."""
        self._n_changes += changes
        if self._total == 0:
            self._start = self._printed = time.monotonic()
            self._bar = open_bar(more, what="fits", smoothing=0.05) if self._show else None
        self._total += more
        if self._bar is not None:
            set_total(self._bar, self._total)

    def add(self, *, failed: bool, was_done: bool = False, is_change: bool = False) -> None:
        """Count a fit, or a change of scores; one that was done, or has no training set, takes no time."""
        self._changed += is_change
        self._skipped += was_done and not is_change
        self._done += not (was_done or is_change)
        self._failed += failed
        if self._bar is not None:
            changed = {"scores changed": f"{self._changed} of {self._n_changes}"} if self._n_changes else {}
            self._bar.initial += was_done and not is_change
            self._bar.set_postfix(failed=self._failed, **changed, refresh=False)
            self._bar.update(not is_change)
        elif self._show and not was_done and time.monotonic() - self._printed >= SECONDS_BETWEEN_LINES:
            self._print()

    def _print(self) -> None:
        """Print the progress in one line."""
        self._printed = time.monotonic()
        seconds, counted = max(self._printed - self._start, 1e-9), self._skipped + self._done
        left = seconds / self._done * (self._total - counted) if self._done else 0.0
        time_left = f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min"
        time_left = time_left if left < 5400 else f"{left / 3600:.1f} h"
        changed = f", scores changed: {self._changed:,} of {self._n_changes:,}" if self._n_changes else ""
        line = (
            f"fits: {counted:,} of {self._total:,} done, {self._failed:,} failed, "
            f"{self._done / seconds:.2f} per second, {time_left} left{changed}"
        )
        print(line, file=progress_stream(), flush=True)


def estimate_seconds(
    config: Config,
    n_jobs: int | None,
    estimator: Any = None,
    metrics: Mapping[str, Callable[..., Any]] | None = None,
) -> float:
    """Time some models on the whole training part (LightGBM: their first trees), and extrapolate."""
    plan, workers = GridProposer.of(config), n_workers(n_jobs)
    trainer = Trainer(read_data(config), config, workers=workers, estimator=estimator, metrics=metrics)
    by_trees = config.models.estimator == LIGHTGBM and not config.models.pipeline
    sampled = plan.models[: _MOST_MODELS if by_trees else _FEW_MODELS]
    if by_trees:
        trainer.scores(replace(UNTOUCHED, parameters=sampled[0] | {"n_estimators": 1}))  # bins are made once
    seconds = 0.0
    for model in sampled:
        share = 1.0
        if by_trees:
            trees = model.get("n_estimators", 100)
            share = min(_TREES, trees) / trees
            model = model | {"n_estimators": min(_TREES, trees)}
        start = time.monotonic()
        trainer.scores(replace(UNTOUCHED, parameters=model))
        seconds += (time.monotonic() - start) / share
    return seconds / len(sampled) * plan.n_fits / workers
