"""Applications: hidden traits of applicants and fraudsters, and the columns of the suite that depend on them.

An applicant has an affluence, an irregularity (documents and history that do not fit together), an
automation (how much of the session looks like that of a program) and a maturity (from the age). A fraudster
follows one of a few schemes, each of which changes the first three. Every column depends on the traits plus
independent noise, and never on the label; only the age depends a little on it. As the schemes change several
traits together, each in another way, fraud shows in combinations of columns and not in single ones.
"""

from itertools import accumulate
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fado._typing import Bools, Floats, Integers
from fado.datasets._baf import CATEGORIES, MONTHS

# Decades of the two groups, and how honest applicants and fraudsters spread over them.
_YOUNGER = ((10, 20, 30, 40), (0.025, 0.300, 0.380, 0.295), (0.020, 0.270, 0.380, 0.330))
_OLDER = ((50, 60, 70, 80, 90), (0.770, 0.185, 0.038, 0.005, 0.002), (0.730, 0.210, 0.050, 0.007, 0.003))

# What a scheme adds to affluence, irregularity and automation. One scheme is obvious, and every model detects
# it; the others are faint, and decide who else is selected at a given false-positive rate.
_SCHEMES = np.array(
    [
        (1.12, 0.80, 0.64),  # stolen identity: looks well off
        (0.24, 1.36, 0.56),  # invented identity: nothing fits
        (2.00, 4.00, 5.00),  # ring of automated devices: blatant
        (0.40, 0.32, 0.24),  # lone opportunist: hardly shows
    ]
)
# The schemes' shares of a group's fraud, in the first and in the last month. Rings go less for the identities
# of older people.
_SCHEME_SHARES = np.array(
    [
        [(0.29, 0.21, 0.40, 0.10), (0.27, 0.19, 0.44, 0.10)],  # younger than 50
        [(0.33, 0.23, 0.34, 0.10), (0.30, 0.22, 0.38, 0.10)],  # 50 and older
    ]
)
# Some applicants, honest or not, look nearly as odd as a ring.
_ODD_SHARE = 0.009
_ODD_TRAITS = (1.0, 2.5, 4.0)

# How much of affluence, irregularity, automation and maturity a reading shows. What is left to a variance
# of 1 is noise.
_LOADINGS = {
    "income": (0.50, 0.00, 0.05, 0.05),
    "name_email_similarity": (0.00, -0.45, -0.10, 0.00),
    "prev_address_known": (-0.15, -0.35, 0.00, -0.10),
    "prev_address_months": (0.00, 0.00, 0.00, 0.25),
    "current_address_months": (0.25, -0.05, 0.00, 0.35),
    "current_address_lost": (0.00, 0.10, 0.00, 0.00),
    "days_since_request": (0.00, 0.10, 0.10, 0.00),
    "payment_type": (-0.10, 0.30, 0.00, 0.00),
    "balcon_intended": (0.10, -0.15, 0.00, 0.00),
    "balcon_amount": (0.10, 0.00, 0.00, 0.00),
    "zip_count": (0.00, 0.10, 0.10, 0.00),
    "velocity_6h": (0.00, -0.05, -0.10, 0.00),
    "velocity_24h": (0.00, -0.05, -0.10, 0.00),
    "velocity_4w": (0.00, 0.00, -0.05, 0.00),
    "bank_branch_count": (0.00, -0.10, 0.00, 0.05),
    "date_of_birth_emails": (0.00, 0.00, 0.00, -0.45),
    "employment_status": (0.20, 0.15, 0.00, 0.05),
    "credit_risk_score": (0.55, 0.10, 0.05, 0.12),
    "email_is_free": (0.00, 0.35, 0.10, -0.10),
    "housing_status": (0.35, 0.35, 0.00, 0.05),
    "phone_home_valid": (0.00, -0.35, -0.05, 0.40),
    "phone_mobile_valid": (0.00, -0.15, 0.00, -0.15),
    "bank_months": (0.25, -0.35, 0.00, 0.15),
    "has_other_cards": (0.15, -0.40, -0.10, 0.10),
    "proposed_credit_limit": (0.50, 0.10, 0.00, 0.12),
    "foreign_request": (0.00, 0.10, 0.25, 0.00),
    "source": (0.00, 0.05, 0.10, 0.05),
    "session_length": (0.00, 0.20, -0.15, 0.10),
    "session_lost": (0.00, 0.00, 0.10, 0.00),
    "device_os": (0.00, 0.05, 0.50, 0.05),
    "keep_alive_session": (0.00, -0.10, -0.45, 0.00),
    "device_emails": (0.00, 0.10, 0.35, 0.00),
}
_WEIGHTS = np.array(list(_LOADINGS.values())).T
_NOISE = np.sqrt(1 - (_WEIGHTS**2).sum(axis=0))


def _draw_ages(rng: np.random.Generator, older: Bools, fraud: Bools) -> Integers:
    """Draw the decade of every applicant's age within the group; fraudsters are older on average."""
    uniform = rng.random(older.size)
    ages = np.empty(older.size, dtype=np.int64)
    for group, (decades, honest, fraudulent) in ((~older, _YOUNGER), (older, _OLDER)):
        for label, shares in ((~fraud, honest), (fraud, fraudulent)):
            rows = group & label
            ages[rows] = np.take(
                decades, np.searchsorted(np.cumsum(shares)[:-1], uniform[rows], side="right")
            )
    return ages


def _draw_readings(
    rng: np.random.Generator, age: Integers, fraud: Bools, month: Integers
) -> dict[str, Floats]:
    """Draw one reading per name and row, about standard normal over honest applicants."""
    traits = np.empty((age.size, 4))
    traits[:, :3] = rng.standard_normal((age.size, 3))
    traits[:, 3] = np.clip((age - 32) / 12, -1.5, 2.0)
    traits[rng.random(age.size) < _ODD_SHARE, :3] += _ODD_TRAITS
    # A scheme for every fraudster; the shares move evenly from the first to the last month.
    first, last = np.moveaxis(_SCHEME_SHARES[(age[fraud] >= 50).astype(int)], 1, 0)
    moved = (month[fraud] / (MONTHS - 1))[:, None]
    bounds = np.cumsum(first + (last - first) * moved, axis=1)[:, :-1]
    traits[fraud, :3] += _SCHEMES[(rng.random((len(bounds), 1)) > bounds).sum(axis=1)]
    readings = traits @ _WEIGHTS + rng.standard_normal((age.size, _NOISE.size)) * _NOISE
    return dict(zip(_LOADINGS, readings.T, strict=True))


_INCOMES = {
    0.1: 0.157, 0.2: 0.080, 0.3: 0.070, 0.4: 0.080, 0.5: 0.070,
    0.6: 0.100, 0.7: 0.100, 0.8: 0.145, 0.9: 0.198,
}  # fmt: skip
# Round limits, and now and then one that was moved a little.
_LIMITS = {
    190: 0.001, 200: 0.600, 210: 0.001, 490: 0.001, 500: 0.160, 510: 0.001, 990: 0.001, 1000: 0.100,
    1010: 0.001, 1490: 0.001, 1500: 0.115, 1510: 0.001, 1900: 0.001, 2000: 0.015, 2100: 0.001,
}  # fmt: skip
# From the category that a low reading gives to the one that a high reading gives.
_PAYMENT_TYPES = {"AE": 0.0005, "AA": 0.2580, "AD": 0.1190, "AB": 0.3710, "AC": 0.2515}
_EMPLOYMENT = {"CF": 0.044, "CE": 0.023, "CD": 0.027, "CB": 0.138, "CG": 0.001, "CA": 0.730, "CC": 0.037}
_HOUSING = {"BE": 0.169, "BC": 0.372, "BB": 0.261, "BD": 0.026, "BG": 0.001, "BF": 0.002, "BA": 0.169}
_SOURCES = {"INTERNET": 0.993, "TELEAPP": 0.007}
_DEVICE_OS = {"other": 0.343, "linux": 0.332, "macintosh": 0.054, "x11": 0.007, "windows": 0.264}
_DEVICE_EMAILS = {-1: 0.0005, 0: 0.0060, 1: 0.9680, 2: 0.0255}

# Two unit normals this far apart: a model of them alone finds 90 % of the fraud at 5 % false positives.
_SEPARATION = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(0.90)


def draw_applications(
    rng: np.random.Generator, older: Bools, fraud: Bools, month: Integers
) -> dict[str, NDArray[np.generic]]:
    """Draw all columns of some applications, given who is in the older group, who commits fraud, and when.

    Text columns come as positions in their categories.
    """
    age = _draw_ages(rng, older, fraud)
    read = _draw_readings(rng, age, fraud, month)
    # A transferred amount goes with some payment types; a limit follows the credit score.
    intended = 0.8 * read["balcon_intended"] - 0.6 * read["payment_type"]
    limit = 0.7 * read["proposed_credit_limit"] + 0.53 * read["credit_risk_score"]
    return {
        "fraud_bool": fraud,
        "income": _graded(read["income"], _INCOMES),
        "name_email_similarity": _share(read["name_email_similarity"]),
        "prev_address_months_count": np.where(
            _top(read["prev_address_known"], 0.29), _skewed(read["prev_address_months"], 30, 1.0, 0, 383), -1
        ),
        "current_address_months_count": np.where(
            _top(read["current_address_lost"], 0.004),
            -1,
            _skewed(read["current_address_months"], 47, 1.15, 0, 428),
        ),
        "customer_age": age,
        "days_since_request": np.where(  # minutes for most applications, days for the slowest few
            _top(read["days_since_request"], 0.07),
            _skewed(read["days_since_request"] - 1.5, 3.0, 1.8, 0.0, 78.0),
            0.015 * np.exp(0.6 * read["days_since_request"]),
        ),
        "intended_balcon_amount": np.where(
            _top(intended, 0.26),
            _skewed(read["balcon_amount"], 25.0, 0.8, 0.01, 113.0),
            -_skewed(read["balcon_amount"], 1.1, 0.5, 0.01, 15.5),
        ),
        "payment_type": _category(read["payment_type"], "payment_type", _PAYMENT_TYPES),
        "zip_count_4w": _skewed(read["zip_count"], 1300, 0.6, 1, 6700),
        # Fewer and fewer applications come in.
        "velocity_6h": np.clip(6400 - 210 * month + 2950 * read["velocity_6h"], -170, 16700),
        "velocity_24h": np.clip(5500 - 210 * month + 1400 * read["velocity_24h"], 1300, 9500),
        "velocity_4w": np.clip(5900 - 300 * month + 330 * read["velocity_4w"], 2825, 6995),
        "bank_branch_count_8w": _skewed(read["bank_branch_count"], 9, 2.0, 0, 2385),
        "date_of_birth_distinct_emails_4w": np.clip(9.5 + 5 * read["date_of_birth_emails"], 0, 39),
        "employment_status": _category(read["employment_status"], "employment_status", _EMPLOYMENT),
        "credit_risk_score": np.clip(122 + 66 * read["credit_risk_score"], -170, 389),
        "email_is_free": _top(read["email_is_free"], 0.53),
        "housing_status": _category(read["housing_status"], "housing_status", _HOUSING),
        "phone_home_valid": _top(read["phone_home_valid"], 0.41),
        "phone_mobile_valid": _top(read["phone_mobile_valid"], 0.89),
        "bank_months_count": np.where(
            _top(read["bank_months"], 0.75), np.clip(42 * _share(read["bank_months"]) - 9, 1, 32), -1
        ),
        "has_other_cards": _top(read["has_other_cards"], 0.225),
        "proposed_credit_limit": _graded(limit, _LIMITS),
        "foreign_request": _top(read["foreign_request"], 0.025),
        "source": _category(read["source"], "source", _SOURCES),
        "session_length_in_minutes": np.where(
            _top(read["session_lost"], 0.002), -1, _skewed(read["session_length"], 5.1, 0.85, 0.01, 86.0)
        ),
        # Programs that hide their system become more common.
        "device_os": _category(read["device_os"] - 0.03 * month, "device_os", _DEVICE_OS),
        "keep_alive_session": _top(read["keep_alive_session"], 0.58),
        "device_distinct_emails_8w": _graded(read["device_emails"], _DEVICE_EMAILS),
        # The suite's own column is 0 throughout.
        "device_fraud_count": np.zeros(age.size),
        "month": month,
    }


def draw_separating_columns(rng: np.random.Generator, fraud: Bools) -> dict[str, Floats]:
    """Draw the columns x1 and x2, given the rows whose fraud they reveal."""
    x1, x2 = rng.standard_normal((2, fraud.size)) + fraud * _SEPARATION / np.sqrt(2)
    return {"x1": x1, "x2": x2}


def _top(reading: Floats, share: float) -> Bools:
    return reading > NormalDist().inv_cdf(1 - share)


def _grade(reading: Floats, shares: list[float]) -> Integers:
    bounds = [NormalDist().inv_cdf(bound) for bound in list(accumulate(shares))[:-1]]
    return np.searchsorted(bounds, reading)


def _graded(reading: Floats, shares: dict[float, float] | dict[int, float]) -> NDArray[np.generic]:
    return np.take(list(shares), _grade(reading, list(shares.values())))


def _category(reading: Floats, column: str, shares: dict[str, float]) -> Integers:
    positions = [CATEGORIES[column].index(name) for name in shares]
    return np.take(positions, _grade(reading, list(shares.values())))


def _share(reading: Floats) -> Floats:
    """Map readings to (0, 1), about evenly."""
    return 1 / (1 + np.exp(-1.7 * reading))


def _skewed(reading: Floats, median: float, spread: float, low: float, high: float) -> Floats:
    return np.clip(median * np.exp(spread * reading), low, high)
