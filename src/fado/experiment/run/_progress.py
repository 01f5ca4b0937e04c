"""One line that says how far the fits are."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from fado._progress import open_bar, progress_stream, set_total

__all__ = ["ProgressLine"]

SECONDS_BETWEEN_LINES = 5.0


class ProgressLine:
    """Fits done, failed, per second, and time left: a bar on terminals, in notebooks, or lines elsewhere.

    Parameters
    ----------
    show : bool
        False keeps silent.
    """

    def __init__(self, *, show: bool) -> None:
        self._total = 0
        self._show = show
        self._skipped = self._done = self._failed = 0
        self._start = self._said = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._show:
            print(self.line(), file=progress_stream(), flush=True)

    def expect(self, more: int) -> None:
        """Count fits that are to be done, or were done before, beside those that are counted already."""
        if self._total == 0:
            self._begin(more)
        self._total += more
        if self._bar is not None:
            set_total(self._bar, self._total)

    def _begin(self, total: int) -> None:
        """Start the clock, which does not count what is done before the first fit."""
        self._start = self._said = time.monotonic()
        if self._show and self._bar is None:
            self._bar = open_bar(total, what="fits", smoothing=0.05)

    def skip(self, failed: bool) -> None:
        """Count a fit that needs no doing: done before, shared, or without a training set."""
        self._skipped += 1
        self._failed += failed
        if self._bar is not None:
            self._bar.initial += 1
            self._bar.update()

    def add(self, done: int, failed: int) -> None:
        """Count fits that were done now, and those of them that failed."""
        self._done += done
        self._failed += failed
        if self._bar is not None:
            self._bar.set_postfix(failed=self._failed, refresh=False)
            self._bar.update(done)
        elif self._show and time.monotonic() - self._said >= SECONDS_BETWEEN_LINES:
            self._said = time.monotonic()
            print(self.line(), file=progress_stream(), flush=True)

    def line(self) -> str:
        """Say it in one line."""
        seconds = max(time.monotonic() - self._start, 1e-9)
        counted = self._skipped + self._done
        left = seconds / self._done * (self._total - counted) if self._done else 0.0
        return (
            f"fits: {counted:,} of {self._total:,} done, {self._failed:,} failed, "
            f"{self._done / seconds:.2f} per second, {_shown(left)} left"
        )


def _shown(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
