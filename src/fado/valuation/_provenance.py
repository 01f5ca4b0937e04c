"""How values came about: a typed record that a file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fado._records import Entries, shorten

__all__ = ["Provenance", "SplitGains", "TargetNote", "VariableNote"]


@dataclass(frozen=True)
class VariableNote:
    """How a variable was treated.

    Parameters
    ----------
    kind : str
        ``"classes"`` or ``"continuous"``.
    classes : tuple, optional
        Its classes, if they are known.
    """

    kind: str
    classes: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class SplitGains:
    """What the models gained by splitting on each column, per variable.

    Parameters
    ----------
    columns : tuple of str
        The names of the features.
    shares : mapping of str to tuple of float
        Per variable, the share of each feature in the gain of all splits and, last, the share of the target.
    """

    columns: tuple[str, ...]
    shares: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class TargetNote:
    """The target that values in a file were made for.

    Parameters
    ----------
    target : str
        The name of its column.
    digest : str
        A digest of its labels.
    """

    target: str
    digest: str


@dataclass(frozen=True)
class Provenance:
    """How values came about.

    Parameters
    ----------
    algorithm : str
        Such as "out-of-bag", "in-bag", "influence", "probabilities" or "given". If the models did not learn
        from these rows, ", new rows" follows.
    settings : mapping
        The settings of the valuator that affect values, such as ``n_bags``: plain data by name.
    seed : int, optional
        The seed; as `random_state` it gives the same values again.
    estimators : tuple of str, optional
        The models, as they print.
    variables : mapping of str to VariableNote
        How each variable was treated.
    excluded_columns : mapping of str to tuple of str, optional
        Per protected attribute, the features that were hidden from its models.
    versions : mapping of str to str
        The versions of the libraries that affect values.
    largest_error : mapping of str to float, optional
        For each continuous variable, the largest mean error of a row, in the variable's own unit. A row's
        mean error is ``(1 - agreement) * largest_error``.
    split_gains : SplitGains, optional
        What the models gained by splitting on each column.
    trees, learning_rates : mapping, optional
        Per variable, how many trees the default models had, and their learning rate.
    target_pattern : str, optional
        A digest of which rows share a label of the target, by which a mismatch of rows is noticed.
    made_for : TargetNote, optional
        Which target the values in a file were made for.
    names_given : bool, default=True
        Whether protected attributes have names, by which they are compared with those of other rows. If not,
        they are called "z", or "z0", "z1", ....
    """

    algorithm: str = "given"
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    estimators: tuple[str, ...] | None = None
    variables: Mapping[str, VariableNote] = field(default_factory=dict)
    excluded_columns: Mapping[str, tuple[str, ...]] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    largest_error: Mapping[str, float] | None = None
    split_gains: SplitGains | None = None
    trees: Mapping[str, int] | None = None
    learning_rates: Mapping[str, float] | None = None
    target_pattern: str | None = None
    made_for: TargetNote | None = None
    names_given: bool = True

    def kind_of(self, variable: str) -> str:
        """Give the kind of a variable, "classes" or "continuous"; empty if it is not known."""
        note = self.variables.get(variable)
        return "" if note is None else note.kind

    def to_dict(self) -> dict[str, Any]:
        """Give plain data that JSON can hold; what is not known is left out."""
        told: dict[str, Any] = {"algorithm": self.algorithm, **self.settings, "seed": self.seed}
        if self.estimators is not None:
            told["estimators"] = list(self.estimators)
        told["variables"] = {
            name: {"kind": note.kind} | ({} if note.classes is None else {"classes": list(note.classes)})
            for name, note in self.variables.items()
        }
        if self.excluded_columns is not None:
            told["excluded_columns"] = {name: list(own) for name, own in self.excluded_columns.items()}
        told["versions"] = dict(self.versions)
        for name in ("largest_error", "trees", "learning_rates"):
            own = getattr(self, name)
            told[name] = None if own is None else dict(own)
        if self.split_gains is not None:
            shares = {name: list(own) for name, own in self.split_gains.shares.items()}
            told["split_gains"] = {"columns": list(self.split_gains.columns), "shares": shares}
        told["target_pattern"] = self.target_pattern
        if self.made_for is not None:
            told["made_for"] = {"target": self.made_for.target, "digest": self.made_for.digest}
        if not self.names_given:
            told["names_given"] = False
        empty = {"variables", "versions"}
        return {
            name: value for name, value in told.items() if value is not None and (value or name not in empty)
        }

    @classmethod
    def from_dict(cls, content: Any) -> Provenance:
        """Read what `to_dict` gave; entries with other names become settings.

        Raises
        ------
        ValueError
            If an entry has the wrong form; the message names it.
        """
        entries = Entries(content)
        variables, excluded = entries.mapping("variables"), entries.mapping("excluded_columns")
        gains, note = entries.mapping("split_gains"), entries.mapping("made_for")
        return cls(
            algorithm=entries.text("algorithm") or "given",
            seed=entries.whole("seed"),
            estimators=entries.texts("estimators"),
            variables={name: _read_variable(Entries(own)) for name, own in (variables or {}).items()},
            excluded_columns=None
            if excluded is None
            else {name: Entries(excluded).texts(name) or () for name in excluded},
            versions=entries.texts_by_name("versions") or {},
            largest_error=entries.amounts_by_name("largest_error"),
            split_gains=None if gains is None else _read_gains(Entries(gains)),
            trees=entries.amounts_by_name("trees"),
            learning_rates=entries.amounts_by_name("learning_rates"),
            target_pattern=entries.text("target_pattern"),
            made_for=None
            if note is None
            else TargetNote(Entries(note).text("target") or "", Entries(note).text("digest") or ""),
            names_given=entries.flag("names_given") is not False,
            settings=entries.rest(),
        )


def _read_variable(entries: Entries) -> VariableNote:
    return VariableNote(entries.text("kind") or "", entries.labels("classes"))


def _read_gains(entries: Entries) -> SplitGains:
    columns, shares = entries.texts("columns") or (), Entries(entries.mapping("shares") or {})
    read = {name: shares.numbers(name) or () for name in shares.rest()}
    wrong = [name for name, own in read.items() if len(own) != len(columns) + 1]
    if wrong:
        raise ValueError(
            f"`split_gains` of the values' description must have a share per column and one of the target, "
            f"got {len(read[wrong[0]])} shares of {shorten(wrong[0])} and {len(columns)} columns."
        )
    return SplitGains(columns, read)
