"""The list of interventions and their settings, for configurations, commands, frames and pages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from fado._checks import load_plugins
from fado._messages import insert_parameters
from fado.interventions._base import BaseIntervention, NoIntervention
from fado.interventions._estimator import CONSTRAINTS, FairlearnGrid
from fado.interventions._reweighing import Reweigher, UtilityAwareReweigher
from fado.interventions._sampling import RandomPrevalenceSampler, UtilityAwarePrevalenceSampler
from fado.interventions._scores import BaseScoreIntervention

Class = TypeVar("Class", bound=type[BaseIntervention] | type[BaseScoreIntervention])


@dataclass(frozen=True)
class Setting:
    """One parameter of an intervention that configurations and commands can set.

    Parameters
    ----------
    name : str
        The parameter's name. It is also the name of a column of `Results.frame` and of an option of the
        command line.
    kind : {"share", "line", "number", "choice"}
        A number in [0, 1], one in (0, 1], a number of at least 0, or one of `choices`.
    default : float or str
        The value if none is given.
    plural : str, optional
        The key under which a configuration lists several values to try. None for a setting that has one
        value per experiment.
    choices : tuple of str
        The values that a setting of kind ``"choice"`` may have.
    help : str
        One sentence for the command line.

    See Also
    --------
    fado.interventions.register_intervention : Registers an intervention with its settings.
    """

    name: str
    kind: Literal["share", "line", "number", "choice"]
    default: float | str
    plural: str | None = None
    choices: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True)
class Entry:
    """One registered intervention; see `register_intervention`.

    Parameters
    ----------
    name : str
        The name in frames and on pages, such as ``"corrected UAR"``.
    key : str
        The name in configurations and commands, such as ``"corrected_uar"``.
    kind : class
        The class of the intervention: it changes rows, weights or scores.
    settings : sequence of Setting
        The parameters that a user may set.
    fixed : mapping, optional
        Parameters that this entry always sets to the same value.
    by_default : bool, default=False
        Whether an experiment runs it unless the configuration switches it off.
    shape : str, default="circle"
        The shape of its models on charts, by Vega-Lite's names.
    colour : str, optional
        The colour of its models on charts; None colours them by alpha.
    needs_group : bool, default=False
        Whether decisions need the group of a row.

    See Also
    --------
    fado.interventions.intervention_entries : Lists all entries.
    """

    name: str
    key: str
    kind: type[BaseIntervention] | type[BaseScoreIntervention]
    settings: tuple[Setting, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    by_default: bool = False
    shape: str = "circle"
    colour: str | None = None
    needs_group: bool = False

    @property
    def uses_values(self) -> bool:
        """Whether the intervention needs utilities."""
        return self.kind.uses_values

    @property
    def changes_scores(self) -> bool:
        """Whether the intervention changes scores of a model that is trained on all rows as they are."""
        return self.kind.changes == "scores"

    def make(self, *, random_state: Any = None, min_group_size: int | None = None, **settings: Any) -> Any:
        """Make an object of the intervention's class.

        Parameters
        ----------
        random_state : int, RandomState or None
            The seed; not passed on if the class has no such parameter.
        min_group_size : int, optional
            Groups with fewer rows may be small; not passed on if the class has no such parameter. None means
            the class's default.
        **settings
            Other parameters, which the class must have.

        Returns
        -------
        BaseIntervention or BaseScoreIntervention

        Examples
        --------
        >>> from fado.interventions import intervention_named
        >>> settings = {"random_state": 1, "min_group_size": 50}
        >>> intervention_named("none").make(**settings)
        NoIntervention(random_state=1)
        >>> intervention_named("rw").make(**settings)
        Reweigher(min_group_size=50)
        """
        shared: dict[str, Any] = {"random_state": random_state}
        if min_group_size is not None:
            shared["min_group_size"] = min_group_size
        accepted = inspect.signature(self.kind).parameters
        shared = {name: value for name, value in shared.items() if name in accepted}
        return self.kind(**{**shared, **self.fixed, **settings})


_ENTRIES: dict[str, Entry] = {}


@insert_parameters(Entry)
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
) -> Callable[[Class], Class]:
    """Register an intervention, so that experiments and commands offer it.

    Parameters
    ----------
    {name}
    key : str, optional
        The name in configurations and commands. None means `name` in small letters, with ``_`` for blanks
        and hyphens.
    {settings, fixed, by_default, shape, colour, needs_group}

    Returns
    -------
    callable
        A decorator for a subclass of `BaseIntervention` or `BaseScoreIntervention`. It raises a ValueError
        if another class is registered under the same key.

    See Also
    --------
    fado.interventions.BaseIntervention : The class to derive from.
    fado.interventions.intervention_entries : List what is registered.
    """

    def register(kind: Class) -> Class:
        chosen = key or name.lower().replace(" ", "_").replace("-", "_")
        known = _ENTRIES.get(chosen)
        if known is not None and known.kind.__qualname__ != kind.__qualname__:
            raise ValueError(
                f"There is an intervention called {chosen!r} already, {known.kind.__qualname__}."
            )
        _ENTRIES[chosen] = Entry(
            name, chosen, kind, tuple(settings), dict(fixed or {}), by_default, shape, colour, needs_group
        )
        return kind

    return register


def intervention_entries() -> tuple[Entry, ...]:
    """List all registered interventions, in the order in which frames and pages show them."""
    load_plugins()
    return tuple(_ENTRIES.values())


def intervention_named(name: str) -> Entry:
    """Find a registered intervention by name or key; a ValueError lists the keys if it is unknown."""
    for entry in intervention_entries():
        if name in (entry.name, entry.key):
            return entry
    known = ", ".join(repr(entry.key) for entry in intervention_entries())
    raise ValueError(f"There is no intervention {name!r}; there are {known}.")


# The interventions of the paper and of this package, in the order of frames and pages.

_STRENGTH = Setting(
    "strength", "share", 1.0, "strengths", help="How far groups' rates move to the highest rate, 0 to 1."
)
_SCALING = Setting(
    "scaling",
    "choice",
    "minmax",
    "scalings",
    ("minmax", "none"),
    help="minmax scales utilities to [0, 1]; none takes them as they are.",
)
_NEGATIVE = Setting(
    "negative",
    "choice",
    "raise",
    choices=("raise", "clip"),
    help="Without scaling, negative utilities are an error (raise) or a weight of 0 (clip).",
)
_FLOOR = Setting(
    "floor",
    "share",
    0.0,
    "floors",
    help="Weight of the least useful row over that of the most useful, 0 to 1.",
)
_CORRECTION = Setting(
    "prevalence_correction",
    "number",
    1.0,
    "prevalence_corrections",
    help="Power of the correction of rates: 0 for none, 1 for equal rates.",
)

_CONSTRAINT = Setting(
    "constraint",
    "choice",
    CONSTRAINTS[0],
    "constraints",
    CONSTRAINTS,
    help="What fairlearn makes equal between groups.",
)
_POINT = Setting(
    "point", "share", 0.5, "points", help="The place on fairlearn's grid of multipliers, 0 to 1."
)

register_intervention("none", by_default=True, colour="#111111")(NoIntervention)
register_intervention("RPS", by_default=True, fixed={"strength": 1.0}, colour="#1f6fd0")(
    RandomPrevalenceSampler
)
register_intervention("RW", by_default=True, colour="#8e44ad")(Reweigher)
register_intervention("UAPS", settings=[_STRENGTH], shape="triangle-up")(UtilityAwarePrevalenceSampler)
register_intervention("UAR", settings=[_SCALING, _NEGATIVE], shape="square")(UtilityAwareReweigher)
register_intervention(
    "corrected UAR", settings=[_FLOOR, _CORRECTION], fixed={"scaling": "minmax"}, shape="diamond"
)(UtilityAwareReweigher)
register_intervention("fairlearn grid", settings=[_CONSTRAINT, _POINT], colour="#d35400")(FairlearnGrid)
