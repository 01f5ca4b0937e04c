"""The estimator of an experiment: by a name in the configuration, or as an object in Python."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from importlib import import_module
from typing import Any

from fado._checks import check_instance
from fado.experiment._section import as_text, shown

LIGHTGBM = "lightgbm.LGBMClassifier"

_LIBRARIES = {"sklearn": "scikit-learn", "lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
# The place of a class: a library, perhaps one of its public modules, and a public name in it.
_CLASS = re.compile(r"(sklearn(?:\.[a-z][a-z_]*)|lightgbm|xgboost|catboost)\.([A-Z]\w*)")
_NOT_PUBLIC = {"sklearn.conftest", "sklearn.externals", "sklearn.tests", "sklearn.utils", "sklearn.datasets"}
_OBJECT = "object "
# Parameters that name files or code, which a configuration of somebody else must not set.
_UNSAFE = re.compile(r".*(file|dir|path|memory|borders|snapshot|callback|metadata|writing).*")
# Fits run in parallel, one thread each, and write nothing.
_OURS: dict[str, dict[str, Any]] = {
    "xgboost": {"n_jobs": 1, "verbosity": 0},
    "catboost": {"thread_count": 1, "allow_writing_files": False, "verbose": False},
}
_LIGHTGBM_STEP = {"n_jobs": 1, "verbosity": -1, "force_row_wise": True, "deterministic": True}


def make_estimator(name: str, pipeline: tuple[str, ...] = (), place: str = "models") -> Any:
    """Make the estimator that a configuration names, with default parameters.

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

    estimator = _made(_class_at(name, f"{place}.estimator"), name, f"{place}.estimator")
    if not is_classifier(estimator):
        raise ValueError(f"`{place}.estimator` must be a classifier that gives probabilities, got {name!r}.")
    if not pipeline:
        return estimator
    from sklearn.pipeline import make_pipeline

    steps = []
    for position, step in enumerate(pipeline):
        here = f"{place}.pipeline[{position}]"
        if not as_text(step, here).startswith("sklearn."):
            raise ValueError(f"`{here}` must be a transformer of scikit-learn, got {step!r}.")
        steps.append(_made(_class_at(step, here), step, here))
        if not hasattr(steps[-1], "transform"):
            raise ValueError(f"`{here}` must be a transformer, got {step!r}.")
    if _root(estimator) == "lightgbm":  # without a pipeline, the engine sets this
        estimator.set_params(**_LIGHTGBM_STEP)
    return make_pipeline(_indicators(), *steps, estimator)


def parameter_names(estimator: Any) -> list[str]:
    """List the parameters of an estimator that a configuration may set."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return [
            f"{step}__{name}"
            for step, own in estimator.steps
            if step != "columntransformer"
            for name in parameter_names(own)
        ]
    names = dict.fromkeys([*estimator.get_params(), *inspect.signature(type(estimator)).parameters])
    ours = _LIGHTGBM_STEP if _root(estimator) == "lightgbm" else _OURS.get(_root(estimator), {})
    return [name for name in names if not _UNSAFE.fullmatch(name) and name not in (*ours, "kwargs")]


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
    told = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(parameters))  # where a function lies in memory
    kind = type(estimator)
    return f"{_OBJECT}{kind.__module__}.{kind.__qualname__} {hashlib.sha256(told.encode()).hexdigest()[:16]}"


def is_object(name: str) -> bool:
    """Return whether this describes an estimator that was passed in Python."""
    return name.startswith(_OBJECT)


def estimator_versions(estimator: Any) -> dict[str, str]:
    """Return the versions of the libraries of an estimator, where known."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    roots = sorted({_root(part) for part in parts if hasattr(part, "get_params")})
    found = {root: getattr(sys.modules.get(root), "__version__", None) for root in roots}
    return {
        root: str(version)
        for root, version in found.items()
        if version is not None and root not in ("sklearn", "lightgbm", "fado")  # known anyway
    }


def _class_at(name: str, place: str) -> type[Any]:
    """Find a class by its name; only public modules of known libraries are imported."""
    found = _CLASS.fullmatch(name)
    if found is None or found[1] in _NOT_PUBLIC:
        raise ValueError(
            f"`{place}` must be the place of a class, as 'sklearn.linear_model.LogisticRegression', of "
            f"{' or '.join(_LIBRARIES.values())}, got {shown(name)}."
        )
    module, attribute = found.groups()
    root = module.partition(".")[0]
    try:
        own = getattr(import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        if error.name == root:
            raise ValueError(f"`{place}` is {name!r}, and {_LIBRARIES[root]} is not installed.") from None
        own = None
    if not isinstance(own, type) or own.__module__.partition(".")[0] != root:
        raise ValueError(f"`{place}` is {name!r}, and there is no such class.")
    return own


def _made(kind: type[Any], name: str, place: str) -> Any:
    """Make an estimator with default parameters."""
    if not all(hasattr(kind, method) for method in ("fit", "get_params", "set_params")):
        raise ValueError(f"`{place}` must be an estimator, got {name!r}.")
    try:
        return kind(**_OURS.get(kind.__module__.partition(".")[0], {}))
    except TypeError:
        raise ValueError(
            f"`{place}` is {name!r}, which needs parameters: pass an object in Python."
        ) from None


def _indicators() -> Any:
    """Make the step that one-hot encodes columns of strings or categories."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    worded = make_column_selector(dtype_include=["category", "object", "string"])
    return make_column_transformer((encoder, worded), remainder="passthrough")


def _root(estimator: Any) -> str:
    return type(estimator).__module__.partition(".")[0]
