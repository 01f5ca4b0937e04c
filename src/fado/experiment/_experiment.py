"""The experiment: a configuration that can be run."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fado.experiment._config import Config, config_from, read_toml, write_preset
from fado.experiment._data import read_data
from fado.experiment._metrics import check_metrics
from fado.experiment._models import copied
from fado.experiment._results import Results
from fado.experiment._trial import GridProposer

if TYPE_CHECKING:
    import pandas as pd


class Experiment:
    """Compare interventions: apply each, train the same models after it, and measure them.

    Parameters
    ----------
    config : dict
        The configuration as plain data, with the keys of the TOML file; `write_example` writes such a file.
    estimator : estimator, optional
        The model to train after every intervention: any unfitted scikit-learn classifier or pipeline. None
        is the one that ``models.estimator`` of the configuration names, by default LightGBM's classifier.
    space : dict, optional
        The values from which the models' parameters are drawn, instead of ``models.space``. For the name of
        each parameter it has a value, a list of choices, or ``{"log_uniform": [low, high]}``. The names are
        those of ``estimator.get_params()``.
    metrics : dict of str to callable, optional
        Further metrics by name, for the columns ``validation_<name>`` and ``test_<name>``: functions of the
        labels, scores and groups of a part's rows; see `register_metric`. If one of them raises an error or
        does not return a number, the fit is recorded as failed.

    See Also
    --------
    fado.experiment.Results : What a run returns.
    fado.find_frontier : A search that needs no configuration.

    References
    ----------
    Pombal et al. (2023). Fairness-aware data valuation for supervised learning. arXiv:2303.16963.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from fado.experiment import Experiment
    >>> experiment = Experiment({
    ...     "data": {
    ...         "generator": "account_fraud", "rows": 4000,
    ...         "target": "fraud_bool", "protected": "customer_age>=50",
    ...     },
    ...     "split": {
    ...         "method": "random", "train": 0.6, "validation": 0.2, "test": 0.2
    ...     },
    ...     "interventions": {"uar": {"alphas": [0.0, 1.0]}},
    ...     "models": {
    ...         "count": 2, "space": {"n_estimators": {"log_uniform": [5, 20]}}
    ...     },
    ... })
    >>> experiment
    Experiment of 5 interventions x 2 models = 10 rows, 10 fits
    >>> with TemporaryDirectory() as store:
    ...     results = experiment.run(store, n_jobs=1)
    >>> results
    Results of 10 models (10 done)
    >>> results.frame["intervention"].unique().tolist()
    ['none', 'RPS', 'RW', 'UAR']
    """

    def __init__(
        self,
        config: dict[str, Any],
        *,
        estimator: Any = None,
        space: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._config = config_from(config, estimator=estimator, space=space, metrics=metrics)
        self._estimator = copied(estimator)
        self._metrics = check_metrics(metrics)

    @classmethod
    def from_toml(
        cls,
        path: str | os.PathLike[str],
        *,
        estimator: Any = None,
        space: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Experiment:
        """Read an experiment from a TOML file.

        Parameters
        ----------
        path : path-like
            The file. If it names the data by a relative path, that is relative to the file's directory.
        estimator, space, metrics
            As for `Experiment`.
        """
        return cls(read_toml(path), estimator=estimator, space=space, metrics=metrics)

    @staticmethod
    def write_example(path: str | os.PathLike[str], preset: str = "quick") -> None:
        """Write a commented configuration that runs without changes.

        Parameters
        ----------
        path : path-like
            The TOML file to write; it must not exist yet.
        preset : {"quick", "paper"}, default="quick"
            ``"quick"`` runs in under a minute; ``"paper"`` is the paper's whole grid.
        """
        write_preset(path, preset)

    @property
    def config(self) -> Config:
        """The checked configuration."""
        return self._config

    def check_columns(self) -> pd.DataFrame:
        """Report columns of the data that need a decision before models learn them: `fado.check_columns`."""
        from fado.columns import report_columns

        data = read_data(self._config)
        target, *protected = data.problem.sources
        return report_columns(data.problem.table, target, protected, data.sources)

    def without_columns(self, names: Sequence[str]) -> Experiment:
        """Return the experiment without some features.

        Parameters
        ----------
        names : sequence of str
            The columns, beside those of ``data.drop``.
        """
        other, data = copy.copy(self), self._config.data
        other._config = replace(self._config, data=replace(data, drop=(*data.drop, *names)))
        return other

    @property
    def plan(self) -> GridProposer:
        """The plan: `n_rows` trials, `n_fits` fits and `n_changes` of scores; equal trials share one fit."""
        return GridProposer.of(self._config)

    def __repr__(self) -> str:
        plan = self.plan
        changes = f", {plan.n_changes:,} changes of scores" if plan.n_changes else ""
        return (
            f"Experiment of {len(plan.recipes):,} interventions x {len(plan.models):,} models = "
            f"{plan.n_rows:,} rows, {plan.n_fits:,} fits{changes}"
        )

    def estimated_seconds(self, *, n_jobs: int | None = None) -> float:
        """Estimate how long the fits of all models take on this machine, in seconds.

        The estimate grows a few trees of some LightGBM models, or fits some models of another estimator.

        Parameters
        ----------
        n_jobs : int, optional
            How many fits would run in parallel; None uses every core.

        Returns
        -------
        float
        """
        from fado.experiment._runner import estimate_seconds

        return estimate_seconds(self._config, n_jobs, self._estimator, self._metrics)

    def run(
        self,
        store: str | os.PathLike[str],
        *,
        n_jobs: int | None = None,
        client: Any = None,
        progress: bool = False,
        retry_failed: bool = False,
        isolated: bool = True,
    ) -> Results:
        """Run the fits that the store does not hold yet, and return the results.

        Parameters
        ----------
        store : path-like
            The directory of the results: a new one, or that of an earlier run of the same experiment, which
            is resumed.
        n_jobs : int, optional
            How many fits run in parallel; None uses every core. Results do not depend on it.
        client : dask.distributed.Client, cluster or str, optional
            A Dask cluster that runs all fits: a client, the cluster object, or the address of its scheduler.
            The store stays on this machine.
        progress : bool, default=False
            Whether to show a progress line.
        retry_failed : bool, default=False
            Whether to repeat fits that failed in an earlier run.
        isolated : bool, default=True
            Whether fits run in worker processes. A fit that crashes its worker, or takes longer than
            ``models.deadline``, is then recorded as failed, and the others continue. False runs fits in
            threads of this process, which a debugger needs; Windows always does.

        Returns
        -------
        Results

        Raises
        ------
        RuntimeError
            If another process is using the store.
        ValueError
            If the store holds another experiment: other data, another configuration or other versions of
            libraries.
        """
        from fado.experiment._runner import run_experiment

        return run_experiment(
            self._config,
            Path(store),
            n_jobs=n_jobs,
            client=client,
            progress=progress,
            retry_failed=retry_failed,
            estimator=self._estimator,
            metrics=self._metrics,
            isolated=isolated,
        )
