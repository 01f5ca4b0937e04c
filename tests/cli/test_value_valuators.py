"""`fado value --valuator`: valuators other than entropy, what they are handed, and how effects are told."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import run

from fado import OutOfBagEntropy, TreeInfluence, Valuation
from fado.metrics import RATIO_NAMES
from fado.valuation import BaseValuator, register_valuator, valuator_names
from fado.valuation import Scale as ScaleOfValues

N = 240
RNG = np.random.default_rng(0)


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "id": np.arange(N),
            "age": RNG.integers(18, 90, N),
            "sex": np.tile(["f", "m", "m"], N // 3),
            "default": np.tile([0, 0, 0, 1], N // 4),
        }
    )


@pytest.fixture
def data(frame, tmp_path):
    path = tmp_path / "data.parquet"
    frame.to_parquet(path)
    return path


@pytest.fixture
def seen():
    """Register stand-ins that note what they were handed: of effects on a ratio, and of plain effects."""
    notes = {}

    @register_valuator("stand-in")
    class StandIn(BaseValuator):
        """Each row of a positive label is worth 1/1000 for the target, and the reverse for attributes."""

        def __init__(
            self, performance="tpr_at_fpr", fairness="fpr_ratio", n_bags=5, random_state=None, n_jobs=None
        ):
            self.performance = performance
            self.fairness = fairness
            self.n_bags = n_bags
            self.random_state = random_state
            self.n_jobs = n_jobs

        def _value(self, problem, validation, seed):
            notes["settings"] = self.get_params()
            notes["problem"] = problem
            effects = np.where(problem.labels.is_positive, 0.001, -0.0005)
            values = {own.name: effects if own.name == "y" else -effects for own in problem.variables}
            meanings = {name: self.performance if name == "y" else self.fairness for name in values}
            scales = {name: ScaleOfValues(f"effect on {metric}") for name, metric in meanings.items()}
            return Valuation.from_values(values, scales=scales)

    @register_valuator("plain")
    class Plain(BaseValuator):
        def __init__(self, random_state=None):
            self.random_state = random_state

        def _value(self, problem, validation, seed):
            notes["problem"] = problem
            values = {own.name: np.linspace(-1, 1, problem.n_rows) for own in problem.variables}
            values["y"][:3] = np.nan
            return Valuation.from_values(values)

    return notes


def value(data, out, *more, protected=("sex",), code=0):
    attributes = [word for name in protected for word in ("--protected", name)]
    return run("value", data, "--target", "default", *attributes, "--out", out, *more, code=code)


def check_sentence(result, sentence):
    assert result.stderr == f"error: {sentence}\n"


def test_entropy_out_of_bag_is_the_default(frame, data, tmp_path):
    out = tmp_path / "v.parquet"
    model = OutOfBagEntropy(random_state=0, z_exclude={"sex": ["sex"]})
    expected = model.fit(
        frame.drop(columns=["id", "default"]), frame["default"], sensitive_features={"sex": frame["sex"]}
    ).valuation_
    for more in ([], ["--valuator", "oob"]):
        result = value(data, out, *more)
        assert "bags 10, positive 1, seed 0." in result.stdout
        pd.testing.assert_frame_equal(Valuation.load(out).values, expected.values, check_exact=True)
    value(data, out, "--valuator", "inbag")
    assert Valuation.load(out).provenance.algorithm == "in-bag"


def test_only_settings_that_were_given_are_passed(seen, data, tmp_path):
    out = tmp_path / "v.parquet"
    first = value(data, out, "--valuator", "stand-in")
    assert (seen["settings"]["n_bags"], seen["settings"]["fairness"]) == (5, "fpr_ratio")
    assert seen["settings"]["performance"] == "tpr_at_fpr"
    assert (
        "Settings: valuator stand-in, ratio fpr_ratio, performance tpr_at_fpr, bags 5,\n"
        "  positive 1, seed 0.\n" in first.stdout
    )
    more = ["--ratio", "tpr_ratio", "--performance", "log_loss", "--bags", 3, "--seed", 7, "--jobs", 1]
    value(data, out, "--valuator", "stand-in", *more)
    assert seen["settings"] == {
        "fairness": "tpr_ratio",
        "performance": "log_loss",
        "n_bags": 3,
        "random_state": 7,
        "n_jobs": 1,
    }


def test_every_ratio_is_offered(seen, data, tmp_path):
    for ratio in RATIO_NAMES:
        value(data, tmp_path / "v.parquet", "--valuator", "stand-in", "--ratio", ratio)
        assert seen["settings"]["fairness"] == ratio
    words = ("--valuator", "stand-in", "--ratio", "gini")
    assert "fnr_ratio" in value(data, tmp_path / "v.parquet", *words, code=2).stderr


@pytest.mark.parametrize(
    ("more", "valuator", "why"),
    [
        ("--ratio fpr_ratio", "oob", "measures no ratio"),
        ("--valuator inbag --ratio fpr_ratio", "inbag", "measures no ratio"),
        ("--valuator plain --ratio fpr_ratio", "plain", "measures no ratio"),
        ("--performance accuracy", "oob", "measures no performance"),
        ("--valuator inbag --bags 5", "inbag", "has no bags"),
        ("--valuator plain --bags 5", "plain", "has no bags"),
        ("--valuator stand-in --exclude age", "stand-in", "has no models of attributes"),
    ],
)
def test_options_of_other_methods_are_refused_before_anything_is_read(seen, tmp_path, more, valuator, why):
    *_, option, _ = words = more.split()
    refused = value(tmp_path / "nothing is read.csv", tmp_path / "v.parquet", *words, code=2)
    check_sentence(refused, f"`{option}` is not for `--valuator {valuator}`, which {why}: leave it out.")


def test_an_unknown_valuator_is_refused(tmp_path):
    names = " or ".join(map(repr, valuator_names()))
    refused = value(tmp_path / "nothing is read.csv", tmp_path / "v.parquet", "--valuator", "magic", code=2)
    check_sentence(refused, f"`--valuator` must be {names}, got 'magic'.")


LABELS = [
    # labels of the rows, the option, the label that must be positive
    ([0, 0, 0, 1], [], 1),
    ([0, 0, 0, 1], ["--positive", 1], 1),
    ([0, 0, 0, 1], ["--positive", 0], 0),
    (["bad", "good", "good", "good"], ["--positive", "bad"], "bad"),
    ([1, 2, 3, 3], ["--positive", 2], 2),
    (["a", "b", "c", "c"], ["--positive", "c"], "c"),
]


@pytest.mark.parametrize(("labels", "more", "positive"), LABELS)
def test_the_positive_label_is_the_valuators(seen, frame, tmp_path, labels, more, positive):
    frame["default"] = np.tile(labels, N // 4)
    frame.to_parquet(tmp_path / "d.parquet")
    out = tmp_path / "v.parquet"
    value(tmp_path / "d.parquet", out, "--valuator", "stand-in", *more)
    expected = (frame["default"] == positive).to_numpy()
    np.testing.assert_array_equal(seen["problem"].labels.is_positive, expected)
    np.testing.assert_array_equal(Valuation.load(out)["y"] > 0, expected)
    if len(set(labels)) > 2:
        return  # which samplers refuse
    sampled = run(
        *("sample", tmp_path / "d.parquet", "--values", out, "--target", "default", "--protected", "sex"),
        *("--alpha", 0.5, *(more or ["--positive", 1]), "--out", tmp_path / "train.parquet"),
    )
    assert "label" not in sampled.stderr  # no word of others


def test_a_method_without_a_ratio_gets_the_target_as_it_is(seen, frame, tmp_path):
    frame["default"] = np.tile([1, 2, 3, 3], N // 4)
    frame.to_parquet(tmp_path / "d.parquet")
    value(tmp_path / "d.parquet", tmp_path / "v.parquet", "--valuator", "plain", "--positive", 2)
    assert seen["problem"].labels.classes == (1, 2, 3)


def test_missing_labels_are_not_taken_for_negatives(seen, frame, tmp_path):
    frame["default"] = np.tile(["a", "b", None, "c"], N // 4)
    frame.to_parquet(tmp_path / "d.parquet")
    words = ("--valuator", "stand-in", "--positive", "a")
    assert "60 missing" in value(tmp_path / "d.parquet", tmp_path / "v.parquet", *words, code=2).stderr


def test_effects_are_told_by_group_and_label_with_their_sums(seen, data, tmp_path):
    result = value(data, tmp_path / "v.parquet", "--valuator", "stand-in", "--drop", "id")
    lines = result.stdout.splitlines()
    assert max(len(line) for line in lines[:-1]) <= 80
    first = lines.index("Protected attribute sex: values for the target, quartiles per 1,000 rows")
    assert lines[first + 2].split() == ["group", "label", "rows", "share", "sum", "25%", "50%", "75%"]
    # 160 men and 80 women, a quarter of each positive; a positive row is worth .001, another -.0005
    assert [line.split() for line in lines[first + 4 : first + 8]] == [
        ["m", "0", "120", "0.500", "-0.060", "-0.500", "-0.500", "-0.500"],
        ["m", "1", "40", "0.167", "+0.040", "+1.000", "+1.000", "+1.000"],
        ["f", "0", "60", "0.250", "-0.030", "-0.500", "-0.500", "-0.500"],
        ["f", "1", "20", "0.083", "+0.020", "+1.000", "+1.000", "+1.000"],
    ]
    second = lines.index("Protected attribute sex: values for sex, quartiles per 1,000 rows")
    assert lines[second + 4].split() == ["m", "0", "120", "0.500", "+0.060", "+0.500", "+0.500", "+0.500"]
    assert "Values for the target: effect on tpr_at_fpr." in lines
    assert "Values for sex: effect on fpr_ratio." in lines
    assert "Removing rows changes a metric by about minus the sum of their values." in lines
    assert "Columns that are not features: id" in lines


def test_effects_of_weighted_rows_are_summed_by_weight(seen, frame, tmp_path):
    frame["survey"] = np.where(frame["default"] == 1, 3, 1)
    frame.to_parquet(tmp_path / "d.parquet")
    result = value(
        tmp_path / "d.parquet", tmp_path / "v.parquet", "--valuator", "stand-in", "--weight", "survey"
    )
    # 60 positives of weight 3 and 180 others of weight 1 make 360; 40 of the positives are men
    # at a mean of 1 a positive weighs 2
    assert re.search(r"m +1 +40 +0\.333 +\+0\.080 ", result.stdout)
    said = " ".join(result.stdout.split())
    assert "minus the sum of their values times their weights, scaled to a mean of 1." in said


def test_rows_without_value_and_labels_of_many_classes(seen, frame, tmp_path):
    frame["default"] = np.tile(["a", "b", "c", "c"], N // 4)
    frame.to_parquet(tmp_path / "d.parquet")
    result = value(tmp_path / "d.parquet", tmp_path / "v.parquet", "--valuator", "plain")
    assert re.search(r"^ *m +c +80 ", result.stdout, re.MULTILINE)
    assert "quartiles per row" in result.stdout
    assert "Rows without a value: 3 for the target\n" in result.stdout
    named = value(tmp_path / "d.parquet", tmp_path / "v.parquet", "--valuator", "plain", "--positive", "a")
    assert re.search(r"^ *m +not a +120 ", named.stdout, re.MULTILINE)
    frame["default"] = np.arange(N)
    frame.to_parquet(tmp_path / "d.parquet")
    continuous = value(tmp_path / "d.parquet", tmp_path / "v.parquet", "--valuator", "plain")
    assert re.search(r"^ *m +any +160 ", continuous.stdout, re.MULTILINE)


def test_effects_serve_every_other_command(seen, data, tmp_path):
    out = tmp_path / "v.csv"
    value(data, out, "--valuator", "stand-in")
    common = [data, "--values", out, "--target", "default", "--protected", "sex"]
    for command, more, name in (
        ("sample", ["--alpha", 0.5], "train.parquet"),
        ("reweigh", ["--alpha", 0.5], "weights.parquet"),
        ("explore", [], "page.html"),
    ):
        run(command, *common, *more, "--out", tmp_path / name)


@pytest.fixture
def loans(tmp_path):
    """Give loans of which some of the old, in one region, are labelled as defaults by mistake."""
    rng = np.random.default_rng(1)
    n_rows = 3_000
    old = rng.random(n_rows) < 0.4
    region, score = rng.normal(size=n_rows) + old, rng.normal(size=n_rows)
    wrong = old & (region > 1.8)
    default = (score + rng.normal(size=n_rows) > 1) | wrong
    frame = pd.DataFrame({"region": region, "score": score, "old": old, "default": default.astype(int)})
    frame.to_parquet(tmp_path / "loans.parquet")
    return frame, wrong


def test_influence_equals_the_librarys(loans, tmp_path):
    frame, wrong = loans
    out = tmp_path / "v.parquet"
    words = [
        "value",
        tmp_path / "loans.parquet",
        "--target",
        "default",
        "--protected",
        "old",
        "--drop",
        "old",
    ]
    words += ["--valuator", "influence", "--bags", 3]
    result = run(*words, "--ratio", "fpr_ratio", "--seed", 5, "--out", out)
    valuator = TreeInfluence(n_bags=3, random_state=5)
    X = frame[["region", "score"]]
    expected = valuator.fit(X, frame["default"], sensitive_features={"old": frame["old"]}).valuation_
    made = Valuation.load(out)
    pd.testing.assert_frame_equal(made.values, expected.values, check_exact=True)
    assert made["old"][wrong].mean() < made["old"][~wrong].mean()
    lines = result.stdout.splitlines()
    assert "Values for old: effect of the row's weight on fpr_ratio." in lines
    mistaken = frame["old"] & (frame["default"] == 1)
    at = next(number for number, line in enumerate(lines) if "values for old, quartiles" in line)
    cell = next(line.split() for line in lines[at:] if line.split()[:2] == ["True", "1"])
    assert cell[2] == f"{mistaken.sum():,}"
    assert float(cell[4]) == pytest.approx(made["old"][mistaken].sum(), abs=0.0005)

    run(*words, "--positive", 0, "--out", tmp_path / "w.csv")
    other = TreeInfluence(n_bags=3, random_state=0).fit(
        X, frame["default"] == 0, sensitive_features={"old": frame["old"]}
    )
    np.testing.assert_allclose(Valuation.load(tmp_path / "w.csv")["old"], other.valuation_["old"], rtol=1e-12)
