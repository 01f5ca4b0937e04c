"""What is asked: a TOML file in, checked and frozen settings out."""

from fado.experiment.config._config import config_from, read_config
from fado.experiment.config._interventions import rename_former
from fado.experiment.config._presets import PRESETS, preset_text, write_preset
from fado.experiment.config._settings import (
    CROSSED,
    EACH,
    Config,
    DataConfig,
    EvaluationConfig,
    ModelsConfig,
    SplitConfig,
    ValuationConfig,
    decides_data,
    former_settings,
    ratio_name,
)
from fado.experiment.config._space import Parameter, draw_models

__all__ = [
    "CROSSED",
    "EACH",
    "PRESETS",
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "ModelsConfig",
    "Parameter",
    "SplitConfig",
    "ValuationConfig",
    "config_from",
    "decides_data",
    "draw_models",
    "former_settings",
    "preset_text",
    "ratio_name",
    "read_config",
    "rename_former",
    "write_preset",
]
