"""CSV files, block by block."""

import pyarrow as pa
import pytest

from fado.tabular import open_source, read_table


@pytest.fixture
def small_blocks(monkeypatch):
    for size in ("_FIRST", "_BLOCK"):
        monkeypatch.setattr(f"fado.tabular._source.{size}", 1000)


def written(folder, **contents):
    for name, content in contents.items():
        content = content if isinstance(content, bytes) else content.encode()
        (folder / f"{name}.csv").write_bytes(content)
    return folder


def rows_of(source, block=None, columns=None):
    return pa.concat_tables(
        [table for part in source.parts(10) for table in source.blocks(part, columns, block)]
    )


def lines(n, start=0):
    return "".join(f"{i},{i / 8},{'fm'[i % 2]},{['NA', 'x', ''][i % 3]}\n" for i in range(start, n))


@pytest.mark.parametrize("block", [None, 7, 300])
def test_many_blocks_are_the_rows_that_are_read_at_once(block, small_blocks, tmp_path):
    written(tmp_path, a="n,x,sex,note\n" + lines(500), b="n,x,sex,note\n" + lines(20))
    source = open_source(tmp_path)
    assert [file.n_rows for file in source.files] == [None, 20]
    assert source.n_rows is None
    assert [(part.row_groups, part.first_row, part.n_rows) for part in source.parts(10)] == [
        (None, 0, None),
        (None, None, 20),
    ]
    found = rows_of(source, block)
    expected = pa.concat_tables([read_table(tmp_path / f"{name}.csv") for name in "ab"])
    assert found.to_pydict() == expected.to_pydict()
    assert [str(kind) for kind in found.schema.types] == ["double", "double", "large_string", "large_string"]
    counted = source.with_rows_counted([500, 20])
    assert counted.n_rows == 520
    assert [part.first_row for part in counted.parts(10)] == [0, 500]


def test_columns_in_another_order_find_their_place(small_blocks, tmp_path):
    written(tmp_path, a="n,sex\n1,f\n", b="sex,n\nm,2.5\n")
    assert rows_of(open_source(tmp_path)).to_pydict() == {"n": [1, 2.5], "sex": ["f", "m"]}
    assert rows_of(open_source(tmp_path), columns=["sex"]).to_pydict() == {"sex": ["f", "m"]}


def test_fractions_may_come_late(small_blocks, tmp_path):
    written(tmp_path, a="n\n" + "1\n" * 1000 + "1.5\n")
    assert rows_of(open_source(tmp_path))["n"].to_pylist()[-2:] == [1.0, 1.5]


def test_large_whole_numbers_stay_whole(tmp_path):
    written(tmp_path, a=f"n\n{2**60 + 1}\n")
    assert rows_of(open_source(tmp_path))["n"].to_pylist() == [2**60 + 1]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "mark"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("within", ["\n", "\r\n"], ids=["unix within", "windows within"])
def test_line_ends_within_fields_may_fall_anywhere(mark, end, within, small_blocks, tmp_path):
    content = f"v,note{end}" + f'1,"x{within}{within}1,2{within}y ""z"""{end}' * 300
    written(tmp_path, a=mark + content.encode())
    expected = {"v": [1.0] * 300, "note": ['x\n\n1,2\ny "z"'] * 300}
    assert rows_of(open_source(tmp_path)).to_pydict() == expected


def test_semicolons_and_decimal_commas(small_blocks, tmp_path):
    written(tmp_path, a="n;x\n" + "1;0,5\n" * 400, b="n,x\n2,0.25\n")
    found = rows_of(open_source(tmp_path))
    assert found["x"].to_pylist() == [0.5] * 400 + [0.25]


@pytest.mark.parametrize(
    ("first", "late", "said"),
    [
        ("1", "many", r"holds 'many' in row 1,001, where the first rows of the files hold numbers: mend"),
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
    written(tmp_path, a="sex,v\n" + f"f,{first}\n" * 1000 + f"m,{late}\n" + f"f,{first}\n" * 100)
    source = open_source(tmp_path)
    with pytest.raises(ValueError, match=rf"^Column 'v' of '.*a\.csv' {said}"):
        rows_of(source, columns=columns)


def test_a_column_that_is_empty_at_first_is_what_another_file_says(small_blocks, tmp_path):
    written(tmp_path, a="sex,v\n" + "f,\n" * 1000 + "m,2\n", b="sex,v\nf,1\n")
    assert rows_of(open_source(tmp_path))["v"].to_pylist()[-2:] == [2.0, 1.0]


def test_text_against_numbers_is_told_by_file(tmp_path):
    written(tmp_path, a="v\n1\n", b="v\nx\n")
    with pytest.raises(ValueError, match=r"column 'v' holds text in '.*b\.csv' and numbers in '.*a\.csv'"):
        open_source(tmp_path)


def test_files_without_rows_are_passed_over(tmp_path):
    written(tmp_path, a="", b="v\n", c="v\n1\n")
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
    written(tmp_path, a=content)
    source = open_source(tmp_path)
    with pytest.raises(ValueError, match=rf"^'.*a\.csv' {said}"):
        rows_of(source)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"gr\xf6,b\n1,x\n", "is not UTF-8 text: line 1 has the byte 0xf6"),
        (b"a,a\n1,2\n", "has more than one column called 'a': rename them"),
        (b"PAR1....", "is a Parquet file: let its name end in .parquet"),
        (b"a;b\n1,5;1.5\n2,5;2.5\n", "writes numbers with decimal commas and with decimal points"),
    ],
)
def test_what_is_wrong_from_the_start_is_a_sentence(content, said, tmp_path):
    written(tmp_path, a=content)
    with pytest.raises(ValueError, match=rf"^'.*a\.csv' {said}"):
        open_source(tmp_path)


def test_the_memory_of_a_row_and_of_a_block(small_blocks, tmp_path):
    source = open_source(written(tmp_path, a="n,m\n" + "1,2\n" * 5000))
    assert source.bytes_per_row == pytest.approx(16, rel=0.05)
    assert source.about_rows == pytest.approx(5000, rel=0.01)
    assert source.largest_unit.n_rows == pytest.approx(250, abs=2)  # lines of four bytes
