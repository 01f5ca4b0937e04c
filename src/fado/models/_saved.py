"""Models saved as directories: a manifest with the digest of every other file, and no pickle."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._records import decode, encode, label_from, label_to
from fado._storage import DamagedError, Manifest, digest_of, replacing_directory, write_file
from fado._version import __version__, library_versions
from fado.engine import scorer_from
from fado.models._chosen import ChosenModel
from fado.models._drift import ColumnSummary
from fado.models._facts import Facts

SAVED = Manifest(name="model.json", kind="fado model", layout=1, what="model")
WEIGHTS = "weights.parquet"
CARD, PAGE = "card.md", "card.html"
LANDSCAPE = "landscape.html"  # the page that a search may add to a model
# The file of a scorer, by its kind; a constant scorer has none.
CONTENT = {
    "lightgbm": "model.txt",
    "sklearn": "model.skops",
    "combined": "models.bin",
    "student": "student.bin",
}
NAMES = frozenset({WEIGHTS, CARD, PAGE, LANDSCAPE, *CONTENT.values()})


def write_model(
    model: ChosenModel, directory: str | os.PathLike[str], *, landscape: Callable[[Path], None] | None = None
) -> None:
    """Save a model in a directory, completely or not at all.

    Parameters
    ----------
    model : ChosenModel
        The model.
    directory : path-like
        The directory, which `check_directory` accepts.
    landscape : callable, optional
        Writes the page of all models that this one was selected from, such as `Frontier.report`.
    """
    final = check_directory(Path(directory))
    plain, content = model.scorer.parts()
    with replacing_directory(final, "The model") as temporary:
        files = {CARD: model.card().encode()}
        if model.scorer.kind in CONTENT:
            files[CONTENT[model.scorer.kind]] = content
        if model.sample_weight_ is not None:
            files[WEIGHTS] = _weights_as_file(model.sample_weight_)
        for name, content in files.items():
            write_file(temporary / name, content, "The model")
        model.card_page(temporary / PAGE)
        files[PAGE] = (temporary / PAGE).read_bytes()
        if landscape is not None:
            landscape(temporary / LANDSCAPE)
        manifest = {
            "fado": __version__,
            "versions": library_versions(),
            "classes": [label_to(label) for label in model.labels],
            "threshold": model.threshold_.hex(),
            "metrics": encode(model.metrics_),
            "facts": model.facts_.to_plain(),
            "scorer": plain,
            "columns": encode(model.columns_),
            "files": {name: digest_of(content) for name, content in files.items()},
        }
        SAVED.write(temporary, manifest)


def load_model(directory: str | os.PathLike[str]) -> ChosenModel:
    """Load a model that `ChosenModel.save` wrote.

    No code from the directory is run. Estimators other than LightGBM's are read only if they consist of
    classes on an explicit list.

    Parameters
    ----------
    directory : path-like
        The directory that the model was saved in.

    Returns
    -------
    ChosenModel
        Its scores are exactly those of the saved model.

    Raises
    ------
    ValueError
        If the directory holds no saved model, or a file is missing, damaged or of another model. The message
        names the file.

    See Also
    --------
    fado.models.ChosenModel.save : Saves a model.
    """
    folder, manifest = Path(directory), SAVED.open(directory)
    try:
        return _model_of(folder, manifest)
    except DamagedError as error:
        raise ValueError(str(error)) from error.__cause__
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{str(folder / SAVED.name)!r} does not describe a model: {error}") from error


def _model_of(folder: Path, manifest: Mapping[str, Any]) -> ChosenModel:
    """Make the model that a manifest describes."""
    scorer, digests = manifest["scorer"], manifest["files"]
    name = CONTENT.get(scorer["kind"])
    expected = {CARD, PAGE} | ({name} if name else set())
    if not expected <= set(digests) <= expected | {WEIGHTS}:
        raise ValueError("its list of files is not that of a model.")
    files = {file: SAVED.read_file(folder / file, digest) for file, digest in digests.items()}
    try:
        made = scorer_from(scorer, files[name] if name else b"")
    except ValueError as error:
        raise DamagedError(f"{str(folder / (name or SAVED.name))!r} cannot be read: {error}") from error
    classes = tuple(label_from(label) for label in manifest["classes"])
    if len(classes) != 2:
        raise ValueError("it must have two labels.")
    return ChosenModel(
        made,
        classes=classes,
        threshold=float.fromhex(manifest["threshold"]),
        metrics=decode(manifest["metrics"]),
        facts=Facts.from_plain(manifest["facts"]),
        sample_weight=_weights_of(folder / WEIGHTS, files[WEIGHTS]) if WEIGHTS in files else None,
        columns=[ColumnSummary.from_plain(column) for column in manifest.get("columns", ())],
    )


def check_directory(directory: Path) -> Path:
    """Check that a model can be saved in a directory, and return its resolved path.

    Parameters
    ----------
    directory : Path
        It must be new, empty, or hold only a saved model; its parent must exist.

    Raises
    ------
    FileNotFoundError
        If the parent does not exist.
    NotADirectoryError
        If it is a file.
    FileExistsError
        If it holds anything other than a saved model.
    """
    return SAVED.check_directory(directory, NAMES.__contains__)


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
        raise DamagedError(f"{str(path)!r} holds no weights.") from error
