"""Settings that several parts share: checks of their values, and classes that they name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)

MOST_ROWS = 10**9  # more than any intended count of rows


def check_share(name: str, value: Any) -> float:
    """Return a setting as a float, or refuse what is not a number in [0, 1]."""
    if not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number in [0, 1], got {value!r}.")
    if not 0 <= float(value) <= 1:
        raise ValueError(f"`{name}` must be in [0, 1], got {value}.")
    return float(value)


def check_count(name: str, value: Any, least: int, most: int) -> int:
    """Return a setting as a whole number, or refuse it.

    Parameters
    ----------
    name : str
        Its name: a parameter, or a key of a configuration.
    value : object
        The given value.
    least, most : int
        The bounds; `most` is more than any machine can do, so that a typing error is noticed at once.

    Examples
    --------
    >>> check_count("n_bags", 10**10, 1, 100_000)
    Traceback (most recent call last):
        ...
    ValueError: `n_bags` must be at most 100,000, got 10000000000.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be a whole number, got {value!r}.")
    count = int(value)
    if count < least:
        raise ValueError(f"`{name}` must be at least {least:,}, got {count}.")
    if count > most:
        raise ValueError(f"`{name}` must be at most {most:,}, got {count}.")
    return count


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a setting that is not one of a few words."""
    if value not in choices:
        raise ValueError(f"`{name}` must be {' or '.join(map(repr, choices))}, got {value!r}.")


def check_instance(name: str, given: Any) -> None:
    """Refuse a class where an object of it is needed.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> check_instance("estimator", LogisticRegression)
    Traceback (most recent call last):
        ...
    TypeError: `estimator` must be an object, got the class LogisticRegression: write `LogisticRegression()`.
    """
    if isinstance(given, type):
        called = given.__name__
        raise TypeError(f"`{name}` must be an object, got the class {called}: write `{called}()`.")


def check_classifier(name: str, estimator: Any) -> None:
    """Refuse what is not an unfitted classifier with probabilities."""
    from fado._compat import is_classifier

    check_instance(name, estimator)
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(f"`{name}` must be a scikit-learn classifier, got {estimator!r}.")
    if not is_classifier(estimator):
        raise TypeError(f"`{name}` must be a classifier, got {estimator!r}.")
    check_probabilities(name, estimator)


def check_probabilities(name: str, estimator: Any) -> None:
    """Refuse a classifier without probabilities, such as scikit-learn's SVC by default."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"`{name}` must give probabilities, and {type(estimator).__name__} has no `predict_proba`: use "
            "another classifier, or wrap it in `sklearn.calibration.CalibratedClassifierCV`."
        )


def seed_from(random_state: Any) -> int:
    """Turn a `random_state` into one seed that can be stored; a generator draws it."""
    import numpy as np

    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"`random_state` must not be negative, got {random_state}.")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    from sklearn.utils import check_random_state

    try:
        generator = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"`random_state` must be a whole number, a numpy generator or None, got {random_state!r}."
        ) from None
    return int(generator.randint(2**31 - 1))


def sklearn_seed(random_state: Any) -> Any:
    """Turn a `random_state` into one that scikit-learn takes, which knows no Generator and 32 bits only."""
    import numpy as np

    if random_state is None or isinstance(random_state, np.random.RandomState):
        return random_state
    return seed_from(random_state) % 2**32


class ClassRegistry(dict[str, type[Any]]):
    """Classes of one kind by their names, in the order in which they were registered.

    Parameters
    ----------
    kind : str
        The name of such a class in a message.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def register(self, name: str) -> Callable[[Class], Class]:
        """Return a decorator that registers a class under a unique name."""

        def enter(entry: Class) -> Class:
            known = self.get(name)
            if known is not None and known.__qualname__ != entry.__qualname__:
                raise ValueError(f"There is a {self._kind} called {name!r} already, {known.__qualname__}.")
            self[name] = entry
            return entry

        return enter

    def names(self) -> tuple[str, ...]:
        """List the names, including those of plug-ins."""
        load_plugins()
        return tuple(self)

    def find(self, name: str, argument: str) -> type[Any]:
        """Return the class of a name; an unknown name raises a ValueError that lists all names."""
        if name not in self.names():
            raise ValueError(f"{argument} must be {' or '.join(map(repr, self))}, got {name!r}.")
        return self[name]


@cache
def load_plugins() -> None:
    """Import, once, every installed module that adds utilities or interventions.

    A package names such a module in its metadata: ``[project.entry-points."fado.plugins"]``, then
    ``mine = "my_package.my_module"``. Nothing that a configuration or a store names is ever imported.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group="fado.plugins"):
        point.load()
