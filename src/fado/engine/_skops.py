"""Fitted estimators as bytes that run no code when they are read: files of skops, with a short list of types.

skops builds whatever types its caller trusts. Before it does, every node of a file must be of a kind and a
class that are listed below; then skops audits the file with the same list.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

_SCHEMA = "schema.json"  # in a file of skops
_PROTOCOLS = (1, 2)  # of skops; what an older one has is read in other ways

# Not listed, and so not saved: estimators that keep rows (nearest neighbours, kernels) or functions, and
# GradientBoosting, whose trees stand in arrays of objects.
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
    return frozenset(f"{module}.{name}" for name in names.split())


_PIPELINE = "sklearn.pipeline.Pipeline"
_PUBLIC = frozenset(
    f"{module}.{name}" for module, *names in map(str.split, _LISTED.split("\n")[1:-1]) for name in names
)
_INTERNAL = frozenset(_HELD.split()) | _names("sklearn._loss.loss", _LOSSES)
_SCALARS = _names("numpy", _NUMBERS)
_TYPES = _names("builtins", "bool float int str object") | {"collections.OrderedDict"}
_TYPES |= _SCALARS | _names("numpy", "floating number object_")
_COMPILED = " ".join(f"Cy{name}" for name in _LOSSES.split())

# The classes of every kind of node, except those of "ObjectNode", the estimators. What skops has besides
# (functions, methods, partials, constructors by reduce, sparse matrices) is refused.
_CLASSES: dict[str, Collection[str]] = {
    "BytearrayNode": {"builtins.bytearray"},
    "BytesNode": {"builtins.bytes"},
    "DTypeNode": {"numpy.dtype"},
    "DefaultDictNode": {"collections.defaultdict"},
    "DictNode": {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"},
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "LossNode": {  # some versions of scikit-learn leave out the package
        *(_names("_loss", _COMPILED) | _names("sklearn._loss._loss", _COMPILED)),
        *(_names("_sgd_fast", _SGD_LOSSES) | _names("sklearn.linear_model._sgd_fast", _SGD_LOSSES)),
    },
    "NdArrayNode": {"numpy.ndarray"} | _SCALARS,
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "TreeNode": {"sklearn.tree._tree.Tree"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": _TYPES,
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
    # skops names nodes and files by places in memory: here they are numbered in their order.
    files, numbers = dict[str, tuple[str, bytes]](), dict[int, int]()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(_SCHEMA))
        for node in _nodes(schema):
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
            if _name_of(node) == _PIPELINE:  # fitted, it needs no cache
                node["content"]["content"]["memory"] = {
                    **{"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"},
                    **{"__id__": 0, "content": "null", "is_json": True},
                }
            if "file" in node:
                is_array, held = node["__loader__"] == "NdArrayNode", archive.read(node["file"])
                number = f"{len(files)}.{'npy' if is_array else 'bin'}"
                files.setdefault(node["file"], (number, _without_gaps(held) if is_array else held))
                node["file"] = files[node["file"]][0]
    strange = _strange_part(schema)
    if strange is not None:
        raise ValueError(
            f"{name} cannot be saved: it holds {strange}, which is not among the classes that are read "
            "again. Functions, and estimators that keep rows, are not: see `Saving and loading` on the page "
            "`Keep a model` of the guide."
        )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for path, held in [*files.values(), (_SCHEMA, json.dumps(schema).encode())]:
            archive.writestr(zipfile.ZipInfo(path), held)
    return written.getvalue(), _name_of(schema)


def read_estimator(content: bytes, name: str) -> Any:
    """Read what `write_estimator` returned, if it is of a class of that name.

    It may come from anybody: no object is made unless all of it is of the listed classes.
    """
    skops = _skops()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            schema = json.loads(archive.read(_SCHEMA))
            strange = _strange_part(schema)
            if strange is None:
                for node in _nodes(schema):
                    if node["__loader__"] == "NdArrayNode" and "file" in node:  # neither archive nor pickle
                        np.lib.format.read_array(io.BytesIO(archive.read(node["file"])), allow_pickle=False)
                untrusted = skops.get_untrusted_types(data=content)
    except Exception as error:
        raise ValueError("The content is of no estimator that was saved, or it is damaged.") from error
    if strange is not None:
        raise ValueError(f"The content holds {strange}, which is not to be trusted.")
    if _name_of(schema) != name:
        raise ValueError(f"The content is of {_name_of(schema)}, and {name!r} was said to be there.")
    try:
        return skops.loads(content, trusted=[name for name in untrusted if _is_listed(name)])
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"The estimator cannot be read by the libraries that are here: {reason}") from error


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


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Go through all nodes of a schema."""
    if isinstance(schema, dict):
        if "__loader__" in schema:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from _nodes(part)


def _name_of(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"


def _is_estimator(name: str) -> bool:
    """Return whether a name is that of a listed class, which may stand in a private module."""
    *modules, last = name.split(".")
    public = ".".join([*modules[:2], last]), ".".join([*modules[:1], last])
    return name in _INTERNAL or not _PUBLIC.isdisjoint(public)


def _is_listed(name: str) -> bool:
    return _is_estimator(name) or any(name in classes for classes in _CLASSES.values())


def _strange_part(schema: dict[str, Any]) -> str | None:
    """Return what saved estimators never contain, if a schema has it; nothing is imported."""
    if schema["protocol"] not in _PROTOCOLS:
        return f"a schema of protocol {schema['protocol']!r}"
    for node in _nodes(schema):
        kind, name = node["__loader__"], _name_of(node)
        if kind != "ObjectNode" and kind not in _CLASSES:
            return f"{name} as {kind}"
        if not (_is_estimator(name) if kind == "ObjectNode" else name in _CLASSES[kind]):
            return name
        # joblib reads pickles from a pipeline's cache
        if name == _PIPELINE and node["content"]["content"]["memory"]["content"] != "null":
            return f"{name} with a cache"
        # some versions of skops call whatever numpy.random has of this name
        if kind == "RandomGeneratorNode":
            bits = node["content"]["bit_generator"]["content"]["bit_generator"]["content"]
            if bits != '"PCG64"':
                return f"a generator of {bits}"
    return None


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
