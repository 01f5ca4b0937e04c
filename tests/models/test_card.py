"""The card tells what is known, and nothing from the data changes anything around it."""

import json
import re
from datetime import date

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.models.made import LATE, SEX, Stub, X, chosen, facts_of, fitted, remade

from fado import load_model
from fado.engine import Schema
from fado.metrics import Budget
from fado.models import Facts, GroupRates
from fado.models._card import card_content
from fado.reporting import card_text, render_page
from fado.tabular import Groups

MEASURED = {
    "validation": {
        "tpr": 0.61234, "tpr_low": 0.55, "tpr_high": 0.66,
        "fpr": 0.05, "fpr_low": 0.04, "fpr_high": 0.06,
        "fpr_ratio": 0.84, "fpr_ratio_low": 0.79, "fpr_ratio_high": 0.9,
        "fnr_ratio": 0.7, "fnr_ratio_low": float("nan"), "fnr_ratio_high": float("nan"),
        "tpr_ratio": 0.75, "selection_rate_ratio": float("nan"),
    },
    "test": {"tpr": 0.6, "fpr_ratio": 0.81},
}  # fmt: skip


def section(text, title):
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_card_tells_what_is_known():
    text = chosen(measured=MEASURED, left_out=["x"], intervention="RW").card()
    assert (
        "The model predicts 'late'. Required was a fpr_ratio of at least 0.8 between the groups of 'sex', "
        "at a false-positive rate of at most 10 %."
    ) in text
    decides = section(text, "How decisions are made")
    assert "One model decides from the features alone." in decides
    assert "Every row gets a score, which ranks rows and is not a probability." in decides
    assert "a false-positive rate of at most 10 %" in decides
    assert "The group of a row is not needed" in decides
    assert "4 columns: 'debts', 'town', 'home', 'flag'.\n\nNone of them is a protected attribute" in decides
    assert "from 7 candidates, with 12 fits" in section(text, "What was tried")
    reached = section(text, "All measurements")
    assert "In brackets: 95 % intervals" in reached
    assert "| metric | validation rows | test rows |" in reached
    assert "| true-positive rate | 0.612 (0.550 to 0.660) | 0.600 |" in reached
    assert "false-positive rates) | 0.840 (0.790 to 0.900) | 0.810 |" in reached
    assert "opportunity (ratio of false-negative rates) | 0.700 | undefined |" in reached
    assert "Demographic parity (ratio of selection rates) | undefined | undefined |" in reached
    limits, made = section(text, "Limits"), section(text, "How it was made")
    for told in ("regularly on new data", "only for fpr_ratio", "not prove", "the best of 7 candidates"):
        assert told in limits
    assert "groups that were not compared" in limits
    for told in ("| estimator: num_leaves | 7 |", "| intervention: strength | 0.25 |", "| seed | 3 |"):
        assert told in made


def test_the_card_counts_rows_and_rates_by_group():
    groups = Groups(np.repeat([0, 1, 2], [40, 20, 9]), ("'a'", "'b'", "'c'"), ("a", "b", "c"))
    positive = np.arange(69) % 4 == 0
    counted = [*GroupRates.of("training", positive, groups), GroupRates("test", "a", 1_234, 617)]
    told = section(chosen(groups=counted).card(), "Data and groups")
    assert "| a | 40 | 0.2500 | 1,234 | 0.5000 |" in told
    assert "| b | 20 | 0.2500 | 0 |  |" in told
    assert "| c | fewer than 10 |  | 0 |  |" in told
    assert "69" not in told


def test_numbers_of_a_few_people_are_kept_nowhere():
    few = GroupRates("training", "c", 9, 2, {"tpr": 0.5})
    assert (few.rows, few.positives, few.after) == (None, None, {})
    facts = facts_of(groups=[few, GroupRates("training", "d", 10, 0)])
    told = [list(own.values()) for own in facts.to_plain()["groups"]]
    assert told == [["training", "c", None, None], ["training", "d", 10, 0]]
    assert Facts.from_plain(json.loads(json.dumps(facts.to_plain()))).to_plain() == facts.to_plain()


def test_a_line_that_was_missed_is_told_with_its_reason():
    why = "The columns tell nothing of the group."
    text = chosen(reached=False, why=why, confidence=0.9, models=1).card()
    assert "between the groups of 'sex', with 90 % confidence" in text
    assert f"\n\n{why}\n\n" in text
    assert "In brackets: 80 % intervals" in text
    assert "candidates" not in section(text, "Limits")


def test_columns_that_determine_the_attribute_are_named():
    told = section(chosen(giveaways=["town", "flag"]).card(), "How decisions are made")
    assert "'town', 'flag' each alone determine a protected attribute." in told
    assert "None of them" not in told
    one = section(chosen(giveaways=["town", "flag"], protected=["town"]).card(), "How decisions are made")
    assert "'flag' alone determines a protected attribute." in one


def test_models_of_arrays_and_budgets_of_other_kinds_read_well():
    model, _ = fitted(X[["debts"]].to_numpy())
    text = chosen(model, budget=Budget("top_k", 500), measured={}, groups=[]).card()
    assert "1 column without names." in text
    assert "the 500 rows of highest score" in text
    assert "Nothing was measured." in text


NASTY = [
    "# x",
    "a\n# b",
    "a\r\n\r\n- b",
    "| b | c |",
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "![a](http://example.com/x.png)",
    "`a` **b** _c_ ~~d~~ $e$ \\",
    "&lt;b&gt;",
    "\u202eabc\u2066\x1b[31m\x00",
    "1. a",
    "    code",
    "https://example.com www.example.com a@example.com",
    "---",
    "\ud800",
]


def nasty_card(name):
    groups = [
        GroupRates("training", name, 50, 5),
        GroupRates("training", "b", 20, 3),
        GroupRates(name, name, 50, 5, {"tpr": 0.5}, {"tpr": 0.4}),
    ]
    facts = facts_of(
        target=name, protected=[name], groups=groups, left_out=[name], chosen=name, why=name, reached=False,
        estimator=name, parameters={name: name}, settings={name: name}, intervention=name,
        measured={name: {"tpr": 0.5}}, giveaways=[name], stated={"purpose": name, "date": name},
    )  # fmt: skip
    return remade(chosen(), classes=(name, "other"), threshold=0.5, facts=facts)


def kinds(text):
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    found = []
    for token in markdown.parse(text):
        found.append((token.type, token.tag))
        if token.type == "inline":
            found += [(child.type, child.tag) for child in token.children if child.type != "text_special"]
    # Escapes cut a text into pieces, which mean nothing.
    return [kind for j, kind in enumerate(found) if j == 0 or kind != ("text", "") or found[j - 1] != kind]


@pytest.mark.parametrize("name", NASTY, ids=ascii)
def test_names_change_nothing_of_the_structure_of_the_text(name):
    text = nasty_card(name).card()
    assert kinds(text) == kinds(nasty_card("plain").card())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069\ud800]", text)
    text.encode()


@pytest.mark.parametrize("name", NASTY, ids=ascii)
def test_names_change_nothing_of_the_page(name, tmp_path):
    nasty_card(name).card_page(tmp_path / "card.html")
    nasty_card("plain").card_page(tmp_path / "plain.html")
    page, plain = ((tmp_path / own).read_text(encoding="utf-8") for own in ("card.html", "plain.html"))
    words = re.compile(r">[^<]*<|data-label=\"[^\"]*\"")
    assert words.sub("", page) == words.sub("", plain)
    assert "b</bdi></div></td>" in page  # its second group


def test_the_page_and_the_text_tell_the_same(tmp_path):
    model = chosen(measured=MEASURED)
    model.card_page(tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    content = json.loads(json.dumps(model.card("dict")))
    assert card_text(content) == model.card()
    assert render_page("card.html", content) == page == model.card("html")
    with pytest.raises(ValueError, match="`format` must be 'markdown' or 'html' or 'dict', got 'pdf'"):
        model.card("pdf")
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=|https?://", page)
    with pytest.raises(ValueError, match=r"must end in \.html"):
        model.card_page(tmp_path / "card.txt")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"ratio": "ratio"}, "`ratio` must be one of"),
        ({"at_least": 1.2}, "`at_least` must be in"),
        ({"confidence": 0.5}, "`confidence` must be above 0.5"),
        ({"confidence": 1.0}, "`confidence` must be above 0.5"),
        ({"budget": ("fpr", 0.05)}, r"`budget` must be a fado\.metrics\.Budget"),
    ],
)
def test_facts_that_cannot_be_are_refused(changes, match):
    with pytest.raises((ValueError, TypeError), match=match):
        facts_of(**changes)


def test_settings_of_any_kind_are_kept_as_plain_data():
    class Own:
        pass

    settings = {"n": np.int64(3), "rate": np.float32(0.5), "steps": (1, [None, "a"]), "own": Own(), 4: Own}
    facts = facts_of(settings=settings | {"values": np.array([1.5, 2.0])}, parameters={"missing": np.nan})
    plain = {"n": 3, "rate": 0.5, "steps": [1, [None, "a"]], "own": "Own", "4": "Own"}
    assert facts.settings == plain | {"values": [1.5, 2.0]}
    told = json.dumps(facts.to_plain(), allow_nan=False)
    assert np.isnan(Facts.from_plain(json.loads(told)).parameters["missing"])


TESTED = {
    "validation": {"fpr_ratio": 0.85, "fpr_ratio_low": 0.81, "fpr_ratio_high": 0.9, "fpr": 0.05},
    "test": {"fpr_ratio": 0.7, "fpr_ratio_low": 0.6, "fpr_ratio_high": 0.79, "fpr": 0.055},
}
FIVE = Budget("fpr", 0.05)


def lead_of(**changes):
    return chosen(**{"measured": TESTED, "budget": FIVE} | changes).card("dict")["lead"]


def test_the_verdict_is_that_of_test_rows():
    """Validation rows say that the line is reached; test rows say something else, and come first."""
    assert lead_of()[:4] == [
        "On test rows, which were not used to make the model, the line is missed, budget exceeded by the "
        "estimate: 5.5 % for 5 %; fpr_ratio 0.700 (95 % interval 0.600 to 0.790), at least 0.8 required.",
        "On test rows the budget is exceeded: false-positive rate 0.055, at most 0.05 allowed.",
        "On validation rows, which selected the model, the line is reached: fpr_ratio 0.850 (95 % interval "
        "0.810 to 0.900), at least 0.8 required.",
        "On validation rows the budget is kept: false-positive rate 0.050, at most 0.05 allowed.",
    ]
    assert chosen(measured=TESTED, budget=FIVE).card("dict")["verdict"] == {
        "rows": "test",
        "outcome": "missed, budget exceeded by the estimate",
        "colour": "bad",
        "level": 0.95,
        "confidence": None,
        "ratios": {"fpr_ratio": {"line": 0.8, "value": 0.7, "low": 0.6, "high": 0.79}},
        "budget_kept": False,
    }


@pytest.mark.parametrize(
    ("ends", "outcome", "beside"),
    [
        ((0.85, 0.81, 0.9), "reached", "95 % interval 0.810 to 0.900"),
        ((0.85, 0.79, 0.9), "reached by the estimate", "95 % interval 0.790 to 0.900"),
        ((0.75, 0.7, 0.8), "missed by the estimate", "95 % interval 0.700 to 0.800"),
        ((0.75, 0.7, 0.79), "missed", "95 % interval 0.700 to 0.790"),
        ((0.85, np.nan, np.nan), "reached by the estimate", "no interval"),
        ((0.85, 0.81, np.nan), "reached", "lower bound 0.810 at 97.5 % confidence"),
        ((np.nan,) * 3, None, None),
    ],
)
def test_a_verdict_says_whether_it_is_sure(ends, outcome, beside):
    test = dict(zip(("fpr_ratio", "fpr_ratio_low", "fpr_ratio_high"), ends, strict=True))
    card = chosen(measured={"test": test}).card("dict")
    assert card["verdict"]["outcome"] == outcome
    sure = "" if outcome in ("reached", "missed") else ", but not for sure"
    said = f"the line is {outcome}{sure}: fpr_ratio {ends[0]:.3f} ({beside})"
    if outcome is None:
        said = "whether the line is reached is undecided: fpr_ratio is undefined"
    where = "On test rows, which were not used to make the model"
    assert card["lead"][0] == f"{where}, {said}, at least 0.8 required."


def test_the_worst_of_several_lines_is_the_verdict():
    lines = {"fpr_ratio": 0.8, "tpr_ratio": 0.9}
    test = {"fpr_ratio": 0.85, "fpr_ratio_low": 0.81, "fpr_ratio_high": 0.9, "tpr_ratio": 0.8}
    card = chosen(measured={"test": test}, lines=lines).card("dict")
    assert card["verdict"]["outcome"] == "missed by the estimate"
    assert card["lead"][0] == (
        "On test rows, which were not used to make the model, the lines are missed by the estimate, but not "
        "for sure: fpr_ratio 0.850 (95 % interval 0.810 to 0.900), at least 0.8 required; tpr_ratio 0.800 "
        "(no interval), at least 0.9 required."
    )


def test_the_card_and_a_check_of_the_same_rows_agree():
    """One interval, and no verdict of the one that the other denies."""
    model = chosen()
    check = model.check(X, np.where(LATE, "yes", "no"), SEX)
    card = remade(model, facts=facts_of(measured={"test": check.metrics})).card("dict")
    told = check.sentence.partition(": ")[2].partition(" required.")[0]
    assert card["lead"][0].endswith(f": {told} required.")
    sure = {"reached": True, "missed": False}
    assert sure.get(card["verdict"]["outcome"]) is check.held
    assert card["verdict"]["budget_kept"] is check.budget_kept


def test_the_bound_that_decides_stands_beside_the_verdict():
    """The ratio is above the line, its bound at 90 % is not; a 95 % interval is nowhere."""
    told = {"fpr_ratio": 0.85, "fpr_ratio_low": 0.78, "fpr_ratio_high": 0.93}
    measured = {"validation": told, "test": told | {"fpr_ratio_low": 0.79996}}
    text = chosen(measured=measured, confidence=0.9, reached=False).card()
    assert (
        "On test rows, which were not used to make the model, the line is reached by the estimate, but not "
        "with 90 % confidence: fpr_ratio 0.85000 (80 % interval 0.79996 to 0.93000, each end at 90 % "
        "confidence), at least 0.8 required."
    ) in text
    assert "fpr_ratio 0.850 (80 % interval 0.780 to 0.930, each end at 90 % confidence), at least 0.8" in text
    assert "95 %" not in text
    assert "| 0.850 (0.780 to 0.930) |" in section(text, "All measurements")


OPTIMISTIC = "rows selected the model and its threshold, so figures on them are optimistic."


@pytest.mark.parametrize(
    ("part", "first", "then"),
    [
        ("validation", "On validation rows, the line is reached", f"Validation {OPTIMISTIC}"),
        ("test", "On test rows, the line is missed", f"Test {OPTIMISTIC}"),
        (None, "There are no test rows", "On the rows that selected the model, the line was reached."),
    ],
)
def test_rows_that_chose_are_called_so(part, first, then):
    measured = {part: TESTED[part]} if part else {}
    lead = lead_of(measured=measured, chosen_on=part or "validation")
    assert lead[0].startswith(first)
    assert then in lead
    assert any("There are no test rows" in text for text in lead) is (part != "test")


def test_a_budget_that_is_hardly_exceeded_shows_it():
    test = TESTED["test"] | {"fpr": 0.05004, "fpr_low": 0.046, "fpr_high": 0.055}
    told = chosen(measured={"test": test}, budget=FIVE).card("dict")
    exceeded = "exceeded: false-positive rate 0.05004 (95 % interval 0.04600 to 0.05500), at most"
    assert exceeded in told["lead"][1]
    row = ["false-positive rate", "at most 0.05", "0.05004 (0.04600 to 0.05500) exceeded"]
    assert told["sections"][0]["rows"][-1] == row
    few = chosen(measured={"test": {"selected": 510.0}}, budget=Budget("top_k", 500)).card("dict")
    assert few["lead"][1] == "On test rows the budget is exceeded: 510 rows selected, at most 500 allowed."


@pytest.mark.parametrize(
    ("low", "fpr", "outcome", "colour", "over"),
    [
        (0.81, (0.05, 0.04, 0.06), "reached", "good", ""),
        (0.81, (0.067, 0.06, 0.075), "reached, budget exceeded", "bad", ": 6.7 % for 5 %"),
        (
            0.81,
            (0.0504, 0.046, 0.055),
            "reached, budget exceeded by the estimate",
            "open",
            " by the estimate: 5.04 % for 5 %",
        ),
        (0.7, (0.067, 0.06, 0.075), "reached by the estimate, budget exceeded", "bad", ": 6.7 % for 5 %"),
    ],
    ids=["kept", "over", "over by the estimate", "both unsure"],
)
def test_no_verdict_says_reached_alone_if_the_budget_is_broken(low, fpr, outcome, colour, over):
    ends = ("", "_low", "_high")
    test = {f"fpr_ratio{end}": number for end, number in zip(ends, (0.9, low, 1.0), strict=True)}
    test |= {f"fpr{end}": number for end, number in zip(ends, fpr, strict=True)}
    model = chosen(measured={"test": test}, budget=FIVE)
    card = model.card("dict")
    assert (card["verdict"]["outcome"], card["verdict"]["colour"]) == (outcome, colour)
    reached = "reached" if low > 0.8 else "reached by the estimate, but not for sure"
    broken = f", budget exceeded{over};" if over else ":"
    where = "On test rows, which were not used to make the model"
    assert card["lead"][0].startswith(f"{where}, the line is {reached}{broken} fpr_ratio 0.900 (")
    assert repr(model).endswith(f"reached, budget on test rows exceeded{over})" if over else "reached)")


def test_before_and_after_of_every_group():
    """20 women, 10 of them positive, and 9 men, who are too few to be shown."""
    groups = Groups(np.repeat([0, 1], [20, 9]), ("'f'", "'m'"), ("women", "men"))
    positive, rows = np.arange(29) % 2 == 0, np.arange(29)
    rates = GroupRates.of("test", positive, groups, rows < 5, rows < 10)
    before = {"test": {"fpr_ratio": 0.5, "fpr": 0.04}}
    model = chosen(measured=TESTED, before=before, groups=rates, budget=FIVE)
    first, second = model.card("dict")["sections"][:2]
    assert first["header"] == ["metric", "required", "untouched model", "this model"]
    equality = "fpr_ratio: Predictive equality (ratio of false-positive rates)"
    assert first["rows"] == [
        [equality, "at least 0.8", "0.500 missed", "0.700 (0.600 to 0.790) missed"],
        ["false-positive rate", "at most 0.05", "0.040", "0.055 exceeded"],
    ]
    # Clopper and Pearson's limits, as scipy.stats.binomtest gives them.
    limits = {n: binomtest(n, of).proportion_ci() for n, of in ((5, 10), (3, 10), (2, 10))}
    shares = {n: f"{n / 10:.3f} ({own.low:.3f} to {own.high:.3f})" for n, own in limits.items()}
    quarter, half = (binomtest(n, 20).proportion_ci() for n in (5, 10))
    untouched = [shares[5], shares[5], f"0.500 ({half.low:.3f} to {half.high:.3f})"]
    after = [shares[3], shares[2], f"0.250 ({quarter.low:.3f} to {quarter.high:.3f})"]
    assert second["rows"] == [
        ["women", "20", "10", "untouched", *untouched],
        ["women", "20", "10", "this model", *after],
        ["men", "fewer than 10", "", "", "", "", ""],
    ]


def test_weights_make_intervals_wider():
    groups = Groups(np.zeros(20, dtype=int), ("'f'",), ("f",))
    positive, decided = np.arange(20) % 2 == 0, np.arange(20) < 10
    even, uneven = (
        GroupRates.of("test", positive, groups, decided, None, weights, 0.8)[0].after
        for weights in (np.full(20, 3.0), np.where(np.arange(20) % 4 < 2, 3.0, 1.0))
    )
    low, high = binomtest(10, 20).proportion_ci(0.8)
    assert (even["selection_rate_low"], even["selection_rate_high"]) == pytest.approx((low, high))
    assert uneven["selection_rate_high"] - uneven["selection_rate_low"] > high - low


def test_an_untouched_model_that_passed_has_nothing_to_do():
    passed = {"test": TESTED["validation"], "validation": TESTED["validation"]}
    rates = [GroupRates("test", "f", 30, 5, {"tpr": 0.5}, {"tpr": 0.5})]
    model = chosen(intervention="", measured=passed, before=passed, groups=rates)
    content = model.card("dict")
    assert "Nothing to do: the untouched model reaches the line." in content["lead"]
    assert content["sections"][0]["header"] == ["metric", "required", "this model"]
    assert [row[3] for row in content["sections"][1]["rows"]] == ["this model"]
    missed = lead_of(intervention="")
    assert "Nothing was done: on validation rows the untouched model reaches the line." in missed
    assert not any("Nothing" in own for own in lead_of() + lead_of(intervention="", reached=False))


def test_a_threshold_that_was_set_again_is_called_so():
    model = chosen()
    at = model.threshold_
    thresholds = {"validation": at, "test": 0.9, "later": at}
    measured = {part: {"tpr": 0.5, "threshold": one} for part, one in thresholds.items()}
    told = section(chosen(measured=measured).card(), "All measurements")
    here = f"at the model's threshold, {at:.6g}, which the budget set on validation rows."
    assert f"On validation rows it was measured {here}" in told
    assert (
        "On test rows it was measured at a threshold of 0.9, which was set again on them (the model decides "
        f"at {at:.6g})."
    ) in told
    assert f"On later rows it was measured {here}" in told
    measured["validation"]["threshold"] = 0.9
    again = section(chosen(measured=measured).card(), "All measurements")
    assert "On validation rows it was measured at a threshold of 0.9, before the model was refitted" in again
    assert f"at the model's threshold, {at:.6g}, moved from 0.9 when the model was refitted." in again


def decides(scorer, **changes):
    content = card_content(facts_of(**changes), ("no", "yes"), 0.5, scorer)
    return next(part for part in content["sections"] if part["title"] == "How decisions are made")["texts"]


RANKS = "which ranks rows and is not a probability"


@pytest.mark.parametrize(
    ("intervention", "kind", "said", "by"),
    [
        ("", "lightgbm", "the probability that its estimator gives to", "One model decides from the"),
        ("of a plug-in", "combined", RANKS, "Two models decide"),
        ("student", "student", RANKS, "features alone: a student"),
        ("uar", "lightgbm", RANKS, "One model decides from the"),
    ],
)
def test_the_model_itself_says_how_decisions_are_made(intervention, kind, said, by):
    scorer = Stub()
    scorer.kind = kind
    texts = decides(scorer, intervention=intervention)
    assert said in texts[1]
    assert by in texts[0]


@pytest.mark.parametrize(
    ("attribute", "columns"),
    [
        ("age", {"age"}),
        ("my age", set()),
        ("(age >= 50)", {"age"}),
        ("age_65 == 1 | age_75 == 1", {"age_65", "age_75"}),
        ("sex=f and ('the job' in [clerk, age] || age!=5)", {"sex", "the job", "age"}),
        ("AGE < 5", set()),
    ],
)
def test_columns_of_an_expression_are_named(attribute, columns):
    names = ("age", "age_65", "age_75", "sex", "the job", "clerk")
    scorer = Stub()
    scorer.schema = Schema(names, (None,) * len(names), named=True)
    texts = decides(scorer, protected=[attribute])
    listed = next((text for text in texts if text.startswith("They include")), "").split(", from which")[0]
    assert {name for name in names if repr(name) in listed} == columns
    assert any("None of them is a protected attribute" in text for text in texts) is (not columns)


def test_people_state_what_only_they_know(tmp_path):
    model = chosen()
    assert "- Purpose: not stated\n- Owner: not stated\n- Data: not stated\n" in model.card()
    text = model.card(purpose="Who is called", date=date(2030, 1, 2))
    assert text.startswith("# Model card\n\n- Purpose: Who is called\n- Owner: not stated\n")
    assert "- Date: 2030-01-02" in text
    assert model.facts_.stated == {}
    model.save(tmp_path / "model", purpose="Who is called", owner="Me")
    loaded = load_model(tmp_path / "model")
    assert loaded.card() == model.card(purpose="Who is called", owner="Me")
    assert "- Purpose: Who is called\n- Owner: You\n" in loaded.card(owner="You", contact=None)
    with pytest.raises(TypeError, match="fields for purpose, owner, data, contact, date, got 'aim'"):
        model.card(aim="x")
    with pytest.raises(TypeError, match="`owner` must be text, got 3"):
        model.save(tmp_path / "other", owner=3)
    assert not (tmp_path / "other").exists()
