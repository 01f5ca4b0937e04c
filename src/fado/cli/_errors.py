"""Bad input ends in one sentence on stderr and exit code 2, never in a traceback."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["in_sentences"]

Command = TypeVar("Command", bound=Callable[..., Any])

BAD_INPUT = 2
INTERRUPTED = 130

# arguments of the library that have another name on this side
_OPTIONS = {"z_exclude": "--exclude", "sample_weight": "--weight", "groups": "--groups"}


def in_sentences(command: Command) -> Command:
    """Turn a command's errors and warnings into sentences on stderr."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            with _plain_warnings():
                return command(*args, **kwargs)
        except (ValueError, TypeError, KeyError, OSError, RuntimeError) as error:
            _say("error", error)
            raise SystemExit(BAD_INPUT) from None
        except MemoryError:
            _say("error", "not enough memory for this table: drop columns or use fewer rows.")
            raise SystemExit(BAD_INPUT) from None
        except KeyboardInterrupt:
            _say("error", "interrupted; nothing was written.")
            raise SystemExit(INTERRUPTED) from None

    return run  # type: ignore[return-value]


@contextmanager
def _plain_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: _say("warning", message)
        yield


def _say(what: str, message: Any) -> None:
    text = message.args[0] if isinstance(message, KeyError) and message.args else str(message)
    sentence = " ".join(str(text).split())
    for argument, option in _OPTIONS.items():
        sentence = sentence.replace(f"`{argument}`", f"`{option}`")
    print(f"{what}: {sentence}", file=sys.stderr, flush=True)
