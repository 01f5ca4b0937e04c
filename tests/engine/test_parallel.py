import threading
import time

import pytest

from fado.engine._parallel import in_threads, n_workers, with_joblib


def test_results_come_in_order_whichever_ends_first():
    def slow_first(task, stop):
        time.sleep(0.02 if task == 0 else 0.0)
        return task * 10

    assert list(in_threads(slow_first, range(20), 4)) == [task * 10 for task in range(20)]


def test_only_a_few_tasks_are_taken_ahead():
    taken = []

    def tasks():
        for task in range(100):
            taken.append(task)
            yield task

    results = in_threads(lambda task, stop: task, tasks(), 2)
    next(results)
    assert len(taken) <= 6
    results.close()


def test_an_error_stops_the_others():
    stopped = threading.Event()

    def run(task, stop):
        if task == 0:
            raise ValueError("task 0 failed")
        if stop.wait(10):
            stopped.set()

    with pytest.raises(ValueError, match="task 0 failed"):
        list(in_threads(run, range(4), 2))
    assert stopped.is_set()


def test_joblib_gives_results_in_order():
    assert list(with_joblib(divmod, [(7, 2), (9, 4)], 1)) == [(3, 1), (2, 1)]


def test_number_of_workers():
    assert n_workers(3) == 3
    assert n_workers(None) == n_workers(-1) >= 1
    with pytest.raises(ValueError, match="`n_jobs` must not be 0"):
        n_workers(0)
