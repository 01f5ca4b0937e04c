"""`fado reweigh`, as a user runs it."""

import re

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    Reweigher,
    UtilityAwareReweigher,
    Valuation,
)
from fado.cli._app import build_app
from fado.interventions import FairlearnGrid

RNG = np.random.default_rng(0)
N = 200
FRAME = pd.DataFrame({"age": RNG.integers(18, 90, N), "sex": RNG.choice(["f", "m"], N)})
FRAME["default"] = (RNG.random(N) < np.where(FRAME["sex"] == "f", 0.2, 0.5)).astype(int)
VALUATION = Valuation.from_probabilities(RNG.random(N), {"sex": RNG.random(N), "age": RNG.random(N)})
ONE = {"sex": 0.5}


@pytest.fixture
def files(tmp_path):
    FRAME.to_parquet(tmp_path / "data.parquet")
    VALUATION.save(tmp_path / "values.parquet")
    return tmp_path


def reweigh(files, *more, out="weights.parquet", protected=("sex",), target="default", alpha=0.5):
    attributes = [word for name in protected for word in ("--protected", name)]
    words = ["reweigh", files / "data.parquet", "--values", files / "values.parquet", "--target", target]
    words += [*attributes, "--alpha", alpha, "--out", files / out, *more]
    return CliRunner().invoke(build_app(), [str(word) for word in words])


@pytest.mark.parametrize(
    ("more", "protected", "reweigher"),
    [
        ([], ["sex"], UtilityAwareReweigher(LinearUtility(0.5, ONE))),
        (["--scaling", "none"], ["sex"], UtilityAwareReweigher(LinearUtility(0.5, ONE), scaling="none")),
        (["--utility", "difference"], ["sex"], UtilityAwareReweigher(DifferenceUtility(0.5, ONE))),
        (["--utility", "cobb-douglas"], ["sex"], UtilityAwareReweigher(CobbDouglasUtility(0.5, ONE))),
        (
            ["--floor", 0.2, "--prevalence-correction", 1],
            ["sex"],
            UtilityAwareReweigher(LinearUtility(0.5, ONE), floor=0.2, prevalence_correction=1),
        ),
        (
            ["--prevalence-correction", 0.5],
            ["sex"],
            UtilityAwareReweigher(LinearUtility(0.5, ONE), prevalence_correction=0.5),
        ),
        (
            ["--utility", "difference", "--scaling", "none", "--negative", "clip"],
            ["sex"],
            UtilityAwareReweigher(DifferenceUtility(0.5, ONE), scaling="none", negative="clip"),
        ),
        (
            ["--intervention", "corrected_uar", "--floor", 0.2],
            ["sex"],
            UtilityAwareReweigher(LinearUtility(0.5, ONE), floor=0.2, prevalence_correction=1),
        ),
        ([], ["sex", "age"], UtilityAwareReweigher(LinearUtility(0.5))),
    ],
    ids=[
        "linear",
        "none",
        "difference",
        "cobb-douglas",
        "corrected",
        "half corrected",
        "clipped",
        "by method",
        "two attributes",
    ],
)
def test_weights_equal_the_librarys(files, more, protected, reweigher):
    result = reweigh(files, *more, protected=protected)
    assert result.exit_code == 0, result.stderr
    weights = pd.read_parquet(files / "weights.parquet")
    reweigher.fit(FRAME, FRAME["default"], sensitive_features=FRAME["sex"], valuation=VALUATION)
    assert weights.columns.tolist() == ["weight"]
    np.testing.assert_array_equal(weights["weight"], reweigher.sample_weight_)
    assert "Weights of 200 rows written" in result.stdout


def test_reweighing_needs_no_values(files):
    frame = FRAME.assign(survey=RNG.integers(1, 5, N))
    frame.to_parquet(files / "data.parquet")
    words = ["reweigh", files / "data.parquet", "--target", "default", "--protected", "sex"]
    words += ["--intervention", "rw", "--out", files / "weights.parquet", "--weight", "survey"]
    result = CliRunner().invoke(build_app(), [str(word) for word in words])
    assert result.exit_code == 0, result.stderr
    reweigher = Reweigher().fit(
        FRAME, FRAME["default"], sensitive_features=FRAME["sex"], sample_weight=frame["survey"]
    )
    weights = pd.read_parquet(files / "weights.parquet")["weight"]
    np.testing.assert_array_equal(weights, reweigher.sample_weight_)
    rate = np.average(frame["default"], weights=frame["survey"])
    for group in ("f", "m", "all rows"):
        line = next(line for line in result.stdout.splitlines() if line.strip().startswith(group))
        assert line.split()[-3] == f"{rate:.3f}"
    assert result.stdout.endswith("; train a model with these weights times 'survey'\n")


def test_the_summary_shows_rows_rates_and_sizes_before_and_after(files):
    result = reweigh(files, "--prevalence-correction", 1, "--floor", 0.1)
    weight = pd.read_parquet(files / "weights.parquet")["weight"].to_numpy()
    for name, members in (("f", FRAME["sex"] == "f"), ("m", FRAME["sex"] == "m"), ("all", FRAME["age"] > 0)):
        line = next(line.split() for line in result.stdout.splitlines() if line.strip().startswith(name))
        y, w, n = FRAME["default"][members], weight[members], str(members.sum())
        rates = [f"{y.mean():.3f}", f"{np.average(y, weights=w):.3f}"]
        size = str(round(w.sum() ** 2 / (w**2).sum()))
        assert line[-6:] == [n, n, *rates, n, size]


def test_csv_out_holds_the_same_weights(files):
    assert reweigh(files).exit_code == 0
    assert reweigh(files, out="weights.csv").exit_code == 0
    exact = pd.read_parquet(files / "weights.parquet")
    again = pyarrow.csv.read_csv(files / "weights.csv").to_pandas()  # to the last bit, as pandas 3
    pd.testing.assert_frame_equal(again, exact, check_exact=True)


def test_targets_of_many_labels_have_no_positive_rate(files):
    result = reweigh(files, target="age")
    assert result.exit_code == 0, result.stderr
    assert "positive" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ({"alpha": -1}, [], r"`--alpha` must be in \[0, 1\], got -1.0"),
        ({}, ["--floor", "2"], r"`--floor` must be in \[0, 1\], got 2.0"),
        ({}, ["--floor", "0.5", "--scaling", "none"], '`--floor 0.5` needs `--scaling "minmax"`'),
        ({}, ["--prevalence-correction", "-1"], "`--prevalence-correction` must be a number of at least 0"),
        (
            {},
            ["--utility", "difference", "--scaling", "none"],
            'utilities are negative .*`--scaling "minmax"`',
        ),
        ({"protected": ["default"]}, [], "'default'"),
        ({"protected": ["age"]}, ["--prevalence-correction", "1"], "'age' has .* too many for groups"),
        (
            {"protected": ["age>=50"]},
            [],
            "no values for the protected attribute 'age>=50'; it has 'sex', 'age'",
        ),
        ({"out": "weights.pkl"}, [], r"`--out` must end in \.csv or \.parquet"),
    ],
    ids=str,
)
def test_bad_input_ends_in_one_sentence(files, arguments, more, message):
    result = reweigh(files, *more, **arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert re.search(message, errors[0]), errors[0]
    assert sorted(path.name for path in files.iterdir()) == ["data.parquet", "values.parquet"]


def test_values_of_other_rows_are_refused(files):
    VALUATION[::2].save(files / "values.parquet")
    result = reweigh(files)
    assert result.exit_code == 2
    assert "`--values` has 100 rows and X has 200" in result.stderr


def test_help():
    assert "Weight rows by their utility" in CliRunner().invoke(build_app(), ["reweigh", "--help"]).stdout


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, about fairlearn
def test_labels_that_a_method_changes_are_written_beside_the_weights(files):
    words = ["reweigh", files / "data.parquet", "--intervention", "fairlearn_grid", "--point", 0.1]
    words += ["--target", "default", "--protected", "sex", "--out", files / "weights.parquet"]
    done = CliRunner().invoke(build_app(), [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert "train a model on the column 'positive'" in " ".join(done.output.split())
    grid = FairlearnGrid(point=0.1).fit(FRAME, FRAME["default"], sensitive_features=FRAME["sex"])
    written = pd.read_parquet(files / "weights.parquet")
    assert (written["positive"] == grid.training_set_.labels).all()
    assert (written["positive"] != (FRAME["default"] == 1)).any()
    assert (written["weight"] == grid.sample_weight_).all()


def test_a_continuous_target_is_told_what_to_do(files):
    FRAME.assign(default=RNG.random(N)).to_parquet(files / "data.parquet")
    done = reweigh(files, "--prevalence-correction", 1)
    assert done.exit_code == 2
    assert "`--target` is continuous, and this needs classes: compare it, as in `--target 'COL" in done.output
