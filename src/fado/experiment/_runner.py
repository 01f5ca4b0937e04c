"""Run what a store lacks: values, training sets, fits."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from fado.engine._parallel import as_they_finish, n_workers
from fado.experiment._crashes import blame_crashes, watching
from fado.experiment._data import Data, read_data
from fado.experiment._ledger import DONE, FAILED, Record
from fado.experiment._plan import Plan, Setting, key_of
from fado.experiment._progress import ProgressLine
from fado.experiment._settings import Config
from fado.experiment._store import FORMAT, Store
from fado.experiment._workbench import Bench, Job, Judged, material_of
from fado.valuation import InBagEntropy, OutOfBagEntropy, Valuation
from fado.valuation._result import library_versions

__all__ = ["Keys", "run"]


class Keys:
    """The keys of an experiment's tasks: names made of all that their results depend on.

    Parameters
    ----------
    about : dict
        What a store says of its experiment.
    """

    def __init__(self, about: dict[str, Any]) -> None:
        self._settings = about["settings"]
        self._identity = key_of([about["format"], about["fingerprint"], about["versions"]])

    def values(self, algorithm: str) -> str:
        """Give the key of the values by an algorithm."""
        return key_of([self._identity, self._of("seed", "data.exclude", "valuation"), algorithm])

    def set(self, recipe: Setting) -> str:
        """Give the key of the training set that a setting makes."""
        return key_of([self._identity, recipe.key])

    def fit(self, digest: str, parameters: dict[str, Any]) -> str:
        """Give the key of a model that is trained on a training set."""
        return key_of([self._identity, self._of("seed", "evaluation"), digest, parameters])

    def _of(self, *places: str) -> dict[str, Any]:
        return {name: value for name, value in self._settings.items() if name.startswith(places)}


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


def run(
    config: Config,
    store: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    client: Any = None,
    progress: bool = False,
    retry_failed: bool = False,
) -> None:
    """Do what the store lacks; parameters as for `Experiment.run`."""
    workers = n_workers(n_jobs)
    data = read_data(config)
    with Store.writing(Path(store), about_of(config, data)) as opened:
        task = _Run(config, data, opened, workers, retry_failed)
        task.run(client, progress)


class _Run:
    """One run on an open store."""

    def __init__(self, config: Config, data: Data, store: Store, workers: int, retry_failed: bool) -> None:
        self._config = config
        self._data = data
        self._store = store
        self._workers = workers
        self._retry_failed = retry_failed
        self._plan = Plan.of(config)
        self._keys = Keys(store.about)

    def run(self, client: Any, progress: bool) -> None:
        blame_crashes(self._store)
        used = [recipe.algorithm for recipe in self._plan.recipes if recipe.algorithm is not None]
        valuations = {algorithm: self._values(algorithm, progress) for algorithm in dict.fromkeys(used)}
        material = material_of(self._data, valuations, self._config)
        bench = Bench(material, self._workers)
        line = ProgressLine(self._plan.n_fits, show=progress)
        with line, watching(self._store, bench.run) as run_here:
            jobs = self._jobs(bench, line)
            if client is None:
                batches = as_they_finish(run_here, jobs, self._workers)
            else:
                from fado.experiment._dask import on_cluster

                batches = on_cluster(client, material, jobs)
            again = self._finish(batches, line, retry=True)
            if again:  # with the machine to themselves
                self._finish(as_they_finish(run_here, iter(again), 1), line, retry=False)

    def _finish(
        self, batches: Generator[list[Judged], None, None], line: ProgressLine, *, retry: bool
    ) -> list[Job]:
        """Keep what comes; give back the jobs that ran out of memory, if they may be tried once more."""
        again = []
        with closing(batches):  # an error while results are kept ends the fits before the store is let go
            for batch in batches:
                kept = []
                for judged in batch:
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

    def _jobs(self, bench: Bench, line: ProgressLine) -> Iterator[Job]:
        """Give the fits that are not done, one training set after the other, the longest of each first."""
        self._given: dict[str, Job] = {}
        models = sorted(self._plan.models, key=lambda model: -model.get("n_estimators", 100))
        for recipe in self._plan.recipes:
            digest = self._digest(recipe, bench)
            for parameters in models:
                key = "" if digest is None else self._keys.fit(digest, parameters)
                record = self._store.get("fit", key)
                done = record is not None and (record.state == DONE or not self._retry_failed)
                if digest is None or done or key in self._given:
                    line.skip(record is not None and record.state == FAILED)
                else:
                    self._given[key] = Job(key, recipe, parameters)
                    yield self._given[key]

    def _digest(self, recipe: Setting, bench: Bench) -> str | None:
        """Give the digest of a training set; None if the intervention leaves nothing to train on."""
        key = self._keys.set(recipe)
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

    def _values(self, algorithm: str, progress: bool) -> Valuation:
        """Value the training part, or read the values that the store holds."""
        key = self._keys.values(algorithm)
        if self._store.get("values", key) is not None:
            return self._store.load_values(key)
        start = time.monotonic()
        valuation = _valued(self._config, self._data, algorithm, self._workers, progress)
        self._store.save_values(key, valuation, time.monotonic() - start)
        return valuation


def _valued(config: Config, data: Data, algorithm: str, workers: int, progress: bool) -> Valuation:
    settings = config.valuation
    there = data.features.column_names
    shared: dict[str, Any] = {
        "estimators": _estimators(settings.models),
        "z_exclude": {
            name: [*config.data.exclude, *([source] if source in there else [])]
            for name, source in data.sources.items()
        },
        "random_state": config.seed,
        "n_jobs": workers,
        "progress": progress,
    }
    if algorithm == "oob":
        valuator: Any = OutOfBagEntropy(
            n_bags=settings.bags, unseen_fraction=settings.unseen_fraction, **shared
        )
    else:
        valuator = InBagEntropy(**shared)
    train = data.parts["train"]
    protected = {name: values.iloc[train] for name, values in data.protected.items()}
    valuator.fit(data.features.take(train), data.positive[train], sensitive_features=protected)
    return valuator.valuation_


def _estimators(models: tuple[dict[str, Any], ...]) -> list[Any] | None:
    from lightgbm import LGBMClassifier, LGBMRegressor

    if not models:
        return None
    return [kind(**model) for model in models for kind in (LGBMClassifier, LGBMRegressor)]
