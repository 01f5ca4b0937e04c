"""Fitted estimators as bytes that run no code when they are read: skops, and classes of known libraries."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fado._messages import list_names

__all__ = ["read_estimator", "write_estimator"]

LIBRARIES = frozenset({"sklearn", "numpy", "scipy", "lightgbm", "xgboost", "catboost", "fado"})
HARMLESS = frozenset({"collections.OrderedDict", "collections.defaultdict"})  # which hold what they are given
_SCHEMA = "schema.json"  # in a file of skops


def write_estimator(estimator: Any) -> tuple[bytes, list[str]]:
    """Give an estimator as bytes, the same for the same estimator, and the types to trust when it is read."""
    skops = _skops()
    name = type(estimator).__name__
    try:
        content = _numbered(skops.dumps(estimator))
        types = skops.get_untrusted_types(data=content)
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{name} cannot be saved, as skops does not know all of it: {reason}") from error
    strange = [own for own in types if not _is_known(own)]
    if strange:
        raise ValueError(
            f"{name} cannot be saved: it holds {list_names(strange)}, and only classes of "
            f"{', '.join(sorted(LIBRARIES))} are read again."
        )
    return content, types


def read_estimator(content: bytes, types: Sequence[Any]) -> Any:
    """Read what `write_estimator` gave.

    Parameters
    ----------
    content : bytes
        It may come from anybody: no type is made that is not known to be harmless, or is both in `types`
        and a class of a known library.
    types : sequence of str
        Those that were there when the estimator was written.
    """
    skops = _skops()
    try:
        found = skops.get_untrusted_types(data=content)
    except Exception as error:
        raise ValueError("The content is of no estimator that skops wrote, or it is damaged.") from error
    refused = [own for own in found if own not in types or not _is_known(own)]
    if refused:
        raise ValueError(f"The content holds {list_names(refused)}, which is not to be trusted.")
    try:
        return skops.loads(content, trusted=found)
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"The estimator cannot be read by the libraries that are here: {reason}") from error


def _skops() -> Any:
    try:
        import skops.io
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Estimators other than LightGBM's are saved and read by skops: install it with "
            "`pip install 'fado-ml[save]'`.",
            name="skops",
        ) from error
    return skops.io


def _is_known(name: str) -> bool:
    """Tell whether a name is that of a class, not a function, of a known library."""
    module, _, own = name.rpartition(".")
    if name in HARMLESS:
        return True
    if name.split(".")[0] not in LIBRARIES or "__" in name:
        return False
    try:
        return isinstance(getattr(import_module(module), own, None), type)
    except ImportError:
        return False


def _numbered(content: bytes) -> bytes:
    """Give the same bytes each time: skops calls objects by their place in memory, and notes times."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(_SCHEMA))
        files: dict[str, str] = {}
        _number(schema, {}, files)
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as copy:
            for name, new in files.items():
                copy.writestr(zipfile.ZipInfo(new), archive.read(name))
            copy.writestr(zipfile.ZipInfo(_SCHEMA), json.dumps(schema))
    return written.getvalue()


def _number(node: Any, numbers: dict[int, int], files: dict[str, str]) -> None:
    """Replace, in place, the identities of objects and the names of their files."""
    if isinstance(node, dict):
        if isinstance(node.get("__loader__"), str):  # and no dict of the estimator's own
            if "__id__" in node:
                node["__id__"] = numbers.setdefault(node["__id__"], len(numbers))
            if "file" in node:
                ending = node["file"].rpartition(".")[2]
                node["file"] = files.setdefault(node["file"], f"{len(files)}.{ending}")
        node = list(node.values())
    if isinstance(node, list):
        for own in node:
            _number(own, numbers, files)
