"""The card tells what is known, and nothing from the data changes anything around it."""

import json
import re

import numpy as np
import pytest
from tests.models.made import X, chosen, facts_of, fitted

from fado.metrics import Budget
from fado.models import ChosenModel, Facts, GroupCount, Part
from fado.reporting import card_page, card_text
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
    assert text.startswith(
        "# Model card\n\nThis model predicts 'late'. Asked for was a fpr_ratio of at least 0.8"
    )
    assert "On the rows that it was chosen by, the model reached it." in text
    decides = section(text, "What it decides")
    assert "the probability that 'late' is 'yes'" in decides
    assert "a false-positive rate of at most 10 %" in decides
    assert "a row's group is not asked for" in decides
    assert "4 columns: 'debts', 'town', 'home', 'flag'. No protected attribute is among them" in decides
    assert "among 7 tries, at the cost of 12 fits" in section(text, "What was tried")
    reached = section(text, "What it reached")
    assert "| metric | validation | test |" in reached
    assert "| true-positive rate | 0.612 (0.550 to 0.660) | 0.600 |" in reached
    assert "false-positive rates), aimed at | 0.840 (0.790 to 0.900) | 0.810 |" in reached
    assert "| Equality of opportunity (ratio of false-negative rates) | 0.700 | undefined |" in reached
    assert "| Demographic parity (ratio of selection rates) | undefined | undefined |" in reached
    limits = section(text, "What it does not promise")
    for told in ("check it on new rows", "Only fpr_ratio", "no proof", "the best of 7 tries", "too small"):
        assert told in limits
    made = section(text, "How it was made")
    for told in ("| estimator: num_leaves | 7 |", "| intervention: strength | 0.25 |", "| seed | 3 |"):
        assert told in made


def test_the_card_counts_rows_and_rates_by_group():
    groups = Groups(np.repeat([0, 1, 2], [40, 20, 9]), ("'a'", "'b'", "'c'"), ("a", "b", "c"))
    positive = np.arange(69) % 4 == 0
    parts = [Part.of("training", positive, groups), Part("test", (GroupCount("a", 1_234, 617),))]
    told = section(chosen(parts=parts).card(), "Data and groups")
    assert "| a | 40 | 0.2500 | 1,234 | 0.5000 |" in told
    assert "| b | 20 | 0.2500 | 0 |  |" in told
    assert "| c | fewer than 10 |  | 0 |  |" in told
    assert "69" not in told


def test_numbers_of_a_few_people_are_kept_nowhere():
    few = GroupCount("c", 9, 2)
    assert (few.rows, few.positives) == (None, None)
    facts = facts_of(parts=[Part("training", (few, GroupCount("d", 10, 0)))])
    told = [list(own.values()) for own in facts.to_plain()["parts"][0]["groups"]]
    assert told == [["c", None, None], ["d", 10, 0]]
    assert Facts.from_plain(json.loads(json.dumps(facts.to_plain()))).to_plain() == facts.to_plain()


def test_a_line_that_was_missed_is_told_with_its_reason():
    text = chosen(
        reached=False, why="The columns tell nothing of the group.", confidence=0.9, models=1
    ).card()
    assert "with a confidence of 90 %" in text
    assert "the model did not reach it. The columns tell nothing of the group." in text
    assert "In brackets: 80 % intervals" in text
    assert "tries" not in section(text, "What it does not promise")


@pytest.mark.parametrize(
    ("protected", "seen"),
    [
        (["town"], True),
        (["town == Ulm"], True),
        (["'town' in [Ulm, Bonn]"], True),
        (["debts>=3", "sex"], True),
        (["townhall"], False),
        (["my town"], False),
    ],
)
def test_the_card_says_if_the_model_sees_the_attribute(protected, seen):
    told = section(chosen(protected=protected).card(), "What it decides")
    assert ("of which a protected attribute is made" in told) is seen


def test_models_of_arrays_and_budgets_of_other_kinds_read_well():
    model, _ = fitted(X[["debts"]].to_numpy())
    text = chosen(model, budget=Budget("top_k", 500), measured={}, parts=[]).card()
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
    parts = [Part("training", (GroupCount(name, 50, 5), GroupCount("b", 20, 3)))]
    facts = facts_of(
        target=name, protected=[name], parts=parts, left_out=[name], chosen=name, why=name, reached=False,
        estimator=name, parameters={name: name}, settings={name: name}, intervention=name,
        measured={name: {"tpr": 0.5}},
    )  # fmt: skip
    return ChosenModel(chosen().scorer, classes=(name, "other"), threshold=0.5, metrics={}, facts=facts)


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
    block = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
    assert block.sub("", page) == block.sub("", plain)
    assert not re.search(r"[<>&']", block.search(page)[1])
    told = json.loads(block.search(page)[1])
    assert told["sections"][1]["rows"][1][0] == "b"


def test_the_page_and_the_text_tell_the_same(tmp_path):
    model = chosen(measured=MEASURED)
    model.card_page(tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    content = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert card_text(content) == model.card()
    assert card_page(content) == page
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
    ],
)
def test_facts_that_cannot_be_are_refused(changes, match):
    with pytest.raises(ValueError, match=match):
        facts_of(**changes)


def test_a_budget_must_be_one():
    with pytest.raises(TypeError, match=r"`budget` must be a fado\.metrics\.Budget"):
        facts_of(budget=("fpr", 0.05))


def test_settings_of_any_kind_are_kept_as_plain_data():
    class Own:
        pass

    settings = {"n": np.int64(3), "rate": np.float32(0.5), "steps": (1, [None, "a"]), "own": Own(), 4: Own}
    facts = facts_of(settings=settings | {"values": np.array([1.5, 2.0])}, parameters={"missing": np.nan})
    expected = {
        "n": 3,
        "rate": 0.5,
        "steps": [1, [None, "a"]],
        "own": "Own",
        "4": "Own",
        "values": [1.5, 2.0],
    }
    assert facts.settings == expected
    told = json.dumps(facts.to_plain(), allow_nan=False)
    assert np.isnan(Facts.from_plain(json.loads(told)).parameters["missing"])


def test_the_verdict_is_that_of_test_rows():
    """Validation rows say that the line is reached; test rows say something else, and come first."""
    measured = {
        "validation": {"fpr_ratio": 0.85, "fpr": 0.05},
        "test": {"fpr_ratio": 0.7, "fpr_ratio_low": 0.6, "fpr_ratio_high": 0.8, "fpr": 0.06},
    }
    text = chosen(measured=measured, reached=True, budget=Budget("fpr", 0.05)).card()
    test, validation = (text.index(own) for own in ("On test rows", "On the rows that it was chosen by"))
    assert test < validation
    assert (
        "On test rows, which had no part, the model misses it: fpr_ratio 0.700 (0.600 to 0.800). They exceed "
        "the budget: a false-positive rate of at most 5 %."
    ) in text


@pytest.mark.parametrize(
    ("intervention", "said"),
    [
        ("", "a score, the probability that"),
        ("aimed scores", "a score, which orders rows and is no probability"),
        ("aimed student", "a score, which orders rows and is no probability"),
    ],
)
def test_moved_scores_are_no_probabilities(intervention, said):
    text = chosen(intervention=intervention).card()
    assert said in text
    assert ("A second model infers" in text) is (intervention == "aimed scores")
