"""The table of values that a valuator leaves behind."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from fado._versions import library_versions
from fado.tabular import Column, attribute_columns, one_column, read_rows
from fado.valuation._fields import FIELDS
from fado.valuation._probabilities import normalised_entropy, read_probabilities
from fado.valuation._provenance import Provenance, VariableNote
from fado.valuation._scale import EFFECT, ENTROPY, Scale
from fado.valuation._stored import StoredColumns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Valuation"]

FloatArray = npt.NDArray[np.float64]

_LONGEST = 60  # characters of a name that are shown


class Valuation:
    """One value per row and variable, with what is known of its precision.

    Valuators make it; `from_probabilities` makes one from a model's own scores, `from_values` from values of
    any other origin, `load` reads a saved one. ``valuation["y"]`` gives the values of one variable as an
    array, ``valuation[rows]`` the valuation of some rows.

    Parameters
    ----------
    values : mapping of str to ndarray
        One array per variable: ``"y"`` first, then the protected attributes.
    standard_error, counts, agreement, epistemic : mapping of str to ndarray, optional
        Further numbers per row in the same form, as far as they are known; see the properties of these names.
    scales : mapping of str to Scale, optional
        What each variable's values mean, and between which bounds they lie. Variables without a scale are
        taken for entropies, in [0, 1].
    provenance : Provenance, optional
        How the values came about.
    index : pandas.Index, optional
        The rows' labels, if the table had any.
    probabilities : mapping of str to ndarray, optional
        What models predict, in the form of the attribute of this name.

    Attributes
    ----------
    scales : dict of str to Scale
        The scale of each variable's values.
    probabilities : dict of str to ndarray, or None
        What models that have not seen the rows predict, if it was kept. Under ``"y"``, the probability of
        each of the K classes of the target, shape (n_rows, K). Under each protected attribute of classes,
        the probability of each of its G groups if the target were of class k, for every k, shape
        (n_rows, K, G). NaN in rows that no model has scored. Continuous attributes have no entry.
    provenance : Provenance
        How the values came about.

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
        standard_error: Mapping[str, FloatArray] | None = None,
        counts: Mapping[str, npt.NDArray[np.integer]] | None = None,
        agreement: Mapping[str, FloatArray] | None = None,
        epistemic: Mapping[str, FloatArray] | None = None,
        *,
        scales: Mapping[str, Scale] | None = None,
        provenance: Provenance | None = None,
        index: Any = None,
        probabilities: Mapping[str, FloatArray] | None = None,
    ) -> None:
        fields = zip(FIELDS, (values, standard_error, counts, agreement, epistemic), strict=True)
        self._arrays: dict[str, Mapping[str, npt.NDArray[Any]]] = {
            field: arrays if isinstance(arrays, StoredColumns) else dict(arrays)
            for field, arrays in fields
            if arrays is not None
        }
        self.scales: dict[str, Scale] = {name: (scales or {}).get(name, ENTROPY) for name in values}
        self.provenance = Provenance() if provenance is None else provenance
        self.probabilities = None if probabilities is None else dict(probabilities)
        self._index = index

    @property
    def metadata(self) -> dict[str, Any]:
        """How the values came about, as plain data that JSON can hold; `provenance` has the same, typed."""
        return self.provenance.to_dict()

    @property
    def fields(self) -> list[str]:
        """The fields that are known: ``"values"``, then those of the others that there are."""
        return list(self._arrays)

    @property
    def variables(self) -> list[str]:
        """The variables' names: ``"y"``, then the protected attributes."""
        return list(self._arrays["values"])

    @property
    def protected(self) -> list[str]:
        """The protected attributes' names."""
        return self.variables[1:]

    @property
    def classes(self) -> dict[str, tuple[Any, ...]]:
        """The labels of each variable of classes, as far as they are known, in the order of `probabilities`.

        Missing entries of a protected attribute are the last of its groups.
        """
        notes = self.provenance.variables
        return {
            name: notes[name].classes or ()
            for name in self.variables
            if name in notes and notes[name].classes
        }

    @property
    def values(self) -> pd.DataFrame:
        """What each row is worth for each variable; `scales` says what the numbers mean."""
        return self._frame("values")

    @property
    def standard_error(self) -> pd.DataFrame:
        """Standard error of each value over the fits that it comes from; NaN below two fits."""
        return self._frame("standard_error")

    @property
    def counts(self) -> pd.DataFrame:
        """How many fits, or contributions of `DataShapley`, each value comes from; 0 if that is not known."""
        return self._frame("counts")

    @property
    def agreement(self) -> pd.DataFrame:
        """Mean probability that the fits gave to the row's own label; NaN if not known.

        If it is low, the label may be wrong. For a continuous variable it is ``1 - error / max(error)``, with
        the mean error of the row's predictions.
        """
        return self._frame("agreement")

    @property
    def epistemic(self) -> pd.DataFrame:
        """The part of the entropy in which models disagree; known for new rows only, else NaN."""
        return self._frame("epistemic")

    def field(self, name: str, variable: str) -> npt.NDArray[Any]:
        """Give one field of one variable as an array; NaN, or 0 counts, if it is not known.

        Parameters
        ----------
        name : {"values", "standard_error", "counts", "agreement", "epistemic"}
            The field.
        variable : str
            ``"y"`` or a protected attribute.
        """
        if name not in FIELDS:
            raise KeyError(f"A valuation has no field {name!r}; its fields are {list(FIELDS)}.")
        if name in self._arrays:
            return self._arrays[name][variable]
        return np.zeros(len(self), dtype=np.int32) if name == "counts" else np.full(len(self), np.nan)

    def _frame(self, field: str) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({name: self.field(field, name) for name in self.variables}, index=self._index)

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

        scikit-learn's cross-validation cuts a valuation that is passed to `fit` to the rows of a fold in this
        way.

        Parameters
        ----------
        rows : array of int or bool, or slice
            The rows' positions, in the order that is wanted, or a mask over all rows.
        """
        rows = _places(rows, len(self))
        fields: dict[str, Any] = {
            field: arrays.take(rows)
            if isinstance(arrays, StoredColumns)
            else {name: array[rows] for name, array in arrays.items()}
            for field, arrays in self._arrays.items()
        }
        return Valuation(
            **fields,
            scales=self.scales,
            provenance=replace(self.provenance, target_pattern=None),
            index=None if self._index is None else self._index[rows],
            probabilities=None
            if self.probabilities is None
            else {name: own[rows] for name, own in self.probabilities.items()},
        )

    def with_rows(self, index: Any, target_pattern: str | None) -> Valuation:
        """Give a copy with other row labels and another digest of the target.

        Parameters
        ----------
        index : pandas.Index or None
            The rows' labels.
        target_pattern : str or None
            The digest, as in `Provenance`.
        """
        changed = self.with_provenance(target_pattern=target_pattern)
        changed._index = index
        return changed

    def with_provenance(self, **changes: Any) -> Valuation:
        """Give a copy with some entries of its `Provenance`, given by their names, changed."""
        return Valuation(
            **self._arrays,
            scales=self.scales,
            provenance=replace(self.provenance, **changes),
            index=self._index,
            probabilities=self.probabilities,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and variables there are."""
        return len(self), len(self.variables)

    def __len__(self) -> int:
        values = self._arrays["values"]
        return values.n_rows if isinstance(values, StoredColumns) else len(values["y"])

    def __repr__(self) -> str:
        how = _shown(self.provenance.algorithm)
        return f"Valuation of {len(self):,} rows ({how})\n{self._shown_summary().to_string()}"

    def _repr_html_(self) -> str:
        how = html.escape(_shown(self.provenance.algorithm))
        table = self._shown_summary().to_html(border=0, escape=True, index_names=False)
        return f"<div><p><b>Valuation</b> of {len(self):,} rows ({how})</p>{table}</div>"

    def _shown_summary(self) -> pd.DataFrame:
        summary = self.summary()
        summary["kind"] = [_shown(kind) for kind in summary["kind"]]
        return summary.set_axis([_shown(name) for name in summary.index])

    def summary(self) -> pd.DataFrame:
        """Summarise every variable's values: kind, quantiles, mean standard error, mean agreement.

        The summary of new rows also has the mean epistemic part of the entropies.

        Values in [0, 1] are rounded to three decimals, others, such as effects, to three significant digits.

        Returns
        -------
        DataFrame
            One row per variable.
        """
        import pandas as pd

        rows = {}
        for name in self.variables:
            value = self[name]
            quantiles = np.nanquantile(value, [0.05, 0.25, 0.5, 0.75, 0.95]) if len(value) else [np.nan] * 5
            numbers = {
                "mean": _mean(value),
                **dict(zip(["5 %", "25 %", "50 %", "75 %", "95 %"], quantiles, strict=True)),
                "std. error": _mean(self.field("standard_error", name)),
            }
            if not self.scales[name].is_unit:
                numbers = {what: float(f"{number:.3g}") for what, number in numbers.items()}
            else:
                numbers = {what: round(float(number), 3) for what, number in numbers.items()}
            agreement = round(_mean(self.field("agreement", name)), 3)
            rows[name] = {"kind": self.provenance.kind_of(name), **numbers, "agreement": agreement}
            if "epistemic" in self._arrays:
                rows[name]["epistemic"] = round(_mean(self.field("epistemic", name)), 3)
        return pd.DataFrame.from_dict(rows, orient="index")

    @classmethod
    def from_probabilities(
        cls, p_y: npt.ArrayLike, p_z: Mapping[str, npt.ArrayLike] | None = None
    ) -> Valuation:
        """Value rows by the predicted probabilities of models that you have already.

        Parameters
        ----------
        p_y : array-like of shape (n,) or (n, K)
            Predicted probability of the target's positive class, or of all K classes. Predictions for rows
            that the model was not trained on give better values.
        p_z : mapping of str to array-like, optional
            The same for every protected attribute; or, of shape (n, K, G), the probabilities of its G groups
            if the target were of each of its K classes. These are averaged by `p_y` for the values.

        Returns
        -------
        Valuation
            Entropies in [0, 1], and the `probabilities`. One set of predictions gives no standard errors and
            no agreement.

        Raises
        ------
        ValueError
            If numbers lie outside [0, 1] or are missing, probabilities of K classes do not sum to 1, or the
            arrays differ in length.
        """
        if p_z and "y" in p_z:
            raise ValueError("A protected attribute cannot be called 'y', the target's name: rename it.")
        likely = read_probabilities("y", p_y)
        n_rows, n_labels = likely.shape
        values, probabilities = {"y": normalised_entropy(likely)}, {"y": likely}
        for name, given in (p_z or {}).items():
            p = read_probabilities(name, given, n_labels)
            if len(p) != n_rows:
                raise ValueError(f"`p_y` has {n_rows} rows and the probabilities of {name!r} have {len(p)}.")
            values[name] = normalised_entropy(p if p.ndim == 2 else np.einsum("nk,nkg->ng", likely, p))
            at_every_label = p if p.ndim == 3 else p[:, np.newaxis]
            probabilities[name] = np.broadcast_to(at_every_label, (n_rows, n_labels, p.shape[-1]))
        return cls(
            values,
            counts={name: np.ones(n_rows, dtype=np.int32) for name in values},
            provenance=Provenance(
                "probabilities",
                variables={name: VariableNote("classes") for name in values},
                versions=library_versions(),
            ),
            probabilities=probabilities,
        )

    @classmethod
    def from_values(cls, values: Any, *, scales: Mapping[str, Scale] | None = None) -> Valuation:
        """Make a valuation from values that were computed elsewhere.

        Values may be negative. A higher value must mean that the row is worth more.

        Parameters
        ----------
        values : mapping of str to array-like, or table with such columns
            The values for ``"y"``, which must be there, and for every protected attribute by its name; NaN
            where a row has none. The index of a pandas table or Series is kept.
        scales : mapping of str to Scale, optional
            What they mean, and between which bounds they lie. A column without one is taken for effects:
            signed, without bounds, 0 is neutral. A utility divides such values by their standard deviation.

        Returns
        -------
        Valuation
            Without standard errors, counts and agreement.

        Examples
        --------
        >>> from fado import Valuation
        >>> valuation = Valuation.from_values({"y": [0.2, -0.1], "age": [0.0, 0.3]})
        >>> valuation.scales["age"].is_signed
        True
        """
        index = getattr(values, "index", None) if hasattr(values, "iloc") else None
        if not isinstance(values, Mapping):
            values = {column.name: column for column in attribute_columns(values)}
        if "y" not in values:
            raise ValueError(f"`values` must hold the values for 'y', the target, got {list(values)}.")
        if index is None and hasattr(values["y"], "iloc"):
            index = values["y"].index
        arrays = {str(name): _as_values(str(name), values[name]) for name in values}
        told = {str(name): scale for name, scale in (scales or {}).items()}
        unknown = [name for name in told if name not in arrays]
        if unknown:
            raise ValueError(f"`scales` names {unknown[0]!r}, which `values` does not hold.")
        ordered = {"y": arrays.pop("y"), **arrays}
        for name, array in ordered.items():
            if len(array) != len(ordered["y"]):
                raise ValueError(
                    f"`values` of 'y' have {len(ordered['y'])} rows and those of {name!r} have {len(array)}."
                )
        return cls(
            ordered,
            scales={name: told.get(name, EFFECT) for name in ordered},
            index=index,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the valuation to a file that appears whole or not at all.

        Row labels are not saved.

        Parameters
        ----------
        path : path-like
            A name that ends in ``.parquet``, which also keeps scales, provenance and probabilities, or in
            ``.csv``, which keeps the values and what is known of them only; a warning says so if there are
            probabilities.

        Raises
        ------
        ValueError
            If the name has another ending, a value is not on its scale, another field holds a number that it
            must not hold, or a CSV file would be read as other values.
        """
        from fado.valuation._saved import write

        write(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Valuation:
        """Read a valuation that `save` or `fado.value_files` wrote.

        The content is checked: values must lie on the scale that the file declares, counts must be whole
        numbers, and the description must be complete. A CSV file has no description: its values are taken
        for effects if there are no other fields, and for entropies if there are.

        Parameters
        ----------
        path : path-like
            The Parquet or CSV file, or the directory of values in parts. The columns of a directory are read
            when they are first used.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is not a valuation, is damaged, or holds a number that a valuation must not hold; the
            message names the file and the place. Also if the values in a directory are not finished.
        """
        from fado.valuation._saved import read

        return read(path)


def _shown(text: str) -> str:
    """Give text that somebody else may have written as one short line of printable characters."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:_LONGEST])
    return line if len(text) <= _LONGEST else line + "..."


def _places(rows: Any, n_rows: int) -> npt.NDArray[np.int64]:
    """Give rows by their positions, negative ones counted from the end as Python does."""
    if isinstance(rows, slice):
        return np.arange(n_rows)[rows]
    given = np.atleast_1d(np.asarray(rows))
    if given.dtype.kind == "i":
        given = np.where(given < 0, given + n_rows, given)
    try:
        return read_rows(given, n_rows, "`rows`")
    except (TypeError, ValueError) as error:
        raise IndexError(str(error)) from None  # as Python's own sequences do


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _as_values(name: str, given: Any) -> FloatArray:
    column = given if isinstance(given, Column) else one_column(given, f"values[{name!r}]")
    if column.levels is not None:
        raise TypeError(
            f"`values` of {name!r} must be numbers, got text or categories: convert them, for example with "
            "`astype(float)`."
        )
    array = column.numbers()
    if np.isinf(array).any():
        raise ValueError(f"`values` of {name!r} must be finite, or NaN where a row has none.")
    return array
