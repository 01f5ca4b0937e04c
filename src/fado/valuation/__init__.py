"""Values for rows: how unsure trained models are of the target and of protected attributes."""

from fado.valuation._in_bag import InBagEntropy
from fado.valuation._out_of_bag import OutOfBagEntropy
from fado.valuation._result import Valuation

__all__ = ["InBagEntropy", "OutOfBagEntropy", "Valuation"]
