"""What is asked: a TOML file in, checked and frozen settings out."""

from fado.experiment.config._config import config_from, read_config
from fado.experiment.config._interventions import rename_former
from fado.experiment.config._presets import PRESETS, preset_text, write_preset
from fado.experiment.config._settings import (
    Config,
    DataConfig,
    EvaluationConfig,
    ModelsConfig,
    SplitConfig,
    ValuationConfig,
)
from fado.experiment.config._space import Parameter, draw_models

__all__ = [
    "PRESETS",
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "ModelsConfig",
    "Parameter",
    "SplitConfig",
    "ValuationConfig",
    "config_from",
    "draw_models",
    "preset_text",
    "read_config",
    "rename_former",
    "write_preset",
]
