"""Values by entropy: how unsure trained models are of the target and of protected attributes."""

from fado.valuation.entropy._out_of_bag import OutOfBagEntropy  # isort: skip  # registered first
from fado.valuation.entropy._in_bag import InBagEntropy
from fado.valuation.entropy._models import ValuationModels, digest_of_target
from fado.valuation.entropy._saved_models import load_models

__all__ = ["InBagEntropy", "OutOfBagEntropy", "ValuationModels", "digest_of_target", "load_models"]
