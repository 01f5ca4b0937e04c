"""Run what a store lacks: values, training sets, fits."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from fado._versions import library_versions
from fado.execution import LostTask, ThreadExecutor, n_workers
from fado.experiment.config import Config
from fado.experiment.run._bench import Bench, Job, Judged, run_job
from fado.experiment.run._crashes import blame_crashes, note_fits
from fado.experiment.run._data import Data, read_data
from fado.experiment.run._progress import ProgressLine
from fado.experiment.run._values import value_training_part
from fado.experiment.search import GridProposer, Proposer, Recipe, Trial, key_of
from fado.experiment.store import (
    DONE,
    FAILED,
    FORMAT,
    Keys,
    Record,
    Store,
    StoredTrial,
    proposed_trials,
    write_trials,
)
from fado.valuation import Valuation

__all__ = ["run_experiment"]


def about_of(config: Config, data: Data) -> dict[str, Any]:
    """Say what a store must know of its experiment."""
    return {
        "format": FORMAT,
        "settings": json.loads(json.dumps(config.flat())),
        "configuration": config.source,
        "versions": library_versions(),
        "fingerprint": data.fingerprint(),
        "summary": data.summary(),
        "positive": data.positive_label,
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
) -> None:
    """Do what the store lacks.

    Parameters
    ----------
    config : Config
        The experiment.
    store, n_jobs, client, progress, retry_failed
        As for `Experiment.run`.
    proposer : Proposer, optional
        Says what to try; None tries the grid of the configuration.
    """
    workers = n_workers(n_jobs)
    data = read_data(config)
    with Store.writing(Path(store), about_of(config, data)) as opened:
        run = _Run(config, data, opened, workers, progress=progress, retry_failed=retry_failed)
        run.finish(GridProposer.of(config) if proposer is None else proposer, client)


class _Run:
    """One run on an open store."""

    def __init__(
        self, config: Config, data: Data, store: Store, workers: int, *, progress: bool, retry_failed: bool
    ) -> None:
        self._config = config
        self._data = data
        self._store = store
        self._workers = workers
        self._progress = progress
        self._retry_failed = retry_failed
        self._keys = Keys(store.about)
        self._valuations: dict[str, Valuation] = {}
        self._given: dict[str, Job] = {}

    def finish(self, proposer: Proposer, client: Any) -> None:
        """Run what is proposed until there is nothing left to try; first, what was proposed before."""
        blame_crashes(self._store)
        bench = Bench.of(self._data, self._valuations, self._config, self._workers)
        self._propose(proposer)
        trials = proposed_trials(self._store)
        while trials:
            self._run_trials(trials, bench, client)
            trials = self._propose(proposer)

    def _propose(self, proposer: Proposer) -> list[StoredTrial]:
        """Get new trials, and keep them before they are run."""
        known = [stored.trial for stored in proposed_trials(self._store)]
        new = [StoredTrial(trial, self._keys.set(self._recipe(trial))) for trial in proposer.ask(known)]
        if new:
            write_trials(self._store, new)
        return new

    def _recipe(self, trial: Trial) -> Recipe:
        """Give the recipe under which a trial shares its fit with others."""
        return trial.recipe.simplest(len(self._config.data.protected))

    def _run_trials(self, trials: Sequence[StoredTrial], bench: Bench, client: Any) -> None:
        recipes: dict[str, Recipe] = {}
        models: dict[str, dict[str, Mapping[str, Any]]] = {}
        for stored in trials:
            recipes.setdefault(stored.set_key, self._recipe(stored.trial))
            own = models.setdefault(stored.set_key, {})
            own.setdefault(key_of(dict(stored.trial.parameters)), stored.trial.parameters)
        for recipe in recipes.values():
            if "algorithm" in recipe.settings:
                self._load_values(recipe.settings["algorithm"])
        line = ProgressLine(sum(map(len, models.values())), show=self._progress)
        with line, note_fits(self._store, run_job) as run_here:
            jobs = self._jobs(recipes, models, bench, line)
            batches: Generator[list[Judged | LostTask[Job]], None, None]
            if client is None:
                batches = ThreadExecutor(self._workers).run_unordered(run_here, jobs, bench)
            else:
                from fado.execution import DaskExecutor  # Dask is an extra

                batches = DaskExecutor(client).run_unordered(run_job, jobs, bench)
            again = self._keep(batches, line, retry=True)
            if again:  # with the machine to themselves
                self._keep(ThreadExecutor(1).run_unordered(run_here, again, bench), line, retry=False)

    def _jobs(
        self,
        recipes: Mapping[str, Recipe],
        models: Mapping[str, Mapping[str, Mapping[str, Any]]],
        bench: Bench,
        line: ProgressLine,
    ) -> Iterator[Job]:
        """Give the fits that are not done, one training set after the other, the longest of each first."""
        for set_key, recipe in recipes.items():
            digest = self._digest(set_key, recipe, bench)
            for parameters in sorted(
                models[set_key].values(), key=lambda model: -model.get("n_estimators", 100)
            ):
                key = "" if digest is None else self._keys.fit(digest, parameters)
                record = self._store.get("fit", key)
                done = record is not None and (record.state == DONE or not self._retry_failed)
                if digest is None or done or key in self._given:
                    line.skip(record is not None and record.state == FAILED)
                else:
                    self._given[key] = Job(key, recipe, parameters)
                    yield self._given[key]

    def _keep(
        self, batches: Generator[list[Judged | LostTask[Job]], None, None], line: ProgressLine, *, retry: bool
    ) -> list[Job]:
        """Keep what comes; give back the jobs that ran out of memory, if they may be tried once more."""
        again = []
        with closing(batches):  # an error while results are kept ends the fits before the store is let go
            for batch in batches:
                kept = []
                for result in batch:
                    judged = _judged(result)
                    if judged.out_of_memory and retry:
                        again.append(self._given[judged.key])
                        continue
                    kept.append(self._record(judged))
                self._store.write(kept)
                line.add(len(kept), sum(record.state == FAILED for record in kept))
        return again

    def _record(self, judged: Judged) -> Record:
        if judged.metrics is not None:
            return self._store.save_fit(judged.key, judged.metrics, judged.seconds)
        return Record("fit", judged.key, FAILED, str(judged.error), seconds=judged.seconds)

    def _digest(self, key: str, recipe: Recipe, bench: Bench) -> str | None:
        """Give the digest of a training set; None if the intervention leaves nothing to train on."""
        record = self._store.get("set", key)
        if record is None or (record.state == FAILED and self._retry_failed):
            try:
                chosen = bench.training_set(recipe)
                text = json.dumps({"digest": chosen.digest(), "rows": len(chosen.rows)})
                record = Record("set", key, DONE, text)
            except ValueError as error:
                record = Record("set", key, FAILED, " ".join(str(error).split()))
            self._store.write([record])
        return json.loads(record.text)["digest"] if record.state == DONE else None

    def _load_values(self, algorithm: str) -> None:
        """Read the values of the training part from the store; make them, if they are not there."""
        if algorithm in self._valuations:
            return
        key = self._keys.values(algorithm)
        if self._store.get("values", key) is None:
            start = time.monotonic()
            made = value_training_part(
                self._config, self._data, algorithm, workers=self._workers, progress=self._progress
            )
            self._store.save_values(key, made, time.monotonic() - start)
            self._valuations[algorithm] = made
        else:
            self._valuations[algorithm] = self._store.load_values(key)


def _judged(result: Judged | LostTask[Job]) -> Judged:
    """Give what became of a job; one that took its workers with it is a failed one."""
    if isinstance(result, LostTask):
        return Judged(result.task.key, 0.0, error=result.reason)
    return result
