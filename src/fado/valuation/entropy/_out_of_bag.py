"""The out-of-bag algorithm: models value rows that they were not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fado._memory import check_room_for
from fado.tabular import Problem, Variable
from fado.valuation._bags import check_bags, check_memory, out_of_bag_sets, strata_of
from fado.valuation._base import register_valuator
from fado.valuation.entropy._base import EntropyValuator
from fado.valuation.entropy._fits import Bag

__all__ = ["OutOfBagEntropy"]

_MOST_CELLS = 100  # classes of the target times groups of an attribute


@register_valuator("oob")
class OutOfBagEntropy(EntropyValuator):
    """Value every row by how unsure models trained on other rows are of it.

    Each of `n_bags` bags leaves out `unseen_fraction` of the rows; models trained on the rest predict the
    target and every protected attribute for the rows left out. The value of a row is the mean entropy of
    its predictions, scaled to [0, 1]: 0 if models are certain, 1 if they know nothing. For a continuous
    variable it is ``1 - d / max(d)``, where `d` is the mean distance of the row's predictions from the
    training mean, and ``max(d)`` the largest over all rows.

    Parameters
    ----------
    estimators : estimator or list of estimators, optional
        Unfitted scikit-learn estimators. Classifiers serve class variables, regressors continuous ones.
        None means small LightGBM models, whose number of trees and learning rate are set by how well they
        predict rows that they have not seen.
    n_bags : int, default=10
        How many bags.
    unseen_fraction : float, default=0.2
        The share of the rows that each bag leaves out. ``n_bags * unseen_fraction`` must be at least 1.
    z_sees_target : bool, default=True
        Whether the models of protected attributes see the target beside the features.
    z_exclude : list of column names, or mapping of attribute to such a list, optional
        Features to hide from the models of all protected attributes (a list) or of single ones (a mapping).
        ``"age_*"`` means all columns whose names begin with ``age_``. A feature that alone determines an
        attribute is always hidden from its models, with a warning. If only several features together
        determine it, they are not hidden, but a warning is given.
    kinds : mapping of variable to {"classes", "continuous"}, optional
        Overrides the rule by which a variable is valued: text, booleans, categories and numbers with at most
        20 distinct values are classes, other numbers are continuous. The target is called ``"y"``.
    random_state : int, RandomState or None, default=None
        Seed of the bags, and of estimators that have none of their own.
    n_jobs : int, optional
        How many fits run side by side; None uses every core. It never changes a value.
    progress : bool, default=False
        Whether to show a progress bar.
    keep_models : bool, default=False
        Whether to keep the trained models, without the training rows. `value` needs them for new rows.
    keep_probabilities : bool, default=False
        Whether ``valuation_.probabilities`` holds the mean probabilities that models gave to rows that they
        had not seen: of each class of the target, and of each group of a protected attribute if the target
        were of each class. It takes one more scoring of every row for each further class of the target, and
        changes no value. The target must have classes.

    Attributes
    ----------
    valuation_ : Valuation
        The values.
    bags_ : list of ndarray
        The positions of the rows that each bag left out.
    excluded_columns_ : dict
        Per protected attribute, the features that were hidden from its models.
    seed_ : int
        The seed; as `random_state` it gives the same values again.
    models_ : ValuationModels
        The models; only with ``keep_models=True``.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import OutOfBagEntropy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X[:, 0] > 0
    >>> coin = rng.integers(0, 2, size=1000)
    >>> valuation = OutOfBagEntropy(random_state=0).fit(X, y, sensitive_features={"coin": coin}).valuation_
    >>> bool(valuation["y"].mean() < 0.1 < 0.8 < valuation["coin"].mean())
    True
    """

    def __init__(
        self,
        estimators: Any = None,
        *,
        n_bags: int = 10,
        unseen_fraction: float = 0.2,
        z_sees_target: bool = True,
        z_exclude: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        kinds: Mapping[str, str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
        keep_models: bool = False,
        keep_probabilities: bool = False,
    ) -> None:
        self.estimators = estimators
        self.n_bags = n_bags
        self.unseen_fraction = unseen_fraction
        self.z_sees_target = z_sees_target
        self.z_exclude = z_exclude
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.keep_models = keep_models
        self.keep_probabilities = keep_probabilities

    def _check(self, problem: Problem) -> None:
        super()._check(problem)
        n_units, units = problem.n_rows, "rows"
        if problem.blocks is not None:
            n_units, units = int(problem.blocks.max()) + 1, "groups of rows"
        check_bags(n_units, self.n_bags, self.unseen_fraction, units)
        check_memory(problem.n_rows, self.n_bags)
        if self.keep_probabilities:
            _check_probabilities(problem)

    def _bags(self, variables: Sequence[Variable], blocks: Any, generator: np.random.Generator) -> list[Bag]:
        n_rows = len(variables[0].labels)
        strata = strata_of(variables, self.unseen_fraction)
        unseen = out_of_bag_sets(n_rows, self.n_bags, self.unseen_fraction, strata, generator, blocks)
        return [Bag(number, _others(n_rows, rows), rows) for number, rows in enumerate(unseen)]

    def _keep_bags(self, bags: Sequence[Bag]) -> None:
        self.bags_ = [bag.scored for bag in bags]

    def _algorithm(self) -> dict[str, Any]:
        return {
            "algorithm": "out-of-bag",
            "settings": {
                "n_bags": int(self.n_bags),
                "unseen_fraction": float(self.unseen_fraction),
                "z_sees_target": bool(self.z_sees_target),
            },
        }


def _check_probabilities(problem: Problem) -> None:
    """Refuse to keep probabilities of a number, of too many classes and groups, or beyond memory."""
    target, total = problem.target, 0
    if target.kind != "classes":
        raise ValueError(
            "`keep_probabilities=True` needs a target of classes, and 'y' is continuous: leave it out, or "
            'set `kinds={"y": "classes"}`.'
        )
    for variable in problem.variables:
        n_labels, n_classes = len(target.classes), len(variable.classes)
        cells = n_classes if variable is target else n_labels * n_classes
        if cells > _MOST_CELLS:
            counted = f"{n_labels} classes of 'y'"
            counted += "" if variable is target else f" times {n_classes} groups of {variable.name!r}"
            raise ValueError(
                f"`keep_probabilities=True` keeps at most {_MOST_CELLS} numbers of a row and variable, got "
                f"{counted}: merge some, or leave it out."
            )
        total += cells
    check_room_for(f"`keep_probabilities=True` for {problem.n_rows:,} rows", 8 * problem.n_rows * total)


def _others(n_rows: int, rows: Any) -> Any:
    inside = np.ones(n_rows, dtype=bool)
    inside[rows] = False
    return np.flatnonzero(inside).astype(np.int32)
