"""Outputs of commands: tables, settings, groups before and after, effects, verdicts on models.

This takes long to import, so commands import it when they run.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fado._storage import check_replaceable, replacing
from fado._typing import Floats
from fado.cli._inputs import Inputs
from fado.interventions import GroupChange
from fado.models import ChosenModel
from fado.tabular import ENDINGS, SMALL_SHARE, Groups, Variable, ending_of, group_rows, mean_one, write_csv
from fado.valuation import Valuation, known_quantiles

WIDTH = 80  # of text that does not go to a terminal
MOST_SMALL = 5  # small groups with a line each; combined attributes can have hundreds
MOST_LABELS = 10  # shown one by one, for a target without a positive label
UNITS = {1: "per row", 1_000: "per 1,000 rows", 10**6: "per million rows", 10**9: "per billion rows"}
_BOUND = "\N{NO-BREAK SPACE}"
UNBROKEN = 10_000  # width of a table that does not go to a terminal


def check_output(
    path: Path, inputs: Sequence[Path], endings: Sequence[str] = ENDINGS, option: str = "--out"
) -> None:
    """Refuse, before any work, an output that cannot be written or would replace an input."""
    if path.suffix.lower() not in endings:
        raise ValueError(f"`{option}` must end in {' or '.join(endings)}, got {str(path)!r}.")
    check_writable(path.parent)
    check_replaceable(path)
    if path.exists() and any(given.exists() and path.samefile(given) for given in inputs):
        raise ValueError(f"`{option}` is {str(path)!r}, which is also an input: name another file.")


def check_writable(folder: Path) -> None:
    """Refuse a directory that does not exist or is not writable."""
    if not folder.is_dir():
        raise ValueError(f"The directory {str(folder)!r} does not exist: create it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"The directory {str(folder)!r} is not writable.")


def check_apart(out: Path, folder: Path, named: str) -> None:
    """Refuse, before any work, an output and a directory of which one is inside the other."""
    first, second = out.resolve(), folder.resolve()
    if first.is_relative_to(second) or second.is_relative_to(first):
        same = "the same place" if first == second else "one inside the other"
        raise ValueError(
            f"`--out` {str(out)!r} and {named} {str(folder)!r} are {same}: name another place for one."
        )


def write_table(table: pa.Table, path: Path) -> None:
    """Write a CSV or Parquet file; if that fails, no partial file is left."""
    with replacing(path, "The table") as temporary:
        if ending_of(path) == ".csv":
            write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary, compression="zstd")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table to stdout, as `table_text` gives it."""
    print(table_text(title, header, rows), end="")


def table_text(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Give a table as text; on a narrow terminal the first cell of a row is folded, numbers are not."""
    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    for number, name in enumerate(header):
        if number == 0:
            table.add_column(Text(name), min_width=5, overflow="fold", vertical="bottom")
        else:
            table.add_column(Text(name), justify="right", min_width=5, no_wrap=True, vertical="bottom")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console()
    if not console.is_terminal:
        console.width = UNBROKEN
    with console.capture() as captured:  # printed by us, since rich exits when a pipe is closed
        if title:
            console.print(Text(title, style="bold"))
        console.print(table)
    return captured.get()


def print_settings(settings: Mapping[str, Any]) -> None:
    """Print the settings of a command, without those that have no value."""
    named = ", ".join(f"{name}{_BOUND}{value}" for name, value in settings.items() if value is not None)
    lines = textwrap.fill(f"Settings: {named}.", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    print(lines.replace(_BOUND, " "))


def in_shown_order(groups: Groups, attributes: Sequence[Variable]) -> list[int]:
    """Order groups for tables: the largest first, ranges of numbers in their order."""
    if any(attribute.kind == "continuous" for attribute in attributes):
        return list(range(len(groups)))
    return [int(group) for group in np.argsort(-groups.sizes, kind="stable")]


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "-" if np.isnan(value) else f"{value:.3f}"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return str(value)


def print_before_after(inputs: Inputs, factors: Floats, min_group_size: int = 0) -> None:
    """Print groups before and after, from the factor of each row's weight (0 for a dropped row)."""
    groups = group_rows(inputs.attributes, quarters=True)
    reasons = groups.reasons(min_group_size)
    changes = [
        _change(groups.titles[group], reasons[group], inputs, factors, groups.codes == group)
        for group in in_shown_order(groups, inputs.attributes)
    ]
    print_changes(list(inputs.protected), changes, min_group_size)


def print_changes(attributes: Sequence[str], changes: Sequence[GroupChange], min_group_size: int) -> None:
    """Print groups and all rows before and after; all but a few small groups share one line."""
    pooled = [group for group in changes if group.reason == "small"][MOST_SMALL:]
    shown = [group for group in changes if group not in pooled]
    if pooled:
        shown.append(GroupChange.joined(f"{len(pooled)} more small groups", pooled, reason="small"))
    has_rates = all(group.positives is not None for group in changes)
    header = ["group", "rows", "rows\nafter"]
    if has_rates:
        header += ["positive", "positive\nafter"]
    header += ["effective\nsize", "effective\nsize after"]
    lines = []
    for group in (*shown, GroupChange.joined("all rows", changes)):
        line: list[Any] = [group.title + (" *" if group.reason == "small" else "")]
        line += [group.rows, group.rows_after]
        if has_rates:
            line += [group.positive_rate, group.positive_rate_after]
        lines.append([*line, group.effective_size, group.effective_size_after])
    print_table(f"Before and after, by {', '.join(attributes)}", header, lines)
    if any(group.reason == "small" for group in changes):
        print(
            f"* too small to compare: fewer than {min_group_size} rows and less than "
            f"{100 * SMALL_SHARE:g} % of the table"
        )


def _change(
    title: str, reason: str, inputs: Inputs, factors: Floats, members: npt.NDArray[np.bool_]
) -> GroupChange:
    group_factors, before = factors[members], inputs.weights[members]
    positives = None if inputs.positives is None else inputs.positives[members]
    after = before * group_factors
    return GroupChange(
        title,
        reason,
        len(group_factors),
        int((group_factors > 0).sum()),
        float(before.sum()),
        float(after.sum()),
        float((before**2).sum()),
        float((after**2).sum()),
        None if positives is None else float(before[positives].sum()),
        None if positives is None else float(after[positives].sum()),
    )


def print_effects(inputs: Inputs, valuation: Valuation) -> None:
    """Print, for each attribute, the values for the target and for it, by group and label."""
    labels, names = _shown_labels(inputs)
    for attribute in inputs.attributes:
        groups = group_rows([attribute], quarters=True)
        order = in_shown_order(groups, [attribute])
        for which in ("y", attribute.name):
            what = "the target" if which == "y" else attribute.name
            _print_cells(
                f"Protected attribute {attribute.name}: values for {what}",
                mean_one(inputs.weights),  # effects are per unit of such
                valuation[which],
                [
                    ([groups.titles[code], label], (groups.codes == code) & (labels == number))
                    for code in order
                    for number, label in enumerate(names)
                ],
            )
    without = {
        "the target" if name == "y" else name: int(np.isnan(valuation[name]).sum())
        for name in valuation.variables
    }
    if any(without.values()):
        counts = ", ".join(f"{count:,} for {name}" for name, count in without.items() if count)
        print(f"Rows without a value: {counts}")


def _print_cells(
    title: str, weights: Floats, values: Floats, cells: Sequence[tuple[list[str], npt.NDArray[np.bool_]]]
) -> None:
    """Print a line per cell that has rows: how many, their share, the sum and the quartiles of values."""
    cells = [(names, members) for names, members in cells if members.any()]
    quartiles = [known_quantiles(values[members], [0.25, 0.5, 0.75]) for _, members in cells]
    per = _unit(np.concatenate(quartiles))
    rows = [
        [
            *names,
            int(members.sum()),
            float(weights[members].sum() / weights.sum()),
            signed(np.nansum((weights * values)[members])),
            *(signed(per * quartile) for quartile in cell_quartiles),
        ]
        for (names, members), cell_quartiles in zip(cells, quartiles, strict=True)
    ]
    print_table(
        f"{title}, quartiles {UNITS[per]}",
        ["group", "label", "rows", "share", "sum", "25%", "50%", "75%"],
        rows,
    )


def _shown_labels(inputs: Inputs) -> tuple[npt.NDArray[np.integer[Any]], list[str]]:
    """Give each row's label as a number, and the labels' names: the positive one last, if there is one."""
    known = inputs.labels
    if known.positive is not None:
        positive = str(known.classes[known.positive])
        others = [str(label) for code, label in enumerate(known.classes) if code != known.positive]
        return known.is_positive.astype(np.int64), [
            others[0] if len(others) == 1 else f"not {positive}",
            positive,
        ]
    if len(known.classes) <= MOST_LABELS:
        return known.codes, [str(label) for label in known.classes]
    return np.zeros(inputs.n_rows, dtype=np.int64), ["any"]


def _unit(numbers: Floats) -> int:
    """Choose per how many rows numbers are shown, so that they are readable."""
    largest = np.nanmax(np.abs(numbers)) if not np.isnan(numbers).all() else 0.0
    if largest == 0:
        return 1
    return next((per for per in UNITS if per * largest >= 0.1), max(UNITS))


def signed(number: float) -> str:
    """Give a number with its sign; very small or large ones in powers of ten."""
    if np.isnan(number):
        return "-"
    if number == 0:
        return "0"
    return f"{number:+.3f}" if 0.0005 <= abs(number) < 1e5 else f"{number:+.1e}"


def print_meanings(valuation: Valuation, *, weighted: bool) -> None:
    """Print what values mean."""
    for name, scale in valuation.scales.items():
        print_lines(f"{'Values for the target' if name == 'y' else f'Values for {name}'}: {scale.meaning}.")
    what = "values times their weights, scaled to a mean of 1" if weighted else "values"
    print_lines(f"Removing rows changes a metric by about minus the sum of their {what}.")


def print_lines(sentence: str) -> None:
    """Print a sentence in lines of limited width."""
    print(textwrap.fill(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def print_card(model: ChosenModel) -> None:
    """Print the beginning of the card: before and after, then the verdict and what was tried."""
    card = model.card("dict")
    for section in card["sections"]:
        if section["title"] in ("Before and after", "Every group"):
            print_lines(f"{section['title']}. {section['texts'][0]}")
            if section["rows"]:
                print_table("", section["header"], section["rows"])
        if section["title"] == "What was tried":
            card["lead"] += section["texts"]
    print("\n".join(card["lead"]))


def print_seen_sources(inputs: Inputs) -> None:
    """Print which features define a protected attribute, if any."""
    features = inputs.features.column_names
    read = dict.fromkeys(column for written in inputs.expressions.values() for column in written.sources)
    sources = [column for column in read if column in features]
    if sources:
        names = ", ".join(map(repr, sources))
        print(
            f"The model uses {names}, from which a protected attribute is computed. Use `--drop` if it must "
            "not."
        )


def with_interval(metrics: Mapping[str, float], name: str) -> str:
    value, low, high = (metrics.get(f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if math.isnan(low) or low == high else f"{value:.3f} ({low:.3f} to {high:.3f})"
