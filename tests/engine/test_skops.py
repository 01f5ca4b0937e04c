"""Estimators in files of skops: what is saved comes back to the bit, and a foreign file runs nothing."""

import copy
import io
import json
import pickle
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, QuantileTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

skops = pytest.importorskip("skops.io")

from fado.engine._skops import read_estimator, write_estimator  # noqa: E402 - needs skops

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)
LOGISTIC = "sklearn.linear_model._logistic.LogisticRegression"

SAVED = {
    "logistic": LogisticRegression(),
    "sgd": SGDClassifier(loss="log_loss", random_state=0),
    "linear discriminant": LinearDiscriminantAnalysis(),
    "quadratic discriminant": QuadraticDiscriminantAnalysis(),
    "naive": GaussianNB(),
    "dummy": DummyClassifier(),
    "network": MLPClassifier((3,), max_iter=3, tol=10.0, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "forest": RandomForestClassifier(3, random_state=0),
    "extra trees": ExtraTreesClassifier(3, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=3),
    "ada": AdaBoostClassifier(n_estimators=3, random_state=0),
    "bagging": BaggingClassifier(n_estimators=3, random_state=0),
    "voting": VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], voting="soft"),
    "stacking": StackingClassifier([("a", GaussianNB())], cv=2),
    "calibrated": CalibratedClassifierCV(LinearSVC(), cv=2),
    "isotonic": CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2),
    "lightgbm": LGBMClassifier(n_estimators=2, verbosity=-1, n_jobs=1),
    "pipeline": make_pipeline(
        SimpleImputer(),
        make_union(StandardScaler(), QuantileTransformer(n_quantiles=5)),
        KBinsDiscretizer(3, strategy="uniform"),
        SelectFromModel(LogisticRegression()),
        FunctionTransformer(),
        LogisticRegression(),
    ),
    "columns": make_pipeline(
        make_column_transformer((StandardScaler(), [0, 1]), remainder="passthrough"), LogisticRegression()
    ),
    "columns by type": make_pipeline(
        make_column_transformer((StandardScaler(), make_column_selector(dtype_include=np.number))),
        LogisticRegression(),
    ),
    "regressor": LinearRegression(),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", SAVED)
def test_listed_estimators_come_back_to_the_bit(kind):
    rows = pd.DataFrame(X, columns=list("abc")) if "type" in kind else X
    estimator = copy.deepcopy(SAVED[kind]).fit(rows, Y)
    content, name = write_estimator(estimator)
    read = read_estimator(content, name)
    assert type(read) is type(estimator)
    predict = "predict" if kind == "regressor" else "predict_proba"
    np.testing.assert_array_equal(getattr(read, predict)(rows), getattr(estimator, predict)(rows))
    assert write_estimator(read) == (content, name)


@pytest.mark.parametrize(
    ("estimator", "held"),
    [
        (KNeighborsClassifier(), "KNeighborsClassifier"),
        (GradientBoostingClassifier(n_estimators=2), "GradientBoostingClassifier"),
        (make_pipeline(FunctionTransformer(np.arctan), LogisticRegression()), "arctan"),
    ],
    ids=["rows", "unchecked memory", "function"],
)
def test_what_is_not_listed_is_not_saved(estimator, held):
    with pytest.raises(ValueError, match=rf"cannot be saved: it holds \S*{held}"):
        write_estimator(estimator.fit(X, Y))


def test_a_pipelines_cache_is_left_out(tmp_path):
    estimator = make_pipeline(StandardScaler(), LogisticRegression(), memory=str(tmp_path)).fit(X, Y)
    read = read_estimator(*write_estimator(estimator))
    assert read.memory is None
    np.testing.assert_array_equal(read.predict_proba(X), estimator.predict_proba(X))


class File:
    """A file of an estimator, to be changed and put together again with all that vouches for it."""

    def __init__(self, estimator=None):
        estimator = LogisticRegression() if estimator is None else estimator
        content, self.name = write_estimator(estimator.fit(X, Y))
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            self.files = {name: archive.read(name) for name in archive.namelist() if name != "schema.json"}
            self.schema = json.loads(archive.read("schema.json"))
        self.attributes = self.schema["content"]["content"]
        self._next = 10_000

    def node(self, name, loader, **content):
        module, _, last = name.rpartition(".")
        self._next += 1
        about = {"__class__": last, "__module__": module, "__loader__": loader, "__id__": self._next}
        return about | content

    def json(self, value):
        return self.node("builtins.str", "JsonNode", content=json.dumps(value), is_json=True)

    def sequence(self, *values, kind="list"):
        return self.node(f"builtins.{kind}", f"{kind.title()}Node", content=list(values))

    def mapping(self, key_type="builtins.str", **values):
        keys = self.sequence(*(self.node(key_type, "TypeNode") for _ in values))
        return self.node("builtins.dict", "DictNode", key_types=keys, content=values)

    def hold(self, node):
        """Put a node among the estimator's attributes."""
        self.attributes["strange_"] = node
        self.schema["content"]["key_types"]["content"].append(self.node("builtins.str", "TypeNode"))

    def array(self, content):
        self.files["9.npy"] = content
        return self.node("numpy.ndarray", "NdArrayNode", type="numpy", file="9.npy")

    def bytes(self, schema=None):
        files = {**self.files, "schema.json": json.dumps(self.schema) if schema is None else schema}
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as archive:
            for name, content in files.items():
                archive.writestr(zipfile.ZipInfo(name), content)
        return written.getvalue()


def npy(array, save=np.save, **settings):
    written = io.BytesIO()
    save(written, array, **settings)
    return written.getvalue()


class Trap:
    def __reduce__(self):
        return exec, ("raise SystemExit(3)",)


def a_lazy_archive_with_pickles(file, victim):
    attributes = file.mapping(zip=file.json(None), allow_pickle=file.json(True), files=file.sequence())
    archive = file.node("numpy.lib.npyio.NpzFile", "ObjectNode", content=attributes)
    factory = file.node("collections.OrderedDict", "TypeNode")
    content = {"main": archive, "default_factory": factory}
    file.hold(file.node("collections.defaultdict", "DefaultDictNode", content=content))


def a_generator(bits, file):
    content = {"bit_generator": bits, "seed_seq": file.mapping(entropy=file.json(1))}
    file.hold(file.node("numpy.random._generator.Generator", "RandomGeneratorNode", content=content))


def a_generator_by_another_name(file, victim):
    a_generator(file.mapping(bit_generator=file.json("seed"), state=file.json(1)), file)


def a_generator_of_the_first_protocol(file, victim):
    a_generator({"bit_generator": "seed"}, file)
    file.schema["protocol"] = 0


def a_pipeline_with_a_cache(file, victim):
    attributes = file.mapping(steps=file.sequence(), memory=file.json(victim))
    file.hold(file.node("sklearn.pipeline.Pipeline", "ObjectNode", content=attributes))


def more_keys_than_a_node_has(file, victim):
    file.attributes["C"]["note"] = file.node("os.system", "FunctionNode")


def many_nodes_within_each_other(file, victim):
    node = file.json(1)
    for _ in range(3_000):
        node = file.sequence(node)
    file.hold(node)


HELD = {  # what is put among an estimator's attributes
    "a memory map": lambda file, victim: file.node(
        "numpy.memmap",
        "ConstructorFromReduceNode",
        content=file.sequence(*map(file.json, (victim, "uint8", "w+", 0, 8)), kind="tuple"),
    ),
    "a memory map as a key": lambda file, victim: file.mapping("numpy.memmap", **{victim: file.json(1)}),
    "a memory map as an array": lambda file, victim: file.array(npy(np.zeros(3))) | {"__class__": "memmap"},
    "an archive in place of an array": lambda file, victim: file.array(npy(np.zeros(2), np.savez)),
    "an array that is a pickle": lambda file, victim: file.array(npy(np.array([Trap()], dtype=object))),
    "a pickle in place of an array": lambda file, victim: file.array(pickle.dumps(Trap())),
    "a torn array": lambda file, victim: file.array(npy(np.zeros(9))[:-8]),
    "a reference to another node": lambda file, victim: file.node(LOGISTIC, "CachedNode") | {"__id__": 1},
    "a name out of the archive": lambda file, victim: file.array(b"") | {"file": victim},
    "a node that is text": lambda file, victim: "os.system",
}
NOT_LISTED = """
builtins.eval TypeNode
builtins.map ListNode
functools.partial PartialNode
joblib.memory.Memory ObjectNode
numpy.arctan FunctionNode
numpy.memmap LossNode
numpy.memmap TypeNode
operator.methodcaller OperatorFuncNode
os._Environ DictNode
os.system FunctionNode
quantile_forest.QuantileForest QuantileForestNode
scipy.sparse._csr.csr_matrix SparseMatrixNode
sklearn.feature_extraction.text.CountVectorizer ObjectNode
sklearn.linear_model._logistic.LogisticRegression MethodNode
sklearn.pipeline.joblib.Memory ObjectNode
zipfile.ZipFile ObjectNode
zipfile._CompatNamedTuple TupleNode
"""
for name in NOT_LISTED.split("\n")[1:-1]:
    HELD[name] = lambda file, victim, name=name: file.node(*name.split(), content=file.mapping())
OTHERS = {
    attack.__name__.replace("_", " "): attack
    for attack in (
        a_lazy_archive_with_pickles,
        a_generator_by_another_name,
        a_generator_of_the_first_protocol,
        a_pipeline_with_a_cache,
        more_keys_than_a_node_has,
        many_nodes_within_each_other,
    )
}


@pytest.fixture
def no_construction(monkeypatch):
    """What is refused must be refused before skops makes anything of it."""

    def refuse(*arguments, **settings):
        raise AssertionError("skops was asked to make something")

    monkeypatch.setattr(skops, "loads", refuse)


@pytest.mark.parametrize("attack", [*OTHERS, *HELD])
def test_a_file_that_somebody_made_is_refused_and_nothing_is_made_of_it(attack, tmp_path, no_construction):
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    file = File()
    if attack in HELD:
        file.hold(HELD[attack](file, str(victim)))
    else:
        OTHERS[attack](file, str(victim))
    try:
        content = file.bytes()
    except RecursionError:  # the writer gives up before the reader
        content = file.bytes(schema="[" * 100_000)
    with pytest.raises(ValueError, match=r"not to be trusted|is damaged"):
        read_estimator(content, file.name)
    assert victim.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [victim]


def test_the_estimator_is_of_the_class_that_was_said(no_construction):
    with pytest.raises(ValueError, match=r"is of \S*StandardScaler, and '\S*LogisticRegression' was said"):
        read_estimator(write_estimator(StandardScaler().fit(X))[0], LOGISTIC)


WATCHED = {"active": False, "seen": []}
RISKY = ("os.", "subprocess.", "pickle.", "socket.", "shutil.", "ctypes.dlopen", "compile", "exec", "open")


def _watch(event, arguments):
    if not WATCHED["active"] or not event.startswith(RISKY):
        return
    reads = event == "open" and not (arguments[2] or 0) & 0o3
    listing = event in ("os.listdir", "os.scandir", "compile", "exec")  # an import's
    if not reads and not listing:
        WATCHED["seen"].append((event, arguments))


sys.addaudithook(_watch)
POOL = {
    "__class__": [
        *("memmap", "system", "eval", "NpzFile", "Memory"),
        *("Popen", "ndarray", "dict", "Pipeline", "Path"),
    ],
    "__module__": ["numpy", "os", "builtins", "numpy.lib.npyio", "joblib.memory", "subprocess", "pathlib"],
    "__loader__": [
        *("ConstructorFromReduceNode", "FunctionNode", "MethodNode", "PartialNode", "OperatorFuncNode"),
        *("TypeNode", "ObjectNode", "DefaultDictNode", "NdArrayNode", "JsonNode", "LossNode", "TreeNode"),
        *("RandomGeneratorNode", "SparseMatrixNode", "CachedNode", "DictNode", "ListNode", "TupleNode"),
    ],
    "type": ["json", "scipy", "numpy", None],
    "file": ["0.npy", "../x", "schema.json", 3],
    "content": [None, "null", "[]", [], {}, "1e999", '{"a": 1}', 7],
    "protocol": [0, 1, 2, 3, "2", True],
}


def nodes_of(tree):
    """Every dict of a schema, nodes or not."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    for part in tree if isinstance(tree, list) else ():
        yield from nodes_of(part)


def test_what_its_library_does_not_take_is_refused():
    odd = File()
    arguments = odd.sequence(odd.sequence(), kind="tuple")
    content = {"__reduce__": {"args": arguments}, "content": odd.mapping()}
    odd.hold(odd.node("sklearn._loss._loss.CyPinballLoss", "LossNode", **content))
    boosted = File(LGBMClassifier(n_estimators=2, verbosity=-1, n_jobs=1))
    booster = boosted.attributes["_Booster"]["content"]["content"]
    booster["_handle"] = boosted.json(140_000_000)  # an address
    for file in (odd, boosted):
        with pytest.raises(ValueError, match="cannot be read by the libraries that are here"):
            read_estimator(file.bytes(), file.name)


@pytest.mark.parametrize("kind", ["logistic", "pipeline", "forest", "histograms"])
def test_schemas_changed_at_random_run_nothing(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = File(copy.deepcopy(SAVED[kind]))
    generator = np.random.default_rng(7)
    read_estimator(file.bytes(), file.name)  # so that all that is listed has been imported
    text, files = json.dumps(file.schema), dict(file.files)
    refused = 0
    for _ in range(150):
        file.schema, file.files = json.loads(text), dict(files)
        nodes = list(nodes_of(file.schema))
        for _ in range(generator.integers(1, 4)):
            node, other = (nodes[generator.integers(len(nodes))] for _ in range(2))
            keys = [key for key in POOL if key in node] or list(node)[:1]
            for key in keys[: generator.integers(1, len(keys) + 1)] if keys else ():
                pool = POOL.get(key, [None])
                drawn = generator.integers(len(pool) + 1)
                node[key] = copy.copy(other) if drawn == len(pool) else pool[drawn]
        WATCHED.update(active=True, seen=[])
        try:
            read = read_estimator(file.bytes(), file.name)
            assert type(read).__module__.startswith("sklearn.")
        except ValueError:
            refused += 1
        finally:
            WATCHED["active"] = False
        assert WATCHED["seen"] == []
    assert refused > 100
    assert not list(tmp_path.iterdir())
