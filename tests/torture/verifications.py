"""A good lab is verified with the default policy: it passes each time, however busy the machine is."""

from __future__ import annotations

import os
from pathlib import Path

from ewan.calibration import report
from tests.torture.commands import run

TIER = "live"
QUICK = 0
LONG = 20


def trial(seed: int, place: Path) -> None:
    name = f"tv{os.getpid()}s{seed}"
    words = ("dumbbell", "--rtt", "40ms", "--rate", "50Mbit/s", "--buffer", "1BDP")
    try:
        status, said = run(place, "lab", *words, "--name", name, "--runtime", "netns")
        assert status == 0, said
        (kept,) = (place / "results").glob("*/certificate.json")
        certificate = report.read(kept)
        assert certificate.passed and certificate.count("ok") > certificate.count("not decidable"), said
    finally:
        assert run(place, "down", name)[0] == 0
