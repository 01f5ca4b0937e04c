"""Levels of text, united over files and blocks."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fado.tabular import LevelsCollector, column_from, open_source

TEXTS = ["b", "ä", "a", "", None, "B", "z" * 40, "10", "2"]
TEXT = pa.large_string()


def scan_levels(source, most_rows):
    collector = LevelsCollector(source.schema)
    for part in source.parts(most_rows):
        for block in source.blocks(part, most_rows=most_rows):
            collector.add(block)
    return collector.levels()


def test_levels_are_those_of_the_whole_column(tmp_path):
    whole = pa.table({"t": TEXTS * 3, "c": pa.array(TEXTS * 3).dictionary_encode(), "x": range(27)})
    for place in range(3):
        pq.write_table(whole.slice(9 * place, 9), tmp_path / f"{place}.parquet", row_group_size=4)
    expected = {name: column_from(name, whole[name]).levels for name in ("t", "c")}
    for most_rows in (1, 5, 100):
        assert scan_levels(open_source(tmp_path), most_rows) == expected


def test_no_text_no_levels(tmp_path):
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    assert scan_levels(open_source(tmp_path), 10) == {}


@pytest.mark.parametrize("pending", [0, 1 << 16])
def test_too_many_levels_are_refused_and_no_fewer(pending, monkeypatch):
    monkeypatch.setattr("fado.tabular._streams._PENDING", pending)

    def collected(n):
        collector = LevelsCollector(pa.schema({"id": TEXT}), most=100)
        for start in range(0, n, 7):
            texts = [f"k{i}" for i in range(start, min(start + 7, n))]
            collector.add(pa.table({"id": pa.array(texts * 2, TEXT)}))
        return collector.levels()

    assert len(collected(100)["id"]) == 100
    said = r"Column 'id' has more than 100 different texts, like .*: leave it out with `drop=\['id'\]`"
    with pytest.raises(ValueError, match=said):
        collected(101)


def test_texts_that_repeat_are_not_held(monkeypatch):
    monkeypatch.setattr("fado.tabular._streams._PENDING", 50)
    collector = LevelsCollector(pa.schema({"t": TEXT}))
    for _ in range(100):
        collector.add(pa.table({"t": pa.array(TEXTS, TEXT)}))
        assert sum(map(len, collector._seen["t"])) <= 50 + len(set(TEXTS))
