"""Metrics, samplers and reweighers beside plain loops; `benchmarks/differential.py` runs thousands."""

import pytest
from benchmarks._oracles import CHECKS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("name", CHECKS)
@settings(
    deadline=None, max_examples=40, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_plain_loops_find_the_same(name, data):
    check, cases = CHECKS[name]
    check(data.draw(cases))
