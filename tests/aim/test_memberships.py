import numpy as np

from fado.aim import find_memberships
from fado.tabular import Table

RNG = np.random.default_rng(0)
N = 3000
CODES = RNG.integers(0, 3, size=N)
POSITIVE = RNG.random(N) < 0.3


def memberships(X, **settings):
    return find_memberships(Table.from_input(X), POSITIVE, CODES, 3, **{"seed": 0, "workers": 1} | settings)


def test_a_column_that_holds_the_group_tells_all():
    found = memberships(np.column_stack([CODES, RNG.normal(size=N)]))
    assert found.told > 0.99
    assert (found.probabilities.argmax(axis=1) == CODES).all()


def test_noise_tells_nothing_and_no_row_is_told_by_a_model_that_saw_it():
    """In bag, trees would know noise by heart."""
    found = memberships(RNG.normal(size=(N, 5)))
    assert found.told < 0.02
    hit = (found.probabilities.argmax(axis=1) == CODES).mean()
    assert abs(hit - 1 / 3) < 0.05


def test_probabilities_are_calibrated():
    """Of rows whose probability of a group is about p, a share of about p belongs to it."""
    signal = CODES + RNG.normal(size=N)
    found = memberships(signal[:, None]).probabilities[:, 2]
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 1.0)):
        rows = (found >= low) & (found < high)
        assert abs(found[rows].mean() - (CODES[rows] == 2).mean()) < 0.08


def test_the_label_is_seen():
    label_is_group = find_memberships(
        Table.from_input(RNG.normal(size=(N, 1))),
        CODES == 1,
        (CODES == 1).astype(np.int64),
        2,
        seed=0,
        workers=1,
    )
    assert (label_is_group.probabilities[:, 1] > 0.9).sum() == (CODES == 1).sum()


def test_workers_change_nothing_and_the_seed_does():
    X = np.column_stack([CODES + RNG.normal(size=N), RNG.normal(size=N)])
    one, two = memberships(X, workers=1), memberships(X, workers=2)
    assert (one.probabilities == two.probabilities).all()
    assert (one.probabilities != memberships(X, seed=1).probabilities).any()


def test_rows_of_a_block_are_told_by_models_that_saw_none_of_them():
    """Every block has a number of its own in a column: in bag, it would tell the group."""
    blocks = np.arange(N) // 10
    codes = RNG.integers(0, 2, size=N // 10)[blocks]
    table = Table.from_input(blocks[:, None].astype(float))
    apart = find_memberships(table, POSITIVE, codes, 2, seed=0, workers=1)
    together = find_memberships(table, POSITIVE, codes, 2, seed=0, workers=1, blocks=blocks)
    assert apart.told > 0.3
    assert together.told < 0.05
