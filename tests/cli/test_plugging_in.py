"""A utility and an intervention of somebody else's, one class each, on the command line."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import refusal, run

from fado import Valuation
from fado.cli._app import build_app
from fado.experiment import Results
from fado.interventions import BaseIntervention, Setting, TrainingSet, register_intervention
from fado.interventions._registry import _ENTRIES
from fado.utility import _CLASSES, BaseUtility, register_utility

N = 200


@pytest.fixture
def plugged():
    """Register both; every test forgets in the end what it registers."""

    @register_utility("least")
    class LeastUtility(BaseUtility):
        def _combine(self, performance, fairness):
            return np.min([values for weight, values in (performance, *fairness) if weight], axis=0)

    @register_intervention(
        "best rows",
        settings=[Setting("best_share", "share", 0.5, "best_shares", help="How many of the rows stay.")],
    )
    class BestRows(BaseIntervention):
        uses_values = True

        def __init__(self, utility=None, *, valuator=None, best_share=1.0):
            self.utility = utility
            self.valuator = valuator
            self.best_share = best_share

        def _choose(self, labels, groups, utilities, sample_weight, generator):
            n_kept = round(self.best_share * len(utilities))
            return TrainingSet(np.sort(np.argsort(-utilities, kind="stable")[:n_kept]))


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": np.arange(N), "age": rng.integers(18, 90, N), "sex": rng.choice(["f", "m"], N)}
    )
    frame["default"] = (rng.random(N) < np.where(frame["sex"] == "f", 0.2, 0.5)).astype(int)
    frame.to_csv(tmp_path / "data.csv", index=False)
    valuation = Valuation.from_probabilities(rng.random(N), {"sex": rng.random(N)})
    valuation.save(tmp_path / "values.parquet")
    return tmp_path, valuation


def sample(folder, *more, code=0, **options):
    options = {"target": "default", "protected": "sex", "out": folder / "train.csv"} | options
    return run("sample", folder / "data.csv", *more, **options, code=code)


@pytest.mark.parametrize(("more", "n_kept"), [([], 100), (["--best-share", 0.25], 50)])
def test_sampling_with_both(plugged, files, more, n_kept):
    folder, valuation = files
    options = {"intervention": "best_rows", "utility": "least", "alpha": 0.5}
    result = sample(folder, *more, values=folder / "values.parquet", **options)
    least = np.minimum(valuation["y"], valuation["sex"])
    expected = np.sort(np.argsort(-least, kind="stable")[:n_kept])
    assert pd.read_csv(folder / "train.csv")["id"].tolist() == expected.tolist()
    assert f"{n_kept} of 200 rows written" in result.stdout


def test_help_shows_both(plugged):
    text = run("sample", "--help").stdout
    assert "best_rows" in text
    assert "least" in text
    assert re.search(r"--best-share .*How many of the rows stay\.", text)
    assert "--best-share" not in run("reweigh", "--help").stdout


@pytest.mark.parametrize(
    ("method", "option", "has"),
    [("best_rows", "--strength", "--best-share"), ("uaps", "--best-share", "--strength")],
)
def test_settings_of_other_methods_are_refused(plugged, files, method, option, has):
    options = {"values": files[0] / "values.parquet", "alpha": 0.5, "intervention": method}
    told = f"`{option}` is not for `--intervention {method}`, which has `{has}`: leave it out."
    assert refusal(sample(files[0], option, 0.5, **options, code=2)) == told


@pytest.mark.parametrize("more", ["weights", "labels", "parents"])
def test_what_a_sample_cannot_hold_is_refused(files, more):
    made = {"weights": np.ones(N), "labels": np.ones(N, dtype=bool), "parents": np.zeros(3, dtype=int)}

    @register_intervention("more than rows")
    class MoreThanRows(BaseIntervention):
        def _choose(self, labels, groups, utilities, sample_weight, generator):
            return TrainingSet(np.arange(N), **{more: made[more]})

    told = refusal(sample(files[0], intervention="more_than_rows", code=2))
    assert "`--intervention more_than_rows` has results that this command cannot write" in told
    assert not (files[0] / "train.csv").exists()


def test_a_setting_cannot_take_the_name_of_an_option(plugged):
    @register_intervention("weighty", settings=[Setting("weight", "number", 1.0)])
    class Weighty(BaseIntervention):
        def _choose(self, labels, groups, utilities, sample_weight, generator):
            return TrainingSet(np.arange(len(labels.codes)))

    with pytest.raises(
        ValueError, match="a setting named 'weight', which is already an option of `fado sample`"
    ):
        build_app()


def test_what_is_gone_is_not_offered():
    assert "best_rows" not in run("sample", "--help").stdout


CONFIG = """
[data]
generator = "account_fraud"
rows = 2_000
target = "fraud_bool"
protected = "customer_age>=50"

[split]
method = "random"
train = 0.6
validation = 0.2
test = 0.2

[valuation]
bags = 5

[interventions.uar]
utilities = ["least"]
alphas = [0.5]

[interventions.best_rows]
utilities = ["linear", "least"]
alphas = [0.25, 0.5]
best_shares = [0.5, 1.0]

[models]
count = 1

[models.space]
n_estimators = 5
"""


def test_an_experiment_with_both(plugged, tmp_path):
    config, store, page = tmp_path / "c.toml", tmp_path / "store", tmp_path / "report.html"
    config.write_text(CONFIG)
    done = run("experiment", "run", config, "--store", store, "--jobs", 1)
    assert "best rows" in done.stdout
    status = run("experiment", "status", store)
    assert re.search(r"best rows +8\b", status.stdout)
    frame = Results.load(store).frame
    own = frame[frame["intervention"] == "best rows"]
    assert (frame["status"] == "done").all()
    assert own.groupby(["utility", "alpha", "best_share"]).ngroups == 8
    n_rows = frame.loc[frame["intervention"] == "none", "training_rows"].item()
    for share, part in own.groupby("best_share"):
        assert (part["training_rows"] == round(share * n_rows)).all()
    run("experiment", "report", store, "--out", page)
    text = page.read_text(encoding="utf-8")
    assert "best rows" in text
    assert "least" in text
    for registry, name in ((_CLASSES, "least"), (_ENTRIES, "best_rows")):
        del registry[name]
    told = "the utility 'least' (module 'tests.cli.test_plugging_in'); the intervention 'best_rows' (module"
    status = run("experiment", "status", store)
    assert f"warning: The store '{store}' was made with {told}" in status.stderr
    assert re.search(r"best rows +8\b", status.stdout)
    again = run("experiment", "run", config, "--store", store, code=2)
    assert re.search(r"`interventions.* The store '.*' was made with the utility 'least'", again.stderr)
    assert "install the package that registers it." in again.stderr
