"""Sample and reweigh tables in files, however many rows they have, within a bound on memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from fado.interventions._base import BaseIntervention
from fado.interventions._prevalence import UtilityAwarePrevalenceSampler
from fado.interventions._reweighing import UtilityAwareReweigher
from fado.interventions.bulk._change import FilesChange
from fado.interventions.bulk._work import Asked, Work
from fado.valuation.bulk import Paths

__all__ = ["reweigh_files", "sample_files"]


def sample_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    out: str | os.PathLike[str],
    values: str | os.PathLike[str] | None = None,
    intervention: BaseIntervention | None = None,
    weight: str | None = None,
    memory: str | int | None = None,
    progress: bool = False,
) -> FilesChange:
    """Drop rows of a table in files, and write those that stay.

    The same numbers of rows go as in memory. Rows of different utility go in the same order; those of equal
    utility, and all of `RandomPrevalenceSampler`, go by a hash of the seed and of a row's place in the table,
    where a shuffle decides in memory. The table is read four times as a rule, and once or twice more where
    very many utilities are equal; all but the last time, only the columns named here are.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A Parquet or CSV file, several, a directory, or a pattern as a shell has it. Rows stand in the order
        of the sorted paths.
    target : str
        The column of labels.
    protected : str or sequence of str
        The protected attributes: columns, or comparisons such as ``"age>=50"``. Several are crossed.
    out : path-like
        A directory that is not there yet or empty, for parts; or a file that ends in ``.parquet``. It appears
        when all rows are written.
    values : path-like, optional
        The values of these rows as `fado.value_files` wrote them: a directory, or a Parquet file. For
        interventions that use values.
    intervention : RandomPrevalenceSampler or UtilityAwarePrevalenceSampler, optional
        What chooses the rows, with its settings; ``UtilityAwarePrevalenceSampler()`` if there is none.
    weight : str, optional
        The column of what each row counts in the rates.
    memory : str or int, optional
        A bound such as ``"4GB"``, or bytes; three quarters of what is free if not given. It changes no row.
    progress : bool, default=False
        Whether to show a progress bar for every time that the table is read.

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after.

    Raises
    ------
    ValueError
        If a file or a setting is not what it must be, the values are of another table, `memory` is too small,
        or the intervention needs all rows in memory.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import fado
    >>> sampler = fado.RandomPrevalenceSampler(random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         frame = pd.DataFrame({"sex": list("fffmmmmmm"), "hired": [1, 0, 0, 1, 1, 1, 0, 0, 0]})
    ...         frame.to_parquet(f"{folder}/{part}.parquet")
    ...     asked = {"target": "hired", "protected": "sex", "intervention": sampler}
    ...     change = fado.sample_files(f"{folder}/*.parquet", out=f"{folder}/sample", **asked)
    >>> [(own.title, own.rows, own.rows_after, own.positive_rate_after) for own in change.groups]
    [('m', 12, 12, 0.5), ('f', 6, 4, 0.5)]
    """
    sampler = UtilityAwarePrevalenceSampler() if intervention is None else intervention
    asked = Asked(paths, sampler, "rows", target, protected, out, values, weight, memory, progress)
    return Work(asked).sample(getattr(sampler, "pos_label", None))


def reweigh_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    out: str | os.PathLike[str],
    values: str | os.PathLike[str] | None = None,
    intervention: BaseIntervention | None = None,
    weight: str | None = None,
    positive: Any = None,
    memory: str | int | None = None,
    progress: bool = False,
) -> FilesChange:
    """Weigh the rows of a table in files, and write the weights.

    The weights are those that the intervention gives in memory, but for the last digits. The table is read
    twice for `Reweigher`, three times for `UtilityAwareReweigher`; only the columns named here are.

    Parameters
    ----------
    paths, target, protected, values, weight, memory, progress
        As `sample_files` takes them.
    out : path-like
        A directory that is not there yet or empty, for parts; or a file that ends in ``.parquet``. It has one
        column, ``weight``, and its rows stand in the order of the table.
    intervention : Reweigher or UtilityAwareReweigher, optional
        What weighs the rows, with its settings; ``UtilityAwareReweigher()`` if there is none.
    positive : label, optional
        The label whose rates are told; None is the larger of two.

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after. An attribute of numbers,
        which `UtilityAwareReweigher` takes without a correction, makes no groups here.

    Raises
    ------
    ValueError
        As `sample_files` does.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import fado
    >>> frame = pd.DataFrame({"sex": list("ffffmmmm"), "hired": [1, 0, 0, 0, 1, 1, 1, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/people.csv", index=False)
    ...     asked = {"target": "hired", "protected": "sex", "intervention": fado.Reweigher()}
    ...     change = fado.reweigh_files(f"{folder}/people.csv", out=f"{folder}/w.parquet", **asked)
    ...     pd.read_parquet(f"{folder}/w.parquet")["weight"].round(3).tolist()
    [2.0, 0.667, 0.667, 0.667, 0.667, 0.667, 0.667, 2.0]
    >>> [(own.title, own.positive_rate, round(own.positive_rate_after, 3)) for own in change.groups]
    [('f', 0.25, 0.5), ('m', 0.75, 0.5)]
    """
    reweigher = UtilityAwareReweigher() if intervention is None else intervention
    asked = Asked(paths, reweigher, "weights", target, protected, out, values, weight, memory, progress)
    return Work(asked).reweigh(positive)
