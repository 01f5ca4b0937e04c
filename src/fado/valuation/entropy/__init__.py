"""Values by entropy: how unsure trained models are of the target and of protected attributes."""

from fado.valuation.entropy._in_bag import InBagEntropy
from fado.valuation.entropy._out_of_bag import OutOfBagEntropy

__all__ = ["InBagEntropy", "OutOfBagEntropy"]
