"""Fairness-aware data valuation for supervised learning."""

from __future__ import annotations

from fado._version import __version__ as __version__

TYPE_CHECKING = False  # as type checkers know it: `typing` takes longer to import than all the rest here
if TYPE_CHECKING:
    from typing import Any

    from fado.aim import AimedEstimator as AimedEstimator
    from fado.columns import check_columns as check_columns
    from fado.experiment import find_frontier as find_frontier
    from fado.exploration import explore as explore
    from fado.exploration import explore_files as explore_files
    from fado.generation import UtilityAwareOverSampler as UtilityAwareOverSampler
    from fado.interventions import RandomPrevalenceSampler as RandomPrevalenceSampler
    from fado.interventions import ReweighedEstimator as ReweighedEstimator
    from fado.interventions import Reweigher as Reweigher
    from fado.interventions import UtilityAwarePrevalenceSampler as UtilityAwarePrevalenceSampler
    from fado.interventions import UtilityAwareReweigher as UtilityAwareReweigher
    from fado.interventions import reweigh_files as reweigh_files
    from fado.interventions import sample_files as sample_files
    from fado.models import load_model as load_model
    from fado.utility import CobbDouglasUtility as CobbDouglasUtility
    from fado.utility import DifferenceUtility as DifferenceUtility
    from fado.utility import LinearUtility as LinearUtility
    from fado.valuation import DataShapley as DataShapley
    from fado.valuation import InBagEntropy as InBagEntropy
    from fado.valuation import KNNShapley as KNNShapley
    from fado.valuation import OnlineEntropy as OnlineEntropy
    from fado.valuation import OutOfBagEntropy as OutOfBagEntropy
    from fado.valuation import TreeInfluence as TreeInfluence
    from fado.valuation import Valuation as Valuation
    from fado.valuation import value_files as value_files

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
__all__ = sorted(["__version__", *" ".join(_HOMES.values()).split()])


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
