"""When virtual time stands still for good: after wall time and CPU time, whatever else the machine does."""

from __future__ import annotations

import os
import subprocess
import time
from types import SimpleNamespace

import pytest

from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.runtime import sessions, standstill, virtual
from ewan.labs.runtime.progress import ProgressReading
from ewan.labs.runtime.standstill import Standstill

PATIENCE_S, MAKING_S, MADE_NS = 20.0, 300.0, NS_PER_SECOND


class Scene:
    """A run that stands still at `virtual_s` for `still_s`, with processes that have had `cpu_s`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, virtual_s: float = 5) -> None:
        self.virtual_s, self.still_s, self.cpu_s = virtual_s, 0.0, 0.0
        monkeypatch.setattr(standstill, "LOOK_NS", 0)
        monkeypatch.setattr(sessions, "cpu_ns", lambda pid: round(self.cpu_s * NS_PER_SECOND))
        self._standstill = Standstill(SimpleNamespace(still=self._still), 1)  # type: ignore[arg-type]

    def _still(self) -> tuple[int, ProgressReading | None]:
        reading = ProgressReading(round(self.virtual_s * NS_PER_SECOND), 0, 1, "sh", 0)
        return round(self.still_s * NS_PER_SECOND), reading if self.virtual_s else None

    def at(self, still_s: float, cpu_s: float) -> bool:
        self.still_s, self.cpu_s = still_s, cpu_s
        found = self._standstill.found(PATIENCE_S, MAKING_S, MADE_NS)
        assert found is None or found[0] == still_s * NS_PER_SECOND
        return found is not None


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_a_program_that_never_waits_is_found_after_half_of_each(scene: Scene) -> None:
    assert [scene.at(10, 109), scene.at(10.5, 110), scene.at(20, 119), scene.at(21, 120.5)] == [False] * 3 + [True]


def test_a_busy_machine_ends_no_run_that_has_had_little_of_it(scene: Scene) -> None:
    assert not any(scene.at(still_s, 100 + still_s / 10) for still_s in range(0, 100, 5))
    assert scene.at(115, 112)


def test_time_that_moves_begins_anew(scene: Scene) -> None:
    assert not scene.at(15, 100)
    scene.virtual_s = 6
    assert not scene.at(15, 200) and not scene.at(19, 205) and not scene.at(0, 300) and not scene.at(15, 400)
    assert scene.at(22, 411)


def test_processes_that_get_no_cpu_are_ended_all_the_same(scene: Scene) -> None:
    assert not scene.at(199, 100) and scene.at(201, 100)


def test_making_a_lab_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, virtual_s=0.5)
    assert not scene.at(149, 0) and not scene.at(155, 0) and not scene.at(250, 140) and scene.at(310, 151)
    scene.virtual_s = 0
    assert not scene.at(299, 299) and scene.at(301, 301), "no kernel has written yet"


def test_cpu_time_is_that_of_the_whole_session() -> None:
    script = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); sleep 60 & sleep 60"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as leader:
        try:
            deadline = time.monotonic() + 60
            while (had_ns := sessions.cpu_ns(leader.pid)) < NS_PER_SECOND // 20 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert had_ns >= NS_PER_SECOND // 20
        finally:
            for pid in (*sessions.members(leader.pid), leader.pid):
                os.kill(pid, 9)


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ("module tcp_a", "lab l: module tcp_a loops or sleeps, or a program works without ever waiting: virtual time"),
        ("", "lab l: virtual time has stood still"),
    ],
)
def test_what_stands_still_names_the_modules_that_may_do_it(modules: str, said: str) -> None:
    reading = ProgressReading(NS_PER_SECOND, 0, 1, "a", 0)
    assert virtual._stalled("l", modules, 20 * NS_PER_SECOND, reading).startswith(said)
