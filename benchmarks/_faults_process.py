"""Processes that are killed at a chosen system call.

A command runs in a process that was forked off one with all modules imported. That one has a small library
in front of the system's own (LD_PRELOAD), which a C compiler makes when the script begins: it sees every call
that changes files, from Python, Arrow, SQLite or any other code, notes those below one folder, and ends the
process by SIGKILL right before or right after the one that was chosen. This is much faster than to watch the
process from outside, as strace does, and misses none of the calls that compiled code makes, as wrappers in
Python would. Where there is no C compiler, nothing is chosen and all kills come at random moments.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path

LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static char folder[4096];
static size_t length; /* 0 until a process is told what to watch */
static long chosen;
static int is_after, notes = -1;
static atomic_long seen;

void watch(const char *path, long number, int after, int handle) {
    chosen = number; is_after = after; notes = handle; seen = 0;
    strncpy(folder, path, sizeof folder - 1);
    length = strlen(folder);
}

static int is_below(const char *path) {
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int of_link(const char *link, const char *rest) {
    char path[8192];
    ssize_t n = readlink(link, path, 4096);
    if (n <= 0) return 0;
    snprintf(path + n, sizeof path - n, rest ? "/%s" : "", rest);
    return is_below(path);
}

static int of_path(int at, const char *path) {
    char link[64] = "/proc/self/cwd";
    if (!length || !path) return 0;
    if (*path == '/') return is_below(path);
    if (at != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    return of_link(link, path);
}

static int of_handle(int handle) {
    char link[64];
    if (!length) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    return of_link(link, 0);
}

static ssize_t (*write_itself)(int, const void *, size_t);

static long begin(int is_ours, const char *name) {
    if (!is_ours) return 0;
    long number = ++seen;
    if (notes >= 0) {
        char line[128];
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int n = snprintf(line, sizeof line, "%s %ld.%09ld\n", name, now.tv_sec, now.tv_nsec);
        if (!write_itself) write_itself = dlsym(RTLD_NEXT, "write");
        if (write_itself(notes, line, n) < 0) notes = -1;
    }
    if (number == chosen && !is_after) { kill(getpid(), SIGKILL); for (;;) pause(); }
    return number;
}

static void end(long number) {
    if (number && number == chosen) { kill(getpid(), SIGKILL); for (;;) pause(); }
}

#define WATCHED(type, name, parameters, arguments, is_ours)                \
    type name parameters {                                                \
        static type (*itself) parameters;                                 \
        if (!itself) itself = dlsym(RTLD_NEXT, #name);                    \
        long number = begin(is_ours, #name);                              \
        type result = itself arguments;                                   \
        end(number);                                                      \
        return result;                                                    \
    }

#define MAKES(flags) ((flags) & (O_CREAT | O_TRUNC))
#define HAS_MODE(flags) ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE)
#define OPENING(name, parameters, arguments, at)                           \
    int name parameters {                                                 \
        static int (*itself) parameters;                                  \
        if (!itself) itself = dlsym(RTLD_NEXT, #name);                    \
        va_list given;                                                    \
        va_start(given, flags);                                           \
        mode_t mode = HAS_MODE(flags) ? va_arg(given, mode_t) : 0;        \
        va_end(given);                                                    \
        long number = begin(MAKES(flags) && of_path(at, path), "open");   \
        int result = itself arguments;                                    \
        end(number);                                                      \
        return result;                                                    \
    }

OPENING(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENING(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENING(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)
OPENING(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)
WATCHED(ssize_t, write, (int h, const void *b, size_t n), (h, b, n), of_handle(h))
WATCHED(ssize_t, pwrite, (int h, const void *b, size_t n, off_t o), (h, b, n, o), of_handle(h))
WATCHED(ssize_t, pwrite64, (int h, const void *b, size_t n, off64_t o), (h, b, n, o), of_handle(h))
WATCHED(ssize_t, writev, (int h, const struct iovec *v, int n), (h, v, n), of_handle(h))
WATCHED(int, ftruncate, (int h, off_t n), (h, n), of_handle(h))
WATCHED(int, ftruncate64, (int h, off64_t n), (h, n), of_handle(h))
WATCHED(int, fsync, (int h), (h), of_handle(h))
WATCHED(int, fdatasync, (int h), (h), of_handle(h))
WATCHED(int, fchmod, (int h, mode_t m), (h, m), of_handle(h))
WATCHED(int, chmod, (const char *p, mode_t m), (p, m), of_path(AT_FDCWD, p))
WATCHED(int, fchmodat, (int a, const char *p, mode_t m, int f), (a, p, m, f), of_path(a, p))
WATCHED(int, rename, (const char *p, const char *q), (p, q), of_path(AT_FDCWD, p))
WATCHED(int, renameat, (int a, const char *p, int b, const char *q), (a, p, b, q), of_path(a, p))
WATCHED(int, unlink, (const char *p), (p), of_path(AT_FDCWD, p))
WATCHED(int, unlinkat, (int a, const char *p, int f), (a, p, f), of_path(a, p))
WATCHED(int, mkdir, (const char *p, mode_t m), (p, m), of_path(AT_FDCWD, p))
WATCHED(int, mkdirat, (int a, const char *p, mode_t m), (a, p, m), of_path(a, p))
WATCHED(int, rmdir, (const char *p), (p), of_path(AT_FDCWD, p))
WATCHED(int, link, (const char *p, const char *q), (p, q), of_path(AT_FDCWD, q))
WATCHED(int, symlink, (const char *p, const char *q), (p, q), of_path(AT_FDCWD, q))
"""

MOVING = {"rename", "renameat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "fsync", "fdatasync"}
IMPORTED = ["fado.cli._app", "fado.experiment._runner", "lightgbm", "altair", "dask.dataframe"]


@dataclass(frozen=True)
class Call:
    """A system call that changed a file: what it is called, and when it was made."""

    name: str
    moment: float


@dataclass(frozen=True)
class Watched:
    """What a process is watched for: the calls below a folder, the one to end at, and a file for notes."""

    folder: str
    number: int = 0
    after: bool = False
    notes: str | None = None


def prepare(folder):
    """Start the process that all others are forked off; give what kills at a call lack, empty if nothing."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    lacking = "" if compiler else "There is no C compiler (cc): all kills come at random moments."
    if compiler:
        source, library = folder / "watch.c", folder / "watch.so"
        source.write_text(LIBRARY)
        made = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"],
            capture_output=True,
            text=True,
        )
        if made.returncode:
            lacking = f"The C compiler fails, so that all kills come at random moments: {made.stderr[:500]}"
        else:
            os.environ["LD_PRELOAD"] = str(library)
    try:
        Forked.server.set_forkserver_preload(IMPORTED)
        forkserver.ensure_running()
    finally:
        os.environ.pop("LD_PRELOAD", None)
    return lacking


class Forked:
    """Something that runs in a process of its own, forked off one with all modules imported.

    Parameters
    ----------
    *arguments : object
        Of the program; or a function of a module, and its arguments.
    watched : Watched, optional
        The calls to note, or the one to end at.
    """

    server = multiprocessing.get_context("forkserver")

    def __init__(self, *arguments, watched=None):
        self._said = tempfile.NamedTemporaryFile("r", suffix=".txt")  # noqa: SIM115 - gone with this
        self._process = self.server.Process(target=_run, args=(arguments, self._said.name, watched))
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
        """Wait for what must succeed."""
        _, said = self.communicate(600)
        if self.poll() != 0:
            raise RuntimeError(said)


def _run(arguments, said, watched):
    output = os.open(said, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(output, stream)
    if watched is not None:
        notes = -1 if watched.notes is None else os.open(watched.notes, os.O_WRONLY | os.O_APPEND)
        ctypes.CDLL(None).watch(
            watched.folder.encode(), ctypes.c_long(watched.number), int(watched.after), notes
        )
    if callable(arguments[0]):
        arguments[0](*arguments[1:])
        return
    from fado.cli import main

    sys.argv = ["fado", *map(str, arguments)]
    main()


def calls_of(arguments, folder, *, watched):
    """Run something undisturbed, and give the calls that it makes below a folder; none if not watched."""
    if not watched:
        Forked(*arguments).finish()
        return []
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as notes:
        Forked(*arguments, watched=Watched(str(folder), notes=notes.name)).finish()
        lines = [line.split() for line in notes.read().splitlines()]
    return [Call(name, float(moment)) for name, moment in lines]


def children_of(pid):
    """Give the processes that another has started, without those that only watch its semaphores."""
    children = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in path.read_text().split():
                if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes():
                    children.append(int(child))
    return children


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
