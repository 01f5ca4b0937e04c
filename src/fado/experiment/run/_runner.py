"""Run what a store lacks: values, training sets, fits."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from fado._messages import warn_user
from fado._version import library_versions
from fado.execution import LostTask, ThreadExecutor, n_workers, opened_client
from fado.experiment.config import Config, Given, estimator_versions, make_estimator, plugins_used
from fado.experiment.run._bench import Bench, Job, Measured, run_job
from fado.experiment.run._crashes import Ending, Notes, blame_crashes
from fado.experiment.run._data import Data
from fado.experiment.run._order import RunOrder
from fado.experiment.run._progress import ProgressLine
from fado.experiment.run._reading import read_data
from fado.experiment.run._supervisor import NotIsolatedError, can_isolate, supervise
from fado.experiment.run._values import value_training_part
from fado.experiment.run._watch import beating, tell_phase
from fado.experiment.search import (
    UNTOUCHED,
    GridProposer,
    Proposer,
    Recipe,
    Trial,
    key_of,
    shared_recipe,
)
from fado.experiment.store import (
    DONE,
    FAILED,
    FORMAT,
    Keys,
    Record,
    Store,
    StoredTrial,
    proposed_trials,
    read_outcomes,
    write_trials,
)
from fado.interventions import intervention_entries, intervention_named
from fado.valuation import Valuation

__all__ = ["run_experiment", "run_here"]

Models = Mapping[str, Mapping[str, Mapping[str, Any]]]  # parameters by training set and by their own key


def about_of(config: Config, data: Data, given: Given | None = None) -> dict[str, Any]:
    """Say what a store must know of its experiment."""
    models = config.models
    estimator = None if given is None else given.estimator
    if estimator is None:
        estimator = make_estimator(models.estimator, models.pipeline)
    return {
        "format": FORMAT,
        "settings": json.loads(json.dumps(config.flat())),
        "configuration": config.source,
        "versions": library_versions() | estimator_versions(estimator),
        "fingerprint": data.fingerprint(),
        "summary": data.summary(),
        "positive": data.positive_label,
        "plugins": plugins_used(config),
    }


def run_experiment(
    config: Config,
    store: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    client: Any = None,
    progress: bool = False,
    retry_failed: bool = False,
    proposer: Proposer | None = None,
    data: Data | None = None,
    given: Given | None = None,
    isolated: bool = True,
) -> None:
    """Do what the store lacks.

    Parameters
    ----------
    config : Config
        The experiment.
    store, n_jobs, client, progress, retry_failed, isolated
        As for `Experiment.run`.
    proposer : Proposer, optional
        Says what to try; None tries the grid of the configuration.
    data : Data, optional
        The rows, from `data_from`, for a configuration whose data are given; None reads those it names.
    given : Given, optional
        The estimator and the metrics that the configuration was made with, if they were handed over.
    """
    order = RunOrder(
        config,
        Path(store),
        n_workers(n_jobs),
        progress=progress,
        retry_failed=retry_failed,
        proposer=proposer,
        data=data,
        given=given,
    )
    with opened_client(client) as opened:
        _run_somewhere(order, opened, isolated=isolated)


def _run_somewhere(order: RunOrder, client: Any, *, isolated: bool) -> None:
    """Run in a process of its own if that is possible, else in this one."""
    if isolated and client is None and can_isolate():
        try:
            supervise(order)
            return
        except NotIsolatedError as error:
            warn_user(
                f"The run happens in this process, which a crash would end, since something cannot be sent "
                f"to another ({error})."
            )
    run_here(order, client)


def run_here(
    order: RunOrder,
    client: Any = None,
    *,
    ending: Ending | None = None,
    holder: int | None = None,
    begun: Callable[[], None] = lambda: None,
) -> None:
    """Do what the store lacks, in this process.

    Parameters
    ----------
    order : RunOrder
        What to do.
    client : dask.distributed.Client, optional
        Sends the fits to a cluster.
    ending : Ending, optional
        How the process ended that was at it before this one.
    holder : int, optional
        The process that supervises this one, in whose name the store is held.
    begun : callable
        Called when the notes of the process before are read, and what failed before is forgotten if it is to
        be tried again.
    """
    data = read_data(order.config) if order.data is None else order.data
    _check_compared(order.config, data)
    about = about_of(order.config, data, order.given)
    with Store.writing(order.store, about, holder=holder) as opened:
        blame_crashes(opened, ending or Ending(), order.config.models.deadline)
        if order.retry_failed:
            opened.forget_failed()
        begun()
        with Notes.kept(opened) as notes:
            proposer = GridProposer.of(order.config) if order.proposer is None else order.proposer
            _Run(order, data, opened, notes).finish(proposer, client)


def _check_compared(config: Config, data: Data) -> None:
    """Refuse interventions on scores where there are no groups to compare."""
    asked = [
        own.key for own in intervention_entries() if own.changes_scores and config.interventions[own.key]
    ]
    if asked and data.compared.sum() < 2:
        raise ValueError(
            f"`interventions.{asked[0]}` compares groups, and there are no two groups that are large enough "
            "to be compared in every part."
        )


class _Run:
    """One run on an open store."""

    def __init__(self, order: RunOrder, data: Data, store: Store, notes: Notes) -> None:
        self._config = order.config
        self._made_with = order.given
        self._data = data
        self._store = store
        self._notes = notes
        self._workers = order.workers
        self._progress = order.progress
        self._keys = Keys(store.about)
        self._valuations: dict[str, Valuation] = {}
        self._given: dict[str, Job] = {}
        self._metrics: dict[str, dict[str, float] | None] = {}

    def finish(self, proposer: Proposer, client: Any) -> None:
        """Run what is proposed until there is nothing left to try; first, what was proposed before."""
        bench = Bench.of(self._data, self._valuations, self._config, self._workers, self._made_with)
        trials = proposed_trials(self._store) or self._propose(proposer)
        with ProgressLine(show=self._progress) as line:
            while trials:
                self._run_trials(trials, bench, client, line)
                trials = self._propose(proposer)

    def _propose(self, proposer: Proposer) -> list[StoredTrial]:
        """Get new trials, and keep them before they are run."""
        outcomes = read_outcomes(self._store, proposed_trials(self._store), self._metrics)
        new = [StoredTrial(trial, self._keys.set(self._recipe(trial))) for trial in proposer.ask(outcomes)]
        if new:
            write_trials(self._store, new)
        return new

    def _recipe(self, trial: Trial) -> Recipe:
        """Give the recipe under which a trial shares its fit with others.

        A training set that an earlier release made under a recipe of its own stays what it is.
        """
        n_protected = len(self._config.data.protected)
        former = trial.recipe.simplest(n_protected)
        if self._store.get("set", self._keys.set(former)) is not None:
            return former
        return shared_recipe(trial.recipe, n_protected)

    def _run_trials(
        self, trials: Sequence[StoredTrial], bench: Bench, client: Any, line: ProgressLine
    ) -> None:
        recipes: dict[str, Recipe] = {}
        models: dict[str, dict[str, Mapping[str, Any]]] = {}
        for stored in trials:
            recipes.setdefault(stored.set_key, self._recipe(stored.trial))
            own = models.setdefault(stored.set_key, {})
            own.setdefault(key_of(dict(stored.trial.parameters)), stored.trial.parameters)
        for recipe in recipes.values():
            if "algorithm" in recipe.settings:
                self._load_values(recipe.settings["algorithm"], client)
        changed = {key: own for key, own in recipes.items() if _changes_scores(own)}
        trained = {key: own for key, own in recipes.items() if key not in changed}
        if changed:  # what they change are the scores of models that are trained on all rows as they are
            untouched = self._keys.set(UNTOUCHED)
            trained.setdefault(untouched, UNTOUCHED)
            for key in changed:
                models[untouched] = models[key] | models.get(untouched, {})
        line.expect(sum(len(models[key]) for key in (*trained, *changed)))
        self._run_jobs(self._jobs(trained, models, bench, line), bench, client, line)
        if changed:
            self._run_jobs(self._jobs_on_scores(changed, models, bench, line), bench, client, line)

    def _run_jobs(self, jobs: Iterable[Job], bench: Bench, client: Any, line: ProgressLine) -> None:
        batches: Generator[list[Measured | LostTask[Job]], None, None]
        if client is None:
            batches = ThreadExecutor(self._workers).run_unordered(self._run_noted, jobs, bench)
        else:
            from fado.execution import DaskExecutor  # Dask is an extra

            batches = DaskExecutor(client).run_unordered(run_job, jobs, bench)
        again = self._keep(batches, line, retry=True)
        if again:  # with the machine to themselves
            self._keep(ThreadExecutor(1).run_unordered(self._run_noted, again, bench), line, retry=False)

    def _run_noted(self, job: Job, bench: Bench, stop: threading.Event) -> Measured:
        """Run a fit in this process, and leave a note of it meanwhile."""
        unwatched = job.scores is None or self._config.models.deadline is None
        with self._notes.of("fit", job.key, "waiting") as note, nullcontext() if unwatched else beating(note):
            return bench.run(job, stop, lambda phase: tell_phase(note, phase))

    def _jobs(
        self, recipes: Mapping[str, Recipe], models: Models, bench: Bench, line: ProgressLine
    ) -> Iterator[Job]:
        """Give the fits that are not done, one training set after the other, the longest of each first."""
        for set_key, recipe in recipes.items():
            digest = self._digest(set_key, recipe, bench)
            for parameters in _longest_first(models[set_key]):
                key = self._lacking(digest, parameters, line)
                if key is not None:
                    self._given[key] = Job(key, recipe, parameters)
                    yield self._given[key]

    def _jobs_on_scores(
        self, recipes: Mapping[str, Recipe], models: Models, bench: Bench, line: ProgressLine
    ) -> Iterator[Job]:
        """Give what is to be done to scores and is not done, one model after the other."""
        untouched = self._digest(self._keys.set(UNTOUCHED), UNTOUCHED, bench)
        digests = {key: self._digest(key, recipe, bench) for key, recipe in recipes.items()}
        asked = {own: parameters for key in recipes for own, parameters in models[key].items()}
        for parameters in _longest_first(asked):
            own, fitted = key_of(dict(parameters)), self._keys.fit(str(untouched), parameters)
            for set_key, recipe in recipes.items():
                if own not in models[set_key]:
                    continue
                key = self._lacking(digests[set_key], parameters, line)
                if key is None:
                    continue
                record = self._store.get("fit", fitted)
                if record is None or record.state == FAILED:
                    text = "The model was not trained." if record is None else record.text
                    self._store.write([Record("fit", key, FAILED, text)])
                    line.skip(True)
                    continue
                scores = np.concatenate(list(self._store.load_scores(fitted).values()))
                self._given[key] = Job(key, recipe, parameters, scores)
                yield self._given[key]

    def _lacking(self, digest: str | None, parameters: Mapping[str, Any], line: ProgressLine) -> str | None:
        """Give the key of a fit that is still to be done; None if it is done, or there is nothing to fit."""
        key = "" if digest is None else self._keys.fit(digest, parameters)
        if digest is not None and not self._store.has_fit(key) and key not in self._given:
            return key
        record = self._store.get("fit", key)
        line.skip(record is not None and record.state == FAILED)
        return None

    def _keep(
        self,
        batches: Generator[list[Measured | LostTask[Job]], None, None],
        line: ProgressLine,
        *,
        retry: bool,
    ) -> list[Job]:
        """Keep what comes; give back the jobs that ran out of memory, if they may be tried once more."""
        again = []
        with closing(batches):  # an error while results are kept ends the fits before the store is let go
            for batch in batches:
                kept = []
                for result in batch:
                    validated = _validated(result)
                    if validated.out_of_memory and retry:
                        again.append(self._given[validated.key])
                        continue
                    kept += self._records(validated)
                self._store.write(kept)
                fits = [record for record in kept if record.kind == "fit"]
                line.add(len(fits), sum(record.state == FAILED for record in fits))
        return again

    def _records(self, validated: Measured) -> list[Record]:
        if validated.metrics is None:
            return [Record("fit", validated.key, FAILED, str(validated.error), seconds=validated.seconds)]
        self._metrics[validated.key] = validated.metrics
        records = [self._store.save_fit(validated.key, validated.metrics, validated.seconds)]
        if validated.scores is not None:
            n_validation = len(self._data.parts["validation"])
            records.insert(0, self._store.save_scores(validated.key, validated.scores, n_validation))
        return records

    def _digest(self, key: str, recipe: Recipe, bench: Bench) -> str | None:
        """Give the digest of a training set; None if the intervention leaves nothing to train on."""
        record = self._store.get("set", key)
        if record is None:
            with self._noted("set", key):
                record = self._made_set(key, recipe, bench)
            self._store.write([record])
        return json.loads(record.text)["digest"] if record.state == DONE else None

    def _made_set(self, key: str, recipe: Recipe, bench: Bench) -> Record:
        algorithm = recipe.settings.get("algorithm")
        if algorithm is not None and algorithm not in self._valuations:
            lacking = self._store.records["values", self._keys.values(algorithm)]
            return Record("set", key, FAILED, lacking.text)
        try:
            chosen = bench.training_set(recipe)
        except ValueError as error:
            return Record("set", key, FAILED, " ".join(str(error).split()))
        text = json.dumps({"digest": bench.digest(recipe), "rows": len(chosen.rows)})
        return Record("set", key, DONE, text)

    def _load_values(self, algorithm: str, client: Any) -> None:
        """Read the values of the training part from the store; make them, if they are not there.

        If the process crashed too often while they were made, there are none.
        """
        if algorithm in self._valuations:
            return
        key = self._keys.values(algorithm)
        record = self._store.get("values", key)
        if record is None:
            start = time.monotonic()
            with self._noted("values", key):
                made = value_training_part(
                    self._config,
                    self._data,
                    algorithm,
                    workers=self._workers,
                    progress=self._progress,
                    client=client,
                )
            self._store.save_values(key, made, time.monotonic() - start)
            self._valuations[algorithm] = made
        elif record.state == DONE:
            self._valuations[algorithm] = self._store.load_values(key)

    @contextmanager
    def _noted(self, kind: str, key: str) -> Iterator[None]:
        """Leave a note while values or a training set are made, renewed as long as they come along."""
        unwatched = self._config.models.deadline is None
        with self._notes.of(kind, key) as note, nullcontext() if unwatched else beating(note):
            yield


def _changes_scores(recipe: Recipe) -> bool:
    return intervention_named(recipe.intervention).changes_scores


def _longest_first(models: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(models.values(), key=lambda model: -model.get("n_estimators", 100))


def _validated(result: Measured | LostTask[Job]) -> Measured:
    """Give what became of a job; one that took its workers with it is a failed one."""
    if isinstance(result, LostTask):
        return Measured(result.task.key, 0.0, error=result.reason)
    return result
