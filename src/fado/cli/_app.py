"""The program: all commands under one name, how it starts and ends, and its errors as sentences.

Bad input ends with one sentence on stderr and exit code 2, never with a traceback. Commands import slow
packages when they run: help needs none of them.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from fado._messages import COMPARE_TARGET
from fado._version import __version__

if TYPE_CHECKING:
    import typer

COMMANDS = (
    *("value", "sample", "reweigh", "query", "generate", "explore"),
    *("aim", "frontier", "predict", "audit", "demo"),
)
OF_EXPERIMENTS = ("init", "run", "status", "report")
HOMES = {"reweigh": "sample", "frontier": "aim"}  # the modules of commands that share one
BAD_INPUT = 2
INTERRUPTED = 130
CLOSED_PIPE = 128 + 13  # the code in a shell of a program that SIGPIPE ended, such as `cat`
COMPARE_COLUMN = "compare it, as in `--target 'COL == label'` or `--target 'COL >= 1000'`"

# arguments of the library whose options have other names, where a command has such an option
_OPTIONS = {
    "y": "--target",
    "sensitive_features": "--protected",
    "unknown": "--unknown",
    "expression": "--protected",
    "pos_label": "--positive",
    "valuation": "--values",
    "z_exclude": "--exclude",
    "sample_weight": "--weight",
    "n_bags": "--bags",
    "fairness": "--ratio",
    "n_jobs": "--jobs",
    "client": "--dask",
    "random_state": "--seed",
    "data.min_group_size": "--min-group-size",
    "test": "--test-fraction",
    "group_shares": "--shares",
}


def build_app() -> typer.Typer:
    """Build the program, with every utility and intervention that is registered."""
    import rich.table  # noqa: F401 - if it is missing, say so before a command works
    import typer

    from fado.cli.sample import signature_with_plug_ins

    settings: dict[str, Any] = {"no_args_is_help": True, "add_completion": False}
    app = typer.Typer(name="fado", pretty_exceptions_enable=False, **settings)

    def print_version(wanted: bool) -> None:
        if wanted:
            print(f"fado {__version__}")
            raise typer.Exit

    @app.callback()
    def program(
        version: bool = typer.Option(
            False, "--version", callback=print_version, is_eager=True, help="Print the version."
        ),
    ) -> None:
        """Fairness-aware data valuation: value, explore, resample and reweigh rows; train fairer models."""

    for name in COMMANDS:
        function = getattr(import_module(f"fado.cli.{HOMES.get(name, name)}"), name)
        in_parts = name in ("sample", "reweigh")
        app.command()(in_sentences(function, signature_with_plug_ins(function) if in_parts else None))
    experiments = import_module("fado.cli.experiment")
    inner = typer.Typer(help=experiments.HELP, **settings)
    for name in OF_EXPERIMENTS:
        inner.command()(in_sentences(getattr(experiments, name)))
    app.add_typer(inner, name="experiment")
    return app


def run_program() -> NoReturn:
    """Run the program and exit, with the code of a closed pipe if nobody reads the output."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the program began
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - stays open to the end
    code: Any = 0
    failures: list[OSError] = []
    try:
        app = build_app()
    except ModuleNotFoundError as error:
        needed = (error.name or "").partition(".")[0]
        if needed == "fado":
            raise
        refuse(f"the command line needs {needed}: install it with `pip install 'fado-ml[cli]'`.")
    try:
        app()
    except SystemExit as stop:
        code = stop.code
        if code == 1 and isinstance(
            stop.__context__, BrokenPipeError
        ):  # how typer and rich exit at a closed pipe
            failures.append(stop.__context__)
    except OSError as error:  # of help and the like; commands have sentences for theirs
        failures.append(error)
    failures += [error for error in map(_flush, (sys.__stdout__, sys.__stderr__)) if error is not None]
    if not failures:
        raise SystemExit(code)
    if isinstance(failures[0], BrokenPipeError):
        raise SystemExit(CLOSED_PIPE)
    refuse(f"the output cannot be written: {failures[0].strerror}.")


def _flush(stream: TextIO | None) -> OSError | None:
    """Flush a stream, and return the error if that fails."""
    if stream is None:
        return None
    try:
        stream.flush()
    except OSError as error:
        # Python flushes again at the end, and would raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error
    return None


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Let Ctrl-C raise `KeyboardInterrupt`, and the second time end the process; another handler stays.

    The list gets a number at Ctrl-C: a library may turn the exception into another error.
    """
    interrupts: list[int] = []

    def interrupt(number: int, _: Any) -> NoReturn:
        interrupts.append(number)
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    if current_thread() is not main_thread() or before not in defaults:
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def stopping(store: Path) -> Iterator[None]:
    """Stop a run with a store at Ctrl-C or SIGTERM, immediately at the second; with codes 130 and 143."""

    def stop(number: int, _: Any) -> None:
        signal.signal(number, lambda *_: os._exit(128 + number))
        print("stopping; press again to stop immediately", file=sys.stderr, flush=True)
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except SystemExit as stopped:
        print(
            f"stopped; finished work is kept in {store}: run the same command again to resume.",
            file=sys.stderr,
        )
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(stopped.code or 0))  # all is saved: another signal could only change the exit code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def in_sentences(
    function: Callable[..., Any], signature: inspect.Signature | None = None
) -> Callable[..., Any]:
    """Make a command of a function: its errors and warnings are sentences on stderr, in words of options."""
    from typer.models import ArgumentInfo

    signature = signature or inspect.signature(function, eval_str=True)
    options = {
        name: f"--{name.rstrip('_').replace('_', '-')}"
        for name, parameter in signature.parameters.items()
        if not isinstance(parameter.annotation.__metadata__[0], ArgumentInfo)
    }
    options |= {name: option for name, option in _OPTIONS.items() if option in options.values()}
    if "config" in signature.parameters:
        options["z_exclude"] = "data.exclude"  # a key of the configuration

    @functools.wraps(function)
    def run(**given: Any) -> Any:
        with interruptible() as interrupts, _plain_warnings(options):
            try:
                return function(**given)
            except (Exception, KeyboardInterrupt) as error:
                if interrupts or isinstance(error, KeyboardInterrupt):
                    refuse("interrupted.", INTERRUPTED)
                if isinstance(error, BrokenPipeError):  # nobody reads what is printed
                    raise SystemExit(CLOSED_PIPE) from None
                sentence = _sentence_of(error)
                if sentence is None:
                    raise
                refuse(_in_options(sentence, options))

    run.__signature__ = signature  # type: ignore[attr-defined]
    return run


def refuse(sentence: Any, code: int = BAD_INPUT) -> NoReturn:
    """Print what is wrong, and end the program."""
    _say("error", sentence)
    raise SystemExit(code) from None


def _sentence_of(error: Exception) -> str | None:
    """Give the sentence of an error that a user can fix; None for a bug of this program."""
    if isinstance(error, MemoryError):
        return "not enough memory for this table: drop columns or use fewer rows."
    if isinstance(error, ModuleNotFoundError) and "pip install" not in str(error):
        return f"{error.name} is not installed: install it with `pip install 'fado-ml[all]'`."
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    if isinstance(error, OSError) and error.errno is not None:
        named = "A file" if error.filename is None else repr(str(error.filename))
        return f"{named} cannot be read or written: {error.strerror or error}."
    mendable = (ValueError, TypeError, KeyError, OSError, RuntimeError, ImportError)
    return str(error) if isinstance(error, mendable) else None


@contextmanager
def _plain_warnings(options: Mapping[str, str]) -> Iterator[None]:
    said = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            _say("warning", _in_options(str(message), options))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def _in_options(sentence: str, options: Mapping[str, str]) -> str:
    """Write `--bags` where the library says `n_bags`, and the fix as an option."""
    sentence = sentence.replace(COMPARE_TARGET, COMPARE_COLUMN)
    for argument, option in options.items():
        sentence = re.sub(rf"`{argument}`", f"`{option}`", sentence)
        sentence = re.sub(rf"`{argument}=([^`]*)`", rf"`{option} \1`", sentence)
    return sentence


def _say(what: str, message: Any) -> None:
    sentence = " ".join(str(message).split())
    print(f"{what}: {sentence}", file=sys.stderr, flush=True)
