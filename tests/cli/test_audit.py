"""`fado audit`, as a user runs it."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli import program

from fado.metrics import audit

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "late": RNG.choice(["no", "yes"], 300),
        "risk": RNG.random(300).round(3),
        "sex": RNG.choice([1, 2], 300),
        "age": RNG.integers(18, 80, 300),
        "weight": RNG.integers(1, 4, 300),
    }
).assign(refused=lambda own: np.where(own["risk"] > 0.6, "refused", "granted"))


@pytest.fixture
def table(tmp_path):
    FRAME.to_csv(tmp_path / "p.csv", index=False)
    return tmp_path / "p.csv"


def run(table, *words, code=0):
    out = [] if "--out" in words else ["--out", table.parent / "a.csv"]
    return program.run(*("audit", table, *words, *out), code=code)


def test_the_files_hold_what_the_library_finds(table):
    folder = table.parent
    outs = [word for ending in ("csv", "json", "html") for word in ("--out", folder / f"a.{ending}")]
    names = ["--protected", "sex", "--protected", "age>=50", "--group-names", "sex: 1=men, 2=women"]
    done = run(table, "--label", "late", "--score", "risk", "--max-fpr", "0.2", *names, *outs)
    groups = {
        "sex": FRAME["sex"].map({1: "men", 2: "women"}),
        "age>=50": np.where(FRAME["age"] >= 50, "age >= 50", "age < 50"),
    }
    expected = audit(FRAME["late"], FRAME["risk"], sensitive_features=groups, max_fpr=0.2)
    written = pd.read_csv(folder / "a.csv", keep_default_na=False, na_values=[""])
    assert sorted(written["group"]) == sorted(expected.frame["group"])
    ours, theirs = (own.set_index(["attribute", "group"])["fpr"] for own in (written, expected.frame))
    assert ours.to_dict() == pytest.approx(theirs.to_dict())
    about = json.loads((folder / "a.json").read_text(encoding="utf-8"))["about"]
    assert about["threshold"] == expected.about["threshold"]
    assert "Audit of decisions" in (folder / "a.html").read_text(encoding="utf-8")
    line = expected.ratios.set_index(["attribute", "ratio"]).loc[("sex", "fpr_ratio")]
    said = f"sex: fpr_ratio {line['value']:.3f} ({line['low']:.3f} to {line['high']:.3f}, 95 %)"
    assert said in done.output
    positives = (FRAME["late"] == "yes").sum()
    assert f"300 rows, {positives} positives (label yes), " in done.output
    assert len([row for row in done.output.splitlines() if row.rstrip().endswith(" yes")]) == 8


def test_decisions_alone_need_no_labels(table):
    run(table, "--decision", "refused == refused", "--protected", "sex", "--weight", "weight")
    written = pd.read_csv(table.parent / "a.csv")
    weights = FRAME["weight"]
    share = np.average(FRAME["risk"] > 0.6, weights=np.where(FRAME["sex"] == 1, weights, 0))
    assert written.set_index("group")["selection_rate"][1] == pytest.approx(share)
    assert written["tpr"].isna().all()


def test_the_positive_label_may_be_named(table):
    words = ("--label", "late", "--score", "risk", "--threshold", "0.5", "--protected", "sex")
    run(table, *words, "--positive", "no")
    written = pd.read_csv(table.parent / "a.csv").set_index("group")
    own = FRAME[(FRAME["sex"] == 2) & (FRAME["late"] == "no")]
    assert written["tpr"][2] == pytest.approx((own["risk"] >= 0.5).mean())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--label", "late"], "Name the column of scores with `--score`, or of decisions with `--decision`."),
        (["--score", "risk", "--positive", "yes"], "`--positive` names a label of `--label`: give both."),
        (["--score", "risk"], "Without labels no false-positive rate is known: pass `--threshold`"),
        (["--decision", "age"], "Scores must be in [0, 1], got"),
        (
            ["--decision", "refused"],
            "Decisions must be of two values, 0 and 1 or labels, got 'granted', 'refused'",
        ),
        (["--decision", "gone"], "`--decision` must name a column of the table"),
        (["--score", "risk", "--top-k", "5", "--threshold", "0.5"], "all limit decisions: give one."),
        (["--score", "risk", "--out", "a.txt"], "`--out` must end in .html or .csv or .json, got 'a.txt'."),
    ],
)
def test_bad_input_gets_a_sentence(table, words, sentence):
    assert sentence in run(table, *words, "--protected", "sex", code=2).stderr
