"""The tables of benchmarks/active.py."""

from __future__ import annotations

import numpy as np

from _active_strategies import STRATEGIES, WHOLE_POOL

SHOWN = {
    "adult": "Adult, sex",
    "give_me_some_credit": "Give Me Some Credit, age < 40",
    "acs_income": "ACS Income, sex",
    "account_fraud": "generated fraud, age >= 50",
}
CHOSEN_ON = ("adult", "give_me_some_credit")
MEASURED_ON = ("acs_income", "account_fraud")
FIGURES = {  # where a line has it, and how it is headed
    "tpr": "TPR",
    "fpr_ratio": "FPR ratio",
    "selection_rate_ratio": "selection ratio",
    "tpr_ratio": "TPR ratio",
    "aimed tpr": "aimed: TPR",
    "aimed fpr_ratio": "aimed: FPR ratio",
}


OVERVIEWS = {
    "The model: TPR, FPR ratio": ("tpr", "fpr_ratio"),
    "With aimed weights: TPR, FPR ratio": ("aimed tpr", "aimed fpr_ratio"),
}


def figure(line: dict, name: str) -> float:
    """Give one figure of a line, with "aimed" before it that of the aimed model."""
    aimed = name.startswith("aimed ")
    return float(line["aimed"][name.removeprefix("aimed ")] if aimed else line[name])


def print_tables(lines: list[dict]) -> None:
    """Print figures by table, differences from random drawing over tables, and curves."""
    last = [line for line in lines if "aimed" in line]
    for title, names in OVERVIEWS.items():
        print_overview(title, last, names)
    for table in (own for own in SHOWN if any(line["table"] == own for line in last)):
        print_figures(SHOWN[table], [own for own in last if own["table"] == table])
    for title, tables in (
        ("tables chosen on", CHOSEN_ON),
        ("tables validated by", MEASURED_ON),
        ("all tables", tuple(SHOWN)),
    ):
        own = [line for line in last if line["table"] in tables]
        if own:
            print_differences(f"Less random drawing, {title}", own)
    for name in ("tpr", "fpr_ratio"):
        print_curves([line for line in lines if line["strategy"] != WHOLE_POOL], name)


def _strategies(lines):
    there = {line["strategy"] for line in lines}
    return [name for name in STRATEGIES if name in there]


def _header(*columns):
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")


def print_overview(title, lines, names):
    """Print two figures of every strategy and table, with standard errors."""
    tables = [own for own in SHOWN if any(line["table"] == own for line in lines)]
    print(f"\n{title}\n")
    _header("", *(SHOWN[table] for table in tables))
    for strategy in _strategies(lines):
        cells = []
        for table in tables:
            own = [line for line in lines if (line["table"], line["strategy"]) == (table, strategy)]
            cells.append(", ".join(mean_and_error([figure(line, name) for line in own]) for name in names))
        print(f"| {strategy} | " + " | ".join(cells) + " |")


def print_figures(title, lines):
    """Print means over seeds, with the standard error."""
    most = max(line["labels"] for line in lines if line["strategy"] != WHOLE_POOL)
    seeds = len({line["seed"] for line in lines})
    print(f"\n{title}, {most:,} labels: means over {seeds} seeds, with standard errors\n")
    _header("", "positives", "group 1", *FIGURES.values())
    for strategy in _strategies(lines):
        own = [line for line in lines if line["strategy"] == strategy]
        bought = np.mean([line["positives"] for line in own]), np.mean([line["group"] for line in own])
        cells = [mean_and_error([figure(line, name) for line in own]) for name in FIGURES]
        print(f"| {strategy} | {bought[0]:.0f} | {bought[1]:.0%} | " + " | ".join(cells) + " |")


def mean_and_error(numbers, sign=""):
    """Show a mean and its standard error; what is undefined does not count."""
    known = np.array([own for own in numbers if not np.isnan(own)])
    if not len(known):
        return ""
    error = f" ± {known.std(ddof=1) / np.sqrt(len(known)):.3f}" if len(known) > 1 else ""
    return f"{known.mean():{sign}.3f}{error}"


def print_differences(title, lines):
    """Print by how much strategies differ from random drawing, paired by table and seed."""
    start = {(line["table"], line["seed"]): line for line in lines if line["strategy"] == "random"}
    print(f"\n{title}: {len(start)} pairs\n")
    _header("", *FIGURES.values())
    for strategy in _strategies(lines):
        own = [
            line
            for line in lines
            if line["strategy"] == strategy != "random" and (line["table"], line["seed"]) in start
        ]
        if own:
            cells = [
                mean_and_error(
                    [figure(line, name) - figure(start[line["table"], line["seed"]], name) for line in own],
                    "+",
                )
                for name in FIGURES
            ]
            print(f"| {strategy} | " + " | ".join(cells) + " |")


def print_curves(lines, name):
    """Print the mean of a figure at every number of labels, table by table."""
    sizes = sorted({line["labels"] for line in lines})
    print(f"\n{FIGURES[name]} by labels\n")
    _header("", "", *(f"{size:,}" for size in sizes))
    for table in (own for own in SHOWN if any(line["table"] == own for line in lines)):
        for strategy in _strategies(lines):
            own = [line for line in lines if (line["table"], line["strategy"]) == (table, strategy)]
            cells = [mean_of([line[name] for line in own if line["labels"] == size]) for size in sizes]
            print(f"| {SHOWN[table]} | {strategy} | " + " | ".join(cells) + " |")


def mean_of(numbers):
    """Show a mean; what is undefined does not count."""
    known = [own for own in numbers if not np.isnan(own)]
    return f"{np.mean(known):.3f}" if known else ""
