"""The trade-off from a valuation's probabilities is that of the same probabilities in an aimed estimator."""

import numpy as np
import pandas as pd
import pytest
from tests.aim.conftest import draw_applicants

from fado import OutOfBagEntropy, Valuation
from fado.aim import trade_off

N = 4_000


def made_up(seed=0, n_groups=2):
    rng = np.random.default_rng(seed)
    part = rng.integers(0, n_groups, N)
    members = np.full((N, n_groups), 0.3 / n_groups)
    members[np.arange(N), part] += 0.7
    p = 0.1 + 0.2 * part / max(n_groups - 1, 1) + 0.4 * rng.random(N)
    group = (rng.random(N)[:, None] > members.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return p, members, rng.random(N) < p, group


def budget_threshold(p, negative, max_fpr):
    return np.sort(p[negative])[::-1][int(max_fpr * negative.sum()) - 1]


def test_the_untouched_point_is_counted_by_hand():
    p, members, y, group = made_up()
    valuation = Valuation.from_probabilities(p, {"group": members})
    first = trade_off(valuation, y, sensitive_features={"group": group}, max_fpr=0.2).iloc[0]
    threshold = budget_threshold(p, ~y, 0.2)
    decided = p >= threshold
    rates = [decided[~y & (group == code)].mean() for code in (0, 1)]
    assert first[["fpr[0]", "fpr[1]"]].tolist() == rates
    expected = [decided[y].mean(), min(rates) / max(rates), threshold]
    assert first[["tpr", "ratio", "threshold"]].tolist() == expected


@pytest.mark.parametrize("ratio", ["fpr_ratio", "tpr_ratio", "fnr_ratio", "selection_rate_ratio"])
def test_the_curve_ends_at_equal_rates(ratio):
    p, members, y, group = made_up(1, n_groups=3)
    valuation = Valuation.from_probabilities(p, {"group": members})
    curve = trade_off(valuation, y, sensitive_features={"group": group}, ratio=ratio, max_fpr=0.2)
    assert curve["ratio"].iloc[0] < 0.75
    assert curve["ratio"].iloc[-1] > 0.88
    assert curve["tpr"].iloc[-1] < curve["tpr"].iloc[0]
    assert (curve["low"] < curve["ratio"]).all()
    assert (curve["fpr"] <= 0.2).all()
    assert f"{ratio.removesuffix('_ratio')}[2]" in curve


def test_several_ratios_and_attributes():
    p, members, y, group = made_up()
    _, others, _, second = made_up(7)
    valuation = Valuation.from_probabilities(p, {"a": members, "b": others})
    z = pd.DataFrame({"b": second, "a": group})  # by name, in any order
    ratio = {"fpr_ratio": 0.9, "tpr_ratio": 0.8}
    curve = trade_off(valuation, y, sensitive_features=z, ratio=ratio, max_fpr=0.2)
    for name in ("fpr_ratio[a]", "tpr_ratio[a]", "fpr_ratio[b]", "tpr_ratio[b]"):
        assert curve[name].iloc[-1] > 0.85
    assert "log_factor[a: 1, negative]" in curve


def test_kept_probabilities_of_a_valuation():
    data = draw_applicants(6000, 0)
    valuator = OutOfBagEntropy(random_state=0, keep_probabilities=True)
    valuation = valuator.fit(data.X, data.y, sensitive_features={"sex": data.sex}).valuation_
    curve = trade_off(valuation, data.y, sensitive_features={"sex": data.sex})
    assert curve["ratio"].iloc[0] < 0.55
    assert curve["ratio"].iloc[-1] > 0.85
    assert curve["tpr"].iloc[-1] > curve["tpr"].iloc[0] - 0.1
    words = np.where(data.y == 1, "yes", "no")
    again = valuator.fit(data.X, words, sensitive_features={"sex": data.sex}).valuation_
    flipped = trade_off(again, words, sensitive_features={"sex": data.sex}, pos_label="no", max_fpr=0.3)
    by_hand, negative = again.probabilities["y"][:, 0], words == "yes"
    chosen = by_hand >= budget_threshold(by_hand, negative, 0.3)
    assert flipped["tpr"].iloc[0] == pytest.approx(chosen[~negative].mean(), abs=2e-3)


def test_what_does_not_fit_is_refused():
    p, members, y, group = made_up()
    valuation = Valuation.from_probabilities(p, {"group": members})
    plain = Valuation.from_values({"y": p, "group": p})
    for given, labels, z, message in (
        (plain, y, {"group": group}, "keeps no probabilities: value the rows with"),
        (valuation, y, {"age": group}, "keeps no probabilities of 'age'; it keeps those of 'group'"),
        (valuation, y, {"group": group % 1}, "probabilities of 2 classes of 'group', and there are 1"),
        (valuation, np.arange(N) % 3, {"group": group}, "needs a target of two classes"),
        (valuation, y[:-1], {"group": group}, "rows|length|entries"),
        (valuation, y, None, "`sensitive_features` is needed"),
    ):
        with pytest.raises(ValueError, match=message):
            trade_off(given, labels, sensitive_features=z)
    with pytest.raises(TypeError, match="`valuation` must be a Valuation, got ndarray"):
        trade_off(p, y, sensitive_features={"group": group})
