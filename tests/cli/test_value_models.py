"""`fado value --models`: models are kept, and value rows that were not there."""

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import run

from fado import OutOfBagEntropy, Valuation
from fado.datasets import protected_from
from fado.valuation import load_models

N = 400
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "age": RNG.integers(18, 90, N),
        "income": RNG.lognormal(size=N),
        "town": RNG.choice(["Ulm", "Bonn"], N),
        "sex": RNG.choice(["f", "m"], N),
    }
)
FRAME["default"] = (FRAME["income"] + RNG.normal(size=N) < 0.6).map({True: "yes", False: "no"})
OLD, NEW = FRAME.iloc[:300], FRAME.iloc[300:].reset_index(drop=True)
ATTRIBUTES = ("--protected", "sex", "--protected", "age >= 50")


def train(folder, *more, code=0):
    options = {"target": "default", "drop": "id", "bags": 5, "models": folder / "models"}
    out = folder / "values.parquet"
    return run("value", folder / "old.parquet", *ATTRIBUTES, *more, **options, out=out, code=code)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    OLD.to_parquet(folder / "old.parquet")
    NEW.to_parquet(folder / "new.parquet")
    NEW.drop(columns=["default", "id"]).to_csv(folder / "unlabelled.csv", index=False)
    result = train(folder)
    (folder / "said.txt").write_text(result.stdout)
    return folder


@pytest.fixture(scope="module")
def valuator():
    z = {"sex": OLD["sex"], "age>=50": protected_from(OLD, "age>=50")}
    exclude = {"sex": ["sex"], "age>=50": ["age"]}
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, z_exclude=exclude, keep_models=True)
    return valuator.fit(OLD.drop(columns=["default", "id"]), OLD["default"], sensitive_features=z)


def value(folder, *more, data="new.parquet", out="new_values.parquet", models="models", code=0):
    return run("value", folder / data, "--models", folder / models, "--out", folder / out, *more, code=code)


def test_models_are_kept_beside_the_same_values(folder, valuator):
    said = (folder / "said.txt").read_text()
    assert f"Models saved to {folder / 'models'}: 5 of y, 5 of sex, 5 of age>=50" in said
    pd.testing.assert_frame_equal(
        Valuation.load(folder / "values.parquet").values, valuator.valuation_.values, check_exact=True
    )
    assert load_models(folder / "models").variables == ["y", "sex", "age>=50"]


def test_values_that_cannot_be_written_leave_no_models_that_refuse_the_table(tmp_path, monkeypatch):
    OLD.to_parquet(tmp_path / "old.parquet")
    with monkeypatch.context() as patched:
        patched.setattr("fado.cli._inputs.save_values", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            raise train(tmp_path, code=1).exception
    assert [path.name for path in tmp_path.iterdir()] == ["old.parquet"]
    train(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "old.parquet", "values.parquet"]


@pytest.mark.parametrize("data", ["new.parquet", "unlabelled.csv"])
def test_rows_without_labels_are_valued(folder, valuator, data):
    result = value(folder, data=data)
    found, expected = Valuation.load(folder / "new_values.parquet"), valuator.value(NEW)
    for field in ("values", "epistemic", "counts"):
        pd.testing.assert_frame_equal(getattr(found, field), getattr(expected, field), check_exact=True)
    assert found.provenance.algorithm == "out-of-bag, new rows"
    assert "Values of models that were trained on 300 rows: 5 of y, 5 of sex, 5 of age>=50." in result.stdout
    assert "averaged over its predicted labels" in result.stdout
    assert f"{expected.epistemic['sex'].mean():.3f}" in result.stdout
    assert "Values of 100 rows written to" in result.stdout


def test_labels_and_attributes_that_are_known_are_used(folder, valuator):
    result = value(folder, "--target", "default", *ATTRIBUTES, "--jobs", 1)
    z = {"sex": NEW["sex"], "age>=50": protected_from(NEW, "age>=50")}
    found, expected = Valuation.load(folder / "new_values.parquet"), valuator.value(NEW, NEW["default"], z)
    for field in ("values", "label_probability"):
        pd.testing.assert_frame_equal(getattr(found, field), getattr(expected, field), check_exact=True)
    assert found.provenance.made_for.target == "default"
    assert "averaged over" not in result.stdout


def test_values_of_new_rows_go_on_to_other_commands(folder):
    value(folder, "--target", "default", out="labelled.parquet")
    options = {"target": "default", "protected": "sex", "intervention": "uaps", "alpha": 0.5}
    options |= {"values": folder / "labelled.parquet", "out": folder / "sampled.parquet"}
    run("sample", folder / "new.parquet", **options)


def test_the_table_that_the_models_learnt_from_is_refused(folder):
    result = value(folder, "--target", "default", data="old.parquet", code=2)
    assert "were trained on this table" in result.stderr
    assert "name another with `--models`" in result.stderr
    (folder / ".models.0123abcd.part").mkdir()  # of one who was killed when all was done
    again = train(folder, code=2)
    assert not (folder / ".models.0123abcd.part").exists()
    assert "contains models, so nothing is trained: leave out `--bags`, `--drop`" in again.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--bags 5", "leave out `--bags`"),
        ("--seed 1", "leave out `--seed`"),
        ("--valuator inbag", "leave out `--valuator`"),
        ("--exclude town", "leave out `--exclude`"),
        ("--target defaults", "got 'defaults'; did you mean 'default'?"),
        ("--target town", "label 'Bonn', which the models have not learnt"),
        ("--protected town", "learnt no protected attribute 'town', which `--protected` names"),
        ("--protected colour", "colour"),
        ("--out values.txt", "`--out` must end in"),
        ("--out models/values.parquet", "are one inside the other: name another place for one"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, monkeypatch, more, message):
    monkeypatch.chdir(folder)
    result = value(folder, *more.split(), code=2)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (folder / "models" / "values.parquet").exists()


def test_damaged_and_foreign_inputs_are_refused(folder, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "notes.txt").write_text("mine")
    NEW.to_parquet(tmp_path / "new.parquet")
    NEW.drop(columns="town").to_parquet(folder / "narrow.parquet")
    assert "There is no saved set of models" in value(tmp_path, code=2).stderr
    assert "it is not a directory" in value(tmp_path, models="new.parquet", code=2).stderr
    assert (tmp_path / "models" / "notes.txt").read_text() == "mine"
    narrow = value(folder, data="narrow.parquet", code=2)
    assert "no column 'town', which the model learnt from" in narrow.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--protected sex", "Missing option '--target'"),
        ("--target default", "Missing option '--protected'"),
        (
            "--target default --protected sex --valuator influence",
            "`--models` is for `--valuator oob` or `inbag`, not for 'influence'",
        ),
        ("--target default --protected sex --models none/models", "does not exist: create it first"),
        ("--target default --protected sex --from values.parquet", "fits no models: leave out"),
    ],
)
def test_models_are_kept_only_where_they_can_be_trained(folder, tmp_path, more, message, monkeypatch):
    monkeypatch.chdir(folder)
    options = {"models": tmp_path / "fresh", "out": tmp_path / "v.parquet", "code": 2}
    assert message in run("value", "old.parquet", *more.split(), **options).stderr
    assert not (tmp_path / "fresh").exists()
