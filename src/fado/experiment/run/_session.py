"""What a process of its own must know of this one: registered classes, warnings, where modules are found."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass
from typing import Any

from joblib import wrap_non_picklable_objects

from fado.experiment.config import metric_functions, metric_names, register_metric
from fado.interventions import intervention_entries, register_intervention
from fado.utility import register_utility, utility_class, utility_names
from fado.valuation import register_valuator, valuator_class, valuator_names

__all__ = ["Session", "pack", "unpack"]

_REGISTER: dict[str, Any] = {
    "utility": register_utility,
    "valuator": register_valuator,
    "metric": register_metric,
}


def pack(content: Any) -> bytes:
    """Pickle something for another process of ours; classes that no module holds are taken along whole."""
    return pickle.dumps(wrap_non_picklable_objects((content,), keep_wrapper=False))


def unpack(packed: bytes) -> Any:
    """Give what `pack` was given: what comes over a pipe between two processes of ours, never from a file."""
    (content,) = pickle.loads(packed)  # noqa: S301
    return content


@dataclass(frozen=True)
class Session:
    """What a user has set up in this process, on its way to another.

    Classes of modules are named, and imported there; those of ``__main__`` or of a function are sent whole.

    Parameters
    ----------
    registered : tuple of bytes
        The registered interventions, utilities, valuators and metrics, each pickled by itself: they are
        registered again one after the other, since their order is that of a frame's rows.
    filters : list
        Which warnings are shown, ignored or errors.
    """

    registered: tuple[bytes, ...]
    filters: list[Any]

    @classmethod
    def of_this_process(cls) -> Session:
        """Gather it; what cannot be pickled raises whatever pickling raises."""
        utilities = [(name, utility_class(name)) for name in utility_names()]
        valuators = [(name, valuator_class(name)) for name in valuator_names()]
        registered = [
            *(("intervention", entry) for entry in intervention_entries()),
            *(("utility", named) for named in utilities),
            *(("valuator", named) for named in valuators),
            *(("metric", named) for named in metric_functions(metric_names()).items()),
        ]
        return cls(tuple(map(pack, registered)), list(warnings.filters))

    def restore(self) -> None:
        """Set it up in this process."""
        for pickled in self.registered:
            kind, what = unpack(pickled)
            if kind == "intervention":
                register_intervention(
                    what.name,
                    key=what.key,
                    settings=what.settings,
                    fixed=what.fixed,
                    by_default=what.by_default,
                    shape=what.shape,
                    colour=what.colour,
                    needs_group=what.needs_group,
                )(what.kind)
            else:
                name, own = what
                _REGISTER[kind](name)(own)
        warnings.resetwarnings()
        filters: Any = warnings.filters
        filters[:] = self.filters
