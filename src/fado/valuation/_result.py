"""The table of values that a valuator leaves behind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from fado.valuation._alignment import TARGET_PATTERN
from fado.valuation._entropy import normalised_entropy

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Valuation", "library_versions"]

FloatArray = npt.NDArray[np.float64]


class Valuation:
    """One value per row and variable, with what is known of its precision.

    Valuators make it; `from_probabilities` makes one from a model's own scores, `load` reads a saved one.

    Parameters
    ----------
    values, standard_error, counts, agreement : mapping of str to ndarray
        One array per variable: ``"y"`` first, then the protected attributes.
    metadata : mapping, optional
        How the values came about: plain data that JSON can hold.

    Examples
    --------
    >>> from fado import Valuation
    >>> valuation = Valuation.from_probabilities([0.5, 0.9], {"sex": [0.0, 0.5]})
    >>> valuation.values.round(3)
           y  sex
    0  1.000  0.0
    1  0.469  1.0
    >>> valuation["sex"]
    array([0., 1.])
    """

    def __init__(
        self,
        values: Mapping[str, FloatArray],
        standard_error: Mapping[str, FloatArray],
        counts: Mapping[str, npt.NDArray[np.integer]],
        agreement: Mapping[str, FloatArray],
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._arrays: dict[str, dict[str, npt.NDArray[Any]]] = {
            "values": dict(values),
            "standard_error": dict(standard_error),
            "counts": dict(counts),
            "agreement": dict(agreement),
        }
        self.metadata: dict[str, Any] = dict(metadata or {})

    @property
    def variables(self) -> list[str]:
        """The variables' names: ``"y"``, then the protected attributes."""
        return list(self._arrays["values"])

    @property
    def protected(self) -> list[str]:
        """The protected attributes' names."""
        return self.variables[1:]

    @property
    def values(self) -> pd.DataFrame:
        """How unsure the models are of each variable, per row, in [0, 1]."""
        return self._frame("values")

    @property
    def standard_error(self) -> pd.DataFrame:
        """Standard error of each value over the fits that scored the row; NaN below two fits."""
        return self._frame("standard_error")

    @property
    def counts(self) -> pd.DataFrame:
        """How many fits scored each row."""
        return self._frame("counts")

    @property
    def agreement(self) -> pd.DataFrame:
        """Mean probability that the fits gave to the row's own label; for numbers 1 - |error| / max."""
        return self._frame("agreement")

    def _frame(self, part: str) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self._arrays[part])

    @overload
    def __getitem__(self, key: str) -> FloatArray: ...

    @overload
    def __getitem__(self, key: Any) -> Valuation: ...

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            # scikit-learn cuts a table to the rows of a fold by `table[rows, ...]`
            return self.take(key[0] if isinstance(key, tuple) and key[1:] == (...,) else key)
        try:
            return self._arrays["values"][key]
        except KeyError:
            raise KeyError(f"The valuation has no variable {key!r}; it has {self.variables}.") from None

    def take(self, rows: Any) -> Valuation:
        """Give the valuation of some rows; ``valuation[rows]`` is the same.

        scikit-learn's cross-validation does so with a valuation that is passed to `fit`.

        Parameters
        ----------
        rows : array of int or bool, or slice
            The rows' positions, in the order that is wanted.
        """
        rows = np.atleast_1d(np.arange(len(self))[rows])
        parts = {
            part: {name: array[rows] for name, array in arrays.items()}
            for part, arrays in self._arrays.items()
        }
        about = {name: value for name, value in self.metadata.items() if name != TARGET_PATTERN}
        return Valuation(**parts, metadata=about)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and variables there are."""
        return len(self), len(self.variables)

    def __len__(self) -> int:
        return len(self._arrays["values"]["y"])

    def __repr__(self) -> str:
        how = self.metadata.get("algorithm", "given")
        return f"Valuation of {len(self):,} rows ({how})\n{self.summary().to_string()}"

    def _repr_html_(self) -> str:
        how = self.metadata.get("algorithm", "given")
        table = self.summary().to_html(border=0, escape=True, index_names=False)
        return f"<div><p><b>Valuation</b> of {len(self):,} rows ({how})</p>{table}</div>"

    def summary(self) -> pd.DataFrame:
        """Summarise every variable's values: kind, quantiles, mean standard error, mean agreement."""
        import pandas as pd

        kinds = {name: about.get("kind", "") for name, about in self.metadata.get("variables", {}).items()}
        rows = {}
        for name in self.variables:
            value = self[name]
            quantiles = np.nanquantile(value, [0.05, 0.25, 0.5, 0.75, 0.95]) if len(value) else [np.nan] * 5
            rows[name] = {
                "kind": kinds.get(name, ""),
                "mean": _mean(value),
                **dict(zip(["5 %", "25 %", "50 %", "75 %", "95 %"], quantiles, strict=True)),
                "std. error": _mean(self._arrays["standard_error"][name]),
                "agreement": _mean(self._arrays["agreement"][name]),
            }
        return pd.DataFrame.from_dict(rows, orient="index").round(3)

    @classmethod
    def from_probabilities(
        cls, p_y: npt.ArrayLike, p_z: Mapping[str, npt.ArrayLike] | None = None
    ) -> Valuation:
        """Value rows by the scores of models that the user has already.

        Parameters
        ----------
        p_y : array-like of shape (n,) or (n, K)
            Predicted probability of the target's positive class, or of all K classes. Scores for rows that
            the model was not trained on make the better values.
        p_z : mapping of str to array-like, optional
            The same for every protected attribute.

        Returns
        -------
        Valuation
            Without standard errors and agreement, which one set of scores cannot tell.
        """
        given = {"y": p_y, **(p_z or {})}
        if p_z and "y" in p_z:
            raise ValueError("A protected attribute cannot be called 'y', the target's name: rename it.")
        values = {name: normalised_entropy(_probabilities(name, p)) for name, p in given.items()}
        n_rows = len(values["y"])
        for name, value in values.items():
            if len(value) != n_rows:
                raise ValueError(
                    f"`p_y` has {n_rows} rows and the probabilities of {name!r} have {len(value)}."
                )
        unknown = {name: np.full(n_rows, np.nan) for name in values}
        counts = {name: np.ones(n_rows, dtype=np.int32) for name in values}
        about = {name: {"kind": "classes"} for name in values}
        metadata = {"algorithm": "probabilities", "variables": about, "versions": library_versions()}
        return cls(values, unknown, counts, unknown, metadata)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the valuation to a file that appears whole or not at all.

        Parameters
        ----------
        path : path-like
            Ends in ``.parquet``, which keeps all that is known of how the values came about, or in ``.csv``,
            which keeps the numbers alone.
        """
        from fado.valuation._saved import write

        write(path, self.variables, self._arrays, self.metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Valuation:
        """Read a valuation that `save` wrote.

        Parameters
        ----------
        path : path-like
            The Parquet or CSV file.
        """
        from fado.valuation._saved import read

        return cls(**read(path))


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _probabilities(name: str, given: npt.ArrayLike) -> FloatArray:
    p = np.asarray(given, dtype=np.float64)
    if p.ndim not in (1, 2) or (p.ndim == 2 and p.shape[1] < 2):
        raise ValueError(f"The probabilities of {name!r} must have shape (n,) or (n, K >= 2), got {p.shape}.")
    if not np.isfinite(p).all() or (p < 0).any() or (p > 1).any():
        raise ValueError(f"The probabilities of {name!r} must lie in [0, 1], without NaN.")
    if p.ndim == 2 and len(p) and not np.allclose(p.sum(axis=1), 1.0, atol=1e-6):
        raise ValueError(f"The probabilities of {name!r} must sum to 1 in every row.")
    return p


def library_versions() -> dict[str, str]:
    """Name the versions of the libraries that decide a value."""
    from fado._version import __version__

    return {"fado": __version__} | {name: _installed(name) for name in ("numpy", "lightgbm", "scikit-learn")}


_installed = cache(version)  # it searches the file system
