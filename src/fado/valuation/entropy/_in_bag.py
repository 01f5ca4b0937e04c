"""The in-bag algorithm: models value the rows that they were trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fado.tabular import Problem, Variable
from fado.valuation._bags import out_of_bag_sets, strata_of
from fado.valuation._base import register_valuator
from fado.valuation.entropy._base import EntropyValuator
from fado.valuation.entropy._fits import Bag
from fado.valuation.entropy._giveaways import has_evidence, is_given_away
from fado.valuation.entropy._learnt import Learnt

__all__ = ["InBagEntropy"]

_FIFTH = 0.2


@register_valuator("inbag")
class InBagEntropy(EntropyValuator):
    """Value every row by how unsure models trained on all rows are of it.

    It takes one fit per estimator and variable, and so is several times faster than `OutOfBagEntropy`. But
    its models score rows that they have seen: if a model has only memorised a row, it is sure of it, and the
    row's value is too low.

    Parameters
    ----------
    estimators : estimator or list of estimators, optional
        Unfitted scikit-learn estimators. Classifiers serve class variables, regressors continuous ones.
        None means small LightGBM models.
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
        Seed of estimators that have none of their own.
    n_jobs : int, optional
        How many fits run side by side; None uses every core. It never changes a value.
    progress : bool, default=False
        Whether to show a progress bar.
    keep_models : bool, default=False
        Whether to keep the trained models, without the training rows. `value` needs them for new rows.

    Attributes
    ----------
    valuation_ : Valuation
        The values.
    excluded_columns_ : dict
        Per protected attribute, the features that were hidden from its models.
    seed_ : int
        The seed; as `random_state` it gives the same values again.
    models_ : ValuationModels
        The models; only with ``keep_models=True``.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import InBagEntropy
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> valuation = InBagEntropy(random_state=0).fit(X, X[:, 0] > 0).valuation_
    >>> bool(valuation["y"].max() < 0.1)
    True
    """

    def __init__(
        self,
        estimators: Any = None,
        *,
        z_sees_target: bool = True,
        z_exclude: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        kinds: Mapping[str, str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
        keep_models: bool = False,
    ) -> None:
        self.estimators = estimators
        self.z_sees_target = z_sees_target
        self.z_exclude = z_exclude
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.keep_models = keep_models

    def _bags(self, variables: Sequence[Variable], blocks: Any, generator: np.random.Generator) -> list[Bag]:
        return [Bag(0, np.arange(len(variables[0].labels), dtype=np.int32), None)]

    def _given_away(
        self, problem: Problem, variables: Sequence[Variable], learnt: Learnt, seed: int
    ) -> list[Variable]:
        """Ask models that have not seen a fifth of the rows: of rows that it has seen, any may be sure."""
        suspects = super()._given_away(problem, variables, learnt, seed)
        if not suspects:
            return []
        strata = strata_of(variables, _FIFTH)
        generator = np.random.default_rng([seed, 2])
        unseen = out_of_bag_sets(problem.n_rows, 5, _FIFTH, strata, generator, problem.blocks)[0]
        suspects = [own for own in suspects if has_evidence(own, unseen)]
        if not suspects:
            return []
        bag = Bag(0, np.setdiff1d(np.arange(problem.n_rows, dtype=np.int32), unseen), unseen)
        told = self._learn(problem, suspects, [bag], seed, show=False)
        return [own for own in suspects if is_given_away(own, told.moments[own.name])]

    def _algorithm(self) -> dict[str, Any]:
        return {"algorithm": "in-bag", "settings": {"z_sees_target": bool(self.z_sees_target)}}
