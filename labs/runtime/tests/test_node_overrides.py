"""Commands of nodes, here plain programs: what is said while they run, and after whoever ran them was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ewan.labs import plan as plans
from ewan.labs.base.codec import replace
from ewan.labs.node_overrides import NodeOverrides
from ewan.labs.plan import Plan
from ewan.labs.runtime import node_overrides
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.tests.lab import small


def commanded(*commands: str) -> Plan:
    """The first node runs these."""
    plan = small("own")
    steps = tuple(("sh", "-c", each) for each in commands)
    return replace(plan, nodes=(replace(plan.nodes[0], own=NodeOverrides(exec=steps)), *plan.nodes[1:]))


def test_the_command_that_runs_is_told_until_all_have_ended(tmp_path: Path) -> None:
    seen: set[str] = set()
    plan = commanded("sleep 0.1", "sleep 0.1; true")
    node_overrides.run(
        plan, tmp_path, lambda node, argv: list(argv), lambda: seen.add(node_overrides.unfinished("own", tmp_path))
    )
    assert seen == {"left: exec sh -c 'sleep 0.1': still runs", "left: exec sh -c 'sleep 0.1; true': still runs"}
    assert node_overrides.unfinished("own", tmp_path) == ""


def test_a_command_that_fails_is_not_running(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="left: exec sh -c 'exit 3': ended with status 3"):
        node_overrides.run(commanded("exit 3"), tmp_path, lambda node, argv: list(argv), lambda: None)
    assert "was cut off with its `up`: remove the lab with `ewan down own`" in node_overrides.unfinished(
        "own", tmp_path
    )


def test_whoever_ran_them_was_killed(tmp_path: Path) -> None:
    text = tmp_path / "plan.json"
    text.write_bytes(plans.to_json(commanded("sleep 2")))
    program = (
        "import sys, pathlib; from ewan.labs import plan; from ewan.labs.runtime import node_overrides; "
        "place = pathlib.Path(sys.argv[2]); run = node_overrides.run; "
        "run(plan.from_json(open(sys.argv[1]).read()), place, lambda node, argv: list(argv), lambda: None)"
    )

    def until(end: str) -> None:
        deadline = time.monotonic() + 20
        while end not in node_overrides.unfinished("own", tmp_path):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    maker = subprocess.Popen([sys.executable, "-c", program, str(text), str(tmp_path)], cwd=Path.cwd())
    try:
        until("left: exec sh -c 'sleep 2': still runs")
    finally:
        os.kill(maker.pid, signal.SIGKILL)
        maker.wait()
    until("left: exec sh -c 'sleep 2': was cut off with its `up`")
