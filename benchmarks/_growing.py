"""The limit that fits are measured against: the time in which trees grow."""

from __future__ import annotations

import threading
import time

import lightgbm


class GrowingTime:
    """Adds up the time inside the boosters' updates, over all threads."""

    def __enter__(self):
        self.seconds, self._update, lock = 0.0, lightgbm.Booster.update, threading.Lock()

        def timed(booster, *args, **kwargs):
            start = time.perf_counter()
            try:
                return self._update(booster, *args, **kwargs)
            finally:
                with lock:
                    self.seconds += time.perf_counter() - start

        lightgbm.Booster.update = timed
        return self

    def __exit__(self, *error):
        lightgbm.Booster.update = self._update
