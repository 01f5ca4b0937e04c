"""What sets the six variants apart: group sizes, fraud rates, and how separable fraud is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fado.datasets._columns import MONTHS

__all__ = ["FIRST_LATE_MONTH", "VARIANTS", "Variant", "cell_shares"]

# Months before this one are for training, the rest for testing; variants IV and V change here.
FIRST_LATE_MONTH = 6

_MONTH_SHARES = np.array([0.132, 0.128, 0.137, 0.150, 0.128, 0.120, 0.108, 0.097])
# Fraud rates of the months in percent; only their proportions matter.
_MONTH_RISK = np.array([1.10, 0.96, 0.88, 0.93, 1.12, 1.18, 1.36, 1.46])


@dataclass(frozen=True)
class Variant:
    """One variant; pairs are (majority, minority), the minority being the applicants of 50 and older.

    Attributes
    ----------
    minority_share : float
        Share of the rows in the minority.
    rates : tuple of float
        Fraud rates of the two groups.
    late_rates : tuple of float, optional
        Fraud rates from month 6 on, where they differ from the earlier months'.
    separable_majority : tuple of bool, optional
        Whether the columns x1 and x2 tell the majority's fraud, in the early and in the late months.
        Without it the variant has no such columns.
    """

    minority_share: float
    rates: tuple[float, float]
    late_rates: tuple[float, float] | None = None
    separable_majority: tuple[bool, bool] | None = None


VARIANTS = {
    "base": Variant(0.23, (0.009, 0.018)),
    "I": Variant(0.10, (0.011, 0.011)),
    "II": Variant(0.50, (0.004, 0.019)),
    "III": Variant(0.50, (0.011, 0.011), separable_majority=(True, True)),
    "IV": Variant(0.50, (0.003, 0.017), late_rates=(0.015, 0.015)),
    "V": Variant(0.50, (0.011, 0.011), separable_majority=(True, False)),
}


def cell_shares(variant: Variant) -> NDArray[np.float64]:
    """Share of the rows in every cell of month, group and label, as an array of shape (8, 2, 2).

    Every month has its own fraud rate; over the months for which a variant states a rate, the
    groups' rates average to it.
    """
    early = np.arange(MONTHS) < FIRST_LATE_MONTH
    if variant.late_rates is None:
        rates = np.outer(_relative_risk(np.full(MONTHS, True)), variant.rates)
    else:
        rates = np.outer(_relative_risk(early), variant.rates)
        rates += np.outer(_relative_risk(~early), variant.late_rates)
    groups = np.array([1 - variant.minority_share, variant.minority_share])
    return _MONTH_SHARES[:, None, None] * groups[:, None] * np.stack([1 - rates, rates], axis=-1)


def _relative_risk(months: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Risk of each chosen month, relative to their mean; 0 for the others."""
    mean = np.average(_MONTH_RISK[months], weights=_MONTH_SHARES[months])
    return np.where(months, _MONTH_RISK / mean, 0.0)
