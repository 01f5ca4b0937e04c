"""A table and its values, block by block."""

import numpy as np
import pandas as pd
import pytest

from fado import Valuation
from fado.interventions.bulk._blocks import Lockstep
from fado.tabular import open_source
from fado.valuation.bulk import StoredValues


@pytest.fixture
def values(tmp_path):
    Valuation.from_probabilities(np.linspace(0.5, 1.0, 100)).save(tmp_path / "v.parquet")
    return StoredValues(tmp_path / "v.parquet")


def table_of(n_rows, folder):
    pd.DataFrame({"place": np.arange(n_rows), "more": 0}).to_csv(folder / "t.csv", index=False)
    return open_source(folder / "t.csv")


@pytest.mark.parametrize("block_rows", [1, 30, 50, 1000])
def test_rows_and_their_values_come_together(tmp_path, values, block_rows):
    blocks = list(Lockstep(table_of(100, tmp_path), values).blocks(["place"], "blocks", block_rows))
    expected = Valuation.from_probabilities(np.linspace(0.5, 1.0, 100))["y"]
    for block in blocks:
        places = block.table["place"].to_numpy().astype(int)  # whole numbers of CSV files are floats
        assert (places == block.first + np.arange(len(places))).all()
        assert (block.values["y"] == expected[places]).all()
    assert sum(block.table.num_rows for block in blocks) == 100


@pytest.mark.parametrize("block_rows", [1, 30, 50, 1000])
@pytest.mark.parametrize("n_rows", [70, 90, 99, 101, 150, 200])
def test_another_number_of_rows_is_refused(tmp_path, values, n_rows, block_rows):
    told = "the table has more" if n_rows > 100 else f"the table has {n_rows}"
    blocks = Lockstep(table_of(n_rows, tmp_path), values).blocks(["place"], "blocks", block_rows)
    if n_rows < 100 and n_rows % block_rows == 0:
        assert len(list(blocks)) == n_rows / block_rows  # whoever counts the rows will find out
    else:
        with pytest.raises(ValueError, match=f"are of 100 rows, and {told}"):
            list(blocks)
