"""Kill what runs again and again, and see that nothing is lost.

    python benchmarks/faults.py [--kills 1000] [--seed 0] [--only KIND ...]

Everything that writes is killed (SIGKILL): every command, and what saves a model, its card and an online
valuator. Most of these kills come right before or after a system call that changes a file, spread evenly
over all that an undisturbed run makes, each rename, removal and sync among them; the others at random
moments, mostly while files are written. Some of the runs after a kill are killed too. The process of an
experiment, its workers, and workers of a Dask cluster are killed at random moments alone.

After every kill what stands under the final name is the old one or the new one, whole; of a directory that
was being replaced, the old one may stand beside its place, and whoever reads there is told so. The next run
gives the files of an undisturbed run, to the byte, and leaves nothing else behind. An experiment loses no
finished fit, does none again, and ends with the frame and the report of an undisturbed run.

`_faults_process.py` says how a call is chosen, and what is done without a C compiler. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from _faults_commands import HEADER, Count, Killing, done_fits, n_done, writings
from _faults_process import Forked, children_of, is_alive, prepare, wait_until
from fado.experiment import Experiment, Results

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
SHARES = {"experiment": 0.08, "dask": 0.06}  # of all kills; commands have the others
AT_RANDOM = 0.15  # of the kills of commands; the others come at calls


def start(config, store, jobs=2, **options):
    """Start a runner of its own."""
    command = [*RUN, str(config), "--store", str(store), "--jobs", str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


class Killer:
    """Kills the process of an experiment or one of its workers at random moments, and starts it again.

    Parameters
    ----------
    config, store : path
        The experiment.
    generator : random.Random
        Of the moments and victims.
    begin : callable
        Starts a runner.
    """

    def __init__(self, config, store, generator, begin):
        self._begin = lambda: begin(config, store)
        self._store = store
        self._generator = generator
        self._process = None
        self.count = Count()
        self.done = {}

    def kill(self):
        """Kill once; False if the experiment was done before it came to that."""
        if self._process is None or self._process.poll() is not None:
            self._process = self._begin()
        process, before = self._process, n_done(self._store)
        if self._generator.random() < 0.3:
            time.sleep(self._generator.uniform(0.1, 4))  # anywhere: import, data, values, binning
        else:  # while fits come in
            wait_until(lambda: process.poll() is not None or n_done(self._store) > before, 600, step=0.02)
            time.sleep(self._generator.uniform(0, 0.05))
        if process.poll() == 0:
            return False
        if process.poll() is not None:  # it has given up, after too many deaths in a row
            process.communicate()
            return True
        workers = children_of(process.pid)
        self.count.kills += 1
        self.count.hits += process.poll() is None
        if workers and self._generator.random() < 0.5:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._generator.choice(workers), signal.SIGKILL)
        else:
            process.kill()
            process.communicate()
            if not wait_until(lambda: not any(map(is_alive, workers)), 10):
                raise RuntimeError("A worker outlived the process that started it.")
        self.look()
        return True

    def look(self):
        """Count the finished fits that are gone or were done again."""
        now = done_fits(self._store)
        self.count.lost += len(self.done.items() - now.items())
        self.done = now

    def finish(self):
        """Let the experiment end, and give the number of fits that were done before."""
        before = len(self.done)
        if self._process is None or self._process.poll() not in (None, 0):
            self._process = self._begin()
        _, said = self._process.communicate(timeout=600)
        if self._process.poll() != 0:
            raise RuntimeError(said)
        self._process = None
        self.look()
        return before


def killed_until_done(config, store, kills, seed, begin=start):
    """Kill a runner so many times, and let it finish then.

    Gives how many fits were done before it was let finish, and how many finished ones were lost or repeated.
    """
    killer = Killer(config, store, random.Random(seed), begin)
    while killer.count.kills < kills and killer.kill():
        pass
    return killer.finish(), killer.count.lost


def kill_experiments(kills, generator, folder, expected):
    """Kill an experiment; when it gets done in spite of all, compare it and start over."""
    count = Count()
    while count.kills < kills:
        store = folder / f"killed-{count.kills}"
        killer = Killer(
            folder / "c.toml",
            store,
            generator,
            lambda config, store: Forked("experiment", "run", config, "--store", store, "--jobs", 2),
        )
        while count.kills + killer.count.kills < kills and killer.kill():
            pass
        killer.finish()
        for name in ("kills", "hits", "lost"):
            setattr(count, name, getattr(count, name) + getattr(killer.count, name))
        count.changed += not same_results(store, expected, folder / "killed.html")
        count.left += len([path for path in store.rglob("*") if path.name.endswith(".part")])
        count.left += (store / "shelf").exists()
        shutil.rmtree(store)
        count.tell("experiment", kills)
    return count


def same_results(store, expected, page):
    """Tell whether a store gives the frame and the report of an undisturbed run."""
    frame, report = expected
    results = Results.load(store)
    results.report(page)
    return results.frame.equals(frame) and page.read_bytes() == report


def kill_workers(kills, generator, folder, expected):
    """Kill workers of a cluster that runs an experiment; its nanny starts another each time."""
    import dask
    import distributed

    count = Count()
    with (
        # or the cluster gives up on a worker that is killed again within the time
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            2, threads_per_worker=1, dashboard_address=None, memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        while count.kills < kills:
            store, over = folder / f"dask-{count.kills}", threading.Event()
            arguments = (cluster, store, over, kills, generator, count)
            killer = threading.Thread(target=_kill_workers, args=arguments)
            killer.start()
            try:
                Experiment.from_toml(folder / "c.toml").run(store, n_jobs=1, client=client)
            finally:
                over.set()
                killer.join()
            count.changed += not same_results(store, expected, folder / "dask.html")
            count.left += len(list(store.rglob("*.part")))
            shutil.rmtree(store)
            count.tell("dask", kills)
    return count


def _kill_workers(cluster, store, over, kills, generator, count):
    """Kill one worker after the other as long as fits come in."""
    done = {}
    while count.kills < kills and not over.is_set():
        _wait_for_more(store, len(done), over)
        over.wait(generator.uniform(0, 0.3))
        pids = _joined_workers(cluster)
        if over.is_set() or len(pids) < 2:  # one must be left to go on
            time.sleep(0.05)
            continue
        os.kill(generator.choice(pids), signal.SIGKILL)
        count.kills += 1
        count.hits += not over.is_set()
        now = done_fits(store)
        count.lost += len(done.items() - now.items())
        done = now


def _joined_workers(cluster):
    """Give the processes of workers that are at work: Dask gives up on one that is killed while it starts."""
    joined = set(cluster.scheduler.workers)
    nannies = [nanny for nanny in list(cluster.workers.values()) if nanny.worker_address in joined]
    return [nanny.pid for nanny in nannies if nanny.pid and is_alive(nanny.pid)]


def _wait_for_more(store, n_fits, over):
    """Wait until a store has more fits than so many, or nothing more will come."""
    wait_until(lambda: over.is_set() or n_done(store) > n_fits, 600, step=0.02)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="KIND")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        counts = run(Path(name).resolve(), arguments.kills, arguments.seed, arguments.only)
    columns = zip(*(vars(count).values() for count in counts.values()), strict=True)
    total = Count(*map(sum, columns))
    print(HEADER)
    for kind, count in counts.items():
        print(count.row(kind))
    print(total.row("all"))
    print(f"in {time.monotonic() - began:,.0f} s")
    raise SystemExit(bool(total.lost + total.half + total.changed + total.left))


def run(folder, kills, seed, only):
    """Kill what is asked for, and count."""
    lacking = prepare(folder)
    if lacking:
        print(lacking, file=sys.stderr)
    config, place = folder / "c.toml", folder / "place"
    config.write_text(CONFIG)
    undisturbed = Experiment.from_toml(config).run(folder / "undisturbed", n_jobs=2)
    undisturbed.report(folder / "undisturbed.html")
    expected = undisturbed.frame, (folder / "undisturbed.html").read_bytes()
    commands = writings(folder, place, folder / "undisturbed")
    only = only or [*commands, *SHARES]
    if set(only) - {*commands, *SHARES}:
        raise SystemExit(f"`--only` takes {', '.join([*commands, *SHARES])}.")
    killings = {
        kind: Killing(kind, commands[kind], place, random.Random(f"{seed}-{kind}"), at_calls=not lacking)
        for kind in only
        if kind in commands
    }
    rest = kills - sum(round(kills * SHARES[kind]) for kind in only if kind in SHARES)
    shares = deal({kind: killing.n_moving for kind, killing in killings.items()}, rest)
    counts = {kind: killing.run(*shares[kind]) for kind, killing in killings.items()}
    for kind, kill in {"experiment": kill_experiments, "dask": kill_workers}.items():
        if kind in only:
            generator = random.Random(f"{seed}-{kind}")
            counts[kind] = kill(round(kills * SHARES[kind]), generator, folder, expected)
    return counts


def deal(moving, kills):
    """Say how often each command is killed: at calls, and at random moments.

    Each has a kill for each of its calls that rename, remove or sync, if there are enough, and one at least;
    what is left is dealt evenly.
    """
    at_random = round(AT_RANDOM * kills / max(1, len(moving)))
    at_calls, total = kills - at_random * len(moving), sum(moving.values())
    if total > at_calls:
        print(f"{at_calls:,} of {total:,} renames, removals and syncs are hit: more `--kills` hit all")
    spare, more = divmod(max(0, at_calls - total), max(1, len(moving)))
    return {
        kind: (max(1, min(n, n * at_calls // max(1, total))) + spare + (turn < more), at_random)
        for turn, (kind, n) in enumerate(moving.items())
    }


if __name__ == "__main__":
    main()
