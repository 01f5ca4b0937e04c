"""`fado value`, as a user runs it."""

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import check_sentence, run

from fado import OutOfBagEntropy, Valuation
from fado.datasets import protected_from

RNG = np.random.default_rng(0)
N = 300


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "id": np.arange(N),
            "age": RNG.integers(18, 90, N),
            "income": RNG.lognormal(size=N),
            "sex": RNG.choice(["f", "m"], N),
            "default": (RNG.random(N) < 0.3).astype(int),
        }
    )


@pytest.fixture
def value(tmp_path):
    """Value a table, or a file; what is written is `v.parquet`, or what `out` names, in `tmp_path`."""

    def run_it(table, *more, out="v.parquet", target="default", protected=("sex",), code=0):
        if isinstance(table, pd.DataFrame):
            table.to_parquet(tmp_path / "data.parquet")
            table = tmp_path / "data.parquet"
        few = {} if "--valuator" in more else {"bags": 5}
        return run(
            "value", table, *more, out=tmp_path / out, target=target, protected=protected, **few, code=code
        )

    return run_it


def fitted(frame, columns=("age", "income", "sex"), seed=0, exclude=(), **settings):
    """Fit out-of-bag entropy in Python as the command fits it."""
    valuator = OutOfBagEntropy(n_bags=5, random_state=seed, z_exclude={"sex": ["sex"], **dict(exclude)})
    settings = {"sensitive_features": {"sex": frame["sex"]}, **settings}
    return valuator.fit(frame[list(columns)], frame["default"], **settings).valuation_


def test_values_equal_the_librarys(frame, value, tmp_path):
    value(frame, "--drop", "id", "--seed", 3, protected=("sex", "age>=50"))
    z = {"sex": frame["sex"], "age>=50": protected_from(frame, "age>=50")}
    expected = fitted(frame, seed=3, exclude={"age>=50": ["age"]}, sensitive_features=z)
    found = Valuation.load(tmp_path / "v.parquet")
    pd.testing.assert_frame_equal(found.values, expected.values, check_exact=True)
    assert found.probabilities is None


def test_probabilities_are_kept_as_by_the_library(frame, value, tmp_path):
    value(frame, "--drop", "id", "--keep-probabilities")
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, keep_probabilities=True, z_exclude={"sex": ["sex"]})
    z = {"sex": frame["sex"]}
    expected = valuator.fit(frame.drop(columns=["default", "id"]), frame["default"], sensitive_features=z)
    found = Valuation.load(tmp_path / "v.parquet")
    assert found.probabilities["sex"].shape == (N, 2, 2)
    for name, probabilities in expected.valuation_.probabilities.items():
        np.testing.assert_array_equal(found.probabilities[name], probabilities)
    assert found.values.equals(fitted(frame).values)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("--valuator inbag", "is for `--valuator oob`, not for 'inbag': leave it out"),
        ("--valuator knn-shapley", "is for `--valuator oob`, not for 'knn-shapley'"),
        ("--out v.csv", "`--keep-probabilities` needs a .parquet file"),
        ("--memory 4GB", "valued by out-of-bag entropy: leave out `--keep-probabilities`"),
        ("--from data.parquet", "fits no models: leave out `--keep-probabilities`, `--bags`"),
    ],
)
def test_probabilities_that_cannot_be_kept_are_refused_before_any_work(
    more, sentence, frame, value, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = value(frame, "--keep-probabilities", *more.split(), code=2)
    assert sentence in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["data.parquet"]


def test_the_summary_shows_groups_rates_values_and_columns_left_out(frame, value):
    result = value(frame, "--drop", "id", protected=("age>=50",))
    old = frame["age"] >= 50
    assert f"{old.sum():,}" in result.stdout
    assert f"{old.mean():.3f}" in result.stdout
    assert f"{frame.loc[old, 'default'].mean():.3f}" in result.stdout
    assert "Columns hidden from the models of age>=50: age" in result.stdout
    lines = result.stdout.splitlines()
    assert lines[0] == "Protected attribute age>=50"
    assert lines[2].split() == ["v_y"] * 3 + ["v_z"] * 3
    assert lines[3].split() == ["group", "rows", "share", "positive", *["25%", "50%", "75%"] * 2]
    assert "Columns that are not features: id" in lines
    assert "Settings: valuator oob, bags 5, positive 1, seed 0." in lines
    assert max(len(line) for line in lines[:-1]) <= 80
    assert "fits: 10 of 10" in result.stderr


def test_the_summary_says_whether_another_run_would_rank_rows_alike(frame, value, tmp_path):
    result = value(frame, "--bags", 10, "--drop", "id")
    expected = Valuation.load(tmp_path / "v.parquet").stability()["rank_agreement"]
    told = f"from the standard errors: {expected[0]:.2f} for the target, {expected[1]:.2f} for sex."
    assert told in " ".join(result.stdout.split())
    assert "to be expected with another run" not in value(frame, "--drop", "id").stdout  # of five bags


def test_groups_are_shown_by_their_size_and_quarters_as_they_follow(frame, value):
    frame["sex"] = np.repeat(["b", "a", "c"], [50, 150, 100])
    result = value(frame, protected=("sex", "age"))
    starts = [line.split()[:2] for line in result.stdout.splitlines() if line.strip()]
    at = starts.index(["group", "rows"])
    assert starts[at + 2 : at + 5] == [["a", "150"], ["c", "100"], ["b", "50"]]
    at = starts.index(["group", "rows"], at + 1)
    assert [words[0] for words in starts[at + 2 : at + 6]][::3] == ["up", "over"]


@pytest.mark.parametrize(
    ("more", "dropped", "excluded"),
    [
        ("--drop id*", ["id", "id_b", "id[0]"], []),
        ("--drop id[0]", ["id[0]"], []),  # a column that is really called so
        ("--drop id_? --drop id", ["id", "id_b"], []),
        ("--drop [id]*", ["id", "id_b", "id[0]", "income"], []),  # never the target
        ("--exclude inc*", [], ["income"]),
        ("--exclude in* --exclude age", [], ["age", "income"]),
    ],
)
def test_patterns_of_columns(frame, value, more, dropped, excluded):
    frame = frame.assign(**{"id_b": RNG.random(N), "id[0]": RNG.random(N)})
    result = value(frame, *more.split())
    seen = re.search(r"Columns that are not features: (.*)", result.stdout)
    assert set(seen[1].split(", ")) == {"id", *dropped}  # an id is left out in any case
    left_out = re.search(r"Columns hidden from the models of sex: (.*)", result.stdout)[1]
    assert set(left_out.split(", ")) == {"sex", *excluded}


@pytest.mark.parametrize(
    ("option", "number", "message"),
    [
        ("--bags", 10**10, "`--bags` must be at most 100,000, got 10000000000."),
        ("--bags", 0, "`--bags` must be at least 1, got 0."),
        ("--jobs", 10**9, "`--jobs` must be at most 4,096, got 1000000000."),
        ("--jobs", 0, "`--jobs` must not be 0"),
        ("--seed", -1, "`--seed` must be at least 0, got -1."),
        ("--seed", 2**32, "`--seed` must be at most 4,294,967,295, got 4294967296."),
    ],
)
def test_sizes_beyond_reason_are_refused_at_once(frame, value, option, number, message):
    result = value(frame if message.endswith("be 0") else "nothing is read.csv", option, number, code=2)
    *_, line = result.stderr.splitlines()  # after what there is to know about the columns, if they were read
    assert line.startswith(f"error: {message}")


def test_weights_and_rows_that_stay_together(frame, value, tmp_path):
    frame = frame.assign(survey=RNG.integers(1, 5, N), person=np.arange(N) // 3)
    result = value(frame, "--drop", "id", "--weight", "survey", "--groups", "person")
    expected = fitted(frame, sample_weight=frame["survey"], groups=frame["person"])
    found = Valuation.load(tmp_path / "v.parquet")
    pd.testing.assert_frame_equal(found.values, expected.values, check_exact=True)
    women = frame[frame["sex"] == "f"]
    share = women["survey"].sum() / frame["survey"].sum()
    rate = np.average(women["default"], weights=women["survey"])
    line = next(line.split() for line in result.stdout.splitlines() if line.strip().startswith("f"))
    assert line[:4] == ["f", str(len(women)), f"{share:.3f}", f"{rate:.3f}"]


def test_csv_in_and_out_give_the_same_values(frame, value, tmp_path):
    frame.to_csv(tmp_path / "data.csv", index=False)
    value(frame)
    value(tmp_path / "data.csv", out="v.csv")
    one, other = (Valuation.load(tmp_path / name).values for name in ("v.parquet", "v.csv"))
    pd.testing.assert_frame_equal(one, other)


def test_labels_and_groups_are_printed_as_they_are_called(frame, value):
    frame["sex"] = np.where(frame["sex"] == "f", "[bold red]f[/]", "m")
    frame["default"] = np.where(frame["default"] == 1, "bad", "good")
    bad = value(frame, "--positive", "bad").stdout
    assert "[bold red]f[/]" in bad
    assert f"{(frame.loc[frame['sex'] != 'm', 'default'] == 'bad').mean():.3f}" in bad
    frame.loc[:9, "sex"] = None
    result = value(frame)
    assert "warning: Protected attribute 'sex' is unknown in 10 of 300 rows" in result.stderr
    assert "unknown" in result.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--target defalt", "`--target` must name a column .*, got 'defalt'; did you mean 'default'"),
        ("--protected sax", "'sax'.*'sex'"),
        ("--protected default", "`--protected` names 'default', the target: name another column"),
        ("--protected age>=50&default==1", "`--protected` names 'default', the target: name another column"),
        ("--protected sex==mm", r"'sex==mm' is true in no row: 'sex' holds 'f', 'm'"),
        ("--protected 'm", r"`--protected` must have closed quotes at position 1, before \"'m\""),
        ("--protected age>=old", "`--protected` must compare 'age', a column of numbers, with a number"),
        ("--drop default", "`--drop` names 'default', the target: name another column"),
        ("--drop idd", "no column 'idd'"),
        ("--drop incom_*", r"`--drop` names 'incom_\*': no column fits this pattern; did you mean 'income'"),
        ("--exclude default", "`--exclude` names 'default', the target: name another column"),
        ("--exclude incom_*", r"`--exclude` names 'incom_\*': no column fits .*; did you mean 'income'"),
        ("--drop id --exclude id", "there is no column 'id'"),
        ("--groups idd", "no column 'idd'; did you mean 'id'"),
        ("--groups default", "`--groups` names 'default', the target"),
        ("--groups gaps", "`--groups` is missing in 5 rows"),
        ("--weight minus", "`--weight` must be finite and not negative"),
        ("--positive ugly", "`--positive ugly` is not a label of the target; it has"),
        ("--out none/v.parquet", "directory .*none' does not exist"),
        ("--out v.txt", r"`--out` must end in \.csv or \.parquet"),
        ("--out v.parquet", "is a directory"),
    ],
)
def test_bad_input_ends_in_one_sentence(frame, value, tmp_path, monkeypatch, more, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.parquet").mkdir()
    frame = frame.assign(gaps=np.where(np.arange(N) < 5, None, "a"), minus=-1.0)
    check_sentence(value(frame, *more.split(), out="w.parquet", code=2), message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.parquet", "v.parquet"]


def test_files_that_cannot_be_read_or_written_end_in_one_sentence(frame, value, tmp_path, monkeypatch):
    (tmp_path / "ragged.csv").write_text("age,sex,default\n30,f,1\n1,2\n")
    for name, message in (
        ("missing.csv", "There is no file"),
        ("ragged.csv", "cannot be read as CSV: .*Expected 3 columns, got 2"),
        ("data.xlsx", r"must end in \.csv or \.parquet"),
    ):
        check_sentence(value(tmp_path / name, code=2), message)
    monkeypatch.setattr("fado.cli._outputs.os.access", lambda path, mode: mode != os.W_OK)  # root may
    check_sentence(value(frame, code=2), "is not writable")
    assert not (tmp_path / "v.parquet").exists()


def test_the_program_itself(frame, tmp_path):
    """Exit code, streams and files of a real process."""
    frame.to_parquet(tmp_path / "data.parquet")

    def process(target):
        words = f"value data.parquet --target {target} --protected sex --bags 5 --out {target}.parquet"
        command = [sys.executable, "-c", "from fado.cli import main; main()", *words.split()]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    good, bad = process("default"), process("zzz")
    assert good.returncode == 0, good.stderr
    assert "Protected attribute sex" in good.stdout
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == (
        "error: `--target` must name a column of the table, alone or compared by one of >=, <=, ==, !=, >, "
        "<, in, got 'zzz'; the table has ['id', 'age', 'income', 'sex', 'default'].\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.parquet", "default.parquet"]


def test_a_target_of_many_labels_has_a_rate_only_if_one_is_named(frame, value):
    frame["default"] = RNG.choice([1, 2, 3], N)
    assert "positive" not in value(frame).stdout
    rate = (frame.loc[frame["sex"] == "f", "default"] == 3).mean()
    assert f"{rate:.3f}" in value(frame, "--positive", "3.0").stdout
