"""`fado predict`, as a user runs it."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tests.cli.program import refusal, run
from tests.models.made import LATE, SEX, N, X, chosen, fitted

from fado.metrics import Budget
from fado.models import ChosenModel, GroupRates, summarize_columns
from fado.tabular import column_from, group_rows, variable_from

MODEL = chosen()
AGE = np.random.default_rng(1).integers(18, 80, N)
FRAME = X.assign(sex=SEX, age=AGE, late=np.where(LATE, "yes", "no"))


@pytest.fixture
def files(tmp_path):
    MODEL.save(tmp_path / "model")
    FRAME.to_parquet(tmp_path / "data.parquet")
    return tmp_path


def predict(files, *more, data="data.parquet", out="scores.parquet", model="model", code=0):
    words = ["predict", files / model, files / data, "--out", files / out, *more]
    return run(*words, code=code)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_scores_and_decisions_are_those_of_the_model(files, ending):
    FRAME.to_csv(files / "data.csv", index=False)
    done = predict(files, data=f"data.{ending}", out=f"scores.{ending}")
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    written = read(files / f"scores.{ending}")
    assert written.columns.tolist() == ["score", "decision"]
    close = 1e-15 if ending == "csv" else 0
    np.testing.assert_allclose(written["score"], MODEL.score_rows(X), rtol=0, atol=close)
    assert written["decision"].tolist() == MODEL.predict(X).tolist()
    selected = int((written["decision"] == "yes").sum())
    assert f"{selected} of {N} rows ({100 * selected / N:.3g} %) are predicted 'yes'" in done.stdout
    assert "line" not in done.stdout


@pytest.mark.parametrize(
    ("protected", "groups"), [("sex", SEX), ("age>=50", AGE >= 50), ("sex == f & age >= 50", None)]
)
def test_with_labels_and_groups_the_line_is_checked(files, protected, groups):
    groups = (SEX == "f") & (AGE >= 50) if groups is None else groups
    check = MODEL.check(X, FRAME["late"], pd.Series(groups, name=protected))
    done = predict(files, "--target", "late", "--protected", protected)
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
    one, other = "--fail-if-below", "--fail-if-unsure"
    for more, code in (([], 0), ([one], below), ([other], unsure), ([one, other], both)):
        predict(files, "--target", "late", "--protected", protected, *more, model="other", code=code)
        assert (files / "scores.parquet").exists()
        (files / "scores.parquet").unlink()


def test_the_check_is_written_as_plain_data(files):
    done = predict(files, *CHECKED, "--json", files / "check.json", "--date", "2026-05-31")
    told = json.loads((files / "check.json").read_text(encoding="utf-8"))
    assert told == MODEL.check(X, FRAME["late"], SEX, date="2026-05-31").to_plain()  # of the loaded model
    assert f"The check of 2026-05-31 written to {files / 'check.json'}" in done.stdout
    assert "At this threshold, with 95 % intervals" in done.stdout


def test_checks_of_several_days_become_one_table(files):
    for day in ("2026-04-30", "2026-05-01", "2026-05-01"):
        done = predict(files, *CHECKED, "--history", files / "checks", "--date", day)
    done = predict(files, "--history", files / "checks", "--date", "2026-05-02")  # its labels come later
    table = done.stdout[done.stdout.index("All checks in") :].splitlines()[1:]
    assert " ".join(table[1].split()) == "date rows ratio value low high verdict budget used drifted"
    check = MODEL.check(X, FRAME["late"], SEX)
    figures = [f"{check.metrics[f'fpr_ratio{end}']:.3f}" for end in ("", "_low", "_high")]
    used = f"{check.metrics['fpr'] / 0.1:.3f}"
    nights = [line.split() for line in table[3:6]]
    assert nights[:2] == [
        [day, "600", "fpr_ratio", *figures, "undecided", used, "-"] for day in ("2026-04-30", "2026-05-01")
    ]
    assert nights[2] == ["2026-05-02", "600", "fpr_ratio", "-", "-", "-", "no", "labels", "-", "-"]
    assert sorted(path.name for path in (files / "checks").iterdir())[-1] == "2026-05-02.json"
    (files / "scores.parquet").unlink()
    (files / "checks" / "2026-05-01.json").write_text("{}")
    done = predict(files, "--history", files / "checks", "--date", "2026-05-03", code=2)
    assert "2026-05-01.json' is not a check of this release: move it out" in refusal(done)
    assert not (files / "scores.parquet").exists()


def summarized(**changes):
    """A model that knows its training columns, and which share of 600 validation rows it selected."""
    model, table = fitted()
    measured = {"validation": chosen(model).metrics_}
    groups = GroupRates.of("validation", LATE, group_rows([variable_from(column_from("sex", SEX))]))
    changes = {"measured": measured, "groups": groups} | changes
    found = chosen(model, **changes)
    return ChosenModel(
        found.scorer,
        classes=found.labels,
        threshold=found.threshold_,
        metrics=found.metrics_,
        facts=found.facts_,
        columns=summarize_columns(table),
    )


def test_a_broken_feed_does_not_pass_the_night(files):
    """A column in other units, a new level in every row, nothing selected: without labels, too."""
    summarized().save(files / "guarded")

    def night(rows, *more, code=0):
        rows.to_parquet(files / "night.parquet")
        return predict(files, *more, data="night.parquet", model="guarded", code=code)

    drift = "--fail-if-drifted"
    night(X, drift, "--json", files / "c.json")
    told = json.loads((files / "c.json").read_text(encoding="utf-8"))
    assert (told["verdict"], told["held"], told["drifted"], told["groups"]) == ("no labels", None, [], [])
    assert told["selection"]["expected"] == pytest.approx(told["selection"]["share"])
    for broken, named in (
        (X.assign(debts=365.25 * X["debts"]), "'debts'"),
        (X.assign(town="Kiel"), "'town'"),
    ):
        night(broken)
        done = night(broken, drift, code=4)
        assert f"Exit code 4: {named}" in done.stdout
        assert (files / "scores.parquet").exists()
    none = X.assign(debts=-1e9, flag=False)
    done = night(none, code=4)
    share = 100 * told["selection"]["expected"]
    assert f"Exit code 4: no row is selected of 600, {share:.3g} % were expected;" in done.stdout
    assert len(pd.read_parquet(files / "scores.parquet")) == N
    night(none, "--allow-none")
    done = night(none, "--allow-none", drift, code=4)
    assert "the share selected drifted" in done.stdout


def test_every_row_selected_is_no_good_night_either(files):
    model = chosen()
    low = ChosenModel(model.scorer, classes=model.labels, threshold=-1.0, metrics={}, facts=model.facts_)
    low.save(files / "low")
    assert "Exit code 4: every row is selected" in predict(files, model="low", code=4).stdout
    predict(files, "--allow-none", model="low")
    # 4 comes before the others, which hold too: all false positives are one too many
    flags = ["--fail-if-below", "--fail-if-over-budget", "--fail-if-unsure"]
    predict(files, *CHECKED, *flags, model="low", code=4)
    predict(files, *CHECKED, *flags, "--allow-none", model="low", code=5)


def test_a_budget_that_is_exceeded_beyond_doubt_fails_the_night(files):
    """Below the line (1) comes before over the budget (5), which comes before too few rows (3)."""
    metrics = MODEL.check(X, FRAME["late"], SEX).metrics
    flags = ["--fail-if-over-budget", "--fail-if-unsure"]
    for limit, code in ((0.99 * metrics["fpr_low"], 5), (1.01 * metrics["fpr_low"], 3)):
        chosen(budget=Budget("fpr", limit)).save(files / "tight")
        done = predict(files, *CHECKED, *flags, model="tight", code=code)
        assert "is exceeded on these rows" in done.stdout
    chosen(budget=Budget("fpr", 0.01), ratio="selection_rate_ratio").save(files / "tight")
    predict(
        files, "--target", "late", "--protected", "flag", "--fail-if-below", *flags, model="tight", code=1
    )
    needs_labels = refusal(predict(files, "--fail-if-over-budget", model="tight", code=2))
    assert "needs labels for a false-positive rate of at most 1 %" in needs_labels
    chosen(budget=Budget("top_k", 5)).save(files / "tight")  # counts rows, whatever their labels
    done = predict(files, "--fail-if-over-budget", model="tight", code=5)


def test_the_help_lists_the_exit_codes():
    text = run("predict", "--help").stdout
    assert re.findall(r"^ (\d): ", text, re.MULTILINE) == list("2441530")


def test_labels_that_are_written_otherwise_are_told_by_the_positive_one(files):
    FRAME.assign(late=np.where(LATE, "B", "A")).to_parquet(files / "data.parquet")
    words = ["--target", "late", "--protected", "sex"]
    assert refusal(predict(files, *words, code=2)) == (
        "`--target` has the label 'A', and the model knows 'no' and 'yes': give both the same labels."
    )
    done = predict(files, *words, "--positive", "B")
    assert MODEL.check(X, np.where(LATE, "yes", "no"), SEX).sentence in done.stdout


def test_columns_without_names_are_found_by_place(files):
    numbers = X[["debts", "flag"]].fillna(0.0).astype(float)
    model = chosen(fitted(numbers.to_numpy(), LogisticRegression())[0])
    model.save(files / "array")
    numbers.assign(late=FRAME["late"]).to_parquet(files / "data.parquet")
    predict(files, "--target", "late", "--protected", "flag", model="array")
    np.testing.assert_array_equal(
        pd.read_parquet(files / "scores.parquet")["score"], model.score_rows(numbers.to_numpy())
    )
    told = refusal(predict(files, model="array", code=2))
    assert "The table has 3 columns, and the model learnt from 2" in told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            "--fail-if-below --fail-if-unsure",
            "`--fail-if-below`, `--fail-if-unsure` needs labels: give `--target` and `--protected` too.",
        ),
        ("CHECKED --json c.txt", "`--json` must end in .json, got 'c.txt'."),
        ("CHECKED --json none/c.json", "The directory 'none' does not exist"),
        ("CHECKED --history none/checks", "The directory 'none' does not exist"),
        ("CHECKED --history data.parquet", "`--history` 'data.parquet' is a file"),
        ("CHECKED --history model", "'model' is in the directory of the model: name another place."),
        ("CHECKED --date May", "`--date` must be a day such as '2026-05-31', got 'May'."),
        ("--target late", "`--target` and `--protected` must be given together"),
        ("--protected sex", "`--target` and `--protected` must be given together"),
        ("--positive yes", "`--positive` names a label of `--target`: give both."),
        ("--target lates --protected sex", "got 'lates'; did you mean 'late'?"),
        ("--target late --protected sexe", "'sexe'"),
        ("CHECKED --positive maybe", "`--positive maybe` is not a label"),
        ("--target age --protected sex", "`--target` has the label 18"),
        ("--target age --protected sex --positive 20", "'age' has 62 labels"),
    ],
)
def test_what_cannot_be_checked_is_said_in_a_sentence(files, monkeypatch, more, told):
    monkeypatch.chdir(files)
    assert told in refusal(predict(files, *more.replace("CHECKED", " ".join(CHECKED)).split(), code=2))
    assert not (files / "scores.parquet").exists()


def test_bad_tables_and_directories_are_said_in_a_sentence(files):
    FRAME.drop(columns="town").to_parquet(files / "fewer.parquet")
    FRAME[~LATE].to_parquet(files / "one.parquet")
    roles = ("--target", "late", "--protected", "sex")
    for more, settings, told in (
        ((), {"data": "fewer.parquet"}, "no column 'town', which the model learnt from"),
        (roles, {"data": "one.parquet"}, "`--target` has only one label"),
        ((*roles, "--positive", "no"), {"data": "one.parquet"}, "`--target` has only one label"),
        ((), {"data": "none.parquet"}, "There is no file"),
        ((), {"model": "none"}, "There is no saved model in"),
        ((), {"out": "scores.txt"}, "must end in .csv or .parquet"),
        ((), {"out": "data.parquet"}, "which is also an input"),
    ):
        assert told in refusal(predict(files, *more, **settings, code=2))
    (files / "model" / "model.txt").write_bytes(b"tree\n")
    assert "model.txt' is damaged or of another model" in refusal(predict(files, code=2))
