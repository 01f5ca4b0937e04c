"""Trials as runs of MLflow."""

from __future__ import annotations

import re
import time
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

from fado._version import __version__
from fado.experiment._frame import identity_of, rows_out
from fado.experiment._trial import DONE, Trial

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment._results import Results

__all__ = ["log_runs"]

TRIAL, STORE = "fado.trial", "fado.store"
_AT_ONCE = 100  # entries of a kind that a server takes in one request
_LONGEST = 500  # characters of a parameter, and of an error, that every server takes
_FORBIDDEN = re.compile(r"[^\w./: -]")  # in MLflow's names
_WORDS = {">=": " ge ", "<=": " le ", "!=": " ne ", "==": " eq ", ">": " gt ", "<": " lt ", "=": " eq "}


def log_runs(results: Results, experiment_name: str, tracking_uri: str | None) -> pd.Series[str]:
    """Do the work of `Results.to_mlflow`."""
    import pandas as pd

    client = _mlflow().MlflowClient(tracking_uri=tracking_uri)
    identity = identity_of(results)
    found = client.get_experiment_by_name(experiment_name)
    experiment = client.create_experiment(experiment_name) if found is None else found.experiment_id
    known = _known_runs(client, experiment, identity)
    runs = {}
    for key, row in rows_out(results, identity).items():
        run = known.get(key)
        if run is None:
            name = f"{row.intervention} {row.number}"
            tags = _tags(row) | {TRIAL: key, STORE: identity}
            run = client.create_run(experiment, tags=tags, run_name=name).info
        if run.status == "RUNNING":  # new, or cut short when it was sent before
            _fill(client, run.run_id, row)
        runs[row.number] = run.run_id
    return pd.Series(runs, name="run_id", dtype="str")


def _known_runs(client: Any, experiment: str, identity: str) -> dict[str, Any]:
    """Find the runs that were sent before, by trial."""
    known: dict[str, Any] = {}
    token = None
    while True:
        page = client.search_runs(
            [experiment], filter_string=f"tags.`{STORE}` = '{identity}'", page_token=token
        )
        known |= {run.data.tags[TRIAL]: run.info for run in page}
        token = page.token
        if not token:
            return known


def _tags(row: Trial) -> dict[str, str]:
    tags = {"fado.version": __version__, "fado.status": row.status}
    return tags if row.error is None else tags | {"fado.error": row.error[:_LONGEST]}


def _fill(client: Any, run: str, row: Trial) -> None:
    """Send all that is known of a trial, and close its run."""
    from mlflow.entities import Metric, Param

    now = int(1000 * time.time())
    told = {"intervention": row.intervention, **row.settings, "model": row.model, **row.parameters}
    parameters = [Param(name, str(value)[:_LONGEST]) for name, value in _named(told).items()]
    metrics = [Metric(name, value, now, 0) for name, value in _named(dict(row.metrics or {})).items()]
    for start in range(0, max(len(parameters), len(metrics)), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        client.log_batch(run, metrics=metrics[part], params=parameters[part])
    with redirect_stdout(StringIO()):  # of a server, it prints where each run can be seen
        client.set_terminated(run, "FINISHED" if row.status == DONE else "FAILED")


def _named(entries: dict[str, Any]) -> dict[str, Any]:
    """Give entries names that MLflow takes, different ones different names.

    Examples
    --------
    >>> list(_named({"tpr": 1, "fpr_ratio[age>=50]": 1, "fpr_ratio[age<50]": 1, "a(b": 1, "a)b": 1}))
    ['tpr', 'fpr_ratio/age ge 50', 'fpr_ratio/age lt 50', 'a_b', 'a_b_2']
    """
    named: dict[str, Any] = {}
    for name, value in entries.items():
        text = name.removesuffix("]").replace("[", "/")
        for sign, word in _WORDS.items():
            text = re.sub(rf"\s*{sign}\s*", word, text)
        text = plain = _FORBIDDEN.sub("_", text).strip()
        number = 2
        while text in named:
            text, number = f"{plain}_{number}", number + 1
        named[text] = value
    return named


def _mlflow() -> Any:
    try:
        import mlflow
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "`to_mlflow` needs MLflow: install it with `pip install 'fado-ml[mlflow]'`.", name=error.name
        ) from error
    return mlflow
