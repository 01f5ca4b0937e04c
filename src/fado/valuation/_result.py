"""The table of values that a valuator returns."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from fado._messages import insert_parameters
from fado._typing import Floats
from fado._version import library_versions
from fado.tabular import Column, attribute_columns, one_column, read_rows
from fado.valuation._probabilities import entropies_of
from fado.valuation._provenance import EFFECT, ENTROPY, FIELDS, Provenance, Scale, VariableNote

if TYPE_CHECKING:
    import pandas as pd


_LONGEST = 60  # characters of a name that are shown


@insert_parameters()
class Valuation:
    """One value per row and variable, with its precision as far as it is known.

    Valuators return it. `from_probabilities` makes one from a model's own scores, `from_values` from values
    computed elsewhere, and `load` reads a saved one. ``valuation["y"]`` is an array with the values of one
    variable, ``valuation[rows]`` the valuation of some rows.

    Parameters
    ----------
    values : mapping of str to ndarray
        One array per variable: ``"y"`` first, then the protected attributes.
    standard_error, counts, label_probability, epistemic : mapping of str to ndarray, optional
        Further numbers per row in the same form, as far as they are known; see the properties of these names.
    scales : mapping of str to Scale, optional
        What each variable's values mean, and their bounds. Variables without a scale are entropies, in [0,
        1].
    provenance : Provenance, optional
        How the values were computed.
    index : pandas.Index, optional
        The labels of the rows, if the table had any.
    probabilities : mapping of str to ndarray, optional
        What models predict, in the form of the attribute of this name.

    Attributes
    ----------
    scales : dict of str to Scale
        The scale of each variable's values.
    probabilities : dict of str to ndarray, or None
        What models that have not seen the rows predict, if it was kept. Under ``"y"``, the probability of
        each of the K classes of the target, shape (n_rows, K). Under each protected attribute of classes,
        the probability of each of its G groups given each class of the target, shape (n_rows, K, G). NaN in
        rows that no model has scored. Continuous attributes have no entry.
    provenance : Provenance
        How the values were computed.

    See Also
    --------
    fado.OutOfBagEntropy : Values rows by the uncertainty of models.
    fado.TreeInfluence : Values rows by their effects on performance and fairness.

    {References}

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
        values: Mapping[str, Floats],
        standard_error: Mapping[str, Floats] | None = None,
        counts: Mapping[str, npt.NDArray[np.integer]] | None = None,
        label_probability: Mapping[str, Floats] | None = None,
        epistemic: Mapping[str, Floats] | None = None,
        *,
        scales: Mapping[str, Scale] | None = None,
        provenance: Provenance | None = None,
        index: Any = None,
        probabilities: Mapping[str, Floats] | None = None,
    ) -> None:
        fields = zip(FIELDS, (values, standard_error, counts, label_probability, epistemic), strict=True)
        self._arrays: dict[str, Any] = {  # columns of a directory are read when they are used
            field: arrays if hasattr(arrays, "n_rows") else dict(arrays)
            for field, arrays in fields
            if arrays is not None
        }
        self.scales: dict[str, Scale] = {name: (scales or {}).get(name, ENTROPY) for name in values}
        self.provenance = Provenance() if provenance is None else provenance
        self.probabilities = None if probabilities is None else dict(probabilities)
        self._index = index

    @property
    def metadata(self) -> dict[str, Any]:
        """How the values were computed, as plain data for JSON; `provenance` has the same, typed."""
        return self.provenance.to_dict()

    @property
    def fields(self) -> list[str]:
        """The known fields: ``"values"``, then any of the other fields."""
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
        notes = self.provenance.variables.items()
        return {name: note.classes for name, note in notes if name in self.variables and note.classes}

    @property
    def values(self) -> pd.DataFrame:
        """The value of each row for each variable; `scales` describes what the numbers mean."""
        return self._frame("values")

    @property
    def standard_error(self) -> pd.DataFrame:
        """Standard error of each value over its fits; NaN for fewer than two fits."""
        return self._frame("standard_error")

    @property
    def counts(self) -> pd.DataFrame:
        """How many fits, or contributions of `DataShapley`, each value comes from; 0 if unknown."""
        return self._frame("counts")

    @property
    def label_probability(self) -> pd.DataFrame:
        """Mean probability that the fits gave to the row's own label; NaN if unknown.

        If it is low, the label may be wrong. For a continuous variable it is ``1 - error / max(error)``, with
        the mean error of the row's predictions.
        """
        return self._frame("label_probability")

    @property
    def agreement(self) -> pd.DataFrame:
        """Another name of `label_probability`."""
        return self.label_probability

    @property
    def epistemic(self) -> pd.DataFrame:
        """The part of the entropy on which models disagree; known for new rows only, else NaN."""
        return self._frame("epistemic")

    def field(self, name: str, variable: str) -> npt.NDArray[Any]:
        """Return one field of one variable as an array; NaN, or 0 counts, if it is not known.

        Parameters
        ----------
        name : {"values", "standard_error", "counts", "label_probability", "epistemic"}
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
    def __getitem__(self, key: str) -> Floats: ...

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
        """Return the valuation of some rows; ``valuation[rows]`` is the same.

        scikit-learn's cross-validation uses it to cut a valuation that is passed to `fit` to the rows of a
        fold.

        Parameters
        ----------
        rows : array of int or bool, or slice
            The positions of the rows, in the wanted order, or a mask over all rows.
        """
        if isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        rows = np.atleast_1d(np.asarray(rows))
        if rows.dtype.kind == "i":
            rows = np.where(rows < 0, rows + len(self), rows)
        try:
            rows = read_rows(rows, len(self), "`rows`")
        except (TypeError, ValueError) as error:
            raise IndexError(str(error)) from None  # as Python's own sequences do
        taken = self.with_rows(None if self._index is None else self._index[rows], target_pattern=None)
        taken._arrays = {
            field: {name: array[rows] for name, array in arrays.items()}
            if isinstance(arrays, dict)
            else arrays.take(rows)
            for field, arrays in self._arrays.items()
        }
        if self.probabilities is not None:
            taken.probabilities = {name: numbers[rows] for name, numbers in self.probabilities.items()}
        return taken

    def with_rows(self, index: Any, **changes: Any) -> Valuation:
        """Return a copy with other row labels, and some entries of its `Provenance` changed, by name."""
        return Valuation(
            **self._arrays,
            scales=self.scales,
            provenance=replace(self.provenance, **changes),
            index=index,
            probabilities=self.probabilities,
        )

    def with_provenance(self, **changes: Any) -> Valuation:
        """Return a copy with some entries of its `Provenance` changed, given by name."""
        return self.with_rows(self._index, **changes)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and variables there are."""
        return len(self), len(self.variables)

    def __len__(self) -> int:
        values = self._arrays["values"]
        return len(values["y"]) if isinstance(values, dict) else values.n_rows

    def __repr__(self) -> str:
        how, summary = self._shown()
        return f"Valuation of {len(self):,} rows ({how})\n{summary.to_string()}"

    def _repr_html_(self) -> str:
        how, summary = self._shown()
        table = summary.to_html(border=0, escape=True, index_names=False)
        return f"<div><p><b>Valuation</b> of {len(self):,} rows ({html.escape(how)})</p>{table}</div>"

    def _shown(self) -> tuple[str, pd.DataFrame]:
        """Return the algorithm and the summary, with all texts short and printable."""
        summary = self.summary()
        summary["kind"] = summary["kind"].map(_plain)
        return _plain(self.provenance.algorithm), summary.rename(index=_plain)

    def summary(self) -> pd.DataFrame:
        """Summarise every variable's values: kind, quantiles, mean standard error, mean label probability.

        The summary of new rows also has the mean epistemic part of the entropies.

        Values in [0, 1] are rounded to three decimals, others, such as effects, to three significant digits.

        Returns
        -------
        DataFrame
            One row per variable.
        """
        import pandas as pd

        shares = {"5 %": 0.05, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "95 %": 0.95}
        rows = {}
        for name, scale in self.scales.items():
            quantiles = known_quantiles(self[name], list(shares.values()))
            numbers = {"mean": _mean(self[name]), **dict(zip(shares, quantiles, strict=True))}
            numbers["std. error"] = _mean(self.field("standard_error", name))
            row = {what: rounded(number, scale) for what, number in numbers.items()}
            row["label_probability"] = round(_mean(self.field("label_probability", name)), 3)
            if "epistemic" in self.fields:
                row["epistemic"] = round(_mean(self.field("epistemic", name)), 3)
            rows[name] = {"kind": self.provenance.kind_of(name), **row}
        return pd.DataFrame.from_dict(rows, orient="index")

    @insert_parameters()
    def stability(
        self,
        X: Any = None,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        unknown: Any = None,
        valuator: Any = None,
        over: str | Sequence[str] = ("seeds", "bags"),
        n_seeds: int = 3,
        sample_weight: Any = None,
        groups: Any = None,
        validation: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> pd.DataFrame:
        """Measure how far these values agree with recomputed values, for all rows and by group.

        Without `X` and `y` nothing is fitted: the agreement with another run is estimated from the standard
        errors, as variation ``"bags"``. With them, values are recomputed with one thing changed at a time:

        - ``"seeds"``: `n_seeds` other seeds, those that follow the one of these values.
        - ``"bags"``: half and twice as many bags; the half is a subset of the bags of these values.

        Parameters
        ----------
        X, y : optional
            The rows that were valued, as a valuator takes them.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            The protected attributes, by position; without `X`, those whose groups are reported separately.
        {unknown}
        valuator : valuator, optional
            What computed the values. None makes it from `provenance`, which keeps no estimators: pass the
            valuator if it was given some, or if the origin of the values is not known.
        over : str or sequence of str
            Which variations; those that a valuator does not have are left out.
        n_seeds : int, default=3
            How many other seeds.
        sample_weight, groups, validation
            As they were passed to `fit` of the valuator.
        n_jobs : int, optional
            How many fits run in parallel; None leaves it to the valuator.
        {progress}

        Returns
        -------
        DataFrame
            One row per ``column``, ``variation`` and ``group`` ("all rows", or a group of at least ten), with
            its number of ``rows``. Rows are ranked within a group. ``rank_agreement`` is Spearman's
            correlation with the other values; ``top_overlap`` is the share of the highest tenth of these
            values that is in the highest tenth of the others. Both are means if values are recomputed more
            than once. ``attrs["changes"]`` lists what was changed, ``attrs["notes"]`` what was left out and
            why.

        Examples
        --------
        >>> import numpy as np
        >>> from fado import Valuation
        >>> valuation = Valuation({"y": np.arange(100.0)}, {"y": np.full(100, 5.0)})
        >>> sex = np.repeat(["f", "m"], 50)
        >>> valuation.stability(sensitive_features=sex).round(1)
          column variation     group  rows  rank_agreement  top_overlap
        0      y      bags  all rows   100             1.0          0.7
        1      y      bags         f    50             0.9          0.5
        2      y      bags         m    50             0.9          0.5
        """
        from fado.valuation._stability import measure_stability

        more = {"sample_weight": sample_weight, "groups": groups}
        return measure_stability(
            *(self, X, y, sensitive_features, unknown, valuator, over, n_seeds, more, validation, n_jobs),
            show=progress,
        )

    @insert_parameters()
    def card(self, stability: Any = None, *, sensitive_features: Any = None, unknown: Any = None) -> str:
        """Describe the values as Markdown: what they mean, their distribution, stability and limits.

        Parameters
        ----------
        stability : DataFrame, optional
            What `stability` returned; None means its estimate without a fit.
        sensitive_features : Series, array, DataFrame or dict, optional
            Protected attributes, by position, whose groups are reported separately. Groups of fewer than ten
            rows are not named.
        {unknown}

        Returns
        -------
        str
            Markdown, which a notebook renders. All names and labels from the data are escaped.

        Examples
        --------
        >>> from fado import Valuation
        >>> card = Valuation.from_probabilities([0.5, 0.9, 0.8]).card()
        >>> print(card.splitlines()[0])
        # Values of 3 rows
        """
        from fado.valuation._stability import card

        return card(self, stability, sensitive_features, unknown)

    @classmethod
    def from_probabilities(
        cls, p_y: npt.ArrayLike, p_z: Mapping[str, npt.ArrayLike] | None = None
    ) -> Valuation:
        """Value rows by the predicted probabilities of models that you already have.

        Parameters
        ----------
        p_y : array-like of shape (n,) or (n, K)
            Predicted probability of the target's positive class, or of all K classes. Predictions for rows
            that the model was not trained on give better values.
        p_z : mapping of str to array-like, optional
            The same for every protected attribute; or, of shape (n, K, G), the probabilities of its G groups
            given each of the K classes of the target. These are averaged with `p_y` for the values.

        Returns
        -------
        Valuation
            Entropies in [0, 1], and the `probabilities`. One set of predictions gives no standard errors and
            no label probabilities.

        Raises
        ------
        ValueError
            If numbers are outside [0, 1] or missing, probabilities of K classes do not sum to 1, or the
            arrays differ in length.
        """
        if p_z and "y" in p_z:
            raise ValueError("A protected attribute cannot be called 'y', the target's name: rename it.")
        values, probabilities = entropies_of(p_y, p_z or {})
        return cls(
            values,
            counts={name: np.ones(len(array), dtype=np.int32) for name, array in values.items()},
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
            The values of ``"y"``, which is required, and of each protected attribute by its name; NaN if a
            row has none. The index of a pandas table or Series is kept.
        scales : mapping of str to Scale, optional
            What the values mean, and their bounds. Without a scale, values are effects: signed, without
            bounds, with 0 as neutral. A utility divides such values by their standard deviation.

        Returns
        -------
        Valuation
            Without standard errors, counts and label probabilities.

        Examples
        --------
        >>> from fado import Valuation
        >>> values = {"y": [0.2, -0.1], "age": [0.0, 0.3]}
        >>> Valuation.from_values(values).scales["age"].meaning
        "effect of the row's weight on a metric, in the metric's own unit"
        """
        index = getattr(values, "index", None) if hasattr(values, "iloc") else None
        if not isinstance(values, Mapping):
            values = {column.name: column for column in attribute_columns(values)}
        if "y" not in values:
            raise ValueError(f"`values` must hold the values for 'y', the target, got {list(values)}.")
        if index is None and hasattr(values["y"], "iloc"):
            index = values["y"].index
        arrays = {str(name): _as_values(str(name), values[name]) for name in values}
        by_name = {str(name): scale for name, scale in (scales or {}).items()}
        for name in by_name:
            if name not in arrays:
                raise ValueError(f"`scales` names {name!r}, which `values` does not hold.")
        arrays = {"y": arrays.pop("y"), **arrays}
        n_rows = len(arrays["y"])
        for name, array in arrays.items():
            if len(array) != n_rows:
                raise ValueError(
                    f"`values` of 'y' have {n_rows} rows and those of {name!r} have {len(array)}."
                )
        return cls(arrays, scales={name: by_name.get(name, EFFECT) for name in arrays}, index=index)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the valuation to a file, completely or not at all.

        Row labels are not saved.

        Parameters
        ----------
        path : path-like
            A name that ends in ``.parquet``, which also keeps scales, provenance and probabilities, or in
            ``.csv``, which keeps the values and the other known fields only; a warning is given if there are
            probabilities.

        Raises
        ------
        ValueError
            If the name has another ending, a value is not on its scale, another field has an invalid number,
            or a CSV file would be read as other values.
        """
        from fado.valuation._saved import write

        write(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Valuation:
        """Read a valuation that `save` or `fado.value_files` wrote.

        The content is checked: values must be on the scale that the file declares, counts must be whole
        numbers, and the description must be complete. A CSV file has no description: its values are effects
        if there are no other fields, and entropies if there are.

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
            If the file is not a valuation, is damaged, or has an invalid number; the message names the file
            and the place. Also if the values in a directory are not finished.
        """
        from fado.valuation._saved import read

        return read(path)


def rounded(number: float, scale: Scale) -> float:
    """Round a value in [0, 1] to three decimals, another, such as an effect, to three significant digits."""
    return round(number, 3) if scale.is_unit else float(f"{number:.3g}")


def known_quantiles(values: Floats, shares: Sequence[float]) -> list[float]:
    """Return the quantiles of the values that are not NaN; NaN if all are."""
    known = values[~np.isnan(values)]
    return np.quantile(known, shares).tolist() if len(known) else [float("nan")] * len(shares)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _plain(text: str) -> str:
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:_LONGEST])
    return line if len(text) <= _LONGEST else line + "..."


def _as_values(name: str, values: Any) -> Floats:
    column = values if isinstance(values, Column) else one_column(values, f"values[{name!r}]")
    if column.levels is not None:
        raise TypeError(
            f"`values` of {name!r} must be numbers, got text or categories: convert them, for example with "
            "`astype(float)`."
        )
    array = column.numbers()
    if np.isinf(array).any():
        raise ValueError(f"`values` of {name!r} must be finite, or NaN where a row has none.")
    return array
