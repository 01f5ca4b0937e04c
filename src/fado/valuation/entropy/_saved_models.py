"""Kept models as directories: a file per model, and a manifest that vouches for them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fado._records import decode, encode, label_from, label_to
from fado._storage import DamagedError, Manifest, digest_of, replacing_directory, write_file
from fado._version import __version__, library_versions
from fado.engine import scorer_from
from fado.tabular import TARGET, Variable
from fado.valuation._provenance import Provenance
from fado.valuation.entropy._fits import KeptModel
from fado.valuation.entropy._models import ValuationModels
from fado.valuation.entropy._new_rows import VariableModels

__all__ = ["load_models", "write"]

SAVED = Manifest(name="models.json", kind="fado valuation models", layout=1, what="set of models")
# The content of a model, by the kind of its scorer; one that says the same of every row has none.
ENDINGS = {"lightgbm": "txt", "sklearn": "skops"}
_CONTENT = re.compile(rf"\d+-\d+\.({'|'.join(ENDINGS.values())})")


def write(models: ValuationModels, directory: str | os.PathLike[str]) -> None:
    """Write models into a directory, whole or not at all."""
    final = SAVED.check_directory(Path(directory), lambda name: _CONTENT.fullmatch(name) is not None)
    schemas: list[Any] = []
    files: dict[str, bytes] = {}
    variables = []
    for number, own in enumerate(models.kept):
        told = [_tell(model, f"{number}-{place}", schemas, files) for place, model in enumerate(own.models)]
        variables.append({**_tell_variable(own), "models": told})
    with replacing_directory(final, "The models") as temporary:
        for name, content in files.items():
            write_file(temporary / name, content, "A model")
        SAVED.write(
            temporary,
            {
                "fado": __version__,
                "versions": library_versions(),
                "n_rows": models.n_rows,
                "target": models.target_digest,
                "provenance": encode(models.provenance.to_dict()),
                "schemas": schemas,
                "variables": variables,
                "files": {name: digest_of(content) for name, content in files.items()},
            },
        )


def load_models(directory: str | os.PathLike[str]) -> ValuationModels:
    """Read models that `ValuationModels.save` wrote.

    No code from the directory is run. Estimators other than LightGBM's are read only if all they hold is of
    an explicit list of classes.

    Parameters
    ----------
    directory : path-like
        The directory that `save` wrote.

    Returns
    -------
    ValuationModels
        They give exactly the same values as the models that were saved.

    Raises
    ------
    ValueError
        If the directory holds no saved models, or a file is missing, damaged or of other models; the message
        names the file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fado import OutOfBagEntropy
    >>> from fado.valuation import load_models
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> valuator = OutOfBagEntropy(keep_models=True, random_state=0).fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     valuator.models_.save(f"{folder}/models")
    ...     models = load_models(f"{folder}/models")
    >>> bool((models.value(X)["y"] == valuator.value(X)["y"]).all())
    True
    """
    folder, told = Path(directory), SAVED.open(directory)
    try:
        return _models_of(folder, told)
    except DamagedError as error:
        raise ValueError(str(error)) from error.__cause__
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(f"{str(folder / SAVED.name)!r} does not tell of models: {error}") from error


def _tell(model: KeptModel, name: str, schemas: list[Any], files: dict[str, bytes]) -> dict[str, Any]:
    """Tell of a model; its columns, which all may share, and its content go where they are collected."""
    plain, content = model.scorer.parts()
    if "schema" in plain:
        if plain["schema"] not in schemas:
            schemas.append(plain["schema"])
        plain = {**plain, "schema": schemas.index(plain["schema"])}
    if model.scorer.kind in ENDINGS:
        files[f"{name}.{ENDINGS[model.scorer.kind]}"] = content
    return {"bag": model.bag, "training_mean": model.training_mean.hex(), "scorer": plain}


def _tell_variable(own: VariableModels) -> dict[str, Any]:
    variable = own.variable
    return {
        "name": variable.name,
        "kind": variable.kind,
        "classes": [label_to(label) for label in variable.classes],
        "has_missing": variable.has_missing,
        "excluded": sorted(variable.excluded),
        "sees_target": variable.sees_target,
        "furthest": own.furthest.hex(),
        "largest_error": own.largest_error.hex(),
    }


def _models_of(folder: Path, told: Mapping[str, Any]) -> ValuationModels:
    """Make the models that a manifest tells of."""
    read: set[str] = set()
    kept = []
    for number, entry in enumerate(told["variables"]):
        variable = _variable_of(entry)
        models = []
        for place, own in enumerate(entry["models"]):
            model, name = _model_of(folder, told, own, f"{number}-{place}")
            _check_fits(model, variable)
            models.append(model)
            read |= {name} if name else set()
        ends = [float.fromhex(entry[name]) for name in ("furthest", "largest_error")]
        if not models or not all(0 < end < np.inf for end in ends):
            raise ValueError(f"its models of {variable.name!r} are not told as they should be.")
        kept.append(VariableModels(variable, tuple(models), *ends))
    if set(told["files"]) != read:
        raise ValueError("its list of files is not that of its models.")
    _check_variables(kept)
    n_rows, digest = told["n_rows"], told["target"]
    if type(n_rows) is not int or n_rows < 1 or not isinstance(digest, str):
        raise ValueError("the rows that the models learnt from are not told as they should be.")
    return ValuationModels(tuple(kept), n_rows, digest, Provenance.from_dict(decode(told["provenance"])))


def _model_of(
    folder: Path, told: Mapping[str, Any], own: Mapping[str, Any], name: str
) -> tuple[KeptModel, str]:
    """Read one model, and say in which file it stands; empty if it needs none."""
    plain = dict(own["scorer"])
    if "schema" in plain:
        plain["schema"] = _entry(told["schemas"], plain["schema"])
    ending = ENDINGS.get(plain["kind"])
    file = f"{name}.{ending}" if ending else ""
    content = SAVED.read_file(folder / file, told["files"].get(file)) if file else b""
    try:
        scorer = scorer_from(plain, content)
    except ValueError as error:
        raise DamagedError(f"{str(folder / (file or SAVED.name))!r} cannot be read: {error}") from error
    bag = own["bag"]
    if type(bag) is not int or bag < 0:
        raise ValueError("a bag's number is not told as it should be.")
    return KeptModel(bag, scorer, float.fromhex(own["training_mean"])), file


def _entry(schemas: Any, number: Any) -> Any:
    if type(number) is not int or not 0 <= number < len(schemas):
        raise ValueError("the columns that a model learnt from are not told as they should be.")
    return schemas[number]


def _variable_of(entry: Mapping[str, Any]) -> Variable:
    name, kind, classes = entry["name"], entry["kind"], tuple(map(label_from, entry["classes"]))
    flags = entry["has_missing"], entry["sees_target"]
    fits = len(classes) >= 2 if kind == "classes" else kind == "continuous" and not classes
    if not isinstance(name, str) or not fits or not all(isinstance(own, bool) for own in flags):
        raise ValueError("its variables are not told as they should be.")
    excluded = frozenset(int(j) for j in entry["excluded"])
    return Variable(name, kind, np.zeros(0), classes, excluded, flags[1], flags[0])


def _check_fits(model: KeptModel, variable: Variable) -> None:
    """Refuse a model of another number of classes, or one that sees what it must not."""
    scorer = model.scorer
    if scorer.n_classes != len(variable.classes) or (scorer.sees_target and not variable.sees_target):
        raise ValueError(f"a model is none of the variable {variable.name!r}.")
    if variable.kind == "continuous" and not np.isfinite(model.training_mean):
        raise ValueError(f"a model of {variable.name!r} has no training mean.")


def _check_variables(kept: list[VariableModels]) -> None:
    names = [own.variable.name for own in kept]
    if names[:1] != [TARGET] or len(set(names)) != len(names) or kept[0].variable.sees_target:
        raise ValueError(f"its variables must have different names, {TARGET!r} first.")
    bags = {model.bag for model in kept[0].models}
    if any(model.bag not in bags for own in kept for model in own.models):
        raise ValueError(f"every bag must have a model of {TARGET!r}.")
