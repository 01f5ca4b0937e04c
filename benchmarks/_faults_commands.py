"""All that writes files: how it is called, what must stand after a kill, and what after a second run."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module

from _faults_process import MOVING, Forked, Watched, calls_of, wait_until
from fado import OnlineEntropy, Valuation, load_model
from fado.datasets import make_account_fraud
from fado.experiment import Experiment, Results
from fado.experiment._store import DATABASE, Store
from fado.valuation import load_models

STORE = "store"
TWICE = 0.3  # of the kills that come at random: the run after a killed one is killed too
IN_WRITING = 0.7  # of the others
MOST_OF_A_DEMO = 10  # kills at calls, as it runs the other commands
NAMED = ["--target", "fraud_bool", "--protected", "customer_age>=50"]
ONE_JOB = ["--jobs", 1]
BY_PARTS = ["--memory", "1GB"]
SMALL = """
[data]
generator = "account_fraud"
rows = 1000
target = "fraud_bool"
protected = "customer_age>=50"
[split]
method = "random"
train = 0.5
validation = 0.25
test = 0.25
[interventions]
rps = true
rw = true
[models]
count = 1
[models.space]
n_estimators = { log_uniform = [2, 10] }
"""


@dataclass
class Count:
    """What came of the kills of one kind."""

    kills: int = 0
    hits: int = 0  # while the process was running
    calls: int = 0  # at a chosen system call
    aside: int = 0  # after which the old directory was beside its place, and a sentence said so
    lost: int = 0  # finished fits that were gone
    half: int = 0  # what stood under a final name and was neither the old nor the new one
    changed: int = 0  # second runs that gave something else
    left: int = 0  # files that were still there after a second run

    def row(self, kind):
        """Give the row of the table."""
        return f"{kind:<16}" + "".join(f"{number:>9,}" for number in vars(self).values())

    def tell(self, kind, kills):
        """Say now and then how far it is."""
        if self.kills % 20 == 0 or self.kills >= kills:
            print(f"  {self.row(kind)}   of {kills}", file=sys.stderr, flush=True)


HEADER = f"{'kind':<16}" + "".join(
    f"{name:>9}" for name in ("kills", "running", "calls", "aside", "lost", "half", "changed", "left")
)


@dataclass(frozen=True)
class Writing:
    """Something that writes into a folder.

    Parameters
    ----------
    arguments : list
        As `Forked` takes them.
    old : callable, optional
        Puts what an earlier run may have left into the folder, half of the times.
    read : callable, optional
        Reads what is no single file; it raises a ValueError whose sentence says why it cannot.
    """

    arguments: list
    old: Callable | None = None
    read: Callable | None = None


def save_model(saved, out):
    load_model(saved).save(out)


def save_card(saved, out):
    load_model(saved).card_page(out)


def save_online(saved, out):
    OnlineEntropy.load(saved).save(out)


def run_experiment(config, store):
    Experiment.from_toml(config).run(store, n_jobs=1, isolated=False)


def run_demo(out):
    demo = import_module("fado.cli.demo")
    demo.ROWS, demo.FITS = 1000, 12
    import_module("fado.cli._app").in_sentences(demo.demo)(out=out)


def writings(folder, place, store):
    """Make small tables, values and models; give all that writes, by the kind's name."""
    data, new, files, values = (folder / name for name in ("data.parquet", "new.parquet", "files", "values"))
    table = make_account_fraud(2000, random_state=0)
    table.to_parquet(data)
    make_account_fraud(500, random_state=1).to_parquet(new)
    files.mkdir()
    for number in range(2):
        table.iloc[1000 * number : 1000 * number + 1000].to_parquet(files / f"{number}.parquet")
    (folder / "small.toml").write_text(SMALL)

    valuing = ["value", data, *NAMED, "--bags", 5, *ONE_JOB]
    by_parts = ["value", files, *NAMED, "--bags", 5, "--train-rows", 500, *BY_PARTS, *ONE_JOB]
    searching = ["frontier", data, *NAMED, "--max-fits", 2, *ONE_JOB]
    valued = [*NAMED, "--values", folder / "values.parquet"]
    parts_valued = [*NAMED, "--values", values, *BY_PARTS]
    model, online = folder / "model", folder / "online"
    Forked(*valuing, "--models", folder / "models", "--out", folder / "values.parquet").finish()
    Forked(*by_parts, "--out", values).finish()
    Forked(*searching, "--out", model).finish()
    Forked(*searching, "--seed", 1, "--out", folder / "model-before").finish()
    _save_states(table, online, folder / "online-before")

    def file(name):
        return lambda: (place / name).write_bytes(b"old")

    def copy(saved, name):
        return lambda: shutil.copytree(saved, place / name)

    def out(*arguments, name, old=True):
        return Writing([*arguments, "--out", place / name], file(name) if old else None)

    return {
        "value": out(*valuing, name="v.parquet"),
        "keep models": Writing(
            [*valuing, "--models", place / "models", "--out", place / "v.parquet"],
            file("v.parquet"),
            load_models,
        ),
        "new rows": out("value", new, "--models", folder / "models", *ONE_JOB, name="v.csv"),
        "value parts": Writing([*by_parts, "--out", place / "values"], None, Valuation.load),
        "value joined": out(*by_parts, name="v.parquet"),
        "sample": out("sample", data, *valued, "--alpha", 0.5, name="s.parquet"),
        "sample parts": out("sample", files, *parts_valued, "--alpha", 0.5, name="s", old=False),
        "reweigh": out("reweigh", data, *valued, "--alpha", 0.5, name="r.csv"),
        "reweigh parts": out("reweigh", files, *parts_valued, "--alpha", 0.5, name="r.parquet"),
        "generate": out(
            *["generate", data, *valued, "--alpha", 0.5, "--method", "repeat", *ONE_JOB],
            name="g.parquet",
        ),
        "query": out("query", data, new, *NAMED, "--n", 20, "--bags", 5, *ONE_JOB, name="q.parquet"),
        "explore": out("explore", data, *valued, name="e.html"),
        "explore parts": out("explore", files, *parts_valued, "--sample-rows", 500, name="e.html"),
        "predict": out("predict", model, new, name="p.parquet"),
        "report": out("experiment", "report", store, name="r.html"),
        "init": Writing(["experiment", "init", place / "c.toml"]),
        "card": Writing([save_card, model, place / "card.html"], file("card.html")),
        "model": Writing([save_model, model, place / "m"], copy(folder / "model-before", "m"), load_model),
        "online": Writing(
            [save_online, online, place / "o"], copy(folder / "online-before", "o"), OnlineEntropy.load
        ),
        "frontier": Writing(
            [*searching, "--out", place / "m"], copy(folder / "model-before", "m"), load_model
        ),
        "frontier store": Writing(
            [*searching, "--store", place / STORE, "--out", place / "m"],
            copy(folder / "model-before", "m"),
            load_model,
        ),
        "demo": Writing([run_demo, place]),
        "one process": Writing([run_experiment, folder / "small.toml", place / STORE]),
    }


def _save_states(table, after, before):
    """Save an online valuator after a second and after a first batch."""
    online = OnlineEntropy(n_bags=5, window=1000, random_state=0)
    for rows, saved in ((table[:1000], before), (table[1000:], after)):
        labels, old = rows["fraud_bool"], rows["customer_age"] >= 50
        online.learn(rows.drop(columns=["fraud_bool", "customer_age"]), labels, sensitive_features=old)
        online.save(saved)


def content_of(place):
    """Give what stands in a folder, bytes by names; of a store the names, as its files tell times."""
    paths = {str(path.relative_to(place)): path for path in sorted(place.rglob("*"))}
    return {
        name: b"" if path.is_dir() or name.startswith(f"{STORE}/") else path.read_bytes()
        for name, path in paths.items()
    }


def result_of(place):
    """Give what a run has made of a folder: what stands there, and the frame of a store."""
    found = content_of(place)
    if (place / STORE).is_dir():
        found[STORE] = Results.load(place / STORE).frame.to_csv().encode()
    return found


def done_fits(store):
    """Give the trials that are done, each with what tells its fit from one that was made again."""
    try:
        with Store.reading(store) as opened:
            return {number: trial.seconds for number, trial in opened.rows.items() if trial.status == "done"}
    except (FileNotFoundError, ValueError):  # killed before there was a whole file
        return {}


def n_done(store):
    """Count the trials that are done, without a look at them."""
    try:
        with closing(sqlite3.connect(f"file:{store}/{DATABASE}?mode=ro", uri=True, timeout=30)) as connection:
            count = "SELECT count(*) FROM trials WHERE json_extract(trial, '$.status') = 'done'"
            return connection.execute(count).fetchone()[0]
    except sqlite3.Error:  # there are none yet, or a killed writer's transaction must be undone first
        return 0


def below(content, name):
    """Give what stands under one name of a folder."""
    return {
        path.removeprefix(name): own for path, own in content.items() if f"{path}/".startswith(f"{name}/")
    }


@dataclass(frozen=True)
class Moment:
    """When to kill: at a call, or so long after the start or after the first change of a folder."""

    number: int = 0  # of the call, from 1 on
    is_after: bool = False
    name: str = ""
    delay: float = 0.0
    in_writing: bool = False

    def __str__(self):
        if self.number:
            return f"{'after' if self.is_after else 'before'} call {self.number}, {self.name}"
        return f"{self.delay:.4f} s after {'the first change' if self.in_writing else 'the start'}"


class Killing:
    """Kills what writes into a folder, and runs it again each time.

    Parameters
    ----------
    kind : str
        What it is called.
    writing : Writing
        What runs.
    place : Path
        The folder that it writes into.
    generator : random.Random
        Of the moments.
    at_calls : bool
        Whether calls are to be had.
    """

    def __init__(self, kind, writing, place, generator, *, at_calls):
        self._kind, self._writing, self._place, self._generator = kind, writing, place, generator
        self.count = Count()
        self._olds = [None] if writing.old is None else [None, writing.old]
        self._recorded, self._seconds = [], 0.0
        for old in self._olds:
            self._prepare(old)
            began = time.monotonic()
            self._recorded.append(calls_of(writing.arguments, place, watched=at_calls))
            self._seconds = max(self._seconds, time.monotonic() - began)
        self._new = result_of(place)

    @property
    def n_moving(self):
        """How many calls rename, remove or sync, the old one being there."""
        n = sum(call.name in MOVING for call in self._recorded[-1])
        return min(n, MOST_OF_A_DEMO) if self._kind == "demo" else n

    def run(self, at_calls, at_random):
        """Kill at so many calls, which are spread evenly, and so many times at random moments."""
        can_choose, kills = bool(self._recorded[-1]), at_calls + at_random
        for which, moment in _spread(self._recorded, at_calls) if can_choose else ():
            self._kill_and_run_again(self._olds[which], [moment], kills)
        while self.count.kills < kills:
            which = self._generator.randrange(len(self._olds))
            twice = can_choose and self._generator.random() < TWICE and self.count.kills < kills - 1
            moments = [self._any_moment(self._recorded[which], twice) for _ in range(1 + twice)]
            self._kill_and_run_again(self._olds[which], moments, kills)
        return self.count

    def _any_moment(self, calls, at_call):
        if at_call:
            number = self._generator.randrange(len(calls))
            return Moment(number + 1, self._generator.random() < 0.5, calls[number].name)
        if self._generator.random() < IN_WRITING:
            writing = calls[-1].moment - calls[0].moment if calls else 0.01
            return Moment(delay=self._generator.uniform(0, writing), in_writing=True)
        return Moment(delay=self._generator.uniform(0, self._seconds))

    def _prepare(self, old):
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir()
        if old is not None:
            old()

    def _kill_and_run_again(self, old, moments, kills):
        """Kill a run, or two after each other, let the next one finish, and look at what is there."""
        self._prepare(old)
        before, count, said = content_of(self._place), self.count, " and then ".join(map(str, moments))
        for moment in moments:
            self._kill(moment)
            for name in {path.split("/")[0] for path in [*before, *self._new]} - {STORE}:
                fault = self._fault_of(name, before)
                count.half += bool(fault)
                self._tell(fault, said)
        done = done_fits(self._place / STORE)
        last = Forked(*self._writing.arguments)
        _, printed = last.communicate(600)
        count.lost += len(done.items() - done_fits(self._place / STORE).items())
        now = result_of(self._place)
        left = sorted(now.keys() - self._new.keys())
        others = [name for name, own in self._new.items() if now.get(name) != own]
        is_refused = bool(last.poll()) and "error: " in printed  # which is right if all is there already
        count.changed += bool(others) or (bool(last.poll()) and not is_refused)
        count.left += len(left)
        self._tell(others and f"the next run gives another {others[0]!r}", said)
        self._tell(left and f"after the next run there is still {left[0]!r}", said)
        self._tell(
            last.poll() and (others or left or not is_refused) and f"it says {printed.strip()[-300:]!r}", said
        )
        count.tell(self._kind, kills)

    def _kill(self, moment):
        watched = Watched(str(self._place), moment.number, moment.is_after) if moment.number else None
        there = set(self._place.iterdir())
        process = Forked(*self._writing.arguments, watched=watched)
        if watched is not None:
            process.wait(600)
        elif moment.in_writing:
            wait_until(lambda: process.poll() is not None or set(self._place.iterdir()) != there, 600, 0.0005)
        time.sleep(moment.delay)
        process.kill()
        is_hit = process.wait() == -signal.SIGKILL
        self.count.kills += 1
        self.count.hits += is_hit
        self.count.calls += is_hit and watched is not None

    def _fault_of(self, name, before):
        """Say what is wrong with what stands under a name after a kill; empty if nothing is."""
        now = content_of(self._place)
        found, old, new = (below(content, name) for content in (now, before, self._new))
        if found == old or (new and new.items() <= found.items()):  # beside it, the next run looks
            return ""
        if self._writing.read is None:
            return f"{name!r} is neither the old nor the new one"
        try:
            self._writing.read(self._place / name)
        except ValueError as error:
            said = str(error)
        else:
            return f"{name!r} is neither the old nor the new one, and is read as if it were whole"
        if found:  # begun, and reading it says so
            return ""
        aside = [own for own in now if own.endswith(".old") and own in said and below(now, own) == old]
        self.count.aside += bool(aside)
        return "" if aside else f"{name!r} is gone, and nothing says where it is: {said}"

    def _tell(self, fault, moments):
        if fault:
            print(f"{self._kind}, killed {moments}: {fault}", file=sys.stderr, flush=True)


def _spread(recorded, n):
    """Choose calls: before each that renames, removes or syncs, then before or after any, evenly over all.

    Gives for each kill which of the recorded runs it is of, and the moment.
    """
    moments = [
        (which, Moment(number, after, call.name))
        for which, calls in enumerate(recorded)
        for number, call in enumerate(calls, 1)
        for after in (False, True)
    ]
    last = len(recorded) - 1  # with the old one there, which has all that the other has and more
    moving = [own for own in moments if own[0] == last and own[1].name in MOVING and not own[1].is_after]
    chosen = _evenly(moving, min(n, len(moving)))
    return chosen + _evenly([own for own in moments if own not in set(moving)], n - len(chosen))


def _evenly(sequence, n):
    return [sequence[(2 * i + 1) * len(sequence) // (2 * n)] for i in range(n)]
