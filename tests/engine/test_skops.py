"""Estimators in files of skops: what is saved comes back to the bit, and a foreign file runs nothing."""

import copy
import io
import json
import pickle
import sys
import zipfile

import numpy as np
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
}


def content_of(estimator):
    return write_estimator(estimator)[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", SAVED.values(), ids=SAVED)
def test_listed_estimators_come_back_to_the_bit(estimator):
    estimator = copy.deepcopy(estimator).fit(X, Y)
    content, name = write_estimator(estimator)
    read = read_estimator(content, name)
    assert type(read) is type(estimator)
    np.testing.assert_array_equal(read.predict_proba(X), estimator.predict_proba(X))
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


def test_columns_that_are_chosen_by_their_type_are_saved():
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abc"))
    encode = make_column_transformer((StandardScaler(), make_column_selector(dtype_include=np.number)))
    estimator = make_pipeline(encode, LogisticRegression()).fit(frame, Y)
    read = read_estimator(*write_estimator(estimator))
    np.testing.assert_array_equal(read.predict_proba(frame), estimator.predict_proba(frame))


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
        module, _, own = name.rpartition(".")
        self._next += 1
        return {"__class__": own, "__module__": module, "__loader__": loader, "__id__": self._next, **content}

    def json(self, value):
        return self.node("builtins.str", "JsonNode", content=json.dumps(value), is_json=True)

    def tuple(self, *values):
        return self.node("builtins.tuple", "TupleNode", content=list(values))

    def mapping(self, key_type="builtins.str", **values):
        types = [self.node(key_type, "TypeNode") for _ in values]
        keys = self.node("builtins.list", "ListNode", content=types)
        return self.node("builtins.dict", "DictNode", key_types=keys, content=values)

    def hold(self, node):
        """Put a node among the estimator's attributes."""
        self.attributes["strange_"] = node
        own = self.schema["content"]["key_types"]["content"]
        own.append(self.node("builtins.str", "TypeNode"))

    def array(self, content, name="9.npy"):
        self.files[name] = content
        return self.node("numpy.ndarray", "NdArrayNode", type="numpy", file=name)

    def bytes(self, compression=zipfile.ZIP_STORED, schema=None):
        files = {**self.files, "schema.json": json.dumps(self.schema) if schema is None else schema}
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as archive:
            for name, content in files.items():
                archive.writestr(zipfile.ZipInfo(name), content, compression)
        return written.getvalue()


def npz(**arrays):
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue()


def pickled_array():
    written = io.BytesIO()
    np.save(written, np.array([Trap()], dtype=object), allow_pickle=True)
    return written.getvalue()


class Trap:
    def __reduce__(self):
        return exec, ("raise SystemExit(3)",)


def a_memory_map(file, victim):
    file.hold(
        file.node(
            "numpy.memmap",
            "ConstructorFromReduceNode",
            content=file.tuple(
                file.json(victim), file.json("uint8"), file.json("w+"), file.json(0), file.json(8)
            ),
        )
    )


def a_memory_map_as_a_key(file, victim):
    file.hold(file.mapping("numpy.memmap", **{victim: file.json(1)}))


def a_memory_map_as_an_array(file, victim):
    file.hold(file.array(npy(np.zeros(3))) | {"__class__": "memmap"})


def a_lazy_archive_with_pickles(file, victim):
    attributes = file.mapping(
        zip=file.json(None),
        allow_pickle=file.json(True),
        files=file.node("builtins.list", "ListNode", content=[]),
    )
    archive = file.node("numpy.lib.npyio.NpzFile", "ObjectNode", content=attributes)
    factory = file.node("collections.OrderedDict", "TypeNode")
    content = {"main": archive, "default_factory": factory}
    file.hold(file.node("collections.defaultdict", "DefaultDictNode", content=content))


def an_archive_in_place_of_an_array(file, victim):
    file.hold(file.array(npz(a=np.zeros(2))))


def an_array_that_is_a_pickle(file, victim):
    file.hold(file.array(pickled_array()))


def a_pickle_in_place_of_an_array(file, victim):
    file.hold(file.array(pickle.dumps(Trap())))


def a_torn_array(file, victim):
    file.hold(file.array(npy(np.zeros(9))[:-8]))


def a_sparse_matrix(file, victim):
    file.files["9.npz"] = npz(data=np.zeros(1))
    file.hold(file.node("scipy.sparse._csr.csr_matrix", "SparseMatrixNode", type="scipy", file="9.npz"))


def a_factory_of_other_things(file, victim):
    content = {"main": file.mapping(), "default_factory": file.node("numpy.memmap", "TypeNode")}
    file.hold(file.node("collections.defaultdict", "DefaultDictNode", content=content))


def a_function(file, victim):
    file.hold(file.node("os.system", "FunctionNode"))


def a_harmless_function(file, victim):
    file.hold(file.node("numpy.arctan", "FunctionNode"))


def a_function_as_a_type(file, victim):
    file.hold(file.node("builtins.eval", "TypeNode"))


def a_method(file, victim):
    content = {"func": "set_params", "obj": file.node(LOGISTIC, "ObjectNode", content=file.mapping())}
    file.hold(file.node(LOGISTIC, "MethodNode", content=content))


def a_partial(file, victim):
    content = {
        "func": file.node("os.system", "FunctionNode"),
        "args": file.tuple(file.json("true")),
        "kwds": file.mapping(),
        "namespace": file.json(None),
    }
    file.hold(file.node("functools.partial", "PartialNode", content=content))


def an_operator(file, victim):
    file.hold(file.node("operator.methodcaller", "OperatorFuncNode", attrs=file.tuple(file.json("mro"))))


def a_generator_by_another_name(file, victim):
    bits = file.mapping(bit_generator=file.json("seed"), state=file.json(1))
    content = {"bit_generator": bits, "seed_seq": file.mapping(entropy=file.json(1))}
    file.hold(file.node("numpy.random._generator.Generator", "RandomGeneratorNode", content=content))


def a_generator_of_the_first_protocol(file, victim):
    content = {"bit_generator": {"bit_generator": "seed"}}
    file.hold(file.node("numpy.random._generator.Generator", "RandomGeneratorNode", content=content))
    file.schema["protocol"] = 0


def a_cache_that_is_read_by_joblib(file, victim):
    attributes = file.mapping(location=file.json(victim))
    file.hold(file.node("joblib.memory.Memory", "ObjectNode", content=attributes))


def a_pipeline_with_a_cache(file, victim):
    attributes = file.mapping(
        steps=file.node("builtins.list", "ListNode", content=[]), memory=file.json(victim)
    )
    file.hold(file.node("sklearn.pipeline.Pipeline", "ObjectNode", content=attributes))


def a_class_through_a_module(file, victim):
    file.hold(file.node("sklearn.pipeline.joblib.Memory", "ObjectNode", content=file.mapping()))


def a_class_of_the_standard_library(file, victim):
    file.hold(file.node("zipfile.ZipFile", "ObjectNode", content=file.mapping()))


def a_transformer_that_is_not_listed(file, victim):
    attributes = file.mapping(input=file.json("filename"))
    name = "sklearn.feature_extraction.text.CountVectorizer"
    file.hold(file.node(name, "ObjectNode", content=attributes))


def a_named_tuple(file, victim):
    file.hold(file.tuple(file.json(victim)) | {"__module__": "zipfile", "__class__": "_CompatNamedTuple"})


def a_list_by_another_class(file, victim):
    file.hold(file.node("builtins.map", "ListNode", content=[]))


def a_dict_by_another_class(file, victim):
    file.hold(file.mapping() | {"__module__": "os", "__class__": "_Environ"})


def a_loss_by_another_class(file, victim):
    arguments = {"args": file.tuple(file.json(victim))}
    file.hold(file.node("numpy.memmap", "LossNode", __reduce__=arguments, content=file.mapping()))


def a_loss_of_an_object(file, victim):
    inner = file.node("builtins.list", "ListNode", content=[])
    name = "sklearn._loss._loss.CyPinballLoss"
    file.hold(file.node(name, "LossNode", __reduce__={"args": file.tuple(inner)}, content=file.mapping()))


def a_tree_of_more_outputs_than_it_has(file, victim):
    classes, nodes = file.array(npy(np.array([2]))), file.array(npy(np.zeros(1)), "8.npy")
    arguments = {"args": file.tuple(file.json(3), classes, file.json(10**6))}
    state = file.mapping(max_depth=file.json(1), node_count=file.json(1), nodes=nodes, values=nodes)
    file.hold(file.node("sklearn.tree._tree.Tree", "TreeNode", __reduce__=arguments, content=state))


def a_booster_at_an_address(file, victim):
    attributes = file.mapping(handle=file.json(140_000_000))
    file.hold(file.node("xgboost.core.Booster", "ObjectNode", content=attributes))


def a_loader_that_is_not_known(file, victim):
    file.hold(file.node("quantile_forest.QuantileForest", "QuantileForestNode"))


def a_reference_to_another_node(file, victim):
    file.hold(file.node(LOGISTIC, "CachedNode") | {"__id__": 1})


def a_name_out_of_the_archive(file, victim):
    file.hold(file.node("numpy.ndarray", "NdArrayNode", type="numpy", file=victim))


def more_keys_than_a_node_has(file, victim):
    file.attributes["C"]["note"] = file.node("os.system", "FunctionNode")


def a_node_without_an_identity(file, victim):
    file.hold({key: own for key, own in file.json(1).items() if key != "__id__"})


def a_node_that_is_text(file, victim):
    file.hold("os.system")


def many_nodes_within_each_other(file, victim):
    node = file.json(1)
    for _ in range(3_000):
        node = file.node("builtins.list", "ListNode", content=[node])
    file.hold(node)


def npy(array):
    written = io.BytesIO()
    np.save(written, array, allow_pickle=False)
    return written.getvalue()


ATTACKS = [own for name, own in list(globals().items()) if name.split("_")[0] in ("a", "an", "more", "many")]


@pytest.fixture
def no_construction(monkeypatch):
    """What is refused must be refused before skops makes anything of it."""

    def refuse(*arguments, **settings):
        raise AssertionError("skops was asked to make something")

    monkeypatch.setattr(skops, "loads", refuse)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda own: own.__name__)
def test_a_file_that_somebody_made_is_refused_and_nothing_is_made_of_it(attack, tmp_path, no_construction):
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    file = File()
    attack(file, str(victim))
    try:
        content = file.bytes()
    except RecursionError:  # the writer gives up before the reader
        content = file.bytes(schema="[" * 100_000)
    with pytest.raises(ValueError, match=r"not to be trusted|is damaged"):
        read_estimator(content, file.name)
    assert victim.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [victim]


def test_there_are_more_than_twenty_attacks():
    assert len(ATTACKS) > 30


def test_a_file_has_one_form(no_construction):
    file = File()
    content = file.bytes()
    twice = io.BytesIO(content)
    with zipfile.ZipFile(twice, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("schema.json", json.dumps(file.schema))
    text = json.dumps(file.schema)
    doubled = text.replace(
        '"__class__": "LogisticRegression"', '"__class__": "x", "__class__": "LogisticRegression"'
    )
    assert doubled != text
    file.files["note.txt"] = b"x"
    others = {
        "twice": twice.getvalue(),
        "compressed": File().bytes(zipfile.ZIP_DEFLATED),
        "doubled": File().bytes(schema=doubled),
        "spaced": File().bytes(schema=text + " "),
        "more files": file.bytes(),
        "more bytes": content + b"x",
        "before": b"x" + content,
    }
    for own in others.values():
        with pytest.raises(ValueError, match=r"not to be trusted|is damaged"):
            read_estimator(own, file.name)


def test_the_estimator_is_of_the_class_that_was_said(no_construction):
    with pytest.raises(ValueError, match=r"is of \S*StandardScaler, and '\S*LogisticRegression' was said"):
        read_estimator(content_of(StandardScaler().fit(X)), LOGISTIC)


@pytest.mark.parametrize(
    ("field", "value"), [("left_child", 10**6), ("left_child", 0), ("feature", 3), ("feature", -9)]
)
def test_a_tree_that_leads_out_of_its_nodes_is_refused(field, value):
    file = File(DecisionTreeClassifier(max_depth=2, random_state=0))
    nodes = file.attributes["tree_"]["content"]["content"]["nodes"]["file"]
    array = np.load(io.BytesIO(file.files[nodes]))
    array[field][0] = value
    file.files[nodes] = npy(array)
    with pytest.raises(ValueError, match="a tree leads out of its nodes or columns"):
        read_estimator(file.bytes(), file.name)


@pytest.mark.parametrize(
    ("field", "value"), [("left", 10**6), ("right", 0), ("feature_idx", 3), ("bitset_idx", 7)]
)
def test_a_tree_of_histograms_that_leads_out_of_its_arrays_is_refused(field, value):
    file = File(HistGradientBoostingClassifier(max_iter=1))
    tree = file.attributes["_predictors"]["content"][0]["content"][0]
    nodes = tree["content"]["content"]["nodes"]["file"]
    array = np.load(io.BytesIO(file.files[nodes]))
    array[field][0] = value
    if field == "bitset_idx":
        array["is_categorical"][0] = 1
    file.files[nodes] = npy(array)
    with pytest.raises(ValueError, match="a tree leads out of its nodes or columns"):
        read_estimator(file.bytes(), file.name)


def test_a_tree_in_a_forest_of_fewer_columns_is_refused():
    file = File(RandomForestClassifier(2, random_state=0))
    file.attributes["n_features_in_"]["content"] = "2"
    with pytest.raises(ValueError, match="a tree leads out of its nodes or columns"):
        read_estimator(file.bytes(), file.name)


def test_a_booster_is_checked_before_lightgbm_reads_it(no_construction):
    file = File(LGBMClassifier(n_estimators=2, verbosity=-1, n_jobs=1))
    booster = file.attributes["_Booster"]["content"]["content"]["_handle"]
    text = json.loads(booster["content"])
    assert "left_child=" in text
    booster["content"] = json.dumps(text.replace("left_child=", "left_child=9 ", 1))
    with pytest.raises(ValueError, match="of no estimator that was saved, or it is damaged"):
        read_estimator(file.bytes(), file.name)


WATCHED = {"active": False, "seen": []}
DANGEROUS = (
    "os.",
    "subprocess.",
    "pickle.",
    "socket.",
    "shutil.",
    "ctypes.dlopen",
    "compile",
    "exec",
    "open",
)


def _watch(event, arguments):
    if not WATCHED["active"] or not event.startswith(DANGEROUS):
        return
    reads = event == "open" and not (arguments[2] or 0) & 0o3
    listing = event in ("os.listdir", "os.scandir", "compile", "exec")  # an import's
    if not reads and not listing:
        WATCHED["seen"].append((event, arguments))


sys.addaudithook(_watch)
POOL = {
    "__class__": [
        "memmap",
        "system",
        "eval",
        "NpzFile",
        "Memory",
        "Popen",
        "ndarray",
        "dict",
        "Pipeline",
        "Path",
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
    if isinstance(tree, list):
        for own in tree:
            yield from nodes_of(own)


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


def test_regressors_are_read_too():
    estimator = LinearRegression().fit(X, X[:, 1])
    np.testing.assert_array_equal(
        read_estimator(*write_estimator(estimator)).predict(X), estimator.predict(X)
    )
