"""Which rows to label next: learning curves of a model's true-positive rate and of its ratios between groups.

    python benchmarks/active.py --data DIR --out FILE [--tables adult ...] [--seeds 0 ...] [--strategies ...]
    python benchmarks/active.py --table FILE
    python benchmarks/active.py --data DIR --expected

The rules, fixed before the first run.

- Tables: Adult by sex and Give Me Some Credit by age < 40 are those that settings are chosen on; ACS Income
  by sex and generated account fraud by age >= 50 validation. The attribute is no feature. 5 seeds; each deals
  a pool of 20,000 rows, 8,000 validation and 20,000 test rows, by label and group.
- 500 rows of the pool, drawn at random, have labels at the start, the same for all strategies. Then labels
  are bought in batches: 1,000, 1,500, 2,500 and 3,500 in all. Every strategy sees the labels that it bought,
  the features of the whole pool and, where its description says so, the groups of the pool.
- The model: LightGBM's classifier with 100 trees, a learning rate of 0.05 and its other settings as they are,
  in bins of all rows, which take no label. Its threshold is that at 5 % false positives of the validation
  rows; TPR and ratios are told by the test rows at that threshold.
- The same labels with aimed weights, at 3,500: `AimedEstimator(model, at_least=0.8, by="weights")`, validated
by
  the validation rows, which every strategy has alike and which do not count as bought.
- Entropies and probabilities are those of `OutOfBagEntropy(n_bags=5)` of the labelled rows, effects those of
  `TreeInfluence` of the model itself, validated by the validation rows.
- "whole pool" is no strategy: all 20,000 labels are bought, to tell what more labels would come to.
- What is told: means over seeds with their standard errors, and the mean differences from random drawing,
  paired by table and seed.

What was not fixed before. A first look, at one seed of Adult and, in part, of credit, with other sizes and
other models behind the entropies, came before the rules: asking about one group alone, ranking by the size of
the effect on the TPR and by the better of both labels' effects were left out after it. The whole pool and all
that goes by the epistemic part, but "epistemic" itself, were added after the first seed's figures had been
seen, and "epistemic, utility .75", which is what `UtilityQuery` does, after those of the scaled one.

`--expected` holds the effects that can be expected of open rows against those at their true labels, with
1,500 labels of the first seed. Runs go on where they were killed: FILE has one line per table, seed, strategy
and number of labels.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path

import numpy as np

from _active_rounds import N_POOL, Round, Split, deal
from _active_shown import print_tables
from _active_strategies import STRATEGIES, WHOLE_POOL, random
from _data import data_argument

TABLES = ("adult", "give_me_some_credit", "acs_income", "account_fraud")
KEY = ("table", "seed", "strategy", "labels")
SIZES = (500, 1_000, 1_500, 2_500, 3_500)


def start(split: Split) -> Round:
    """Give the labels that every strategy starts from."""
    generator = np.random.default_rng([split.seed, 0])
    return Round(split, np.sort(generator.choice(len(split.pool), SIZES[0], replace=False)))


def sizes_of(name: str) -> tuple[int, ...]:
    """Give the numbers of labels at which a strategy is measured."""
    return (SIZES[0], N_POOL) if name == WHOLE_POOL else SIZES


def learn(state: Round, name: str):
    """Buy labels by one strategy; give the figures at every size."""
    sizes = sizes_of(name)
    for size in sizes:
        if size > len(state.labelled):
            chosen = STRATEGIES[name](state, size - len(state.labelled))
            state = Round(state.split, np.concatenate([state.labelled, state.rest[chosen]]))
        told = {"labels": size, "positives": int(state.y.sum()), "group": round(float(state.z.mean()), 3)}
        yield told | state.measure() | ({"aimed": state.measure_aimed()} if size == sizes[-1] else {})


def read(path: Path) -> list[dict]:
    """Read what was found; of lines told twice the last counts."""
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return list({tuple(one[name] for name in KEY): one for one in lines}.values())


def run_all(arguments):
    done = {tuple(one[name] for name in KEY) for one in read(arguments.out)}
    for seed, table in product(arguments.seeds, arguments.tables):
        todo = [own for own in arguments.strategies if (table, seed, own, sizes_of(own)[-1]) not in done]
        if not todo:
            continue
        first = start(deal(arguments.data, table, seed))
        for name in todo:
            begun = time.perf_counter()
            told = [{"table": table, "seed": seed, "strategy": name, **own} for own in learn(first, name)]
            with arguments.out.open("a") as file:
                file.write("".join(json.dumps(own) + "\n" for own in told))
            print(f"{table}, {seed}, {name}: {time.perf_counter() - begun:.0f} s", flush=True)


def print_expected(arguments):
    """Print how much of the rows' effects can be expected before their labels are known."""
    print("| | spread: TPR | ratio | correlation: TPR | ratio |\n|---|---|---|---|---|")
    for table in arguments.tables:
        first = start(deal(arguments.data, table, 0))
        state = Round(first.split, np.concatenate([first.labelled, first.rest[random(first, 1_000)]]))
        effects = state.effects
        labels = state.split.y[state.split.pool[state.rest]]
        expected, known = effects.at(effects.probability), effects.at(labels)
        spread = expected.std(axis=0) / known.std(axis=0)
        correlation = [np.corrcoef(expected[:, k], known[:, k])[0, 1] for k in (0, 1)]
        print(f"| {table} | " + " | ".join(f"{own:.2f}" for own in (*spread, *correlation)) + " |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--strategies", nargs="+", choices=list(STRATEGIES), default=list(STRATEGIES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--out", type=Path, help="file that keeps what was found; a run goes on from it")
    parser.add_argument("--table", type=Path, help="print what such a file holds, and run nothing")
    parser.add_argument("--expected", action="store_true", help="how well effects can be expected")
    arguments = parser.parse_args()
    if arguments.table is not None:
        print_tables(read(arguments.table))
        return
    if arguments.expected and arguments.data:
        print_expected(arguments)
        return
    if not arguments.data or arguments.out is None:
        parser.error("--data is needed, and, to run, --out")
    run_all(arguments)
    print_tables(read(arguments.out))


if __name__ == "__main__":
    main()
