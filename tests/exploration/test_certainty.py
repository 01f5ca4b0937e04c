"""The cut between sure and unsure, and what the page says of it."""

import numpy as np
import pandas as pd
import pytest

from fado import Valuation, explore
from fado.valuation import Provenance

N = 1000


def plane_of(y, z, valuation):
    seen = explore(
        pd.DataFrame({"x": np.arange(N)}), y, sensitive_features={"z": z}, valuation=valuation, retrain=0
    )
    part = seen.to_dict()["attributes"][0]
    return part["plane"], part["values"]["lead"]


def entropies(**values):
    return Valuation({name: np.asarray(array, dtype=float) for name, array in values.items()})


def unsure_share(plane, of):
    return sum(corner["share"] for corner in plane["corners"] if corner[f"unsure_of_{of}"])


def test_a_rare_positive_class_leaves_room_for_doubt():
    y = np.arange(N) < 10
    values = np.where(np.arange(N) < 300, 0.06, 0.01)  # far below 0.5, and above what the base rate halves to
    plane, lead = plane_of(y, np.arange(N) % 2, entropies(y=values, z=np.full(N, 0.9)))
    base = -(0.01 * np.log2(0.01) + 0.99 * np.log2(0.99))
    assert plane["scales"]["v_y"]["cut"] == pytest.approx(base / 2)  # 0.0404
    assert plane["scales"]["v_z"]["cut"] == pytest.approx(0.5)
    assert unsure_share(plane, "target") == pytest.approx(0.3)
    assert "v_y at 0.0404, half of 0.0808" in plane["cuts"]
    assert "knowing only the classes' shares of y gives 0.0808" in lead


def test_seven_classes_are_cut_by_their_own_shares():
    shares = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05])
    y = np.repeat(np.arange(7), (shares * N).astype(int))
    plane, _ = plane_of(y, np.arange(N) % 2, entropies(y=np.linspace(0, 1, N), z=np.ones(N)))
    base = -(shares * np.log2(shares)).sum() / np.log2(7)
    assert plane["scales"]["v_y"]["cut"] == pytest.approx(base / 2)
    assert unsure_share(plane, "target") == pytest.approx(1 - base / 2, abs=1e-3)


@pytest.mark.parametrize(("error", "sure"), [(1.0, 0.0), (0.75, 0.25), (0.0, 1.0)])
def test_as_many_rows_of_a_number_are_sure_as_models_remove_of_its_error(error, sure):
    wealth = np.linspace(-1, 1, N)
    errors = error * np.abs(wealth - wealth.mean())
    values = {"y": np.full(N, 0.5), "z": np.linspace(0, 1, N)}
    valuation = Valuation(
        values,
        agreement={"y": np.full(N, 0.5), "z": 1 - errors / 2},
        provenance=Provenance(largest_error={"z": 2.0}),
    )
    plane, lead = plane_of(np.arange(N) % 2, wealth, valuation)
    assert unsure_share(plane, "attribute") == pytest.approx(1 - sure, abs=2 / N)
    assert f"so that {100 * sure:.3g} % of the rows count as sure" in plane["cuts"]
    assert "knowing only the mean of z gives 1" in lead


def test_a_number_without_agreement_is_cut_at_its_median():
    values = np.r_[0.0, np.full(N - 1, 0.9)] + np.arange(N) / 1e5
    plane, _ = plane_of(np.arange(N) % 2, np.linspace(0, 1, N), entropies(y=np.ones(N), z=values))
    assert plane["scales"]["v_z"]["cut"] == pytest.approx(np.median(values))
    assert "the median, since z is a number" in plane["cuts"]


def test_effects_are_cut_at_zero():
    effects = np.random.default_rng(0).normal(0.1, 1, N)
    valuation = Valuation.from_values({"y": effects, "z": effects})
    plane, _ = plane_of(np.arange(N) < 10, np.arange(N) % 2, valuation)
    assert plane["scales"]["v_y"]["cut"] == plane["scales"]["v_z"]["cut"] == 0
    assert unsure_share(plane, "target") == pytest.approx((effects >= 0).mean())
    assert "low from high" in plane["cuts"]
