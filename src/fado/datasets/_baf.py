"""The public Bank Account Fraud suite: its columns, and a loader for its files."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = [
    "CATEGORIES",
    "COLUMNS",
    "EXTRA_COLUMNS",
    "FLAGS",
    "LABEL",
    "MISSING_BELOW_ZERO",
    "MONTHS",
    "NUMBERS",
    "load_baf",
]

LABEL = "fraud_bool"
MONTHS = 8

COLUMNS = (
    LABEL,
    "income",
    "name_email_similarity",
    "prev_address_months_count",
    "current_address_months_count",
    "customer_age",
    "days_since_request",
    "intended_balcon_amount",
    "payment_type",
    "zip_count_4w",
    "velocity_6h",
    "velocity_24h",
    "velocity_4w",
    "bank_branch_count_8w",
    "date_of_birth_distinct_emails_4w",
    "employment_status",
    "credit_risk_score",
    "email_is_free",
    "housing_status",
    "phone_home_valid",
    "phone_mobile_valid",
    "bank_months_count",
    "has_other_cards",
    "proposed_credit_limit",
    "foreign_request",
    "source",
    "session_length_in_minutes",
    "device_os",
    "keep_alive_session",
    "device_distinct_emails_8w",
    "device_fraud_count",
    "month",
)

# Variants III and V carry two more columns, behind the others.
EXTRA_COLUMNS = ("x1", "x2")

CATEGORIES = {
    "payment_type": ("AA", "AB", "AC", "AD", "AE"),
    "employment_status": ("CA", "CB", "CC", "CD", "CE", "CF", "CG"),
    "housing_status": ("BA", "BB", "BC", "BD", "BE", "BF", "BG"),
    "source": ("INTERNET", "TELEAPP"),
    "device_os": ("linux", "macintosh", "other", "windows", "x11"),
}

# Everything that is neither text nor one of these is a whole number.
NUMBERS = (
    "income",
    "name_email_similarity",
    "days_since_request",
    "intended_balcon_amount",
    "velocity_6h",
    "velocity_24h",
    "velocity_4w",
    "proposed_credit_limit",
    "session_length_in_minutes",
    *EXTRA_COLUMNS,
)

# Columns that hold 0 or 1 only.
FLAGS = (
    LABEL,
    "email_is_free",
    "phone_home_valid",
    "phone_mobile_valid",
    "has_other_cards",
    "foreign_request",
    "keep_alive_session",
)

# Columns where a negative value stands for a missing one: -1, or any negative transferred amount.
MISSING_BELOW_ZERO = (
    "prev_address_months_count",
    "current_address_months_count",
    "intended_balcon_amount",
    "bank_months_count",
    "session_length_in_minutes",
    "device_distinct_emails_8w",
)


# Whole numbers that can only take a few values.
_ALLOWED = {
    **{name: frozenset((0, 1)) for name in FLAGS},
    "customer_age": frozenset(range(10, 100, 10)),
    "month": frozenset(range(MONTHS)),
}


def load_baf(path: str | os.PathLike[str], *, missing_as_nan: bool = False) -> pd.DataFrame:
    """Load a file of the public Bank Account Fraud suite (BAF, NeurIPS 2022).

    The suite is not part of this package: its licence does not allow that. Download it from its authors
    and pass the path of one of its files, the base data or a variant, whole or a sample of its rows.

    Parameters
    ----------
    path : str or path
        A CSV file (``.csv``, also ``.csv.gz``) or a Parquet file (``.parquet``).
    missing_as_nan : bool, default=False
        The suite writes missing values as -1 in the columns of address and bank months, session length
        and device e-mails, and as any negative number in ``intended_balcon_amount``. They stay as they
        are unless this is true; then they become NaN, and the columns floating-point.

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
        early, or holds values that the suite does not have. The message says which.

    See Also
    --------
    make_account_fraud : Generated data with the same columns, for use without the suite.

    Examples
    --------
    >>> from fado.datasets import load_baf
    >>> frame = load_baf("Base.csv")  # doctest: +SKIP
    >>> frame["fraud_bool"].mean()  # doctest: +SKIP
    0.011029
    """
    path = Path(path)
    frame = _with_columns(_read(path), path)
    if path.suffix.lower() == ".csv" and not _ends_with_line_break(path):
        raise ValueError(
            f"`path` must name a complete file, got '{path}', which may have been cut off; "
            f"if it is complete, add a line break at its end."
        )
    frame = pd.DataFrame({name: _typed(frame[name], path) for name in frame.columns}, copy=False)
    return _negatives_as_nan(frame) if missing_as_nan else frame


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise FileNotFoundError(
            f"`path` must name a file of the BAF suite, got '{path}'; there is no such file."
        )
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise ValueError(f"`path` must end in .csv, .csv.gz or .parquet, got '{path}'.")
    try:
        frame = pd.read_parquet(path) if name.endswith(".parquet") else _read_csv(path)
    # Whatever the two parsers trip over is one thing to the user: a file that cannot be read.
    except (ValueError, OSError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"`path` must name a readable file of the BAF suite, got '{path}': {reason}"
        ) from error
    if frame.empty:
        raise ValueError(f"`path` must name a file with rows, got '{path}', which has none.")
    return frame


def _read_csv(path: Path) -> pd.DataFrame:
    text = dict.fromkeys(CATEGORIES, str)
    # utf-8-sig reads files with and without a byte-order mark.
    return pd.read_csv(path, dtype=text, encoding="utf-8-sig", low_memory=False)


def _ends_with_line_break(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        if file.tell():
            file.seek(-1, os.SEEK_END)
        return file.read() in (b"\n", b"\r", b"")


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
            f"{_first(empty)} of {len(values)}; the file may have been cut off."
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
        allowed = sorted(_ALLOWED[name])
        _refuse(values, ~np.isin(numbers, allowed), f"one of {allowed}", path)
    return numbers.astype(np.int64)


def _refuse(values: pd.Series, wrong: Any, rule: str, path: Path) -> None:
    if wrong.any():
        row = _first(wrong)
        raise ValueError(
            f"`path` must name a file of the BAF suite, got '{path}' with {values.tolist()[row]!r} in column "
            f"{values.name!r} at row {row} of {len(values)}, which is not {rule}."
        )


def _first(wrong: Any) -> int:
    return int(np.flatnonzero(wrong)[0])


def _negatives_as_nan(frame: pd.DataFrame) -> pd.DataFrame:
    known = {name: frame[name].astype(np.float64).mask(frame[name] < 0) for name in MISSING_BELOW_ZERO}
    return frame.assign(**known)
