import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

from fado import Valuation
from fado.metrics import evaluate
from fado.tabular import read_problem
from fado.valuation import compare_effects, removal_effects, retraining_check
from fado.valuation._retraining import draw_parts


def made(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("uvw"))
    z = pd.Series(np.where(X["w"] + rng.normal(size=n_rows) > 0, "b", "a"), name="sex")
    y = (X["u"] + X["w"] + rng.normal(size=n_rows) > 1).astype(int)
    return X, y, z


X, Y, Z = made(800, 0)
VALIDATION = made(800, 1)
MODEL = LogisticRegression()
NOISE = Valuation.from_values({"y": np.arange(800.0) / 1e4, "sex": np.arange(800.0)[::-1] / 1e4})
PARTS = [np.arange(start, start + 60) for start in range(0, 600, 60)]


def effects(X=X, **settings):
    given = {"sensitive_features": Z, "validation": VALIDATION, "parts": PARTS, "random_state": 0} | settings
    return removal_effects(given.pop("valuation", NOISE), given.pop("estimator", MODEL), X, Y, **given)


def check_of(values):
    given = {"sensitive_features": Z, "validation": VALIDATION, "parts": PARTS}
    return retraining_check(Valuation.from_values(values), MODEL, X, Y, **given)


def test_what_is_foretold_and_what_happened():
    found = effects()
    columns = ["part", "kind", "rows", "column", "predicted", "metric", "actual", "directed"]
    assert list(found.columns) == columns
    first = found.set_index(["column", "part"]).loc[("sex", 2)]
    assert first["predicted"] == pytest.approx(-NOISE["sex"][120:180].sum())
    kept = np.r_[0:120, 180:800]

    def ratio(rows):
        scores = MODEL.fit(X.iloc[rows], Y.iloc[rows]).predict_proba(VALIDATION[0])[:, 1]
        return evaluate(VALIDATION[1], scores, sensitive_features=VALIDATION[2])["fpr_ratio"]

    assert first["metric"] == pytest.approx(ratio(kept))
    assert first["actual"] == pytest.approx(ratio(kept) - ratio(np.arange(800)))


def test_groups_that_change_places():
    """Without the positives of "b", a model that sees the group predicts "b" less often positive than "a"."""
    X_, theirs = (own.assign(b=group == "b") for own, group in ((X, Z), (VALIDATION[0], VALIDATION[2])))
    part = ((Y == 1) & (Z == "b") & (np.arange(800) % 20 > 0)).to_numpy()
    goal = {"fairness": "selection_rate_ratio", "max_fpr": 0.2}
    found = effects(X_, validation=(theirs, *VALIDATION[1:]), parts=[part], **goal)
    row = found.set_index("column").loc["sex"]
    assert row["directed"] > row["actual"]
    assert row["metric"] - row["actual"] + row["directed"] == pytest.approx(1 / row["metric"])


def test_weights_count():
    weights = np.random.default_rng(0).uniform(0.5, 2, 800)
    found = effects(sample_weight=weights).query("column == 'y'")
    expected = [-(NOISE["y"][rows] * weights[rows]).sum() / weights.mean() for rows in PARTS]
    np.testing.assert_allclose(found["predicted"], expected)
    tiny = effects(sample_weight=weights / 2**40).query("column == 'y'")
    pd.testing.assert_frame_equal(tiny, found)  # a penalised model, too, is trained with weights of mean 1


def test_masks_and_positions_are_the_same_parts_and_an_attribute_needs_no_name():
    masks = [np.isin(np.arange(800), rows) for rows in PARTS]
    pd.testing.assert_frame_equal(effects(parts=masks, sensitive_features=Z.to_numpy()), effects())


def test_any_number_of_workers_and_repeats():
    tree = DecisionTreeClassifier(max_depth=4)
    one, two = (effects(n_repeats=2, n_jobs=n_jobs, estimator=tree) for n_jobs in (1, 2))
    pd.testing.assert_frame_equal(one, two)
    assert not one["actual"].equals(effects(estimator=tree)["actual"])


def test_the_check_by_hand():
    table = pd.DataFrame(
        {
            "column": "y",
            "predicted": [1.0, 2, 3, 4, 5],
            "actual": [2.0, 4.0, 6.0, 10.0, 8.0],
            "directed": [2.0, 4.0, 6.0, 10.0, 12.0],
        }
    )
    (row,) = compare_effects(table).to_dict("records")
    assert row["correlation"] == pytest.approx(0.9)  # one pair of neighbours is swapped: 1 - 6 * 2 / 120
    assert row["slope"] == pytest.approx(1.8)  # 18 / 10
    assert row["low"] < 0.9 < row["high"] <= 1
    assert row["directed"] == pytest.approx(1.0)
    assert row["n_parts"] == 5


def test_the_truth_itself_is_faithful():
    actual = effects().pivot(index="part", columns="column", values="actual")
    values = {name: np.zeros(800) for name in ("y", "sex")}
    for part, rows in enumerate(PARTS):
        for name in values:
            values[name][rows] = -actual.loc[part, name] / len(rows)
    np.testing.assert_allclose(check_of(values)[["correlation", "slope"]], 1.0)


def test_the_interval_covers():
    rng = np.random.default_rng(0)
    shares = []
    for rho in (0.0, 0.6):
        # the rank correlation of a normal pair
        truth = 6 / np.pi * np.arcsin(rho / 2)
        inside = 0
        for _ in range(400):
            a, b = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=40).T
            row = compare_effects(
                pd.DataFrame({"column": "y", "predicted": a, "actual": b, "directed": b})
            ).iloc[0]
            inside += row["low"] < truth < row["high"]
        shares.append(inside / 400)
    assert min(shares) > 0.92


def test_parts_are_drawn_by_kind():
    problem = read_problem(X, Y, Z)
    parts = draw_parts(problem, 30, seed=0)
    again = draw_parts(problem, 60, seed=0)[:30]
    for (kind, rows), (same, others) in zip(parts, again, strict=True):
        assert kind == same
        np.testing.assert_array_equal(rows, others)
    cells = [rows for kind, rows in parts if kind == "cell"]
    assert all(len(set(Y.iloc[rows])) == 1 and len(set(Z.iloc[rows])) == 1 for rows in cells)
    assert [kind for kind, _ in parts[:3]] == ["cell", "leaves", "random"]
    assert all(0 < len(rows) < 500 and (np.diff(rows) > 0).all() for _, rows in parts)


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"validation": None}, ValueError, "`validation` is needed"),
        ({"valuation": NOISE[:10]}, ValueError, "is of 10 rows and X has 800"),
        (
            {"valuation": Valuation.from_values({"y": np.zeros(800), "age": np.zeros(800)})},
            ValueError,
            "no values for the protected attribute 'sex'",
        ),
        ({"parts": [np.zeros(800, bool)]}, ValueError, "removes 0 of 800 rows"),
        ({"parts": [np.ones(800, bool)]}, ValueError, "removes 800 of 800 rows"),
        ({"parts": [np.ones(3, bool)]}, ValueError, r"`parts\[0\]`: a mask must .* the 800 rows, got 3"),
        ({"parts": [[900]]}, ValueError, r"`parts\[0\]`: there is no row 900; rows are 0 to 799"),
        ({"parts": [[3], [-1]]}, ValueError, r"`parts\[1\]`: there is no row -1"),
        ({"parts": [["a"]]}, TypeError, r"`parts\[0\]`: must be positions of rows, or a mask"),
        ({"parts": np.zeros(800, bool)}, TypeError, r"`parts` must be a list .*, got one of them alone"),
        ({"parts": 5}, TypeError, r"`parts` must be a list of masks or of positions of rows, got 5"),
        ({"estimator": RidgeClassifier()}, ValueError, "RidgeClassifier has no `predict_proba`"),
        (
            {"estimator": LGBMClassifier},
            TypeError,
            r"got the class LGBMClassifier: write `LGBMClassifier\(\)`",
        ),
        ({"estimator": "trees"}, TypeError, "`estimator` must be a scikit-learn classifier, got 'trees'"),
        ({"n_repeats": 0}, ValueError, "`n_repeats` must be at least 1"),
        ({"fairness": "parity"}, ValueError, "`fairness` must be"),
    ],
)
def test_bad_input(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        effects(**settings)


def test_values_that_are_all_alike_say_nothing():
    with pytest.warns(UserWarning, match="too few or too alike"):
        check = check_of({"y": np.zeros(800), "sex": np.zeros(800)})
    assert check["correlation"].isna().all()


def test_no_parts_make_empty_frames_with_their_columns():
    nothing, something = effects(parts=[]), effects()
    for empty, full in ((nothing, something), (compare_effects(nothing), compare_effects(something))):
        assert (len(empty), list(empty.columns)) == (0, list(full.columns))
