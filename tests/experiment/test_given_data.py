"""Data in memory: an experiment over rows that no file holds."""

import numpy as np
import pandas as pd
import pytest

from fado.experiment import Experiment, Results
from fado.experiment._config import config_from
from fado.experiment._data import data_from, read_data
from fado.experiment._runner import run_experiment
from fado.tabular import read_problem


def rows(n=900, seed=0):
    rng = np.random.default_rng(seed)
    sex = np.array(["f", "m"])[rng.integers(0, 2, n)]
    X = pd.DataFrame({"a": rng.random(n), "b": rng.normal(size=n), "sex": sex})
    y = np.where(X["a"] + 0.3 * rng.normal(size=n) > 0.6, "yes", "no")
    return X, y


def parts(n=900):
    place = np.arange(n) % 4
    return {
        "train": np.flatnonzero(place < 2),
        "validation": np.flatnonzero(place == 2),
        "test": np.flatnonzero(place == 3),
    }


TABLE = {
    "data": {"given": True, "target": "y", "protected": "sex"},
    "split": {"method": "given"},
    "interventions": {"rps": False, "uar": {"alphas": [0.5]}},
    "valuation": {"bags": 5, "models": [{"n_estimators": 5}]},
    "models": {"count": 2, "space": {"n_estimators": {"log_uniform": [3, 20]}, "num_leaves": 5}},
}


def given_config(**split):
    return config_from(TABLE | {"split": {"method": "given", **split}})


def test_it_is_the_same_as_from_a_file(tmp_path):
    X, y = rows()
    config = given_config()
    data = data_from(read_problem(X, y, "sex"), parts(), config)
    assert data.positive_label == "y = yes"
    assert data.sources == {"sex": ("sex",)}
    run_experiment(config, tmp_path / "given", n_jobs=1, data=data)
    place = np.array(["train", "train", "validation", "test"])[np.arange(900) % 4]
    X.assign(y=y, place=place).to_parquet(tmp_path / "data.parquet")
    table = TABLE | {
        "data": {"path": str(tmp_path / "data.parquet"), "target": "y", "protected": "sex"},
        "split": {
            "method": "column", "column": "place",
            "train": ["train"], "validation": ["validation"], "test": ["test"],
        },
    }  # fmt: skip
    expected = Experiment(table).run(tmp_path / "file", n_jobs=1).frame
    assert read_data(Experiment(table).config).fingerprint() == data.fingerprint()
    pd.testing.assert_frame_equal(Results.load(tmp_path / "given").frame, expected, check_exact=True)


def test_a_run_in_a_process_of_its_own_takes_them_along(tmp_path):
    config = given_config(validation=False)
    X, y = rows()
    given = parts()
    data = data_from(read_problem(X, y, {"sex": X.pop("sex")}), {**given, "validation": []}, config)
    run_experiment(config, tmp_path / "a", n_jobs=2, data=data, isolated=True)
    run_experiment(config, tmp_path / "b", n_jobs=1, data=data)
    one, two = (Results.load(tmp_path / name) for name in "ab")
    pd.testing.assert_frame_equal(one.frame, two.frame, check_exact=True)
    assert not [name for name in one.frame if name.startswith("validation_")]
    assert one.chosen_on == "test"


def test_kept_scores_are_measured_again_on_what_is_handed_over_and_other_rows_are_refused(tmp_path):
    config = config_from(TABLE | {"evaluation": {"keep_scores": True}})
    data, other = (data_from(read_problem(*rows(seed=seed), "sex"), parts(), config) for seed in (0, 1))
    run_experiment(config, tmp_path, n_jobs=1, data=data)
    results = Results.load(tmp_path)
    pd.testing.assert_frame_equal(results.remeasure(data=data), results.frame, check_exact=True)
    with pytest.raises(ValueError, match=r"`data.given` means that the data are passed in Python"):
        results.remeasure()
    with pytest.raises(ValueError, match="The store was made with other data"):
        run_experiment(config, tmp_path, n_jobs=1, data=other)


@pytest.mark.parametrize(
    ("problem", "given", "message"),
    [
        ({"sensitive_features": np.arange(900) % 2}, {}, "is \\['sex'\\], and the attributes given are"),
        ({"y": np.arange(900) % 3}, {}, "The target 'y' must hold two labels, got 3"),
        ({}, {"validation": []}, "The validation part has no rows: pass other rows for it"),
        ({}, {"train": [1, 2, 3]}, "hold row 2 more than once: a row is in one part"),
        ({}, {"train": [1, 900]}, "positions of the 900 rows, 0 to 899, got 900"),
    ],
)
def test_what_does_not_go_together_is_told(problem, given, message):
    X, y = rows()
    read = read_problem(**{"X": X, "y": y, "sensitive_features": "sex"} | problem)
    with pytest.raises(ValueError, match=message):
        data_from(read, parts() | given, given_config())


def test_data_that_are_not_passed_and_other_splits_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`data.given` means that the data are passed in Python"):
        run_experiment(given_config(), tmp_path, n_jobs=1)
    with pytest.raises(ValueError, match=r"`split.method` must be 'given', got 'random'"):
        config_from(TABLE | {"split": {"method": "random", "train": 0.5, "test": 0.5}})
