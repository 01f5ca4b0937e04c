"""Values for rows: what each is worth for the target and for protected attributes."""

from fado.valuation._base import (
    BaseValuator,
    check_alignment,
    make_valuator,
    read_validation,
    register_valuator,
    seed_from,
    valuator_class,
    valuator_names,
)
from fado.valuation._provenance import Provenance, Scale, SplitGains, TargetNote, VariableNote
from fado.valuation._result import Valuation
from fado.valuation._retraining import compare_effects, removal_effects, retraining_check
from fado.valuation._saved import read_lazily
from fado.valuation._stability import read_stability
from fado.valuation.entropy import (
    InBagEntropy,
    OutOfBagEntropy,
    ValuationModels,
    digest_of_target,
    load_models,
)
from fado.valuation.influence import (
    TreeInfluence,
    forecast_problem,
    forecast_removals,
    readable_estimator,
)
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
    "check_alignment",
    "compare_effects",
    "digest_of_target",
    "forecast_problem",
    "forecast_removals",
    "load_models",
    "make_valuator",
    "plan_files",
    "read_lazily",
    "read_stability",
    "read_validation",
    "readable_estimator",
    "register_valuator",
    "removal_effects",
    "retraining_check",
    "seed_from",
    "summarise_files",
    "valuator_class",
    "valuator_names",
    "value_files",
]
