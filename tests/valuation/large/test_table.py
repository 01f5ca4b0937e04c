"""What a variable is, found out block by block; values in files, block by block."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import fado
from fado import Valuation
from fado.tabular import column_from, variable_from
from fado.valuation.large import Classes, Combinations, StoredValues

RNG = np.random.default_rng(0)
VALUATION = Valuation.from_probabilities(RNG.random(100), {"sex": RNG.random(100)})


@pytest.mark.parametrize("n_rows", [1, 7, 50, 100, 1000])
def test_blocks_hold_all_rows_whatever_their_size(tmp_path, n_rows):
    VALUATION.save(tmp_path / "v.parquet")
    blocks = list(StoredValues(tmp_path / "v.parquet").blocks(n_rows))
    assert {len(block) for block in blocks[:-1]} <= {n_rows}
    for name in ("y", "sex"):
        assert (np.concatenate([block[name] for block in blocks]) == VALUATION[name]).all()


def test_parts_show_in_no_block(tmp_path):
    frame = pd.DataFrame({"x": RNG.normal(size=300), "sex": RNG.choice(["f", "m"], 300)})
    frame["y"] = frame["x"] > 0.3 * RNG.normal(size=300)
    for part in range(3):
        frame.iloc[part * 100 : part * 100 + 100].to_parquet(tmp_path / f"{part}.parquet")
    asked = {"target": "y", "protected": "sex", "n_bags": 5, "memory": "500MB"}
    valued = fado.value_files(f"{tmp_path}/*.parquet", out=tmp_path / "values", **asked)
    stored = StoredValues(tmp_path / "values")
    blocks = list(stored.blocks(130))
    assert [len(block) for block in blocks] == [130, 130, 40]
    assert (np.concatenate([block["sex"] for block in blocks]) == valued["sex"]).all()
    stored.check_rows(300)
    stored.check("y", ["sex"])
    with pytest.raises(ValueError, match="are of 300 rows, and the table has 299"):
        stored.check_rows(299)
    with pytest.raises(ValueError, match="are of 'sex', and there are none of 'age'"):
        stored.check("y", ["age"])


def test_values_of_another_target_are_refused(tmp_path):
    note = fado.valuation.TargetNote("default", "digest")
    VALUATION.with_provenance(made_for=note).save(tmp_path / "v.parquet")
    with pytest.raises(ValueError, match="are of the target 'default', not of 'hired'"):
        StoredValues(tmp_path / "v.parquet").check("hired", ["sex"])


def test_a_damaged_file_is_told_in_a_sentence(tmp_path):
    VALUATION.save(tmp_path / "v.parquet")
    content = bytearray((tmp_path / "v.parquet").read_bytes())
    content[60] ^= 0xFF
    (tmp_path / "v.parquet").write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read: it is damaged"):
        list(StoredValues(tmp_path / "v.parquet").blocks(10))


def test_numbers_that_are_no_values_are_refused(tmp_path):

    VALUATION.save(tmp_path / "v.parquet")
    table = pa.parquet.read_table(tmp_path / "v.parquet")
    wrong = table.set_column(0, "y", pa.array(np.where(np.arange(100) < 57, VALUATION["y"], 5.0)))
    pa.parquet.write_table(wrong, tmp_path / "v.parquet")
    with pytest.raises(ValueError, match=r"is not a part of a valuation: column 'y' holds 5\.0 in row 57"):
        list(StoredValues(tmp_path / "v.parquet").blocks(10))


# --- variables

LABELS = {
    "text": ["b", None, "a", "c", "a"],
    "booleans": [True, False, None, True, True],
    "numbers": [3, 1, 2, 1, 3],
    "halves": [0.5, float("nan"), 1.0, 0.5, 2.0],
    "many": list(range(40)),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("step", [1, 2, 100])
def test_blocks_tell_what_the_whole_tells(name, step):
    labels, classes = LABELS[name], Classes(name)
    for start in range(0, len(labels), step):
        classes.add(column_from(name, np.array(labels[start : start + step], dtype=object)))
    found, whole = classes.numbered(), variable_from(column_from(name, labels))
    assert (found.kind, found.classes, found.has_missing) == (whole.kind, whole.classes, whole.has_missing)
    assert [type(own) for own in found.classes] == [type(own) for own in whole.classes]


def test_numbers_that_show_late_that_they_are_none():
    classes = Classes("y")
    assert classes.add(column_from("y", [2.0, 1.0, 2.0])).tolist() == [0, 1, 0]
    assert classes.add(column_from("y", np.arange(500.0))).tolist() == [0] * 500
    assert classes.numbered().kind == "continuous"


def test_too_many_classes_are_refused():
    with pytest.raises(ValueError, match=r"Variable 'town' has more than 10,000 classes: coarsen it"):
        Classes("town").add(column_from("town", [str(number) for number in range(10_001)]))


@pytest.mark.parametrize("n_classes", [3, 1000])
def test_combinations_have_one_number_each_in_every_block(n_classes):
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, n_classes, 3000) for _ in range(3)]
    joint = Combinations()
    found = np.concatenate([joint.add([own[i : i + 500] for own in codes]) for i in range(0, 3000, 500)])
    tuples = list(zip(*(own.tolist() for own in codes), strict=True))
    assert [joint.seen[place] for place in found] == tuples
    assert len(joint) == len(set(tuples))
