"""Fairness-aware data valuation for supervised learning."""

from __future__ import annotations

from fado._version import __version__

TYPE_CHECKING = False  # as type checkers know it: `typing` takes longer to import than all the rest here
if TYPE_CHECKING:
    from typing import Any

    from fado.aim import AimedEstimator
    from fado.columns import check_columns
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
    "check_columns",
    "explore",
    "explore_files",
    "find_frontier",
    "load_model",
    "reweigh_files",
    "sample_files",
    "value_files",
]

# Where public names are defined; each is imported when it is first used, so that `import fado` stays quick.
_HOMES = {
    "aim": "AimedEstimator",
    "columns": "check_columns",
    "experiment": "find_frontier",
    "exploration": "explore explore_files",
    "generation": "UtilityAwareOverSampler",
    "interventions": "RandomPrevalenceSampler ReweighedEstimator Reweigher UtilityAwarePrevalenceSampler "
    "UtilityAwareReweigher reweigh_files sample_files",
    "models": "load_model",
    "utility": "CobbDouglasUtility DifferenceUtility LinearUtility",
    "valuation": "DataShapley InBagEntropy KNNShapley OnlineEntropy OutOfBagEntropy TreeInfluence Valuation "
    "value_files",
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            from importlib import import_module

            value = getattr(import_module(f"fado.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'fado' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
