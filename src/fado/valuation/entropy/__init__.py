"""Values by entropy: how unsure trained models are of the target and of protected attributes."""

from fado.valuation.entropy._exclusions import variables_to_learn
from fado.valuation.entropy._fits import Bag
from fado.valuation.entropy._models import (
    NEW_ROWS,
    ValuationModels,
    digest_of_target,
    label_codes,
    load_models,
    read_labels,
    table_of,
)
from fado.valuation.entropy._out_of_bag import EntropyValuator, InBagEntropy, OutOfBagEntropy

__all__ = [
    "NEW_ROWS",
    "Bag",
    "EntropyValuator",
    "InBagEntropy",
    "OutOfBagEntropy",
    "ValuationModels",
    "digest_of_target",
    "label_codes",
    "load_models",
    "read_labels",
    "table_of",
    "variables_to_learn",
]
