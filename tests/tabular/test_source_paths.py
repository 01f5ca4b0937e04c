"""Which files a path, a list, a directory or a pattern stands for."""

from pathlib import Path

import pytest

from fado.tabular import open_source, reader_of


@pytest.fixture
def folder(tmp_path):
    for name in ("b.csv", "a.csv", "_done.csv", ".hidden.csv", "sub/c.csv", "sub/_old/d.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x,y\n1,2\n")
    return tmp_path


def names(folder, paths):
    return [file.path.relative_to(folder).as_posix() for file in open_source(paths).files]


def test_files_in_any_order_stand_sorted(folder):
    assert names(folder, [folder / "b.csv", str(folder / "a.csv")]) == ["a.csv", "b.csv"]
    assert names(folder, folder / "_done.csv") == ["_done.csv"]  # named by itself


def test_patterns(folder):
    assert names(folder, f"{folder}/*.csv") == ["a.csv", "b.csv"]
    assert names(folder, str(folder / "[b-z].csv")) == ["b.csv"]
    assert names(folder, folder / "**" / "*.csv") == ["a.csv", "b.csv", "sub/c.csv"]


def test_relative_patterns(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert [str(file.path) for file in open_source("*.csv").files] == ["a.csv", "b.csv"]
    assert [file.path.as_posix() for file in open_source("sub/c.csv").files] == ["sub/c.csv"]


def test_a_directory_passes_over_bookkeeping(folder):
    (folder / "sub" / "_done.json").write_text("{}")
    assert names(folder, folder / "sub") == ["sub/c.csv"]
    assert names(folder, f"{folder}/s*") == ["sub/c.csv"]


def test_a_name_that_looks_like_a_pattern_and_is_there(tmp_path):
    (tmp_path / "a[1].csv").write_text("x\n1\n")
    assert names(tmp_path, tmp_path / "a[1].csv") == ["a[1].csv"]


def test_other_files_are_left_out_and_told(folder):
    (folder / "sub" / "readme.txt").write_text("text")
    with pytest.warns(UserWarning, match=r"^'readme\.txt' of '.*sub' are left out: only files that end in"):
        open_source(folder / "sub")


REFUSED = {
    "none/a.csv": r"There is no file or directory '.*a\.csv'\.",
    "z*.csv": r"z\*\.csv' fits no file that ends in \.csv or \.parquet\.",
    "": r"has directories inside it \('sub'\): name the files that are meant with a pattern",
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
    with pytest.raises(ValueError, match=r"a\.csv' would be read twice: name it once\."):
        open_source([folder / "a.csv", f"{folder}/*.csv"])
    with pytest.raises(ValueError, match="`paths` must name at least one file, directory or pattern"):
        open_source([])
    with pytest.raises(TypeError, match=r"`paths` must hold paths, got 3\."):
        open_source([3])


def test_a_path_that_the_system_refuses():
    with pytest.raises(ValueError, match=r"^'x+\.csv' cannot be read: File name too long\.$"):
        open_source("x" * 300 + ".csv")


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
