"""Sample and reweigh tables in files.

Labels, groups and utilities of all rows are read block by block into arrays. The intervention decides on
these as it does in memory. Then the rows that are kept are read again and written, or the weights are
written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet
from sklearn.utils import check_random_state

from fado._checks import sklearn_seed
from fado._memory import format_memory
from fado._messages import COMPARE_TARGET, insert_parameters
from fado._progress import tracked
from fado._storage import remove_abandoned, replacing, replacing_directory
from fado._typing import Floats
from fado.interventions._base import (
    BaseIntervention,
    checked_utility,
    no_cells,
    no_utilities,
    utilities_of,
)
from fado.interventions._changes import FilesChange, change_of
from fado.interventions._reweighing import UtilityAwareReweigher
from fado.interventions._sampling import UtilityAwarePrevalenceSampler
from fado.tabular import (
    TARGET,
    Combinations,
    GroupNames,
    Groups,
    Labels,
    Paths,
    Roles,
    Source,
    TablePass,
    check_comparisons,
    check_group_names,
    check_known,
    column_from,
    group_rows,
    in_blocks,
    labels_of,
    open_source,
    read_roles,
    warn_of_unknown_rows,
)
from fado.utility import CobbDouglasUtility, DifferenceUtility, LinearUtility
from fado.valuation import Valuation
from fado.valuation.large import StoredValues, check_out, memory_bound, part_name, reading_costs

BLOCK_ROWS = 1 << 16  # that are read at once
_COPIES = 3  # of a block: as it was read, cut to size, and what is made of it
_BYTES_OF_A_CODED_ROW = 200  # of a block, while it is coded
_COLUMNS_OF_A_UTILITY = 4  # that it makes of all rows: ranks, orders, and what it gives
_ENCODING = 60 * 10**6  # bytes of pages that are encoded and compressed

_ROWS_OF_A_PART = 1 << 20
_MOST_ROWS, _LEAST_ROWS = 1 << 17, 1 << 10  # of a row group
_CELLS = 1 << 21  # of a row group, about

_ROW_BY_ROW = (LinearUtility, DifferenceUtility, CobbDouglasUtility)  # no row's utility depends on others
_WEIGHTS = pa.schema([pa.field("weight", pa.float64())])
_ALL = "all rows"


def sample_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    unknown: Any = None,
    out: str | os.PathLike[str],
    values: str | os.PathLike[str] | None = None,
    intervention: BaseIntervention | None = None,
    weight: str | None = None,
    memory: str | int | None = None,
    progress: bool = False,
    group_names: GroupNames | None = None,
) -> FilesChange:
    """Drop rows of a table in files, and write the others.

    The result is the same as in memory with the same rows, values and seed.

    The table is read twice: first the columns that are named here, then all columns of the rows that are
    written. While the intervention decides, about 20 bytes per row are in memory: labels, groups, utilities,
    an order drawn at random and which rows stay. With `weight` it is 40; a custom intervention may take 80.
    If `memory` is too small for that, an error states how much is needed. A custom `utility` gets the values
    of all rows at once, and is refused if `memory` is too small for them.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A Parquet or CSV file, several, a directory, or a pattern such as ``"data/*.parquet"``. The table is
        made of the rows of all files, in the order of their sorted paths.
    target : str
        The column of labels, or a comparison such as ``"amount>=1000"``, whose labels are True and False.
    protected : str or sequence of str
        The protected attributes: columns, or comparisons such as ``"age>=50"``, as
        `fado.datasets.protected_from` accepts them. The groups are the combinations of several. Rows with a
        missing value are counted as unknown; they stay as they are and count in no rate.
    unknown : value or list of values, optional
        Entries of the columns of `protected` that mean the same as a missing one, such as ``"?"`` or ``-1``.
    out : path-like
        Where to write: a file that ends in ``.parquet``, or a directory for several files, which must be new
        or empty. It appears only when all rows are written.
    values : path-like, optional
        The values of these rows, written by `fado.value_files`: a directory, or a Parquet file. Needed by
        interventions that use values.
    intervention : intervention, optional
        What chooses the rows: a sampler, or a custom intervention that changes rows. None means
        ``UtilityAwarePrevalenceSampler()``.
    weight : str, optional
        The column of row weights, which count in the rates.
    memory : str or int, optional
        The most memory to use, such as ``"4GB"``, or a number of bytes. None means three quarters of the free
        memory. The result does not depend on it.
    progress : bool, default=False
        Whether to show a progress bar each time the table is read.
    group_names : mapping, optional
        Names of groups: per attribute, as in `protected`, names by label, ``{"sex": {1: "men"}}``. For a
        comparison, two names are enough, first for the rows where it holds: ``{"age>=50": ["older",
        "younger"]}``. Without names, its groups are ``age >= 50`` and ``age < 50``.

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after.

    Raises
    ------
    ValueError
        If a file or a setting is not valid, the values belong to another table, `memory` is too small, or the
        intervention makes new rows, which is only possible in memory.

    See Also
    --------
    fado.reweigh_files : Writes weights instead.
    fado.value_files : Values the rows of a table in files.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import fado
    >>> sampler = fado.RandomPrevalenceSampler(random_state=0)
    >>> hired = [1, 0, 0, 1, 1, 1, 0, 0, 0]
    >>> frame = pd.DataFrame({"sex": list("fffmmmmmm"), "hired": hired})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         frame.to_parquet(f"{folder}/{part}.parquet")
    ...     change = fado.sample_files(
    ...         f"{folder}/*.parquet",
    ...         target="hired",
    ...         protected="sex",
    ...         intervention=sampler,
    ...         out=f"{folder}/sample",
    ...     )
    >>> for group in change.groups:
    ...     print(group.title, group.rows, group.rows_after, group.positive_rate_after)
    m 12 12 0.5
    f 6 4 0.5
    """
    sampler = UtilityAwarePrevalenceSampler() if intervention is None else intervention
    columns = {"target": target, "protected": protected, "unknown": unknown, "weight": weight}
    source, kept, change = _decide(
        paths,
        sampler,
        "rows",
        getattr(sampler, "pos_label", None),
        columns | {"group_names": group_names},
        out=Path(out),
        values=values,
        memory=memory,
        progress=progress,
    )

    def kept_rows() -> Iterator[pa.Table]:
        first, block_rows = 0, min(_row_group_rows(source.schema), BLOCK_ROWS)
        n_blocks = -(-source.about_rows // block_rows)
        blocks = source.rows(None, block_rows)
        for block in tracked(blocks, n_blocks, what="blocks written", show=progress):
            yield block.filter(pa.array(kept[first : first + block.num_rows]))
            first += block.num_rows

    _write_rows(Path(out), kept_rows(), source.schema)
    return change


@insert_parameters(sample_files)
def reweigh_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    unknown: Any = None,
    out: str | os.PathLike[str],
    values: str | os.PathLike[str] | None = None,
    intervention: BaseIntervention | None = None,
    weight: str | None = None,
    positive: Any = None,
    memory: str | int | None = None,
    progress: bool = False,
    group_names: GroupNames | None = None,
) -> FilesChange:
    """Reweigh the rows of a table in files, and write the weights.

    The weights are the same as in memory. The table is read once, and only the columns that are named here.
    About 20 bytes per row are in memory, 28 with `weight`; a custom intervention may take 80.

    Parameters
    ----------
    {paths, target, protected, unknown}
    out : path-like
        Where to write: a file that ends in ``.parquet``, or a directory for several files, which must be new
        or empty. There is one column, ``weight``, and its rows are in the order of the table.
    {values}
    intervention : intervention, optional
        What computes the weights: a reweigher, or a custom intervention that changes weights. None means
        ``UtilityAwareReweigher()``.
    {weight}
    positive : label, optional
        The label whose rates are returned; None means the larger of two. It changes no weight.
    {memory, progress, group_names}

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after. A numeric attribute, which
        `UtilityAwareReweigher` takes without a correction, makes no groups here.

    Raises
    ------
    ValueError
        In the same cases as `sample_files`, and if the intervention changes labels, as `FairlearnGrid` does.

    See Also
    --------
    fado.sample_files : Drops rows instead.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import fado
    >>> hired = [1, 0, 0, 0, 1, 1, 1, 0]
    >>> frame = pd.DataFrame({"sex": list("ffffmmmm"), "hired": hired})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/people.csv", index=False)
    ...     change = fado.reweigh_files(
    ...         f"{folder}/people.csv",
    ...         target="hired",
    ...         protected="sex",
    ...         intervention=fado.Reweigher(),
    ...         out=f"{folder}/w.parquet",
    ...     )
    ...     pd.read_parquet(f"{folder}/w.parquet")["weight"].round(3).tolist()
    [2.0, 0.667, 0.667, 0.667, 0.667, 0.667, 0.667, 2.0]
    >>> for group in change.groups:
    ...     print(group.title, group.positive_rate, round(group.positive_rate_after, 3))
    f 0.25 0.5
    m 0.75 0.5
    """
    columns = {"target": target, "protected": protected, "unknown": unknown, "weight": weight}
    _, weights, change = _decide(
        paths,
        UtilityAwareReweigher() if intervention is None else intervention,
        "weights",
        positive,
        columns | {"group_names": group_names},
        out=Path(out),
        values=values,
        memory=memory,
        progress=progress,
    )
    blocks = (weights[first : first + BLOCK_ROWS] for first in range(0, len(weights), BLOCK_ROWS))
    _write_rows(Path(out), (pa.table([pa.array(block)], schema=_WEIGHTS) for block in blocks), _WEIGHTS)
    return change


def _decide(
    paths: Paths,
    intervention: Any,
    changes: str,
    pos_label: Any,
    columns: dict[str, Any],
    *,
    out: Path,
    values: str | os.PathLike[str] | None,
    memory: str | int | None,
    progress: bool,
) -> tuple[Source, npt.NDArray[Any], FilesChange]:
    """Check all settings, read all rows, and let the intervention decide on them.

    Returns the table, which rows stay or the factor of each row's weight, and the changes.
    """
    name = type(intervention).__name__
    if not isinstance(intervention, BaseIntervention):
        raise TypeError(f"`intervention` must be an intervention, got {intervention!r}.")
    if intervention.changes != changes:
        raise ValueError(
            f"`intervention` must change {changes}, and {name} changes {intervention.changes}: use the other "
            "function."
        )
    intervention._check_settings()
    utility = checked_utility(intervention.utility) if intervention.uses_values else None
    bound, source = memory_bound(memory), open_source(paths)
    roles = read_roles(source.schema, **columns, features=False)
    if intervention.uses_values and values is None:
        raise ValueError(f"`values` must be given, as {name} uses them: make them with `fado.value_files`.")
    stored = StoredValues(values) if intervention.uses_values and values is not None else None
    check_out(out, source, paths, [] if stored is None else [stored.path])
    if out.is_dir() and any(out.iterdir()):
        remove_abandoned(out)
        raise ValueError(f"The directory {str(out)!r} is not empty: name another `out`.")
    if stored is not None:
        stored.check(roles.target.name, roles.names[1:], source.n_rows)
    _check_room(source, roles, intervention, bound)
    check_group_names(source, roles)

    labels, groups, weights = _read(source, roles, intervention, stored, pos_label, progress)
    utilities = [None if stored is None else _utilities(utility, stored, bound)]
    pa.default_memory_pool().release_unused()  # that Arrow keeps of blocks
    n_rows, generator = (
        len(groups.codes),
        check_random_state(sklearn_seed(getattr(intervention, "random_state", None))),
    )
    cells = (labels, groups) if intervention._counts_cells else no_cells(n_rows)
    # nobody else holds the utilities, so that the intervention can let them go
    chosen = intervention._choose(cells[0], cells[1], utilities.pop(), weights, generator)
    weighs_too = changes == "rows" and chosen.weights is not None
    if chosen.parents is not None or chosen.labels is not None or weighs_too:
        what = "makes new rows" if chosen.parents is not None else "changes labels"
        raise ValueError(
            f"{name} needs all rows in memory, as it {'also weighs them' if weighs_too else what}: fit it to "
            "a table in memory, or choose another intervention."
        )
    if chosen.weights is not None and len(chosen.rows) == n_rows:
        factors: npt.NDArray[Any] = np.asarray(chosen.weights, dtype=np.float64)
    else:
        factors = np.zeros(n_rows, dtype=np.bool_ if chosen.weights is None else np.float64)
        factors[chosen.rows] = True if chosen.weights is None else chosen.weights
    del chosen  # which may hold a position of every row
    least = getattr(intervention, "min_group_size", 0)
    return source, factors, change_of(roles.names[1:], labels, groups, weights, factors, least)


def _read(
    source: Source,
    roles: Roles,
    intervention: BaseIntervention,
    stored: StoredValues | None,
    pos_label: Any,
    progress: bool,
) -> tuple[Labels, Groups, Floats | None]:
    """Read labels, groups and weights of all rows in one pass, in types as small as they fit."""
    reading, joint, counts_cells = TablePass(source, roles), Combinations(), intervention._counts_cells
    codes: list[npt.NDArray[Any]] = []
    weights: list[Any] = []
    for _, table, block in reading.blocks(BLOCK_ROWS, progress=progress):
        codes.append(joint.add(block).astype(np.min_scalar_type(len(joint.sizes))))
        weights.append(roles.weights(table))
    combination = np.concatenate(codes)
    target, *attributes = variables = [classes.numbered() for classes in reading.classes]
    if stored is not None:
        pattern, n_labels = reading.target_pattern(), len(target.classes)
        stored.check(roles.target.name, roles.names[1:], len(combination), pattern, n_labels)
    if roles.weight is not None and not any(block.any() for block in weights):
        raise ValueError("`weight` is zero in every row: give some row a weight.")
    check_comparisons(variables, roles)
    for variable in variables if counts_cells else ():
        if variable.kind == "continuous" and variable is target:
            raise ValueError(
                f"`y` has more than 20 different numbers, and this needs classes: {COMPARE_TARGET}."
            )
        if variable.kind == "continuous":
            raise ValueError(
                f"Protected attribute {variable.name!r} has more than 20 different numbers, too many for "
                "groups: cut it into a few, for example by `age >= 50`."
            )
    if counts_cells:
        check_known(attributes)
    crossed = []
    occurring = np.array(list(joint.seen), dtype=np.int64)  # the classes of every combination
    for variable, places in zip(attributes, occurring.T[1:], strict=True):
        if variable.kind == "continuous":
            continue
        crossed.append(replace(variable, labels=variable.labels[places]))
        if counts_cells and variable.has_missing:
            missing = int(joint.sizes[crossed[-1].labels == len(variable.classes) - 1].sum())
            warn_of_unknown_rows(variable, missing, len(combination))
    groups = group_rows(crossed) if crossed else Groups(np.zeros(len(occurring), int), (_ALL,), (_ALL,))
    labels, label_codes = Labels(np.zeros(0, dtype=np.int32), (_ALL,)), np.zeros(len(occurring), dtype=int)
    if target.kind == "classes":
        label_codes = target.labels[occurring[:, 0]]
        labels = replace(labels, classes=target.classes)
        if counts_cells or len(target.classes) <= 2 or pos_label is not None:
            labels = labels_of(column_from(TARGET, list(target.classes)), pos_label)
    small = np.min_scalar_type(-len(groups) * len(labels.classes))  # which holds codes of cells as well
    return (
        replace(labels, codes=label_codes.astype(small)[combination]),
        replace(groups, codes=groups.codes.astype(small)[combination]),
        np.concatenate(weights) if roles.weight is not None else None,
    )


def _utilities(utility: Any, stored: StoredValues, bound: int) -> Floats:
    """Return all rows' utilities; a custom utility gets the values of all rows at once."""
    if type(utility) in _ROW_BY_ROW:
        utilities, first = np.empty(stored.n_rows), 0
        for block in stored.blocks(BLOCK_ROWS):
            utilities[first : first + len(block)] = utilities_of(utility, block, len(block))
            first += len(block)
    else:
        least = stored.n_bytes + 8 * stored.n_rows * _COLUMNS_OF_A_UTILITY
        if least > bound:
            name = getattr(utility, "__name__", type(utility).__name__)
            raise ValueError(
                f"`memory` of {format_memory(bound)} is too small for the utility {name!r}, which may "
                f"compare rows and so needs the values of all {stored.n_rows:,} at once: the least that "
                f"works is {-(-least // 10**6):,} MB; LinearUtility, DifferenceUtility and CobbDouglas"
                "Utility need less."
            )
        utilities = utilities_of(utility, Valuation.load(stored.path), stored.n_rows)
    unknown = np.flatnonzero(~np.isfinite(utilities))
    if len(unknown):
        raise no_utilities(len(unknown), len(utilities), int(unknown[0]))
    return utilities


def _check_room(source: Source, roles: Roles, intervention: BaseIntervention, bound: int) -> None:
    """Refuse a memory bound that is too small, and state the least that works."""
    n_rows, row_bytes = source.about_rows, intervention._row_bytes[roles.weight is not None]
    costs = reading_costs(source, roles.needed())
    reading = costs.unit + BLOCK_ROWS * (_COPIES * costs.row + _BYTES_OF_A_CODED_ROW) + _ENCODING
    if intervention.changes == "rows":
        costs = reading_costs(source, source.schema.names)
        written = costs.unit + 2 * _COPIES * _row_group_rows(source.schema) * costs.row + _ENCODING
        reading = max(reading, written)
    least = round(reading) + n_rows * row_bytes
    if least > bound:
        what = f" to decide on {n_rows:,} rows at once, which takes about {row_bytes} bytes of each"
        raise costs.too_small(bound, least, what)


def _row_group_rows(schema: pa.Schema) -> int:
    """Return the rows of a row group: fewer for a wide table, and independent of memory."""
    rows = _MOST_ROWS
    while rows > _LEAST_ROWS and rows * len(schema.names) > _CELLS:
        rows //= 2
    return rows


def _write_rows(out: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Write rows as they come, into a file or a directory of parts: whole or not at all."""
    rows = _row_group_rows(schema)
    groups = in_blocks(tables, rows)
    if out.suffix.lower() == ".parquet":
        with replacing(out, "The rows") as temporary:
            _write(temporary, groups, schema)
        return
    with replacing_directory(out, "The rows") as folder:
        for number in count():
            part = islice(groups, _ROWS_OF_A_PART // rows)
            first = next(part, None if number else schema.empty_table())  # without rows there is one part
            if first is None:
                break
            with replacing(folder / part_name(number), "The rows", tidy=False) as temporary:
                _write(temporary, chain([first], part), schema)


def _write(path: Path, groups: Iterable[pa.Table], schema: pa.Schema) -> None:
    with pa.parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(1, group.num_rows))
