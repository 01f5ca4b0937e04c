"""`fado reweigh`, as a user runs it."""

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
from tests.cli.program import check_sentence, run

from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    Reweigher,
    UtilityAwareReweigher,
    Valuation,
)
from fado.interventions import FairlearnGrid

RNG = np.random.default_rng(0)
N = 200
FRAME = pd.DataFrame({"age": RNG.integers(18, 90, N), "sex": RNG.choice(["f", "m"], N)})
FRAME["default"] = (RNG.random(N) < np.where(FRAME["sex"] == "f", 0.2, 0.5)).astype(int)
VALUATION = Valuation.from_probabilities(RNG.random(N), {"sex": RNG.random(N), "age": RNG.random(N)})


@pytest.fixture
def files(tmp_path):
    FRAME.to_parquet(tmp_path / "data.parquet")
    VALUATION.save(tmp_path / "values.parquet")
    return tmp_path


def reweigh(files, *more, out="weights.parquet", **options):
    options = {"values": files / "values.parquet", "target": "default", "alpha": 0.5} | options
    return run("reweigh", files / "data.parquet", *more, protected="sex", out=files / out, **options)


@pytest.mark.parametrize(
    ("more", "utility", "settings"),
    [
        ("", LinearUtility, {}),
        ("--scaling none", LinearUtility, {"scaling": "none"}),
        ("--utility difference", DifferenceUtility, {}),
        ("--utility cobb-douglas", CobbDouglasUtility, {}),
        ("--floor 0.2 --prevalence-correction 1", LinearUtility, {"floor": 0.2, "prevalence_correction": 1}),
        ("--prevalence-correction 0.5", LinearUtility, {"prevalence_correction": 0.5}),
        (
            "--utility difference --scaling none --negative clip",
            DifferenceUtility,
            {"scaling": "none", "negative": "clip"},
        ),
        (
            "--intervention corrected_uar --floor 0.2",
            LinearUtility,
            {"floor": 0.2, "prevalence_correction": 1},
        ),
        ("--protected age", LinearUtility, {}),
    ],
)
def test_weights_equal_the_librarys(files, more, utility, settings):
    result = reweigh(files, *more.split())
    weights = pd.read_parquet(files / "weights.parquet")
    betas = None if "--protected" in more else {"sex": 0.5}
    reweigher = UtilityAwareReweigher(utility(0.5, betas), **settings)
    reweigher.fit(FRAME, FRAME["default"], sensitive_features=FRAME["sex"], valuation=VALUATION)
    assert weights.columns.tolist() == ["weight"]
    np.testing.assert_array_equal(weights["weight"], reweigher.sample_weight_)
    assert "Weights of 200 rows written" in result.stdout


def test_reweighing_needs_no_values(files):
    frame = FRAME.assign(survey=RNG.integers(1, 5, N))
    frame.to_parquet(files / "data.parquet")
    options = {"target": "default", "protected": "sex", "intervention": "rw", "weight": "survey"}
    result = run("reweigh", files / "data.parquet", **options, out=files / "weights.parquet")
    given = {"sensitive_features": FRAME["sex"], "sample_weight": frame["survey"]}
    expected = Reweigher().fit(FRAME, FRAME["default"], **given).sample_weight_
    np.testing.assert_array_equal(pd.read_parquet(files / "weights.parquet")["weight"], expected)
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
    reweigh(files)
    reweigh(files, out="weights.csv")
    exact = pd.read_parquet(files / "weights.parquet")
    again = pyarrow.csv.read_csv(files / "weights.csv").to_pandas()  # to the last bit, as pandas 3
    pd.testing.assert_frame_equal(again, exact, check_exact=True)


def test_targets_of_many_labels_have_no_positive_rate(files):
    assert "positive" not in reweigh(files, target="age").stdout
    FRAME.assign(default=RNG.random(N)).to_parquet(files / "data.parquet")
    done = reweigh(files, "--prevalence-correction", 1, code=2)
    assert "`--target` is continuous, and this needs classes: compare it, as in `--target 'COL" in done.output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--alpha -1", r"`--alpha` must be in \[0, 1\], got -1.0"),
        ("--floor 2", r"`--floor` must be in \[0, 1\], got 2.0"),
        ("--floor 0.5 --scaling none", '`--floor 0.5` needs `--scaling "minmax"`'),
        ("--prevalence-correction -1", "`--prevalence-correction` must be a number of at least 0"),
        ("--utility difference --scaling none", 'utilities are negative .*`--scaling "minmax"`'),
        ("--protected age --prevalence-correction 1", "'age' has .* too many for groups"),
    ],
)
def test_bad_input_ends_in_one_sentence(files, more, message):
    check_sentence(reweigh(files, *more.split(), code=2), message)
    assert sorted(path.name for path in files.iterdir()) == ["data.parquet", "values.parquet"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, about fairlearn
def test_labels_that_a_method_changes_are_written_beside_the_weights(files):
    options = {"target": "default", "protected": "sex", "intervention": "fairlearn_grid", "point": 0.1}
    done = run("reweigh", files / "data.parquet", **options, out=files / "weights.parquet")
    assert "train a model on the column 'positive'" in " ".join(done.output.split())
    grid = FairlearnGrid(point=0.1).fit(FRAME, FRAME["default"], sensitive_features=FRAME["sex"])
    written = pd.read_parquet(files / "weights.parquet")
    assert (written["positive"] == grid.training_set_.labels).all()
    assert (written["positive"] != (FRAME["default"] == 1)).any()
    assert (written["weight"] == grid.sample_weight_).all()
