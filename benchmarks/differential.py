"""Metrics, samplers and reweighers beside plain loops over the rows.

    python benchmarks/differential.py --cases 2000

Drawn tables (labels of four kinds, tied scores of three precisions, decisions, weights with zeros, groups
that are small, empty of a label or alone, missing decisions) are compared with the oracles of `_oracles.py`.
`tests/test_differential.py` runs a few of the same cases.
"""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from _oracles import CHECKS, Case


def disagreements(check: Callable[[Case], None], cases: Any, count: int) -> dict[str, list[str]]:
    """Run a check on many cases; return what was wrong, by the line that found it, case by case."""
    wrong: dict[str, list[str]] = {}

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def run(case: Case) -> None:
        try:
            check(case)
        except Exception as error:  # whatever differs is counted
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            wrong.setdefault(place, []).append(f"{type(error).__name__}: {error}\n        {case}")

    run()
    return wrong


def main() -> None:
    """Print a line per function, and every kind of disagreement with its first case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000, help="of every function")
    parser.add_argument("--only", choices=sorted(CHECKS), help="check one of the functions")
    asked = parser.parse_args()
    print(f"{'function':30} {'cases':>7} {'disagreements':>14}")
    for name, (check, cases) in CHECKS.items():
        if asked.only in (None, name):
            wrong = disagreements(check, cases, asked.cases)
            print(f"{name:30} {asked.cases:7,} {sum(map(len, wrong.values())):14,}", flush=True)
            for place, reports in wrong.items():
                print(f"    {len(reports):,} in {place}, first {reports[0]}")


if __name__ == "__main__":
    main()
