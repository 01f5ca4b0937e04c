"""How two experiments differ, in words: their results must not mix."""

from __future__ import annotations

from typing import Any

from fado.experiment.config import decides_data

__all__ = ["differences", "refuse_other"]


def differences(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    """Say in which entries two mappings of plain data differ, and how.

    What is not there, as another release did not know it, is as good as None or switched off.

    Examples
    --------
    >>> differences({"models.count": 25, "seed": 0}, {"models.count": 5, "seed": 0, "data.weight": None})
    {'models.count': '`models.count` = 25, the configuration says 5'}
    """
    found = {}
    for name in dict.fromkeys([*before, *now]):
        old, new = (given.get(name) for given in (before, now))
        known = name in before and name in now
        if old != new and (known or (old or new) not in (None, False)):
            told = f"`{name}` = {old!r}" if name in before else f"no `{name}`"
            found[name] = (
                f"{told}, the configuration {f'says {new!r}' if name in now else 'does not name it'}"
            )
    return found


def refuse_other(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to mix results of different experiments."""
    settings = differences(before["settings"], now["settings"])
    found = [*settings.values(), *_other_versions(before["versions"], now["versions"])]
    if before["fingerprint"] != now["fingerprint"] and not any(map(decides_data, settings)):
        rows = [_n_rows(about["summary"]) for about in (before, now)]
        found.append(
            f"other data (fingerprint {before['fingerprint'][:12]}, {rows[0]:,} rows, and now "
            f"{now['fingerprint'][:12]}, {rows[1]:,} rows{_unknown_size(before, now)})"
        )
    if found:
        raise ValueError(
            f"The store was made with {'; with '.join(found)}: undo the change, or use another store."
        )


def _other_versions(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    names = dict.fromkeys([*before, *now])
    return [
        f"{name} {before.get(name)}, here is {now.get(name)}"
        for name in names
        if before.get(name) != now.get(name)
    ]


def _n_rows(summary: list[dict[str, Any]]) -> int:
    """Count the rows of all parts, once if several attributes divide them."""
    first = summary[0].get("attribute") if summary else None
    return sum(entry["rows"] for entry in summary if entry.get("attribute") == first)


def _unknown_size(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Say what else may be the reason if the store's release knew no small groups."""
    size = now["settings"].get("data.min_group_size")
    if "data.min_group_size" in before["settings"] or not size:
        return ""
    return "; if they are the same, a release that compared small groups made it: `data.min_group_size = 0`"
