"""A live lab that idles, and virtual labs beside it: its links spin on a CPU, and they keep off it."""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from ewan.labs.runtime import cpu
from tests.conftest import Ewan

pytestmark = pytest.mark.live

LAB = ("dumbbell", "--rtt", "20ms", "--rate", "100M")
MOST = 3.0
"""How many times as long a virtual lab may take beside a live one."""


@pytest.mark.alone
def test_a_virtual_lab_is_not_starved_by_a_live_one(ewan: Ewan, tmp_path: Path, name: str) -> None:
    """Other virtual labs hold the CPUs without spinners: it shares one with them."""

    def took() -> float:
        begun = time.monotonic()
        done = ewan(
            "lab", "batch", *LAB, "--do", "left1: ping -c 100 -i 0.1 right1", "--runtime", "virtual", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
        return time.monotonic() - begun

    said: list[str] = []
    alone = min(took() for _ in range(3))
    assert ewan("up", *LAB, "--name", name, "--runtime", "netns").returncode == 0
    try:
        taken = cpu.spinning() & os.sched_getaffinity(0)
        assert taken, "the lab's link spins"
        with ExitStack() as stack:
            for number in os.sched_getaffinity(0) - taken:
                holder = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                holder.bind(f"\0ewan-virtual-cpu-{os.getuid()}-{number}-0")
            beside = min(took() for _ in range(3))
    finally:
        ewan("down", name)
    assert beside <= MOST * alone, f"{beside:.2f} s beside a live lab, {alone:.2f} s alone"
    assert "links of live labs spin on" in said[-1] and "links of live labs spin on" not in said[0]


@pytest.mark.parametrize(("idle", "least", "most"), [("sleep", 0.0, 0.03), ("spin", 0.5, 1.01)])
def test_an_idle_lab_takes_no_cpu_unless_it_is_to_spin(
    ewan: Ewan, state: Path, tmp_path: Path, name: str, idle: str, least: float, most: float
) -> None:
    file = tmp_path / "idle.lab.yaml"
    file.write_text(f"topology: dumbbell\nrtt: 20ms\nwan: {{rate: 100Mbit/s}}\ncpus: {{idle: {idle}}}\n")
    done = ewan("up", str(file), "--name", name, "--runtime", "netns")
    assert done.returncode == 0, done.stderr
    try:
        (spinner,) = (each for each in psutil.process_iter() if str(state / name) in _words(each))
        time.sleep(1)  # neighbours ask for each other's addresses at first
        begun, before = time.monotonic(), spinner.cpu_times()
        time.sleep(4)
        after, seconds = spinner.cpu_times(), time.monotonic() - begun
    finally:
        ewan("down", name)
    share = (after.user + after.system - before.user - before.system) / seconds
    assert least <= share <= most, f"{share:.1%} of a CPU"


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() if process.cmdline()[1:2] == ["link"] else []
    except psutil.Error:
        return []
