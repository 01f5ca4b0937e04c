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
    age = RNG.integers(18, 90, N)
    return pd.DataFrame(
        {
            "id": np.arange(N),
            "age": age,
            "income": RNG.lognormal(size=N),
            "sex": RNG.choice(["f", "m"], N),
            "default": (RNG.random(N) < 0.3).astype(int),
        }
    )


@pytest.fixture
def data(frame, tmp_path):
    path = tmp_path / "data.parquet"
    frame.to_parquet(path)
    return path


def value(data, out, *more, target="default", protected=("sex",), code=0):
    attributes = [word for name in protected for word in ("--protected", name)]
    few = [] if "--valuator" in more else ["--bags", 5]
    return run("value", data, "--target", target, *attributes, *few, "--out", out, *more, code=code)


def test_values_equal_the_librarys(frame, data, tmp_path):
    out = tmp_path / "values.parquet"
    value(data, out, "--drop", "id", "--seed", 3, protected=("sex", "age>=50"))
    X = frame.drop(columns=["default", "id"])
    z = {"sex": frame["sex"], "age>=50": protected_from(frame, "age>=50")}
    valuator = OutOfBagEntropy(n_bags=5, random_state=3, z_exclude={"sex": ["sex"], "age>=50": ["age"]})
    expected = valuator.fit(X, frame["default"], sensitive_features=z).valuation_
    pd.testing.assert_frame_equal(Valuation.load(out).values, expected.values, check_exact=True)


def test_probabilities_are_kept_as_by_the_library(frame, data, tmp_path):
    plain, out = tmp_path / "plain.parquet", tmp_path / "values.parquet"
    value(data, plain, "--drop", "id")
    value(data, out, "--drop", "id", "--keep-probabilities")
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, keep_probabilities=True, z_exclude={"sex": ["sex"]})
    z = {"sex": frame["sex"]}
    expected = valuator.fit(frame.drop(columns=["default", "id"]), frame["default"], sensitive_features=z)
    found = Valuation.load(out)
    assert found.probabilities["sex"].shape == (N, 2, 2)
    for name, own in expected.valuation_.probabilities.items():
        np.testing.assert_array_equal(found.probabilities[name], own)
    assert found.values.equals(Valuation.load(plain).values)
    assert Valuation.load(plain).probabilities is None


@pytest.mark.parametrize(
    ("out", "more", "sentence"),
    [
        ("v.parquet", ["--valuator", "inbag"], "is for `--valuator oob`, not for 'inbag': leave it out"),
        ("v.parquet", ["--valuator", "knn-shapley"], "is for `--valuator oob`, not for 'knn-shapley'"),
        ("v.csv", [], "`--keep-probabilities` needs a .parquet file"),
        ("v.parquet", ["--memory", "4GB"], "valued by out-of-bag entropy: leave out `--keep-probabilities`"),
        (
            "v.parquet",
            ["--from", "data.parquet"],
            "fits no models: leave out `--keep-probabilities`, `--bags`",
        ),
    ],
)
def test_probabilities_that_cannot_be_kept_are_refused_before_any_work(out, more, sentence, data, tmp_path):
    more = [data if word == "data.parquet" else word for word in more]
    result = value(data, tmp_path / out, "--keep-probabilities", *more, code=2)
    assert sentence in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["data.parquet"]


def test_the_summary_shows_groups_rates_values_and_columns_left_out(frame, data, tmp_path):
    result = value(data, tmp_path / "v.parquet", "--drop", "id", protected=("age>=50",))
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


def test_the_summary_says_whether_another_run_would_rank_rows_alike(data, tmp_path):
    out = tmp_path / "v.parquet"
    result = value(data, out, "--bags", 10, "--drop", "id")
    expected = Valuation.load(out).stability()["rank_agreement"]
    told = f"from the standard errors: {expected[0]:.2f} for the target, {expected[1]:.2f} for sex."
    assert told in " ".join(result.stdout.split())
    assert "to be expected with another run" not in value(data, out, "--drop", "id").stdout  # of five bags


def test_groups_are_shown_by_their_size_and_quarters_as_they_follow(frame, tmp_path):
    frame["sex"] = np.repeat(["b", "a", "c"], [50, 150, 100])
    frame.to_parquet(tmp_path / "d.parquet")
    result = value(tmp_path / "d.parquet", tmp_path / "v.parquet", protected=("sex", "age"))
    starts = [line.split()[:2] for line in result.stdout.splitlines() if line.strip()]
    at = starts.index(["group", "rows"])
    assert starts[at + 2 : at + 5] == [["a", "150"], ["c", "100"], ["b", "50"]]
    at = starts.index(["group", "rows"], at + 1)
    assert [words[0] for words in starts[at + 2 : at + 6]][::3] == ["up", "over"]


PATTERNS = [
    (["--drop", "id*"], ["id", "id_b", "id[0]"], []),
    (["--drop", "id[0]"], ["id[0]"], []),  # a column that is really called so
    (["--drop", "id_?", "--drop", "id"], ["id", "id_b"], []),
    (["--exclude", "inc*"], [], ["income"]),
    (["--exclude", "in*", "--exclude", "age"], [], ["age", "income"]),
]


@pytest.mark.parametrize(("more", "dropped", "excluded"), PATTERNS, ids=lambda case: " ".join(case))
def test_patterns_of_columns(frame, tmp_path, more, dropped, excluded):
    frame["id_b"] = RNG.random(N)
    frame["id[0]"] = RNG.random(N)
    frame.to_parquet(tmp_path / "d.parquet")
    result = value(tmp_path / "d.parquet", tmp_path / "v.parquet", *more)
    seen = re.search(r"Columns that are not features: (.*)", result.stdout)
    assert set(seen[1].split(", ")) == {"id", *dropped}  # an id is left out in any case
    left_out = re.search(r"Columns hidden from the models of sex: (.*)", result.stdout)[1]
    assert set(left_out.split(", ")) == {"sex", *excluded}


def test_a_pattern_never_drops_the_target(data, tmp_path):
    result = value(data, tmp_path / "v.parquet", "--drop", "[id]*")
    assert "Columns that are not features: id, income\n" in result.stdout


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
def test_sizes_beyond_reason_are_refused_at_once(data, tmp_path, option, number, message):
    where = data if option == "--jobs" and number == 0 else tmp_path / "nothing is read.csv"
    result = run(
        *("value", where, "--target", "default", "--protected", "sex"),
        *("--out", tmp_path / "v.parquet", option, number),
        code=2,
    )
    *_, line = result.stderr.splitlines()  # after what there is to know about the columns, if they were read
    assert line.startswith(f"error: {message}")


def test_weights_and_rows_that_stay_together(frame, tmp_path):
    frame["survey"] = RNG.integers(1, 5, N)
    frame["person"] = np.arange(N) // 3
    frame.to_parquet(tmp_path / "d.parquet")
    out = tmp_path / "v.parquet"
    result = value(tmp_path / "d.parquet", out, "--drop", "id", "--weight", "survey", "--groups", "person")
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, z_exclude={"sex": ["sex"]})
    expected = valuator.fit(
        frame[["age", "income", "sex"]],
        frame["default"],
        sensitive_features={"sex": frame["sex"]},
        sample_weight=frame["survey"],
        groups=frame["person"],
    ).valuation_
    pd.testing.assert_frame_equal(Valuation.load(out).values, expected.values, check_exact=True)
    women = frame[frame["sex"] == "f"]
    share = women["survey"].sum() / frame["survey"].sum()
    rate = np.average(women["default"], weights=women["survey"])
    line = next(line.split() for line in result.stdout.splitlines() if line.strip().startswith("f"))
    assert line[:4] == ["f", str(len(women)), f"{share:.3f}", f"{rate:.3f}"]


def test_csv_in_and_out_give_the_same_values(frame, data, tmp_path):
    frame.to_csv(tmp_path / "data.csv", index=False)
    value(data, tmp_path / "a.parquet")
    value(tmp_path / "data.csv", tmp_path / "b.csv")
    pd.testing.assert_frame_equal(
        Valuation.load(tmp_path / "a.parquet").values, Valuation.load(tmp_path / "b.csv").values
    )


def test_the_positive_label_decides_the_rates(frame, tmp_path):
    frame["default"] = np.where(frame["default"] == 1, "bad", "good")
    frame.to_parquet(tmp_path / "d.parquet")
    bad = value(tmp_path / "d.parquet", tmp_path / "v.parquet", "--positive", "bad")
    assert f"{(frame.loc[frame['sex'] == 'f', 'default'] == 'bad').mean():.3f}" in bad.stdout


def test_missing_groups_are_shown_and_warned_of(frame, tmp_path):
    frame.loc[:9, "sex"] = None
    frame.to_csv(tmp_path / "d.csv", index=False)
    result = value(tmp_path / "d.csv", tmp_path / "v.parquet")
    assert "warning: Protected attribute 'sex' is unknown in 10 of 300 rows" in result.stderr
    assert "unknown" in result.stdout


def test_hostile_names_are_printed_as_they_are(frame, tmp_path):
    frame["sex"] = np.where(frame["sex"] == "f", "[bold red]f[/]", "m")
    frame.to_parquet(tmp_path / "d.parquet")
    result = value(tmp_path / "d.parquet", tmp_path / "v.parquet")
    assert "[bold red]f[/]" in result.stdout


REFUSED = [
    ("--target defalt", "`--target` must name a column .*, got 'defalt'; did you mean 'default'"),
    ("--protected sax", "'sax'.*'sex'"),
    ("--protected default", "`--protected` names 'default', the target: name another column"),
    ("--protected age>=50&default==1", "`--protected` names 'default', the target: name another column"),
    ("--protected sex==mm", r"'sex==mm' is true in no row: 'sex' holds 'f', 'm'"),
    ("--protected 'm", r"`--protected` must have closed quotes at position 1, before \"'m\""),
    ("--protected age>=old", "`--protected` must compare 'age', a column of numbers, with a number"),
    ("--drop default", "`--drop` names 'default', the target: name another column"),
    ("--drop idd", "no column 'idd'"),
    ("--drop incom_*", r"`--drop` names 'incom_\*': no column fits this pattern; did you mean 'income'\?"),
    ("--exclude default", "`--exclude` names 'default', the target: name another column"),
    (
        "--exclude incom_*",
        r"`--exclude` names 'incom_\*': no column fits this pattern; did you mean 'income'",
    ),
    ("--drop id --exclude id", "there is no column 'id'"),
    ("--groups idd", "no column 'idd'; did you mean 'id'"),
    ("--groups default", "`--groups` names 'default', the target"),
    ("--groups gaps", "`--groups` is missing in 5 rows"),
    ("--weight minus", "`--weight` must be finite and not negative"),
    ("--positive ugly", "`--positive ugly` is not a label of the target; it has"),
    ("--out none/v.parquet", "directory .*none' does not exist"),
    ("--out v.txt", r"`--out` must end in \.csv or \.parquet"),
    ("--out v.parquet", "is a directory"),
]


@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_bad_input_ends_in_one_sentence(frame, tmp_path, monkeypatch, more, message):
    monkeypatch.chdir(tmp_path)
    frame["gaps"] = np.where(np.arange(N) < 5, None, "a")
    frame.assign(minus=-1.0).to_parquet("data.parquet")
    (tmp_path / "v.parquet").mkdir()
    check_sentence(value("data.parquet", "w.parquet", *more.split(), code=2), message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.parquet", "v.parquet"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", "There is no file"),
        ("ragged.csv", "cannot be read as CSV: .*Expected 3 columns, got 2"),
        ("data.xlsx", r"must end in \.csv or \.parquet"),
    ],
)
def test_bad_files_end_in_one_sentence(name, message, tmp_path):
    (tmp_path / "ragged.csv").write_text("age,sex,default\n30,f,1\n1,2\n")
    check_sentence(value(tmp_path / name, tmp_path / "v.parquet", code=2), message)
    assert not (tmp_path / "v.parquet").exists()


def test_a_directory_without_permission_is_refused(data, tmp_path, monkeypatch):
    monkeypatch.setattr("fado.cli._outputs.os.access", lambda path, mode: mode != os.W_OK)  # root may
    check_sentence(value(data, tmp_path / "v.parquet", code=2), "is not writable")


def test_the_program_itself(data, tmp_path):
    """Exit code, streams and files of a real process."""

    def process(target):
        words = ["value", data, "--target", target, "--protected", "sex", "--bags", 5, "--out"]
        words = [str(word) for word in (*words, tmp_path / f"{target}.parquet")]
        command = [sys.executable, "-c", "from fado.cli import main; main()", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    good, bad = process("default"), process("zzz")
    assert good.returncode == 0, good.stderr
    assert "Protected attribute sex" in good.stdout
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == (
        "error: `--target` must name a column of the table, alone or compared by one of >=, <=, ==, !=, >, "
        "<, in, got 'zzz'; the table has ['id', 'age', 'income', 'sex', 'default'].\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.parquet", "default.parquet"]


def test_a_target_of_many_labels_has_a_rate_only_if_one_is_named(frame, data, tmp_path):
    frame["default"] = RNG.choice([1, 2, 3], N)
    frame.to_parquet(data)
    assert "positive" not in value(data, tmp_path / "v.parquet").stdout
    named = value(data, tmp_path / "v.parquet", "--positive", "3.0")
    assert f"{(frame.loc[frame['sex'] == 'f', 'default'] == 3).mean():.3f}" in named.stdout
