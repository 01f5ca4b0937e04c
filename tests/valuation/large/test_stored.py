"""Values in files, block by block."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import fado
from fado import Valuation
from fado.valuation.large import StoredValues

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
    stored.check("y", ["sex"], 300)
    with pytest.raises(ValueError, match="are of 300 rows, and the table has 299"):
        stored.check("y", ["sex"], 299)
    with pytest.raises(ValueError, match="are of 'sex', and there are none of 'age'"):
        stored.check("y", ["age"], None)


def test_values_of_another_target_are_refused(tmp_path):
    note = fado.valuation.TargetNote("default", "digest")
    VALUATION.with_provenance(made_for=note).save(tmp_path / "v.parquet")
    with pytest.raises(ValueError, match="are of the target 'default', not of 'hired'"):
        StoredValues(tmp_path / "v.parquet").check("hired", ["sex"], None)


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
