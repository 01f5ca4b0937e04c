"""The one list of interventions, with what configurations, commands, frames and pages call their settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from fado._plugins import load_plugins
from fado.interventions._base import BaseIntervention

__all__ = ["Entry", "Setting", "intervention_entries", "intervention_named", "register_intervention"]

Class = TypeVar("Class", bound=type[BaseIntervention])
REQUIRED: Any = ...


@dataclass(frozen=True)
class Setting:
    """One parameter of an intervention, as configurations, commands and frames know it.

    Parameters
    ----------
    name : str
        The parameter's name: a column of the frame, an option of the command.
    kind : {"share", "number", "choice"}
        A number in [0, 1], a number of at least 0, or one of `choices`.
    default : float or str
        What it is if nobody says.
    plural : str, optional
        The key of a configuration that lists several; None for a setting that has one value per experiment.
    choices : tuple of str
        What a choice may be.
    help : str
        One sentence for the command line.
    former : str, optional
        The plural's name in earlier releases.
    """

    name: str
    kind: Literal["share", "number", "choice"]
    default: float | str
    plural: str | None = None
    choices: tuple[str, ...] = ()
    help: str = ""
    former: str | None = None


@dataclass(frozen=True)
class Entry:
    """One intervention as an experiment offers it.

    Parameters
    ----------
    name : str
        What frames and pages call it.
    key : str
        What configurations and commands call it.
    kind : class
        The intervention.
    settings : tuple of Setting
        What may be set.
    fixed : mapping
        Parameters that this entry sets itself.
    by_default : bool
        Whether an experiment runs it unless it is switched off.
    shape : str
        The mark of its models on a landscape, as Vega-Lite calls it.
    colour : str or None
        Its colour there; None is a colour by alpha.
    needs_group : bool
        Whether decisions need the group of a row.
    dial : bool
        Whether an experiment searches its strength until ratios reach lines, instead of trying settings.
    """

    name: str
    key: str
    kind: type[BaseIntervention]
    settings: tuple[Setting, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    by_default: bool = False
    shape: str = "circle"
    colour: str | None = None
    needs_group: bool = False
    dial: bool = False

    @property
    def uses_values(self) -> bool:
        """Whether rows need utilities."""
        return self.kind.uses_values

    def make(
        self, *, random_state: Any = None, min_group_size: int | None = None, **settings: Any
    ) -> BaseIntervention:
        """Make the intervention with some settings.

        Parameters
        ----------
        random_state : int, RandomState or None
            The seed, for an intervention that draws.
        min_group_size : int, optional
            Which groups are small, for an intervention that leaves them alone; None is its own default.
        **settings
            Other parameters; the intervention must have them.

        Examples
        --------
        >>> from fado.interventions import intervention_named
        >>> [intervention_named(key).make(random_state=1, min_group_size=50) for key in ("none", "rw")]
        [NoIntervention(random_state=1), Reweigher(min_group_size=50)]
        """
        shared: dict[str, Any] = {"random_state": random_state}
        if min_group_size is not None:
            shared["min_group_size"] = min_group_size
        taken = inspect.signature(self.kind).parameters
        offered = {name: value for name, value in shared.items() if name in taken}
        return self.kind(**{**offered, **self.fixed, **settings})


_ENTRIES: dict[str, Entry] = {}


def register_intervention(
    name: str,
    *,
    key: str | None = None,
    settings: Sequence[Setting] = (),
    fixed: Mapping[str, Any] | None = None,
    by_default: bool = False,
    shape: str = "circle",
    colour: str | None = None,
    needs_group: bool = False,
    dial: bool = False,
) -> Callable[[Class], Class]:
    """Add an intervention to those that experiments, commands, frames and pages know.

    Parameters
    ----------
    name : str
        What frames and pages call it.
    key : str, optional
        What configurations and commands call it; the name in small letters if there is none.
    settings : sequence of Setting
        The parameters that may be set.
    fixed : mapping, optional
        Parameters that this entry sets itself.
    by_default : bool, default=False
        Whether an experiment runs it unless it is switched off.
    shape, colour : str, optional
        Its mark on a landscape; without a colour it is coloured by alpha.
    needs_group : bool, default=False
        Whether decisions need the group of a row.
    dial : bool, default=False
        Whether an experiment searches its strength until ratios reach lines. The class then has the
        parameters `ratio`, `strength` and `direction`.

    Returns
    -------
    callable
        A decorator of the class.
    """

    def register(kind: Class) -> Class:
        own = key or name.lower().replace(" ", "_").replace("-", "_")
        known = _ENTRIES.get(own)
        if known is not None and known.kind.__qualname__ != kind.__qualname__:
            raise ValueError(f"There is an intervention called {own!r} already, {known.kind.__qualname__}.")
        _ENTRIES[own] = Entry(
            name,
            own,
            kind,
            tuple(settings),
            dict(fixed or {}),
            by_default=by_default,
            shape=shape,
            colour=colour,
            needs_group=needs_group,
            dial=dial,
        )
        return kind

    return register


def intervention_entries() -> tuple[Entry, ...]:
    """List the interventions, in the order in which frames and pages show them."""
    load_plugins()
    return tuple(_ENTRIES.values())


def intervention_named(name: str) -> Entry:
    """Find an intervention by its name or its key."""
    for entry in intervention_entries():
        if name in (entry.name, entry.key):
            return entry
    known = ", ".join(repr(entry.key) for entry in intervention_entries())
    raise ValueError(f"There is no intervention {name!r}; there are {known}.")
