"""Whatever kills the making or the removal of a lab, wherever: `down` finds all of it. Needs root."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.labs.plan import to_json
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.tests.lab import BINARY, own_state, run, small, traces

pytestmark = pytest.mark.untimed

LAB = f"rk{os.getpid()}"
MOST_STEPS = 1000


@pytest.fixture
def state() -> Iterator[Path]:
    with own_state("killed") as root:
        yield root


def apply(state: Path, fault: int | None = None) -> int:
    environment = {} if fault is None else {"EWAN_FAULT_AFTER": str(fault)}
    command = [str(BINARY), "apply", "--plan", "/dev/stdin", "--state", str(state / LAB)]
    return run(*command, environment=environment, text=to_json(small(LAB))).returncode


def down(state: Path, fault: int | None = None) -> int:
    environment = {} if fault is None else {"EWAN_FAULT_AFTER": str(fault)}
    return run(str(BINARY), "down", "--state", str(state / LAB), environment=environment).returncode


def test_killed_before_each_step_of_up(state: Path) -> None:
    """Every file, namespace, batch and sysctl is a step; the process gets SIGKILL just before it."""
    runtime = NetnsRuntime(BINARY, state)
    for step in range(MOST_STEPS):
        status = apply(state, step)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        if step:  # before the first there is nothing
            assert runtime.names() == [LAB]
            assert runtime.status(LAB).state == "incomplete", f"step {step}"
        assert down(state) == 0, f"step {step}"
        assert traces(LAB, state) == [], f"step {step}"
    assert down(state) == 0
    assert traces(LAB, state) == []
    assert 30 <= step < MOST_STEPS, f"{step} points were tried"


def test_killed_at_any_time_of_up(state: Path) -> None:
    """As above, where no step was foreseen."""
    generator = random.Random(1)
    plan = to_json(small(LAB))
    for _ in range(40):
        command = [str(BINARY), "apply", "--plan", "/dev/stdin", "--state", str(state / LAB)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(plan)
        process.stdin.close()
        time.sleep(generator.uniform(0, 0.015))
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
        assert down(state) == 0
        assert traces(LAB, state) == []


def test_killed_before_each_step_of_down(state: Path) -> None:
    for step in range(MOST_STEPS):
        assert apply(state) == 0
        status = down(state, step)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        assert down(state) == 0, f"step {step}"
        assert traces(LAB, state) == [], f"step {step}"
    assert traces(LAB, state) == []
    assert 10 <= step < MOST_STEPS, f"{step} points were tried"


UP = """
import sys
from pathlib import Path
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.tests.lab import BINARY, small
print("ready", flush=True)
NetnsRuntime(BINARY, Path(sys.argv[1])).up(small(sys.argv[2]))
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT], ids=["SIGKILL", "Ctrl-C"])
def test_the_whole_command_killed(state: Path, ending: signal.Signals) -> None:
    """SIGKILL leaves what `down` removes; Ctrl-C leaves nothing, or a whole lab if it came too late."""
    generator = random.Random(2)
    runtime = NetnsRuntime(BINARY, state)
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", UP, str(state), LAB], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(generator.uniform(0, 0.02))
        process.send_signal(ending)
        process.stdout.read()
        process.wait(30)
        process.stdout.close()
        if ending == signal.SIGINT and traces(LAB, state):
            assert runtime.status(LAB).state == "complete"
        runtime.down(LAB)
        assert traces(LAB, state) == []
    assert runtime.names() == []
