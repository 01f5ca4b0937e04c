"""`fado value`, as a user runs it."""

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fado import OutOfBagEntropy, Valuation
from fado.cli._app import build_app
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


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def value(data, out, *more, target="default", protected=("sex",)):
    attributes = [word for name in protected for word in ("--protected", name)]
    few = [] if "--valuator" in more else ["--bags", 5]
    return run("value", data, "--target", target, *attributes, *few, "--out", out, *more)


def test_values_equal_the_librarys(frame, data, tmp_path):
    out = tmp_path / "values.parquet"
    result = value(data, out, "--drop", "id", "--seed", 3, protected=("sex", "age>=50"))
    assert result.exit_code == 0, result.stderr
    X = frame.drop(columns=["default", "id"])
    z = {"sex": frame["sex"], "age>=50": protected_from(frame, "age>=50")}
    valuator = OutOfBagEntropy(n_bags=5, random_state=3, z_exclude={"sex": ["sex"], "age>=50": ["age"]})
    expected = valuator.fit(X, frame["default"], sensitive_features=z).valuation_
    pd.testing.assert_frame_equal(Valuation.load(out).values, expected.values, check_exact=True)


def test_probabilities_are_kept_as_by_the_library(frame, data, tmp_path):
    plain, out = tmp_path / "plain.parquet", tmp_path / "values.parquet"
    assert value(data, plain, "--drop", "id").exit_code == 0
    result = value(data, out, "--drop", "id", "--keep-probabilities")
    assert result.exit_code == 0, result.stderr
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
    result = value(data, tmp_path / out, "--keep-probabilities", *more)
    assert result.exit_code == 2
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
    assert result.exit_code == 0, result.stderr
    seen = re.search(r"Columns that are not features: (.*)", result.stdout)
    assert set(seen[1].split(", ")) == {"id", *dropped}  # an id is left out in any case
    left_out = re.search(r"Columns hidden from the models of sex: (.*)", result.stdout)[1]
    assert set(left_out.split(", ")) == {"sex", *excluded}


def test_patterns_that_fit_nothing_name_the_closest(data, tmp_path):
    out = tmp_path / "v.parquet"
    for option in ("--drop", "--exclude"):
        check_sentence(
            value(data, out, option, "incom_*"),
            rf"`{option}` names 'incom_\*': no column fits this pattern; did you mean 'income'\?",
        )
    check_sentence(value(data, out, "--drop", "id", "--exclude", "id"), "there is no column 'id'")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--drop", "default"),
        ("--exclude", "default"),
        ("--protected", "default"),
        ("--protected", "age >= 50 & default == 1"),
    ],
)
def test_the_target_is_no_other_column(data, tmp_path, option, name):
    check_sentence(
        value(data, tmp_path / "v.parquet", option, name),
        f"`{option}` names 'default', the target: name another column",
    )


def test_a_pattern_never_drops_the_target(data, tmp_path):
    result = value(data, tmp_path / "v.parquet", "--drop", "[id]*")
    assert result.exit_code == 0, result.stderr
    assert "Columns that are not features: id, income\n" in result.stdout


def test_comparisons_that_are_joined_keep_all_their_columns_from_the_models(frame, data, tmp_path):
    out = tmp_path / "v.parquet"
    check_sentence(
        value(data, out, protected=("sex = mm",)), r"'sex==mm' is true in no row: 'sex' holds 'f', 'm'"
    )
    expression = "sex = m & `age` >= 50"
    result = value(data, out, "--drop", "id", protected=(expression,))
    assert result.exit_code == 0, result.stderr
    name = "sex==m & age>=50"
    z = {name: (frame["sex"] == "m") & (frame["age"] >= 50)}
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, z_exclude={name: ["sex", "age"]})
    X = frame.drop(columns=["default", "id"])
    expected = valuator.fit(X, frame["default"], sensitive_features=z).valuation_
    pd.testing.assert_frame_equal(Valuation.load(out).values, expected.values, check_exact=True)
    assert f"Columns hidden from the models of {name}: " in result.stdout


def test_expressions_are_refused_by_the_options_name(data, tmp_path):
    for expression, message in (
        ("sex in [f, 'm]", r"`--protected` must have closed quotes at position 12, before \"'m\]\""),
        ("age>=old", "`--protected` must compare 'age', a column of numbers, with a number"),
        ("agee>=5 & sex==m", r"`--protected` must name a column .* got 'agee'; did you mean 'age'"),
    ):
        check_sentence(value(data, tmp_path / "v.parquet", protected=(expression,)), message)


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
    )
    assert result.exit_code == 2
    *_, line = result.stderr.splitlines()  # after what there is to know about the columns, if they were read
    assert line.startswith(f"error: {message}")


def test_weights_and_rows_that_stay_together(frame, tmp_path):
    frame["survey"] = RNG.integers(1, 5, N)
    frame["person"] = np.arange(N) // 3
    frame.to_parquet(tmp_path / "d.parquet")
    out = tmp_path / "v.parquet"
    result = value(tmp_path / "d.parquet", out, "--drop", "id", "--weight", "survey", "--groups", "person")
    assert result.exit_code == 0, result.stderr
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


def test_columns_beside_the_features_are_checked(frame, data, tmp_path):
    out = tmp_path / "v.parquet"
    check_sentence(value(data, out, "--groups", "idd"), "no column 'idd'; did you mean 'id'")
    check_sentence(value(data, out, "--groups", "default"), "`--groups` names 'default', the target")
    frame.loc[:4, "sex"] = None
    frame.to_parquet(data)
    missing = value(data, out, "--groups", "sex", protected=("age>=50",))
    check_sentence(missing, "`--groups` is missing in 5 rows")
    frame["income"] = -1.0
    frame.to_parquet(data)
    check_sentence(value(data, out, "--weight", "income"), "`--weight` must be finite and not negative")


def test_values_say_what_they_were_made_for(data, tmp_path):
    assert value(data, tmp_path / "v.parquet").exit_code == 0
    made_for = Valuation.load(tmp_path / "v.parquet").provenance.made_for
    assert made_for.target == "default"
    assert len(made_for.digest) == 64


def test_csv_in_and_out_give_the_same_values(frame, data, tmp_path):
    frame.to_csv(tmp_path / "data.csv", index=False)
    assert value(data, tmp_path / "a.parquet").exit_code == 0
    assert value(tmp_path / "data.csv", tmp_path / "b.csv").exit_code == 0
    pd.testing.assert_frame_equal(
        Valuation.load(tmp_path / "a.parquet").values, Valuation.load(tmp_path / "b.csv").values
    )


def test_in_bag(data, tmp_path):
    assert value(data, tmp_path / "v.parquet", "--valuator", "inbag").exit_code == 0
    assert Valuation.load(tmp_path / "v.parquet").metadata["algorithm"] == "in-bag"


def test_a_column_whose_name_looks_like_an_expression_wins(frame, tmp_path):
    frame["Charlson>0"] = RNG.choice(["no", "yes"], N)
    frame["Charlson"] = 1.0
    frame.to_parquet(tmp_path / "d.parquet")
    result = value(tmp_path / "d.parquet", tmp_path / "v.parquet", protected=("Charlson>0",))
    assert result.exit_code == 0, result.stderr
    assert Valuation.load(tmp_path / "v.parquet").metadata["variables"]["Charlson>0"]["classes"] == [
        "no",
        "yes",
    ]


def test_the_positive_label_decides_the_rates(frame, tmp_path):
    frame["default"] = np.where(frame["default"] == 1, "bad", "good")
    frame.to_parquet(tmp_path / "d.parquet")
    bad = value(tmp_path / "d.parquet", tmp_path / "v.parquet", "--positive", "bad")
    assert f"{(frame.loc[frame['sex'] == 'f', 'default'] == 'bad').mean():.3f}" in bad.stdout
    unknown = value(tmp_path / "d.parquet", tmp_path / "v.parquet", "--positive", "ugly")
    assert unknown.exit_code == 2
    assert "`--positive ugly` is not a label of the target; it has" in unknown.stderr


def test_missing_groups_are_shown_and_warned_of(frame, tmp_path):
    frame.loc[:9, "sex"] = None
    frame.to_csv(tmp_path / "d.csv", index=False)
    result = value(tmp_path / "d.csv", tmp_path / "v.parquet")
    assert result.exit_code == 0
    assert "warning: Protected attribute 'sex' is unknown in 10 of 300 rows" in result.stderr
    assert "unknown" in result.stdout


def test_na_is_a_category_in_a_csv_column_of_text(frame, tmp_path):
    frame["sex"] = np.where(frame["sex"] == "f", "NA", "m")
    frame.to_csv(tmp_path / "d.csv", index=False)
    result = value(tmp_path / "d.csv", tmp_path / "v.parquet")
    assert result.exit_code == 0
    assert Valuation.load(tmp_path / "v.parquet").metadata["variables"]["sex"]["classes"] == ["NA", "m"]


def test_hostile_names_are_printed_as_they_are(frame, tmp_path):
    frame["sex"] = np.where(frame["sex"] == "f", "[bold red]f[/]", "m")
    frame.to_parquet(tmp_path / "d.parquet")
    result = value(tmp_path / "d.parquet", tmp_path / "v.parquet")
    assert "[bold red]f[/]" in result.stdout


HEADER = "age,sex,default\n"
ROW = "30,f,1\n31,m,0\n"
FILES = {
    "missing.csv": (None, "There is no file"),
    "empty.csv": (b"", "is empty"),
    "header.csv": (HEADER.encode(), "has no rows"),
    "latin1.csv": (HEADER.encode() + "30,é,1\n31,m,0\n".encode("latin1") * 30, "is not UTF-8 text"),
    "utf16.csv": ((HEADER + ROW).encode("utf-16"), "is UTF-16 text"),
    "ragged.csv": ((HEADER + ROW + "1,2\n").encode(), "cannot be read as CSV: .*Expected 3 columns, got 2"),
    "twice.csv": (b"sex,sex,default\nf,f,1\nm,m,0\n", "more than one column called 'sex'"),
    "truncated.parquet": (b"PAR1....", "cannot be read as Parquet"),
    "data.xlsx": (b"", r"must end in \.csv or \.parquet"),
    "data.pkl": (b"\x80\x04N.", r"must end in \.csv or \.parquet"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files_end_in_one_sentence(name, tmp_path):
    content, message = FILES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = value(tmp_path / name, tmp_path / "v.parquet")
    check_sentence(result, message)
    assert not (tmp_path / "v.parquet").exists()


def check_sentence(result, message):
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert re.search(message, errors[0]), errors[0]


def test_a_byte_order_mark_is_harmless(tmp_path):
    (tmp_path / "d.csv").write_text("\ufeff" + HEADER + ROW * 40, encoding="utf-8")
    result = value(tmp_path / "d.csv", tmp_path / "v.parquet", "--drop", "age")
    assert result.exit_code == 0, result.stderr


def test_nul_bytes_are_part_of_a_category(tmp_path):
    (tmp_path / "d.csv").write_text(HEADER + (ROW + "35,f,0\n36,m,1\n").replace("f", "f\0") * 20)
    assert value(tmp_path / "d.csv", tmp_path / "v.parquet").exit_code == 0
    assert Valuation.load(tmp_path / "v.parquet").metadata["variables"]["sex"]["classes"] == ["f\0", "m"]


def test_one_gigantic_line_is_no_table(tmp_path):
    (tmp_path / "d.csv").write_text("a" * 5_000_000)
    check_sentence(value(tmp_path / "d.csv", tmp_path / "v.parquet"), "cannot be read as CSV")


def test_numbers_that_only_turn_fractional_late_are_read(tmp_path):
    lines = ["30,f,1", "31,m,0"] * 100_000 + ["30.5,f,1"]
    (tmp_path / "d.csv").write_text(HEADER + "\n".join(lines) + "\n")
    from fado.tabular import read_table

    assert read_table(tmp_path / "d.csv").column("age")[-1].as_py() == 30.5


def test_unknown_columns_name_the_closest(data, tmp_path):
    check_sentence(
        value(data, tmp_path / "v.parquet", target="defalt"),
        "`--target` must name a column .*, got 'defalt'; did you mean 'default'",
    )
    check_sentence(value(data, tmp_path / "v.parquet", protected=("sax",)), "'sax'.*'sex'")
    check_sentence(value(data, tmp_path / "v.parquet", "--drop", "idd"), "no column 'idd'")
    check_sentence(value(data, tmp_path / "v.parquet", "--exclude", "x"), "`--exclude` names 'x'")


def test_bad_outputs_are_refused_before_any_work(data, tmp_path):
    check_sentence(value(data, tmp_path / "none" / "v.parquet"), "directory .*none' does not exist")
    check_sentence(value(data, tmp_path / "v.txt"), r"`--out` must end in \.csv or \.parquet")
    (tmp_path / "v.parquet").mkdir()
    check_sentence(value(data, tmp_path / "v.parquet"), "is a directory")


def test_a_directory_without_permission_is_refused(data, tmp_path, monkeypatch):
    monkeypatch.setattr("fado.cli._outputs.os.access", lambda path, mode: mode != os.W_OK)  # root may
    check_sentence(value(data, tmp_path / "v.parquet"), "is not writable")


def test_the_program_itself(data, tmp_path):
    """Exit code, streams and files of a real process."""
    command = [sys.executable, "-c", "from fado.cli import main; main()", "value", str(data)]
    good = subprocess.run(
        [
            *command,
            "--target",
            "default",
            "--protected",
            "sex",
            "--bags",
            "5",
            "--out",
            str(tmp_path / "v.parquet"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert good.returncode == 0, good.stderr
    assert "Protected attribute sex" in good.stdout
    bad = subprocess.run(
        [*command, "--target", "zzz", "--protected", "sex", "--out", str(tmp_path / "w.parquet")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr == (
        "error: `--target` must name a column of the table, alone or compared by one of >=, <=, ==, !=, >, "
        "<, in, got 'zzz'; the table has ['id', 'age', 'income', 'sex', 'default'].\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.parquet", "v.parquet"]


def test_a_target_of_many_labels_has_a_rate_only_if_one_is_named(frame, data, tmp_path):
    frame["default"] = RNG.choice([1, 2, 3], N)
    frame.to_parquet(data)
    assert "positive" not in value(data, tmp_path / "v.parquet").stdout
    named = value(data, tmp_path / "v.parquet", "--positive", "3.0")
    assert f"{(frame.loc[frame['sex'] == 'f', 'default'] == 3).mean():.3f}" in named.stdout


def test_help_and_version():
    assert "Value every row" in run("value", "--help").stdout
    assert run("--version").stdout.startswith("fado ")
