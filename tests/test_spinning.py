"""A live lab that idles, and virtual labs beside it: its links spin on a CPU, and they keep off it."""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from labs.runtime import cpu
from tests.conftest import Ewan

pytestmark = pytest.mark.live

LAB = ("dumbbell", "--rtt", "20ms", "--rate", "100M")
MOST = 3.0
"""How many times as long a virtual lab may take beside a live one."""


def test_a_virtual_lab_is_not_starved_by_a_live_one(ewan: Ewan, tmp_path: Path, name: str) -> None:
    """Other virtual labs hold the CPUs without spinners: it shares one with them."""

    def took() -> float:
        begun = time.monotonic()
        done = ewan("batch", *LAB, "--do", "left1: ping -c 100 -i 0.1 right1", "--runtime", "virtual", cwd=tmp_path)
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
