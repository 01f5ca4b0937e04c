"""Targets and protected attributes as comparisons, and groups by names, in every command."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from tests.cli import program

from fado import OutOfBagEntropy, Valuation, explore_files, load_model, reweigh_files, sample_files
from fado.datasets import protected_from

N = 900
RNG = np.random.default_rng(0)
BAND = RNG.choice(["young", "65", "75", "unknown"], N, p=[0.5, 0.25, 0.2, 0.05])
SEX = RNG.choice([1, 2], N)
SKILL = RNG.normal(size=N)
FRAME = pd.DataFrame(
    {
        "age_65": np.where(BAND == "unknown", np.nan, BAND == "65"),
        "age_75": np.where(BAND == "unknown", np.nan, BAND == "75"),
        "sex": SEX,
        "skill": SKILL.round(2),
        "height": (170 + 9 * (SEX == 1) + 8 * RNG.normal(size=N)).round(),
    }
)
FRAME["amount"] = 1000 + 300 * SKILL + 200 * (SEX == 1) - 150 * (BAND == "75") + 200 * RNG.normal(size=N)
OLD = "age_65==1 | age_75==1"
SAID, NOT = "age_65 == 1 | age_75 == 1", "not (age_65 == 1 | age_75 == 1)"
TARGET = "amount >= 1100"
ASKED = ("--target", TARGET, "--protected", OLD, "--protected", "sex")
NAMES = ("--group-names", f"{OLD}: '65, and over', under 65", "--group-names", "sex: 1=men, 2=women")
LABELS = (FRAME["amount"] >= 1100).to_numpy()


def run(*words):
    return program.run(*words).stdout


def refused(*words):
    return program.refusal(program.run(*words, code=2))


def groups_in(printed):
    """The lines of printed tables: what stands before the first number, and the numbers."""
    lines = re.findall(r"^  (\S.*?)  +([\d., -]+)$", printed, re.M)
    return {name: numbers.split() for name, numbers in lines}


def data_of(page):
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def without_commands(attributes):
    return [
        {**own, "answers": [{**answer, "command": None} for answer in own["answers"]]} for own in attributes
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expressions")
    FRAME.to_parquet(folder / "all.parquet", index=False)
    (folder / "parts").mkdir()
    for part, rows in enumerate(np.array_split(np.arange(N), 2)):
        FRAME.iloc[rows].to_csv(folder / "parts" / f"{part}.csv", index=False)
    kept = ("--keep-probabilities", "--out", folder / "v.parquet")
    run("value", folder / "all.parquet", *ASKED, "--bags", 5, *kept)
    return folder


def test_values_are_those_of_true_and_false_and_the_target_is_no_feature(folder):
    valuation = Valuation.load(folder / "v.parquet")
    sees = FRAME.drop(columns="amount")
    hidden = {OLD: ["age_65", "age_75"], "sex": ["sex"]}
    expected = OutOfBagEntropy(n_bags=5, random_state=0, z_exclude=hidden)
    z = {OLD: protected_from(FRAME, OLD, named=True), "sex": FRAME["sex"]}
    with pytest.warns(UserWarning, match="is unknown in"):
        expected.fit(sees, LABELS, sensitive_features=z)
    pd.testing.assert_frame_equal(valuation.values, expected.valuation_.values, check_index_type=False)
    assert valuation.classes == {"y": (False, True), OLD: (SAID, NOT, "unknown"), "sex": (1, 2)}
    assert valuation.provenance.split_gains.columns == tuple(sees)
    assert valuation.provenance.made_for.target == "amount>=1100"


def test_value_prints_the_same_groups_in_memory_and_in_parts(folder, tmp_path):
    asked = (*ASKED, *NAMES, "--bags", 5, "--out")
    whole = run("value", folder / "all.parquet", *asked, tmp_path / "v.parquet")
    parts = run("value", folder / "parts", *asked, tmp_path / "v")
    known = protected_from(FRAME, OLD)
    sizes = {"65, and over": (known == True).sum(), "under 65": (known == False).sum()}  # noqa: E712
    sizes |= {"unknown": known.isna().sum(), "men": (SEX == 1).sum(), "women": (SEX == 2).sum()}
    for printed in (whole, parts):
        found = groups_in(printed)
        assert {name: int(numbers[0]) for name, numbers in found.items()} == sizes
        assert float(found["men"][2]) == pytest.approx(LABELS[SEX == 1].mean(), abs=5e-4)
    assert "Columns that are not features: amount" in whole
    one, other = Valuation.load(tmp_path / "v.parquet"), Valuation.load(tmp_path / "v")
    assert one.classes == other.classes == Valuation.load(folder / "v.parquet").classes  # names are not kept


def test_names_are_given_where_groups_are_shown(folder, tmp_path):
    """What costs the ratio is told from probabilities of groups, which the values hold without names."""
    asked = ("explore", folder / "all.parquet", "--values", folder / "v.parquet", *ASKED)
    asked = (*asked, "--retrain", 0, "--out")
    printed = run(*asked, tmp_path / "named.html", *NAMES)
    assert "“men”" in printed
    assert "“under 65”" in printed
    run(*asked, tmp_path / "said.html")
    said, named = (data_of(tmp_path / name)["attributes"] for name in ("said.html", "named.html"))
    assert {*said[0]["aim"]["groups"]} == {SAID, NOT}
    assert {*named[0]["aim"]["groups"]} == {"65, and over", "under 65"}
    assert named[1]["aim"]["groups"] == ["men", "women"]
    for attribute, other in zip(said, named, strict=True):
        for ratio, same in zip(attribute["aim"]["ratios"], other["aim"]["ratios"], strict=True):
            assert [point["tpr"] for point in ratio["points"]] == pytest.approx(
                [point["tpr"] for point in same["points"]], abs=0.02
            )


def test_values_that_explore_makes_hide_what_attributes_are_made_of(folder, tmp_path):
    """Together the columns say the attribute, and no one of them does so alone."""
    asked = (
        "explore",
        folder / "all.parquet",
        *ASKED,
        *NAMES,
        "--retrain",
        0,
        "--out",
        tmp_path / "page.html",
    )
    printed = run(*asked)
    attribute = data_of(tmp_path / "page.html")["attributes"][0]
    left_out = {own["name"] for own in attribute["columns"]["columns"] if own["left_out"]}
    assert left_out == {"age_65", "age_75"}
    (command,) = {line.strip() for line in printed.splitlines() if "fado aim" in line}
    assert "--protected sex --group-names 'sex: 1=men, 2=women'" in command
    assert "under 65" not in command


def test_explore_in_parts_has_the_groups_of_memory(folder, tmp_path):
    run("value", folder / "parts", *ASKED, "--bags", 5, "--out", tmp_path / "v")
    asked = ("--values", tmp_path / "v", *ASKED, *NAMES, "--retrain", 0, "--out")
    run("explore", folder / "parts", *asked, tmp_path / "parts.html")
    run("explore", folder / "all.parquet", *asked, tmp_path / "whole.html")
    parts, whole = data_of(tmp_path / "parts.html"), data_of(tmp_path / "whole.html")
    assert without_commands(parts["attributes"]) == without_commands(whole["attributes"])
    assert '"name": "amount"' not in json.dumps(whole["attributes"])
    names = {OLD: ["65, and over", "under 65"], "sex": {1: "men", "2": "women"}}
    seen = explore_files(
        folder / "parts",
        values=tmp_path / "v",
        target=TARGET,
        protected=[OLD, "sex"],
        group_names=names,
        retrain=0,
    )
    seen.write_html(tmp_path / "python.html")
    python = data_of(tmp_path / "python.html")["attributes"]
    assert without_commands(python) == without_commands(whole["attributes"])


@pytest.mark.filterwarnings("ignore::UserWarning")  # of missing entries and small groups
@pytest.mark.parametrize(("command", "function"), [("sample", sample_files), ("reweigh", reweigh_files)])
def test_what_is_changed_is_the_same_in_memory_and_in_parts(folder, tmp_path, command, function):
    asked = (*ASKED, *NAMES, "--values", folder / "v.parquet", "--alpha", 0.5, "--out")
    whole = run(command, folder / "all.parquet", *asked, tmp_path / "memory.parquet")
    parts = run(command, folder / "parts", *asked, tmp_path / "parts.parquet")
    assert parts.rsplit(" written to ", 1)[0] == whole.rsplit(" written to ", 1)[0]
    wanted = f"{OLD} = 65, and over, sex = men"
    both = (protected_from(FRAME, OLD) == True) & (SEX == 1)  # noqa: E712
    assert int(groups_in(whole)[wanted][0]) == both.sum()
    plain = run(command, folder / "all.parquet", *ASKED, *asked[-5:], tmp_path / "plain.parquet")
    assert int(groups_in(plain)[f"{SAID}, sex = 1"][0]) == both.sum()
    written = [pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("memory", "parts", "plain")]
    assert all(table.shape == written[0].shape for table in written)
    named = function(
        folder / "parts",
        target=TARGET,
        protected=[OLD, "sex"],
        values=folder / "v.parquet",
        out=tmp_path / "python",
        group_names={"sex": {1: "men"}},
    )
    shown = {"unknown", *(f"{old}, sex = {sex}" for old in (SAID, NOT) for sex in ("men", "2"))}
    assert {own.title for own in named.groups} == shown


def test_made_rows_have_the_labels_and_groups_that_their_columns_say(folder, tmp_path):
    asked = (*ASKED, *NAMES, "--values", folder / "v.parquet", "--out", tmp_path / "made.parquet")
    printed = run("generate", folder / "all.parquet", *asked)
    made = pd.read_parquet(tmp_path / "made.parquet")
    assert list(made) == [*FRAME, "synthetic"]
    new = made[made["synthetic"]]
    assert len(new)
    assert (new["amount"] >= 1100).all()
    counts = groups_in(printed)
    old, sex = protected_from(new, OLD), new["sex"]
    for title, which in (("65, and over", old == True), ("under 65", old == False)):  # noqa: E712
        for name, code in (("men", 1), ("women", 2)):
            assert int(counts[f"{OLD} = {title}, sex = {name}"][1]) == (which & (sex == code)).sum()


def test_an_aimed_model_never_sees_what_the_target_is_made_of(folder, tmp_path):
    asked = ("--target", TARGET, "--protected", OLD, "--drop", "sex", "--max-fpr", 0.2)
    named = ("--group-names", f"{OLD}: older people, others")
    printed = run("aim", folder / "all.parquet", *asked, *named, "--out", tmp_path / "m")
    assert {"older people", "others"} <= {*re.findall(r"^  (\S.*?)  ", printed, re.M)}
    assert "older people" in (tmp_path / "m" / "card.md").read_text(encoding="utf-8")
    model = load_model(tmp_path / "m")
    assert (model.facts_.target, model.facts_.protected) == ("amount>=1100", (OLD,))
    assert model.feature_names_in_.tolist() == ["age_65", "age_75", "skill", "height"]
    assert model.classes_.tolist() == [False, True]
    scored = ("predict", tmp_path / "m", folder / "all.parquet", "--out", tmp_path / "s.parquet")
    checked = run(*scored, *asked[:4], *named)
    z = protected_from(FRAME, OLD, named=True).map({SAID: "older people", NOT: "others"})
    assert model.check(FRAME, LABELS, {OLD: z}).sentence in checked
    assert "The line is between" not in checked
    assert pd.read_parquet(tmp_path / "s.parquet")["decision"].tolist() == model.predict(FRAME).tolist()
    assert "`--group-names` names groups of `--protected`: give both." in refused(*scored, *named)


def test_a_frontier_has_named_groups(folder, tmp_path):
    asked = ("--target", TARGET, "--protected", "sex==1", "--drop", "sex", "--max-fits", 2, "--jobs", 1)
    named = ("--group-names", "sex == 1: men, women", "--max-fpr", 0.2, "--out", tmp_path / "m")
    printed = run("frontier", folder / "all.parquet", *asked, *named)
    assert {"men", "women"} <= {*re.findall(r"^  (\S.*?)  ", printed, re.M)}
    assert load_model(tmp_path / "m").feature_names_in_.tolist() == ["age_65", "age_75", "skill", "height"]


def test_shares_are_asked_for_by_what_groups_are_called(folder, tmp_path):
    FRAME.drop(columns="amount").to_parquet(tmp_path / "pool.parquet")
    asked = ("query", folder / "all.parquet", tmp_path / "pool.parquet", "--target", TARGET, "--bags", 5)
    asked = (*asked, "--n", 20, "--out", tmp_path / "q.parquet", "--protected", "sex==1 & height>=175")
    for words in (
        ("--shares", "sex==1 & height>=175=6"),
        ("--shares", "tall men=6", "--group-names", "sex==1 & height>=175: tall men, others"),
    ):
        run(*asked, *words)
        chosen = pd.read_parquet(tmp_path / "q.parquet")
        assert ((chosen["sex"] == 1) & (chosen["height"] >= 175)).sum() == 6
    run(*asked, "--protected", "skill>=0", "--shares", "sex==1 & height>=175=6")
    chosen = pd.read_parquet(tmp_path / "q.parquet")
    assert ((chosen["sex"] == 1) & (chosen["height"] >= 175)).sum() == 6


def test_kept_models_know_the_groups_of_new_rows(folder, tmp_path):
    asked = ("--target", TARGET, "--protected", OLD)
    models = ("--models", tmp_path / "models", "--out", tmp_path / "v.parquet")
    run("value", folder / "all.parquet", *asked, "--group-names", f"{OLD}: old, young", "--bags", 5, *models)
    FRAME.iloc[:300].to_parquet(tmp_path / "new.parquet")
    run("value", tmp_path / "new.parquet", *asked, *models)
    assert np.isfinite(Valuation.load(tmp_path / "v.parquet").label_probability[OLD]).all()
    named = ("--group-names", f"{OLD}: old, young")
    assert "leave out `--group-names`" in refused("value", tmp_path / "new.parquet", *asked, *models, *named)


def test_models_that_were_kept_in_python_know_true_and_false(folder, tmp_path):
    known = FRAME[BAND != "unknown"].drop(columns="amount")
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, keep_models=True, z_exclude=["age_65", "age_75"])
    y = LABELS[BAND != "unknown"]
    valuator.fit(known, y, sensitive_features={OLD: protected_from(known, OLD)}).models_.save(tmp_path / "m")
    known.iloc[:200].to_parquet(tmp_path / "new.parquet")
    asked = ("--models", tmp_path / "m", "--protected", OLD, "--out", tmp_path / "v.parquet")
    run("value", tmp_path / "new.parquet", *asked)
    assert np.isfinite(Valuation.load(tmp_path / "v.parquet").label_probability[OLD]).all()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--protected", "age_65==1 | age_85==1"), "`--protected` must name .* got 'age_85'; did you"),
        (("--protected", "(sex==1 | age_65==1"), "`--protected` must have '&', .* at the end, got"),
        (("--protected", "sex==1) | age_65==1"), "`--protected` must have .* the end at position 7"),
        (("--protected", "sex==man"), "`--protected` must compare 'sex', a column of numbers, with a number"),
        (("--protected", "sex==1 | sex==2"), "`--protected` 'sex==1 | sex==2' is true in every row"),
        (("--protected", "amount>=500"), "`--protected` names 'amount', of which the target is made, so"),
        (("--target", "amount>=9999"), "`--target` 'amount>=9999' is true in no row"),
        (("--target", "amount>="), "`--target` must have a value .* at the end"),
        (("--target", "amount=high"), "`--target` must compare 'amount', a column of numbers, with a number"),
        (("--weight", "amount"), "`--weight` names 'amount', of which the target is made"),
        (("--drop", "amount"), "`--drop` names 'amount', of which the target is made"),
        (("--exclude", "amount"), "`--exclude` names 'amount', of which the target is made"),
        (("--group-names", "sex: 3=x"), "`--group-names` of 'sex' names '3', which no row has; its"),
        (("--group-names", "sex: men, women"), "`--group-names` of 'sex' must say which group each name"),
        (("--group-names", "height: 1=x"), "`--group-names` must begin with an attribute of `--prot"),
        (("--group-names", "sex"), "`--group-names` must begin with an attribute"),
        (("--group-names", "sex: 1=men, women"), ".* must have a group and '=' before every name, each"),
        (("--group-names", "sex: 1=men, 1=boys"), ".* must have a group and '=' before every name, each"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(folder, tmp_path, more, sentence):
    target = () if "--target" in more else ("--target", TARGET)
    protected = () if "--protected" in more else ("--protected", "sex")
    for data, out in (("all.parquet", "v.parquet"), ("parts", "v")):
        told = refused("value", folder / data, *target, *protected, *more, "--out", tmp_path / out)
        assert re.match(sentence.replace("|", r"\|"), told), told
        if "is true in" not in sentence:  # which all rows say
            assert not (tmp_path / out).exists()


def test_a_group_is_named_once(folder, tmp_path):
    twice = ("--group-names", "sex: 1=men", "--group-names", "sex : 2=women", "--out", tmp_path / "v.parquet")
    told = refused("value", folder / "all.parquet", *ASKED, *twice)
    assert told == "`--group-names` names the groups of 'sex' twice: name them once."
