"""What a store may say: somebody else may have written it, so all of it is checked when it is read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from fado.experiment.config import PLUGIN_FIELDS
from fado.experiment.store._ledger import DONE, FAILED, PROPOSED, ForeignLedgerError, Record, read_json
from fado.metrics import RATIO_NAMES

__all__ = ["FORMAT", "check_about", "check_metrics", "check_record", "is_number"]

FORMAT = 1
MOST = 2**53  # rows, or anything else that is counted
_KEY = re.compile("[0-9a-f]{32}")  # also the name of a file
_CHECKSUM = re.compile("(?:[0-9a-f]{64})?")
_RESERVED = re.compile("intervention|model|training_rows|status|error|(?:validation|test)_.*", re.DOTALL)

_SHARE = re.compile(
    rf"(?:validation|test)_(?:fpr|tpr|selection_rate|{'|'.join(RATIO_NAMES)})(?:\[.*\])?", re.DOTALL
)


def is_number(value: Any) -> bool:
    """Tell whether this is a number that arithmetic survives."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300


def _is_count(value: Any, most: int = MOST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_summary(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_group, value))


def _is_group(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _is_text(value.get("part"))
        and _is_text(value.get("group"))
        and isinstance(value.get("attribute"), str | None)
        and _is_count(value.get("rows"))
        and _is_count(value.get("positives"), value["rows"])
    )


def _is_versions(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _are_plugins(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(own, dict) and own.keys() == set(PLUGIN_FIELDS) and all(map(_is_text, own.values()))
        for own in value
    )


_ABOUT: dict[str, Callable[[Any], bool]] = {
    "settings": _is_table,
    "configuration": _is_table,
    "versions": _is_versions,
    "fingerprint": _is_text,
    "summary": _is_summary,
}


def check_about(about: dict[str, Any]) -> None:
    """Refuse what a store says of its experiment, unless a run may have said it."""
    if not _is_count(about.get("format")):
        raise ForeignLedgerError("its `format` is no number")
    if about["format"] != FORMAT:
        raise ForeignLedgerError(f"it is of format {about['format']}, and this release knows format {FORMAT}")
    for name, right in _ABOUT.items():
        if not right(about.get(name)):
            raise ForeignLedgerError(f"its `{name}` is not what a run writes")
    if not isinstance(about.get("positive"), str | None):
        raise ForeignLedgerError("its `positive` is no text")
    if not _are_plugins(about.get("plugins", [])):
        raise ForeignLedgerError("its `plugins` are not what a run writes")


def check_record(record: Record) -> None:
    """Refuse a record that no run writes; its seal says only that it is as somebody wrote it."""
    where = f"a record of kind {str(record.kind)[:20]!r}"
    texts = (record.kind, record.key, record.state, record.text, record.checksum)
    if not all(map(_is_text, texts)) or not is_number(record.seconds) or record.seconds < 0:
        raise ForeignLedgerError(f"{where} has fields of other types")
    kinds = {"trial": _check_trial, "set": _check_set, "fit": _check_file, "values": _check_file}
    kinds |= {"crash": _check_crash, "scores": _check_file}
    if record.kind not in kinds:
        raise ForeignLedgerError(f"there is {where}, which this release does not know")
    if not (record.kind == "trial" or _KEY.fullmatch(record.key)):
        raise ForeignLedgerError(f"{where} has an impossible key")
    if not _CHECKSUM.fullmatch(record.checksum):
        raise ForeignLedgerError(f"{where} has an impossible checksum")
    kinds[record.kind](record, where)


def _check_trial(record: Record, where: str) -> None:
    told = read_json(record.text, where)
    right = (
        record.state == PROPOSED
        and not record.checksum
        and re.fullmatch("[0-9]{8,18}", record.key)
        and isinstance(told, dict)
        and _is_text(told.get("intervention"))
        and _is_count(told.get("model"), 2**31)
        and _is_text(told.get("set"))
        and all(_is_plain(told.get(name)) for name in ("settings", "parameters"))
        and not told["settings"].keys() & told["parameters"].keys()
    )
    if not right:
        raise ForeignLedgerError(f"{where} is not what a run writes")


def _is_plain(table: Any) -> bool:
    """Tell whether settings have names and values that a frame can show."""
    return isinstance(table, dict) and all(
        not _RESERVED.fullmatch(name) and (is_number(value) or isinstance(value, str | bool | None))
        for name, value in table.items()
    )


def _check_set(record: Record, where: str) -> None:
    _check_outcome(record, where)
    if record.checksum:
        raise ForeignLedgerError(f"{where} names a file, and has none")
    if record.state == DONE:
        told = read_json(record.text, where)
        if not isinstance(told, dict) or not _is_text(told.get("digest")) or not _is_count(told.get("rows")):
            raise ForeignLedgerError(f"{where} is not what a run writes")


def _check_file(record: Record, where: str) -> None:
    _check_outcome(record, where)
    if bool(record.checksum) != (record.state == DONE):
        raise ForeignLedgerError(f"{where} is {record.state!r}, which does not go with its checksum")


def _check_crash(record: Record, where: str) -> None:
    if record.state != FAILED or not re.fullmatch("[0-9]{1,6}", record.text) or record.checksum:
        raise ForeignLedgerError(f"{where} is not what a run writes")


def _check_outcome(record: Record, where: str) -> None:
    if record.state not in (DONE, FAILED):
        raise ForeignLedgerError(f"{where} has the unknown state {record.state[:20]!r}")


def check_metrics(metrics: dict[Any, Any]) -> bool:
    """Tell whether a fit may have had these metrics: rates and ratios are shares, or undefined."""
    return all(
        isinstance(name, str)
        and name.startswith(("validation_", "test_"))
        and isinstance(value, float)
        and (math.isnan(value) or _may_be(name, value))
        for name, value in metrics.items()
    )


def _may_be(name: str, value: float) -> bool:
    """Tell whether a metric may be a number; thresholds and ends of intervals may be any, also infinite."""
    if _SHARE.fullmatch(name):
        return -1e-6 <= value <= 1 + 1e-6
    return "_threshold" in name or name.endswith(("_low", "_high")) or is_number(value)
