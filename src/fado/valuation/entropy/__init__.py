"""Values by entropy: how unsure trained models are of the target and of protected attributes."""

from fado.valuation.entropy._out_of_bag import OutOfBagEntropy  # isort: skip  # registered first
from fado.valuation.entropy._in_bag import InBagEntropy

__all__ = ["InBagEntropy", "OutOfBagEntropy"]
