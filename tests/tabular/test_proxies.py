import numpy as np
import pandas as pd

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


def found(labels, frame=FRAME, kind=None):
    table = Table.from_input(frame)
    variable = variable_from(column_from("z", labels), kind=kind)
    return [table.names[j] for j in columns_that_determine(variable, table, frozenset())]


def test_the_raw_age_beside_its_group_is_found():
    assert found(AGE >= 50) == ["age", "exact_age", "decade"]


def test_a_group_within_a_decade_is_not_determined_by_the_decade():
    assert found(AGE >= 55) == ["age", "exact_age"]


def test_identifiers_and_proxies_are_not_reported():
    assert found(RNG.integers(0, 2, N)) == []


def test_a_copy_under_other_labels_is_found():
    z = RNG.integers(0, 3, N)
    frame = FRAME.assign(copy=np.array(["p", "q", "r"])[z])
    assert found(z, frame) == ["copy"]


def test_a_few_typing_errors_do_not_hide_it():
    age = np.random.default_rng(2).integers(18, 90, 10_000)
    z = (age >= 50).astype(int)
    z[:3] = 1 - z[:3]
    assert found(z, pd.DataFrame({"age": age})) == ["age"]
    z[:300] = 1 - z[:300]
    assert found(z, pd.DataFrame({"age": age})) == []


def test_missing_entries_do_not_hide_it():
    z = pd.Series(np.where(AGE >= 50, "old", "young"), dtype=object)
    z[::10] = None
    assert "age" in found(z)


def test_a_rare_group_is_found_by_its_column():
    z = (AGE >= 85).astype(int)
    assert "age" in found(z)


def test_continuous_variables_are_found_by_order_and_by_level():
    z = np.log(AGE + RNG.random(N))
    table = FRAME.assign(monotone=np.exp(z), backwards=-z)
    assert found(z, table, kind="continuous") == ["age", "exact_age", "monotone", "backwards"]
    assert found(RNG.normal(size=N), kind="continuous") == []


def test_large_tables_are_read_whole_only_where_a_sample_agrees():
    n = 50_000
    age = np.random.default_rng(1).integers(18, 90, n)
    z = (age >= 50).astype(int)
    late = z.copy()
    late[-1000:] = 1 - late[-1000:]
    frame = pd.DataFrame({"age": age, "late": late})
    assert found(z, frame) == ["age"]


def test_columns_that_repeat_the_target_are_told_from_rules():
    y = (AGE >= 50).astype(int)
    table = Table.from_input(FRAME.assign(outcome=np.where(y == 1, "yes", "no")))
    target = variable_from(column_from("y", y), kind=None)
    assert [table.names[j] for j in columns_equal_to(target, table)] == ["outcome"]
    continuous = variable_from(column_from("y", RNG.normal(size=N)), kind=None)
    scaled = Table.from_input(FRAME.assign(outcome=continuous.labels * 3 + 1))
    assert [scaled.names[j] for j in columns_equal_to(continuous, scaled)] == ["outcome"]
