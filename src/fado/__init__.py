"""Fairness-aware data valuation for supervised learning."""

from __future__ import annotations

from fado._version import __version__

TYPE_CHECKING = False  # as type checkers know it: `typing` takes longer to import than all the rest here
if TYPE_CHECKING:
    from typing import Any

    from fado.aim import AimedEstimator
    from fado.experiment import find_frontier
    from fado.exploration import explore, explore_files
    from fado.generation import UtilityAwareOverSampler
    from fado.interventions import (
        RandomPrevalenceSampler,
        ReweighedEstimator,
        Reweigher,
        UtilityAwarePrevalenceSampler,
        UtilityAwareReweigher,
        reweigh_files,
        sample_files,
    )
    from fado.models import load_model
    from fado.utility import CobbDouglasUtility, DifferenceUtility, LinearUtility
    from fado.valuation import (
        DataShapley,
        InBagEntropy,
        KNNShapley,
        OnlineEntropy,
        OutOfBagEntropy,
        TreeInfluence,
        Valuation,
        value_files,
    )

__all__ = [
    "AimedEstimator",
    "CobbDouglasUtility",
    "DataShapley",
    "DifferenceUtility",
    "InBagEntropy",
    "KNNShapley",
    "LinearUtility",
    "OnlineEntropy",
    "OutOfBagEntropy",
    "RandomPrevalenceSampler",
    "ReweighedEstimator",
    "Reweigher",
    "TreeInfluence",
    "UtilityAwareOverSampler",
    "UtilityAwarePrevalenceSampler",
    "UtilityAwareReweigher",
    "Valuation",
    "__version__",
    "explore",
    "explore_files",
    "find_frontier",
    "load_model",
    "reweigh_files",
    "sample_files",
    "value_files",
]

# Public names and the modules that hold them, imported when first asked for: `import fado` stays quick.
_HOMES = {
    "AimedEstimator": "fado.aim",
    "CobbDouglasUtility": "fado.utility",
    "DataShapley": "fado.valuation",
    "DifferenceUtility": "fado.utility",
    "InBagEntropy": "fado.valuation",
    "KNNShapley": "fado.valuation",
    "LinearUtility": "fado.utility",
    "OnlineEntropy": "fado.valuation",
    "OutOfBagEntropy": "fado.valuation",
    "RandomPrevalenceSampler": "fado.interventions",
    "ReweighedEstimator": "fado.interventions",
    "Reweigher": "fado.interventions",
    "TreeInfluence": "fado.valuation",
    "UtilityAwareOverSampler": "fado.generation",
    "UtilityAwarePrevalenceSampler": "fado.interventions",
    "UtilityAwareReweigher": "fado.interventions",
    "Valuation": "fado.valuation",
    "explore": "fado.exploration",
    "explore_files": "fado.exploration",
    "find_frontier": "fado.experiment",
    "load_model": "fado.models",
    "reweigh_files": "fado.interventions",
    "sample_files": "fado.interventions",
    "value_files": "fado.valuation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fado' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
