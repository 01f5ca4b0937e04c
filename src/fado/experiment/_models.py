"""The models of an experiment: their estimator, by name or as an object, and the space of its parameters."""

from __future__ import annotations

import hashlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from fado._checks import check_instance
from fado._messages import closest_names, list_names
from fado._records import is_number
from fado.experiment._reader import check_table, choice, list_of, shown

LIGHTGBM = "lightgbm.LGBMClassifier"

_LIBRARIES = {"sklearn": "scikit-learn", "lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
# The place of a class: a library, perhaps one of its public modules, and a public name in it.
_CLASS = re.compile(r"(sklearn(?:\.[a-z][a-z_]*)|lightgbm|xgboost|catboost)\.([A-Z]\w*)")
_NOT_PUBLIC = {"sklearn.conftest", "sklearn.externals", "sklearn.tests", "sklearn.utils", "sklearn.datasets"}
_OBJECT = "object "
# Parameters that name files or code, which a configuration of somebody else must not set.
_UNSAFE = re.compile(r".*(file|dir|path|memory|borders|snapshot|callback|metadata|writing).*")
# Fits run in parallel, one thread each, and write nothing.
_ALWAYS: dict[str, dict[str, Any]] = {
    "lightgbm": {"n_jobs": 1, "verbosity": -1, "force_row_wise": True, "deterministic": True},
    "xgboost": {"n_jobs": 1, "verbosity": 0},
    "catboost": {"thread_count": 1, "allow_writing_files": False, "verbose": False},
}


def make_estimator(name: str, pipeline: tuple[str, ...] = (), passed: Any = None) -> Any:
    """Make the estimator that a configuration names, with default parameters, if none was passed in Python.

    Examples
    --------
    >>> make_estimator("sklearn.linear_model.LogisticRegression")
    LogisticRegression()
    >>> scaled = make_estimator("sklearn.naive_bayes.GaussianNB", ("sklearn.preprocessing.StandardScaler",))
    >>> [step for step, _ in scaled.steps]
    ['columntransformer', 'standardscaler', 'gaussiannb']
    >>> make_estimator("os.system")
    Traceback (most recent call last):
    ValueError: `models.estimator` must be the place of a class, as 'sklearn.linear_model.LogisticRegression',
    of scikit-learn or LightGBM or XGBoost or CatBoost, got 'os.system'.
    """
    from fado._compat import is_classifier

    if passed is not None:
        return passed
    estimator = _make(name, "models.estimator")
    if not is_classifier(estimator):
        raise ValueError(f"`models.estimator` must be a classifier that gives probabilities, got {name!r}.")
    if not pipeline:
        return estimator
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    steps = []
    for position, step in enumerate(pipeline):
        place = f"models.pipeline[{position}]"
        if not step.startswith("sklearn."):
            raise ValueError(f"`{place}` must be a transformer of scikit-learn, got {step!r}.")
        steps.append(_make(step, place))
        if not hasattr(steps[-1], "transform"):
            raise ValueError(f"`{place}` must be a transformer, got {step!r}.")
    if _library(estimator) == "lightgbm":  # without a pipeline, the engine sets this
        estimator.set_params(**_ALWAYS["lightgbm"])
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    texts = make_column_selector(dtype_include=["category", "object", "string"])
    return make_pipeline(
        make_column_transformer((encoder, texts), remainder="passthrough"), *steps, estimator
    )


def _make(name: str, place: str) -> Any:
    """Make an estimator with default parameters; only public modules of known libraries are imported."""
    match = _CLASS.fullmatch(name)
    if match is None or match[1] in _NOT_PUBLIC:
        raise ValueError(
            f"`{place}` must be the place of a class, as 'sklearn.linear_model.LogisticRegression', of "
            f"{' or '.join(_LIBRARIES.values())}, got {shown(name)}."
        )
    module, attribute = match.groups()
    library = module.partition(".")[0]
    try:
        kind = getattr(import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        if error.name == library:
            raise ValueError(f"`{place}` is {name!r}, and {_LIBRARIES[library]} is not installed.") from None
        kind = None
    if not isinstance(kind, type) or kind.__module__.partition(".")[0] != library:
        raise ValueError(f"`{place}` is {name!r}, and there is no such class.")
    if not all(hasattr(kind, method) for method in ("fit", "get_params", "set_params")):
        raise ValueError(f"`{place}` must be an estimator, got {name!r}.")
    try:
        return kind(**_ALWAYS[library] if library in ("xgboost", "catboost") else {})
    except TypeError:
        raise ValueError(
            f"`{place}` is {name!r}, which needs parameters: pass an object in Python."
        ) from None


def copied(estimator: Any) -> Any:
    """Copy an estimator, as the user may change theirs; None stays None."""
    from sklearn.base import clone

    return None if estimator is None else clone(estimator)


def parameter_names(estimator: Any) -> list[str]:
    """List the parameters of an estimator that a configuration may set."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return [
            f"{name}__{parameter}"
            for name, step in estimator.steps
            if name != "columntransformer"
            for parameter in parameter_names(step)
        ]
    names = dict.fromkeys([*estimator.get_params(), *inspect.signature(type(estimator)).parameters])
    fixed = (*_ALWAYS.get(_library(estimator), ()), "kwargs")
    return [name for name in names if not _UNSAFE.fullmatch(name) and name not in fixed]


def describe_object(estimator: Any) -> str:
    """Describe an estimator object for a store: its class, and a digest of its parameters.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> describe_object(LogisticRegression(C=2.0)).split()[:2]
    ['object', 'sklearn.linear_model._logistic.LogisticRegression']
    """
    from fado._compat import is_classifier

    check_instance("estimator", estimator)
    if not hasattr(estimator, "get_params"):
        raise TypeError(f"`estimator` must be a scikit-learn estimator, got {shown(estimator)}.")
    if not is_classifier(estimator):
        raise TypeError(f"`estimator` must be a classifier, got {shown(estimator)}.")
    parameters = sorted((name, repr(value)) for name, value in estimator.get_params(deep=True).items())
    plain = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(parameters))  # where a function lies in memory
    kind = type(estimator)
    return f"{_OBJECT}{kind.__module__}.{kind.__qualname__} {hashlib.sha256(plain.encode()).hexdigest()[:16]}"


def is_object(name: str) -> bool:
    """Return whether this describes an estimator that was passed in Python."""
    return name.startswith(_OBJECT)


def estimator_versions(estimator: Any) -> dict[str, str]:
    """Return the versions of the libraries of an estimator, where known."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    libraries = {_library(part) for part in parts if hasattr(part, "get_params")}
    versions = {
        library: getattr(sys.modules.get(library), "__version__", None)
        for library in sorted(libraries - {"sklearn", "lightgbm", "fado"})  # known anyway
    }
    return {library: str(version) for library, version in versions.items() if version is not None}


def _library(estimator: Any) -> str:
    return type(estimator).__module__.partition(".")[0]


@dataclass(frozen=True)
class Parameter:
    """How one parameter is drawn: from a few choices, or log-uniformly between two ends."""

    choices: tuple[Any, ...] = ()
    low: int | float | None = None
    high: int | float | None = None

    def draw(self, generator: np.random.Generator) -> Any:
        """Draw a value."""
        low, high = self.low, self.high
        if low is None or high is None:
            return self.choices[generator.integers(len(self.choices))]
        is_whole = isinstance(low, int) and isinstance(high, int)
        drawn = math.exp(generator.uniform(math.log(low), math.log(high + is_whole)))
        return min(int(drawn), high) if is_whole else float(drawn)


def draw_models(space: dict[str, Parameter], count: int, seed: int) -> list[dict[str, Any]]:
    """Draw the parameters of some models.

    Examples
    --------
    >>> space = {"n_estimators": Parameter(low=20, high=300), "boosting_type": Parameter(("goss",))}
    >>> draw_models(space, count=2, seed=0)
    [{'n_estimators': 77, 'boosting_type': 'goss'}, {'n_estimators': 96, 'boosting_type': 'goss'}]
    """
    return [
        {
            name: parameter.draw(np.random.default_rng([seed, model, *name.encode()]))
            for name, parameter in space.items()
        }
        for model in range(count)
    ]


ParameterReader = Callable[[Any, str, str], Any]  # takes a value, the name of its parameter, and its place


def read_space(space: Any, place: str, read: ParameterReader) -> dict[str, Parameter]:
    """Read how parameters are drawn, each value by a function."""
    check_table(space, place)
    return {name: _read_parameter(value, name, f"{place}.{name}", read) for name, value in space.items()}


def _read_parameter(value: Any, name: str, place: str, read: ParameterReader) -> Parameter:
    if isinstance(value, list | tuple):
        value = {"choices": value}
    if not isinstance(value, dict):
        return Parameter((read(value, name, place),))
    if len(value) != 1 or not set(value) <= {"choices", "log_uniform"}:
        raise ValueError(
            f"`{place}` must be a value, {{ choices = [...] }} or {{ log_uniform = [low, high] }}, "
            f"got the keys {', '.join(map(shown, value)) or 'none'}."
        )
    ((key, entries),) = value.items()
    place = f"{place}.{key}"
    if key == "choices":
        choices = list_of(lambda entry, where: read(entry, name, where))(entries, place)
        if not choices:
            raise ValueError(f"`{place}` is empty: list at least one.")
        return Parameter(choices)
    if not isinstance(entries, list | tuple) or len(entries) != 2:
        raise ValueError(f"`{place}` must be a list of two ends, got {shown(entries)}.")
    low, high = (read(end, name, f"{place}[{j}]") for j, end in enumerate(entries))
    if not (is_number(low) and is_number(high)) or not 0 < low <= high:
        raise ValueError(f"`{place}` must rise from a number above 0, got {shown(entries)}.")
    return Parameter(low=low, high=high)


def parameter_reader(of: str, names: Sequence[str]) -> ParameterReader:
    """Return the check of one value of a parameter of any estimator."""

    def read(value: Any, name: str, place: str) -> Any:
        if name not in names:
            there = f"; there are {list_names(names, most=60)}."
            raise ValueError(
                f"`{place}` is not a parameter of {of} that can be set{closest_names(name, names, there)}"
            )
        if not is_number(value) and not isinstance(value, str | bool | None):
            raise ValueError(f"`{place}` must be a number, a text, true or false, got {shown(value)}.")
        return value

    return read


_INT, _FLOAT = 2**31 - 1, 1e12
# LightGBM's parameters that may be set: the type of each, and its bounds.
_NUMBERS: dict[str, tuple[type, float, float]] = {
    "n_estimators": (int, 1, 1_000_000),
    "num_leaves": (int, 2, 131_072),
    "max_depth": (int, -1, _INT),
    "learning_rate": (float, 1e-9, _FLOAT),
    "min_child_samples": (int, 0, _INT),
    "min_child_weight": (float, 0, _FLOAT),
    "min_split_gain": (float, 0, _FLOAT),
    "subsample": (float, 1e-9, 1),
    "subsample_freq": (int, 0, _INT),
    "colsample_bytree": (float, 1e-9, 1),
    "reg_alpha": (float, 0, _FLOAT),
    "reg_lambda": (float, 0, _FLOAT),
    "max_bin": (int, 2, _INT),
    "min_data_in_bin": (int, 1, _INT),
    "top_rate": (float, 0, 1),
    "other_rate": (float, 0, 1),
    "max_delta_step": (float, 0, _FLOAT),
    "path_smooth": (float, 0, _FLOAT),
    "scale_pos_weight": (float, 1e-9, _FLOAT),
    "cat_l2": (float, 0, _FLOAT),
    "cat_smooth": (float, 0, _FLOAT),
    "min_data_per_group": (int, 1, _INT),
    "max_cat_threshold": (int, 1, _INT),
}


def read_lightgbm(value: Any, name: str, place: str) -> Any:
    """Check one value of a LightGBM parameter."""
    if name == "boosting_type":
        return choice(("gbdt", "goss"))(value, place)
    if name not in _NUMBERS:
        known = ", ".join(["boosting_type", *_NUMBERS])
        raise ValueError(f"`{place}` is not a parameter that can be set; there are {known}.")
    kind, least, most = _NUMBERS[name]
    if not is_number(value) or (kind is int and not isinstance(value, int)) or value < least:
        what = "a whole number" if kind is int else "a number"
        raise ValueError(f"`{place}` must be {what} of at least {least:g}, got {shown(value)}.")
    if value > most:
        raise ValueError(f"`{place}` must be at most {most:,.12g}, got {shown(value)}.")
    return kind(value)


def read_lightgbm_models(tables: Any, place: str) -> tuple[dict[str, Any], ...]:
    """Read a list of tables of LightGBM parameters."""
    if not isinstance(tables, list | tuple):
        raise ValueError(f"`{place}` must be a list of tables, got {shown(tables)}.")
    models = []
    for j, table in enumerate(tables):
        check_table(table, f"{place}[{j}]")
        models.append(
            {name: read_lightgbm(value, name, f"{place}[{j}].{name}") for name, value in table.items()}
        )
    return tuple(models)
