"""SIGKILL or SIGINT at a random moment of up, down, exec or batch: then one `ewan down` leaves nothing of the lab.

After SIGINT nothing of an `up` that failed is there, and all of one that did not.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.tests.lab import traces
from tests.torture.commands import TOPOLOGY, run, start

TIER = "untimed"
QUICK = 6
LONG = 300
LONGEST_S = 2.5


def trial(seed: int, place: Path) -> None:
    random_ = random.Random(seed)
    lab, state = f"tk{os.getpid()}s{seed}", place / "state"
    what, ending = random_.choice(("up", "down", "exec", "batch")), random_.choice((signal.SIGKILL, signal.SIGINT))
    up = ("up", *TOPOLOGY, "--name", lab)
    if what in ("down", "exec"):
        assert run(place, *up)[0] == 0
    process = start(
        place,
        *{
            "up": up,
            "down": ("down", lab),
            "exec": ("lab", "exec", "left1", "--", "sh", "-c", "while :; do sleep 0.01; done", str(state / lab)),
            "batch": ("lab", "batch", *TOPOLOGY, "--name", lab, "--do", "left1: ping -i 0.01 right1", "--for", "5s"),
        }[what],
    )
    time.sleep(random_.uniform(0, LONGEST_S))
    if ending == signal.SIGINT:  # as a terminal sends it: to all that the command started, too
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, ending)
    else:
        process.send_signal(ending)
    try:
        process.wait(timeout=60)  # what it started in a node may live on, and hold its output open
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        run(place, "down", "--all")
        raise
    if what == "up" and ending == signal.SIGINT:
        found = NetnsRuntime(state=state).status(lab).state
        assert found == ("complete" if process.returncode == 0 else "down"), f"{found}, {process.returncode}"
    status, said = run(place, "down", "--all")
    assert status == 0, said
    assert traces(lab, state) == [], f"{what}, {ending.name}"
    # The root of all labs may stay, empty, where the `down` that was killed had nothing else left to remove.
    assert not list(state.rglob("*"))
