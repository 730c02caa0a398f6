"""The event loop in a thread."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from ewan.extras.machines.loop import Loop
from ewan.labs.runtime.base import LabError


async def _later(value: int) -> int:
    await asyncio.sleep(0.001)
    return value


async def _fails() -> None:
    raise LabError("no")


def test_results_and_errors_come_back() -> None:
    loop = Loop()
    assert loop.call(_later(3)) == 3
    with pytest.raises(LabError, match="no"):
        loop.call(_fails())
    loop.close()


def test_stop_ends_what_others_wait_for_and_what_they_ask_then() -> None:
    loop = Loop()
    said: list[str] = []

    def wait() -> None:
        for _ in range(2):
            with pytest.raises(LabError) as told:
                loop.call(asyncio.sleep(60))
            said.append(str(told.value))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    loop.stop()
    thread.join(5)
    assert said == ["stopped", "stopped"]
    loop.stop(stopped=False)
    assert loop.call(_later(4)) == 4
    loop.close()


def test_an_interruption_ends_the_work_and_waits_for_its_end() -> None:
    loop = Loop()
    done: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            done.append("cleaned up")

    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.call(work())
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["cleaned up"]
    loop.close()
