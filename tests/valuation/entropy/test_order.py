"""The order in which fits begin."""

from hypothesis import given
from hypothesis import strategies as st

from fado.valuation.entropy._order import Durations, longest_first


@given(st.lists(st.sampled_from(["y", "age", "sex"]), max_size=30), st.data())
def test_every_fit_begins_once_and_those_of_a_variable_in_their_order(variables, data):
    durations, given_out = Durations(), []
    for place in longest_first(variables, durations):
        given_out.append(place)
        if data.draw(st.booleans()):
            durations.note(variables[place], data.draw(st.floats(0.1, 10.0)))
    assert sorted(given_out) == list(range(len(variables)))
    for variable in set(variables):
        own = [place for place in given_out if variables[place] == variable]
        assert own == sorted(own)


def test_while_one_variable_is_not_known_the_longest_queue_goes_first():
    durations = Durations()
    durations.note("y", 100.0)
    assert list(longest_first(["y", "z", "z", "z"], durations)) == [1, 2, 0, 3]
