"""Bad input ends in one sentence on stderr and exit code 2, never in a traceback."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from fado._messages import COMPARE_TARGET
from fado.cli._process import CLOSED_PIPE, interruptible

__all__ = ["in_sentences", "refuse"]

Command = TypeVar("Command", bound=Callable[..., Any])

BAD_INPUT = 2
COMPARE_COLUMN = "compare it, as in `--target 'COL == label'` or `--target 'COL >= 1000'`"
INTERRUPTED = 130

# arguments of the library that have another name on this side, where a command has such an option
_OPTIONS = {
    "y": "--target",
    "sensitive_features": "--protected",
    "pos_label": "--positive",
    "valuation": "--values",
    "values": "--values",
    "pool": "--pool",
    "alpha": "--alpha",
    "z_exclude": "--exclude",
    "sample_weight": "--weight",
    "groups": "--groups",
    "expression": "--protected",
    "n_bags": "--bags",
    "fairness": "--ratio",
    "performance": "--performance",
    "n_jobs": "--jobs",
    "client": "--dask",
    "random_state": "--seed",
    "retrain": "--retrain",
    "min_group_size": "--min-group-size",
    "data.min_group_size": "--min-group-size",
    "budget": "--budget",
    "max_fits": "--max-fits",
    "test": "--test-fraction",
    "by": "--by",
    "n": "--n",
    "cost": "--cost",
    "group_shares": "--shares",
    "diversity": "--diversity",
    "confidence": "--confidence",
    "memory": "--memory",
    "train_rows": "--train-rows",
    "sample_rows": "--sample-rows",
    "target": "--target",
    "protected": "--protected",
    "group_names": "--group-names",
    "drop": "--drop",
    "exclude": "--exclude",
    "weight": "--weight",
    "out": "--out",
}


def in_sentences(command: Command) -> Command:
    """Turn a command's errors and warnings into sentences on stderr."""
    own = {f"--{name.replace('_', '-')}" for name in inspect.signature(command).parameters}
    options = {argument: option for argument, option in _OPTIONS.items() if option in own}

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with interruptible() as interrupts:
            try:
                with _plain_warnings(options):
                    return command(*args, **kwargs)
            except KeyboardInterrupt:
                refuse("interrupted.", INTERRUPTED)
            except Exception as error:
                if interrupts.seen:
                    refuse("interrupted.", INTERRUPTED)
                if isinstance(error, BrokenPipeError):  # nobody reads what is printed
                    raise SystemExit(CLOSED_PIPE) from None
                sentence = _sentence_of(error)
                if sentence is None:
                    raise
                refuse(_in_options(sentence, options))

    return run  # type: ignore[return-value]


def refuse(sentence: Any, code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong, and end the program."""
    _say("error", sentence)
    raise SystemExit(code) from None


def _sentence_of(error: Exception) -> str | None:
    """Give the sentence of an error that a user can mend; None is a fault of this program's."""
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
    """Say `--bags` where the library says `n_bags`, and what to do in terms of files."""
    sentence = sentence.replace(COMPARE_TARGET, COMPARE_COLUMN)
    for argument, option in options.items():
        sentence = re.sub(rf"`{argument}`", f"`{option}`", sentence)
        sentence = re.sub(rf"`{argument}=([^`]*)`", rf"`{option} \1`", sentence)
    return sentence


def _say(what: str, message: Any) -> None:
    sentence = " ".join(str(message).split())
    print(f"{what}: {sentence}", file=sys.stderr, flush=True)
