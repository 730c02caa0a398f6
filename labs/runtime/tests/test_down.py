"""`down` leaves no process behind, whatever processes do while it looks for them. Needs root."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ewan.labs.plan import Spinner
from ewan.labs.runtime import spinners
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.tests.lab import BINARY, own_state, small, traces

pytestmark = pytest.mark.untimed

LAB = f"rd{os.getpid()}"
ROUNDS = 5
# Each lives for less than a millisecond, and starts the next one before it ends; the last ends after 20 s. Their
# standard output is open while one of them is there.
CHAIN = """
import os, time
begun = time.monotonic()
os.write(1, b"begun")
while time.monotonic() < begun + 20:
    if os.fork():
        os._exit(0)
"""


@pytest.fixture
def state() -> Iterator[Path]:
    with own_state("down") as root:
        yield root


@contextmanager
def chain(*command: str, executable: str | None = None, place: Path | None = None) -> Iterator[int]:
    """Gives what is open for reading while one of the chain is there."""
    heard, told = os.pipe()
    try:
        with subprocess.Popen(command, stdout=told, executable=executable, cwd=place):
            os.close(told)
            assert os.read(heard, 5) == b"begun"
            yield heard
    finally:
        os.close(heard)


def is_over(heard: int) -> bool:
    """All that could write have ended."""
    return select.select([heard], [], [], 0)[0] != [] and os.read(heard, 1) == b""


def test_processes_that_start_others_meanwhile_are_ended_too(state: Path) -> None:
    runtime = NetnsRuntime(BINARY, state)
    inside = [str(BINARY), "exec", "--state", str(state / LAB), "left", "--"]
    for _ in range(ROUNDS):
        runtime.up(small(LAB))
        with chain(*inside, sys.executable, "-c", CHAIN) as one, chain(*inside, sys.executable, "-c", CHAIN) as other:
            runtime.down(LAB)
            assert is_over(one) and is_over(other)
        assert traces(LAB, state) == []


def test_spinners_that_start_meanwhile_are_ended_too(state: Path, tmp_path: Path) -> None:
    """As when `up` ends while it starts them."""
    runtime = NetnsRuntime(BINARY, state)
    (tmp_path / "link").write_text(CHAIN)
    for _ in range(ROUNDS):
        runtime.up(small(LAB))
        identity = runtime.load(LAB).manifest.id
        with chain("spinner", "link", "--id", identity, executable=sys.executable, place=tmp_path) as spinners:
            runtime.down(LAB)
            assert is_over(spinners)
        assert traces(LAB, state) == []


def test_an_interrupted_start_ends_the_spinners_that_it_started(tmp_path: Path) -> None:
    """`down` could miss one that has just begun: it does not show its command line yet."""
    program = tmp_path / "spinner"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    begun: list[int] = []

    def interrupted() -> None:
        begun.extend(processes_below(tmp_path))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spinners.start(program, tmp_path, "0" * 32, [Spinner(0, ("one",)), Spinner(0, ("other",))], interrupted)
    assert len(begun) == 2
    assert processes_below(tmp_path) == []


def processes_below(place: Path) -> list[int]:
    """Those of our children whose output goes to a file there."""
    outputs = {each.pid: Path(f"/proc/{each.pid}/fd/1") for each in psutil.Process().children()}
    return [pid for pid, output in outputs.items() if output.exists() and place in output.readlink().parents]
