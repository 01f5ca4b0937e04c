"""`fado aim`, as a user runs it."""

import re

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from tests.aim.conftest import draw_applicants
from tests.cli.program import check_sentence, rows_of_parts, run

from fado import AimedEstimator, load_model

APPLICANTS = draw_applicants(4000, seed=0)
FRAME = APPLICANTS.X.assign(
    sex=APPLICANTS.sex,
    month=np.arange(4000) % 8,
    hired=np.where(APPLICANTS.y, "yes", "no"),
    weight=1 + np.arange(4000) % 2,
)


@pytest.fixture
def folder(tmp_path):
    FRAME.to_parquet(tmp_path / "data.parquet")
    return tmp_path


def aim(folder, *more, out="model", drop=("sex", "weight"), code=0):
    options = {"target": "hired", "protected": "sex", "drop": drop, "jobs": 1}
    return run("aim", folder / "data.parquet", *more, **options, out=folder / out, code=code)


def numbers(text, name):
    """The figures of a metric, in the order of the tables."""
    (line,) = [own for own in text.splitlines() if own.lstrip().startswith(f"{name}: ")]
    return [float(own) for own in re.findall(r" (0\.\d+) \(", line)]


def test_one_command_one_model_one_card(folder):
    done = aim(folder, "--at-least", "0.6", "--test-fraction", "0.3", "--drop", "month")
    assert "Aimed at fpr_ratio by scores, in 12 fits on 2,801 rows" in done.stdout
    verdict = re.search(
        r"On test rows, which were not used to make the model, the line is (reached|missed).*?[:;] "
        r"fpr_ratio (0\.\d+)",
        done.stdout,
    )
    assert (float(verdict[2]) >= 0.6) == (verdict[1] == "reached")
    assert "On validation rows, which selected the model, the line is reached" in done.stdout
    assert re.search(
        r"1,199 new rows, the line will be reached with a probability of about 0\.\d\d\.", done.stdout
    )
    assert {path.name for path in (folder / "model").iterdir()} == {
        "model.json",
        "models.bin",
        "card.md",
        "card.html",
    }
    model = load_model(folder / "model")
    places = {(own.part, own.group) for own in model.facts_.groups}
    assert set(model.facts_.measured) == {"validation", "test"} == set(model.facts_.before)
    assert {part for part, _ in places} == {"training", "validation", "test"}
    assert all((part, sex) in places for part, _ in places for sex in ("f", "m"))
    before, after = numbers(done.stdout, "fpr_ratio")
    for part, told in ((model.facts_.before, before), (model.facts_.measured, after)):
        assert told == pytest.approx(part["test"]["fpr_ratio"], abs=5e-4)
    chosen_by = [own["validation"]["fpr_ratio"] for own in (model.facts_.before, model.facts_.measured)]
    assert chosen_by[0] < 0.6 <= chosen_by[1]
    assert "sex" not in model.feature_names_in_
    assert "Decisions see" not in done.stdout


def test_it_is_the_estimator_of_python(folder):
    done = aim(folder, "--ratio", "fpr_ratio=0.5", "--ratio", "tpr_ratio=0.6", "--drop", "month")
    X = FRAME[["skill", "hobby", "height"]]
    own = AimedEstimator(
        LGBMClassifier(random_state=0, verbosity=-1),
        ratio={"fpr_ratio": 0.5, "tpr_ratio": 0.6},
        random_state=0,
    ).fit(X, FRAME["hired"], sensitive_features=FRAME["sex"])
    np.testing.assert_array_equal(load_model(folder / "model").predict(X), own.predict(X))
    assert "There are no test rows: only an untouched test set shows what to expect" in done.stdout


@pytest.mark.parametrize("by", ["student", "weights"])
def test_other_ways(folder, by):
    done = aim(folder, "--by", by, "--at-least", "0.1", "--drop", "month")
    assert f"by {by}, in " in done.stdout
    assert load_model(folder / "model").reached_


def test_months_set_rows_apart(folder):
    done = aim(
        folder,
        *("--split", "month", "--validation", "4", "--validation", "5", "--test", "6", "--test", "7"),
        *("--at-least", "0.3"),
    )
    assert "in 2 fits on 2,000 rows" in done.stdout
    model = load_model(folder / "model")
    assert rows_of_parts(model.facts_) == {"training": 2000, "validation": 1000, "test": 1000}
    assert "month" not in model.feature_names_in_
    tested = FRAME[FRAME["month"] >= 6]
    decided = model.predict(tested) == "yes"
    rate = decided[(tested["hired"] == "no") & (tested["sex"] == "m")].mean()
    (own,) = [one for one in model.facts_.groups if (one.part, one.group) == ("test", "m")]
    assert own.after["fpr"] == rate


def test_columns_that_make_the_attribute_are_named(folder):
    done = aim(folder, "--at-least", "0.3", "--drop", "month", drop=("weight",))
    assert "The model uses 'sex', from which a protected attribute is computed." in done.stdout


def test_weights_count(folder):
    for out, more in (("plain", ()), ("weighed", ("--weight", "weight"))):
        aim(folder, "--at-least", "0.3", "--drop", "month", *more, out=out, drop=("sex",))
    assert load_model(folder / "weighed").metrics_ != load_model(folder / "plain").metrics_


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--ratio accuracy=0.8", "`--ratio` must be 'fpr_ratio' or"),
        ("--ratio fpr_ratio=1.8", r"`--ratio\['fpr_ratio'\]` must be in \(0, 1\]"),
        ("--ratio fpr_ratio=0.8 --ratio fpr_ratio=0.9", "names 'fpr_ratio' twice: give it one line"),
        ("--confidence 2", "`--confidence` must be in"),
        ("--test-fraction 1.2", r"`--test-fraction` must be in \(0, 1\), got 1.2"),
        ("--test 6", "name the column with `--split`"),
        ("--max-fpr 0.1 --top-k 5", "all limit decisions: give one"),
        ("--by weights --ratio fpr_ratio=0.8 --ratio tpr_ratio=0.8", "`--by` .weights. aims at one"),
    ],
)
def test_bad_input_gets_a_sentence(folder, more, message):
    check_sentence(aim(folder, *more.split(), code=2), message)
    assert not (folder / "model").exists()


def test_predicts_and_checks(folder):
    aim(folder, "--at-least", "0.3", "--drop", "month")
    words = ["predict", folder / "model", folder / "data.parquet", "--out", folder / "scores.csv"]
    done = run(*words, "--target", "hired", "--protected", "sex")
    assert re.search("line is (not )?held: fpr_ratio 0", done.stdout)
    written = pd.read_csv(folder / "scores.csv")
    assert written["decision"].tolist() == load_model(folder / "model").predict(FRAME).tolist()
