"""Value a table in files, however many rows it has, within a bound on memory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fado._checks import check_count
from fado._messages import warn_user
from fado._storage import remove_unfinished
from fado.execution import opened_client
from fado.tabular import TARGET, positive_code
from fado.valuation._provenance import CLOSENESS, ENTROPY
from fado.valuation._result import Valuation
from fado.valuation._saved import DONE, PLAN, About, footer_digest, open_parts, read_lazily
from fado.valuation.bulk._folds import Folds
from fado.valuation.bulk._frames import clear_staged, is_dask_frame, schema_of, stage, token_of
from fado.valuation.bulk._learning import Learner, learn
from fado.valuation.bulk._ledger import (
    LEARNT,
    MODELS,
    SAMPLE,
    compare,
    folds_from,
    folds_to_plain,
    held,
    is_done,
    remove_run,
    request_of,
    settle,
)
from fado.valuation.bulk._parts import join_parts, read_sums
from fado.valuation.bulk._plan import FilesPlan
from fado.valuation.bulk._reading import SHARE_OF_FREE
from fado.valuation.bulk._request import (
    Asked,
    Paths,
    Request,
    check_out,
    check_place,
    directory_of,
    read_request,
)
from fado.valuation.bulk._scan import scan
from fado.valuation.bulk._score_parts import Place, score_parts
from fado.valuation.bulk._scoring import FIELDS, Scoring
from fado.valuation.bulk._summary import GroupLine, group_lines
from fado.valuation.bulk._training import sample_size
from fado.valuation.entropy import ValuationModels, load_models

__all__ = ["plan_files", "summarise_files", "value_files"]

_MOST_SEED = 2**63 - 1


def value_files(
    paths: Any,
    *,
    target: str,
    protected: str | Sequence[str],
    out: str | os.PathLike[str],
    memory: str | int | None = None,
    client: Any = None,
    train_rows: int | None = None,
    n_bags: int = 10,
    unseen_fraction: float = 0.2,
    drop: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    weight: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Valuation:
    """Value every row of a table in files by how unsure models trained on other rows are of it.

    The table is read twice, block by block. The models are the default models of `OutOfBagEntropy`, and learn
    from a sample that fits into memory. Each bag leaves out a fold of all rows, and every row is scored by
    the models of the bags that leave it out. Values are written part by part. If a run is ended in any way,
    call it again with the same arguments: it goes on where it was, and gives the same values.

    Parameters
    ----------
    paths : path-like, sequence of path-like, or dask DataFrame
        A Parquet or CSV file, several, a directory, or a shell pattern such as ``"loans-*.parquet"``. Rows
        are in the order of the sorted paths; files whose names begin with ``_`` or ``.`` are ignored. A dask
        DataFrame is first written to Parquet files in `out`, partition by partition; these are removed in the
        end.
    target : str
        The column to be predicted, or comparisons such as ``"amount>=1000"``, whose labels are True and
        False. No model sees the columns that it is read from.
    protected : str or sequence of str
        The protected attributes: columns, or comparisons such as ``"age>=50"``, as
        `fado.datasets.protected_from` takes them. Groups of comparisons are called by what they compare,
        ``age >= 50`` and ``age < 50``. The columns that an attribute is read from are hidden from its models.
    out : path-like
        A directory for the values in parts, which is made if it does not exist, or a file that ends in
        ``.parquet``.
    memory : str or int, optional
        The memory that may be used: a size such as ``"4GB"``, or a number of bytes; by default three quarters
        of what is free. It affects values only by how many rows models can learn from, and only if
        `train_rows` is not given.
    client : dask.distributed.Client, cluster or str, optional
        A cluster whose workers can read the files and write to `out`, by a client of it, the cluster object,
        or its scheduler's address. They fit the models, and score and write the parts.
    train_rows : int, optional
        How many rows the models of a bag learn from. Without it, a learning curve on the first bag decides:
        the number is doubled until doubling raises the rank correlation of values by less than 0.005, or
        memory is full.
    n_bags : int, default=10
        How many bags; a multiple of ``1 / unseen_fraction``.
    unseen_fraction : float, default=0.2
        The share of the rows that each bag leaves out; ``1 / unseen_fraction`` must be a whole number.
    drop : str or sequence of str, optional
        Columns, or patterns such as ``"id_*"``, that no model may see.
    exclude : str or sequence of str, optional
        Columns, or patterns such as ``"age_*"``, that no model of a protected attribute may see.
    weight : str, optional
        The column that says how much each row counts in the fits, which scale it to a mean of 1; no model
        sees it.
    random_state : int, default=0
        Seed of the sample, the bags and the fits.
    n_jobs : int, optional
        How many threads work; None uses every core. It never changes a value.
    progress : bool, default=False
        Whether to show progress bars.

    Returns
    -------
    Valuation
        The values, in the order of the rows. A column is read when it is first used. `metadata` says how many
        rows models learnt from, and the rank correlation that the learning curve found.

    Raises
    ------
    ValueError
        If a file or a setting is not valid, `memory` is too small, or `out` holds a run with other arguments.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> import fado
    >>> rng = np.random.default_rng(0)
    >>> asked = {"target": "default", "protected": "age >= 50", "memory": "500MB"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         frame = pd.DataFrame({"income": rng.normal(size=500), "age": rng.integers(18, 80, size=500)})
    ...         frame["default"] = frame["income"] + rng.normal(size=500) < 0
    ...         frame.to_parquet(f"{folder}/loans-{part}.parquet")
    ...     valuation = fado.value_files(f"{folder}/loans-*.parquet", out=f"{folder}/values", **asked)
    ...     valuation.shape, sorted(valuation.counts["y"].unique().tolist())
    ((1000, 2), [2])
    """
    seed = check_count("random_state", random_state, 0, _MOST_SEED)
    asked = Asked(
        target, protected, drop, exclude, weight, memory, train_rows, n_bags, unseen_fraction, n_jobs, seed
    )
    with opened_client(client) as opened:
        return _value_table(paths, Path(out), asked, opened, progress=progress)


def _value_table(paths: Any, final: Path, asked: Asked, client: Any, *, progress: bool) -> Valuation:
    """Value a table in files, or a dask DataFrame, which is first written to some."""
    directory = directory_of(final)
    if not is_dask_frame(paths):
        work = read_request(paths, asked)
        check_out(final, work.source, paths)
        with held(directory):
            _finish(directory, work, None, client, progress=progress)
            _bring(directory, final)
        return read_lazily(final)
    roles = asked.roles(schema_of(paths))
    check_place(final)
    stand_in = [{"path": f"dask DataFrame {token_of(paths)}", "size": 0, "modified": 0}]
    with held(directory):
        if (directory / PLAN.name).is_file():
            compare(directory, PLAN.open(directory)["request"], {**asked.decisive(roles), "files": stand_in})
        if not is_done(directory):
            work = read_request(stage(paths, directory, client), asked)
            _finish(directory, work, stand_in, client, progress=progress)
        clear_staged(directory)
        _bring(directory, final)
    return read_lazily(final)


def plan_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    memory: str | int | None = None,
    train_rows: int | None = None,
    n_bags: int = 10,
    unseen_fraction: float = 0.2,
    drop: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    weight: str | None = None,
    n_jobs: int | None = None,
) -> FilesPlan:
    """Say what `value_files` would do, without doing it: rows, training rows, parts, memory and time.

    Parameters
    ----------
    paths, target, protected, memory, train_rows, n_bags, unseen_fraction, drop, exclude, weight, n_jobs
        As `value_files` takes them, but no dask DataFrame.

    Returns
    -------
    FilesPlan
        ``print`` shows it as a few lines.

    Raises
    ------
    ValueError
        If a file or a setting is not valid, or `memory` is too small.
    """
    if is_dask_frame(paths):
        raise ValueError(
            "A dask DataFrame has no plan before it is computed: give it to `value_files`, or write it with "
            "`to_parquet` and plan those files."
        )
    asked = Asked(
        target, protected, drop, exclude, weight, memory, train_rows, n_bags, unseen_fraction, n_jobs
    )
    return read_request(paths, asked).plan


def summarise_files(path: str | os.PathLike[str], positive: Any = None) -> dict[str, list[GroupLine]]:
    """Summarise the groups of every protected attribute of classes, without reading the rows.

    Parameters
    ----------
    path : path-like
        The directory, or the file, that `value_files` wrote.
    positive : label, optional
        The target's positive label; None means the larger of two.

    Returns
    -------
    dict of str to list of GroupLine
        Per attribute, its groups, the largest first. Attributes with more than 100 groups are left out.
    """
    final = Path(path)
    files = [part.path for part in open_parts(final)[0]] if final.is_dir() else [final]
    notes = read_lazily(final).provenance.variables
    classes = {name: note.classes or () for name, note in notes.items()}
    code = positive_code(classes[TARGET], positive) if classes[TARGET] else None
    return group_lines(classes, (own for file in files for own in read_sums(file)), code)


def _finish(
    directory: Path,
    work: Request,
    files: Sequence[Mapping[str, Any]] | None,
    client: Any,
    *,
    progress: bool,
) -> None:
    """Do all that is not done yet."""
    frozen = settle(directory, request_of(work.source, work.decisive(), files), work.frozen())
    if is_done(directory):
        return
    asked = work.asked
    if not (directory / LEARNT.name).is_file():
        most = int(frozen["most_train_rows"])
        _check_room(directory, work, most)
        learner = Learner(
            work.roles,
            Folds(asked.seed, work.tiles, work.n_folds),
            asked.unseen_fraction,
            asked.seed,
            asked.n_jobs,
            progress,
            client,
            directory / SAMPLE,
        )
        _learn(directory, work, learner, most)
    told = LEARNT.open(directory)
    models = load_models(directory / MODELS)
    about = _about(models, told)
    source = work.source.with_rows_counted(told["file_rows"])
    parts = source.parts(int(frozen["part_rows"]))
    scoring = Scoring(work.roles, folds_from(told["folds"]), models.kept)
    place = Place(source, scoring, about, directory, work.plan.block_rows, PLAN.open(directory)["digest"])
    score_parts(place, parts, workers=work.plan.workers, client=client, progress=progress)
    (directory / SAMPLE).unlink(missing_ok=True)  # of a run that was ended while models learnt
    remove_unfinished(directory)  # of workers that were killed
    entries = [
        {"file": path.name, "rows": part.n_rows, "digest": footer_digest(path)}
        for path, part in ((place.path(part), part) for part in parts)
    ]
    DONE.write(directory, {"parts": entries, "description": about.describe().decode()})


def _check_room(directory: Path, work: Request, most: int) -> None:
    """Refuse a bound that the sample of a run that was begun before does not fit into.

    Without one, what is free now is no reason to give up: the sample was frozen, as it decides values.
    """
    fitting = work.plan.train_rows
    if most <= fitting:
        return
    begun = f"The values in {str(directory)!r} were begun with memory for {most:,} training rows, and"
    if work.asked.memory is not None:
        raise ValueError(
            f"{begun} `memory` is now for {fitting:,}: give as much as before, or name another `out` to "
            "begin anew."
        )
    if SHARE_OF_FREE * most > fitting:
        warn_user(
            f"{begun} what is free now is for {fitting:,}: the run goes on with as many as before, and may "
            "run out of memory."
        )


def _bring(directory: Path, final: Path) -> None:
    """Bring values to where they are wanted."""
    if directory == final:
        return
    about = _about(load_models(directory / MODELS), LEARNT.open(directory))
    join_parts([part.path for part in open_parts(directory)[0]], final, about)
    remove_run(directory)


def _learn(directory: Path, work: Request, learner: Learner, most_train_rows: int) -> None:
    """Read all rows once, train the models, and note what the second pass needs."""
    import pyarrow as pa

    found = scan(
        work.source,
        work.roles,
        learner.seed,
        n_sampled=sample_size(most_train_rows, work.n_folds),
        block_rows=work.plan.block_rows,
        progress=learner.progress,
    )
    pa.default_memory_pool().release_unused()
    learner = replace(learner, folds=learner.folds.with_small_strata(found.small_rows, found.small_strata))
    models = learn(found, learner, most_train_rows, is_asked=work.plan.is_asked)
    notes = {
        "file_rows": list(found.file_rows),
        "folds": folds_to_plain(learner.folds),
        "target_pattern": found.target_pattern,
    }
    shutil.rmtree(directory / MODELS, ignore_errors=True)  # of a run that was ended before they were noted
    models.save(directory / MODELS)
    LEARNT.write(directory, notes)
    pa.default_memory_pool().release_unused()


def _about(models: ValuationModels, told: dict[str, Any]) -> About:
    """Say what the columns of the values are, and how they came about."""
    scales = {
        own.variable.name: ENTROPY if own.variable.kind == "classes" else CLOSENESS for own in models.kept
    }
    provenance = replace(models.provenance, target_pattern=told["target_pattern"])
    return About(models.variables, list(FIELDS), scales, provenance, {})
