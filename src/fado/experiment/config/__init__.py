"""What is asked: a TOML file in, checked and frozen settings out."""

from fado.experiment.config._config import config_from, read_config
from fado.experiment.config._estimators import (
    LIGHTGBM,
    describe_object,
    estimator_versions,
    is_object,
    make_estimator,
)
from fado.experiment.config._given import Given
from fado.experiment.config._interventions import rename_former
from fado.experiment.config._metrics import apply_metric, metric_functions, metric_names, register_metric
from fado.experiment.config._plugins import PLUGIN_FIELDS, lacking_plugins, plugins_used
from fado.experiment.config._presets import PRESETS, preset_text, write_preset
from fado.experiment.config._settings import (
    CROSSED,
    EACH,
    GIVEN,
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
    "GIVEN",
    "LIGHTGBM",
    "PLUGIN_FIELDS",
    "PRESETS",
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "Given",
    "ModelsConfig",
    "Parameter",
    "SplitConfig",
    "ValuationConfig",
    "apply_metric",
    "config_from",
    "decides_data",
    "describe_object",
    "draw_models",
    "estimator_versions",
    "former_settings",
    "is_object",
    "lacking_plugins",
    "make_estimator",
    "metric_functions",
    "metric_names",
    "plugins_used",
    "preset_text",
    "ratio_name",
    "read_config",
    "register_metric",
    "rename_former",
    "write_preset",
]
