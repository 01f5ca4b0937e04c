"""The report on made rows, on tables where its figures are known."""

import numpy as np
import pandas as pd
import pytest

from fado.generation import _report as module
from fado.generation import generation_report
from fado.generation._report import as_positions, nearest_distances
from fado.tabular import Table

N = 1_500


def make(seed, n=N):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    X = pd.DataFrame({"a": a, "b": a + rng.normal(size=n) / 5, "c": rng.choice(list("xyz"), n)})
    X.loc[::9, "b"] = np.nan
    z = rng.choice(["f", "m"], n)
    return X, (a + (z == "m") + rng.normal(size=n) / 2 > 1).astype(int), z


@pytest.fixture(scope="module")
def report():
    return generation_report(*make(0), validation=make(1, 1_000), random_state=0, n_jobs=1)


def test_made_rows_are_much_like_real_ones(report):
    real, made = report["trained_on_real"], report["trained_on_made"]
    assert (report["rows"], report["validation"]) == (N, 1_000)
    assert real["auc"] > 0.85
    assert abs(real["auc"] - made["auc"]) < 0.04
    assert 0 <= made["tpr"] <= 1
    assert 0.4 < report["told_apart"] < 0.65
    assert report["copies"] == {"made": 0.0, "held_out": 0.0}
    distances = report["distances"]
    assert 0.5 < distances["ratio"]["median"] < 1.3
    for which, own in distances["made"].items():
        assert own == pytest.approx(distances["ratio"][which] * distances["held_out"][which])


def test_any_number_of_workers_gives_the_same_figures(report):
    assert generation_report(*make(0), validation=make(1, 1_000), random_state=0, n_jobs=2) == report


def test_copies_are_found_out(monkeypatch, report):
    def parents(problem, parents, **_):
        return np.repeat(parents[:, None], problem.table.n_columns, axis=1)

    monkeypatch.setattr(module, "draw_donors", parents)
    copied = generation_report(*make(0), validation=make(1, 1_000), random_state=0, n_jobs=1)
    assert copied["copies"] == {"made": 1.0, "held_out": 0.0}
    assert copied["distances"]["made"]["median"] == 0
    assert copied["distances"]["held_out"] == report["distances"]["held_out"]


def test_strangers_are_told_apart(monkeypatch):
    def mixed(problem, parents, **_):
        generator = np.random.default_rng(0)
        return np.column_stack([generator.permutation(parents) for _ in range(problem.table.n_columns)])

    monkeypatch.setattr(module, "draw_donors", mixed)
    report = generation_report(*make(0), validation=make(1, 1_000), random_state=0, n_jobs=1)
    assert report["told_apart"] > 0.75
    assert report["trained_on_made"]["auc"] < 0.75


def test_distances_equal_those_of_all_pairs():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.integers(0, 9, 60) / 2, "t": rng.choice(list("ab"), 60)}).astype(
        {"t": object}
    )
    frame.loc[::5, "n"] = np.nan
    frame.loc[::7, "t"] = None
    columns = Table.from_input(frame).columns
    found = nearest_distances(*np.split(as_positions(columns, 60)[::-1], [20]))
    known = frame["n"].dropna().to_numpy()
    rank = {n: (np.sum(known < n) + np.sum(known <= n)) / (2 * len(known)) for n in known}

    def apart(first, second):
        missing = pd.isna(first), pd.isna(second)
        if any(missing):
            return float(not all(missing))
        return abs(rank[first] - rank[second]) if isinstance(first, float) else float(first != second)

    rows = frame.to_numpy()[::-1]
    expected = [
        min(np.mean([apart(*pair) for pair in zip(row, other, strict=True)]) for other in rows[20:])
        for row in rows[:20]
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"validation": make(1)[:2]}, r"`validation` must be a tuple of three"),
        (
            {"validation": (make(1)[0], [1] * N, make(1)[2])},
            r"The target of `validation` has only one label \(1\)",
        ),
        (
            {"validation": (make(1)[0], np.arange(N) % 3, make(1)[2])},
            "has 3 labels: name the positive one as `pos_label`",
        ),
        ({"validation": (make(1)[0][["a"]], *make(1)[1:])}, "'b'"),
        (
            {"validation": (make(1)[0], make(1)[1] + 1, make(1)[2])},
            "The target of `validation` has the label 2, which `y` does not have",
        ),
    ],
    ids=str,
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        generation_report(*make(0), **arguments, random_state=0)


@pytest.mark.parametrize("n", [6, 12])
def test_too_few_validation_rows_are_not_told_apart(n):
    X, y, z = make(1, 400)
    some = np.r_[np.flatnonzero(y == 0)[: n // 2], np.flatnonzero(y == 1)[: n // 2]]
    report = generation_report(*make(0, 300), validation=(X.iloc[some], y[some], z[some]), random_state=0)
    assert np.isnan(report["told_apart"]) or 0 <= report["told_apart"] <= 1
    alone = np.full(n, "nobody else")
    report = generation_report(*make(0, 300), validation=(X.iloc[some], y[some], alone), random_state=0)
    assert np.isnan(report["told_apart"])
