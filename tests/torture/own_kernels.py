"""Debian's newer kernel, as people add it: it builds, its times are exact, its results repeat, and files that have not
changed are not compiled again.

By hand and weekly: the first trial takes 11 minutes of CPU time, half an hour beside other work. A later trial
compiles nothing, for the tree stays in the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from ewan.labs.context import COMMAND

TIER = "virtual"
QUICK = 0
LONG = 2

VERSION = "7.3"
NAME = "torture-7.3"
AGAIN_S = 300.0


def ewan(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, with a library of kernels of its own."""
    environment = {**os.environ, "XDG_DATA_HOME": str(place / "data")}
    return subprocess.run([*COMMAND, *words], env=environment, cwd=place, capture_output=True, text=True, check=False)


def trial(seed: int, place: Path) -> None:
    """One kernel, added twice and verified."""
    for limit_s in (3600.0, AGAIN_S):
        begun = time.monotonic()
        added = ewan(place, "kernel", "add", "--debian", VERSION, "--name", NAME)
        assert added.returncode == 0, added.stderr
        took = time.monotonic() - begun
        print(f"added in {took:.0f} s", file=sys.stderr)
        assert took < limit_s
    verified = ewan(place, "kernel", "verify", NAME, "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert all(json.loads(verified.stdout)["repeats"].values())
    sent = ewan(
        place,
        *("transfer", "dumbbell", "--rtt", "20ms", "--rate", "100M", "--for", "2s", "--runtime", "virtual"),
        *("--kernel", NAME, "--cc", "cubic,bbr3,prague", "--seed", str(seed)),
    )
    assert sent.returncode == 0, sent.stderr
