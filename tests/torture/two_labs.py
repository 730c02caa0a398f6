"""Two labs, of different names and of the same one, brought up and taken down at once: neither meets the other."""

from __future__ import annotations

import os
from pathlib import Path

from ewan.labs.runtime.tests.lab import traces
from tests.torture.commands import TOPOLOGY, run, start

TIER = "untimed"
QUICK = 2
LONG = 100


def trial(seed: int, place: Path) -> None:
    same = seed % 2 == 1
    one = f"tt{os.getpid()}s{seed}"
    # The names of the other's namespaces begin as the first one's do.
    names = [one, one if same else f"{one}-left1"]
    both = [start(place, "up", *TOPOLOGY, "--name", name) for name in names]
    said = [process.communicate(timeout=120)[0] for process in both]
    ended = sorted(process.returncode for process in both)
    assert ended == ([0, 2] if same else [0, 0]), said
    for name in names:
        assert run(place, "exec", "--lab", name, "left1", "--", "ping", "-c1", "-W2", "right1")[0] == 0, name
    if not same:
        assert run(place, "down", one)[0] == 0
        assert run(place, "exec", "--lab", names[1], "left1", "--", "ping", "-c1", "-W2", "right1")[0] == 0
        names = names[1:] * 2
    both = [start(place, "down", name) for name in names]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert 0 in [process.returncode for process in both], said
    assert traces(one, place / "state") == []
