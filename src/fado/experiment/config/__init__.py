"""What is asked: a TOML file in, checked and frozen settings out."""

from fado.experiment.config._config import (
    PRESETS,
    config_from,
    preset_text,
    read_config,
    write_preset,
)
from fado.experiment.config._estimators import (
    LIGHTGBM,
    describe_object,
    estimator_versions,
    is_object,
    make_estimator,
)
from fado.experiment.config._metrics import apply_metric, metric_functions, metric_names, register_metric
from fado.experiment.config._section import Parameter, draw_models
from fado.experiment.config._settings import (
    CROSSED,
    EACH,
    GIVEN,
    PLUGIN_FIELDS,
    Config,
    DataConfig,
    EvaluationConfig,
    Given,
    ModelsConfig,
    SplitConfig,
    ValuationConfig,
    decides_data,
    lacking_plugins,
    plugins_used,
    ratio_name,
)

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
    "write_preset",
]
