"""Hidden traits of applicants and fraudsters, and the noisy readings that columns are made from.

An applicant has an affluence, an irregularity (papers and history that do not fit together), an
automation (how much of the session looks run by a program) and a maturity (from the age). A fraudster
follows one of a few schemes, each of which moves the first three. Columns read the traits, every one
with noise of its own, and never the label; only the age leans a little with it. As the schemes move
several traits at once, each its own way, fraud shows in combinations of columns rather than in single
ones.
"""

import numpy as np
from numpy.typing import NDArray

from fado.datasets._columns import MONTHS

__all__ = ["draw_ages", "draw_readings"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Decades of the two groups, and how honest applicants and fraudsters spread over them.
_YOUNGER = ((10, 20, 30, 40), (0.025, 0.300, 0.380, 0.295), (0.020, 0.270, 0.380, 0.330))
_OLDER = ((50, 60, 70, 80, 90), (0.770, 0.185, 0.038, 0.005, 0.002), (0.730, 0.210, 0.050, 0.007, 0.003))

# What a scheme adds to affluence, irregularity and automation. One scheme is blatant, and every model finds
# it; the others are faint, and decide who else is flagged at a given false-positive rate.
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


def draw_ages(rng: np.random.Generator, older: Flags, fraud: Flags) -> Ints:
    """Draw the decade of every applicant's age within the group; fraud leans to the higher decades."""
    uniform = rng.random(older.size)
    ages = np.empty(older.size, dtype=np.int64)
    for group, (decades, honest, fraudulent) in ((~older, _YOUNGER), (older, _OLDER)):
        for label, shares in ((~fraud, honest), (fraud, fraudulent)):
            rows = group & label
            ages[rows] = np.take(
                decades, np.searchsorted(np.cumsum(shares)[:-1], uniform[rows], side="right")
            )
    return ages


def draw_readings(rng: np.random.Generator, age: Ints, fraud: Flags, month: Ints) -> dict[str, Floats]:
    """Draw one reading per name and row, about standard normal over honest applicants."""
    traits = np.empty((age.size, 4))
    traits[:, :3] = rng.standard_normal((age.size, 3))
    traits[:, 3] = np.clip((age - 32) / 12, -1.5, 2.0)
    traits[rng.random(age.size) < _ODD_SHARE, :3] += _ODD_TRAITS
    traits[fraud, :3] += _scheme_traits(rng, age[fraud] >= 50, month[fraud])
    readings = traits @ _WEIGHTS + rng.standard_normal((age.size, _NOISE.size)) * _NOISE
    return dict(zip(_LOADINGS, readings.T, strict=True))


def _scheme_traits(rng: np.random.Generator, older: Flags, month: Ints) -> Floats:
    """Pick a scheme for every fraudster; the shares move evenly from the first to the last month."""
    first, last = np.moveaxis(_SCHEME_SHARES[older.astype(int)], 1, 0)
    bounds = np.cumsum(first + (last - first) * (month / (MONTHS - 1))[:, None], axis=1)[:, :-1]
    return _SCHEMES[(rng.random((month.size, 1)) > bounds).sum(axis=1)]
