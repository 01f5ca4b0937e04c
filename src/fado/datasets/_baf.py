"""The public Bank Account Fraud suite: its columns, and a loader for its files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

MONTHS = 8

# What the columns hold, in their order: text, by its categories, 0 or 1, whole numbers or others.
_KINDS: dict[str, str | tuple[str, ...]] = {
    "fraud_bool": "flag",
    "income": "number",
    "name_email_similarity": "number",
    "prev_address_months_count": "whole",
    "current_address_months_count": "whole",
    "customer_age": "whole",
    "days_since_request": "number",
    "intended_balcon_amount": "number",
    "payment_type": ("AA", "AB", "AC", "AD", "AE"),
    "zip_count_4w": "whole",
    "velocity_6h": "number",
    "velocity_24h": "number",
    "velocity_4w": "number",
    "bank_branch_count_8w": "whole",
    "date_of_birth_distinct_emails_4w": "whole",
    "employment_status": ("CA", "CB", "CC", "CD", "CE", "CF", "CG"),
    "credit_risk_score": "whole",
    "email_is_free": "flag",
    "housing_status": ("BA", "BB", "BC", "BD", "BE", "BF", "BG"),
    "phone_home_valid": "flag",
    "phone_mobile_valid": "flag",
    "bank_months_count": "whole",
    "has_other_cards": "flag",
    "proposed_credit_limit": "number",
    "foreign_request": "flag",
    "source": ("INTERNET", "TELEAPP"),
    "session_length_in_minutes": "number",
    "device_os": ("linux", "macintosh", "other", "windows", "x11"),
    "keep_alive_session": "flag",
    "device_distinct_emails_8w": "whole",
    "device_fraud_count": "whole",
    "month": "whole",
}
COLUMNS = tuple(_KINDS)
EXTRA_COLUMNS = ("x1", "x2")  # of variants III and V, behind the others
CATEGORIES = {name: kind for name, kind in _KINDS.items() if isinstance(kind, tuple)}
NUMBERS = (*(name for name, kind in _KINDS.items() if kind == "number"), *EXTRA_COLUMNS)

# Columns where a negative value stands for a missing one: -1, or any negative transferred amount.
_MISSING_BELOW_ZERO = (
    "prev_address_months_count",
    "current_address_months_count",
    "intended_balcon_amount",
    "bank_months_count",
    "session_length_in_minutes",
    "device_distinct_emails_8w",
)

# Whole numbers that can only take a few values.
_ALLOWED = {
    **{name: [0, 1] for name, kind in _KINDS.items() if kind == "flag"},
    "customer_age": list(range(10, 100, 10)),
    "month": list(range(MONTHS)),
}


def load_baf(path: str | os.PathLike[str], *, missing_as_nan: bool = False) -> pd.DataFrame:
    """Load a file of the public Bank Account Fraud suite (BAF, NeurIPS 2022).

    The suite is not part of this package: its licence does not allow that. Download it from its authors
    and pass the path of one of its files: the base data or a variant, complete or a sample of its rows.

    Parameters
    ----------
    path : str or path
        A CSV file (``.csv``, also ``.csv.gz``) or a Parquet file (``.parquet``).
    missing_as_nan : bool, default=False
        The suite writes missing values as -1 in the columns of address and bank months, session length
        and device e-mails, and as any negative number in ``intended_balcon_amount``. If true, they become
        NaN, and these columns become floating-point.

    Returns
    -------
    pandas.DataFrame
        The suite's columns in its order, with the same types as from `make_account_fraud`: text as
        categories, whole numbers as int64, others as float64.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is neither CSV nor Parquet, cannot be read, lacks columns or has others, ends too
        early, or has values that the suite does not have. The message says which.

    See Also
    --------
    fado.datasets.make_account_fraud : Generated data with the same columns, for use without the suite.

    References
    ----------
    S. Jesus, J. Pombal, D. Alves, A. Cruz, P. Saleiro, R. P. Ribeiro, J. Gama and P. Bizarro, "Turning the
    Tables: Biased, Imbalanced, Dynamic Tabular Datasets for ML Evaluation", NeurIPS 2022, arXiv:2211.13358.

    Examples
    --------
    >>> from fado.datasets import load_baf
    >>> frame = load_baf("Base.csv")  # doctest: +SKIP
    >>> frame["fraud_bool"].mean()  # doctest: +SKIP
    0.011029
    """
    path = Path(path)
    frame = _with_columns(read_file(path, "BAF suite", (".csv", ".csv.gz", ".parquet"), _read_csv), path)
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        is_cut = path.suffix.lower() == ".csv" and file.read() not in (b"\n", b"\r")
    if is_cut:
        raise ValueError(
            f"`path` must name a complete file, got '{path}', which may have been cut off; if it is "
            "complete, add a line break at its end."
        )
    frame = pd.DataFrame({name: _typed(frame[name], path) for name in frame.columns}, copy=False)
    if missing_as_nan:
        names = _MISSING_BELOW_ZERO
        frame = frame.assign(**{name: frame[name].astype(np.float64).mask(frame[name] < 0) for name in names})
    return frame


def read_file(
    path: Path, data: str, endings: tuple[str, ...], read_csv: Callable[[Path], pd.DataFrame]
) -> pd.DataFrame:
    """Read a CSV or Parquet file of some data; every way in which it cannot be read is a sentence."""
    if not path.is_file():
        raise FileNotFoundError(
            f"`path` must name a file of the {data}, got '{path}'; there is no such file."
        )
    name = path.name.lower()
    if not name.endswith(endings):
        raise ValueError(f"`path` must end in {', '.join(endings[:-1])} or {endings[-1]}, got '{path}'.")
    try:
        frame = pd.read_parquet(path) if name.endswith(".parquet") else read_csv(path)
    # Any error of the two parsers means the same to the user: the file cannot be read.
    except (ValueError, OSError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"`path` must name a readable file of the {data}, got '{path}': {reason}") from error
    if frame.empty:
        raise ValueError(f"`path` must name a file with rows, got '{path}', which has none.")
    return frame


def _read_csv(path: Path) -> pd.DataFrame:
    # utf-8-sig reads files with and without a byte-order mark
    return pd.read_csv(path, dtype=dict.fromkeys(CATEGORIES, str), encoding="utf-8-sig", low_memory=False)


def _with_columns(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Put the suite's columns in its order, and refuse any other set of columns."""
    # Early releases of the suite have the row number as a first column without a name.
    frame = frame.drop(columns=[name for name in frame.columns[:1] if name in ("", "Unnamed: 0")])
    expected = COLUMNS + (EXTRA_COLUMNS if set(EXTRA_COLUMNS) & set(frame.columns) else ())
    missing = [name for name in expected if name not in frame.columns]
    if len(missing) > len(expected) / 2:
        raise ValueError(
            f"`path` must name a file of the BAF suite, got '{path}', which has "
            f"{len(expected) - len(missing)} of the suite's {len(expected)} columns."
        )
    if missing:
        raise ValueError(
            f"`path` must name a file with all columns of the BAF suite, got '{path}' without {missing}."
        )
    unknown = [name for name in frame.columns if name not in expected]
    if unknown:
        raise ValueError(
            f"`path` must name a file with the columns of the BAF suite only, got '{path}' with {unknown}; "
            f"drop them first."
        )
    return frame[list(expected)]


def _typed(values: pd.Series, path: Path) -> Any:
    """Give a column its type, and name the first row that does not fit."""
    name = str(values.name)
    empty = values.isna().to_numpy()
    if empty.any():
        raise ValueError(
            f"`path` must name a complete file, got '{path}' with nothing in column {name!r} at row "
            f"{empty.argmax()} of {len(values)}; the file may have been cut off."
        )
    if name in CATEGORIES:
        _refuse(values, ~values.isin(CATEGORIES[name]).to_numpy(), f"one of {list(CATEGORIES[name])}", path)
        return pd.Categorical(values.astype(object), categories=CATEGORIES[name])
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    _refuse(values, ~np.isfinite(numbers), "a number", path)
    if name in NUMBERS:
        return numbers
    _refuse(values, numbers != np.round(numbers), "a whole number", path)
    if name in _ALLOWED:
        _refuse(values, ~np.isin(numbers, _ALLOWED[name]), f"one of {_ALLOWED[name]}", path)
    return numbers.astype(np.int64)


def _refuse(values: pd.Series, wrong: Any, rule: str, path: Path) -> None:
    if wrong.any():
        row = wrong.argmax()
        raise ValueError(
            f"`path` must name a file of the BAF suite, got '{path}' with {values.tolist()[row]!r} in column "
            f"{values.name!r} at row {row} of {len(values)}, which is not {rule}."
        )
