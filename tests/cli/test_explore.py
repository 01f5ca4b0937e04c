"""`fado explore`, as a user runs it."""

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fado import OutOfBagEntropy, explore
from fado.cli._app import build_app
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
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, z_exclude={"sex": ["sex"], "age>=50": ["age"]})
    X = frame.drop(columns=["id", "default"])
    valuator.fit(X, frame["default"], sensitive_features=z).valuation_.save(folder / "values.parquet")
    return folder


def run(folder, *more, out="page.html", protected=("sex", "age>=50")):
    attributes = [word for name in protected for word in ("--protected", name)]
    arguments = ["explore", folder / "data.parquet", "--values", folder / "values.parquet"]
    arguments += ["--target", "default", *attributes, "--drop", "id", "--out", folder / out, *more]
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def test_the_page_is_the_librarys(frame, folder):
    result = run(folder, "--positive", "yes")
    assert result.exit_code == 0, result.stderr
    from fado import Valuation

    expected = explore(
        frame.drop(columns=["id", "default"]),
        frame["default"],
        sensitive_features={"sex": frame["sex"], "age>=50": protected_from(frame, "age>=50")},
        valuation=Valuation.load(folder / "values.parquet"),
        pos_label="yes",
    )
    assert (folder / "page.html").read_text(encoding="utf-8") == expected.html()
    for attribute in expected.to_dict()["attributes"]:
        assert f"Protected attribute {attribute['name']}\n" in result.stdout
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
        ({"id": "prevalence", "format": "number", "number": 0.0, "low": -0.1, "high": 0.1,
          "turning": {"format": "percent", "number": 0.5, "low": 0.4, "high": 0.6}}, " 50 p.p. [40, 60]"),
        ({"id": "base", "format": "number", "number": None, "low": None, "high": None}, ""),
    ],
)  # fmt: skip
def test_a_bias_is_told_with_its_interval(bias, size):
    assert _size(bias) == size


def test_rows_are_shown_only_on_demand(folder):
    for flags, shown in (((), False), (("--show-rows",), True)):
        assert run(folder, *flags, out="rows.html").exit_code == 0
        assert ('"features":' in (folder / "rows.html").read_text(encoding="utf-8")) == shown


@pytest.mark.parametrize(
    ("out", "more", "protected", "message"),
    [
        ("page.pdf", (), ("sex",), "must end in .html or .htm"),
        ("missing/page.html", (), ("sex",), "does not exist"),
        ("bad.html", ("--positive", "maybe"), ("sex",), "is not a label of the target"),
        ("bad.html", (), ("job",), "`--values` holds no values for 'job'"),
        ("bad.html", (), ("default",), "`--protected` names 'default', the target: name another column."),
        ("bad.html", (), ("sexe",), "must name a column"),
    ],
)
def test_bad_input_is_one_sentence(folder, out, more, protected, message):
    before = sorted(folder.iterdir())
    result = run(folder, *more, out=out, protected=protected)
    assert result.exit_code == 2
    assert message in result.stderr
    assert re.fullmatch(r"error: [^\n]*\n", result.stderr)
    assert sorted(folder.iterdir()) == before
