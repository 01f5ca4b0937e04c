"""Fitted estimators as bytes that run no code when they are read: skops, and classes that are listed."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np

from fado.engine._skops_form import StrangeError, only_form

__all__ = ["read_estimator", "write_estimator"]


def write_estimator(estimator: Any) -> tuple[bytes, str]:
    """Give an estimator as bytes, the same for the same estimator, and the name of its class."""
    skops = _skops()
    name = type(estimator).__name__
    try:
        content = skops.dumps(estimator)
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{name} cannot be saved, as skops does not know all of it: {reason}") from error
    try:
        return only_form(content, is_new=True)
    except StrangeError as error:
        raise ValueError(
            f"{name} cannot be saved: it holds {error}, which is not among the classes that are read again. "
            "Functions, and estimators that keep rows, are none of them: see 'A model to keep' in the guide."
        ) from error


def read_estimator(content: bytes, name: str) -> Any:
    """Read what `write_estimator` gave.

    Parameters
    ----------
    content : bytes
        It may come from anybody. Nothing is made of it unless all of it is of the listed classes.
    name : str
        The name of the estimator's class.
    """
    skops = _skops()
    try:
        same, found = only_form(content)
    except StrangeError as error:
        raise ValueError(f"The content holds {error}, which is not to be trusted.") from error
    except (ValueError, KeyError, RecursionError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise ValueError("The content is of no estimator that was saved, or it is damaged.") from error
    if same != content:
        raise ValueError("The content is not in the form in which estimators are saved, or it is damaged.")
    if found != name:
        raise ValueError(f"The content is of {found}, and {name!r} was said to be there.")
    try:
        estimator = skops.loads(content, trusted=skops.get_untrusted_types(data=content))
        _check_trees(estimator)
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"The estimator cannot be read by the libraries that are here: {reason}") from error
    return estimator


def _skops() -> Any:
    try:
        import skops.io
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Estimators other than LightGBM's are saved and read by skops: install it with "
            "`pip install 'fado-ml[save]'`.",
            name="skops",
        ) from error
    return skops.io


def _check_trees(estimator: Any) -> None:
    """Refuse trees whose nodes lead out of their arrays: scikit-learn follows them without a look."""
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
    from sklearn.tree._tree import Tree

    trees = DecisionTreeClassifier, DecisionTreeRegressor
    forests = ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
    histograms = HistGradientBoostingClassifier, HistGradientBoostingRegressor
    for own in _objects_in(estimator):
        fits = True
        if isinstance(own, Tree):
            left, right = own.children_left, own.children_right
            fits = _leads_on(left, right, left == -1, own.feature, own.n_features)
        elif isinstance(own, trees) and hasattr(own, "tree_"):
            fits = isinstance(own.tree_, Tree) and own.tree_.n_features == own.n_features_in_
        elif isinstance(own, forests) and hasattr(own, "estimators_"):
            fits = all(isinstance(tree, trees) for tree in own.estimators_) and all(
                tree.tree_.n_features == own.n_features_in_ for tree in own.estimators_
            )
        elif isinstance(own, histograms) and hasattr(own, "_predictors"):
            fits = all(_predicts(tree, own) for trees_at in own._predictors for tree in trees_at)
        if not fits:
            raise ValueError("a tree leads out of its nodes or columns.")


def _predicts(tree: Any, forest: Any) -> bool:
    """Tell whether a tree of histograms stays within its nodes, columns and sets of categories."""
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    if not isinstance(tree, TreePredictor):
        return False
    nodes, sets, mapper = tree.nodes, tree.raw_left_cat_bitsets, forest._bin_mapper
    is_leaf = nodes["is_leaf"].astype(bool)
    inner = nodes[~is_leaf]
    by_category = inner[inner["is_categorical"].astype(bool)]
    known = np.asarray(mapper.is_categorical_, dtype=bool)
    return bool(
        _leads_on(nodes["left"], nodes["right"], is_leaf, nodes["feature_idx"], forest.n_features_in_)
        and known.shape == (forest.n_features_in_,)
        and sets.ndim == 2
        and sets.shape[1] == 8
        and (by_category["bitset_idx"] < len(sets)).all()
        and known[by_category["feature_idx"]].all()
    )


def _leads_on(left: Any, right: Any, is_leaf: Any, feature: Any, n_features: int) -> bool:
    """Tell whether every inner node leads to later ones, by a column that is there."""
    inner = np.flatnonzero(~is_leaf)
    return bool(
        len(left)
        and all(((inner < side[inner]) & (side[inner] < len(left))).all() for side in (left, right))
        and ((feature[inner] >= 0) & (feature[inner] < n_features)).all()
    )


def _objects_in(estimator: Any) -> list[Any]:
    """List an estimator and all that it holds, each once."""
    found: dict[int, Any] = {}
    waiting = [estimator]
    while waiting:
        own = waiting.pop()
        if id(own) in found or isinstance(own, str | bytes | bytearray | int | float | type | None):
            continue
        found[id(own)] = own
        if isinstance(own, dict):
            waiting += own.values()
        elif isinstance(own, list | tuple | set):
            waiting += own
        elif isinstance(own, np.ndarray):
            waiting += own.ravel().tolist() if own.dtype == object else []
        else:
            waiting += getattr(own, "__dict__", {}).values()
    return list(found.values())
