"""Fitted estimators as bytes that run no code when they are read: skops, in one form that is allowed.

skops builds whatever types its caller trusts, with the constructor that the file names. Here nothing in a
file is trusted: it is read node by node, every node must be of a kind and class that are listed below, and
written again it must give the same bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.lib import format as npy

from fado.engine._trees import check_text

_SCHEMA = "schema.json"  # in a file of skops
_PROTOCOLS = (1, 2)  # of skops; what an older one has is read in other ways

# Not listed, and so not saved: estimators that keep rows (nearest neighbours, kernels) or functions, and
# GradientBoosting, which indexes memory in more ways than `_check_trees` looks at.
_LISTED = """
sklearn.calibration CalibratedClassifierCV
sklearn.compose ColumnTransformer make_column_selector
sklearn.decomposition PCA TruncatedSVD
sklearn.discriminant_analysis LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis
sklearn.dummy DummyClassifier DummyRegressor
sklearn.ensemble AdaBoostClassifier BaggingClassifier ExtraTreesClassifier HistGradientBoostingClassifier
sklearn.ensemble RandomForestClassifier StackingClassifier VotingClassifier
sklearn.ensemble AdaBoostRegressor BaggingRegressor ExtraTreesRegressor HistGradientBoostingRegressor
sklearn.ensemble RandomForestRegressor StackingRegressor VotingRegressor
sklearn.feature_selection RFE SelectFromModel VarianceThreshold
sklearn.frozen FrozenEstimator
sklearn.impute MissingIndicator SimpleImputer
sklearn.isotonic IsotonicRegression
sklearn.kernel_approximation RBFSampler
sklearn.linear_model LogisticRegression LogisticRegressionCV PassiveAggressiveClassifier Perceptron
sklearn.linear_model RidgeClassifier RidgeClassifierCV SGDClassifier
sklearn.linear_model BayesianRidge ElasticNet ElasticNetCV GammaRegressor HuberRegressor Lasso LassoCV
sklearn.linear_model LinearRegression PoissonRegressor QuantileRegressor Ridge RidgeCV SGDRegressor
sklearn.linear_model TweedieRegressor
sklearn.model_selection FixedThresholdClassifier
sklearn.multiclass OneVsRestClassifier
sklearn.naive_bayes BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB
sklearn.neural_network MLPClassifier MLPRegressor
sklearn.pipeline FeatureUnion Pipeline
sklearn.preprocessing Binarizer FunctionTransformer KBinsDiscretizer LabelBinarizer LabelEncoder
sklearn.preprocessing MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder OrdinalEncoder PolynomialFeatures
sklearn.preprocessing PowerTransformer QuantileTransformer RobustScaler StandardScaler TargetEncoder
sklearn.random_projection GaussianRandomProjection
sklearn.svm LinearSVC LinearSVR
sklearn.tree DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor
lightgbm Booster LGBMClassifier LGBMRegressor
xgboost Booster XGBClassifier XGBRFClassifier XGBRFRegressor XGBRegressor
catboost CatBoostClassifier CatBoostRegressor
"""
_LOSSES = """
AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss HalfPoissonLoss
HalfSquaredError HalfTweedieLoss HalfTweedieLossIdentity HuberLoss PinballLoss
"""
_SGD_LOSSES = """
EpsilonInsensitive Hinge Huber Log ModifiedHuber SquaredEpsilonInsensitive SquaredHinge SquaredLoss
"""
_HELD = """
sklearn._loss.link.HalfLogitLink sklearn._loss.link.IdentityLink sklearn._loss.link.Interval
sklearn._loss.link.LogLink sklearn._loss.link.LogitLink sklearn._loss.link.MultinomialLogit
sklearn.calibration._CalibratedClassifier sklearn.calibration._SigmoidCalibration
sklearn.compose._column_transformer._RemainderColsList
sklearn.ensemble._hist_gradient_boosting.binning._BinMapper
sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor
sklearn.multiclass._ConstantPredictor
sklearn.neural_network._stochastic_optimizers.AdamOptimizer
sklearn.neural_network._stochastic_optimizers.SGDOptimizer
"""
_NUMBERS = """
bool bool_ float16 float32 float64 int8 int16 int32 int64 longlong uint8 uint16 uint32 uint64 ulonglong
str_ datetime64 timedelta64
"""


def _names(module: str, names: str) -> frozenset[str]:
    return frozenset(f"{module}.{own}" for own in names.split())


_PUBLIC = frozenset(
    f"{module}.{own}" for module, *names in map(str.split, _LISTED.split("\n")[1:-1]) for own in names
)
_INTERNAL = frozenset(_HELD.split()) | _names("sklearn._loss.loss", _LOSSES)
_KEYS = _names("builtins", "bool float int str") | _names("numpy", _NUMBERS)
_TYPES = _KEYS | _names("numpy", "floating number object_") | {"builtins.object", "collections.OrderedDict"}
_ARRAY_KINDS = frozenset("biufcSUMm")
_HANDLES = {  # what boosters are rebuilt from, by their libraries
    "lightgbm.basic.Booster": (("_handle", "handle"), "JsonNode"),
    "xgboost.core.Booster": (("handle",), "BytearrayNode"),
}


def write_estimator(estimator: Any) -> tuple[bytes, str]:
    """Return an estimator as bytes, the same for the same estimator, and the name of its class."""
    skops = _skops()
    name = type(estimator).__name__
    try:
        content = skops.dumps(estimator)
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{name} cannot be saved, as skops does not know all of it: {reason}") from error
    try:
        return _only_form(content, is_new=True)
    except StrangeError as error:
        raise ValueError(
            f"{name} cannot be saved: it holds {error}, which is not among the classes that are read again. "
            "Functions, and estimators that keep rows, are not: see `Saving and loading` on the page "
            "`Keep a model` of the guide."
        ) from error


def read_estimator(content: bytes, name: str) -> Any:
    """Read what `write_estimator` returned, if it is of a class of that name.

    It may come from anybody: no object is made unless all of it is of the listed classes.
    """
    skops = _skops()
    try:
        same, found = _only_form(content)
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
    """Refuse trees whose nodes refer to places outside their arrays: scikit-learn does not check them."""
    from sklearn import ensemble, tree
    from sklearn.tree._tree import Tree

    trees = tree.DecisionTreeClassifier, tree.DecisionTreeRegressor
    forests = (
        *(ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor),
        *(ensemble.RandomForestClassifier, ensemble.RandomForestRegressor),
    )
    histograms = ensemble.HistGradientBoostingClassifier, ensemble.HistGradientBoostingRegressor
    for own in _objects_in(estimator):
        fits = True
        if isinstance(own, Tree):
            left, right = own.children_left, own.children_right
            fits = _leads_on(left, right, left == -1, own.feature, own.n_features)
        elif isinstance(own, trees) and hasattr(own, "tree_"):
            fits = isinstance(own.tree_, Tree) and own.tree_.n_features == own.n_features_in_
        elif isinstance(own, forests) and hasattr(own, "estimators_"):
            fits = all(
                isinstance(one, trees) and one.tree_.n_features == own.n_features_in_
                for one in own.estimators_
            )
        elif isinstance(own, histograms) and hasattr(own, "_predictors"):
            fits = all(_predicts(one, own) for trees_at in own._predictors for one in trees_at)
        if not fits:
            raise ValueError("a tree leads out of its nodes or columns.")


def _predicts(tree: Any, forest: Any) -> bool:
    """Return whether a tree of histograms stays within its nodes, columns and sets of categories."""
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
    """Return whether every inner node leads to later ones, and has a column that exists."""
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


class StrangeError(ValueError):
    """A file holds what saved estimators never contain."""


def _only_form(content: bytes, *, is_new: bool = False) -> tuple[bytes, str]:
    """Return the one form that a file may have, and the class of its object; refuse what is not listed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if not is_new and any(own.compress_type != zipfile.ZIP_STORED for own in archive.infolist()):
            raise StrangeError("files that are compressed")
        given = json.loads(archive.read(_SCHEMA))
        form = _Form(archive, is_new=is_new)
        schema = form.node(given, "ObjectNode")
        protocol, version = given.get("protocol"), given.get("_skops_version")
        if type(protocol) is not int or protocol not in _PROTOCOLS or not isinstance(version, str):
            raise StrangeError(f"a schema of protocol {protocol!r}")
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as copy:
            for name, own in form.files.values():
                copy.writestr(zipfile.ZipInfo(name), own)
            schema |= {"protocol": protocol, "_skops_version": version}
            copy.writestr(zipfile.ZipInfo(_SCHEMA), json.dumps(schema))
    return written.getvalue(), _name_of(schema)


def _name_of(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"


@cache
def _is_estimator(name: str) -> bool:
    """Return whether a name is that of a listed class; nothing is imported that is not listed."""
    if name in _INTERNAL:
        return True
    parts = name.split(".")
    for module in (parts[0], ".".join(parts[:2])):
        if f"{module}.{parts[-1]}" in _PUBLIC:
            try:
                found = getattr(import_module(module), parts[-1], None)
            except ImportError:
                return False
            return isinstance(found, type) and f"{found.__module__}.{found.__qualname__}" == name
    return False


@cache
def _losses() -> frozenset[str]:
    """Return the listed losses by the names of their classes, which depend on scikit-learn's version."""
    from sklearn._loss import _loss
    from sklearn.linear_model import _sgd_fast

    names = [(_loss, f"Cy{own}") for own in _LOSSES.split()]
    names += [(_sgd_fast, own) for own in _SGD_LOSSES.split()]
    found = [getattr(module, own) for module, own in names if hasattr(module, own)]
    return frozenset(f"{own.__module__}.{own.__name__}" for own in found)


class _Form:
    """Reads a schema node by node, and returns every node with what its kind has, and nothing else.

    Objects are numbered in the order in which they come, and so are the files of their arrays; skops names
    both by places in memory.
    """

    def __init__(self, archive: zipfile.ZipFile, *, is_new: bool) -> None:
        self._archive = archive
        self._is_new = is_new
        self._numbers: dict[int, int] = {}
        self.files: dict[str, tuple[str, bytes]] = {}

    def node(self, given: Any, *loaders: str) -> dict[str, Any]:
        """Return a node, which must be of one of these kinds if any are named."""
        if not isinstance(given, dict) or type(given.get("__id__")) is not int:
            raise StrangeError("an invalid node")
        if not all(isinstance(given.get(key), str) for key in ("__class__", "__module__", "__loader__")):
            raise StrangeError("a node without a class")
        loader, name = given["__loader__"], _name_of(given)
        if loader not in _LOADERS or (loaders and loader not in loaders):
            raise StrangeError(f"{name} as {loader}")
        is_allowed, content = _LOADERS[loader]
        if not is_allowed(name):
            raise StrangeError(name)
        number = self._numbers.setdefault(given["__id__"], len(self._numbers) + 1)
        own = {key: given[key] for key in ("__class__", "__module__", "__loader__")} | {"__id__": number}
        return own | content(self, given)

    def items(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [self.node(own) for own in _of_type(list, given.get("content"))]}

    def nothing(self, given: dict[str, Any]) -> dict[str, Any]:
        return {}

    def mapping(self, given: dict[str, Any]) -> dict[str, Any]:
        keys = self.node(given.get("key_types"), "ListNode")
        content = _of_type(dict, given.get("content"))
        names = [_name_of(own) for own in keys["content"] if own["__loader__"] == "TypeNode"]
        if not len(content) == len(names) == len(keys["content"]) or not set(names) <= _KEYS:
            raise StrangeError("invalid keys")
        return {"key_types": keys, "content": {key: self.node(own) for key, own in content.items()}}

    def text(self, given: dict[str, Any]) -> dict[str, Any]:
        json.loads(_of_type(str, given.get("content")))
        return {"content": given["content"], "is_json": True}

    def ends(self, given: dict[str, Any]) -> dict[str, Any]:
        ends = _of_type(dict, given.get("content"))
        own = {key: ends.get(key) for key in ("start", "stop", "step")}
        if not all(end is None or type(end) is int for end in own.values()):
            raise StrangeError("a slice between no numbers")
        return {"content": own}

    def file(self, given: dict[str, Any]) -> dict[str, Any]:
        name = _of_type(str, given.get("file"))
        if name not in self.files:
            ending = "npy" if name.endswith(".npy") else "bin"
            self.files[name] = (f"{len(self.files)}.{ending}", self._archive.read(name))
        return {"file": self.files[name][0]}

    def array(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("type") == "json":
            return {"type": "json", **self.items(given), "shape": self.node(given.get("shape"), "TupleNode")}
        if given.get("type") != "numpy":
            raise StrangeError("an array of no known type")
        own = {"type": "numpy", **self.file(given)}
        content = self.files[given["file"]][1]
        _check_array(content)
        if self._is_new:
            self.files[given["file"]] = (own["file"], _without_gaps(content))
        return own

    def inner(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"content": self.node(given.get("content"), "NdArrayNode", "DictNode")}

    def defaults(self, given: dict[str, Any]) -> dict[str, Any]:
        content = _of_type(dict, given.get("content"))
        main = self.node(content.get("main"), "DictNode")
        factory = self.node(content.get("default_factory"), "TypeNode")
        return {"content": {"main": main, "default_factory": factory}}

    def generator(self, given: dict[str, Any]) -> dict[str, Any]:
        content = _of_type(dict, given.get("content"))
        own = {key: self.node(state, "DictNode") for key, state in content.items()}
        bits = own.get("bit_generator", {}).get("content", {}).get("bit_generator", {}).get("content")
        if not set(own) <= {"bit_generator", "seed_seq"} or bits != '"PCG64"':
            raise StrangeError("a generator of another kind than PCG64")
        return {"content": own}

    def built(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return what is made by a constructor that skops knows: trees and losses, of numbers only."""
        content = self.node(given.get("content"), "DictNode", "TupleNode", "JsonNode")
        reduced = _of_type(dict, given.get("__reduce__"))
        arguments = self.node(reduced.get("args"), "TupleNode", "ListNode", "JsonNode")
        if given["__loader__"] == "LossNode":
            numbers = [own for own in arguments["content"] if isinstance(own, dict)]
            if any(own["__loader__"] != "JsonNode" for own in numbers) or (
                content["__loader__"] != "JsonNode" and content["content"]
            ):
                raise StrangeError("a loss that is made of other things than numbers")
        else:
            self._check_tree(arguments, content)
        return {"__reduce__": {"args": arguments}, "content": content}

    def _check_tree(self, arguments: dict[str, Any], state: dict[str, Any]) -> None:
        """Refuse a tree whose constructor would read beyond an array's end."""
        try:
            n_features, classes, n_outputs = arguments["content"]
            counts = json.loads(n_features["content"]), json.loads(n_outputs["content"])
            held = dict(self.files.values())
            shape = np.load(io.BytesIO(held[classes["file"]]), allow_pickle=False)
            nodes = np.load(io.BytesIO(held[state["content"]["nodes"]["file"]]), allow_pickle=False)
            fits = (
                all(type(count) is int and 0 < count < 2**31 for count in counts)
                and shape.shape == (counts[1],)
                and shape.dtype == np.intp
                and ((shape > 0) & (shape < 2**31)).all()
                and json.loads(state["content"]["node_count"]["content"]) == len(nodes)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StrangeError("an invalid tree") from error
        if not fits:
            raise StrangeError("an invalid tree")

    def state(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return what an object is made of: its attributes, by name."""
        name = _name_of(given)
        if given.get("content") is None:
            return {}
        content = self.node(given["content"], "DictNode", "JsonNode")
        attributes = content["content"] if content["__loader__"] == "DictNode" else {}
        if attributes and {_name_of(own) for own in content["key_types"]["content"]} != {"builtins.str"}:
            raise StrangeError(f"{name} with attributes that are no names")
        handles, loader = _HANDLES.get(name, ((), ""))
        for own in handles:
            if own in attributes and attributes[own]["__loader__"] != loader:
                raise StrangeError(f"{name} of no model")
            if own in attributes and loader == "JsonNode":
                check_text(_of_type(str, json.loads(attributes[own]["content"])))
        if name == "sklearn.pipeline.Pipeline" and attributes.get("memory", {}).get("content") != "null":
            if not self._is_new:
                raise StrangeError(f"{name} with a cache")
            attributes["memory"] = {  # a fitted pipeline needs none, and joblib's holds pickles
                **{"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"},
                **{"__id__": attributes["memory"]["__id__"], "content": "null", "is_json": True},
            }
        return {"content": content}


def _only(*names: str) -> Callable[[str], bool]:
    return frozenset(names).__contains__


# Of every kind of node: the classes that it may be of, and how it is read. Whatever skops has besides
# (functions, methods, partials, constructors by reduce, sparse matrices, old protocols) is refused.
_LOADERS: dict[str, tuple[Callable[[str], bool], Callable[[_Form, dict[str, Any]], dict[str, Any]]]] = {
    "BytearrayNode": (_only("builtins.bytearray"), _Form.file),
    "BytesNode": (_only("builtins.bytes"), _Form.file),
    "DTypeNode": (_only("numpy.dtype"), _Form.inner),
    "DefaultDictNode": (_only("collections.defaultdict"), _Form.defaults),
    "DictNode": (
        _only("builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"),
        _Form.mapping,
    ),
    "JsonNode": (_only("builtins.str"), _Form.text),
    "ListNode": (_only("builtins.list"), _Form.items),
    "LossNode": (lambda name: name in _losses(), _Form.built),
    "NdArrayNode": (_only("numpy.ndarray", *_names("numpy", _NUMBERS)), _Form.array),
    "ObjectNode": (_is_estimator, _Form.state),
    "RandomGeneratorNode": (_only("numpy.random._generator.Generator"), _Form.generator),
    "RandomStateNode": (_only("numpy.random.mtrand.RandomState"), _Form.inner),
    "SetNode": (_only("builtins.set"), _Form.items),
    "SliceNode": (_only("builtins.slice"), _Form.ends),
    "TreeNode": (_only("sklearn.tree._tree.Tree"), _Form.built),
    "TupleNode": (_only("builtins.tuple"), _Form.items),
    "TypeNode": (_only(*_TYPES), _Form.nothing),
}


def _of_type(kind: type, given: Any) -> Any:
    if not isinstance(given, kind):
        raise StrangeError(f"a node without its {kind.__name__}")
    return given


def _check_array(content: bytes) -> None:
    """Refuse what NumPy would not read as one array of numbers or text: an archive, a pickle, a torn file."""
    stream = io.BytesIO(content)
    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(stream)
    except (ValueError, KeyError, SyntaxError, TypeError) as error:
        raise StrangeError("a file that is no array") from error
    kinds = {dtype[name].base.kind for name in dtype.names} if dtype.names else {dtype.kind}
    n_bytes = dtype.itemsize * int(np.prod(shape, dtype=object))
    if version > (2, 0) or not kinds <= _ARRAY_KINDS or n_bytes != len(content) - stream.tell():
        raise StrangeError("a file that is no array of numbers or text")


def _without_gaps(content: bytes) -> bytes:
    """Clear the bytes between the fields of an array's entries, which are random memory."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.dtype.names is None:
        return content
    cleared, written = np.zeros(array.shape, array.dtype), io.BytesIO()
    for name in array.dtype.names:
        cleared[name] = array[name]
    np.save(written, cleared, allow_pickle=False)
    return written.getvalue()
