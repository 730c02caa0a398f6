"""A command's process number is nobody else's until its group has been signalled. Needs root."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY, own_state, small

pytestmark = pytest.mark.untimed

LAB = f"rg{os.getpid()}"


@pytest.fixture
def state() -> Iterator[Path]:
    with own_state("groups") as root:
        yield root


def test_a_command_that_ended_keeps_its_number_until_its_group_is_ended(state: Path, tmp_path: Path) -> None:
    runtime = NetnsRuntime(BINARY, state)
    runtime.up(small(LAB))
    left = Command("left", ("sh", "-c", f"sleep 50 & echo $$ $! > {tmp_path}/numbers"), 0)
    program = Program(commands=(left, Command("left", ("sleep", "3"), 0)), longest_ns=10_000_000_000)
    (tmp_path / "program.json").write_bytes(program.to_json())
    command = [str(BINARY), "batch", "--state", str(state / LAB), "--out", str(tmp_path)]
    with subprocess.Popen([*command, "--program", str(tmp_path / "program.json")], stderr=subprocess.DEVNULL) as batch:
        until = time.monotonic() + 10
        while not (tmp_path / "numbers").exists() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)
        leader, child = (tmp_path / "numbers").read_text().split()
        assert state_of(leader) == psutil.STATUS_ZOMBIE
        assert state_of(child), "what a command leaves behind may run until all have ended"
        assert batch.wait(10) == 0
    assert [state_of(number) for number in (leader, child)] in (["", ""], ["", psutil.STATUS_ZOMBIE])
    runtime.down(LAB)


def state_of(pid: str) -> str:
    """As psutil has it; "" of a process that is gone."""
    try:
        return psutil.Process(int(pid)).status()
    except psutil.NoSuchProcess:
        return ""
