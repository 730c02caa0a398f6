"""Work shared out over processes: one that dies, hangs or raises does not stop the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ewan.extras.course import pool
from ewan.extras.course.pool import LostCall
from ewan.labs.base.product import ROOT

pytestmark = pytest.mark.slow

LONGEST_S = 60.0


def double(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 4:
        time.sleep(3600)
    if number == 5:
        raise ValueError("five")
    return 2 * number


def test_each_is_done_once_in_whatever_order() -> None:
    given = [0, 1, 2, *range(6, 20)]
    assert sorted(pool.each(double, given, 2, LONGEST_S)) == [(at, 2 * number) for at, number in enumerate(given)]


def test_one_that_is_killed_is_told_and_the_others_are_done() -> None:
    found = dict(pool.each(double, [3, 1, 3, 2], 2, LONGEST_S))
    assert (found[1], found[3]) == (2, 4)
    assert found[0] == found[2] == LostCall("the process that graded it was killed (SIGKILL)")


def test_one_that_hangs_is_ended() -> None:
    begun = time.monotonic()
    found = dict(pool.each(double, [4, 1], 2, 1.0))
    assert found == {0: LostCall("it took too long"), 1: 2}
    assert time.monotonic() - begun < LONGEST_S


def test_the_start_of_a_process_is_no_time_of_its_call(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(
        "import time\nfrom ewan.extras.course import pool\nfrom tests.extras.course.test_pool import double\n"
        "if __name__ != '__main__':\n    time.sleep(1.0)\n"
        "else:\n    print(list(pool.each(double, [1], 1, 0.5)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[(0, 2)]\n"


def test_what_a_call_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="five"):
        list(pool.each(double, [1, 5, 2], 2, LONGEST_S))


def test_nothing_to_do_starts_nothing() -> None:
    assert list(pool.each(double, [], 2, LONGEST_S)) == []


def children(pid: int) -> set[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(each) for each in found}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_process_that_they_work_for(tmp_path: Path, number: signal.Signals) -> None:
    script = tmp_path / "grade.py"
    script.write_text(
        "from ewan.extras.course import pool\nfrom tests.extras.course.test_pool import double\n"
        "if __name__ == '__main__':\n    print('begun', flush=True)\n    list(pool.each(double, [4, 4], 2, 3600.0))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as top:
        assert top.stdout is not None and top.stdout.readline() == b"begun\n"
        deadline = time.monotonic() + LONGEST_S
        workers: set[int] = set()
        while len(workers) < 3 and time.monotonic() < deadline:  # two, and Python's own tracker of what they share
            workers = children(top.pid)
            time.sleep(0.05)
        time.sleep(1.0)
        top.send_signal(number)
        top.wait(LONGEST_S)
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
