"""Configurations: what is right is read, what is wrong is named with its place."""

import copy
import datetime
import tomllib

import pytest
from tests.experiment.conftest import TINY

from fado._records import encode, record_from
from fado.experiment import Experiment
from fado.experiment._config import Config, config_from, preset_text, read_toml, write_preset


def changed(table, place, value):
    *above, last = place.split(".")
    for key in above:
        table = table.setdefault(key, {})
    table[last] = value


WRONG = [
    ("sead", 1, r"`sead` is not a key of the configuration: did you mean 'seed'\?"),
    ("seed", -1, r"`seed` must be a whole number of at least 0, got -1"),
    ("seed", True, r"`seed` must be a whole number of at least 0, got True"),
    ("data.generator", "mnist", r"`data.generator` must be 'account_fraud', got 'mnist'"),
    ("data.path", "x.csv", r"`data` must have either a `path` or a `generator`"),
    ("data.rows", 10, r"`data.rows` must be a whole number of at least 100, got 10"),
    ("data.name", "../../etc/passwd", r"`data.name` is not a key of the configuration"),
    ("data.protected", [], r"`data.protected` is empty"),
    ("data.protected", ["a", "a"], r"`data.protected\[1\]` repeats 'a'"),
    ("data.target", 3, r"`data.target` must be a text, got 3"),
    ("split.method", "k-fold", r"`split.method` must be 'column' or 'random', got 'k-fold'"),
    ("split.train", 0.6, r"The shares of `split` must add up to 1, got 0.6 \+ 0.25 \+ 0.25"),
    ("split.validation", 1.5, r"`split.validation` must be a number in \[0, 1\), got 1.5"),
    ("valuation.algorithms", ["oob", "out"], r"`valuation.algorithms\[1\]` must be 'oob' or 'inbag'"),
    ("valuation.bags", 4, r"`valuation.bags` \(4\) times `valuation.unseen_fraction` \(0.2\) must be"),
    ("valuation.models", [{"trees": 5}], r"`valuation.models\[0\].trees` is not a parameter"),
    (
        "interventions.uar.alphas",
        [0, 0.5, 1.5],
        r"`interventions.uar.alphas\[2\]` must be a number in \[0, 1\], got 1.5",
    ),
    ("interventions.uar.alphas", [0.5, 0.5], r"`interventions.uar.alphas\[1\]` repeats 0.5"),
    ("interventions.uar.alphas", [], r"`interventions.uar.alphas` is empty"),
    ("interventions.uar.alphas", 0.5, r"`interventions.uar.alphas` must be a list, got 0.5"),
    ("interventions.uar.scalings", ["max"], r"`interventions.uar.scalings\[0\]` must be 'minmax' or 'none'"),
    ("interventions.uap", {}, r"`interventions.uap` is not a key of the configuration: did you mean"),
    ("interventions.rw", "yes", r"`interventions.rw` must be true or false, got 'yes'"),
    (
        "interventions.corrected_uar",
        {"alphas": [1.0], "prevalence_corrections": [-1]},
        r"corrections\[0\]` must be",
    ),
    ("interventions.uaps", {"utilities": ["linear"]}, r"`interventions.uaps.alphas` is missing: set it"),
    ("interventions.uar.utilities", ["log"], r"utilities\[0\]` must be 'linear' or 'difference' or 'cobb-"),
    ("interventions.uar.negative", "drop", r"`interventions.uar.negative` must be 'raise' or 'clip', got"),
    ("interventions.uaps", True, r"`interventions.uaps` must be a table, got True"),
    ("interventions", {"none": False, "rps": False, "rw": False}, r"`interventions` has none: switch"),
    ("data.weight", "fraud_bool", r"`data.weight` is 'fraud_bool', the target: name another column"),
    ("models.count", 0, r"`models.count` must be a whole number of at least 1, got 0"),
    ("models.space", {}, r"`models.space` is empty"),
    ("models.space.objective", "l2", r"`models.space.objective` is not a parameter that can be set"),
    ("models.space.num_leaves", 1, r"`models.space.num_leaves` must be a whole number of at least 2, got 1"),
    ("models.space.num_leaves", 7.5, r"`models.space.num_leaves` must be a whole number of at least 2"),
    ("models.space.boosting_type", "dart", r"`models.space.boosting_type` must be 'gbdt' or 'goss'"),
    ("models.space.learning_rate", {"log_uniform": [0.5, 0.02]}, r"log_uniform` must rise from"),
    ("models.space.learning_rate", {"uniform": [0.02, 0.5]}, r"learning_rate` must be a value"),
    ("models.space.learning_rate", {"choices": [0.1, "x"]}, r"learning_rate.choices\[1\]` must be a number"),
    ("models.deadline", 0, r"`models.deadline` must be a number above 0, got 0"),
    ("evaluation.max_fpr", float("nan"), r"`evaluation.max_fpr` must be a number in \(0, 1\), got nan"),
    ("evaluation.groups", "both", r"`evaluation.groups` must be 'crossed' or 'each', got 'both'"),
    ("data.min_group_size", -1, r"`data.min_group_size` must be a whole number of at least 0, got -1"),
    ("data.rows", 10**12, r"`data.rows` must be at most 1,000,000,000, got 1000000000000"),
    ("valuation.bags", 10**10, r"`valuation.bags` must be at most 100,000, got 10000000000"),
    ("models.space.n_estimators", 10**12, r"`models.space.n_estimators` must be at most 1,000,000, got 1"),
    ("models.space.subsample", {"log_uniform": [0.5, 1.5]}, r"subsample.log_uniform\[1\]` must be at most 1"),
    ("seed", 2**32, "`seed` must be at most 4,294,967,295, got 4294967296"),
    ("evaluation.threshold", "train", r"`evaluation.threshold` must be 'test' or 'validation', got 'train'"),
]


@pytest.mark.parametrize(("place", "value", "message"), WRONG)
def test_what_is_wrong_is_named_with_its_place(table, place, value, message):
    changed(table, place, value)
    with pytest.raises(ValueError, match=message):
        config_from(table)


BY_MONTH = {"method": "column", "column": "month", "train": [0, 1], "test": [2]}
MANY = [number / 1000 for number in range(1000)]
CONTRADICTIONS = [
    (
        {"split": {"method": "random", "train": 0.5, "test": 0.5}, "evaluation": {"threshold": "validation"}},
        "`split.validation` is empty",
    ),
    ({"split": BY_MONTH | {"test": [1, 2]}}, "`split.test` holds 1, which `split.train` holds too"),
    ({"split": BY_MONTH | {"test": []}}, "`split.test` is empty"),
    *(
        (
            {"split": BY_MONTH | {"validation": value}},
            "`split.validation` must be a list of values or a number",
        )
        for value in (1, -0.1, "0.2", {})
    ),
    *(
        (
            {"data": TINY["data"] | {key: value, "exclude": ["income"]}},
            rf"`data\.exclude` names 'income', which no model uses: it is in `data\.{key}`",
        )
        for key, value in (("drop", ["income"]), ("weight", "income"), ("groups", "income"))
    ),
    (
        {
            "interventions": {
                "corrected_uar": {"alphas": MANY, "floors": MANY, "prevalence_corrections": MANY},
                "uar": {"alphas": [0.5]},
            }
        },
        r"`interventions.corrected_uar` has 1,000,000,000 combinations .* 2,000,000,008 trials, more than",
    ),
]


@pytest.mark.parametrize(("changes", "message"), CONTRADICTIONS)
def test_what_contradicts_itself_or_has_no_end_is_refused(table, changes, message):
    with pytest.raises(ValueError, match=message):
        config_from(table | changes)


def test_a_missing_table_is_named(table):
    del table["split"]
    with pytest.raises(ValueError, match="`split` is missing"):
        config_from(table)


def test_relative_data_are_relative_to_the_file_and_a_byte_order_mark_is_no_part_of_it(tmp_path):
    text = preset_text("quick").replace('generator = "account_fraud"', 'path = "d.csv"')
    (tmp_path / "c.toml").write_text(text.replace("rows = 20_000", ""), encoding="utf-8-sig")
    assert config_from(read_toml(tmp_path / "c.toml")).data.path == str(tmp_path / "d.csv")


def test_presets_are_written_once_and_read(tmp_path):
    for preset in ("quick", "paper"):
        write_preset(tmp_path / f"{preset}.toml", preset)
        assert Experiment.from_toml(tmp_path / f"{preset}.toml").config == config_from(
            tomllib.loads(preset_text(preset))
        )
    (tmp_path / ".quick.toml.0123abcd.part").mkdir()  # of one who was killed when all was done
    with pytest.raises(FileExistsError, match="exists already"):
        write_preset(tmp_path / "quick.toml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["paper.toml", "quick.toml"]
    with pytest.raises(ValueError, match="`preset` must be 'quick' or 'paper', got 'fast'"):
        preset_text("fast")


def test_none_is_a_list_that_was_not_given(table):
    expected = config_from(copy.deepcopy(table))
    table["data"] |= {"drop": None, "exclude": None}
    table["valuation"]["algorithms"] = None
    assert config_from(table).flat() == expected.flat()
    table["data"]["protected"] = None
    with pytest.raises(ValueError, match=r"`data\.protected` must be"):
        config_from(table)


def test_every_setting_has_its_place(table):
    uar = {"alphas": [0, 1], "negative": "clip"}
    table["interventions"] = {"rps": False, "uar": uar, "corrected_uar": {"alphas": [0.5], "floors": [0.1]}}
    flat = config_from(table).flat()
    assert {place: value for place, value in flat.items() if place.startswith("interventions")} == {
        "interventions.none": True,
        "interventions.rps": False,
        "interventions.rw": True,
        "interventions.uaps": None,
        "interventions.uar.utilities": ["linear"],
        "interventions.uar.alphas": [0.0, 1.0],
        "interventions.uar.scalings": ["minmax"],
        "interventions.uar.negative": "clip",
        "interventions.corrected_uar.utilities": ["linear"],
        "interventions.corrected_uar.alphas": [0.5],
        "interventions.corrected_uar.floors": [0.1],
        "interventions.corrected_uar.prevalence_corrections": [1.0],
        **{
            f"interventions.{key}": None for key in ("aimed", "fairlearn_grid", "group_thresholds", "student")
        },
    }
    assert (flat["data.weight"], flat["data.groups"]) == (None, None)
    assert "evaluation.groups" not in flat  # keys of fits are those of earlier releases
    table["evaluation"]["groups"] = "each"
    assert config_from(table).flat()["evaluation.groups"] == "each"


def test_what_a_store_asked_for_is_kept_when_it_is_not_registered(table):
    table["interventions"] = {"theirs": {"shares": [0.5]}, "uar": {"alphas": [1.0], "utilities": ["theirs"]}}
    with pytest.raises(ValueError, match=r"utilities\[0\]` must be"):
        config_from(table)
    told = encode(config_from(table | {"interventions": {}})) | {"interventions": table["interventions"]}
    flat = record_from(Config, told, "a configuration").flat()
    assert flat["interventions.theirs.shares"] == [0.5]
    assert flat["interventions.uar.utilities"] == ["theirs"]


def deep(depth, shell):
    inner = shell(None)
    for _ in range(depth):
        inner = shell(inner)
    return inner


ODD = [
    None, True, -1, 0, 10**12, -(10**400), 1.5, float("nan"), float("inf"), "", "\0", "x" * 10_000,
    [], [None], [[]], ["a", "a"], [float("nan")] * 2, [1, True], {}, {"a": 1}, {1: 2}, [{}],
    {"log_uniform": [1, 10**400]},
    {"choices": {}}, datetime.date(2020, 1, 1), datetime.time(1), b"x", deep(5000, lambda inner: [inner]),
    deep(5000, lambda inner: {"a": inner}),
]  # fmt: skip


def places(table, above=()):
    for key, value in table.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from places(value, (*above, key))
        elif isinstance(value, list):
            yield from ((*above, key, position) for position in range(len(value)))


def test_whatever_stands_under_a_key_is_read_or_refused_with_the_key():
    whole = tomllib.loads(preset_text("quick"))
    whole["data"] |= {"drop": ["x"], "exclude": ["y"], "weight": "w", "groups": "g", "min_group_size": 30}
    whole["valuation"]["models"] = [{"n_estimators": 5}]
    whole["models"] |= {"deadline": 3}
    whole["evaluation"]["groups"] = "each"
    for place in places(whole):
        for value in ODD:
            table = copy.copy(whole)
            inner = table
            for key in place[:-1]:
                inner[key] = copy.copy(inner[key])
                inner = inner[key]
            inner[place[-1]] = value
            try:
                config_from(table)
            except ValueError as error:
                message = str(error)
                assert place[0] in message
                assert len(message) < 500
    for value in (None, 3, [], "seed = 1", deep(5000, lambda inner: [inner])):
        with pytest.raises(ValueError, match="The configuration must be a table, got "):
            config_from(value)


UNREADABLE = [
    (b"", "is empty: `fado experiment init` writes one"),
    (b"\xef\xbb\xbf \n", "is empty"),
    ('title = "Stra\u00dfe"'.encode("latin-1"), "is not UTF-8 text: save it as UTF-8"),
    ("seed = 1".encode("utf-16"), "is not UTF-8 text: save it as UTF-8"),
    (b"seed = " + b"[" * 5000 + b"]" * 5000, "is nested too deeply"),
    (b"seed = " + b"9" * 5000, "is not TOML"),
    (b"seed = = 1", "is not TOML"),
]


@pytest.mark.parametrize(("content", "message"), UNREADABLE)
def test_what_is_no_file_of_toml_is_named(tmp_path, content, message):
    with pytest.raises(FileNotFoundError, match="There is no configuration"):
        read_toml(tmp_path / "mine.toml")
    with pytest.raises(ValueError, match="is a directory: name a TOML file"):
        read_toml(tmp_path)
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"The configuration '.*mine\.toml' {message}"):
        read_toml(path)


@pytest.mark.parametrize(("validation", "expected"), [(0.25, True), ([0], True), (0, False), ([], False)])
def test_validation_may_be_values_or_a_share_of_what_trains(table, validation, expected):
    split = config_from(table | {"split": BY_MONTH | {"train": [1], "validation": validation}}).split
    assert split.has_validation is expected
