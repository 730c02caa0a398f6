"""Jobs on all cores: each is asked for when its turn comes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ewan.labs.runtime.sweep import sweep

Job = Callable[[threading.Event], int]


def test_results_are_in_the_order_of_the_jobs() -> None:
    def squared(number: int) -> Job:
        return lambda stop: number**2

    assert sweep((squared(number) for number in range(50)), 3) == [number**2 for number in range(50)]
    assert sweep([], 2) == []


def test_a_job_is_asked_for_when_its_turn_comes() -> None:
    asked: list[int] = []
    ended: list[int] = []
    ahead: list[int] = []

    def jobs() -> Iterator[Job]:
        for number in range(20):
            asked.append(number)

            def job(stop: threading.Event, number: int = number) -> int:
                ahead.append(len(asked) - len(ended))
                ended.append(number)
                return number

            yield job

    assert sweep(jobs(), 2) == list(range(20))
    assert max(ahead) <= 2


def test_the_first_error_ends_all() -> None:
    begun: list[int] = []

    def job(number: int) -> Job:
        def run(stop: threading.Event) -> int:
            begun.append(number)
            if number == 3:
                raise ValueError("three")
            return stop.wait(10) + number if number == 2 else number

        return run

    with pytest.raises(ValueError, match="three"):
        sweep((job(number) for number in range(100_000_000)), 2)
    assert sorted(begun)[:4] == [0, 1, 2, 3]


def test_a_signal_that_another_thread_gets_ends_the_jobs() -> None:
    told: list[bool] = []

    def job(stop: threading.Event) -> int:
        time.sleep(0.1)  # until the main thread waits
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        told.append(stop.wait(5))
        return 0

    with pytest.raises(KeyboardInterrupt):
        sweep([job], 1)
    assert told == [True]
