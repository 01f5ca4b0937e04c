"""A table in files, read part by part."""

import os
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fado.tabular import open_source, read_table

MIXED = pa.table(
    {
        "x": np.arange(10) / 4,
        "n": pa.array([None if i == 3 else i for i in range(10)], pa.int32()),
        "sex": pa.array([["f", "m", None][i % 3] for i in range(10)]).dictionary_encode(),
        "flag": [i % 2 == 0 for i in range(10)],
    }
)


def written(folder, group=1000, **tables):
    folder.mkdir(exist_ok=True)
    for name, table in tables.items():
        table = table if isinstance(table, pa.Table) else pa.table(table)
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=group)
    return folder


def rows_of(source, most_rows=1000, block=None, columns=None):
    parts = source.parts(most_rows)
    return pa.concat_tables(
        [table for part in parts for table in source.blocks(part, columns, block or 1000)]
    )


@pytest.mark.parametrize("block", [None, 1, 3, 100])
@pytest.mark.parametrize("most_rows", [1, 4, 1000])
def test_blocks_of_any_size_hold_the_rows_in_order(block, most_rows, tmp_path):
    folder = written(tmp_path / "d", 4, c=MIXED.slice(6), b=MIXED.slice(0, 0), a=MIXED.slice(0, 6))
    source = open_source(folder)
    assert source.n_rows == source.about_rows == 10
    assert dict(zip(source.schema.names, map(str, source.schema.types), strict=True)) == {
        "x": "double",
        "n": "int32",
        "sex": "large_string",
        "flag": "bool",
    }
    found = rows_of(source, most_rows, block)
    assert found.schema == source.schema
    assert found.to_pydict() == MIXED.to_pydict()
    if block is not None:
        parts = source.parts(most_rows)
        for part in parts:
            sizes = [table.num_rows for table in source.blocks(part, None, block)]
            assert sizes[:-1] == [block] * (len(sizes) - 1)
            assert 0 < sizes[-1] <= block
        rows = list(source.rows(["n"], block))  # which show no file
        assert {table.num_rows for table in rows[:-1]} <= {block}
        assert {tuple(table.column_names) for table in rows} == {("n",)}
        assert pa.concat_tables(rows)["n"].to_pylist() == MIXED["n"].to_pylist()


def test_parts_by_hand(tmp_path):
    folder = written(tmp_path / "d", 3, a={"x": range(10)}, b={"x": range(5)})
    parts = open_source(folder).parts(6)
    assert [(p.number, p.file.path.name, p.row_groups, p.first_row, p.n_rows) for p in parts] == [
        (0, "a.parquet", range(0, 2), 0, 6),
        (1, "a.parquet", range(2, 4), 6, 4),
        (2, "b.parquet", range(0, 2), 10, 5),
    ]
    assert [part.n_rows for part in open_source(folder).parts(2)] == [3, 3, 3, 1, 3, 2]  # no group is cut
    assert [part.n_rows for part in open_source(folder).parts(100)] == [10, 5]  # nor files joined


def test_any_part_can_be_read_alone_and_only_some_columns(tmp_path):
    source = open_source(written(tmp_path / "d", 3, a=MIXED.slice(0, 6), b=MIXED.slice(6)))
    for part in reversed(source.parts(6)):
        sent = pickle.loads(pickle.dumps(source))  # as a worker elsewhere has it
        found = pa.concat_tables(sent.blocks(part, ["flag", "x"], 4))
        assert found.equals(MIXED.select(["x", "flag"]).slice(part.first_row, part.n_rows))


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["int32", "int64"], "int64"),
        (["int8", "int8"], "int8"),
        (["uint8", "uint16"], "uint16"),
        (["uint8", "int8"], "int16"),
        (["int64", "float32"], "double"),
        (["float32", "float32"], "float"),
        (["float32", "float64"], "double"),
        (["float16", "float16"], "double"),
        (["null", "int16"], "int16"),
        (["string", "null"], "large_string"),
        (["null", "null"], "null"),
        (["bool", "null"], "bool"),
        (["string", "large_string"], "large_string"),
    ],
)
def test_types_of_files_are_united(types, expected, tmp_path):
    entries = {"string": ["a", None], "large_string": ["a", None], "bool": [True, None], "null": [None] * 2}
    tables = [pa.table({"v": pa.array(entries.get(own, [1, None])).cast(own)}) for own in types]
    source = open_source(written(tmp_path / "d", a=tables[0], b=tables[1]))
    assert str(source.schema.field("v").type) == expected
    assert rows_of(source)["v"].to_pylist() == [v for table in tables for v in table["v"].to_pylist()]


def test_decimals_are_numbers_and_times_take_the_finest_unit_and_whole_numbers_must_fit(tmp_path):
    seconds, millis = pa.array([1, 2], pa.timestamp("s")), pa.array([1500], pa.timestamp("ms"))
    first, second = (
        {"d": pa.array([1, 2]).cast(pa.decimal128(30, 2)), "t": seconds},
        {"d": [0.5], "t": millis},
    )
    found = rows_of(open_source(written(tmp_path / "d", a=first, b=second)))
    assert found["d"].to_pylist() == [1.0, 2.0, 0.5]
    assert [time.microsecond for time in found["t"].to_pylist()] == [0, 0, 500_000]
    tables = {"a": {"id": pa.array([-1], pa.int8())}, "b": {"id": pa.array([2**64 - 1], pa.uint64())}}
    source = open_source(written(tmp_path / "e", **tables))
    said = r"^Column 'id' of '.*b\.parquet' holds uint64 entries that do not fit"
    with pytest.raises(ValueError, match=said):
        rows_of(source)


def test_differences_are_told_by_file_and_column_and_of_many_the_first(tmp_path):
    rest = {"sex": ["f"]}
    tables = {"a": {"x": [1]}, "b": {"x": ["1"]}, "c": {"x": [1], "more": [1]}, "d": {}}
    folder = written(tmp_path / "d", **{name: rest | table for name, table in tables.items()})
    with pytest.raises(ValueError, match="differ") as caught:
        open_source(folder)
    assert str(caught.value).replace(f"{folder}{os.sep}", "") == (
        "The files differ in their columns: 'c.parquet' has 'more', which 'a.parquet' has not; "
        "'d.parquet' has no column 'x'; column 'x' holds text in 'b.parquet' and numbers in 'a.parquet'. "
        "Give them the same columns of the same types, or name only those that belong together."
    )
    wide, texts = ({f"c{j}": [entry] for j in range(20)} for entry in (1, "a"))
    for name, other, message in (
        ("e", rest, r"has no column 'c0', 'c1', 'c2', 'c3', 'c4' and 15 more\. Give"),
        ("f", rest | texts, r"column 'c3' holds text in .* and 16 more\. Give"),
    ):
        with pytest.raises(ValueError, match=message):
            open_source(written(tmp_path / name, a=rest | wide, b=other))


def test_empty_parts_are_passed_over(tmp_path):
    nothing = pa.table({"other": pa.array([], pa.string())})
    source = open_source(written(tmp_path / "d", a=nothing, b={"x": [1, 2]}, c=nothing))
    assert [file.n_rows for file in source.files] == [0, 2, 0]
    assert [(part.number, part.first_row) for part in source.parts(10)] == [(0, 0)]
    assert rows_of(source).to_pydict() == {"x": [1, 2]}
    with pytest.raises(ValueError, match=r"^There are no rows in '.*a\.parquet' and the other files\.$"):
        open_source(tmp_path / "d" / "[ac].parquet")


@pytest.mark.parametrize("cut", [0, 20, 200])
def test_a_part_that_is_no_parquet_is_named(cut, tmp_path):
    folder = written(tmp_path / "d", a={"x": [1]}, b={"x": [2]})
    content = (folder / "b.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(content[:-cut] if cut else b"x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"b\.parquet' cannot be read as Parquet: it(s end)? is"):
        open_source(folder)


@pytest.mark.parametrize("block", [None, 100])
def test_broken_pages_and_changed_files_are_told_when_they_are_read(block, tmp_path):
    path = written(tmp_path / "d", a={"x": np.random.default_rng(0).normal(size=5000)}) / "a.parquet"
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)
    source = open_source(path)
    with pytest.raises(ValueError, match=r"a\.parquet' cannot be read as Parquet: .*\.$"):
        rows_of(source, block=block)
    written(tmp_path / "d", a={"x": [1, 2]})
    with pytest.raises(ValueError, match=r"a\.parquet' has changed while the table was read: start again\."):
        rows_of(source, block=block)
    path.unlink()
    with pytest.raises(ValueError, match=r"a\.parquet' cannot be read any more: No such file"):
        rows_of(source, block=block)


def test_an_index_of_pandas_is_taken_as_a_file_alone_is(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([7, 8]))
    frame.to_parquet(tmp_path / "a.parquet")
    assert open_source(tmp_path).schema.names == ["x"]
    for name in "ab":
        frame.rename_axis("id").to_parquet(tmp_path / f"{name}.parquet")
    with pytest.warns(
        UserWarning, match=r"index 'id' of the pandas table in .*a\.parquet' is read as"
    ) as told:
        source = open_source(tmp_path)
    assert len(told) == 1
    assert rows_of(source).to_pydict() == {"x": [1.0, 2.0] * 2, "id": [7, 8] * 2}


def test_the_memory_of_a_row_and_of_the_largest_unit(small_blocks, tmp_path):
    tables = {"a": {"x": np.zeros(1000), "s": ["abcd"] * 1000}, "b": {"x": np.zeros(50), "s": ["abcd"] * 50}}
    csv = open_source(written_csv(tmp_path, a="n,m\n" + "1,2\n" * 5000))
    assert csv.bytes_per_row == pytest.approx(16, rel=0.05)
    assert csv.about_rows == pytest.approx(5000, rel=0.01)
    assert csv.largest_unit[1] == pytest.approx(250, abs=2)  # lines of four bytes
    source = open_source(written(tmp_path / "d", 400, **tables))
    assert source.bytes_per_row == pytest.approx(8 + 8 + 4, rel=0.05)  # number, offset, letters
    path, n_rows, n_bytes = source.largest_unit
    assert (path.name, n_rows) == ("a.parquet", 400)
    assert n_bytes == pytest.approx(400 * 20, rel=0.05)


def test_small_blocks_of_a_large_row_group_take_little_memory(tmp_path):
    n = 2_000_000
    rng = np.random.default_rng(0)
    path = written(tmp_path / "d", n, a={f"x{j}": rng.normal(size=n) for j in range(2)}) / "a.parquet"
    source = open_source(path)
    before = pa.total_allocated_bytes()
    most = 0
    for _ in source.blocks(source.parts(n)[0], None, 10_000):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 0.3 * n * 2 * 8


@pytest.fixture
def small_blocks(monkeypatch):
    for size in ("_FIRST", "_BLOCK"):
        monkeypatch.setattr(f"fado.tabular._source.{size}", 1000)


def written_csv(folder, **contents):
    for name, content in contents.items():
        content = content if isinstance(content, bytes) else content.encode()
        (folder / f"{name}.csv").write_bytes(content)
    return folder


def lines(n, start=0):
    return "".join(f"{i},{i / 8},{'fm'[i % 2]},{['NA', 'x', ''][i % 3]}\n" for i in range(start, n))


@pytest.mark.parametrize("block", [None, 7, 300])
def test_many_blocks_are_the_rows_that_are_read_at_once(block, small_blocks, tmp_path):
    written_csv(tmp_path, a="n,x,sex,note\n" + lines(500), b="n,x,sex,note\n" + lines(20))
    source = open_source(tmp_path)
    assert [file.n_rows for file in source.files] == [None, 20]
    assert source.n_rows is None
    assert [(part.row_groups, part.first_row, part.n_rows) for part in source.parts(10)] == [
        (None, 0, None),
        (None, None, 20),
    ]
    found = rows_of(source, 10, block)
    expected = pa.concat_tables([read_table(tmp_path / f"{name}.csv") for name in "ab"])
    assert found.to_pydict() == expected.to_pydict()
    assert [str(kind) for kind in found.schema.types] == ["double", "double", "large_string", "large_string"]
    counted = source.with_rows_counted([500, 20])
    assert counted.n_rows == 520
    assert [part.first_row for part in counted.parts(10)] == [0, 500]


UNITED = {
    "order": (["n,sex\n1,f\n", "sex,n\nm,2.5\n"], {"n": [1, 2.5], "sex": ["f", "m"]}),
    "late fractions": (["n\n" + "1\n" * 999 + "1.5\n"], {"n": [1.0] * 999 + [1.5]}),
    "large": ([f"n\n{2**60 + 1}\n"], {"n": [2**60 + 1]}),
    "semicolons": (["n;x\n" + "1;0,5\n" * 400, "x,n\n0.5,1\n"], {"n": [1] * 401, "x": [0.5] * 401}),
    "late numbers": (["w,v\n" + "f,\n" * 999 + "f,2\n", "w,v\nf,1\n"], {"v": [None] * 999 + [2, 1]}),
}


@pytest.mark.parametrize("name", UNITED)
def test_csv_files_are_united(name, small_blocks, tmp_path):
    contents, expected = UNITED[name]
    source = open_source(written_csv(tmp_path, **dict(zip("ab", contents, strict=False))))
    assert rows_of(source, columns=list(expected)).to_pydict() == expected


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "mark"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("within", ["\n", "\r\n"], ids=["unix within", "windows within"])
def test_line_ends_within_fields_may_fall_anywhere(mark, end, within, small_blocks, tmp_path):
    content = f"v,note{end}" + f'1,"x{within}{within}1,2{within}y ""z"""{end}' * 300
    written_csv(tmp_path, a=mark + content.encode())
    expected = {"v": [1.0] * 300, "note": ['x\n\n1,2\ny "z"'] * 300}
    assert rows_of(open_source(tmp_path)).to_pydict() == expected


@pytest.mark.parametrize(
    ("first", "late", "said"),
    [
        ("1", "many", r"holds 'many' in row 1,001, where the first rows of the files hold numbers: correct"),
        ("true", "maybe", r"holds 'maybe' in row 1,001, where the first rows of the files hold booleans"),
        (
            f"{2**60}",
            "0.5",
            r"holds '0.5' in row 1,001, where the first rows of the files hold whole numbers",
        ),
        ("", "late", r"holds 'late' in row 1,001, where the first rows of the files hold empty cells"),
    ],
)
@pytest.mark.parametrize("columns", [None, ["v"]])
def test_what_does_not_fit_is_named_by_file_column_and_row(
    first, late, said, columns, small_blocks, tmp_path
):
    written_csv(tmp_path, a="sex,v\n" + f"f,{first}\n" * 1000 + f"m,{late}\n" + f"f,{first}\n" * 100)
    source = open_source(tmp_path)
    with pytest.raises(ValueError, match=rf"^Column 'v' of '.*a\.csv' {said}"):
        rows_of(source, columns=columns)


def test_files_without_rows_are_passed_over(tmp_path):
    written_csv(tmp_path, a="", b="v\n", c="v\n1\n")
    source = open_source(tmp_path)
    assert [file.n_rows for file in source.files] == [0, 0, 1]
    assert rows_of(source).to_pydict() == {"v": [1.0]}
    with pytest.raises(ValueError, match=r"^There are no rows in '.*a\.csv'\.$"):
        open_source(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"a,b\n" + b"1,x\n" * 1000 + b"2,\xe9\n",
            "is not UTF-8 text: line 1002 has the byte 0xe9; convert it",
        ),
        (b"a,b\n" + b"1,x\n" * 1000 + b"2\n", "cannot be read as CSV: .*Expected 2 columns, got 1"),
    ],
)
def test_what_breaks_late_is_a_sentence(content, said, small_blocks, tmp_path):
    written_csv(tmp_path, a=content)
    source = open_source(tmp_path)
    with pytest.raises(ValueError, match=rf"^'.*a\.csv' {said}"):
        rows_of(source)
