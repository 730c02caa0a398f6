"""Experiments that are interrupted, killed or disturbed, or of which a part fails: what is kept, and how they go on.

Real runs, most of them in the virtual clock.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from ewan.labs.record import tables
from tests.conftest import Disk, Ewan
from tests.experiments import RunProcess, document, in_results, only, statuses, vouch, written

pytestmark = pytest.mark.virtual


def test_what_was_interrupted_goes_on_where_it_was(ewan: Ewan, tmp_path: Path) -> None:
    """Three times, in three ways, and then to its end: each run that was kept is not run again."""
    first: tuple[str, ...] = ("run", written(tmp_path, seeds=24), "--set", "length=20s", "--runtime", "virtual")
    arguments, kept = first, dict[str, int]()
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        engine = RunProcess(tmp_path, *arguments)
        directory = engine.until(complete=len(kept) + 1)
        where = str(directory.relative_to(tmp_path))
        engine.process.send_signal(how)
        status, said = engine.end()
        assert status == -how and document(directory)["status"] == "incomplete"
        if how != signal.SIGKILL:
            assert said.splitlines()[-1] == (
                f"ewan: interrupted: what has ended is in {where}: ewan exp resume {where} goes on"
            )
        assert_kept(directory, kept)
        complete = {run["directory"] for run in document(directory)["runs"] if run["status"] == "complete"}
        assert len(kept) < len(complete) < 24
        kept = {name: (directory / name / "wall.json").stat().st_mtime_ns for name in complete}
        arguments = ("exp", "resume", where)
    result = ewan(*arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert statuses(directory) == ["complete"] * 24
    assert_kept(directory, kept)


def assert_kept(directory: Path, kept: Mapping[str, int]) -> None:
    """Runs that were complete by then, and when they were written."""
    for name, at in kept.items():
        assert (directory / name / "wall.json").stat().st_mtime_ns == at, "it was not run again"


def test_two_at_once_in_directories_of_their_own_both_end(tmp_path: Path) -> None:
    scenario = written(tmp_path)
    both = [RunProcess(tmp_path, "run", scenario, "--runtime", "virtual") for _ in range(2)]
    assert [engine.end()[0] for engine in both] == [0, 0]
    first, second = in_results(tmp_path)
    for path in first.glob("runs/*/*.parquet"):
        assert (second / path.relative_to(first)).read_bytes() == path.read_bytes()


def test_a_full_disk_ends_it_in_one_line_and_what_was_measured_is_kept(ewan: Ewan, disk: Disk) -> None:
    place = disk("size=160m")  # more than the runs are expected to leave
    fill = '  - {name: fill, at: 1s, on: left1, run: "cat /dev/zero > $EWAN_OUT/zeros || true"}'
    result = ewan("run", written(place, fill, seeds=8), "--runtime", "virtual", cwd=place)
    directory = only(place)
    assert result.returncode == 1, result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"ewan: no space left in {directory.relative_to(place)}: make room there"), result.stderr
    assert "Traceback" not in result.stderr
    assert document(directory)["status"] == "incomplete"
    assert "waiting" in statuses(directory), "it did not go on"


def test_a_flow_that_cannot_connect_leaves_the_others_and_says_which(ewan: Ewan, tmp_path: Path) -> None:
    more = """
  - {name: cut, on: right2, run: "ip link set dev eth0 down"}
  - {name: late, at: 1s, from: left2, to: right2, for: 1s, bulk: {}}
"""
    text = written(tmp_path, more, longest="6s")
    Path(text).write_text(Path(text).read_text().replace('"left[1-2]", to: "right[1-2]"', "left1, to: right1"))
    result = ewan("run", text, "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    directory = only(tmp_path)
    assert document(directory)["status"] == "incomplete"
    (run,) = document(directory)["runs"]
    assert run["status"] == "incomplete" and "late left2 to right2" in run["error"]
    assert f"is incomplete: {run['error']}" in result.stderr
    flows = tables.read(directory / "runs/001", "flows")
    fine, cut = flows.rows(named=True)
    assert fine["error"] is None and fine["received_bytes"] > 1e6
    assert cut["error"] is not None and not cut["received_bytes"]
    assert (directory / "report.html").exists(), "what was measured is shown"


def test_a_node_that_stalls_fails_its_run_alone(ewan: Ewan, tmp_path: Path) -> None:
    more = '  - {name: busy, at: 1s, on: left1, run: "test $((EWAN)) -eq 0 && while :; do :; done"}'
    text = written(tmp_path, more)
    result = ewan("run", text, "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    (run,) = document(only(tmp_path))["runs"]
    assert run["status"] == "failed" and "virtual time has stood still" in run["error"]


@pytest.mark.untimed
def test_a_killed_live_engine_leaves_what_the_next_one_removes(ewan: Ewan, state: Path, tmp_path: Path) -> None:
    scenario = written(tmp_path)
    arguments = ("run", scenario, "--set", "length=60s", "--runtime", "netns", "--unverified")
    engine = RunProcess(tmp_path, *arguments, state=state)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("results/*/runs/001/traffic/request.json")):
        assert time.monotonic() < deadline and engine.process.poll() is None
        time.sleep(0.05)
    engine.process.kill()
    engine.end()
    directory = only(tmp_path)
    assert len(list(state.glob("*/manifest.json"))) == 1, "its lab is still up"
    # The same in less time.
    for name in ("program.json", "schedule.json"):
        path = directory / "runs/001" / name
        path.write_text(path.read_text().replace("60000000000", "4000000000").replace("30000000000", "9000000000"))
    vouch(directory, "runs/001/program.json", "runs/001/schedule.json")
    result = ewan("exp", "resume", str(directory), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert statuses(directory) == ["complete"]
    assert tables.read(directory / "runs/001", "flows")["ended_ns"].max() < 5e9  # type: ignore[operator]
    assert not list(state.glob("*/manifest.json"))
