"""Models as directories: a manifest that vouches for every other file, and no pickle among them.

A directory may come from anybody: nothing in it is read before its digest is what the manifest says, no name
from the manifest is ever opened, and what is wrong is said in a sentence that names the file. Digests show
damage and mixed-up files; they do not show who wrote a directory.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._files import replacing
from fado._version import __version__
from fado._versions import library_versions
from fado.engine import scorer_from
from fado.models._chosen import ChosenModel
from fado.models._directory import replacing_directory
from fado.models._facts import Facts
from fado.models._plain import decode, encode, label_from, label_to

__all__ = ["LANDSCAPE", "check_directory", "load_model", "write"]

FORMAT = 1
KIND = "fado model"
MANIFEST = "model.json"
WEIGHTS = "weights.parquet"
CARD, PAGE = "card.md", "card.html"
LANDSCAPE = "landscape.html"  # what a search may put beside a model; it says nothing of it
# The scorer's content, by its kind; one that says the same of every row has none.
CONTENT = {"lightgbm": "model.txt", "sklearn": "model.skops"}
NAMES = frozenset({MANIFEST, WEIGHTS, CARD, PAGE, LANDSCAPE, *CONTENT.values()})


def write(model: ChosenModel, directory: str | os.PathLike[str]) -> None:
    """Write a model into a directory, whole or not at all."""
    final = check_directory(Path(directory))
    plain, content = model.scorer.parts()
    with replacing_directory(final) as temporary:
        files = {CARD: model.card().encode()}
        if model.scorer.kind in CONTENT:
            files[CONTENT[model.scorer.kind]] = content
        if model.sample_weight_ is not None:
            files[WEIGHTS] = _weights_as_file(model.sample_weight_)
        for name, own in files.items():
            _write(temporary / name, own)
        model.card_page(temporary / PAGE)
        files[PAGE] = (temporary / PAGE).read_bytes()
        told = {
            "kind": KIND,
            "format": FORMAT,
            "fado": __version__,
            "versions": library_versions(),
            "classes": [label_to(label) for label in model.labels],
            "threshold": model.threshold_.hex(),
            "metrics": encode(model.metrics_),
            "facts": model.facts_.to_plain(),
            "scorer": plain,
            "files": {name: _digest(own) for name, own in files.items()},
        }
        _write(temporary / MANIFEST, _manifest(told))


def load_model(directory: str | os.PathLike[str]) -> ChosenModel:
    """Read a model that `ChosenModel.save` wrote.

    No code from the directory is run. Estimators other than LightGBM's are made of classes of scikit-learn
    and a few other libraries alone.

    Parameters
    ----------
    directory : path-like
        Where it stands.

    Returns
    -------
    ChosenModel
        It scores rows as the one that was saved, bit for bit.

    Raises
    ------
    ValueError
        If it is no saved model, or a file is missing, damaged or another's; the sentence names the file.
    """
    folder = Path(directory)
    if not folder.is_dir():
        what = "is no directory" if folder.exists() else "does not exist"
        raise ValueError(f"There is no saved model in {str(folder)!r}: it {what}.")
    told = _read_manifest(folder / MANIFEST)
    try:
        return _model_of(folder, told)
    except _DamagedError as error:
        raise ValueError(str(error)) from error.__cause__
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{str(folder / MANIFEST)!r} does not tell of a model: {error}") from error


class _DamagedError(ValueError):
    """Something is wrong with a file other than the manifest."""


def _model_of(folder: Path, told: Mapping[str, Any]) -> ChosenModel:
    """Make the model that a manifest tells of."""
    scorer, digests = told["scorer"], told["files"]
    name = CONTENT.get(scorer["kind"])
    expected = {CARD, PAGE} | ({name} if name else set())
    if not expected <= set(digests) <= expected | {WEIGHTS}:
        raise ValueError("its list of files is not that of a model.")
    files = {own: _read(folder / own, digest) for own, digest in digests.items()}
    try:
        made = scorer_from(scorer, files[name] if name else b"")
    except ValueError as error:
        raise _DamagedError(f"{str(folder / (name or MANIFEST))!r} cannot be read: {error}") from error
    classes = tuple(label_from(label) for label in told["classes"])
    if len(classes) != 2:
        raise ValueError("it must have two labels.")
    return ChosenModel(
        made,
        classes=classes,
        threshold=float.fromhex(told["threshold"]),
        metrics=decode(told["metrics"]),
        facts=Facts.from_plain(told["facts"]),
        sample_weight=_weights_of(folder / WEIGHTS, files[WEIGHTS]) if WEIGHTS in files else None,
    )


def check_directory(directory: Path) -> Path:
    """Give the directory to write to, refusing one that holds anything but a saved model."""
    final = directory.resolve()
    if not final.parent.is_dir():
        raise FileNotFoundError(f"The directory {str(final.parent)!r} does not exist: create it first.")
    if not final.exists():
        return final
    if not final.is_dir():
        raise NotADirectoryError(f"{str(directory)!r} is a file: name a directory.")
    there = sorted(path.name for path in final.iterdir())
    strange = [name for name in there if name not in NAMES]
    if there and (strange or MANIFEST not in there):
        found = repr((strange or there)[0])
        raise FileExistsError(
            f"{str(directory)!r} holds {found}, which is no part of a saved model: name another directory."
        )
    if there:
        try:
            _read_manifest(final / MANIFEST)
        except ValueError as error:
            raise FileExistsError(f"The directory {str(directory)!r} is not replaced: {error}") from error
    return final


def _manifest(told: Mapping[str, Any]) -> bytes:
    """Give the manifest's only form, its own digest last."""
    digest = _digest(_as_json(told))
    return _as_json({**told, "digest": digest}) + b"\n"


def _as_json(told: Any) -> bytes:
    return json.dumps(told, indent=1, allow_nan=False).encode()


def _read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest, if it is in every byte what was written."""
    if not path.is_file():
        raise ValueError(f"There is no saved model in {str(path.parent)!r}: it has no {MANIFEST}.")
    content = path.read_bytes()
    try:
        told = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} cannot be read: it is no JSON, or it is damaged.") from error
    if not isinstance(told, dict) or told.get("kind") != KIND:
        raise ValueError(f"{str(path)!r} is not of a model that FADO saved.")
    if told.get("format") != FORMAT:
        raise ValueError(
            f"{str(path)!r} is in format {told.get('format')!r}, and this release reads {FORMAT}: it may be "
            "of a later one."
        )
    own = {name: value for name, value in told.items() if name != "digest"}
    try:
        whole = _manifest(own) == content
    except ValueError:  # numbers that are none
        whole = False
    if not whole:
        raise ValueError(f"{str(path)!r} was changed after it was written: its digest does not fit.")
    return told


def _read(path: Path, digest: Any) -> bytes:
    """Read a file, if it is the one that the manifest vouches for."""
    if not path.is_file():
        raise _DamagedError(f"{str(path)!r} is missing: the model is not whole.")
    content = path.read_bytes()
    if _digest(content) != digest:
        raise _DamagedError(f"{str(path)!r} is damaged or of another model: its digest does not fit.")
    return content


def _write(path: Path, content: bytes) -> None:
    with replacing(path, tidy=False) as temporary:
        temporary.write_bytes(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _weights_as_file(weights: npt.NDArray[np.float64]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"weight": weights}), buffer, compression="zstd")
    return buffer.getvalue()


def _weights_of(path: Path, content: bytes) -> npt.NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content))
        return table.column("weight").cast(pa.float64()).to_numpy()
    except (pa.ArrowException, KeyError, OSError) as error:
        raise _DamagedError(f"{str(path)!r} holds no weights.") from error
