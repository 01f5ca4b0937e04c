"""Tables in a file, and the files that a path or a pattern stands for."""

import bz2
import gzip
import lzma
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fado.tabular import Table, open_source, read_table, reader_of

PLAIN = b"age,sex,note\n30,f,x\n31,m,y z\n"


def written(folder, content, name="d.csv"):
    (folder / name).write_bytes(content)
    return folder / name


def refusal(path):
    with pytest.raises(ValueError, match=path.name) as caught:
        read_table(path)
    text = str(caught.value)
    assert text.startswith(f"{str(path)!r} ")
    assert text.endswith(".")
    return text.removeprefix(f"{str(path)!r} ")


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        b"\xef\xbb\xbf" + PLAIN,
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b",", b";"),
        PLAIN.replace(b",", b"\t"),
        b"\xef\xbb\xbf" + PLAIN.replace(b",", b";").replace(b"\n", b"\r\n"),
        b"\n" + PLAIN.replace(b",", b";"),
        b'"age";"sex";"note"\n30;"f";"x"\n31;"m";"y z"\n',
    ],
    ids=["commas", "mark", "windows", "semicolons", "tabs", "excel", "empty line", "quoted"],
)
def test_text_of_any_usual_form(content, tmp_path):
    table = read_table(written(tmp_path, content))
    assert table.to_pydict() == {"age": [30, 31], "sex": ["f", "m"], "note": ["x", "y z"]}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # separators and line ends within fields
        (b'name,"a;b",c\n"x;1",1,2\n"y;2",3,4\n', {"name": ["x;1", "y;2"], "a;b": [1, 3], "c": [2, 4]}),
        (b'name;"a,b";c\n"x,1";1;2\n"y,2";3;4\n', {"name": ["x,1", "y,2"], "a,b": [1, 3], "c": [2, 4]}),
        (b"note\na;b\nc\n", {"note": ["a;b", "c"]}),
        (b'a;b\n1;"x\ny;z"\n2;"u"\n', {"a": [1, 2], "b": ["x\ny;z", "u"]}),
        (b"a,b\n1,x\0\n", {"a": [1], "b": ["x\0"]}),
        # decimal commas, also as other programs write them
        (
            b"a;b;c\n1,5;-2;x\n-0,25;3;1,5\n;;1,25\n",
            {"a": [1.5, -0.25, None], "b": [-2, 3, None], "c": ["x", "1,5", "1,25"]},
        ),
        (b"a\tb\n1,5\t2\n3,5\t3\n", {"a": [1.5, 3.5], "b": [2, 3]}),
        (
            b"a;b;c\n1e-04;NA; 1,5\n0,5;NA;,25\nNA;1,5E+2;2,\n",
            {"a": [0.0001, 0.5, None], "b": [None, None, 150.0], "c": [1.5, 0.25, 2.0]},
        ),
        (
            b"a;when\n1.5;01.02.2020\n2.5;02.02.2020\n",
            {"a": [1.5, 2.5], "when": ["01.02.2020", "02.02.2020"]},
        ),
    ],
)
def test_entries_are_what_they_mean(content, expected, tmp_path):
    assert read_table(written(tmp_path, content)).to_pydict() == expected


def test_a_long_file_with_semicolons_is_read_whole(tmp_path):
    content = b"a;b\n" + b"1;x\n" * 50_000
    table = read_table(written(tmp_path, content))
    assert (table.num_rows, table.column_names) == (50_000, ["a", "b"])


@pytest.mark.parametrize(
    "content", [b"a;b\n1,5;1.5\n2,5;2.5\n", b"a;b\n1,5;1\n2.5;2\n"], ids=["columns", "rows"]
)
def test_decimal_commas_beside_decimal_points_are_refused(content, tmp_path):
    said = refusal(written(tmp_path, content))
    with pytest.raises(ValueError, match="decimal commas and with decimal points"):
        open_source(tmp_path / "d.csv")
    assert said.startswith("writes numbers with decimal commas and with decimal points (column '")
    assert said.endswith("save it with points alone.")


@pytest.mark.parametrize("content", [b"a;b;c\n1;2\n3;4;5\n", b"sep=;\na;b;c\n1;2;3\n", b"a\tb\n1\n2\t3\n"])
def test_separators_that_are_not_plain_to_see_are_refused(content, tmp_path):
    said = refusal(written(tmp_path, content))
    assert "in its header, but its lines do not all have the same number of fields" in said
    assert said.endswith("save it with commas between them.")


LATIN = "größe,b\n1,x\n".encode("latin-1")
NO_UTF_8 = (
    "is not UTF-8 text: line {} has the byte 0x{}; convert it, for example with `iconv -f latin1 -t utf-8`."
)
NONE = "cannot be read as Parquet: it is not Parquet; if it is CSV, rename it to end in .csv."
CUT = "cannot be read as Parquet: its end is missing; it is still being written, or was cut off."
UTF_16 = "is UTF-16 text: save it as UTF-8, for example with `iconv -f utf-16 -t utf-8`."


def parquet(table=None):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1, 2]}) if table is None else table, sink)
    return sink.getvalue().to_pybytes()


BROKEN = {
    "latin-1 header.csv": (LATIN, NO_UTF_8.format(1, "f6")),
    "latin-1 body.csv": (b"a,b\n1,x\n2,\xe9\n", NO_UTF_8.format(3, "e9")),
    "latin-1 semicolons.csv": (LATIN.replace(b",", b";"), NO_UTF_8.format(1, "f6")),
    "utf-16.csv": (PLAIN.decode().encode("utf-16"), UTF_16),
    "utf-16 without mark.csv": (PLAIN.decode().encode("utf-16-le"), UTF_16),
    "empty.csv": (b"", "is empty."),
    "blank.csv": (b"\n \n", "has no rows."),
    "header.csv": (b"a;b\n", "has no rows."),
    "gzip.csv": (gzip.compress(PLAIN), "is compressed: unpack it, for example with `gunzip`."),
    "bzip.csv": (bz2.compress(PLAIN), "is compressed: unpack it, for example with `bunzip2`."),
    "xz.csv": (lzma.compress(PLAIN), "is compressed: unpack it, for example with `unxz`."),
    "zip.csv": (b"PK\x03\x04...", "is a ZIP archive or a workbook: unpack it, or save the sheet as CSV."),
    "parquet.csv": (parquet(), "is a Parquet file: rename it to end in .parquet."),
    "cut.csv": (PLAIN + b"32", "cannot be read as CSV: CSV parse error: Expected 3 columns, got 1: 32."),
    "twice.csv": (b"a,a,b,b\n1,2,3,4\n", "has more than one column called 'a', 'b': rename them."),
    "text.parquet": (PLAIN, NONE),
    "empty.parquet": (b"", "is empty."),
    "cut.parquet": (parquet()[:-20], CUT),
    "begun.parquet": (b"PAR1", "cannot be read as Parquet: "),
    "no rows.parquet": (parquet(pa.table({"a": pa.array([], pa.int64())})), "has no rows."),
    "twice.parquet": (
        parquet(pa.table([[1], [2], [3]], names=["a", "b", "a"])),
        "has more than one column called 'a': rename them.",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_sentence_names_the_file_and_the_remedy(name, tmp_path):
    content, message = BROKEN[name]
    path = written(tmp_path, content, name)
    assert refusal(path).startswith(message)
    if "twice" in name or name in ("latin-1 header.csv", "parquet.csv"):  # wrong from the start
        with pytest.raises(ValueError, match=message.split(";")[0]):
            open_source(path)
    (tmp_path / f"folder {name}").mkdir()
    assert refusal(tmp_path / f"folder {name}") == "is not a file."


FRAME = pd.DataFrame({"a": [1.0, 2.0], "sex": ["f", "m"]})


@pytest.mark.parametrize("index", [pd.RangeIndex(2), pd.Index([7, 8]), pd.Index(["p", "q"])], ids=str)
def test_an_index_without_a_name_is_no_column(index, tmp_path):
    FRAME.set_axis(index).to_parquet(tmp_path / "d.parquet", index=True)
    table = read_table(tmp_path / "d.parquet")
    assert table.column_names == ["a", "sex"]
    assert list(table.to_pandas().columns) == ["a", "sex"]
    held = pq.read_table(tmp_path / "d.parquet")  # as a user may hand it over
    assert Table.from_input(held).names == ["a", "sex"]


def test_a_named_index_is_a_column_and_a_warning_says_so(tmp_path):
    named = FRAME.set_axis(pd.MultiIndex.from_arrays([[7, 8], ["p", "q"]], names=["id", "branch"]))
    named.to_parquet(tmp_path / "d.parquet")
    with pytest.warns(
        UserWarning, match=r"index 'id', 'branch' of the pandas table in .*d\.parquet' is read as"
    ):
        table = read_table(tmp_path / "d.parquet")
    assert table.column_names == ["a", "sex", "id", "branch"]
    assert list(table.to_pandas().columns) == ["a", "sex", "id", "branch"]
    held = Table.from_input(pq.read_table(tmp_path / "d.parquet"))
    assert held.names == list(held.to_pandas().columns) == ["a", "sex", "id", "branch"]


@pytest.fixture
def folder(tmp_path):
    for name in ("b.csv", "a.csv", "_done.csv", ".hidden.csv", "sub/c.csv", "sub/_old/d.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x,y\n1,2\n")
    return tmp_path


def names(folder, paths):
    return [file.path.relative_to(folder).as_posix() for file in open_source(paths).files]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["b.csv", "a.csv"], ["a.csv", "b.csv"]),
        (["_done.csv"], ["_done.csv"]),  # named by itself
        (["*.csv"], ["a.csv", "b.csv"]),
        (["[b-z].csv"], ["b.csv"]),
        (["**/*.csv"], ["a.csv", "b.csv", "sub/c.csv"]),
        (["sub/c.csv"], ["sub/c.csv"]),
        (["sub"], ["sub/c.csv"]),
        (["s*"], ["sub/c.csv"]),
        (["a[1].csv"], ["a[1].csv"]),  # like a pattern, and there
    ],
)
def test_paths_and_patterns_stand_for_files_in_order(paths, expected, folder, monkeypatch):
    (folder / "sub" / "_done.json").write_text("{}")
    if paths == expected == ["a[1].csv"]:
        (folder / "a[1].csv").write_text("x\n1\n")
    for kind in (str, Path):
        assert names(folder, [kind(folder / path) for path in paths]) == expected
    monkeypatch.chdir(folder)
    assert [file.path.as_posix() for file in open_source(paths).files] == expected


def test_other_files_are_left_out_and_told(folder):
    (folder / "sub" / "readme.txt").write_text("text")
    with pytest.warns(UserWarning, match=r"^'readme\.txt' of '.*sub' are left out: only files that end in"):
        open_source(folder / "sub")


REFUSED = {
    "none/a.csv": r"There is no file or directory '.*a\.csv'\.",
    "z*.csv": r"z\*\.csv' matches no file that ends in \.csv or \.parquet\.",
    "": r"has directories inside it \('sub'\): name the files with a pattern",
    "empty": r"The directory '.*empty' has no file that ends in \.csv or \.parquet\.",
    "readme.txt": r"readme\.txt' must end in \.csv or \.parquet, so that its format is known\.",
    "both": r"A table is in CSV or in Parquet files, not in both: '.*a\.csv' and '.*b\.parquet'; name those",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant(name, folder):
    (folder / "readme.txt").write_text("x")
    for inside in ("empty", "both"):
        if inside == name:
            (folder / inside).mkdir()
    if name == "both":
        (folder / "both" / "a.csv").touch()
        (folder / "both" / "b.parquet").touch()
    with pytest.raises(ValueError, match=REFUSED[name]):
        open_source(folder / name)


def test_lists_that_cannot_be_meant(folder):
    for paths, error, message in (
        ([folder / "a.csv", f"{folder}/*.csv"], ValueError, r"a\.csv' would be read twice: list it once\."),
        ([], ValueError, "`paths` must name at least one file, directory or pattern"),
        ([3], TypeError, r"`paths` must hold paths, got 3\."),
        (3, TypeError, "must name files or directories, got int: write a"),
        (pd.DataFrame({"a": [1]}), TypeError, "must name files or directories, got DataFrame: write a"),
        ("x" * 300 + ".csv", ValueError, r"^'x+\.csv' cannot be read: File name too long\.$"),
    ):
        with pytest.raises(error, match=message):
            open_source(paths)


@pytest.mark.parametrize(
    ("given", "out", "expected"),
    [
        ("d", "d/v", True),
        ("d", "v", False),
        ("d", "d/_v", False),
        ("d", "d/inner/v", False),  # which a directory does not stand for
        ("d/a.csv", "d/v", False),
        ("d/*", "d/v", True),
        ("d/*", "d/v.parquet", True),
        ("d/*", "d/_v", False),
        ("d/*", "d/.v", False),
        ("d/*", "d", True),  # its parts would be
        ("d/*", "v", False),
        ("d/*.parquet", "d/v.parquet", True),
        ("d/*.parquet", "d/v", False),
        ("d/?.parquet", "d/v.parquet", True),
        ("d/?.parquet", "d/values.parquet", False),
        ("d/*/*.parquet", "d/v", True),
        ("d/*/*.parquet", "d/inner/v", False),
        ("d/*/*.parquet", "d/inner/v.parquet", True),
        ("d/*", "d/inner/v.parquet", True),  # a directory that it stands for
        ("d/**/*.parquet", "d/inner/v", True),
        ("d/**/*.parquet", "d/_inner/v", False),
        ("*/*.parquet", "d/v.parquet", True),
        ("./d/../d/*", "d/v", True),
        (["x.csv", "d/*"], "d/v", True),
    ],
)
def test_what_would_be_read_once_it_is_there(tmp_path, monkeypatch, given, out, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d" / "inner").mkdir(parents=True)
    (tmp_path / "d" / "a.csv").write_text("a\n1\n")
    name = given if isinstance(given, str) else given[1]
    assert reader_of(given, Path(out)) == (name if expected else None)
    assert reader_of(given, tmp_path / out) == (name if expected else None)
