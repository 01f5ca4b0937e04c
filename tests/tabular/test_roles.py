"""What a variable is, found out block by block."""

import numpy as np
import pytest

from fado.tabular import Classes, Combinations, column_from, variable_from

LABELS = {
    "text": ["b", None, "a", "c", "a"],
    "booleans": [True, False, None, True, True],
    "numbers": [3, 1, 2, 1, 3],
    "halves": [0.5, float("nan"), 1.0, 0.5, 2.0],
    "many": list(range(40)),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("step", [1, 2, 100])
def test_blocks_tell_what_the_whole_tells(name, step):
    labels, classes = LABELS[name], Classes(name)
    for start in range(0, len(labels), step):
        classes.add(column_from(name, np.array(labels[start : start + step], dtype=object)))
    found, whole = classes.numbered(), variable_from(column_from(name, labels))
    assert (found.kind, found.classes, found.has_missing) == (whole.kind, whole.classes, whole.has_missing)
    assert [type(own) for own in found.classes] == [type(own) for own in whole.classes]


def test_numbers_that_show_late_that_they_are_none_and_too_many_classes():
    classes = Classes("y")
    assert classes.add(column_from("y", [2.0, 1.0, 2.0])).tolist() == [0, 1, 0]
    assert classes.add(column_from("y", np.arange(500.0))).tolist() == [0] * 500
    assert classes.numbered().kind == "continuous"
    with pytest.raises(ValueError, match=r"Variable 'town' has more than 10,000 classes: coarsen it"):
        Classes("town").add(column_from("town", [str(number) for number in range(10_001)]))


@pytest.mark.parametrize("n_classes", [3, 1000])
def test_combinations_have_one_number_each_in_every_block(n_classes):
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, n_classes, 3000) for _ in range(3)]
    joint = Combinations()
    found = np.concatenate([joint.add([own[i : i + 500] for own in codes]) for i in range(0, 3000, 500)])
    tuples = list(zip(*(own.tolist() for own in codes), strict=True))
    assert [joint.seen[place] for place in found] == tuples
    assert len(joint.seen) == len(set(tuples))
