"""How many rows are enough to learn from."""

import numpy as np
import pytest

from fado.valuation.large._plan import follow_curve, sizes_up_to

TRUTH = np.arange(2000.0)
NOISE = np.random.default_rng(0).normal(size=2000)


def values_by(noise_of):
    asked = []

    def values_of(size):
        asked.append(size)
        return {"y": TRUTH, "sex": TRUTH + noise_of(size) * NOISE}

    return values_of, asked


def test_sizes_double_up_to_what_there_is():
    assert list(sizes_up_to(100_000)) == [12_500, 25_000, 50_000, 100_000]
    assert list(sizes_up_to(100_001)) == [12_500, 25_000, 50_000, 100_000, 100_001]
    assert list(sizes_up_to(500)) == [500]


def test_it_stops_where_doubling_gains_nothing_for_any_variable():
    values_of, asked = values_by(lambda size: 5000 if size < 100_000 else 0)
    rows, told = follow_curve(values_of, 10**6, are_all=False)
    # 50,000 rows are as far from 100,000 as 25,000 are: they gain nothing. So 25,000 is compared first.
    assert asked == [12_500, 25_000, 50_000]
    assert (rows, told["compared_with"], told["more_rows_would_help"]) == (25_000, 50_000, False)
    assert told["agreement"] == pytest.approx({"y": 1.0, "sex": 1.0})


def test_it_goes_on_while_the_worst_variable_gains():
    values_of, asked = values_by(lambda size: 1e7 / size)
    rows, told = follow_curve(values_of, 3_200_000, are_all=False)
    assert not told["more_rows_would_help"]
    assert 25_000 < rows == asked[-1] // 2
    assert follow_curve(values_of, rows, are_all=False)[1]["more_rows_would_help"]


def test_where_rows_give_out_all_are_taken():
    values_of, asked = values_by(lambda size: 2e7 / size)
    rows, told = follow_curve(values_of, 30_000, are_all=True)
    assert asked == [12_500, 25_000, 30_000]
    assert (rows, told["compared_with"], told["more_rows_would_help"]) == (30_000, 25_000, False)


def test_values_that_rank_nothing_have_nothing_to_gain():
    rows, told = follow_curve(lambda size: {"y": np.ones(100)}, 10**6, are_all=False)
    assert (rows, told["agreement"]) == (25_000, {"y": 1.0})
