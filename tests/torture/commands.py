"""What tortures of live labs share: `ewan` as a command with a state root of the trial's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EWAN = Path(__file__).resolve().parents[2] / "ewan" / "cli.py"
# Small: five nodes, one of which spins.
TOPOLOGY = ("chain", "--hops", "1", "--rtt", "2ms", "--runtime", "netns")


def start(place: Path, *words: str) -> subprocess.Popen[str]:
    """`ewan` with these words, in `place`, where its labs' state is too; what it says is one text."""
    return subprocess.Popen(
        [sys.executable, str(EWAN), *words],
        cwd=place,
        env=os.environ | {"EWAN_STATE": str(place / "state")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(place: Path, *words: str) -> tuple[int, str]:
    """The exit status, and what was said."""
    process = start(place, *words)
    said, _ = process.communicate(timeout=120)
    return process.returncode, said
