"""Labs of containers whose `up`, or one of whose containers, ends before its time: `down` removes whatever there is."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ewan
from tests.container_engine.fixtures import EngineOfTests
from tests.containers.test_runtime import started, surroundings, wait_for

pytestmark = pytest.mark.untimed

KILLED = f"k{os.getpid() % 100000}"


def ready(state: Path, count: int) -> bool:
    return len(list(state.glob(f"{KILLED}/nodes/*/ready"))) >= count


def linked(count: int) -> bool:
    return len(list(Path("/run/netns").glob(f"ewan-{KILLED}-*"))) >= count


# When `up` gets its signal: as soon as this is so.
POINTS: dict[str, Callable[[Path], bool]] = {
    "begun": lambda state: (state / KILLED).exists(),
    "manifest": lambda state: (state / KILLED / "manifest.json").exists(),
    "containerlab at work": lambda state: (state / KILLED / f"clab-{KILLED}").exists(),
    "a container": lambda state: linked(1),
    "most containers": lambda state: linked(4),
    "a node ready": lambda state: ready(state, 1),
    "all nodes ready": lambda state: ready(state, 5),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_up_is_removed_by_down(engine: EngineOfTests, ewan: Ewan, state: Path, point: str) -> None:
    before = surroundings(engine, state, KILLED)
    words = ("up", "dumbbell", "--name", KILLED, "--runtime", "containerlab")
    with started(*words, state=state) as process:
        wait_for(lambda: POINTS[point](state), process)
        process.kill()
        process.wait()
    down = ewan("down", KILLED, timeout=200)
    assert down.returncode == 0, down.stderr
    assert surroundings(engine, state, KILLED) == before


@pytest.mark.parametrize("point", ["containerlab at work", "most containers", "a node ready"])
def test_ctrl_c_leaves_nothing(engine: EngineOfTests, ewan: Ewan, state: Path, point: str) -> None:
    before = surroundings(engine, state, KILLED)
    words = ("up", "dumbbell", "--name", KILLED, "--runtime", "containerlab")
    with started(*words, state=state) as process:
        wait_for(lambda: POINTS[point](state), process)
        process.send_signal(signal.SIGINT)
        status = process.wait(120)
    if status == 0:  # it came too late
        assert ewan("down", KILLED, timeout=200).returncode == 0
    assert surroundings(engine, state, KILLED) == before


def test_a_container_that_ended_is_told(engine: EngineOfTests, ewan: Ewan, state: Path) -> None:
    """And `down` removes the rest."""
    name = f"e{os.getpid() % 100000}"
    before = surroundings(engine, state, name)
    assert ewan("up", "dumbbell", "--name", name, "--runtime", "containerlab", timeout=200).returncode == 0
    try:
        assert engine.docker("kill", f"ewan-{name}-r1").returncode == 0
        (status,) = json.loads(ewan("ps", name, "--json").stdout)
        assert status["state"] == "incomplete"
        assert [node["name"] for node in status["nodes"] if not node["up"]] == ["r1"]
        verified = ewan("lab", "verify", name)
        assert verified.returncode == 2
        assert f"container ewan-{name}-r1 has ended" in verified.stderr
    finally:
        assert ewan("down", name, timeout=200).returncode == 0
    assert surroundings(engine, state, name) == before
