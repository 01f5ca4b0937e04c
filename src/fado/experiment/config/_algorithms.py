"""The algorithms that value the training rows: the one list of their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fado.experiment.config._settings import ValuationConfig
from fado.valuation import InBagEntropy, OutOfBagEntropy

__all__ = ["ALGORITHMS", "make_valuator"]


def _out_of_bag(settings: ValuationConfig, shared: dict[str, Any]) -> Any:
    return OutOfBagEntropy(n_bags=settings.bags, unseen_fraction=settings.unseen_fraction, **shared)


def _in_bag(settings: ValuationConfig, shared: dict[str, Any]) -> Any:
    return InBagEntropy(**shared)


ALGORITHMS: dict[str, Callable[[ValuationConfig, dict[str, Any]], Any]] = {
    "oob": _out_of_bag,
    "inbag": _in_bag,
}


def make_valuator(algorithm: str, settings: ValuationConfig, **shared: Any) -> Any:
    """Make the valuator of an algorithm.

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    settings : ValuationConfig
        What the configuration says.
    **shared
        Parameters that all valuators have; `estimators` come from the settings.

    Examples
    --------
    >>> settings = ValuationConfig(("oob",), bags=5, unseen_fraction=0.2, models=())
    >>> make_valuator("oob", settings, random_state=0)
    OutOfBagEntropy(n_bags=5, random_state=0)
    """
    return ALGORITHMS[algorithm](settings, shared | {"estimators": _estimators(settings.models)})


def _estimators(models: tuple[dict[str, Any], ...]) -> list[Any] | None:
    from lightgbm import LGBMClassifier, LGBMRegressor

    if not models:
        return None
    return [kind(**model) for model in models for kind in (LGBMClassifier, LGBMRegressor)]
