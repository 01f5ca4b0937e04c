"""`fado predict`, as a user runs it."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tests.models.made import LATE, SEX, N, X, chosen, fitted
from typer.testing import CliRunner

from fado.cli._app import build_app
from fado.models import check_trend

MODEL = chosen()
AGE = np.random.default_rng(1).integers(18, 80, N)
FRAME = X.assign(sex=SEX, age=AGE, late=np.where(LATE, "yes", "no"))


@pytest.fixture
def files(tmp_path):
    MODEL.save(tmp_path / "model")
    FRAME.to_parquet(tmp_path / "data.parquet")
    return tmp_path


def predict(files, *more, data="data.parquet", out="scores.parquet", model="model"):
    words = ["predict", files / model, files / data, "--out", files / out, *more]
    return CliRunner().invoke(build_app(), [str(word) for word in words])


def refusal(done):
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.splitlines()
    return line


def test_scores_and_decisions_are_those_of_the_model(files):
    done = predict(files)
    assert done.exit_code == 0, done.output
    written = pd.read_parquet(files / "scores.parquet")
    assert written.columns.tolist() == ["score", "decision"]
    np.testing.assert_array_equal(written["score"], MODEL.score_rows(X))
    assert written["decision"].tolist() == MODEL.predict(X).tolist()
    selected = int((written["decision"] == "yes").sum())
    assert f"{selected} of {N} rows ({100 * selected / N:.3g} %) are predicted 'yes'" in done.stdout
    assert "line" not in done.stdout


def test_a_csv_file_gives_the_same_scores(files):
    FRAME.to_csv(files / "data.csv", index=False)
    assert predict(files, data="data.csv", out="scores.csv").exit_code == 0
    written = pd.read_csv(files / "scores.csv")
    np.testing.assert_allclose(written["score"], MODEL.score_rows(X), rtol=0, atol=1e-15)
    assert written["decision"].tolist() == MODEL.predict(X).tolist()


@pytest.mark.parametrize(
    ("protected", "groups"), [("sex", SEX), ("age>=50", AGE >= 50), ("sex == f & age >= 50", None)]
)
def test_with_labels_and_groups_the_line_is_checked(files, protected, groups):
    groups = (SEX == "f") & (AGE >= 50) if groups is None else groups
    check = MODEL.check(X, FRAME["late"], pd.Series(groups, name=protected))
    done = predict(files, "--target", "late", "--protected", protected)
    assert done.exit_code == 0, done.output
    assert check.sentence.partition(" For ")[0] in done.stdout  # then the groups, by what they compare
    shown = re.search(r"fpr_ratio\s+(\S+)\s+(\S+)\s+(\S+)", done.stdout).groups()
    for text, end in zip(shown, ("", "_low", "_high"), strict=True):
        number = check.metrics[f"fpr_ratio{end}"]
        assert text == ("-" if np.isnan(number) else f"{number:.3f}")
    kept = "kept" if check.budget_kept else "exceeded"
    assert f"The budget (a false-positive rate of at most 10 %) is {kept} on these rows." in done.stdout
    assert ("The line is between the groups of 'sex'" in done.stdout) is (protected != "sex")


CHECKED = ["--target", "late", "--protected", "sex"]


@pytest.mark.parametrize(
    ("protected", "line", "held", "below", "unsure", "both"),
    [("flag", 0.8, False, 1, 0, 1), ("sex", 0.8, None, 0, 3, 3), ("sex", 0.5, True, 0, 0, 0)],
    ids=["missed", "unsure", "held"],
)
def test_exit_codes_are_those_that_were_asked_for(files, protected, line, held, below, unsure, both):
    model = chosen(at_least=line, ratio="selection_rate_ratio")
    model.save(files / "other")
    assert model.check(X, FRAME["late"], FRAME[protected]).held is held
    for more, code in (
        ([], 0),
        (["--fail-if-below"], below),
        (["--fail-if-unsure"], unsure),
        (["--fail-if-below", "--fail-if-unsure"], both),
    ):
        done = predict(files, "--target", "late", "--protected", protected, *more, model="other")
        assert done.exit_code == code, done.output
        assert (files / "scores.parquet").exists()
        (files / "scores.parquet").unlink()


def test_the_check_is_written_as_plain_data(files):
    done = predict(files, *CHECKED, "--json", files / "check.json", "--date", "2026-05-31")
    assert done.exit_code == 0, done.output
    told = json.loads((files / "check.json").read_text(encoding="utf-8"))
    assert told == MODEL.check(X, FRAME["late"], SEX, date="2026-05-31").to_plain()
    assert f"The check of 2026-05-31 written to {files / 'check.json'}" in done.stdout
    assert "At this threshold, with 95 % intervals" in done.stdout


def test_checks_of_several_days_become_a_trend(files):
    for day in ("2026-04-30", "2026-05-01", "2026-05-01"):
        done = predict(files, *CHECKED, "--history", files / "checks", "--date", day)
        assert done.exit_code == 0, done.output
    assert f"see {files / 'checks' / 'trend.html'}" in done.stdout
    assert check_trend(files / "checks")["checks"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--json", "c.json"], "`--json` needs a check: give `--target` and `--protected` too."),
        (["--fail-if-below", "--date", "2026-05-31"], "`--date`, `--fail-if-below` needs a check"),
        ([*CHECKED, "--json", "c.txt"], "`--json` must end in .json, got 'c.txt'."),
        ([*CHECKED, "--json", "none/c.json"], "The directory 'none' does not exist"),
        ([*CHECKED, "--history", "none/checks"], "The directory 'none' does not exist"),
        ([*CHECKED, "--history", "data.parquet"], "`--history` 'data.parquet' is a file"),
        ([*CHECKED, "--history", "model"], "'model' is in the directory of the model: name another place."),
        ([*CHECKED, "--date", "May"], "`--date` must be a day such as '2026-05-31', got 'May'."),
    ],
    ids=str,
)
def test_what_cannot_be_kept_is_said_in_a_sentence(files, monkeypatch, more, told):
    monkeypatch.chdir(files)
    assert told in refusal(predict(files, *more))
    assert not (files / "scores.parquet").exists()


def test_labels_that_are_written_otherwise_are_told_by_the_positive_one(files):
    FRAME.assign(late=np.where(LATE, "B", "A")).to_parquet(files / "data.parquet")
    words = ["--target", "late", "--protected", "sex"]
    done = predict(files, *words)
    assert refusal(done) == (
        "error: `--target` holds the label 'A', but the model distinguishes 'no' and 'yes': pass these "
        "labels."
    )
    done = predict(files, *words, "--positive", "B")
    assert MODEL.check(X, np.where(LATE, "yes", "no"), SEX).sentence in done.stdout


def test_columns_without_names_are_found_by_place(files):
    numbers = X[["debts", "flag"]].fillna(0.0).astype(float)
    model = chosen(fitted(numbers.to_numpy(), LogisticRegression())[0])
    model.save(files / "array")
    numbers.assign(late=FRAME["late"]).to_parquet(files / "data.parquet")
    done = predict(files, "--target", "late", "--protected", "flag", model="array")
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(
        pd.read_parquet(files / "scores.parquet")["score"], model.score_rows(numbers.to_numpy())
    )
    assert "must have the 2 columns that the model learnt from, got 3" in refusal(
        predict(files, model="array")
    )


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--target", "late"], "`--target` and `--protected` must be given together"),
        (["--protected", "sex"], "`--target` and `--protected` must be given together"),
        (["--positive", "yes"], "`--positive` names a label of `--target`: give both."),
        (["--target", "lates", "--protected", "sex"], "got 'lates'; did you mean 'late'?"),
        (["--target", "late", "--protected", "sexe"], "'sexe'"),
        (
            ["--target", "late", "--protected", "sex", "--positive", "maybe"],
            "`--positive maybe` is not a label",
        ),
        (["--target", "age", "--protected", "sex"], "`--target` holds the label 18"),
        (["--target", "age", "--protected", "sex", "--positive", "20"], "'age' has 62 labels"),
    ],
    ids=str,
)
def test_what_cannot_be_checked_is_said_in_a_sentence(files, more, told):
    assert told in refusal(predict(files, *more))
    assert not (files / "scores.parquet").exists()


def test_rows_of_one_label_are_said_in_a_sentence(files):
    FRAME[~LATE].to_parquet(files / "data.parquet")
    for more in ([], ["--positive", "no"]):
        told = refusal(predict(files, "--target", "late", "--protected", "sex", *more))
        assert "`--target` holds one label only" in told


def test_bad_tables_and_directories_are_said_in_a_sentence(files):
    FRAME.drop(columns="town").to_parquet(files / "fewer.parquet")
    assert "no column 'town', which the model learnt from" in refusal(predict(files, data="fewer.parquet"))
    assert "There is no file" in refusal(predict(files, data="none.parquet"))
    assert "There is no saved model in" in refusal(predict(files, model="none"))
    assert "must end in .csv or .parquet" in refusal(predict(files, out="scores.txt"))
    assert "which is also an input" in refusal(predict(files, out="data.parquet"))
    (files / "model" / "model.txt").write_bytes(b"tree\n")
    assert "model.txt' is damaged or of another model" in refusal(predict(files))
