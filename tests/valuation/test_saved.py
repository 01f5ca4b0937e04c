"""Files of values that somebody else wrote load as what they are, or one sentence says what is wrong."""

import copy
import datetime
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fado import OutOfBagEntropy, Valuation
from fado.valuation import Provenance, Scale, VariableNote, read_lazily

KEY = b"fado.valuation"


def deep(levels):
    return json.loads("[" * levels + "]" * levels)


BAD = {
    "null": None,
    "list": [],
    "mapping": {},
    "text": "x",
    "negative": -1,
    "enormous": 1e308,
    "flag": True,
    "nested": deep(50),
    "list of lists": [[1], {"a": []}],
}


@pytest.fixture(scope="module")
def valuation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    z = {"age": rng.normal(size=60), "sex": rng.integers(0, 3, 60)}
    fitted = OutOfBagEntropy(n_bags=5, random_state=3).fit(X, X[:, 0] > 0, sensitive_features=z)
    return fitted.valuation_.with_provenance(excluded_columns={"age": ("x1",), "sex": ()})


@pytest.fixture
def good(valuation, tmp_path):
    valuation.save(tmp_path / "good.parquet")
    return pq.read_table(tmp_path / "good.parquet")


def saved(table, path, about=None):
    """Write a table with a description: its own, another, or these very bytes."""
    if about is not None:
        told = about if isinstance(about, bytes) else json.dumps(about).encode()
        table = table.replace_schema_metadata({KEY: told})
    pq.write_table(table, path)
    return path


def load(path):
    """Give what a file holds, or None and why it was refused."""
    try:
        return Valuation.load(path), ""
    except ValueError as error:
        return None, str(error)


def places(content, path=()):
    """Give the path of every entry of plain data, the first two of a list."""
    yield path
    if isinstance(content, dict):
        for name, own in content.items():
            yield from places(own, (*path, name))
    elif isinstance(content, list):
        for j, own in enumerate(content[:2]):
            yield from places(own, (*path, j))


def with_entry(content, path, value):
    if not path:
        return value
    changed = copy.deepcopy(content)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_every_entry_of_a_description_is_read_or_refused_with_the_file_named(bad, valuation, good, tmp_path):
    about = json.loads(good.schema.metadata[KEY])
    refused = 0
    for path in places(about):
        file = saved(good, tmp_path / "v.parquet", with_entry(about, path, bad))
        loaded, refusal = load(file)
        if loaded is None:
            refused += 1
            assert refusal.startswith(f"{str(file)!r} is not a valuation that FADO saved: "), path
            assert len(refusal) < 500
            continue
        for field in valuation.fields:
            np.testing.assert_array_equal(getattr(loaded, field), getattr(valuation, field))
        assert repr(loaded).startswith("Valuation of 60 rows")
        assert loaded._repr_html_().startswith("<div><p><b>Valuation</b>")
        loaded.save(tmp_path / "again.parquet")
        assert Valuation.load(tmp_path / "again.parquet").metadata == loaded.metadata
    assert refused > 10


@pytest.mark.parametrize("name", ["format", "variables", "fields", "scales", "provenance"])
def test_what_a_description_lacks_is_missed(name, good, tmp_path):
    about = json.loads(good.schema.metadata[KEY])
    del about[name]
    with pytest.raises(ValueError, match=r"v\.parquet' is not a valuation that FADO saved: "):
        Valuation.load(saved(good, tmp_path / "v.parquet", about))


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (b"", "not JSON that can be read"),
        (b"\xff\xfe{}", "not JSON that can be read"),
        (b"[" * 100_000, "not JSON that can be read"),
        (b'{"format": 99}', "it is in format 99, and this release reads 3"),
        (b'{"format": true}', "it is in format True"),
        (b'{"format": 3, "variables": ["y"]}', "`fields` of the description of its values is missing"),
    ],
    ids=["nothing", "no utf-8", "nested", "99", "true", "incomplete"],
)
def test_descriptions_of_any_bytes(told, message, good, tmp_path):
    with pytest.raises(ValueError, match=r"v\.parquet' is not a valuation") as caught:
        Valuation.load(saved(good, tmp_path / "v.parquet", told))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("variables", ["y", "y", "sex"], "its `variables` must be distinct names, 'y' first"),
        ("variables", ["age", "y", "sex"], "its `variables` must be distinct names, 'y' first"),
        ("fields", ["counts"], "its `fields` must be some of"),
        ("fields", ["values", "values"], "its `fields` must be some of"),
    ],
)
def test_descriptions_of_other_columns(name, entry, message, good, tmp_path):
    about = json.loads(good.schema.metadata[KEY]) | {name: entry}
    with pytest.raises(ValueError, match=message):
        Valuation.load(saved(good, tmp_path / "v.parquet", about))


COLUMNS = {
    "too high": ("age", 5.0, "column 'age' holds 5.0 in row 2 .* these values lie in \\[0, 1\\]"),
    "negative": ("y", -5.0, "column 'y' holds -5.0 in row 2 .* these values lie in \\[0, 1\\]"),
    "infinite": ("sex", np.inf, "column 'sex' holds inf in row 2"),
    "no value": ("sex", np.nan, "column 'sex' holds nan in row 2 .* a row that fits have scored has a value"),
    "error": ("y.standard_error", -0.1, "column 'y.standard_error' holds -0.1 .* lie in \\[0, inf\\)"),
    "error without end": ("y.standard_error", np.inf, "column 'y.standard_error' holds inf in row 2"),
    "half a fit": ("age.counts", 0.5, "column 'age.counts' holds 0.5 .* counts are whole numbers from 0 on"),
    "fewer than no fit": ("age.counts", -1.0, "column 'age.counts' holds -1.0 in row 2"),
    "fits without end": ("age.counts", 1e30, "column 'age.counts' holds 1e\\+30 in row 2"),
    "no count": ("age.counts", np.nan, "column 'age.counts' holds nan in row 2"),
    "label_probability": (
        "sex.label_probability",
        1.5,
        "column 'sex.label_probability' holds 1.5 .* label probabilities lie in \\[0, 1\\]",
    ),
}


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(("column", "number", "message"), COLUMNS.values(), ids=COLUMNS)
def test_numbers_that_no_valuator_gave_are_refused(column, number, message, ending, good, tmp_path):
    numbers = good[column].to_numpy().astype(float)
    numbers[2] = number
    table = good.set_column(good.column_names.index(column), column, pa.array(numbers))
    path = tmp_path / f"v.{ending}"
    saved(table, path) if ending == "parquet" else pyarrow.csv.write_csv(table, path)
    with pytest.raises(ValueError, match=rf"v\.{ending}' is not a valuation that FADO saved: {message}"):
        Valuation.load(path)


@pytest.fixture(scope="module")
def kept():
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


def test_probabilities_load_to_the_last_bit(kept, tmp_path):
    kept.save(tmp_path / "v.parquet")
    loaded = Valuation.load(tmp_path / "v.parquet")
    assert list(loaded.probabilities) == ["y", "y.probabilities"]
    for name, own in loaded.probabilities.items():
        np.testing.assert_array_equal(own, kept.probabilities[name])
        assert own.flags.writeable
    assert loaded.classes == {"y.probabilities": ("a", "b", "c")}
    np.testing.assert_array_equal(read_lazily(tmp_path / "v.parquet")["y"], kept["y"])
    assert Valuation.load(tmp_path / "v.parquet")[:0].probabilities["y"].shape == (0, 2)


def test_probabilities_that_no_csv_file_holds_are_told(kept, tmp_path):
    few = kept.take([0, 2])
    with pytest.warns(
        UserWarning, match=r"A CSV file keeps no probabilities: save the valuation as \.parquet"
    ):
        Valuation(
            {"y": few["y"]},
            counts={"y": few.field("counts", "y")},
            probabilities={"y": few.probabilities["y"]},
        ).save(tmp_path / "v.csv")
    assert Valuation.load(tmp_path / "v.csv").probabilities is None


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_every_entry_that_tells_of_probabilities_is_read_or_refused(bad, kept, tmp_path):
    kept.save(tmp_path / "good.parquet")
    good = pq.read_table(tmp_path / "good.parquet")
    about = json.loads(good.schema.metadata[KEY])
    assert about["shapes"] == {"y": [2], "y.probabilities": [2, 3]}
    for path in places(about["shapes"]):
        file = saved(good, tmp_path / "v.parquet", with_entry(about, ("shapes", *path), bad))
        _, refusal = load(file)
        assert refusal.startswith(f"{str(file)!r} is not a valuation that FADO saved: "), path


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": [2], "y.probabilities": [3, 2]}, "its `shapes` must state how many classes 'y' has"),
        ({"y.probabilities": [2, 3]}, "its `shapes` must state how many classes 'y' has"),
        ({"y": [2], "y.probabilities": [2, 4]}, "must hold 8 numbers in every row"),
        ({"y": [2], "sex": [2, 3]}, "its `shapes` must state how many classes 'y' has"),
        (
            {"y": [10**30], "y.probabilities": [10**30, 3]},
            "column 'y.probabilities_' must hold 10+ numbers in every",
        ),
        ({"y": [2]}, "its columns do not match its description"),
    ],
)
def test_probabilities_of_another_shape_than_told_are_refused(shapes, message, kept, tmp_path):
    kept.save(tmp_path / "good.parquet")
    good = pq.read_table(tmp_path / "good.parquet")
    about = json.loads(good.schema.metadata[KEY]) | {"shapes": shapes}
    with pytest.raises(ValueError, match=rf"v\.parquet' is not a valuation that FADO saved: .*{message}"):
        Valuation.load(saved(good, tmp_path / "v.parquet", about))


PAIRS = {
    "too high": ([[0.1, 0.9], [1.5, -0.5]], r"holds \[1.5, -0.5\] in row 1 .* probabilities lie in \[0, 1\]"),
    "infinite": (
        [[np.inf, 0.0], [0.5, 0.5]],
        r"holds \[inf, 0.0\] in row 0 .* probabilities lie in \[0, 1\]",
    ),
    "half known": (
        [[0.1, 0.9], [np.nan, 0.5]],
        "holds .* in row 1 .* all or none of a row's probabilities are NaN",
    ),
    "no sum": ([[0.1, 0.9], [0.5, 0.4]], "holds .* in row 1 .* probabilities sum to 1"),
    "a gap": ([[0.1, 0.9], [0.5, None]], "must hold 2 numbers in every row, and some are missing"),
    "a row without": ([[0.1, 0.9], None], "must hold 2 numbers in every row, and some are missing"),
}


@pytest.mark.parametrize(("entries", "message"), PAIRS.values(), ids=PAIRS)
def test_lists_that_are_no_probabilities_are_refused(entries, message, tmp_path):
    Valuation.from_probabilities([0.9, 0.5]).save(tmp_path / "good.parquet")
    good = pq.read_table(tmp_path / "good.parquet")
    place = good.column_names.index("y.probabilities")
    for kind in (pa.list_(pa.float64(), 2), pa.list_(pa.float64())):
        if kind != good.schema.field(place).type:
            message = r"must hold 2 numbers in every row, got 'list<"
        table = good.set_column(place, "y.probabilities", pa.array(entries, kind))
        # Arrow 17 does not read lists of a fixed size of which one is missing.
        broken = rf"(column 'y.probabilities' {message}|damaged: Expected all lists to be of size=2)"
        with pytest.raises(ValueError, match=rf"v\.parquet' is not a valuation .* {broken}"):
            Valuation.load(saved(table, tmp_path / "v.parquet"))


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ({"y": [[0.5, 0.6]]}, r"column 'y.probabilities' holds \[0.5, 0.6\] in row 0"),
        ({"sex": [[[0.5, 0.5]] * 2]}, "its `shapes` must state"),
        ({"y": [0.5]}, "its `shapes` must state"),
    ],
)
def test_probabilities_that_are_none_are_not_saved(probabilities, message, tmp_path):
    arrays = {name: np.array(own) for name, own in probabilities.items()}
    with pytest.raises(ValueError, match=f"The valuation cannot be saved: .*{message}"):
        Valuation({"y": np.array([0.5])}, probabilities=arrays).save(tmp_path / "v.parquet")
    assert list(tmp_path.iterdir()) == []


WRONG_TYPES = {
    "times": [datetime.datetime(2020, 1, 1)] * 60,
    "dates": [datetime.date(2020, 1, 1)] * 60,
    "durations": [datetime.timedelta(1)] * 60,
    "text": ["x" * 10_000] * 60,
    "flags": [True] * 60,
    "lists": [[0.5]] * 60,
    "mappings": [{"a": 0.5}] * 60,
    "bytes": [b"0.5"] * 60,
}


@pytest.mark.parametrize("column", ["age", "y.counts", "sex.label_probability"])
@pytest.mark.parametrize("entries", WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_columns_of_anything_but_numbers_are_refused(column, entries, good, tmp_path):
    table = good.set_column(good.column_names.index(column), column, pa.array(entries))
    message = rf"v\.parquet' is not a valuation .* something other than numbers: column '{column}' has"
    with pytest.raises(ValueError, match=message) as caught:
        Valuation.load(saved(table, tmp_path / "v.parquet"))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["=sex", "+sex", "-sex", "@sex"])
def test_a_name_that_a_spreadsheet_may_run_goes_to_parquet_only(name, tmp_path):
    valuation = Valuation.from_values({"y": [0.1, 0.2], name: [0.3, 0.4]})
    with pytest.raises(
        ValueError, match=rf"may run as a formula \('\{name[0]}sex'\): write a file that ends"
    ):
        valuation.save(tmp_path / "v.csv")
    assert not list(tmp_path.iterdir())
    valuation.save(tmp_path / "v.parquet")
    assert Valuation.load(tmp_path / "v.parquet").variables == ["y", name]


@pytest.mark.parametrize("entry", ["2020-01-01", "x", "true", '"0,5"'])
def test_a_csv_file_of_anything_but_numbers_is_refused(entry, tmp_path):
    (tmp_path / "v.csv").write_text(f"y,age\n{entry},0.1\n{entry},0.2\n")
    with pytest.raises(ValueError, match=r"v\.csv' is not a valuation .* column 'y' has"):
        Valuation.load(tmp_path / "v.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is not a CSV file, or it is damaged"),
        ("y,größe\n0.1,0.2\n".encode("latin-1"), "it is not a CSV file, or it is damaged"),
        ("y\n0.1\n".encode("utf-16"), "is not a valuation"),
        (b"y,age,age\n0.1,0.2,0.3\n", "its columns do not match"),
        (b"age,y\n0.1,0.2\n", "its columns do not match"),
        (b"y,age\n0.1\n", "it is not a CSV file, or it is damaged"),
    ],
    ids=["empty", "latin-1", "utf-16", "twice", "y last", "ragged"],
)
def test_csv_files_of_other_kinds_are_refused(content, message, tmp_path):
    (tmp_path / "v.csv").write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"v\.csv' is not a valuation that FADO saved: .*{message}|{message}"
    ):
        Valuation.load(tmp_path / "v.csv")


def test_columns_that_the_description_does_not_tell_of_are_refused(good, tmp_path):
    about = good.schema.metadata[KEY]
    renamed = good.rename_columns(["y", "sex", "age", *good.column_names[3:]])
    more = good.append_column("more", good["y"])
    for table in (renamed, more, good.select(["y"])):
        with pytest.raises(ValueError, match="its columns do not match its description"):
            Valuation.load(saved(table, tmp_path / "v.parquet", about))


def test_a_directory_is_no_valuation(tmp_path):
    (tmp_path / "v.parquet").mkdir()
    with pytest.raises(ValueError, match=r"v\.parquet' is not a valuation that FADO saved: it is not a file"):
        Valuation.load(tmp_path / "v.parquet")


def test_rows_without_a_value_load(tmp_path):
    arrays = {"values": [0.5, np.nan], "standard_error": [0.1, np.nan], "label_probability": [np.nan, np.nan]}
    fields = {field: {"y": np.array(numbers)} for field, numbers in arrays.items()}
    valuation = Valuation(**fields, counts={"y": np.array([2, 0], dtype=np.int32)})
    for name in ("v.parquet", "v.csv"):
        valuation.save(tmp_path / name)
        loaded = Valuation.load(tmp_path / name)
        for field in valuation.fields:
            np.testing.assert_array_equal(getattr(loaded, field), getattr(valuation, field))


def test_numbers_beyond_their_scale_are_not_saved(tmp_path):
    odd = Valuation({"y": np.array([0.5, 3.0])})
    with pytest.raises(ValueError, match=r"cannot be saved: column 'y' holds 3\.0 in row 1"):
        odd.save(tmp_path / "v.parquet")
    assert list(tmp_path.iterdir()) == []
    scale = Scale("share of something", -4.0, 4.0)
    Valuation({"y": np.array([0.5, 3.0])}, scales={"y": scale}).save(tmp_path / "v.parquet")
    assert Valuation.load(tmp_path / "v.parquet").scales == {"y": scale}


def test_whole_numbers_before_others_in_a_long_csv_file(tmp_path):
    values = np.r_[np.ones(600_000), 0.5]
    Valuation.from_values({"y": values}).save(tmp_path / "v.csv")
    np.testing.assert_array_equal(Valuation.load(tmp_path / "v.csv")["y"], values)


def test_text_of_others_is_shown_short_and_plain():
    name = "<script>\x1b[31m\u202e\n" + "n" * 10**6
    valuation = Valuation.from_values({"y": [1.0], name: [2.0]}).with_provenance(algorithm=name)
    for text in (repr(valuation), valuation._repr_html_()):
        assert len(text) < 3000
        assert not set("\x1b\u202e") & set(text)
        assert "\\x1b[31m\\u202e\\n" in text
        assert "..." in text
    assert "<script>" not in valuation._repr_html_()
    assert valuation.summary().index[1] == name
