"""Do values made again rank rows alike? Figures worked out by hand, by direct fits, and by simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm, spearmanr
from sklearn.linear_model import LogisticRegression

from fado import DataShapley, InBagEntropy, KNNShapley, OutOfBagEntropy, TreeInfluence, Valuation
from fado.valuation import BaseValuator, read_stability
from fado.valuation._probabilities import normalised_entropy
from fado.valuation._retraining import agreement
from fado.valuation._stability import _overlap_of_wholes, expected_agreement

COLUMNS = ["column", "variation", "group", "rows", "rank_agreement", "top_overlap"]


class Moved(BaseValuator):
    """Values 0, 1, ..., in which seed 1 swaps the two highest and seed 2 makes the highest the lowest."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def _value(self, problem, validation, seed):
        values = np.arange(float(problem.n_rows))
        if seed == 1:
            values[[-1, -2]] = values[[-2, -1]]
        if seed == 2:
            values[-1] = -1.0
        return Valuation.from_values({own.name: values for own in problem.variables})


def figures(frame, column, variation, group="all rows"):
    (row,) = frame.query("column == @column and variation == @variation and group == @group").itertuples()
    return row.rank_agreement, row.top_overlap


def table(n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    job = rng.choice(["nurse", "clerk", "driver"], n_rows)
    sex = np.where((job == "nurse") ^ (rng.random(n_rows) < 0.2), "f", "m")
    X = pd.DataFrame({"job": job, "age": rng.integers(18, 80, n_rows), "debt": rng.normal(size=n_rows)})
    y = (X["age"] / 20 + X["debt"] + rng.normal(size=n_rows) > 2.5).to_numpy()
    return X, y, {"sex": sex}


@pytest.fixture(scope="module")
def valued():
    X, y, z = table()
    return X, y, z, OutOfBagEntropy(random_state=0).fit(X, y, sensitive_features=z).valuation_


def test_a_frame_worked_out_by_hand():
    X, y, sex = np.zeros((20, 1)), np.tile([0, 1], 10), np.repeat(["f", "m"], 10)
    valuation = Moved(random_state=0).fit(X, y, sensitive_features={"sex": sex}).valuation_
    frame = valuation.stability(
        X, y, sensitive_features={"sex": sex}, valuator=Moved(), over="seeds", n_seeds=2
    )
    assert list(frame.columns) == COLUMNS
    # Spearman's is 1 - 6 sum(d**2) / (n (n**2 - 1)): the sum is 2 of a swap, n - 1 + (n - 1)**2 of seed 2
    both = (1 - 6 * 2 / 7980 + 1 - 6 * 380 / 7980) / 2
    of_m = (1 - 6 * 2 / 990 + 1 - 6 * 90 / 990) / 2
    expected = [("all rows", 20, both, (1 + 0.5) / 2), ("f", 10, 1.0, 1.0), ("m", 10, of_m, 0.0)]
    for column in ("y", "sex"):
        own = frame[frame["column"] == column]
        assert set(own["variation"]) == {"seeds"}
        for row, (group, n_rows, rank, overlap) in zip(own.itertuples(), expected, strict=True):
            assert (row.group, row.rows) == (group, n_rows)
            assert (row.rank_agreement, row.top_overlap) == pytest.approx((rank, overlap))
    assert frame.attrs == {"changes": {"seeds": "random_state=1; random_state=2"}, "notes": []}


def test_rows_that_tie_for_the_last_places_count_in_part():
    values, others = np.zeros(20), np.arange(20.0)
    values[19] = 1.0  # one sure place; 19 rows share the other
    assert agreement(values, values)[1] == pytest.approx(1.0)
    assert agreement(values, others)[1] == pytest.approx((1 + 1 / 19) / 2)
    assert agreement(others, values)[0] == pytest.approx(spearmanr(values, others).statistic)


def test_values_that_never_differ_over_fits_are_expected_again():
    valuation = Valuation({"y": np.arange(20.0)}, {"y": np.full(20, 0.4)}, {"y": np.full(20, 2)})
    frame = valuation.stability()  # halves are 0.4 above and below, which moves no rank
    assert figures(frame, "y", "bags") == pytest.approx((1.0, 1.0))
    assert frame.attrs["changes"] == {
        "bags": "another run of as many fits, estimated from the standard errors"
    }


@pytest.mark.parametrize("r", [0.0, 0.3, 0.8, 0.99])
def test_the_overlap_of_wholes_is_that_of_normal_variables(r):
    def overlap(r):
        edge = norm.ppf(0.9)
        return multivariate_normal.cdf([-edge, -edge], cov=[[1, r], [r, 1]], allow_singular=True) / 0.1

    assert _overlap_of_wholes(overlap(r)) == pytest.approx(overlap(2 * r / (1 + r)), abs=2e-4)
    assert _overlap_of_wholes(0.02) == pytest.approx(0.1)  # less than by chance is chance
    assert _overlap_of_wholes(1.0) == 1.0


@pytest.mark.parametrize("n_fits", [2, 3, 10])
@pytest.mark.parametrize("shape", ["numbers", "entropies"])
def test_the_estimate_is_what_repetitions_show(n_fits, shape):
    rng = np.random.default_rng(n_fits)
    n_rows = 4000
    truth = rng.normal(size=n_rows)
    noise = np.repeat([0.3, 0.7], n_rows // 2)  # the second group is known less

    def run():
        fits = truth[:, None] + np.sqrt(n_fits) * noise[:, None] * rng.normal(size=(n_rows, n_fits))
        if shape == "entropies":
            p = 1 / (1 + np.exp(-2 * fits.ravel()))
            fits = normalised_entropy(np.column_stack([1 - p, p])).reshape(fits.shape)
        errors = fits.std(axis=1, ddof=1) / np.sqrt(n_fits)
        return Valuation({"y": fits.mean(axis=1)}, {"y": errors}, {"y": np.full(n_rows, n_fits)})

    runs = [run() for _ in range(6)]
    estimated = [own.stability(sensitive_features=np.repeat(["a", "b"], n_rows // 2)) for own in runs]
    parts = {"all rows": slice(None), "a": slice(0, 2000), "b": slice(2000, None)}
    for group, rows in parts.items():
        seen = [agreement(one["y"][rows], two["y"][rows]) for one in runs for two in runs if one is not two]
        told = np.mean([figures(frame, "y", "bags", group) for frame in estimated], axis=0)
        assert told[0] == pytest.approx(np.mean(seen, axis=0)[0], abs=0.04)
        assert told[1] == pytest.approx(np.mean(seen, axis=0)[1], abs=0.03 if shape == "numbers" else 0.1)


def test_the_estimate_is_what_other_seeds_show():
    X, y, z = table(1500, seed=1)
    valuation = OutOfBagEntropy(random_state=0).fit(X, y, sensitive_features=z).valuation_
    estimated = valuation.stability(sensitive_features=z["sex"])  # an array has the name of the one attribute
    measured = valuation.stability(X, y, sensitive_features=z, over=["seeds"])
    for column in ("y", "sex"):
        for group in ("all rows", "f", "m"):
            told, seen = figures(estimated, column, "bags", group), figures(measured, column, "seeds", group)
            assert told[0] == pytest.approx(seen[0], abs=0.03)
            assert told[1] == pytest.approx(seen[1], abs=0.12)


def test_the_order_of_rows_changes_no_estimate():
    rng = np.random.default_rng(0)
    values, errors, counts = rng.random(300).round(2), rng.random(300).round(1), rng.integers(2, 5, 300)
    order = rng.permutation(300)
    assert expected_agreement(values, errors, counts) == expected_agreement(
        values[order], errors[order], counts[order]
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_bags_are_half_and_twice_as_many(valued):
    X, y, z, valuation = valued
    frame = valuation.stability(X, y, sensitive_features=z, over="bags")
    others = [
        OutOfBagEntropy(n_bags=n_bags, random_state=0).fit(X, y, sensitive_features=z).valuation_
        for n_bags in (5, 20)
    ]
    for name in ("y", "sex"):
        expected = np.mean([agreement(valuation[name], other[name]) for other in others], axis=0)
        assert figures(frame, name, "bags") == pytest.approx(expected)
    assert frame.attrs["changes"] == {"bags": "n_bags=5; n_bags=20"}
    # half of the bags is left out where rows would go without a value
    few = others[0].stability(X, y, sensitive_features=z, over="bags")
    assert few.attrs["changes"] == {"bags": "n_bags=10"}


def test_neither_workers_nor_a_named_valuator_nor_a_file_change_a_bit(valued, tmp_path):
    X, y, z, valuation = valued
    valuation.save(tmp_path / "v.parquet")
    request = {"sensitive_features": z, "n_seeds": 1}
    frame = valuation.stability(X, y, n_jobs=1, **request)
    named = valuation.stability(X, y, n_jobs=2, valuator=OutOfBagEntropy(random_state=7), **request)
    loaded = Valuation.load(tmp_path / "v.parquet").stability(X, y, over=["seeds", "bags"], **request)
    for again in (named, loaded):
        pd.testing.assert_frame_equal(frame, again, check_exact=True)
        assert frame.attrs == again.attrs
    assert list(frame["variation"].unique()) == ["seeds", "bags"]


def test_what_a_valuator_does_not_have_is_left_out_with_a_note(valued):
    X, y, _, _ = valued
    valuation = InBagEntropy(LogisticRegression(), random_state=0, n_jobs=1).fit(X[["debt"]], y).valuation_
    frame = valuation.stability(
        X[["debt"]], y, valuator=InBagEntropy(LogisticRegression()), over=["seeds", "bags"], n_jobs=1
    )
    assert figures(frame, "y", "seeds") == pytest.approx((1.0, 1.0))  # nothing is drawn
    assert set(frame["variation"]) == {"seeds"}
    assert frame.attrs["notes"] == ["bags: InBagEntropy has none here."]


@pytest.mark.parametrize(
    "valuator",
    [InBagEntropy(random_state=0), TreeInfluence(n_bags=2, random_state=0), KNNShapley(random_state=0)],
    ids=lambda case: type(case).__name__,
)
@pytest.mark.filterwarnings("ignore:`fpr_ratio` of 'sex'")
def test_other_valuators(valued, valuator):
    X, y, z, _ = valued
    rows, groups = (X[:300], y[:300]), {"sex": z["sex"][:300]}
    given = {"sensitive_features": groups, "validation": (X[300:], y[300:], {"sex": z["sex"][300:]})}
    valuation = valuator.fit(*rows, **given).valuation_
    frame = valuation.stability(*rows, **given, n_seeds=1)
    assert set(frame["column"]) == {"y", "sex"}
    assert set(frame["variation"]) == {"seeds"}
    assert f"bags: {type(valuator).__name__} has none here." in frame.attrs["notes"]
    assert (frame["rank_agreement"].abs() <= 1 + 1e-9).all()
    assert frame["top_overlap"].between(0, 1).all()
    if not isinstance(valuator, InBagEntropy):
        with pytest.raises(ValueError, match="effects on validation data: pass them as `validation`"):
            valuation.stability(*rows, sensitive_features=groups)


@pytest.mark.filterwarnings("ignore:After .* fits the values are precise to")
def test_data_shapley_over_seeds():
    X, y, _ = table(60)
    valuator = DataShapley(max_fits=500, random_state=0)
    valuation = valuator.fit(X, y).valuation_
    frame = valuation.stability(X, y, valuator=valuator, over="seeds", n_seeds=1)
    other = DataShapley(max_fits=500, random_state=1).fit(X, y).valuation_
    assert figures(frame, "y", "seeds") == pytest.approx(agreement(valuation["y"], other["y"]))
    assert 0 <= figures(valuation.stability(), "y", "bags")[0] < 1


def test_without_attributes_the_target_alone_is_made_again(valued):
    X, y, _, valuation = valued
    frame = valuation.stability(X, y, over="seeds", n_seeds=1)
    assert list(frame["column"]) == ["y"]
    assert frame.attrs["notes"] == ["Values of 'sex' were not recomputed: pass `sensitive_features`."]


TOWN = np.repeat(["large", "tiny", "small", "little"], [77, 9, 9, 5])


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        ({"age": np.arange(100.0)}, ["up to 24", "24 to 49", "49 to 74", "over 74"]),
        ({"part": np.repeat(["all rows", "b"], 50)}, ["part = all rows", "part = b"]),
        (TOWN, ["large", "(3 groups of fewer than 10 rows)"]),
        (
            {"town": TOWN, "home": np.repeat(["own", "rent"], [91, 9])},
            ["town = large", "(3 groups of town of fewer than 10 rows)", "home = own"],
        ),
    ],
)
def test_groups_are_named_unless_they_have_fewer_than_ten_rows(groups, names):
    frame = Valuation({"y": np.arange(100.0)}, {"y": np.ones(100)}).stability(sensitive_features=groups)
    assert list(frame["group"]) == ["all rows", *names]
    if groups is TOWN:
        assert list(frame["rows"]) == [100, 77, 23]


def test_rows_without_standard_errors_do_not_count():
    known = np.where(np.arange(100) < 70, np.nan, 0.1)  # seven of the large town are left
    frame = Valuation({"y": np.arange(100.0)}, {"y": known}).stability(sensitive_features=TOWN)
    assert list(frame["group"]) == ["all rows", "(3 groups of fewer than 10 rows)"]
    assert frame.attrs["notes"] == [
        "30 of 100 values of 'y' have standard errors: the figures are about these."
    ]


@pytest.mark.parametrize(
    ("valuation", "note"),
    [
        (
            Valuation.from_probabilities(np.linspace(0, 0.5, 30)),
            "Values of 'y' have no standard errors, which need two fits. Pass `X` and `y`.",
        ),
        (
            Valuation({"y": np.zeros(30)}, {"y": np.zeros(30)}),
            "Values of 'y' do not differ (all rows): there is nothing to rank.",
        ),
    ],
)
def test_what_cannot_be_estimated_has_no_row(valuation, note):
    frame = valuation.stability()
    assert (len(frame), list(frame.columns), frame.attrs["notes"]) == (0, COLUMNS, [note])


def test_the_spread_of_influences_does_not_tell_of_another_run(valued):
    X, y, _, _ = valued
    frame = TreeInfluence(random_state=0).fit(X, y).valuation_.stability()
    assert len(frame) == 0
    assert "Influences are sums over models that are measured on different rows" in frame.attrs["notes"][0]


@pytest.mark.parametrize(
    ("asked", "error", "sentence"),
    [
        ({"X": "X"}, ValueError, "`X` needs `y`: pass both"),
        ({"y": "y"}, ValueError, "`y` needs `X`: pass both"),
        ({"over": "seed"}, ValueError, r"`over` must hold one or more of 'seeds', 'bags', got 'seed'"),
        ({"over": ["bags", {}]}, ValueError, "`over` must hold one or more"),
        ({"over": ()}, ValueError, r"`over` must hold one or more .*, got \(\)"),
        ({"over": None}, ValueError, "`over` must hold one or more .*, got None"),
        ({"over": ("seeds",)}, ValueError, r"`over=\('seeds',\)` needs `X` and `y`"),
        ({"valuator": OutOfBagEntropy()}, ValueError, "`valuator` needs `X` and `y`"),
        ({"n_seeds": 0}, ValueError, "`n_seeds` must be at least 1, got 0"),
        ({"n_seeds": 10**9}, ValueError, "`n_seeds` must be at most 1,000"),
        ({"sensitive_features": {"sex": ["f", "m"]}}, ValueError, "'sex' has 2 entries and the valuation"),
        ({"sensitive_features": "sex"}, TypeError, "must hold one value per row, got 'sex'"),
        ({"X": "X", "y": "y", "valuator": OutOfBagEntropy}, TypeError, r"write `OutOfBagEntropy\(\)`"),
        ({"X": "X", "y": "y", "valuator": 3}, TypeError, "must be a valuator like OutOfBagEntropy"),
        ({"X": "short", "y": "short y"}, ValueError, "`valuation` has 600 rows and X has 300"),
        ({"X": "X", "y": "y", "sensitive_features": "age"}, ValueError, "none of the protected attr.* 'age'"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(valued, asked, error, sentence):
    X, y, _, valuation = valued
    given = {"X": X, "y": y, "short": X[:300], "short y": y[:300]}
    asked = {name: given.get(own, own) if isinstance(own, str) else own for name, own in asked.items()}
    with pytest.raises(error, match=sentence):
        valuation.stability(**asked)


def test_values_that_cannot_be_made_again_say_so(valued):
    X, y, _, _ = valued
    with pytest.raises(
        ValueError, match=r"not known what computed these values \('given'\): pass the `valuator`"
    ):
        Valuation.from_values({"y": np.arange(600.0)}).stability(X, y)
    new = OutOfBagEntropy(n_bags=5, keep_models=True, random_state=0).fit(X, y).value(X)
    with pytest.raises(ValueError, match="rows that their models have not learnt from"):
        new.stability(X, y)
    assert figures(new.stability(), "y", "bags")[0] > 0.5
    other = OutOfBagEntropy([LogisticRegression()], random_state=0, n_jobs=1).fit(X[["debt"]], y).valuation_
    with pytest.raises(ValueError, match="pass the `valuator` that computed them"):
        other.stability(X[["debt"]], y)


def test_a_frame_is_read_as_plain_data_and_small_groups_are_dropped():
    frame = pd.DataFrame(
        [
            ("y", "seeds", "all rows", 5, 0.9, 0.5),
            ("y", "seeds", "few", 9, 0.9, 0.5),
            ("y", "seeds", "many", 10, 0.9, 0.5),
            ("y", "seeds", "none", 10, np.nan, np.nan),
        ],
        columns=COLUMNS,
    )
    assert read_stability(frame) == {
        "rows": [
            dict(zip(COLUMNS, ("y", "seeds", group, rows, 0.9, 0.5), strict=True))
            for group, rows in (("all rows", 5), ("many", 10))
        ],
        "changes": {},
        "notes": [],
    }
    for wrong in (frame.drop(columns="rows"), {"rows": []}, None):
        with pytest.raises(TypeError, match=r"must be what `Valuation\.stability` gives"):
            read_stability(wrong)


def section(text, title):
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_card_tells_what_the_values_are():
    values = {"y": np.arange(100) / 100, "sex": np.where(np.arange(100) < 50, 0.0, np.nan)}
    valuation = Valuation(values, {name: np.zeros(100) for name in values})
    text = valuation.card(sensitive_features={"town": np.repeat(["a", "b", "c"], [50, 41, 9])})
    assert text.startswith(
        "# Values of 100 rows\n\nOne number per row for 'y' (the target), 'sex'. It is not known how"
    )
    assert (
        "- 'y': entropy of the predicted classes: how uncertain models are. It lies between 0 and 1." in text
    )
    spread = section(text, "How values are distributed")
    assert "- 'y': mean 0.495, quartiles 0.247, 0.495, 0.742." in spread
    assert "- 'sex': mean 0, quartiles 0, 0, 0; 50 rows have no value." in spread
    assert "| y | a | 50 | 0.245 | 0.122 | 0.245 | 0.367 |" in spread
    assert "| sex | b | 41 | none | none | none | none |" in spread
    assert "| c |" not in text
    stable = section(text, "How stable they are")
    assert "| y | bags | all rows | 100 | 1.000 | 1.000 |" in stable
    assert "- bags: another run of as many fits, estimated from the standard errors." in stable
    assert "- Values of 'sex' do not differ (all rows): there is nothing to rank." in stable
    limits = section(text, "What they do not show")
    assert "not whether it is right" in limits
    assert "does not find wrong labels" in limits
    assert text._repr_markdown_() == text


def test_the_card_tells_how_values_were_made(valued):
    X, y, _, valuation = valued
    text = valuation.card(valuation.stability(X, y, over="seeds", n_seeds=1))
    assert "They are values by out-of-bag." in text
    assert "| y | seeds | all rows | 600 |" in section(text, "How stable they are")
    made = section(text, "How they were computed")
    for line in ("| n_bags | 10 |", "| seed | 0 |", "| columns hidden from the models of 'sex' | none |"):
        assert line in made
    effects = Valuation.from_values({"y": np.array([-0.00012345, 0.0, 2.0])}).card()
    for words in ("0 is neutral", "train again and measure", "not known whether another run would rank"):
        assert words in effects
    with pytest.raises(TypeError, match="`stability` must be"):
        valuation.card([1, 2])
    with pytest.raises(ValueError, match="'sex' has 2 entries"):
        valuation.card(sensitive_features={"sex": ["f", "m"]})


def test_nothing_from_the_data_changes_anything_in_the_card():
    evil = "<script>alert(1)</script>|\n# *x* [a](javascript:b)"
    valuation = Valuation(
        {"y": np.arange(20.0), evil: np.arange(20.0)}, {"y": np.ones(20), evil: np.ones(20)}
    )
    frame = valuation.stability()
    frame.attrs["notes"] = [evil]
    text = valuation.card(frame, sensitive_features={evil: np.repeat([evil, "b"], 10)})
    assert "<" not in text.replace("\\<", "")
    assert "\n# *" not in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(line.replace("\\|", "").split("|")) - 2 for line in tables} == {2, 6, 7}
