"""`fado frontier`, as a user runs it."""

import re

import numpy as np
import pandas as pd
import pytest
from benchmarks.faults import done_fits
from tests.aim.conftest import draw_applicants
from tests.cli.program import check_sentence, refusal, rows_of_parts, run

from fado import load_model

APPLICANTS = draw_applicants(1500, seed=0)
AGE = np.random.default_rng(0).integers(18, 80, 1500)
FRAME = APPLICANTS.X.assign(
    sex=APPLICANTS.sex, age=AGE, hired=np.where(APPLICANTS.y, "yes", "no"), weight=1 + AGE % 2
)


@pytest.fixture
def folder(tmp_path):
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def frontier(folder, *more, out="model", protected="sex", code=0):
    options = {"target": "hired", "protected": protected, "max_fits": 2, "jobs": 1, "max_fpr": 0.1}
    return run("frontier", folder / "data.csv", *more, **options, out=folder / out, code=code)


def test_a_model_is_found_and_predicts(folder):
    done = frontier(folder, "--at-least", "0.05", "--drop", "weight")
    assert "On validation rows, which selected the model, the line is reached" in done.stdout
    assert "On test rows, which were not used to make the model, the line is reached" in done.stdout
    assert "in 2 fits, for fpr_ratio" in done.stdout
    names = {path.name for path in (folder / "model").iterdir()}
    assert {"model.json", "model.txt", "card.md", "card.html", "landscape.html"} <= names
    model = load_model(folder / "model")
    assert model.reached_
    assert model.facts_.target == "hired"
    assert model.facts_.protected == ("sex",)
    assert model.classes_.tolist() == ["no", "yes"]
    assert "sex" in model.feature_names_in_
    assert "weight" not in model.feature_names_in_
    run("predict", folder / "model", folder / "data.csv", "--out", folder / "scores.csv")
    written = pd.read_csv(folder / "scores.csv")
    np.testing.assert_allclose(written["score"], model.score_rows(FRAME), rtol=0, atol=1e-15)
    assert written["decision"].tolist() == model.predict(FRAME).tolist()
    checked = run(
        "predict", folder / "model", folder / "data.csv", "--out", folder / "scores.csv",
        "--target", "hired", "--protected", "sex",
    )  # fmt: skip
    assert "The line is held: fpr_ratio" in checked.stdout


def test_a_missed_line_gives_the_closest_and_says_so(folder):
    done = frontier(folder, "--at-least", "1", "--drop", "sex", "--drop", "weight")
    assert re.search(
        r"On validation rows, .* the line is missed.*: fpr_ratio 0.*at least 1 required", done.stdout
    )
    assert "models reached fpr_ratio of at least 1; this one comes closest" in done.stdout
    model = load_model(folder / "model")
    assert not model.reached_
    assert model.facts_.why in done.stdout
    sure = frontier(folder, "--at-least", "0.5", "--confidence", "0.99", out="sure")
    (told,) = [line for line in sure.stdout.splitlines() if line.startswith("On validation rows, which")]
    kept = load_model(folder / "sure").facts_
    assert f"(98 % interval {kept.measured['validation']['fpr_ratio_low']:.3f} to " in told
    assert "each end at 99 % confidence" in told
    assert ("the line is reached with 99 % confidence" in told) is kept.reached
    sizes = FRAME.loc[FRAME["hired"] == "no", "sex"].value_counts()
    first = " ".join(sure.stdout.splitlines()[:3]).replace("  ", "")
    expected = f"{0.2 * 0.1 * sizes.min():.0f} false positives in 300"
    events = f"the smallest group ({sizes.idxmin()}) has about {expected}"
    assert first.startswith(f"fpr_ratio: at the budget, {events} validation rows;")
    assert "% confidence, below 0.5: no model can be confirmed" in first


def test_the_same_directory_is_replaced_and_a_strange_one_is_not(folder):
    frontier(folder, "--at-least", "0.05")
    frontier(folder, "--at-least", "0.06")
    assert load_model(folder / "model").facts_.at_least == 0.06
    assert (folder / "model" / "landscape.html").exists()
    (folder / "model" / "mine.txt").write_text("mine")
    assert "'mine.txt', which is not part of a saved model" in refusal(frontier(folder, code=2))
    assert (folder / "model" / "mine.txt").exists()


@pytest.mark.parametrize(
    ("out", "store", "how"), [("m", "m", "the same place"), ("m/o", "m", "one inside the other")]
)
def test_a_model_and_a_store_in_one_place_are_refused_before_the_search(folder, out, store, how):
    told = refusal(frontier(folder, "--store", folder / store, out=out, code=2))
    both = f"`--out` '{folder / out}' and `--store` '{folder / store}'"
    assert told == f"{both} are {how}: name another place for one."
    assert [path.name for path in folder.iterdir()] == ["data.csv"]


def test_scores_are_not_written_into_the_model(folder):
    frontier(folder, "--at-least", "0.05", "--drop", "weight")
    before = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    out = folder / "model" / "weights.parquet"
    told = refusal(run("predict", folder / "model", folder / "data.csv", out=out, code=2))
    assert "are one inside the other: name another place" in told
    assert {path.name: path.read_bytes() for path in (folder / "model").iterdir()} == before


def test_a_store_resumes(folder):
    frontier(folder, "--store", folder / "store")
    fits = done_fits(folder / "store")
    assert len(fits) > 2
    frontier(folder, "--store", folder / "store", "--at-least", "0.1")
    assert done_fits(folder / "store") == fits
    other = refusal(frontier(folder, "--store", folder / "store", "--ratio", "tpr_ratio", code=2))
    assert "interventions.aimed.ratios" in other


def test_a_landscape_that_cannot_be_written_leaves_the_directory_as_it_was(folder, monkeypatch):
    def half(_, path, at_least):
        path.with_name(".landscape.html.0123abcd.part").write_text("half")
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("fado.experiment.Frontier.report", half)
        done = frontier(folder, code=2)
    assert "No space left on device" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["data.csv"]
    frontier(folder)


def test_expressions_positive_labels_and_weights(folder):
    frontier(folder, "--positive", "no", "--weight", "weight", "--max-fpr", "0.3", protected="age>=50")
    model = load_model(folder / "model")
    assert model.facts_.protected == ("age>=50",)
    assert list(model.labels) == ["yes", "no"]
    assert "weight" not in model.feature_names_in_
    assert "They include 'age', from which a protected attribute is made." in model.card()


@pytest.mark.parametrize(
    ("option", "limit"), [("--max-selection-rate", 0.2), ("--top-k", 60), ("--threshold", 0.3)]
)
def test_other_budgets(folder, option, limit):
    asked = ("--target", "hired", "--protected", "sex", "--max-fits", 2, "--jobs", 1)
    run("frontier", folder / "data.csv", *asked, "--out", folder / "model", option, limit)
    budget = load_model(folder / "model").facts_.budget
    assert budget.kind == option.removeprefix("--").removeprefix("max-").replace("-", "_")
    assert budget.limit == limit


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--at-least 80", r"`--at-least` must be in \(0, 1\]"),
        ("--at-least 0", r"`--at-least` must be in \(0, 1\]"),
        ("--confidence 0.2", r"`--confidence` must be in \(0.5, 1\)"),
        ("--max-fits 1", "`--max-fits` must be at least 2"),
        ("--ratio fpr_ratio=high", r"`--ratio\['fpr_ratio'\]` must be a number in \(0, 1\]"),
        ("--split age", "`--split age` needs values"),
        ("--split agee --test 1", "no column 'agee'; did you mean 'age'"),
        ("--split hired --test 1", "`--split` names 'hired', the target"),
        ("--split age --test abc", "`--test abc` is not a value of 'age'; it has"),
        ("--split age --test 20 --validation 20", "is already named by `--validation`"),
        ("--split age --test 20 --test-fraction 0.1", "both define the test data"),
        ("--test-fraction 1.5", "`--test-fraction` must be"),
        ("--max-fpr 2", r"`--max-fpr` must be a share in \(0, 1\)"),
        ("--target age", "must hold two labels"),
    ],
)
def test_bad_options_are_said_in_a_sentence(folder, more, message):
    check_sentence(frontier(folder, *more.split(), code=2), message)
    assert not (folder / "model").exists()


def test_a_share_of_the_rows_is_kept_for_the_verdict(folder):
    frontier(folder, "--test-fraction", "0.4")
    assert rows_of_parts(load_model(folder / "model").facts_)["test"] == pytest.approx(600, abs=4)


def test_what_is_printed_is_what_the_card_begins_with(folder):
    """The verdict, before and after, and every group, all of test rows: the same figures in all places."""
    done = frontier(folder, "--drop", "sex", "--drop", "weight")
    card = load_model(folder / "model").card("dict")
    for sentence in card["lead"]:
        assert sentence in done.stdout.splitlines()
    printed = [line.split() for line in done.stdout.splitlines()]
    for section in card["sections"][:2]:
        for row in section["rows"]:
            assert " ".join(row).split() in printed
    (female,) = [own for own in load_model(folder / "model").rates_.to_dict("records")
                 if (own["part"], own["group"]) == ("test", "f")]  # fmt: skip
    for when, row in zip(("before", "after"), card["sections"][1]["rows"], strict=False):
        assert row[0] == "f"
        assert row[5].startswith(f"{female[f'fpr_{when}']:.3f} (")
