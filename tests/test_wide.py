"""Tables of thousands of columns: what each column costs does not grow with the number of columns.

Work is counted, not timed: how often a column's name is hashed or compared, how often all columns are gone
through.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fado import OutOfBagEntropy
from fado.engine import Schema, _bins
from fado.exploration._slices import ConditionTable, binned_columns
from fado.tabular import Table, _source, column_from, open_source

FEW, MANY = 50, 200


class Counted(str):
    """A column's name that counts how often it is hashed or compared."""

    __slots__ = ()
    looks = 0

    def __eq__(self, other):
        Counted.looks += 1
        return str.__eq__(self, other)

    def __hash__(self):
        Counted.looks += 1
        return str.__hash__(self)


def looks(work):
    """How much more often names are looked at for four times as many columns."""
    counts = []
    for n_columns in (FEW, MANY):
        names = [Counted(f"c{j}") for j in range(n_columns)]
        prepared = work(names)
        Counted.looks = 0
        prepared()
        counts.append(Counted.looks)
    return counts[1] / counts[0]


def table_of(names):
    return Table(None, names, 1, [column_from(name, np.zeros(1)) for name in names], named=True)


def schema_of(names):
    return Schema(tuple(names), (None,) * len(names), named=True)


def find_each(names):
    table = table_of(names)
    return lambda: [table.positions(name) for name in names]


def find_in_another_order(names):
    schema, other = schema_of(names), table_of(names[::-1])
    return lambda: schema.find(other, list(range(len(names))))


@pytest.mark.parametrize("work", [find_each, find_in_another_order])
def test_names_are_matched_by_looking_at_each_a_few_times(work):
    assert looks(work) <= MANY / FEW + 1


def test_columns_of_files_are_chosen_by_looking_at_each_a_few_times(tmp_path):
    def work(names):
        plain = [str(name) for name in names]
        folder = tmp_path / str(len(names))
        folder.mkdir()
        frame = pd.DataFrame(np.zeros((4, len(names))), columns=plain).assign(y=[0, 1, 0, 1], z=list("fmfm"))
        frame.to_parquet(folder / "a.parquet")
        source = open_source(folder)
        (part,) = source.parts(10)
        return lambda: next(source.blocks(part, names, 100))

    assert looks(work) <= MANY / FEW + 1


def test_a_model_goes_through_all_columns_as_often_as_one_of_few_columns(monkeypatch):
    calls = []
    plain = _bins.DenseColumns.__init__
    counted = lambda *given: calls.append(1) or plain(*given)  # noqa: E731
    monkeypatch.setattr(_bins.DenseColumns, "__init__", counted)
    rng = np.random.default_rng(0)
    counts = []
    for n_columns in (5, 20):
        calls.clear()
        frame = pd.DataFrame(rng.choice(list("abc"), (60, n_columns)))
        OutOfBagEntropy(n_bags=5, random_state=0).fit(frame, np.arange(60) % 2)
        counts.append(len(calls))
    assert counts[0] == counts[1] <= 3 * 5


def test_conditions_of_a_column_are_not_looked_for_among_all(monkeypatch):
    rng = np.random.default_rng(0)
    features = [column_from(f"c{j}", rng.normal(size=100)) for j in range(6)]
    problem = SimpleNamespace(table=SimpleNamespace(columns=features), sources=(None,))
    columns = binned_columns(SimpleNamespace(problem=problem, sample=np.arange(100), attributes=()))
    amounts = rng.normal(size=100)
    table = ConditionTable(columns, {column.number: column.codes for column in columns}, amounts)
    table._ends = None  # of all conditions: to compare them for every column would be quadratic
    counts, sums = table._totals(amounts)
    held = [one.holds(column.codes) for column in columns for one in column.conditions]
    assert counts.tolist() == [rows.sum() for rows in held]
    np.testing.assert_allclose(sums, [amounts[rows].sum() for rows in held], atol=1e-12)


def test_a_block_of_a_wide_csv_file_has_rows_enough(tmp_path):
    """A block of a megabyte would have 70, and what every column takes in every block be most of the work."""
    line = ",".join(["0.1234"] * 2000)
    (tmp_path / "a.csv").write_text("\n".join([",".join(f"c{j}" for j in range(2000)), *[line] * 300]) + "\n")
    source = open_source(tmp_path)
    (part,) = source.parts(10)
    file, schema = part.file, source.schema
    sizes = [block.num_rows for block in _source._csv_blocks(file.path, file.form, schema, schema.names)]
    assert sum(sizes) == 300
    assert len(sizes) <= 3
    assert source.largest_unit[1] == pytest.approx(max(sizes), rel=0.1)
