"""Which groups are compared, each attribute for itself or all crossed, and what is left out of it."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from fado.experiment import Experiment, Results
from fado.experiment._config import EvaluationConfig
from fado.experiment._data import ComparedGroups, few_rows, read_data
from fado.experiment._training import Measuring, Trainer
from fado.experiment._trial import Trial
from fado.metrics import evaluate
from fado.tabular import Groups

KEY = "0" * 32
PARTS = ("train", "validation", "test")


def people(n=4000, seed=0):
    """Rows of two sexes and four origins, one of which is rare; income is easier to tell for some."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], size=n)
    origin = rng.choice(["a", "b", "c"], size=n)
    origin[:20] = "r"
    score = rng.normal(size=n)
    label = rng.random(n) < 1 / (1 + np.exp(2 - score - (sex == "m") * 0.8 - (origin == "a") * 0.6))
    noise = rng.normal(size=n)
    part = rng.choice(PARTS, p=[0.5, 0.25, 0.25], size=n)
    part[:20] = ["validation"] * 5 + ["test"] * 5 + ["train"] * 10
    return pd.DataFrame(
        {"sex": sex, "origin": origin, "score": score, "noise": noise, "label": label, "part": part}
    )


def config_in(folder):
    """A configuration that reads such rows, to be changed at will."""
    people().to_parquet(folder / "people.parquet")
    return {
        "data": {"path": str(folder / "people.parquet"), "target": "label", "protected": ["sex", "origin"]},
        "split": {"method": "column", "column": "part"} | {part: [part] for part in PARTS},
        "valuation": {"bags": 5, "models": [{"n_estimators": 5}]},
        "interventions": {"rps": False, "uar": {"alphas": [0.5]}},
        "models": {"count": 2, "space": {"n_estimators": {"log_uniform": [5, 30]}, "num_leaves": 5}},
        "evaluation": {"threshold": "test"},
    }


@pytest.fixture
def config(tmp_path):
    return config_in(tmp_path)


def test_a_group_is_compared_if_no_part_has_few_rows_of_it():
    validation, test = np.array([500, 12, 6, 60, 0]), np.array([500, 6, 25, 40, 500])
    # 12 of 578 rows are 2 %, 6 are 1.04 % of 578 and 0.56 % of 1,071; the last has rows in one part alone
    assert few_rows([validation, test], 30).tolist() == [False, True, False, False, True]
    assert few_rows([test], 30).tolist() == [False, True, False, False, False]
    assert not few_rows([validation, test], 0).any()


def measuring_of(positive, bootstrap=0, **attributes):
    comparisons = []
    for name, codes in attributes.items():
        names = tuple(f"{name}={code}" for code in range(codes.max() + 1))
        comparisons.append(
            ComparedGroups(name, Groups(codes, names, names), np.zeros(len(names), dtype=bool))
        )
    return Measuring(positive, None, comparisons, 0, EvaluationConfig(0.1, "test", bootstrap), 0)


def test_the_plain_ratio_is_the_least_of_all_attributes_with_its_interval():
    rng = np.random.default_rng(0)
    n = 3000
    sex, origin = rng.integers(0, 2, n), rng.integers(0, 3, n)
    positive = rng.random(n) < 0.3
    scores = rng.random(n) + 0.5 * positive + 0.4 * (sex == 1) * ~positive + 0.3 * (origin == 2) * positive
    metrics = measuring_of(positive, 50, sex=sex, origin=origin).measure(scores, KEY)
    for name, codes in (("sex", sex), ("origin", origin)):
        alone = evaluate(positive, scores, sensitive_features=codes, max_fpr=0.1)
        for ratio in ("fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"):
            assert metrics[f"test_{ratio}[{name}]"] == alone[ratio]
        assert metrics["test_tpr"] == alone["tpr"]
    assert metrics["test_fpr_ratio[sex]"] < metrics["test_fpr_ratio[origin]"]
    assert metrics["test_fnr_ratio[origin]"] < metrics["test_fnr_ratio[sex]"]
    for ratio, least in (("fpr_ratio", "sex"), ("fnr_ratio", "origin")):
        for end in ("", "_low", "_high"):
            assert metrics[f"test_{ratio}{end}"] == metrics[f"test_{ratio}[{least}]{end}"]


def test_a_ratio_that_one_attribute_lacks_is_undefined():
    positive = np.array([True, False, True, False, True, False])
    sex, origin = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 0, 1, 0])  # no negatives of origin 1
    scores = np.array([0.9, 0.8, 0.7, 0.3, 0.2, 0.1])
    metrics = measuring_of(positive, sex=sex, origin=origin).measure(scores, KEY)
    assert np.isnan(metrics["test_fpr_ratio[origin]"])
    assert np.isnan(metrics["test_fpr_ratio"])
    assert not np.isnan(metrics["test_tpr_ratio"])


def test_small_groups_are_told_once_and_are_the_same_in_both_parts(config):
    with pytest.warns(UserWarning, match="groups have fewer than 30 rows and less than 1 %") as told:
        data = read_data(Experiment(config).config)
    assert len(told) == 1
    assert "sex='f', origin='r' (validation " in str(told[0].message)
    (comparison,) = data.comparisons
    assert len(comparison.groups) == 8
    left_out = [name for name, out in zip(comparison.groups.names, comparison.left_out, strict=True) if out]
    assert sorted(left_out) == ["sex='f', origin='r'", "sex='m', origin='r'"]
    config["data"]["min_group_size"] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not read_data(Experiment(config).config).comparisons[0].left_out.any()


@pytest.mark.filterwarnings("ignore:.*groups have fewer than 30 rows", "ignore:Group.*(is|are) not compared")
def test_ratios_are_those_of_the_groups_that_are_not_small(config):
    experiment = Experiment(config)
    data = read_data(experiment.config)
    trainer = Trainer(data, experiment.config)
    scores = trainer.scores(Trial("none", parameters={"n_estimators": 10, "random_state": 0}))
    metrics = trainer._measuring.measure(scores, KEY)
    n_validation = Measuring.of(data, experiment.config).n_validation
    for part, found in (("validation", scores[:n_validation]), ("test", scores[n_validation:])):
        rows = people().query("part == @part")
        kept, y = rows["origin"] != "r", rows["label"].to_numpy()
        expected = evaluate(
            y[kept],
            found[kept],
            sensitive_features=rows.loc[kept, ["sex", "origin"]],
            threshold=metrics[f"{part}_threshold"],
        )
        for ratio in ("fpr_ratio", "fnr_ratio", "selection_rate_ratio"):
            assert metrics[f"{part}_{ratio}"] == pytest.approx(expected[ratio], abs=1e-12)
        everybody = evaluate(y, found, sensitive_features=rows["sex"])
        assert metrics[f"{part}_tpr"] == everybody["tpr"]  # their rows still count


@pytest.mark.filterwarnings("ignore:.*groups? ha.* fewer than 30 rows", "ignore:Group.*(is|are) not compared")
def test_what_is_left_out_is_kept_with_the_results_and_makes_other_data(config, tmp_path):
    results = Experiment(config).run(tmp_path / "s", n_jobs=1)
    names = {(group["group"], group["attribute"]) for group in results.left_out}
    assert names == {("sex='f', origin='r'", None), ("sex='m', origin='r'", None)}
    assert sum(group["train"] for group in results.left_out) == 10
    assert sum(group["test"] for group in results.left_out) == 5
    assert Results.load(tmp_path / "s").left_out == results.left_out
    assert results.frame["test_fpr_ratio"].notna().all()
    fingerprint = read_data(Experiment(config).config).fingerprint()
    config["data"]["min_group_size"] = 0
    assert read_data(Experiment(config).config).fingerprint() != fingerprint
    assert Experiment(config).run(tmp_path / "all", n_jobs=1).left_out == []


def test_a_size_that_leaves_nobody_out_makes_no_other_data(config):
    config["data"]["protected"] = "sex"
    fingerprints = set()
    for config["data"]["min_group_size"] in (0, 30, 100):
        fingerprints.add(read_data(Experiment(config).config).fingerprint())
    assert len(fingerprints) == 1


def test_too_few_groups_to_compare_are_refused(config, tmp_path):
    frame = people()
    frame["origin"] = np.where(frame["origin"] == "r", "r", "common")
    frame.to_parquet(tmp_path / "people.parquet")
    config["data"]["protected"] = "origin"
    message = r"origin='r' \(validation 5, test 5\), and fewer than two groups are left to compare: merge"
    with pytest.raises(ValueError, match=message):
        read_data(Experiment(config).config)


@pytest.mark.filterwarnings("ignore:.*groups have fewer than")
def test_only_compared_groups_count_against_too_many(config, tmp_path):
    frame = people(20_000)
    frame["origin"] = np.random.default_rng(1).integers(0, 30, size=20_000).astype(str)
    frame.to_parquet(tmp_path / "people.parquet")
    with pytest.raises(ValueError, match=r"`data.protected` makes 60 groups, too many to compare"):
        read_data(Experiment(config).config)
    frame.loc[frame.index % 7 > 0, "origin"] = "0"
    frame.to_parquet(tmp_path / "people.parquet")
    (comparison,) = read_data(Experiment(config).config).comparisons
    assert (len(comparison.groups), (~comparison.left_out).sum()) == (60, 2)


@pytest.fixture(scope="module")
def each(tmp_path_factory):
    folder = tmp_path_factory.mktemp("each")
    config = config_in(folder)
    config["evaluation"] |= {"groups": "each", "bootstrap": 20}
    config["data"]["min_group_size"] = 0
    return Experiment(config).run(folder / "store", n_jobs=1, isolated=False)


def test_every_attribute_has_columns_of_its_own(each):
    frame = each.frame
    for part in ("validation", "test"):
        for ratio in ("fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"):
            own = frame[[f"{part}_{ratio}[{name}]" for name in ("sex", "origin")]].to_numpy()
            np.testing.assert_array_equal(frame[f"{part}_{ratio}"], own.min(axis=1))
            assert frame[f"{part}_{ratio}[sex]_low"].notna().all()
    assert each.attributes == list(each.config.attributes) == ["sex", "origin"]


@pytest.mark.parametrize(
    ("attribute", "column", "title"),
    [
        (None, "test_fpr_ratio", "), on test rows"),
        ("sex", "test_fpr_ratio[sex]", ", sex, on test rows"),
        ("origin", "test_fpr_ratio[origin]", ", origin, on test rows"),
    ],
)
def test_frontiers_and_choices_are_those_of_the_attribute_asked_for(each, attribute, column, title):
    assert each.pareto("fpr_ratio", attribute=attribute)[column].max() == each.frame[column].max()
    points = each.comparable_points("fpr_ratio", attribute=attribute)
    np.testing.assert_array_equal(points[:, 1], each.frame[column])
    assert each.plot("fpr_ratio", attribute=attribute).to_dict()["title"].endswith(title)
    chosen_on = column.replace("test", "validation")
    line = float(each.frame[chosen_on].median())
    assert (each.select("fpr_ratio", line, attribute=attribute)[chosen_on] >= line).all()
    with pytest.raises(ValueError, match="`attribute` must be 'sex' or 'origin', got 'race'"):
        each.pareto("fpr_ratio", attribute="race")


def test_crossed_attributes_have_no_ratio_of_their_own(undisturbed):
    told = r'attributes of this experiment are crossed: set `evaluation.groups = "each"'
    with pytest.raises(ValueError, match=told):
        undisturbed[1].pareto("fpr_ratio", attribute="sex")


def test_interventions_keep_to_crossed_groups(config):
    config["data"]["min_group_size"] = 0
    weights = []
    for groups in ("crossed", "each"):
        config["evaluation"] = {"groups": groups}
        experiment = Experiment(config)
        trainer = Trainer(read_data(experiment.config), experiment.config)
        weights.append(trainer.training_set(Trial("RW")).weights)
    np.testing.assert_array_equal(*weights)
    assert len(np.unique(weights[0])) > 4


@pytest.mark.filterwarnings("ignore:Group.*(is|are) not compared", "ignore:.*group has fewer than")
def test_small_groups_are_found_for_each_attribute(config):
    config["evaluation"] = {"groups": "each"}
    data = read_data(Experiment(config).config)
    assert [(own.attribute, own.left_out.sum()) for own in data.comparisons] == [("sex", 0), ("origin", 1)]
    left_out = {entry["group"]: entry["attribute"] for entry in data.summary() if entry["left_out"]}
    assert left_out == {"origin='r'": "origin"}
    assert sum(entry["rows"] for entry in data.summary()) == 2 * 4000


def test_the_page_has_the_choice_of_attributes(each, tmp_path):
    each.report(tmp_path / "each.html")
    page = (tmp_path / "each.html").read_text()
    start = page.index('id="data">') + len('id="data">')
    content = json.loads(page[start : page.index("</script>", start)])
    assert content["attributes"] == ["all attributes (the lowest ratio)", "sex", "origin"]
    points = content["points"]
    assert len(points["views"]) == len(content["areas"]) == 4 * 3
    assert [view["ratio"] for view in points["views"][:3]] == [
        "fpr_ratio", "fpr_ratio[sex]", "fpr_ratio[origin]"
    ]  # fmt: skip
    least, *single = (points["metrics"][f"test_{view['ratio']}"] for view in points["views"][:3])
    assert len(least) == len(each.frame)
    assert least == [None if None in own else min(own) for own in zip(*single, strict=True)]
