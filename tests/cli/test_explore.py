"""`fado explore`, as a user runs it."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from tests.cli import program

from fado import OutOfBagEntropy, TreeInfluence, Valuation, explore
from fado.cli.explore import _size
from fado.datasets import protected_from

RNG = np.random.default_rng(0)
N = 300


@pytest.fixture(scope="module")
def frame():
    age = RNG.integers(18, 90, N)
    job = RNG.choice(["clerk", "nurse"], N)
    told = RNG.random(N) < 0.7  # by age or job; the others are noise
    return pd.DataFrame(
        {
            "id": np.arange(N),
            "age": age,
            "job": job,
            "sex": np.where(told & (age < 60), np.where(job == "nurse", "f", "m"), RNG.choice(["f", "m"], N)),
            "default": np.where(told & (age > 70), "no", RNG.choice(["yes", "no", "perhaps"], N)),
        }
    )


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    frame.to_parquet(folder / "data.parquet")
    z = {"sex": frame["sex"], "age>=50": protected_from(frame, "age>=50")}
    hidden = {"sex": ["sex"], "age>=50": ["age"]}
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, z_exclude=hidden, keep_models=True)
    X = frame.drop(columns=["id", "default"])
    valuator.fit(X, frame["default"], sensitive_features=z).valuation_.save(folder / "values.parquet")
    return folder


def run(folder, *more, out="page.html", protected=("sex", "age>=50"), values="values.parquet", code=0):
    attributes = [word for name in protected for word in ("--protected", name)]
    arguments = ["explore", folder / "data.parquet", *(("--values", folder / values) if values else ())]
    arguments += ["--target", "default", *attributes, "--drop", "id", "--out", folder / out]
    arguments += [*(() if "--retrain" in more else ("--retrain", 0)), *more]
    return program.run(*arguments, code=code)


def check_page(path, expected, command=None):
    """Compare a page with the library's, but for the command, which is that of a shell."""
    text = path.read_text(encoding="utf-8")
    found = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    other = json.loads(re.search(r'id="data">(.*?)</script>', expected.html(), re.DOTALL)[1])
    for attribute, own in zip(found["attributes"], other["attributes"], strict=True):
        for answer, theirs in zip(attribute["answers"], own["answers"], strict=True):
            assert (answer["command"] is None) == (theirs["command"] is None)
            if answer["command"] is not None:
                assert answer["command"] == command
                answer["command"] = theirs["command"]
    assert found == other


def test_the_page_is_the_librarys(frame, folder):
    result = run(folder, "--positive", "yes")
    expected = explore(
        frame.drop(columns=["id", "default"]),
        frame["default"],
        sensitive_features={"sex": frame["sex"], "age>=50": protected_from(frame, "age>=50", named=True)},
        valuation=Valuation.load(folder / "values.parquet"),
        pos_label="yes",
        retrain=0,
    )
    assert (folder / "page.html").read_text(encoding="utf-8") == expected.html()
    for attribute in expected.to_dict()["attributes"]:
        first = "".join(f"  {one['title']}: {one['sentence']}\n" for one in attribute["answers"])
        assert f"Protected attribute {attribute['name']}\n{first}" in result.stdout
        for bias in attribute["biases"]:
            assert re.search(
                rf"^  {bias['name']} [^:\[]+ \[[^:]+, [^:]+\]: {re.escape(bias['sentence'])}$",
                result.stdout,
                re.MULTILINE,
            )
    assert "In brackets: 95 % intervals.\n" in result.stdout


@pytest.mark.parametrize(
    ("bias", "size"),
    [
        ({"id": "prevalence", "format": "percent", "number": 0.0746, "low": 0.0128, "high": 0.138},
         " 7.46 p.p. [1.28, 13.8]"),
        ({"id": "base", "format": "percent", "number": 0.137, "low": 0.134, "high": 0.139},
         " 13.7 % [13.4, 13.9]"),
        ({"id": "group_size", "format": "times", "number": 2.226, "low": 1.95, "high": 2.54},
         " 2.23 x [1.95, 2.54]"),
        ({"id": "separability", "format": "number", "number": 0.011, "low": -0.059, "high": 0.078},
         " 0.011 [-0.059, 0.078]"),
        ({"id": "base", "format": "number", "number": None, "low": None, "high": None}, ""),
    ],
)  # fmt: skip
def test_a_bias_is_told_with_its_interval(bias, size):
    assert _size(bias) == size


def test_rows_are_shown_only_on_demand(folder):
    for flags, shown in (((), False), (("--show-rows",), True)):
        run(folder, *flags, out="rows.html")
        assert ('"features":' in (folder / "rows.html").read_text(encoding="utf-8")) == shown


@pytest.fixture(scope="module")
def effects(tmp_path_factory):
    """A folder with a table of two labels and the effects of its rows."""
    folder, rng, n_rows = tmp_path_factory.mktemp("effects"), np.random.default_rng(0), 2000
    frame = pd.DataFrame(
        {
            "id": np.arange(n_rows),
            "score": rng.normal(size=n_rows),
            "club": rng.choice(["choir", "rowing", "a club with a name that is quite long"], n_rows),
            "weight": 1 + np.arange(n_rows) % 2,
        }
    )
    frame["sex"] = np.where((frame["club"] == "choir") ^ (rng.random(n_rows) < 0.1), "f", "m")
    frame["default"] = frame["score"] + (frame["sex"] == "m") + rng.normal(size=n_rows) > 1
    frame.to_parquet(folder / "data.parquet")
    X = frame[["score", "club", "sex"]]
    valuator = TreeInfluence(random_state=0)
    valuator.fit(X, frame["default"], sensitive_features={"sex": frame["sex"]})
    valuator.valuation_.save(folder / "values.parquet")
    return folder


def command_for(folder, *more):
    """Give the command that a page of the effects' table offers."""
    words = ["fado", "aim", str(folder / "data.parquet"), "--target", "default", "--protected", "sex"]
    return shlex.join([*words, *more, "--ratio", "fpr_ratio=0.8", "--out", "model"])


def test_measured_changes_are_printed(effects):
    result = run(effects, "--drop", "weight", "--retrain", 30, protected=("sex",))
    frame = pd.read_parquet(effects / "data.parquet")
    X, z = frame[["score", "club", "sex"]], {"sex": frame["sex"]}
    values = Valuation.load(effects / "values.parquet")
    expected = explore(X, frame["default"], sensitive_features=z, valuation=values, retrain=30)
    command = command_for(effects, "--drop", "id", "--drop", "weight", "--drop", "sex")
    check_page(effects / "page.html", expected, command)
    assert f"\n    {command}\n" in result.stdout
    found = expected.effects()
    assert found["curve"]["measured_ratio_change"].notna().any()
    for part in (found["slices"], found["curve"]):
        for row in part.dropna(subset="measured_ratio_change").itertuples():
            assert (
                f"{row.measured_ratio_change:+.3f} ± {1.96 * row.measured_ratio_error:.3f}" in result.stdout
            )
    assert "retrained models: " in result.stderr


def test_effects_are_multiplied_by_weights(effects):
    run(effects, "--weight", "weight", protected=("sex",))
    frame = pd.read_parquet(effects / "data.parquet")
    expected = explore(
        frame[["score", "club", "sex"]],
        frame["default"],
        sensitive_features={"sex": frame["sex"]},
        sample_weight=frame["weight"],
        valuation=Valuation.load(effects / "values.parquet"),
        retrain=0,
    )
    command = command_for(effects, "--drop", "id", "--drop", "sex", "--weight", "weight")
    check_page(effects / "page.html", expected, command)


def test_values_are_made_where_none_are_given(effects):
    result = run(effects, "--seed", 3, "--positive", "False", protected=("sex",), values=None)
    assert "warning" not in result.stderr
    frame = pd.read_parquet(effects / "data.parquet")
    with pytest.warns(UserWarning, match="'sex' of X alone determine"):
        expected = explore(
            frame.drop(columns=["id", "default"]),
            frame["default"],
            sensitive_features={"sex": frame["sex"]},
            pos_label=False,
            retrain=0,
            random_state=3,
        )
    command = command_for(effects, "--positive", "False", "--drop", "id", "--drop", "sex", "--seed", "3")
    check_page(effects / "page.html", expected, command)
    assert "Cost of a ratio of 0.8: " in result.stdout


def test_a_table_in_parts_needs_values_that_were_made(effects):
    assert (
        "needs `--values`: compute them with `fado value DATA"
        in run(effects, "--memory", "1GB", protected=("sex",), values=None, out="parts.html", code=2).stderr
    )
    assert not (effects / "parts.html").exists()


def test_a_command_of_awkward_names_is_quoted(effects):
    frame = pd.read_parquet(effects / "data.parquet")[["score", "club", "sex", "default"]]
    frame.rename(columns={"sex": "$(rm) 'sex'", "default": "a;b"}).to_parquet(effects / "a b.parquet")
    words = ["explore", effects / "a b.parquet", "--target", "a;b", "--protected", "$(rm) 'sex'"]
    words += ["--out", effects / "page.html", "--retrain", 0]
    result = program.run(*words)
    (command,) = (line.strip() for line in result.stdout.splitlines() if line.startswith("    fado aim"))
    assert shlex.split(command) == [
        "fado", "aim", str(effects / "a b.parquet"), "--target", "a;b", "--protected", "$(rm) 'sex'",
        "--drop", "$(rm) 'sex'", "--ratio", "fpr_ratio=0.8", "--out", "model",
    ]  # fmt: skip


def test_the_command_drops_the_columns_of_every_attribute_and_keeps_their_names(effects):
    """An attribute made of comparisons has the names of its groups, and the command drops its columns."""
    either = "sex = f | score >= 1"
    named = ("--group-names", f"{either}: listed, others")
    result = run(effects, *named, protected=(either, "sex"), values=None)
    assert "in “listed”" in result.stdout
    commands = [line.strip() for line in result.stdout.splitlines() if line.startswith("    fado aim")]
    for command in commands:
        words = shlex.split(command)
        assert [words[j + 1] for j, word in enumerate(words) if word == "--drop"] == ["id", "sex", "score"]
    assert any(f"{either}: listed, others" in shlex.split(command) for command in commands)
    run_aim = [*shlex.split(commands[0])[1:-1], str(effects / "model")]
    result = program.run(*run_aim)


@pytest.mark.parametrize(
    ("out", "more", "protected", "message"),
    [
        ("page.pdf", (), ("sex",), "must end in .html or .htm"),
        ("missing/page.html", (), ("sex",), "does not exist"),
        ("bad.html", ("--positive", "maybe"), ("sex",), "is not a label of the target"),
        ("bad.html", (), ("job",), "`--values` has no values for 'job'"),
        ("bad.html", (), ("default",), "`--protected` names 'default', the target: name another column."),
        ("bad.html", (), ("sexe",), "must name a column"),
        ("bad.html", ("--retrain", "3"), ("sex",), "`--retrain` must be 0, or a number of fits from 12"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(folder, out, more, protected, message):
    before = sorted(folder.iterdir())
    more = [folder / word if "." in word else word for word in more]
    result = run(folder, *more, out=out, protected=protected, code=2)
    assert message in result.stderr
    assert re.fullmatch(r"error: [^\n]*\n", result.stderr)
    assert sorted(folder.iterdir()) == before
