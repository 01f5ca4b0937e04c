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
from fado.tabular import GroupNames
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
    group_names: GroupNames | None = None,
) -> FilesChange:
    """Drop rows of a table in files, and write those that stay.

    As many rows of each group are dropped as in memory, the least useful first. Which of several rows of
    equal utility goes may differ from memory: here a hash of the seed and of the row's place decides, there a
    random order. The same holds for all rows of `RandomPrevalenceSampler`.

    The table is usually read four times, and once or twice more if very many utilities are equal. All times
    but the last, only the columns that are named here are read. A `utility` of your own is given the values
    of all rows at once, and refused if `memory` has no room for them.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A Parquet or CSV file, several, a directory, or a pattern such as ``"data/*.parquet"``. The table is
        made of the rows of all files, in the order of their sorted paths.
    target : str
        The column of labels, or comparisons such as ``"amount>=1000"``, whose labels are True and False.
    protected : str or sequence of str
        The protected attributes: columns, or comparisons such as ``"age>=50"``, as
        `fado.datasets.protected_from` takes them. The groups are the combinations of several.
    out : path-like
        Where to write: a file that ends in ``.parquet``, or a directory for several files, which must be new
        or empty. It appears only when all rows are written.
    values : path-like, optional
        The values of these rows as `fado.value_files` wrote them: a directory, or a Parquet file. Needed by
        interventions that use values.
    intervention : RandomPrevalenceSampler or UtilityAwarePrevalenceSampler, optional
        What chooses the rows. None is ``UtilityAwarePrevalenceSampler()``.
    weight : str, optional
        The column that says how much each row counts in the rates.
    memory : str or int, optional
        The most memory to use, such as ``"4GB"``, or a number of bytes. None is three quarters of the free
        memory. It changes no result.
    progress : bool, default=False
        Whether to show a progress bar each time the table is read.
    group_names : mapping, optional
        What groups are called: per attribute, as in `protected`, names by label, ``{"sex": {1: "men"}}``. For
        comparisons, two names will do, first of the rows where they hold: ``{"age>=50": ["older",
        "younger"]}``. Without names, their groups are called by what they compare: ``age >= 50`` and ``age <
        50``.

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after.

    Raises
    ------
    ValueError
        If a file or a setting is not valid, the values are those of another table, `memory` is too small, or
        the intervention works only on tables in memory.

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
    asked = Asked(
        paths, sampler, "rows", target, protected, out, values, weight, memory, progress, group_names
    )
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
    group_names: GroupNames | None = None,
) -> FilesChange:
    """Weigh the rows of a table in files, and write the weights.

    The weights are those that the intervention gives in memory, but for rounding. The table is read twice for
    `Reweigher` and three times for `UtilityAwareReweigher`; only the columns that are named here are read.

    Parameters
    ----------
    paths, target, protected, values, weight, memory, progress, group_names
        As `sample_files` takes them.
    out : path-like
        Where to write: a file that ends in ``.parquet``, or a directory for several files, which must be new
        or empty. There is one column, ``weight``, and its rows are in the order of the table.
    intervention : Reweigher or UtilityAwareReweigher, optional
        What weighs the rows. None is ``UtilityAwareReweigher()``.
    positive : label, optional
        The label whose rates are returned; None is the larger of two. It changes no weight.

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after. A numeric attribute, which
        `UtilityAwareReweigher` takes without a correction, makes no groups here.

    Raises
    ------
    ValueError
        In the same cases as `sample_files`.

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
    asked = Asked(
        paths, reweigher, "weights", target, protected, out, values, weight, memory, progress, group_names
    )
    return Work(asked).reweigh(positive)
