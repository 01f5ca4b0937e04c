"""Value a table in files, with any number of rows, within a memory limit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fado._checks import check_count
from fado._storage import discard
from fado._version import library_versions
from fado.execution import n_workers, opened_client
from fado.tabular import Paths, Roles, Source, open_source, read_roles, reader_of
from fado.valuation._bags import check_bags
from fado.valuation._result import Valuation
from fado.valuation._saved import open_values, read_lazily
from fado.valuation.entropy import OutOfBagEntropy, load_models
from fado.valuation.large._learning import learn
from fado.valuation.large._plan import FilesPlan, make_plan, memory_bound
from fado.valuation.large._run import LEARNT, Run
from fado.valuation.large._scoring import join_parts, score_parts

_MOST_SEED = 2**63 - 1
_MOST_TRAIN_ROWS = 10**12
_MANY_ROWS = 10**9  # of a CSV file, while they have not been counted


def value_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    unknown: Any = None,
    out: str | os.PathLike[str],
    memory: str | int | None = None,
    client: Any = None,
    train_rows: int | None = None,
    n_bags: int = 10,
    unseen_fraction: float = 0.2,
    drop: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    weight: str | None = None,
    groups: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Valuation:
    """Value every row of a table in files by how uncertain models trained on other rows are about it.

    The table is read twice, block by block. The models are the default models of `OutOfBagEntropy`, and learn
    from a sample that fits into memory. If that is all rows, values are those of `OutOfBagEntropy`, to the
    bit. If not, those of the sampled rows are, with the sample as its table, and the other rows are scored by
    as many models. Values are written part by part. If a run ends early for any reason, call it again with
    the same arguments: it continues, and gives the same values.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A Parquet or CSV file, several, a directory, or a shell pattern such as ``"loans-*.parquet"``. Rows
        are in the order of the sorted paths; files whose names begin with ``_`` or ``.`` are ignored.
    target : str
        The column to predict, or comparisons such as ``"amount>=1000"``, whose labels are True and
        False. No model sees the columns that it is read from.
    protected : str or sequence of str
        The protected attributes: columns, or comparisons such as ``"age>=50"``, as
        `fado.datasets.protected_from` takes them. The groups of comparisons are named after them,
        ``age >= 50`` and ``age < 50``. The columns that an attribute is read from are hidden from its models.
    unknown : value or list of values, optional
        Entries of these columns that mean the same as a missing one, such as ``"?"`` or ``-1``.
    out : path-like
        A directory for the values in parts, which is created if it does not exist, or a file that ends in
        ``.parquet``.
    memory : str or int, optional
        The memory limit: a size such as ``"4GB"``, or a number of bytes; by default three quarters
        of what is free. It affects values only through the number of rows that models learn from, and only if
        `train_rows` is not given.
    client : dask.distributed.Client, cluster or str, optional
        A cluster whose workers can read the files and write to `out`: a client of it, the cluster object,
        or its scheduler's address. The workers fit the models, and score and write the parts.
    train_rows : int, optional
        About how many rows the models of a bag learn from; by default as many as fit into memory, at most
        400,000.
    n_bags : int, default=10
        How many bags.
    unseen_fraction : float, default=0.2
        The share of the rows that each bag leaves out. ``n_bags * unseen_fraction`` must be at least 1.
    drop : str or sequence of str, optional
        Columns, or patterns such as ``"id_*"``, that no model may see.
    exclude : str or sequence of str, optional
        Columns, or patterns such as ``"age_*"``, that no model of a protected attribute may see.
    weight : str, optional
        The column with the weight of each row in the fits, which scale it to a mean of 1; no model
        sees it.
    groups : str, optional
        The column that identifies rows that belong together, such as those of one person or one month. A bag
        contains all of them or none, and a row is never scored by models that have seen another of its
        group. No model sees the column.
    random_state : int, default=0
        Seed of the sample, the bags and the fits.
    n_jobs : int, optional
        How many threads work; None uses every core. The result does not depend on it.
    progress : bool, default=False
        Whether to show progress bars.

    Returns
    -------
    Valuation
        The values, in the order of the rows. A column is read when it is first used. `metadata` has the
        number of rows that models learnt from.

    Raises
    ------
    ValueError
        If a file or a setting is not valid, `memory` is too small, or `out` holds a run with other arguments.

    See Also
    --------
    fado.OutOfBagEntropy : The same for a table in memory.
    fado.valuation.plan_files : Rows and memory that it would take.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> import fado
    >>> rng = np.random.default_rng(0)
    >>> settings = {"target": "default", "protected": "age >= 50", "memory": "500MB"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         frame = pd.DataFrame({"income": rng.normal(size=500)})
    ...         frame["age"] = rng.integers(18, 80, size=500)
    ...         frame["default"] = frame["income"] + rng.normal(size=500) < 0
    ...         frame.to_parquet(f"{folder}/loans-{part}.parquet")
    ...     files, out = f"{folder}/loans-*.parquet", f"{folder}/values"
    ...     valuation = fado.value_files(files, out=out, **settings)
    ...     valuation.shape, sorted(valuation.counts["y"].unique().tolist())
    ((1000, 2), [2])
    """
    seed = check_count("random_state", random_state, 0, _MOST_SEED)
    final = Path(out)
    is_file = final.suffix.lower() == ".parquet"
    columns = {"target": target, "protected": protected, "drop": drop, "exclude": exclude}
    columns |= {"weight": weight, "groups": groups, "unknown": unknown}
    sizes = {"train_rows": train_rows, "n_bags": n_bags, "unseen_fraction": unseen_fraction}
    run = Run(final.parent / f".{final.name}.parts" if is_file else final)
    with opened_client(client) as opened:
        source, roles, plan = _open(paths, columns, memory, n_jobs, **sizes)
        check_out(final, source, paths)
        request: dict[str, Any] = {
            "target": roles.target.name,
            "protected": roles.names[1:],
            "unknown": [str(value) for value in roles.unknown],
            "features": list(roles.features),
            "excluded": {name: list(hidden) for name, hidden in roles.excluded.items()},
            "weight": weight,
            "groups": groups,
            "random_state": seed,
            "n_bags": int(n_bags),
            "unseen_fraction": float(unseen_fraction),
            "train_rows": None if train_rows is None else int(train_rows),
            "versions": library_versions(),
            "schema": hashlib.sha256(source.schema.remove_metadata().to_string().encode()).hexdigest(),
            "files": [
                {"path": str(file.path.resolve()), "size": file.size, "modified": file.modified}
                for file in source.files
            ],
        }
        with run.held():
            begun = run.begin(request, plan.train_rows)
            if not run.is_done():
                if (run.directory / LEARNT.name).is_file():
                    models = load_models(run.models)
                else:
                    if memory is not None and begun["train_rows"] > plan.train_rows:
                        raise ValueError(
                            f"The values in {str(run.directory)!r} were started with memory for "
                            f"{begun['train_rows']:,} training rows, and `memory` is now for "
                            f"{plan.train_rows:,}: give as much as before, or name another `out` to start "
                            "again."
                        )
                    valuator = OutOfBagEntropy(
                        n_bags=n_bags,
                        unseen_fraction=unseen_fraction,
                        z_exclude=request["excluded"],
                        random_state=seed,
                        n_jobs=n_jobs,
                        progress=progress,
                        keep_models=True,
                    )
                    rows, block_rows = begun["train_rows"], plan.block_rows
                    models = learn(source, roles, valuator, run, rows, block_rows=block_rows, client=opened)
                    del valuator
                    pa.default_memory_pool().release_unused()
                score_parts(
                    source,
                    roles,
                    models,
                    run,
                    begun["digest"],
                    block_rows=plan.block_rows,
                    workers=plan.workers,
                    client=opened,
                    progress=progress,
                )
            if is_file:
                parts, about = open_values(run.directory)
                join_parts([part.path for part in parts], final, about)
        if is_file:
            discard(run.directory, final)
        return read_lazily(final)


def plan_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    unknown: Any = None,
    memory: str | int | None = None,
    train_rows: int | None = None,
    n_bags: int = 10,
    unseen_fraction: float = 0.2,
    drop: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    weight: str | None = None,
    groups: str | None = None,
    n_jobs: int | None = None,
) -> FilesPlan:
    """Report what `value_files` would do, without doing it: rows, training rows, parts and memory.

    Parameters
    ----------
    paths, target, protected, unknown, memory, train_rows, n_bags, unseen_fraction, drop, exclude
    weight, groups
        As `value_files` takes them.
    n_jobs : int, optional
        How many threads would work.

    Returns
    -------
    FilesPlan
        ``print`` shows it as a few lines.

    Raises
    ------
    ValueError
        If a file or a setting is not valid, or `memory` is too small.

    See Also
    --------
    fado.value_files : Do what is planned.
    """
    columns = {"target": target, "protected": protected, "drop": drop, "exclude": exclude}
    columns |= {"weight": weight, "groups": groups, "unknown": unknown}
    sizes = {"train_rows": train_rows, "n_bags": n_bags, "unseen_fraction": unseen_fraction}
    return _open(paths, columns, memory, n_jobs, **sizes)[2]


def _open(
    paths: Paths, columns: dict[str, Any], memory: str | int | None, n_jobs: int | None, **sizes: Any
) -> tuple[Source, Roles, FilesPlan]:
    """Open the table, find the roles of its columns, and plan the work."""
    if sizes["train_rows"] is not None:
        check_count("train_rows", sizes["train_rows"], 1, _MOST_TRAIN_ROWS)
    bound = memory_bound(memory)
    source = open_source(paths)
    roles = read_roles(source.schema, **columns)
    check_bags(source.n_rows or _MANY_ROWS, sizes["n_bags"], sizes["unseen_fraction"])
    return source, roles, make_plan(source, roles, memory=bound, workers=n_workers(n_jobs), **sizes)


def check_out(out: Path, source: Source, paths: Paths, beside: Sequence[Path] = ()) -> None:
    """Refuse, before any work is done, an output that cannot be written or would replace an input.

    `paths` is the table as the user named it, `beside` what else is read: files, or directories of them.
    """
    if out.suffix.lower() == ".csv":
        raise ValueError(f"`out` must be a directory, or end in .parquet, got {str(out)!r}.")
    if not out.parent.is_dir():
        raise ValueError(f"The directory {str(out.parent)!r} does not exist: create it first.")
    is_file = out.suffix.lower() == ".parquet"
    if is_file and out.is_dir():
        raise ValueError(f"{str(out)!r} is a directory: name a file, or a directory without that ending.")
    if not is_file and out.exists() and not out.is_dir():
        raise ValueError(f"{str(out)!r} is a file: name a directory, or a file that ends in .parquet.")
    if not os.access(out if out.is_dir() else out.parent, os.W_OK):
        raise ValueError(f"The directory {str(out if out.is_dir() else out.parent)!r} is not writable.")
    files = [file.path.resolve() for file in source.files]
    others = [path.resolve() for path in beside]
    if out.resolve() in {*files, *others, *(path.parent for path in files)} or out.resolve().parent in others:
        raise ValueError(f"`out` is {str(out)!r}, which is read as well: name another.")
    reader = reader_of(paths, out)
    if reader is not None:
        raise ValueError(
            f"`out` is {str(out)!r}, which {reader!r} would read the next time: name a place elsewhere, or a "
            "name that begins with '_'."
        )
