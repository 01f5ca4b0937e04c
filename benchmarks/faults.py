"""Kill what runs again and again, and see that nothing is lost.

    python benchmarks/faults.py [--kills 1000] [--seed 0] [--only KIND ...]

Processes are killed (SIGKILL) at random moments: an experiment's supervisor or the child in which it runs,
each half of the time; commands that write values, rows and pages, mostly while they write; workers of a Dask
cluster. After every kill the file that was asked for is the one that was there before, or the new one, whole,
and a second run gives it to the byte and leaves nothing else behind. An experiment loses no finished fit,
does none again, and ends with the frame and the report of an undisturbed run. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
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
SHARES = {"experiment": 0.4, "value": 0.15, "sample": 0.1, "report": 0.1, "explore": 0.1, "dask": 0.15}
IN_WRITING = 0.7  # of the kills of a command


@dataclass
class Count:
    """What came of the kills of one kind."""

    kills: int = 0
    hits: int = 0  # while the process was running
    lost: int = 0  # finished fits that were gone
    half: int = 0  # files under their final name that were neither the old nor the new one
    changed: int = 0  # second runs that gave something else
    left: int = 0  # temporary files that were still there after a second run

    def row(self, kind):
        """Give the row of the table."""
        numbers = (self.kills, self.hits, self.lost, self.half, self.changed, self.left)
        return f"{kind:<24}" + "".join(f"{number:>9,}" for number in numbers)


HEADER = f"{'kind':<24}" + "".join(
    f"{name:>9}" for name in ("kills", "running", "lost", "half", "changed", "left")
)


def start(config, store, jobs=2):
    """Start a runner of its own."""
    command = [*RUN, str(config), "--store", str(store), "--jobs", str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Forked:
    """A command of the program in a process that was forked off one with all modules imported."""

    _server = multiprocessing.get_context("forkserver")
    _server.set_forkserver_preload(["fado.cli._app", "fado.experiment.run._child", "lightgbm", "altair"])

    def __init__(self, *arguments):
        self._said = tempfile.NamedTemporaryFile("r", suffix=".txt")  # noqa: SIM115 - gone with this
        self._process = self._server.Process(
            target=_command, args=(list(map(str, arguments)), self._said.name)
        )
        self._process.start()
        self.pid, self.kill = self._process.pid, self._process.kill

    def poll(self):
        """Give the exit code, None while it runs."""
        return self._process.exitcode

    def wait(self, timeout=None):
        """Wait for its end, and give the exit code."""
        self._process.join(timeout)
        return self._process.exitcode

    def communicate(self, timeout=None):
        """Wait for its end, and give what it printed."""
        self.wait(timeout)
        return "", self._said.read()

    def finish(self):
        """Wait for a command that must succeed."""
        _, said = self.communicate(600)
        if self.poll() != 0:
            raise RuntimeError(said)


def _command(arguments, said):
    from fado.cli import main

    output = os.open(said, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.argv = ["fado", *arguments]
    main()


def child_of(pid):
    """Give the process that a supervisor has started, or None."""
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in path.read_text().split():
                return int(child)
    return None


def is_alive(pid):
    """Tell whether a process runs: one that is dead and not yet buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(true, seconds, step=0.002):
    """Wait for something, so many seconds at most, and tell whether it came."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True


def done_fits(store):
    """Give the fits that the ledger holds, each with what tells its file from one written again."""
    try:
        with Store.reading(store) as opened:
            keys = [key for kind, key in opened.records if kind == "fit"]
    except (FileNotFoundError, ValueError):  # killed before there was a whole ledger
        return {}
    files = {key: (store / "fits" / f"{key}.parquet").stat() for key in keys}
    return {key: (stat.st_ino, stat.st_mtime_ns) for key, stat in files.items()}


class Killer:
    """Kills the supervisor of an experiment or its child at random moments, and starts it again.

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
        process, fits = self._process, self._store / "fits"

        def n_files():
            return len(list(fits.iterdir())) if fits.is_dir() else 0

        before = n_files()
        if self._generator.random() < 0.3:
            time.sleep(self._generator.uniform(0.1, 4))  # anywhere: import, data, values, binning
        else:  # while fits come in
            wait_until(lambda: process.poll() is not None or n_files() > before, 600)
            time.sleep(self._generator.uniform(0, 0.05))
        if process.poll() == 0:
            return False
        if process.poll() is not None:  # it has given up, after too many deaths in a row
            process.communicate()
            return True
        child = child_of(process.pid)
        self.count.kills += 1
        self.count.hits += process.poll() is None
        if child is not None and self._generator.random() < 0.5:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        else:
            process.kill()
            process.communicate()
            if child is not None and not wait_until(lambda: not is_alive(child), 10):
                raise RuntimeError("The child outlived its supervisor.")
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
        count.left += len(list((store / "running").iterdir()))
        shutil.rmtree(store)
        told("experiment", count, kills)
    return count


def same_results(store, expected, page):
    """Tell whether a store gives the frame and the report of an undisturbed run."""
    frame, report = expected
    results = Results.load(store)
    results.report(page)
    return results.frame.equals(frame) and page.read_bytes() == report


def kill_command(kind, kills, generator, folder, arguments, ending):
    """Kill a command that writes one file, mostly in writing, and run it again each time."""
    place = folder / f"out-{kind}"
    place.mkdir()
    out, count = place / f"out{ending}", Count()
    began = time.monotonic()
    Forked(*arguments, "--out", out).finish()
    seconds, new = time.monotonic() - began, out.read_bytes()
    for number in range(kills):
        out.unlink()
        if number % 2:
            out.write_bytes(b"old")
        old = out.read_bytes() if out.exists() else None
        process = Forked(*arguments, "--out", out)
        if generator.random() < IN_WRITING:
            wait_for_writing(process, place)
            time.sleep(generator.uniform(0, 0.01))
        else:
            time.sleep(generator.uniform(0, seconds))
        count.kills += 1
        count.hits += process.poll() is None
        process.kill()
        process.wait()
        there = out.read_bytes() if out.exists() else None
        count.half += there not in (old, new)
        Forked(*arguments, "--out", out).finish()
        count.changed += out.read_bytes() != new
        count.left += len(list(place.iterdir())) - 1
        told(kind, count, kills)
    return count


def wait_for_writing(process, place):
    """Wait until a temporary file shows that a command has begun to write."""
    wait_until(lambda: process.poll() is not None or list(place.glob(".*.part")), 600, 0.0005)


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
            told("dask", count, kills)
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
    """Wait until a store has more files of fits than so many, or nothing more will come."""
    wait_until(lambda: over.is_set() or len(list(store.glob("fits/*.parquet"))) > n_fits, 600)


def told(kind, count, kills):
    """Say now and then how far it is."""
    if count.kills % 20 == 0 or count.kills >= kills:
        print(f"  {count.row(kind)}   of {kills}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(SHARES), default=list(SHARES))
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        counts = run(Path(name), arguments.kills, arguments.seed, arguments.only)
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
    config, data, values = folder / "c.toml", folder / "data.parquet", folder / "values.parquet"
    config.write_text(CONFIG)
    undisturbed = Experiment.from_toml(config).run(folder / "undisturbed", n_jobs=2)
    undisturbed.report(folder / "undisturbed.html")
    expected = undisturbed.frame, (folder / "undisturbed.html").read_bytes()
    from fado.datasets import make_account_fraud

    make_account_fraud(3000, random_state=0).to_parquet(data)
    named = ["--target", "fraud_bool", "--protected", "customer_age>=50"]
    valuing = ["value", data, *named, "--bags", 5, "--algorithm", "oob", "--jobs", 2]
    Forked(*valuing, "--out", values).finish()
    commands = {
        "value": (valuing, ".parquet"),
        "sample": (["sample", data, "--values", values, *named, "--alpha", 0.5], ".parquet"),
        "explore": (["explore", data, "--values", values, *named], ".html"),
        "report": (["experiment", "report", folder / "undisturbed"], ".html"),
    }
    counts = {}
    for kind in only:
        generator, share = random.Random(f"{seed}-{kind}"), round(kills * SHARES[kind])
        if kind == "experiment":
            counts[kind] = kill_experiments(share, generator, folder, expected)
        elif kind == "dask":
            counts[kind] = kill_workers(share, generator, folder, expected)
        else:
            counts[kind] = kill_command(kind, share, generator, folder, *commands[kind])
    return counts


if __name__ == "__main__":
    main()
