"""Processes of a lab of containers that entered it from outside are ended: asked first, then by force."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from ewan.labs.runtime import containers
from ewan.labs.runtime.answers import EndedProcess

HEEDLESS = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
HEEDFUL = "import time; print(flush=True); time.sleep(60)"


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    """One that ends on SIGTERM, and one that does not."""
    begun = [subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) for text in (HEEDFUL, HEEDLESS)]
    for each in begun:
        assert each.stdout and each.stdout.readline() == b"\n"
    yield begun
    for each in begun:
        each.kill()
        each.wait()


def test_those_that_do_not_heed_are_killed(
    processes: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "ENDS_S", 0.2)
    found = [psutil.Process(each.pid) for each in processes]
    ended = containers._end(found)
    assert ended == tuple(
        EndedProcess(each.pid, f"{sys.executable} -c {text}")
        for each, text in zip(processes, (HEEDFUL, HEEDLESS), strict=True)
    )
    gone, left = psutil.wait_procs(found, 10)
    assert not left and len(gone) == 2


def test_one_that_has_ended_is_left_out_also_where_its_number_is_taken(
    processes: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, gone = processes
    found = psutil.Process(gone.pid)
    gone.kill()
    gone.wait()
    assert containers._end([found]) == ()
    # As if it had been found before the kernel gave its number to the process that has it now.
    former = psutil.Process(other.pid)
    monkeypatch.setattr(former, "_ident", (other.pid, former.create_time() - 1))
    assert containers._end([former]) == ()
    assert psutil.Process(other.pid).status() != psutil.STATUS_ZOMBIE and other.poll() is None
