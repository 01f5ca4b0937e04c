import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
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
        (np.ma.masked_array([0.5, 1.0], [False, True]), None, r"must lie in \[0, 1\], without NaN"),
        ([0.5], {"a": [np.inf]}, "probabilities of 'a' must lie in"),
        ([0.5], {"a": [-0.1]}, "probabilities of 'a' must lie in"),
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


def test_metadata_says_how_the_values_came_about(valuation):
    metadata = valuation.metadata
    assert metadata["algorithm"] == "out-of-bag"
    assert (metadata["seed"], metadata["n_bags"], metadata["unseen_fraction"]) == (3, 10, 0.2)
    assert metadata["variables"]["age"] == {"kind": "classes", "classes": [0, 1]}
    assert set(metadata["versions"]) == {"fado", "numpy", "lightgbm", "scikit-learn"}
    json.dumps(metadata)


def test_repr_is_readable_and_html_is_escaped(valuation):
    text, html = repr(valuation), valuation._repr_html_()
    assert text.startswith("Valuation of 60 rows (out-of-bag)")
    assert "age" in text
    assert "epistemic" not in text
    assert "&lt;b&gt;sex&lt;/b&gt;" in html
    assert "<b>sex</b>" not in html


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


def test_the_epistemic_part_goes_with_its_rows(valuation):
    assert "epistemic" not in valuation.fields
    assert valuation.epistemic.isna().all(axis=None)
    with_it = Valuation({"y": np.array([0.5, 0.25])}, epistemic={"y": np.array([0.125, np.nan])})
    assert with_it.fields == ["values", "epistemic"]
    assert with_it.summary()["epistemic"].tolist() == [0.125]
    np.testing.assert_array_equal(with_it.take([1]).field("epistemic", "y"), [np.nan])


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


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([60], IndexError, r"^`rows`: there is no row 60; rows are 0 to 59\.$"),
        ([True, False], IndexError, r"^`rows`: a mask must have one entry for each of the 60 rows, got 2"),
        ([0.5], IndexError, r"^`rows`: must be positions of rows, or a mask over all of them"),
        ("sex", KeyError, r"no variable 'sex'; it has \['y', 'age'"),
        (("value", "y"), KeyError, "no field 'value'"),
    ],
)
def test_what_there_is_not(valuation, rows, error, message):
    with pytest.raises(error, match=message):
        valuation.field(*rows) if isinstance(rows, tuple) else valuation[rows]


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


def test_signed_values_come_from_any_table_and_keep_their_index():
    frame = pd.DataFrame({"y": [0.1, -0.2], "sex": [1.0, np.nan]}, index=["p", "q"])
    for values in (frame, pl.from_pandas(frame), dict(frame)):
        valuation = Valuation.from_values(values)
        np.testing.assert_array_equal(valuation["sex"], [1.0, np.nan])
        assert valuation.fields == ["values"]
        assert valuation.counts["y"].tolist() == [0, 0]
    assert list(Valuation.from_values(frame).values.index) == ["p", "q"]
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    np.testing.assert_array_equal(Valuation.from_values({"y": masked})["y"], [1.0, np.nan])


@pytest.mark.parametrize(
    ("values", "scales", "message"),
    [
        ({"sex": [1.0]}, None, "`values` must hold the values for 'y'"),
        ({"y": [1.0, 2.0], "sex": [1.0]}, None, "of 'y' have 2 rows and those of 'sex' have 1"),
        ({"y": [np.inf]}, None, "must be finite, or NaN"),
        ({"y": [1.0]}, {"age": ENTROPY}, "`scales` names 'age', which `values` does not hold"),
        ({"y": np.array(["2020-01-01"], dtype="M8[D]")}, None, "holds dates or times"),
        ({"y": np.array([1j])}, None, "holds complex numbers"),
    ],
)
def test_what_are_no_values_is_refused(values, scales, message):
    with pytest.raises(ValueError, match=message):
        Valuation.from_values(values, scales=scales)


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
