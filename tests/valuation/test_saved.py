"""Values load from a file to the last bit; of any other file, one sentence says what is wrong."""

import copy
import datetime
import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.valuation.same import assert_same

from fado import OutOfBagEntropy, Valuation
from fado.valuation import Provenance, Scale, VariableNote, read_lazily
from fado.valuation._provenance import ENTROPY

KEY = b"fado.valuation"
ENDINGS = pytest.mark.parametrize("ending", ["parquet", "csv"])
BAD = {
    "null": None,
    "list": [],
    "mapping": {},
    "text": "x",
    "negative": -1,
    "enormous": 1e308,
    "flag": True,
    "nested": json.loads("[" * 50 + "]" * 50),
    "list of lists": [[1], {"a": []}],
}


def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    z = {"age": rng.normal(size=60), "sex": rng.integers(0, 3, 60)}
    fitted = OutOfBagEntropy(n_bags=5, random_state=3).fit(X, X[:, 0] > 0, sensitive_features=z)
    return fitted.valuation_.with_provenance(excluded_columns={"age": ("x1",), "sex": ()})


def with_probabilities():
    """Probabilities of 2 labels and of 3 groups at each; nobody has scored row 1."""
    p_z = np.array(
        [[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], [[np.nan] * 3] * 2, [[1.0, 0.0, 0.0], [0.3, 0.3, 0.4]]]
    )
    return Valuation(
        {"y": np.array([0.5, np.nan, 1.0]), "y.probabilities": np.array([0.1, np.nan, 0.2])},
        counts={"y": np.array([1, 0, 2]), "y.probabilities": np.array([1, 0, 2])},
        provenance=Provenance(variables={"y.probabilities": VariableNote("classes", ("a", "b", "c"))}),
        probabilities={"y.probabilities": p_z, "y": np.array([[0.1, 0.9], [np.nan, np.nan], [0.5, 0.5]])},
    )


def of_fields(**fields):
    return Valuation(**{field: {"y": np.array(numbers)} for field, numbers in fields.items()})


MADE = {
    "fitted": fitted,
    "signed": lambda: Valuation.from_values({"y": [0.1, 0.2], "a.b": [-1.0, np.nan]}),
    "not scored": lambda: of_fields(
        values=[0.5, np.nan],
        standard_error=[0.1, np.nan],
        label_probability=[np.nan, np.nan],
        counts=np.array([2, 0], dtype=np.int32),
    ),
    "epistemic": lambda: of_fields(
        values=[0.5, 0.25],
        standard_error=[0.1, 0.2],
        counts=np.array([2, 2], dtype=np.int32),
        epistemic=[0.125, np.nan],
    ),
}


def table_of(valuation, folder):
    valuation.save(folder / "good.parquet")
    return pq.read_table(folder / "good.parquet")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return table_of(fitted(), tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return table_of(with_probabilities(), tmp_path_factory.mktemp("kept"))


def saved(table, path, about=None):
    """Write a table with a description: its own, another, or these very bytes."""
    if about is not None:
        description = about if isinstance(about, bytes) else json.dumps(about).encode()
        table = table.replace_schema_metadata({KEY: description})
    pq.write_table(table, path)
    return path


def load(path):
    """Give what a file holds, or None and why it was refused."""
    try:
        return Valuation.load(path), ""
    except ValueError as error:
        return None, str(error)


def refuse(path, message):
    with pytest.raises(
        ValueError, match=rf"{path.name}' is not a valuation that FADO saved: .*{message}"
    ) as e:
        Valuation.load(path)
    assert len(str(e.value)) < 500


@ENDINGS
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_saved_valuation_loads_to_the_last_bit(make, ending, tmp_path):
    valuation, path = make(), tmp_path / f"v.{ending}"
    valuation.save(path)
    loaded = Valuation.load(path)
    assert_same(loaded, valuation)
    assert loaded.scales == valuation.scales or make is fitted
    assert loaded.metadata == (valuation.metadata if ending == "parquet" else {"algorithm": "given"})
    assert list(tmp_path.iterdir()) == [path]


def test_probabilities_load_to_the_last_bit(tmp_path):
    kept = with_probabilities()
    kept.save(tmp_path / "v.parquet")
    loaded = Valuation.load(tmp_path / "v.parquet")
    assert list(loaded.probabilities) == ["y", "y.probabilities"]
    for name, p in loaded.probabilities.items():
        np.testing.assert_array_equal(p, kept.probabilities[name])
        assert p.flags.writeable
    assert loaded.classes == {"y.probabilities": ("a", "b", "c")}
    np.testing.assert_array_equal(read_lazily(tmp_path / "v.parquet")["y"], kept["y"])
    assert loaded[:0].probabilities["y"].shape == (0, 2)
    with pytest.warns(UserWarning, match=r"A CSV file keeps no probabilities: save the valuation as \.parq"):
        Valuation.from_probabilities([0.5, 0.25]).save(tmp_path / "v.csv")
    assert Valuation.load(tmp_path / "v.csv").probabilities is None


@pytest.mark.parametrize(
    "valuation",
    [
        Valuation.from_values({"y": [0.1, 0.2]}, scales={"y": ENTROPY}),
        Valuation.from_values({"y": [0.1, 0.2], "y.counts": [1.0, 2.0], "a.label_probability": [0.5, 0.5]}),
        *(Valuation.from_values({"y": [0.1, 0.2], f"{sign}sex": [0.3, 0.4]}) for sign in "=+-@"),
    ],
    ids=lambda valuation: ", ".join(valuation.variables),
)
def test_what_a_csv_file_cannot_tell_goes_to_parquet_only(valuation, tmp_path):
    name = valuation.variables[-1]
    formula = rf"may run as a formula \('\{name[0]}sex'\): write a file that ends"
    with pytest.raises(ValueError, match=formula if "sex" in name else r"save the valuation as \.parquet"):
        valuation.save(tmp_path / "v.csv")
    assert not list(tmp_path.iterdir())
    valuation.save(tmp_path / "v.parquet")
    loaded = Valuation.load(tmp_path / "v.parquet")
    assert_same(loaded, valuation)
    assert loaded.scales == valuation.scales


@pytest.mark.parametrize(
    ("valuation", "message"),
    [
        (of_fields(values=[0.5, 3.0]), r"column 'y' holds 3\.0 in row 1"),
        (
            of_fields(values=[0.5, 0.25], epistemic=[0.5, 1.5]),
            r"'y\.epistemic' holds 1\.5 in row 1 .* epistemic parts of entropies",
        ),
        (
            of_fields(values=[0.5], probabilities=[[0.5, 0.6]]),
            r"column 'y.probabilities' holds \[0.5, 0.6\] in row 0",
        ),
        (of_fields(values=[0.5], probabilities=[0.5]), "its `shapes` must state"),
        (
            Valuation({"y": np.array([0.5])}, probabilities={"sex": np.full((1, 2, 2), 0.5)}),
            "its `shapes` must state",
        ),
    ],
)
def test_numbers_beyond_their_scale_are_not_saved(valuation, message, tmp_path):
    with pytest.raises(ValueError, match=f"The valuation cannot be saved: .*{message}"):
        valuation.save(tmp_path / "v.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_scale_of_its_own_is_saved(tmp_path):
    scale = Scale("share of something", -4.0, 4.0)
    Valuation({"y": np.array([0.5, 3.0])}, scales={"y": scale}).save(tmp_path / "v.parquet")
    assert Valuation.load(tmp_path / "v.parquet").scales == {"y": scale}


def test_whole_numbers_before_others_in_a_long_csv_file(tmp_path):
    values = np.r_[np.ones(600_000), 0.5]
    Valuation.from_values({"y": values}).save(tmp_path / "v.csv")
    np.testing.assert_array_equal(Valuation.load(tmp_path / "v.csv")["y"], values)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    valuation, path = MADE["signed"](), tmp_path / "v.parquet"
    valuation.save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="no space left"):
        valuation.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_missing_files_and_directories(tmp_path):
    valuation = MADE["signed"]()
    with pytest.raises(FileNotFoundError, match="There is no file"):
        Valuation.load(tmp_path / "none.parquet")
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        valuation.save(tmp_path / "none" / "v.parquet")
    with pytest.raises(ValueError, match=r"must end in \.parquet or \.csv"):
        valuation.save(tmp_path / "v.pickle")
    (tmp_path / "v.parquet").mkdir()
    refuse(tmp_path / "v.parquet", "it is not a file")


def test_nothing_is_ever_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    for name in ("v.parquet", "v.csv", "v.pkl"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(ValueError, match=r"valuation"):
            Valuation.load(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


def places(content, path=()):
    """Give the path of every entry of plain data, the first two of a list."""
    yield path
    if isinstance(content, dict | list):
        for name in list(content)[:2] if isinstance(content, list) else content:
            place = content.index(name) if isinstance(content, list) else name
            yield from places(content[place], (*path, place))


def with_entry(content, path, value):
    if not path:
        return value
    inner = changed = copy.deepcopy(content)
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize("make", [fitted, with_probabilities])
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_every_entry_of_a_description_is_read_or_refused_with_the_file_named(bad, make, tmp_path):
    valuation = make()
    good, path = table_of(valuation, tmp_path), tmp_path / "v.parquet"
    about, refused = json.loads(good.schema.metadata[KEY]), 0
    for place in places(about):
        saved(good, path, with_entry(about, place, bad))
        loaded, refusal = load(path)
        if loaded is None:
            refused += 1
            assert refusal.startswith(f"{str(path)!r} is not a valuation that FADO saved: "), place
            assert len(refusal) < 500
            continue
        assert "shapes" not in place or not about.get("shapes"), place
        for field in valuation.fields:
            np.testing.assert_array_equal(getattr(loaded, field), getattr(valuation, field))
        assert repr(loaded).startswith(f"Valuation of {len(valuation)} rows")
        assert loaded._repr_html_().startswith("<div><p><b>Valuation</b>")
        loaded.save(tmp_path / "again.parquet")
        assert Valuation.load(tmp_path / "again.parquet").metadata == loaded.metadata
    assert refused > 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (b"", "not JSON that can be read"),
        (b"\xff\xfe{}", "not JSON that can be read"),
        (b"[" * 100_000, "not JSON that can be read"),
        (b'{"format": 99}', "it is in format 99, and this release reads 3"),
        (b'{"format": true}', "it is in format True"),
        (b'{"format": 3, "variables": ["y"]}', "`fields` of the description of its values is missing"),
        *((name, "") for name in ("format", "variables", "fields", "scales", "provenance")),  # left out
        ({"variables": ["y", "y", "sex"]}, "its `variables` must be distinct names, 'y' first"),
        ({"variables": ["age", "y", "sex"]}, "its `variables` must be distinct names, 'y' first"),
        ({"fields": ["counts"]}, "its `fields` must be some of"),
        ({"fields": ["values", "values"]}, "its `fields` must be some of"),
        ({"shapes": {"y": [2], "y.probabilities": [3, 2]}}, "must state how many classes 'y' has"),
        ({"shapes": {"y.probabilities": [2, 3]}}, "its `shapes` must state how many classes 'y' has"),
        ({"shapes": {"y": [2], "y.probabilities": [2, 4]}}, "must hold 8 numbers in every row"),
        ({"shapes": {"y": [2], "sex": [2, 3]}}, "its `shapes` must state how many classes 'y' has"),
        ({"shapes": {"y": [10**30], "y.probabilities": [10**30, 3]}}, "_' must hold 10+ numbers in every"),
        ({"shapes": {"y": [2]}}, "its columns do not match its description"),
    ],
    ids=lambda case: repr(case)[:40],
)
def test_descriptions_that_say_other_things_are_refused(change, message, kept, tmp_path):
    about = change
    if not isinstance(change, bytes):
        about = json.loads(kept.schema.metadata[KEY]) | (change if isinstance(change, dict) else {})
        about.pop(change if isinstance(change, str) else None, None)
    refuse(saved(kept, tmp_path / "v.parquet", about), message)


@ENDINGS
@pytest.mark.parametrize(
    ("column", "number", "message"),
    [
        ("age", 5.0, r"5.0 in row 2 .* these values lie in \[0, 1\]"),
        ("y", -5.0, r"-5.0 in row 2 .* these values lie in \[0, 1\]"),
        ("sex", np.inf, "inf in row 2"),
        ("sex", np.nan, "nan in row 2 .* a row that fits have scored has a value"),
        ("y.standard_error", -0.1, r"-0.1 .* lie in \[0, inf\)"),
        ("y.standard_error", np.inf, "inf in row 2"),
        ("age.counts", 0.5, "0.5 .* counts are whole numbers from 0 on"),
        ("age.counts", -1.0, "-1.0 in row 2"),
        ("age.counts", 1e30, r"1e\+30 in row 2"),
        ("age.counts", np.nan, "nan in row 2"),
        ("sex.label_probability", 1.5, r"1.5 .* label probabilities lie in \[0, 1\]"),
    ],
)
def test_numbers_that_no_valuator_gave_are_refused(column, number, message, ending, good, tmp_path):
    numbers = good[column].to_numpy().astype(float)
    numbers[2] = number
    table = good.set_column(good.column_names.index(column), column, pa.array(numbers))
    path = tmp_path / f"v.{ending}"
    saved(table, path) if ending == "parquet" else pyarrow.csv.write_csv(table, path)
    refuse(path, f"column '{column}' holds {message}")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([[0.1, 0.9], [1.5, -0.5]], r"holds \[1.5, -0.5\] in row 1 .* probabilities lie in \[0, 1\]"),
        ([[np.inf, 0.0], [0.5, 0.5]], r"holds \[inf, 0.0\] in row 0 .* probabilities lie in \[0, 1\]"),
        ([[0.1, 0.9], [np.nan, 0.5]], "holds .* in row 1 .* all or none of a row's probabilities are NaN"),
        ([[0.1, 0.9], [0.5, 0.4]], "holds .* in row 1 .* probabilities sum to 1"),
        ([[0.1, 0.9], [0.5, None]], "must hold 2 numbers in every row, and some are missing"),
        ([[0.1, 0.9], None], "must hold 2 numbers in every row, and some are missing"),
    ],
    ids=str,
)
def test_lists_that_are_no_probabilities_are_refused(entries, message, tmp_path):
    good = table_of(Valuation.from_probabilities([0.9, 0.5]), tmp_path)
    place = good.column_names.index("y.probabilities")
    for kind in (pa.list_(pa.float64(), 2), pa.list_(pa.float64())):
        if kind != good.schema.field(place).type:
            message = r"must hold 2 numbers in every row, got 'list<"
        table = good.set_column(place, "y.probabilities", pa.array(entries, kind))
        # Arrow 17 does not read lists of a fixed size of which one is missing.
        broken = rf"(column 'y.probabilities' {message}|damaged: Expected all lists to be of size=2)"
        refuse(saved(table, tmp_path / "v.parquet"), broken)


WRONG_TYPES = {
    "times": datetime.datetime(2020, 1, 1),
    "dates": datetime.date(2020, 1, 1),
    "durations": datetime.timedelta(1),
    "text": "x" * 10_000,
    "flags": True,
    "lists": [0.5],
    "mappings": {"a": 0.5},
    "bytes": b"0.5",
}


@pytest.mark.parametrize("column", ["age", "y.counts", "sex.label_probability"])
@pytest.mark.parametrize("entry", WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_columns_of_anything_but_numbers_are_refused(column, entry, good, tmp_path):
    table = good.set_column(good.column_names.index(column), column, pa.array([entry] * 60))
    path = saved(table, tmp_path / "v.parquet")
    refuse(path, f"something other than numbers: column '{column}' has")


def test_columns_that_the_description_does_not_tell_of_are_refused(good, tmp_path):
    about = good.schema.metadata[KEY]
    renamed = good.rename_columns(["y", "sex", "age", *good.column_names[3:]])
    for table in (renamed, good.append_column("more", good["y"]), good.select(["y"])):
        refuse(saved(table, tmp_path / "v.parquet", about), "its columns do not match its description")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is not a CSV file, or it is damaged"),
        ("y,größe\n0.1,0.2\n".encode("latin-1"), "it is not a CSV file, or it is damaged"),
        ("y\n0.1\n".encode("utf-16"), ""),
        (b"a,b\n1,2\n", "its columns do not match"),
        (b"y,age,age\n0.1,0.2,0.3\n", "its columns do not match"),
        (b"age,y\n0.1,0.2\n", "its columns do not match"),
        (b"y,age\n0.1\n", "it is not a CSV file, or it is damaged"),
        *((b"y,age\n%b,0.1\n" % own, "column 'y' has") for own in (b"2020-01-01", b"x", b"true", b'"0,5"')),
    ],
)
def test_csv_files_of_other_kinds_are_refused(content, message, tmp_path):
    (tmp_path / "v.csv").write_bytes(content)
    refuse(tmp_path / "v.csv", message)


def test_damaged_and_foreign_files_are_refused(good, tmp_path):
    path = saved(good, tmp_path / "v.parquet")
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:60] + bytes([whole[60] ^ 0xFF]) + whole[61:]):
        path.write_bytes(content)
        refuse(path, "or it is damaged")
    path.write_bytes(b"")
    refuse(path, "")
    refuse(saved(pa.table({"a": [1]}), path), "it has no description")
