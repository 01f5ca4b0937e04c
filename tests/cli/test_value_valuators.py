"""`fado value --valuator`: valuators other than entropy, what they are handed, and how effects are told."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import refusal, run

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
def seen():
    """Register stand-ins that note what they were handed: of effects on a ratio, and of plain effects."""
    notes = {}

    @register_valuator("stand-in")
    class StandIn(BaseValuator):
        """Each row of a positive label is worth 1/1000 for the target, and the reverse for attributes."""

        def __init__(
            self, performance="tpr_at_fpr", fairness="fpr_ratio", n_bags=5, random_state=None, n_jobs=None
        ):
            self.performance, self.fairness = performance, fairness
            self.n_bags, self.random_state, self.n_jobs = n_bags, random_state, n_jobs

        def _value(self, problem, validation, seed):
            notes.update(settings=self.get_params(), problem=problem)
            effects = np.where(problem.labels.is_positive, 0.001, -0.0005)
            names = [variable.name for variable in problem.variables]
            values = {name: effects if name == "y" else -effects for name in names}
            meanings = {name: self.performance if name == "y" else self.fairness for name in names}
            scales = {name: ScaleOfValues(f"effect on {metric}") for name, metric in meanings.items()}
            return Valuation.from_values(values, scales=scales)

    @register_valuator("plain")
    class Plain(BaseValuator):
        def __init__(self, random_state=None):
            self.random_state = random_state

        def _value(self, problem, validation, seed):
            notes["problem"] = problem
            values = {variable.name: np.linspace(-1, 1, problem.n_rows) for variable in problem.variables}
            values["y"][:3] = np.nan
            return Valuation.from_values(values)

    return notes


@pytest.fixture
def value(tmp_path):
    """Value a table, or a file; what is written is `v.parquet`, or what `out` names, in `tmp_path`."""

    def run_it(table, valuator, *more, out="v.parquet", code=0):
        if isinstance(table, pd.DataFrame):
            table.to_parquet(tmp_path / "data.parquet")
            table = tmp_path / "data.parquet"
        more = more if valuator is None else ("--valuator", valuator, *more)
        roles = {"target": "default", "protected": "sex"}
        return run("value", table, *more, out=tmp_path / out, **roles, code=code)

    return run_it


def test_entropy_out_of_bag_is_the_default(frame, value, tmp_path):
    model = OutOfBagEntropy(random_state=0, z_exclude={"sex": ["sex"]})
    X, z = frame.drop(columns=["id", "default"]), {"sex": frame["sex"]}
    expected = model.fit(X, frame["default"], sensitive_features=z).valuation_.values
    for valuator in (None, "oob"):
        assert "bags 10, positive 1, seed 0." in value(frame, valuator).stdout
        found = Valuation.load(tmp_path / "v.parquet").values
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    value(frame, "inbag")
    assert Valuation.load(tmp_path / "v.parquet").provenance.algorithm == "in-bag"


def test_only_settings_that_were_given_are_passed(seen, frame, value):
    first = value(frame, "stand-in")
    assert seen["settings"]["n_bags"] == 5
    assert (seen["settings"]["fairness"], seen["settings"]["performance"]) == ("fpr_ratio", "tpr_at_fpr")
    told = "Settings: valuator stand-in, ratio fpr_ratio, performance tpr_at_fpr, bags 5, positive 1, seed 0."
    assert told in " ".join(first.stdout.split())
    more = ["--performance", "log_loss", "--bags", 3, "--seed", 7, "--jobs", 1]
    given = {"performance": "log_loss", "n_bags": 3, "random_state": 7, "n_jobs": 1}
    for ratio in RATIO_NAMES:
        value(frame, "stand-in", "--ratio", ratio, *more)
        assert seen["settings"] == given | {"fairness": ratio}
    assert "fnr_ratio" in value(frame, "stand-in", "--ratio", "gini", code=2).stderr


@pytest.mark.parametrize(
    ("valuator", "option", "why"),
    [
        (None, "--ratio fpr_ratio", "measures no ratio"),
        ("inbag", "--ratio fpr_ratio", "measures no ratio"),
        ("plain", "--ratio fpr_ratio", "measures no ratio"),
        (None, "--performance accuracy", "measures no performance"),
        ("inbag", "--bags 5", "has no bags"),
        ("plain", "--bags 5", "has no bags"),
        ("stand-in", "--exclude age", "has no models of attributes"),
    ],
)
def test_options_of_other_methods_are_refused_before_anything_is_read(seen, value, valuator, option, why):
    words = option.split()
    told = f"`{words[0]}` is not for `--valuator {valuator or 'oob'}`, which {why}: leave it out."
    assert refusal(value("nothing is read.csv", valuator, *words, code=2)) == told


def test_an_unknown_valuator_is_refused(value):
    names = " or ".join(map(repr, valuator_names()))
    told = refusal(value("nothing is read.csv", "magic", code=2))
    assert told == f"`--valuator` must be {names}, got 'magic'."


@pytest.mark.parametrize(
    ("labels", "more", "positive"),
    [
        ([0, 0, 0, 1], [], 1),
        ([0, 0, 0, 1], ["--positive", 1], 1),
        ([0, 0, 0, 1], ["--positive", 0], 0),
        (["bad", "good", "good", "good"], ["--positive", "bad"], "bad"),
        ([1, 2, 3, 3], ["--positive", 2], 2),
        (["a", "b", "c", "c"], ["--positive", "c"], "c"),
    ],
)
def test_the_positive_label_is_the_valuators(seen, frame, value, tmp_path, labels, more, positive):
    frame["default"] = np.tile(labels, N // 4)
    value(frame, "stand-in", *more)
    expected = (frame["default"] == positive).to_numpy()
    values = tmp_path / "v.parquet"
    np.testing.assert_array_equal(seen["problem"].labels.is_positive, expected)
    np.testing.assert_array_equal(Valuation.load(values)["y"] > 0, expected)
    if len(set(labels)) > 2:  # which samplers refuse
        value(frame, "plain", *more)
        assert seen["problem"].labels.classes == tuple(sorted(set(labels)))  # it measures no ratio
        return
    roles = {"target": "default", "protected": "sex", "values": values, "alpha": 0.5}
    more = more or ["--positive", 1]
    sampled = run("sample", tmp_path / "data.parquet", *more, **roles, out=tmp_path / "train.parquet")
    assert "label" not in sampled.stderr  # no word of others


def test_missing_labels_are_not_taken_for_negatives(seen, frame, value):
    frame["default"] = np.tile(["a", "b", None, "c"], N // 4)
    assert "60 missing" in value(frame, "stand-in", "--positive", "a", code=2).stderr


def test_effects_are_told_by_group_and_label_with_their_sums(seen, frame, value):
    lines = value(frame, "stand-in", "--drop", "id").stdout.splitlines()
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


def test_effects_of_weighted_rows_are_summed_by_weight(seen, frame, value):
    frame["survey"] = np.where(frame["default"] == 1, 3, 1)
    result = value(frame, "stand-in", "--weight", "survey")
    # 60 positives of weight 3 and 180 others of weight 1 make 360; 40 of the positives are men
    # at a mean of 1 a positive weighs 2
    assert re.search(r"m +1 +40 +0\.333 +\+0\.080 ", result.stdout)
    told = " ".join(result.stdout.split())
    assert "minus the sum of their values times their weights, scaled to a mean of 1." in told


def test_rows_without_value_and_labels_of_many_classes(seen, frame, value):
    frame["default"] = np.tile(["a", "b", "c", "c"], N // 4)
    printed = value(frame, "plain").stdout
    assert re.search(r"^ *m +c +80 ", printed, re.MULTILINE)
    assert "quartiles per row" in printed
    assert "Rows without a value: 3 for the target\n" in printed
    assert re.search(r"^ *m +not a +120 ", value(frame, "plain", "--positive", "a").stdout, re.MULTILINE)
    frame["default"] = np.arange(N)
    assert re.search(r"^ *m +any +160 ", value(frame, "plain").stdout, re.MULTILINE)


def test_effects_serve_every_other_command(seen, frame, value, tmp_path):
    value(frame, "stand-in", out="v.csv")
    common = {"values": tmp_path / "v.csv", "target": "default", "protected": "sex"}
    for command, more, out in (
        ("sample", ["--alpha", 0.5], "train.parquet"),
        ("reweigh", ["--alpha", 0.5], "weights.parquet"),
        ("explore", [], "page.html"),
    ):
        run(command, tmp_path / "data.parquet", *more, **common, out=tmp_path / out)


def test_influence_equals_the_librarys(tmp_path):
    """Of loans, of which some of the old, in one region, are labelled as defaults by mistake."""
    rng, n_rows = np.random.default_rng(1), 3_000
    old = rng.random(n_rows) < 0.4
    region, score = rng.normal(size=n_rows) + old, rng.normal(size=n_rows)
    wrong = old & (region > 1.8)
    default = ((score + rng.normal(size=n_rows) > 1) | wrong).astype(int)
    X = pd.DataFrame({"region": region, "score": score})
    X.assign(old=old, default=default).to_parquet(tmp_path / "loans.parquet")
    roles = {"target": "default", "protected": "old", "drop": "old", "valuator": "influence", "bags": 3}
    settings = {"ratio": "fpr_ratio", "seed": 5, "out": tmp_path / "v.parquet"}
    lines = run("value", tmp_path / "loans.parquet", **roles, **settings).stdout.splitlines()
    expected = TreeInfluence(n_bags=3, random_state=5).fit(X, default, sensitive_features={"old": old})
    made = Valuation.load(tmp_path / "v.parquet")
    pd.testing.assert_frame_equal(made.values, expected.valuation_.values, check_exact=True)
    assert made["old"][wrong].mean() < made["old"][~wrong].mean()
    assert "Values for old: effect of the row's weight on fpr_ratio." in lines
    mistaken = old & (default == 1)
    at = next(number for number, line in enumerate(lines) if "values for old, quartiles" in line)
    cell = next(line.split() for line in lines[at:] if line.split()[:2] == ["True", "1"])
    assert cell[2] == f"{mistaken.sum():,}"
    assert float(cell[4]) == pytest.approx(made["old"][mistaken].sum(), abs=0.0005)

    run("value", tmp_path / "loans.parquet", **roles, positive=0, out=tmp_path / "w.csv")
    other = TreeInfluence(n_bags=3, random_state=0).fit(X, default == 0, sensitive_features={"old": old})
    np.testing.assert_allclose(Valuation.load(tmp_path / "w.csv")["old"], other.valuation_["old"], rtol=1e-12)
