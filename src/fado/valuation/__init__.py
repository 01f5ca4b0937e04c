"""Values for rows: what each is worth for the target and for protected attributes.

Names that are imported `as` themselves are for the other packages of FADO, not for users.
"""

from fado.valuation._base import (
    BaseValuator,
    make_valuator,
    register_valuator,
    valuator_class,
    valuator_names,
)
from fado.valuation._base import check_alignment as check_alignment
from fado.valuation._base import read_validation as read_validation
from fado.valuation._provenance import Provenance, Scale, SplitGains, TargetNote, VariableNote
from fado.valuation._result import Valuation
from fado.valuation._result import known_quantiles as known_quantiles
from fado.valuation._retraining import compare_effects, removal_effects, retraining_check
from fado.valuation._saved import read_lazily as read_lazily
from fado.valuation._stability import read_stability as read_stability
from fado.valuation.entropy import InBagEntropy, OutOfBagEntropy, ValuationModels, load_models
from fado.valuation.entropy import digest_of_target as digest_of_target
from fado.valuation.influence import TreeInfluence
from fado.valuation.influence import readable_estimator as readable_estimator
from fado.valuation.large import FilesPlan, GroupLine, plan_files, summarise_files, value_files
from fado.valuation.online import OnlineEntropy
from fado.valuation.shapley import DataShapley, KNNShapley

__all__ = [
    "BaseValuator",
    "DataShapley",
    "FilesPlan",
    "GroupLine",
    "InBagEntropy",
    "KNNShapley",
    "OnlineEntropy",
    "OutOfBagEntropy",
    "Provenance",
    "Scale",
    "SplitGains",
    "TargetNote",
    "TreeInfluence",
    "Valuation",
    "ValuationModels",
    "VariableNote",
    "compare_effects",
    "load_models",
    "make_valuator",
    "plan_files",
    "register_valuator",
    "removal_effects",
    "retraining_check",
    "summarise_files",
    "valuator_class",
    "valuator_names",
    "value_files",
]
