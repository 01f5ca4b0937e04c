"""Tables of signed values on a terminal: by group and label, and what the numbers mean."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.cli._inputs import Inputs
from fado.cli._summary import WIDTH, in_shown_order, print_table
from fado.tabular import group_rows, mean_one
from fado.valuation import Valuation

__all__ = ["print_effects", "print_lines", "print_meanings"]

MOST_LABELS = 10  # of a target without a positive label that are shown apart
UNITS = {1: "per row", 1_000: "per 1,000 rows", 10**6: "per million rows", 10**9: "per billion rows"}

Shares = npt.NDArray[np.float64]


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
        told = ", ".join(f"{count:,} for {name}" for name, count in without.items() if count)
        print(f"Rows without a value: {told}")


def _print_cells(
    title: str, weights: Shares, values: Shares, cells: Sequence[tuple[list[str], npt.NDArray[np.bool_]]]
) -> None:
    """Print a line per cell that has rows: how many, their share, the sum and the quartiles of values."""
    cells = [(names, members) for names, members in cells if members.any()]
    quartiles = [_quartiles(values[members]) for _, members in cells]
    per = _unit(np.concatenate(quartiles))
    rows = [
        [
            *names,
            int(members.sum()),
            float(weights[members].sum() / weights.sum()),
            _signed(np.nansum((weights * values)[members])),
            *(_signed(per * quartile) for quartile in own),
        ]
        for (names, members), own in zip(cells, quartiles, strict=True)
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


def _quartiles(values: Shares) -> Shares:
    known = values[~np.isnan(values)]
    return np.quantile(known, [0.25, 0.5, 0.75]) if len(known) else np.full(3, np.nan)


def _unit(numbers: Shares) -> int:
    """Choose per how many rows numbers are told, so that the largest is one that people can read."""
    largest = np.nanmax(np.abs(numbers)) if not np.isnan(numbers).all() else 0.0
    if largest == 0:
        return 1
    return next((per for per in UNITS if per * largest >= 0.1), max(UNITS))


def _signed(number: float) -> str:
    """Give a number with its sign.

    Examples
    --------
    >>> [_signed(number) for number in (0.01234, -12.3456, 0.0, 0.000012, float("nan"))]
    ['+0.012', '-12.346', '0', '+1.2e-05', '-']
    """
    if np.isnan(number):
        return "-"
    if number == 0:
        return "0"
    return f"{number:+.3f}" if 0.0005 <= abs(number) < 1e5 else f"{number:+.1e}"


def print_meanings(valuation: Valuation, *, weighted: bool) -> None:
    """Say what values mean; removing rows takes their effects away."""
    for name, scale in valuation.scales.items():
        print_lines(f"{'Values for the target' if name == 'y' else f'Values for {name}'}: {scale.meaning}.")
    what = "values times their weights, scaled to a mean of 1" if weighted else "values"
    print_lines(f"Removing rows changes a metric by about minus the sum of their {what}.")


def print_lines(sentence: str) -> None:
    """Print a sentence in lines that a terminal can hold."""
    print(textwrap.fill(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
