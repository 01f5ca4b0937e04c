import numpy as np
import pandas as pd
import pytest

from fado.tabular import Table, doubt_of, warn_of_doubtful_columns
from fado.tabular._suspects import numbers_in

N = 400
RNG = np.random.default_rng(0)


def look(column, name="x"):
    doubt = doubt_of(Table.from_input(pd.DataFrame({name: column})).column(0))
    return [] if doubt is None else [doubt[0]]


@pytest.mark.parametrize(
    ("column", "finding"),
    [
        ([f"c{j:05d}" for j in range(N)], "id"),
        (["ab12", *(f"c{j:05d}" for j in range(N)), None, None], "id"),
        ([f"{j:05d}" for j in range(N)], "id"),  # whole numbers as text are codes
        (RNG.permutation(N) + 7_000_000, "id"),  # a counter, in any order
        (np.where(np.arange(N) == 3, np.nan, 2.0 * np.arange(N)), "id"),
        (RNG.integers(2**62, size=N), "id"),  # no float holds them
        ([f"2021-{1 + j % 12:02d}-{1 + j % 28:02d}" for j in range(N)], "date as text"),
        ([f"{1 + j % 28}.{1 + j % 12}.1987 12:30" for j in range(N)], "date as text"),
        ([f"{1 + j % 28} Mar 2021" for j in range(N)], "date as text"),
        ([f"{number:,.2f}" for number in RNG.lognormal(9, 1, N)], "number as text"),
        ([f"{number:.1f}".replace(".", ",") for number in RNG.normal(0, 50, N)], "number as text"),
        (["1.234,5", *(f"{j}.000,0" for j in range(1, 30))], "number as text"),
        (["12 %", "5 %", "7 %", "unknown"] * 100, "number as text"),
        (["$ 12", "$ 1,200", "$ 3"] * 100, "number as text"),
        ([*map(str, range(40)), "?"] * 9, "number as text"),  # "?" made text of numbers
    ],
)
def test_what_a_model_should_not_learn_as_it_is_is_named(column, finding):
    assert look(column) == [finding]


@pytest.mark.parametrize(
    "column",
    [
        RNG.lognormal(10, 0.5, N).astype(int),  # incomes: few repeat in a small table, by chance
        RNG.integers(0, 3_000, N),  # a balance
        RNG.normal(size=N),
        np.arange(29),
        np.arange(100.0),  # somebody made floats of them
        np.where(np.arange(N) < 5, np.inf, RNG.normal(size=N)),
        np.where(np.arange(N) < N - 5, np.inf, 1.0),
        [f"n{j}" for j in range(29)],
        [f"town {j}" for j in RNG.integers(0, N, N)],
        [f"{j:05d}" for j in RNG.integers(0, 300, N)],  # postcodes
        ["1", "2", "3"] * 100,
        ["10-20", "20-30", "over 30"] * 100,
        [f"{j}.{j % 7}" for j in RNG.integers(200, 900, N)] + ["V45", "E12"],  # codes of diagnoses
        [f"1.2.{j}" for j in range(30)] * 2,  # versions
        np.array([True, False] * 20),
        [None] * 40,
    ],
)
def test_what_may_be_measured_is_not(column):
    assert look(column) == []


def test_a_name_decides_where_numbers_cannot():
    numbers = RNG.choice(10**9, N, replace=False)
    assert look(numbers, "amount") == look(numbers, "paid") == []
    assert look(numbers, "customer_id") == look(numbers, "customerId") == look(numbers, "ID") == ["id"]


def test_numbers_are_read_as_they_are_written():
    np.testing.assert_equal(
        numbers_in(["16,789.24", " 12 %", "€ -3", "7", "1 000", "n/a"]), [16789.24, 12, -3, 7, 1000, np.nan]
    )
    np.testing.assert_equal(numbers_in(["1.234,5", "0,25", "3"]), [1234.5, 0.25, 3])


def test_one_warning_names_them_all():
    frame = pd.DataFrame(
        {"a": range(N), "b": [f"u{j}" for j in range(N)], "c": ["1 %", "2 %", "3 %", "4 %"] * 100}
    )
    with pytest.warns(UserWarning, match=r"\(id: 'a', 'b'; number as text: 'c'\): leave ids out"):
        warn_of_doubtful_columns(Table.from_input(frame))
