"""Kill a running experiment again and again, and see that nothing is lost.

    python benchmarks/faults.py [--kills 200] [--seed 0]

The runner is killed (SIGKILL) at random moments until it has been killed so often; then it may finish.
Printed are how many fits were done when, whether any finished fit was lost or done again, and whether the
final frame and report equal those of an undisturbed run.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fado.experiment import Experiment, Results
from fado.experiment.store import Store

CONFIG = """
[data]
generator = "account_fraud"
rows = 5000
target = "fraud_bool"
protected = "customer_age>=50"
[split]
method = "random"
train = 0.5
validation = 0.25
test = 0.25
[valuation]
bags = 5
models = [{ n_estimators = 5 }]
[interventions.uaps]
alphas = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
[interventions.uar]
alphas = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
scalings = ["minmax", "none"]
[models]
count = 60  # so that fits are left for the last kills
[models.space]
n_estimators = { log_uniform = [2, 10] }
learning_rate = { log_uniform = [0.02, 0.5] }
"""


RUN = [sys.executable, "-c", "from fado.cli import main; main()", "experiment", "run"]


def start(config, store, jobs=2):
    """Start a runner of its own."""
    command = [*RUN, str(config), "--store", str(store), "--jobs", str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def done_fits(store):
    """Give the fits that the ledger holds, each with what tells its file from one written again."""
    try:
        with Store.reading(store) as opened:
            keys = [key for kind, key in opened.records if kind == "fit"]
    except (FileNotFoundError, ValueError):  # killed before there was a whole ledger
        return {}
    files = {key: (store / "fits" / f"{key}.parquet").stat() for key in keys}
    return {key: (stat.st_ino, stat.st_mtime_ns) for key, stat in files.items()}


def killed_until_done(config, store, kills, seed, told=lambda kill, done: None):
    """Kill the runner at random moments, so many times, and let it finish then.

    Gives how many fits were done before it was let finish, and how many finished ones were lost or repeated.
    """
    generator = random.Random(seed)
    fits, done, repeated = store / "fits", {}, 0
    for kill in range(kills):
        process = start(config, store)
        before = len(list(fits.glob("*"))) if fits.is_dir() else 0
        if generator.random() < 0.3:
            time.sleep(generator.uniform(0.3, 2.5))  # anywhere: import, data, values, binning
        else:  # while fits come in
            while process.poll() is None and (not fits.is_dir() or len(list(fits.glob("*"))) <= before):
                time.sleep(0.002)
            time.sleep(generator.uniform(0, 0.05))
        process.kill()
        process.communicate()
        now = done_fits(store)
        repeated += len(done.items() - now.items())
        done = now
        told(kill + 1, len(done))
    process = start(config, store)
    _, errors = process.communicate(timeout=600)
    if process.returncode != 0:
        raise RuntimeError(errors)
    return len(done), repeated + len(done.items() - done_fits(store).items())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    config, store = folder / "c.toml", folder / "store"
    config.write_text(CONFIG)
    expected = Experiment.from_toml(config).run(folder / "undisturbed", n_jobs=2)
    expected.report(folder / "undisturbed.html")
    total = len(done_fits(folder / "undisturbed"))

    def told(kill, done):
        if kill % 20 == 0:
            print(f"{kill} kills, {done} of {total} fits done", flush=True)

    _, repeated = killed_until_done(config, store, arguments.kills, arguments.seed, told)
    results = Results.load(store)
    results.report(folder / "killed.html")
    same_report = (folder / "killed.html").read_bytes() == (folder / "undisturbed.html").read_bytes()
    print(f"{arguments.kills} kills: finished fits lost or done again: {repeated}")
    print(f"the frame equals the undisturbed run's: {results.frame.equals(expected.frame)}")
    print(f"the report equals the undisturbed run's: {same_report}")


if __name__ == "__main__":
    main()
