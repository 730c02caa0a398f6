"""Open MPI: the command that starts the ranks, its refusals, and the rows of its files.

`tools/openmpi` holds those of three ranks in a ring (left1, left2, right1), 10 ms one way, three iterations of 1 kB to
each neighbour."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ewan.generator import scenario
from ewan.generator.external import openmpi
from ewan.generator.external.transfer import Output
from ewan.generator.rows import Row
from ewan.generator.scenario import ScheduledRun
from ewan.generator.tests import schedules
from ewan.labs.base.codec import replace
from ewan.labs.base.source import DescriptionError
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record.schedule import OpenMpiTool

CAPTURED = Path(__file__).resolve().parent / "tools/openmpi"
BEGUN_NS = 7_018_000_000
RANKS = ["left1", "left2", "right1"]


def scheduled(steps: str) -> ScheduledRun:
    lab = "lab: {topology: {dumbbell: {pairs: 2}}, rtt: 20ms}"
    text = f"{lab}\ndefaults: {{generator: openmpi}}\nsteps: [{steps}]\n"
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    return run.schedule(compile_spec(run.spec, HostFacts((0, 1), (), "virtual")), "virtual")


def captured(directory: Path, stderr: str = "") -> Any:
    tool = OpenMpiTool("all-to-all", 3, 2000, stream=0)
    row: Row = {"flow": 4, "scheduled_ns": 3000 * NS_PER_MS, "source": "left1", "sink": "left2"}
    flow = replace(schedules.FLOW, tool=tool, members=tuple(RANKS))
    return openmpi.rows(Output(flow, row, f"{BEGUN_NS}\n".encode(), stderr, directory, 0, 0))


def test_one_command_starts_all_ranks_before_their_time() -> None:
    step = "{name: a, at: 5s, ranks: [left1, right1, left2], messages: {pattern: all-to-all, size: 2kB, iterations: 9}}"
    (command,) = scheduled(step).program.commands
    assert (command.node, command.at_ns) == ("left1", 0)
    words = ["cubic", "10000000000", "left1,right1,left2", "3", "all-to-all", "9", "2000", "0"]
    assert list(command.argv[4:]) == [openmpi.PROGRAM, *words]


@pytest.mark.parametrize(
    ("pattern", "size", "each"),
    [
        ("all-to-all", ", size: 1kB", 3000),
        ("neighbour-exchange", ", size: 1kB", 2000),
        ("ping-pong", ", size: 1kB", 1000),
        ("barrier", "", None),
    ],
)
def test_what_a_rank_sends_in_an_iteration(pattern: str, size: str, each: int | None) -> None:
    ranks = "[left1, right1, left2, right2]"
    schedule = scheduled(f"{{name: a, ranks: {ranks}, messages: {{pattern: {pattern}{size}, iterations: 2}}}}")
    tool = schedule.document.flows[0].tool
    assert isinstance(tool, OpenMpiTool) and tool.sent_bytes == each


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ranks: [left1, right1], for: 2s, messages: {pattern: barrier, iterations: 2}", "ends with its iterations"),
        (
            "ranks: [left1, right1], messages: {pattern: ping-pong, iterations: 2, size: {exponential: {mean: 1kB}}}",
            "openmpi has no laws: write a constant size",
        ),
        ("ranks: [left1, right1], mss: 500, messages: {pattern: barrier, iterations: 2}", "own options of sockets"),
        ("from: left1, to: right1, bulk: 1MB", "exchanges only messages, not bulk"),
    ],
)
def test_what_its_ranks_do_not_do_is_refused(words: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=re.escape(message)):
        scheduled(f"{{name: a, {words}}}")


def test_iterations_are_rows_of_exchanges() -> None:
    rows = captured(CAPTURED)
    assert [(each["part"], each["source"], each["sink"]) for each in rows["flows"]] == [
        (0, "left1", None),
        (1, "left2", None),
        (2, "right1", None),
    ]
    first = rows["exchanges"][0]
    assert (first["number"], first["start_ns"], first["duration_ns"]) == (0, 3000 * NS_PER_MS, 50 * NS_PER_MS)
    assert len(rows["exchanges"]) == 9
    # Two hand-overs across the distance of 10 ms, one after the other.
    assert min(each["duration_ns"] for each in rows["exchanges"]) >= 20 * NS_PER_MS
    assert all(each["received_bytes"] == 3 * 2000 for each in rows["flows"])
    ends = [last["start_ns"] + last["duration_ns"] for last in rows["exchanges"][2::3]]
    assert [each["completion_ns"] for each in rows["flows"]] == [end - 3000 * NS_PER_MS for end in ends]


def test_a_rank_that_left_nothing_says_why(tmp_path: Path) -> None:
    shutil.copy(CAPTURED / "rank-0.csv", tmp_path)
    rows = captured(tmp_path, "--------\nORTE was unable to reliably start one or more daemons.\n")
    assert [each.get("error") for each in rows["flows"]] == [
        None,
        *2 * ["openmpi: ORTE was unable to reliably start one or more daemons."],
    ]
    assert len(rows["exchanges"]) == 3
