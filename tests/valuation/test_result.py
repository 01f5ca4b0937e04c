import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fado import OutOfBagEntropy, Valuation
from fado._records import encode, record_from
from fado.valuation import Provenance, SplitGains, TargetNote, VariableNote
from fado.valuation._provenance import ENTROPY


@pytest.fixture(scope="module")
def valuation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    z = {"age": rng.integers(0, 2, 60), "<b>sex</b>": rng.integers(0, 3, 60)}
    return (
        OutOfBagEntropy(random_state=3)
        .fit(X, X[:, 0] + rng.normal(size=60) > 0, sensitive_features=z)
        .valuation_
    )


def test_from_probabilities_by_hand():
    valuation = Valuation.from_probabilities(
        [0.5, 1.0], {"age": [[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]]}
    )
    np.testing.assert_allclose(valuation.values.to_numpy(), [[1.0, 1.0], [0.0, 0.5]])
    assert list(valuation.values.columns) == ["y", "age"]
    assert (valuation.counts.to_numpy() == 1).all()
    assert np.isnan(valuation.standard_error.to_numpy()).all()
    assert np.isnan(valuation.label_probability.to_numpy()).all()


def test_from_probabilities_keeps_them_at_every_label():
    """The group is known for sure at label 1 and not at all at label 0: by halves, p = 1/4 and 3/4."""
    at_label = [[[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]]]
    own = np.array(at_label)
    given = {"age": [[0.25, 0.75], [1.0, 0.0]], "sex": own, "race": [0.5, 0.125]}
    valuation = Valuation.from_probabilities([0.5, 1.0], given)
    own[:] = 7.0  # the user's own array is another
    quarter = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    np.testing.assert_allclose(valuation["sex"], [quarter, 0.0], rtol=0, atol=1e-15)
    assert valuation["age"][0] == valuation["sex"][0]
    np.testing.assert_array_equal(valuation.probabilities["y"], [[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_array_equal(valuation.probabilities["sex"], at_label)
    by_row = {"age": [[0.25, 0.75], [1.0, 0.0]], "race": [[0.5, 0.5], [0.875, 0.125]]}
    for name, own in by_row.items():
        np.testing.assert_array_equal(valuation.probabilities[name], [[row, row] for row in own])
    assert valuation.classes == {}  # nobody has told what they are called


def test_probabilities_follow_rows_and_copies():
    labelled = Valuation.from_probabilities([0.5, 0.25, 1.0], {"sex": [0.5, 0.75, 0.0]})
    labelled = labelled.with_provenance(variables={"y": VariableNote("classes", ("no", "yes"))})
    for taken in (labelled[[2, 0]], labelled.take([False, True, True])[::-1], labelled[[2, 0], ...]):
        rows = [2, 0] if taken["y"][1] == 1 else [2, 1]
        assert taken.classes == {"y": ("no", "yes")}
        assert list(taken.probabilities) == ["y", "sex"]
        for name, own in taken.probabilities.items():
            np.testing.assert_array_equal(own, labelled.probabilities[name][rows])
    copied = pickle.loads(pickle.dumps(labelled.with_rows(None, target_pattern="pattern")))
    np.testing.assert_array_equal(copied.probabilities["sex"], labelled.probabilities["sex"])
    assert Valuation.from_values({"y": [0.5]}).probabilities is None


@pytest.mark.parametrize(
    ("p_y", "p_z", "message"),
    [
        ([[[0.5, 0.5]] * 2], None, r"'y' must have shape \(n,\) or \(n, K >= 2\), got \(1, 2, 2\)"),
        ([0.5], {"a": [[[0.5, 0.5]] * 3]}, r"'a' must be given for each of the 2 classes .* \(1, 3, 2\)"),
        ([0.5], {"a": [[[1.0], [1.0]]]}, r"'a' must have shape .* or \(n, 2, G\), got \(1, 2, 1\)"),
        ([0.5], {"a": [[[0.5, 0.5], [0.5, 0.6]]]}, "'a' must sum to 1 in every row"),
        ([0.5], {"a": [[[0.5, 0.5], [0.5, np.nan]]]}, "'a' must lie in"),
        ([0.5, 1.5], None, "probabilities of 'y' must lie in"),
        ([0.5, np.nan], None, "without NaN"),
        ([[0.5], [0.5]], None, r"shape \(n,\) or \(n, K >= 2\)"),
        ([[0.5, 0.6]], None, "must sum to 1 in every row"),
        ([0.5, 0.5], {"age": [0.5]}, "`p_y` has 2 rows and the probabilities of 'age' have 1"),
        ([0.5], {"y": [0.5]}, "cannot be called 'y'"),
    ],
)
def test_impossible_probabilities_are_refused(p_y, p_z, message):
    with pytest.raises(ValueError, match=message):
        Valuation.from_probabilities(p_y, p_z)


def test_shapes_and_names(valuation):
    for frame in (valuation.values, valuation.standard_error, valuation.counts, valuation.label_probability):
        assert list(frame.columns) == ["y", "age", "<b>sex</b>"]
        assert len(frame) == 60
        assert list(frame.index) == list(range(60))
    assert valuation.variables == ["y", "age", "<b>sex</b>"]
    assert valuation.protected == ["age", "<b>sex</b>"]
    np.testing.assert_array_equal(valuation["age"], valuation.values["age"])
    with pytest.raises(KeyError, match="no variable 'race'"):
        valuation["race"]


@pytest.mark.parametrize("name", ["v.parquet", "v.csv"])
def test_a_saved_valuation_loads_to_the_last_bit(valuation, tmp_path, name):
    valuation.save(tmp_path / name)
    loaded = Valuation.load(tmp_path / name)
    for part in ("values", "standard_error", "counts", "label_probability"):
        before, after = getattr(valuation, part), getattr(loaded, part)
        assert list(before.columns) == list(after.columns)
        np.testing.assert_array_equal(before.to_numpy(), after.to_numpy())
        assert (before.dtypes == after.dtypes).all()
    assert loaded.metadata == (valuation.metadata if name == "v.parquet" else {"algorithm": "given"})
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_metadata_says_how_the_values_came_about(valuation):
    metadata = valuation.metadata
    assert metadata["algorithm"] == "out-of-bag"
    assert (metadata["seed"], metadata["n_bags"], metadata["unseen_fraction"]) == (3, 10, 0.2)
    assert metadata["variables"]["age"] == {"kind": "classes", "classes": [0, 1]}
    assert set(metadata["versions"]) == {"fado", "numpy", "lightgbm", "scikit-learn"}
    json.dumps(metadata)


def test_names_that_would_collide_in_the_file_are_kept_apart(tmp_path):
    valuation = Valuation.from_probabilities(
        [0.5], {"a": [0.1], "y.counts": [0.2], "a.label_probability": [0.3]}
    )
    valuation.save(tmp_path / "v.parquet")
    assert Valuation.load(tmp_path / "v.parquet").values.equals(valuation.values)


def test_a_damaged_file_is_refused(valuation, tmp_path):
    path = tmp_path / "v.parquet"
    valuation.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="or it is damaged"):
        Valuation.load(path)
    flipped = bytearray(whole)
    flipped[60] ^= 0xFF
    path.write_bytes(bytes(flipped))
    with pytest.raises(ValueError, match="or it is damaged"):
        Valuation.load(path)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(ValueError, match="is not a valuation that FADO saved: it has no description"):
        Valuation.load(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is not a valuation that FADO saved"):
        Valuation.load(path)
    csv = tmp_path / "other.csv"
    csv.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="its columns do not match"):
        Valuation.load(csv)


def test_nothing_is_ever_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    for name in ("v.parquet", "v.csv", "v.pkl"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(ValueError, match=r"valuation"):
            Valuation.load(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


def test_missing_files_and_directories(valuation, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        Valuation.load(tmp_path / "none.parquet")
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        valuation.save(tmp_path / "none" / "v.parquet")
    with pytest.raises(ValueError, match=r"must end in \.parquet or \.csv"):
        valuation.save(tmp_path / "v.pickle")


def test_a_failed_save_leaves_the_old_file(valuation, tmp_path, monkeypatch):
    path = tmp_path / "v.parquet"
    valuation.save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="no space left"):
        valuation.save(path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["v.parquet"]


def test_repr_is_readable_and_html_is_escaped(valuation):
    text = repr(valuation)
    assert text.startswith("Valuation of 60 rows (out-of-bag)")
    assert "age" in text
    html = valuation._repr_html_()
    assert "&lt;b&gt;sex&lt;/b&gt;" in html
    assert "<b>sex</b>" not in html


@pytest.mark.parametrize(
    "rows", [[3, 0, 3], np.array([5]), [-1, 0], slice(10, 20), np.arange(60) % 7 == 0], ids=str
)
def test_rows_of_a_valuation(valuation, rows):
    part = valuation[rows]
    assert part.shape == (len(np.arange(60)[rows]), 3)
    assert part.metadata == {k: v for k, v in valuation.metadata.items() if k != "target_pattern"}
    for table in ("values", "standard_error", "counts", "label_probability"):
        expected = getattr(valuation, table).to_numpy()[rows]
        np.testing.assert_array_equal(getattr(part, table).to_numpy(), expected)
    assert len(valuation.take(rows)) == len(part) == len(valuation[rows, ...])


def test_rows_that_there_are_not(valuation):
    with pytest.raises(IndexError, match=r"^`rows`: there is no row 60; rows are 0 to 59\.$"):
        valuation[[60]]
    with pytest.raises(
        IndexError, match=r"^`rows`: a mask must have one entry for each of the 60 rows, got 2"
    ):
        valuation[[True, False]]
    with pytest.raises(IndexError, match=r"^`rows`: must be positions of rows, or a mask over all of them"):
        valuation[[0.5]]
    with pytest.raises(KeyError, match=r"no variable 'sex'; it has \['y', 'age'"):
        valuation["sex"]


TEXT = ["0.9", "0.1", "0.5"]


@pytest.mark.parametrize(
    "values",
    [
        {"y": TEXT},
        {"y": np.array(TEXT, dtype=object)},
        {"y": pd.Series(TEXT, dtype="category")},
        pd.DataFrame({"y": TEXT}),
        pd.DataFrame({"y": pd.Categorical([0.9, 0.1, 0.5])}),
        pl.DataFrame({"y": TEXT}),
        pl.DataFrame({"y": pl.Series(TEXT, dtype=pl.Categorical)}),
        pa.table({"y": TEXT}),
    ],
    ids=lambda values: type(values).__module__,
)
def test_text_and_categories_are_no_values(values):
    with pytest.raises(TypeError, match="`values` of 'y' must be numbers, got text or categories: convert"):
        Valuation.from_values(values)


def test_what_is_masked_has_no_value_and_what_is_no_number_is_refused():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    np.testing.assert_array_equal(Valuation.from_values({"y": masked})["y"], [1.0, np.nan])
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\], without NaN"):
        Valuation.from_probabilities(masked / 2)
    with pytest.raises(ValueError, match="holds dates or times"):
        Valuation.from_values({"y": np.array(["2020-01-01"], dtype="M8[D]")})
    with pytest.raises(ValueError, match="holds complex numbers"):
        Valuation.from_values({"y": np.array([1j])})


def test_signed_values_come_from_any_table_and_keep_their_index():
    frame = pd.DataFrame({"y": [0.1, -0.2], "sex": [1.0, np.nan]}, index=["p", "q"])
    for values in (frame, pl.from_pandas(frame), dict(frame)):
        valuation = Valuation.from_values(values)
        np.testing.assert_array_equal(valuation["sex"], [1.0, np.nan])
        assert valuation.fields == ["values"]
        assert valuation.counts["y"].tolist() == [0, 0]
    assert list(Valuation.from_values(frame).values.index) == ["p", "q"]
    with pytest.raises(ValueError, match="`values` must hold the values for 'y'"):
        Valuation.from_values({"sex": [1.0]})
    with pytest.raises(ValueError, match="of 'y' have 2 rows and those of 'sex' have 1"):
        Valuation.from_values({"y": [1.0, 2.0], "sex": [1.0]})
    with pytest.raises(ValueError, match="must be finite, or NaN"):
        Valuation.from_values({"y": [np.inf]})
    with pytest.raises(ValueError, match="`scales` names 'age', which `values` does not hold"):
        Valuation.from_values({"y": [1.0]}, scales={"age": ENTROPY})


@pytest.mark.parametrize("name", ["v.parquet", "v.csv"])
def test_signed_values_are_saved_with_what_they_mean(tmp_path, name):
    valuation = Valuation.from_values({"y": [0.1, 0.2], "a.b": [-1.0, np.nan]})
    valuation.save(tmp_path / name)
    loaded = Valuation.load(tmp_path / name)
    assert loaded.fields == ["values"]
    assert loaded.scales == valuation.scales
    np.testing.assert_array_equal(loaded.values, valuation.values)


def test_what_a_csv_file_cannot_tell_is_not_written_to_one(tmp_path):
    unit = Valuation.from_values({"y": [0.1, 0.2]}, scales={"y": ENTROPY})
    ambiguous = Valuation.from_values({"y": [0.1, 0.2], "y.counts": [1.0, 2.0]})
    for valuation in (unit, ambiguous):
        with pytest.raises(ValueError, match=r"save the valuation as \.parquet"):
            valuation.save(tmp_path / "v.csv")
        valuation.save(tmp_path / "v.parquet")
        loaded = Valuation.load(tmp_path / "v.parquet")
        assert (loaded.variables, loaded.scales) == (valuation.variables, valuation.scales)


def test_provenance_survives_plain_data():
    about = Provenance(
        "mine",
        settings={"n_bags": 5},
        seed=3,
        estimators=("LGBMClassifier()",),
        variables={"y": VariableNote("classes", (0, 1))},
        excluded_columns={"sex": ("job",)},
        versions={"fado": "1"},
        largest_error={},
        split_gains=SplitGains(("a",), {"y": (0.5, 0.5)}),
        trees={"y": 3},
        learning_rates={"y": 0.1},
        target_pattern="abc",
        made_for=TargetNote("default", "d1"),
    )
    assert record_from(Provenance, json.loads(json.dumps(encode(about))), "it") == about


def test_text_of_a_file_is_escaped_in_a_notebook():
    valuation = Valuation.from_values({"y": [1.0]}).with_provenance(algorithm="<script>alert(1)</script>")
    assert "<script>" not in valuation._repr_html_()


@pytest.mark.parametrize("name", ["values.parquet", "values.csv"])
def test_the_epistemic_part_is_kept_and_checked(tmp_path, name):
    arrays = [{"y": np.array([0.5, 0.25])}, {"y": np.array([0.1, 0.2])}, {"y": np.array([2, 2])}]
    epistemic = {"y": np.array([0.125, np.nan])}
    valuation = Valuation(*arrays, epistemic=epistemic)
    assert valuation.fields == ["values", "standard_error", "counts", "epistemic"]
    assert valuation.summary()["epistemic"].tolist() == [0.125]
    valuation.save(tmp_path / name)
    read = Valuation.load(tmp_path / name)
    np.testing.assert_array_equal(read.epistemic["y"], epistemic["y"])
    np.testing.assert_array_equal(read.take([1]).field("epistemic", "y"), [np.nan])
    wrong = Valuation(*arrays, epistemic={"y": np.array([0.5, 1.5])})
    with pytest.raises(
        ValueError, match=r"'y\.epistemic' holds 1\.5 in row 1 .* epistemic parts of entropies"
    ):
        wrong.save(tmp_path / name)


def test_values_without_an_epistemic_part_say_nothing_of_it(valuation):
    assert "epistemic" not in valuation.fields
    assert valuation.epistemic.isna().all(axis=None)
    assert "epistemic" not in repr(valuation)


def test_a_field_that_does_not_exist_is_named(valuation):
    with pytest.raises(KeyError, match="no field 'value'"):
        valuation.field("value", "y")


def test_values_that_are_all_missing_are_shown_without_a_warning():
    missing = np.full(3, np.nan)
    valuation = Valuation(
        {"y": missing, "sex": np.array([0.25, np.nan, 0.75])}, {"y": missing, "sex": missing}
    )
    summary = valuation.summary()
    assert summary.loc["y", ["mean", "5 %", "50 %"]].isna().all()
    assert summary.loc["sex", ["25 %", "50 %"]].tolist() == [0.375, 0.5]
    for shown in (repr(valuation), valuation._repr_html_(), repr(valuation.take(np.arange(0)))):
        assert "NaN" in shown
