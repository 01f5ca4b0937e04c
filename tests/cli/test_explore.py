"""`fado explore`, as a user runs it."""

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fado import OutOfBagEntropy, TreeInfluence, Valuation, explore
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
    hidden = {"sex": ["sex"], "age>=50": ["age"]}
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, z_exclude=hidden, keep_models=True)
    X = frame.drop(columns=["id", "default"])
    valuator.fit(X, frame["default"], sensitive_features=z).valuation_.save(folder / "values.parquet")
    pool = X[["sex", "job", "age"]].iloc[::3].assign(age=lambda table: table["age"] // 2 + 45)
    pool.to_csv(folder / "pool.csv", index=False)
    valuator.value(pool).save(folder / "pool_values.parquet")
    return folder


def run(folder, *more, out="page.html", protected=("sex", "age>=50")):
    attributes = [word for name in protected for word in ("--protected", name)]
    arguments = ["explore", folder / "data.parquet", "--values", folder / "values.parquet"]
    arguments += ["--target", "default", *attributes, "--drop", "id", "--out", folder / out, *more]
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def test_the_page_is_the_librarys(frame, folder):
    result = run(folder, "--positive", "yes")
    assert result.exit_code == 0, result.stderr
    expected = explore(
        frame.drop(columns=["id", "default"]),
        frame["default"],
        sensitive_features={"sex": frame["sex"], "age>=50": protected_from(frame, "age>=50")},
        valuation=Valuation.load(folder / "values.parquet"),
        pos_label="yes",
        retrain=0,
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


def test_a_pool_is_shown_beside(frame, folder):
    named = ("--pool", folder / "pool.csv", "--pool-values", folder / "pool_values.parquet")
    result = run(folder, *named, out="pool.html", protected=("sex",))
    assert result.exit_code == 0, result.stderr
    pool = pd.read_csv(folder / "pool.csv"), Valuation.load(folder / "pool_values.parquet")
    expected = explore(
        frame.drop(columns=["id", "default"]),
        frame["default"],
        sensitive_features={"sex": frame["sex"]},
        valuation=Valuation.load(folder / "values.parquet"),
        pool=pool,
        retrain=0,
    )
    assert (folder / "pool.html").read_text(encoding="utf-8") == expected.html()
    part = expected.to_dict()["pool"]
    assert f"Pool of 100 rows without labels\n  Columns: {part['shifts']['sentence']}\n" in result.stdout
    assert "1 of 3 columns is distributed otherwise" in result.stdout
    told = part["attributes"][0]
    assert f"  By sex: {told['sentence']}\n" in result.stdout
    means = [told["v_y"][which]["mean"] for which in ("pool", "labelled")]
    assert f"    mean v_y {means[0]:.3g}, labelled {means[1]:.3g}\n" in result.stdout


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


def test_effects_are_printed_within_eighty_columns(effects):
    result = run(effects, "--drop", "weight", "--retrain", protected=("sex",))
    assert result.exit_code == 0, result.stderr
    frame = pd.read_parquet(effects / "data.parquet")
    X, z = frame[["score", "club", "sex"]], {"sex": frame["sex"]}
    values = Valuation.load(effects / "values.parquet")
    expected = explore(X, frame["default"], sensitive_features=z, valuation=values, retrain=True)
    assert (effects / "page.html").read_text(encoding="utf-8") == expected.html()
    text = result.stdout[result.stdout.index("What rows do to the model") :]
    tables = text[: text.index("In brackets")].splitlines()
    assert max(map(len, tables)) <= 80
    found = expected.effects()
    for row in found["cells"].itertuples():
        told = f"{row.group} +{row.label} +{row.rows} +{row.ratio_effect:+.4f} +{row.performance_effect:+.4f}"
        assert re.search(re.escape(told).replace(r"\ \+", " +"), "\n".join(tables).replace(",", ""))
    for row in found["slices"].itertuples():
        assert f"{row.ratio_change:+.4f}" in text
    for row in found["measured"].itertuples():
        assert f"{row.measured_ratio_change:+.4f}" in text


def test_effects_are_multiplied_by_weights(effects):
    assert run(effects, "--weight", "weight", protected=("sex",)).exit_code == 0
    frame = pd.read_parquet(effects / "data.parquet")
    expected = explore(
        frame[["score", "club", "sex"]],
        frame["default"],
        sensitive_features={"sex": frame["sex"]},
        sample_weight=frame["weight"],
        valuation=Valuation.load(effects / "values.parquet"),
        retrain=0,
    )
    assert (effects / "page.html").read_text(encoding="utf-8") == expected.html()


@pytest.mark.parametrize(
    ("out", "more", "protected", "message"),
    [
        ("page.pdf", (), ("sex",), "must end in .html or .htm"),
        ("missing/page.html", (), ("sex",), "does not exist"),
        ("bad.html", ("--positive", "maybe"), ("sex",), "is not a label of the target"),
        ("bad.html", (), ("job",), "`--values` holds no values for 'job'"),
        ("bad.html", (), ("default",), "`--protected` names 'default', the target: name another column."),
        ("bad.html", (), ("sexe",), "must name a column"),
        ("bad.html", ("--retrain",), ("sex",), "these were made by 'out-of-bag': value the rows with"),
        ("bad.html", ("--pool", "pool.csv"), ("sex",), "`--pool` needs `--pool-values`: value the pool by"),
        ("bad.html", ("--pool-values", "pool_values.parquet"), ("sex",), "are the values of `--pool`: name"),
        ("bad.html", ("--pool", "data.parquet", "--pool-values", "pool_values.parquet"), ("sex",),
         "The valuation of `--pool` has 100 rows and its table has 300"),
        ("bad.html", ("--pool", "none.csv", "--pool-values", "pool_values.parquet"), ("sex",), "none.csv"),
        ("pool.csv", ("--pool", "pool.csv", "--pool-values", "pool_values.parquet"), ("sex",), "must end in"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(folder, out, more, protected, message):
    before = sorted(folder.iterdir())
    more = [folder / word if "." in word else word for word in more]
    result = run(folder, *more, out=out, protected=protected)
    assert result.exit_code == 2
    assert message in result.stderr
    assert re.fullmatch(r"error: [^\n]*\n", result.stderr)
    assert sorted(folder.iterdir()) == before
