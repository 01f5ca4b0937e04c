"""Records that others may have written come back as what they are, or a sentence says what is broken."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from fado._records import encode, record_from


@dataclass(frozen=True)
class Inner:
    kind: str
    classes: tuple[str | bool | int | float, ...] | None = None


@dataclass(frozen=True)
class Outer:
    rows: int
    mean: float | None
    names: list[str] | Mapping[str, list[str]] | None = None
    inner: Mapping[str, Inner] = field(default_factory=dict)
    flag: bool = True


WHOLE = Outer(
    3, math.inf, {"a": ["b"]}, {"y": Inner("classes", (1, True, 0.5, "x")), "z": Inner("")}, flag=False
)


@pytest.mark.parametrize("record", [WHOLE, Outer(0, None), Outer(1, 2.0, ["a"])])
def test_a_record_survives_json(record):
    told = json.loads(json.dumps(encode(record), allow_nan=False))
    assert record_from(Outer, told, "a record") == record
    assert isinstance(record_from(Outer, {"rows": 1, "mean": 2}, "a record").mean, float)


def test_what_is_left_at_its_default_is_left_out():
    assert encode(Outer(1, None)) == {"rows": 1, "mean": None}
    assert record_from(Outer, {"rows": 1, "mean": None, "flag": None}, "a record").flag is True


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ([], r"a record must be a mapping, got \[\]"),
        ({"mean": 0.5}, "`rows` of a record is missing"),
        ({"rows": None, "mean": 0.5}, "`rows` of a record is broken, got None"),
        ({"rows": True, "mean": 0.5}, "`rows` of a record is broken, got True"),
        ({"rows": 1, "mean": math.nan}, "`mean` of a record is broken, got nan"),
        ({"rows": 1, "mean": {"float": "many"}}, "`mean` of a record is broken"),
        ({"rows": 1, "mean": 10**400}, "`mean` of a record is broken"),
        ({"rows": 1, "mean": 0.5, "more": 1}, "'more' is not a field of a record"),
        ({"rows": 1, "mean": 0.5, "names": {"a": [1]}}, "`names` of a record is broken"),
        ({"rows": 1, "mean": 0.5, "inner": {"y": {"kind": 3}}}, "`kind` of a record is broken, got 3"),
        ({"rows": 1, "mean": 0.5, "inner": {"y": {"kind": "", "classes": [[]]}}}, "`classes` of a record"),
    ],
)
def test_what_is_broken_is_named(told, message):
    with pytest.raises(ValueError, match=message):
        record_from(Outer, told, "a record")
