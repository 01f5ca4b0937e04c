"""Two public tables about income, from OpenML or from files: Adult (1994) and ACS Income (2018)."""

import os
import re
import warnings
from collections.abc import Iterable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fado._messages import insert_parameters, list_names
from fado.datasets._baf import read_file

__all__ = ["fetch_acs_income", "fetch_adult"]

# In the order of UCI's files, which have no header.
_ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
_ADULT_NEEDED = tuple(name for name in _ADULT_COLUMNS if name != "fnlwgt")
_ADULT_NUMBERS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
# Other forms of the file, on OpenML and elsewhere, call these columns otherwise.
_ADULT_ALIASES = {"class": "income", "gender": "sex", "educational_num": "education_num"}
_ADULT_LABELS = {"<=50K": False, ">50K": True}
_ADULT_ELSEWHERE = "'adult.data' and 'adult.test' of the data set Adult in UCI's Machine Learning Repository"

_ACS_FEATURES = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP")
_ACS_NEEDED = (*_ACS_FEATURES, "SEX", "RAC1P", "PINCP")
_ACS_NUMBERS = ("AGEP", "SCHL", "WKHP")
_ACS_ELSEWHERE = "the task ACSIncome of the package folktables, saved as CSV or Parquet"
_ACS_SEX = ("Male", "Female")
_ACS_RACE = (
    "White",
    "Black",
    "American Indian",
    "Alaska Native",
    "American Indian or Alaska Native",
    "Asian",
    "Pacific Islander",
    "Other",
    "Two or more",
)
_LEAST_INCOME = 50_000

_ENDINGS = (".csv", ".csv.gz", ".data", ".test", ".parquet")
_Path = str | os.PathLike[str]
_Table = tuple[pd.DataFrame, pd.Series, pd.DataFrame]


def fetch_adult(
    path: _Path | Iterable[_Path] | None = None,
    *,
    keep_protected: bool = False,
    data_home: _Path | None = None,
) -> _Table:
    """Load the Adult data: who earns more than 50,000 dollars a year, in the US census of 1994.

    48,842 people, 24 percent of whom earn more. Without a `path`, the table is downloaded from OpenML (data
    set 1590, the second version of "adult") and kept on the disk, so that the next call needs no network.

    Parameters
    ----------
    path : str, path or several of them, default=None
        CSV or Parquet files to read instead of a download; the rows of several are joined. UCI's own files
        (``adult.data`` and ``adult.test``, without a header) are read as well as those with a header. Columns
        are found by their names; other columns are left out.
    keep_protected : bool, default=False
        Whether ``sex`` and ``race`` are features, too.
    data_home : str or path, default=None
        Where downloads are kept. By default it is scikit-learn's folder, ``scikit_learn_data`` in the home
        directory, or what the environment variable ``SCIKIT_LEARN_DATA`` says.

    Returns
    -------
    X : pandas.DataFrame
        The features: numbers, and text as categories. Missing entries are NaN. ``relationship`` is "Husband"
        or "Wife" in 45 percent of the rows, which reveals their ``sex``. The survey weight (``fnlwgt``) is
        not a feature, and left out.
    y : pandas.Series
        ``over_50k``: whether the person earns more than 50,000 dollars a year.
    groups : pandas.DataFrame
        The protected attributes ``sex`` and ``race``, as categories.

    Raises
    ------
    ConnectionError
        If the download fails. The message says which files to get in another way.
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file cannot be read, lacks columns, or holds values that the data do not have.

    See Also
    --------
    fado.datasets.fetch_acs_income : A newer and larger table of the same kind.

    Notes
    -----
    The data are by Barry Becker and Ronny Kohavi (UCI Machine Learning Repository, 1996; CC BY 4.0). OpenML
    and UCI's files may have the rows in different orders.

    Examples
    --------
    >>> from fado.datasets import fetch_adult
    >>> X, y, groups = fetch_adult()  # doctest: +SKIP
    >>> y.groupby(groups["sex"], observed=True).mean().round(2).to_dict()  # doctest: +SKIP
    {'Female': 0.11, 'Male': 0.3}
    """
    tables = _tables(path, 1590, data_home, "Adult", _ADULT_ELSEWHERE)
    tables = {source: _with_adult_names(table) for source, table in tables.items()}
    frame = _joined(tables, _ADULT_NEEDED, "Adult")
    income = _text(frame.pop("income")).str.rstrip(".")  # UCI's test file ends its labels with a full stop
    _refuse(income, ~income.isin(list(_ADULT_LABELS)), "'<=50K' or '>50K'", "Adult")
    columns = {
        name: _numbers(values, "Adult") if name in _ADULT_NUMBERS else pd.Categorical(_text(values))
        for name, values in frame.items()
    }
    X = pd.DataFrame(columns)
    groups = pd.DataFrame({name: X.pop(name) for name in ("sex", "race")})
    return _answer(X, income.map(_ADULT_LABELS).astype(bool), groups, keep_protected)


@insert_parameters(fetch_adult)
def fetch_acs_income(
    path: _Path | Iterable[_Path] | None = None,
    *,
    keep_protected: bool = False,
    data_home: _Path | None = None,
) -> _Table:
    """Load ACS Income: who earns more than 50,000 dollars a year, in the US census survey of 2018.

    1,664,500 people, about 37 percent of whom earn more. Without a `path`, the table is downloaded from
    OpenML (data set 43141, "ACSIncome") and kept on the disk, so that the next call needs no network.

    Parameters
    ----------
    path : str, path or several of them, default=None
        CSV or Parquet files to read instead of a download; the rows of several are joined. Columns are found
        by the survey's names; other columns, such as the state ``ST``, are left out. ``PINCP`` may hold the
        income or, as 0 and 1, whether it is above 50,000. ``RAC1P`` may be coded from 1 on, as in the survey,
        or from 0 on.
    keep_protected : bool, default=False
        Whether ``sex`` and ``race`` are features, too.
    data_home : str or path, default=None
        Where downloads are kept. By default it is scikit-learn's folder, ``scikit_learn_data`` in the home
        directory, or what the environment variable ``SCIKIT_LEARN_DATA`` says.

    Returns
    -------
    X : pandas.DataFrame
        The features, by the survey's names. Numbers: ``AGEP`` (age), ``SCHL`` (education, from 1 to 24) and
        ``WKHP`` (hours per week). Codes, as categories: ``COW`` (class of worker), ``MAR`` (marital status),
        ``OCCP`` (occupation), ``POBP`` (place of birth) and ``RELP`` (relationship).
    y : pandas.Series
        ``over_50k``: whether the person earns more than 50,000 dollars a year.
    groups : pandas.DataFrame
        The protected attributes ``sex`` and ``race``, by the names of the survey's codes, as categories.

    {Raises}

    See Also
    --------
    fado.datasets.fetch_adult : The older and smaller table that this one replaces.

    Notes
    -----
    The task is by Ding, Hardt, Miller and Schmidt (Retiring Adult, NeurIPS 2021; the package folktables), the
    data by the US Census Bureau (American Community Survey). If ``RAC1P`` holds a 0, it is read as coded from
    0 on.

    Examples
    --------
    >>> from fado.datasets import fetch_acs_income
    >>> X, y, groups = fetch_acs_income("acs_income.parquet")  # doctest: +SKIP
    >>> groups["race"].value_counts().index[:3].tolist()  # doctest: +SKIP
    ['White', 'Black', 'Asian']
    """
    tables = _tables(path, 43141, data_home, "ACS Income", _ACS_ELSEWHERE)
    frame = _joined(tables, _ACS_NEEDED, "ACS Income")
    numbers = {name: _numbers(frame[name], "ACS Income") for name in frame}
    income = numbers["PINCP"]
    over = income == 1 if np.isin(income, [0, 1]).all() else income > _LEAST_INCOME
    X = pd.DataFrame(
        {
            name: numbers[name] if name in _ACS_NUMBERS else pd.Categorical(numbers[name])
            for name in _ACS_FEATURES
        }
    )
    races = numbers["RAC1P"]
    groups = pd.DataFrame(
        {
            "sex": _named(frame["SEX"], numbers["SEX"], 1, _ACS_SEX),
            "race": _named(frame["RAC1P"], races, 0 if (races == 0).any() else 1, _ACS_RACE),
        }
    )
    return _answer(X, pd.Series(over), groups, keep_protected)


def _answer(X: pd.DataFrame, y: pd.Series, groups: pd.DataFrame, keep_protected: bool) -> _Table:
    X = X.join(groups) if keep_protected else X
    return X, y.rename("over_50k"), groups


def _tables(
    path: _Path | Iterable[_Path] | None, data_id: int, data_home: _Path | None, name: str, elsewhere: str
) -> dict[str, pd.DataFrame]:
    """Read the files, or download the table, each by what a message calls it."""
    if path is None:
        from sklearn.datasets import fetch_openml

        home = None if data_home is None else str(data_home)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one at every attempt; the error has the reason of the last
                loaded = fetch_openml(data_id=data_id, data_home=home, as_frame=True, parser="auto")
        except (OSError, HTTPException, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ConnectionError(
                f"The {name} data could not be downloaded from OpenML ({reason}): try again with a network, "
                f"or get {elsewhere}, and pass the names of the files as `path`."
            ) from error
        return {"the download": loaded.frame}
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise ValueError(f"`path` must name a file of the {name} data, got an empty list.")
    return {f"'{each}'": read_file(Path(each), f"{name} data", _ENDINGS, _read_csv) for each in paths}


def _joined(tables: dict[str, pd.DataFrame], needed: Sequence[str], name: str) -> pd.DataFrame:
    """Give the rows of all tables, with the columns that are needed and no others."""
    for source, table in tables.items():
        if missing := [column for column in needed if column not in table]:
            raise ValueError(
                f"`path` must name a file with the columns of the {name} data, got {source} without "
                f"{list_names([repr(column) for column in missing])}."
            )
    return pd.concat([table[list(needed)] for table in tables.values()], ignore_index=True)


def _read_csv(path: Path) -> pd.DataFrame:
    # utf-8-sig reads files with and without a byte-order mark; "|" begins a comment of UCI's
    how: dict[str, Any] = {"encoding": "utf-8-sig", "skipinitialspace": True, "comment": "|"}
    first = pd.read_csv(path, header=None, nrows=1, **how).iloc[0, 0]
    header = 0 if re.match("[A-Za-z]", str(first)) else None
    return pd.read_csv(path, header=header, low_memory=False, **how)


def _with_adult_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Name the columns in one way: "education-num", "education.num" and "educational-num" are one column."""
    if frame.columns.equals(pd.RangeIndex(len(_ADULT_COLUMNS))):  # no header
        return frame.set_axis(list(_ADULT_COLUMNS), axis=1)
    names = [re.sub("[^a-z0-9]+", "_", str(name).lower()) for name in frame.columns]
    return frame.set_axis([_ADULT_ALIASES.get(name, name) for name in names], axis=1)


def _text(values: pd.Series) -> pd.Series:
    """Give text without spaces around it; a question mark is a missing entry."""
    text = values.astype(object).astype("string").str.strip()
    return text.mask(text == "?").astype(object)


def _numbers(values: pd.Series, name: str) -> Any:
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    _refuse(values, ~(numbers == np.round(numbers)), "a whole number", name)
    return numbers.astype(np.int64)


def _named(values: pd.Series, codes: Any, first: int, names: tuple[str, ...]) -> Any:
    last = first + len(names) - 1
    _refuse(values, (codes < first) | (codes > last), f"a code from {first} to {last}", "ACS Income")
    return pd.Categorical.from_codes(codes - first, pd.Index(names))


def _refuse(values: pd.Series, wrong: Any, rule: str, name: str) -> None:
    wrong = np.asarray(wrong)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"The {name} data must hold {rule} in column {str(values.name)!r}, "
            f"got {values.tolist()[row]!r} at row {row} of {len(values)}."
        )
