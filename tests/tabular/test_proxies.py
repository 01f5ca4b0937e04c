import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_matrix

from fado.tabular import Table, column_from, columns_equal_to, columns_that_determine, variable_from

N = 2000
RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 90, N)
FRAME = pd.DataFrame(
    {
        "age": AGE,
        "exact_age": AGE + RNG.random(N),
        "decade": [f"{a // 10}0s" for a in AGE],
        "noise": RNG.normal(size=N),
        "id": np.arange(N) * 7 % N,
        "name": [f"name{j}" for j in range(N)],
        "constant": 1,
        "proxy": AGE + RNG.normal(scale=5, size=N),
    }
)


def determining(labels, frame=FRAME, kind=None):
    table = Table.from_input(frame)
    variable = variable_from(column_from("z", labels), kind=kind)
    return [table.names[j] for j in columns_that_determine(variable, table, frozenset())]


THIRDS, HALVES = RNG.integers(0, 3, N), RNG.integers(0, 2, N)
LOGS = np.log(AGE + RNG.random(N))
WITH_GAPS = pd.Series(np.where(AGE >= 50, "old", "young"), dtype=object).mask(np.arange(N) % 10 == 0)


@pytest.mark.parametrize(
    ("labels", "more", "kind", "columns"),
    [
        (AGE >= 50, {}, None, ["age", "exact_age", "decade"]),
        (AGE >= 55, {}, None, ["age", "exact_age"]),  # within a decade
        ((AGE >= 85).astype(int), {}, None, ["age", "exact_age"]),  # rare
        (WITH_GAPS, {}, None, ["age", "exact_age", "decade"]),
        (HALVES, {}, None, []),  # neither identifiers nor proxies
        (THIRDS, {"copy": np.array(["p", "q", "r"])[THIRDS]}, None, ["copy"]),  # under other labels
        (HALVES, {"answer": np.where(HALVES == 1, np.nan, RNG.integers(0, 5, N))}, None, ["answer"]),
        (
            LOGS,
            {"monotone": np.exp(LOGS), "backwards": -LOGS},
            "continuous",  # by order and by level
            ["age", "exact_age", "monotone", "backwards"],
        ),
        (RNG.normal(size=N), {}, "continuous", []),
        # a column of few values does not order rows that come in order
        (np.arange(N) * 1.0, {"nearly_constant": np.arange(N) == N - 5, "id": 0}, "continuous", []),
    ],
)
def test_columns_that_tell_the_group_are_named(labels, more, kind, columns):
    assert determining(labels, FRAME.assign(**more), kind) == columns


def test_a_few_typing_errors_do_not_hide_it_and_a_sample_is_enough_where_it_disagrees():
    age = np.random.default_rng(2).integers(18, 90, 50_000)
    z = (age >= 50).astype(int)
    late = z.copy()
    late[-1000:] = 1 - late[-1000:]
    assert determining(z, pd.DataFrame({"age": age, "late": late})) == ["age"]
    age, z = age[:10_000], z[:10_000].copy()
    z[:3] = 1 - z[:3]
    assert determining(z, pd.DataFrame({"age": age})) == ["age"]
    z[:300] = 1 - z[:300]
    assert determining(z, pd.DataFrame({"age": age})) == []


def test_columns_that_repeat_the_target_are_no_rules():
    y = (AGE >= 50).astype(int)
    table = Table.from_input(FRAME.assign(outcome=np.where(y == 1, "yes", "no")))
    target = variable_from(column_from("y", y), kind=None)
    assert [table.names[j] for j in columns_equal_to(target, table)] == ["outcome"]
    continuous = variable_from(column_from("y", RNG.normal(size=N)), kind=None)
    scaled = Table.from_input(FRAME.assign(outcome=continuous.labels * 3 + 1))
    assert [scaled.names[j] for j in columns_equal_to(continuous, scaled)] == ["outcome"]


@pytest.mark.parametrize("missing", [0, 1, N // 3])
@pytest.mark.parametrize("kind", ["classes", "continuous"])
def test_missing_entries_hide_no_copy_and_no_rule(missing, kind):
    y = (AGE >= 50).astype(int) if kind == "classes" else RNG.normal(size=N).round(3)
    gone = RNG.permutation(N) < missing
    frame = FRAME.assign(
        copy=np.where(gone, np.nan, y), text=pd.Series(y.astype(str), dtype=object).mask(gone)
    )
    variable = variable_from(column_from("y", y))
    names = [*frame]
    assert [names[j] for j in columns_equal_to(variable, Table.from_input(frame))] == ["copy", "text"]
    assert determining(y, frame)[-2:] == ["copy", "text"]


def copied(frame, z, rows):
    return frame.iloc[rows].reset_index(drop=True), np.asarray(z)[rows]


@pytest.mark.parametrize(
    "times", ["bootstrap", "each five times", "one class forty times", "each eighty times"]
)
@pytest.mark.parametrize("kind", ["classes", "continuous"])
def test_copies_of_rows_make_no_column_determine_anything(times, kind):
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame({"number": rng.normal(size=n), "name": [f"n{j}" for j in range(n)]})
    frame["band"] = rng.choice(list("abc"), n)
    z = rng.integers(0, 2, n) if kind == "classes" else rng.normal(size=n)
    rows = {
        "bootstrap": rng.integers(0, n, 3 * n),
        "each five times": np.repeat(np.arange(n), 5),
        "one class forty times": np.repeat(np.arange(n), np.where(z > 0, 40, 1)),
        "each eighty times": rng.permutation(np.repeat(np.arange(n), 80)),
    }[times]
    frame, z = copied(frame, z, rows)
    assert determining(z, frame, kind) == []


def test_what_determines_is_named_among_copies_too():
    rng = np.random.default_rng(0)
    frame, z = copied(FRAME, np.where(AGE >= 50, "old", "young"), rng.integers(0, N, 5 * N))
    assert determining(z, frame) == ["age", "exact_age", "decade"]


def test_rows_that_agree_because_there_is_little_to_tell_apart_count_all():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"decade": rng.integers(2, 9, 500), "sex": rng.choice(["f", "m"], 500)})
    assert determining(frame["decade"] >= 5, frame) == ["decade"]
    postcode = pd.DataFrame({"postcode": [f"p{j}" for j in rng.integers(0, 60, 500)]})
    assert determining(postcode["postcode"].isin([f"p{j}" for j in range(25)]), postcode) == ["postcode"]


def test_zeros_of_either_sign_and_missing_entries_are_the_same_in_copies():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"number": rng.normal(size=300), "zero": 0.0, "gap": np.nan})
    again = frame.assign(zero=-0.0)
    z = rng.integers(0, 2, 300)
    assert determining(np.tile(z, 4), pd.concat([frame, again] * 2, ignore_index=True)) == []


@pytest.mark.parametrize("kind", ["classes", "continuous"])
def test_sparse_columns_are_judged_as_dense_ones_are(kind):
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.2, size=(3000, 40)).astype(float)
    dense[:, 35:] = rng.normal(size=(3000, 5))
    dense[::9, 3] = np.nan
    z = dense[:, 36] > 0.3 if kind == "classes" else 2 * dense[:, 36] + 1
    dense[:, 7] = np.where(dense[:, 36] > 0.3, 2.0, 0.0)
    expected = [7, 36] if kind == "classes" else [36]
    variable = variable_from(column_from("z", z))
    for X in (dense, csr_matrix(dense), csc_array(dense)):
        assert columns_that_determine(variable, Table.from_input(X), frozenset()) == expected
        assert columns_that_determine(variable, Table.from_input(X), frozenset({36})) == expected[:-1]


def test_copies_of_sparse_rows_make_no_column_determine_anything():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((300, 10)) < 0.5, rng.normal(size=(300, 10)), 0.0)
    dense[:, 0] = rng.normal(size=300)
    dense[:20, 1] = np.nan
    rows = rng.integers(0, 300, 3000)
    variable = variable_from(column_from("z", rng.integers(0, 2, 300)[rows]))
    assert columns_that_determine(variable, Table.from_input(csr_matrix(dense[rows])), frozenset()) == []
