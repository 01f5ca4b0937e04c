"""Values by entropy: how uncertain models are about the target and the protected attributes."""

from fado.valuation.entropy._exclusions import variables_to_learn as variables_to_learn
from fado.valuation.entropy._fits import Bag as Bag
from fado.valuation.entropy._models import ValuationModels as ValuationModels
from fado.valuation.entropy._models import digest_of_target as digest_of_target
from fado.valuation.entropy._models import load_models as load_models
from fado.valuation.entropy._out_of_bag import EntropyValuator as EntropyValuator
from fado.valuation.entropy._out_of_bag import InBagEntropy as InBagEntropy
from fado.valuation.entropy._out_of_bag import OutOfBagEntropy as OutOfBagEntropy
