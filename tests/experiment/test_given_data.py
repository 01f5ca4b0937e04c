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


def test_other_rows_are_refused(tmp_path):
    config = given_config()
    for seed, message in ((0, None), (1, "The store was made with other data")):
        X, y = rows(seed=seed)
        data = data_from(read_problem(X, y, "sex"), parts(), config)
        if message is None:
            run_experiment(config, tmp_path, n_jobs=1, data=data)
            continue
        with pytest.raises(ValueError, match=message):
            run_experiment(config, tmp_path, n_jobs=1, data=data)


def test_kept_scores_are_measured_again_on_what_is_handed_over(tmp_path):
    config = config_from(TABLE | {"evaluation": {"keep_scores": True}})
    X, y = rows()
    data = data_from(read_problem(X, y, "sex"), parts(), config)
    run_experiment(config, tmp_path, n_jobs=1, data=data)
    results = Results.load(tmp_path)
    pd.testing.assert_frame_equal(results.remeasure(data=data), results.frame, check_exact=True)
    with pytest.raises(ValueError, match=r"`data.given` means that the data are passed in Python"):
        results.remeasure()


def test_what_does_not_go_together_is_told(tmp_path):
    X, y = rows()
    config = given_config()
    with pytest.raises(
        ValueError, match=r"`data.protected` is \['sex'\], and the attributes given are \['a'\]"
    ):
        data_from(read_problem(X, y, X["a"] > 0.5), parts(), config)
    three = np.arange(900) % 3
    with pytest.raises(ValueError, match="The target 'y' must hold two labels, got 3"):
        data_from(read_problem(X, three, "sex"), parts(), config)
    with pytest.raises(ValueError, match="The validation part has no rows: pass other rows for it"):
        data_from(read_problem(X, y, "sex"), {"train": [0, 1, 2], "test": [3, 4]}, config)
    with pytest.raises(ValueError, match="hold row 2 more than once: a row is in one part"):
        data_from(read_problem(X, y, "sex"), {**parts(), "train": [1, 2, 3]}, config)
    with pytest.raises(ValueError, match="positions of the 900 rows, 0 to 899, got 900"):
        data_from(read_problem(X, y, "sex"), {**parts(), "train": [1, 900]}, config)
    with pytest.raises(ValueError, match=r"`data.given` means that the data are passed in Python"):
        run_experiment(config, tmp_path, n_jobs=1)
    with pytest.raises(ValueError, match=r"`split.method` must be 'given', got 'random'"):
        config_from(TABLE | {"split": {"method": "random", "train": 0.5, "test": 0.5}})
