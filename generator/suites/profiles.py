"""Sizes of the applications: `quick` for minutes, `paper` for those of the papers.

BU's 30 Gbit for each source, its starts 1 s apart, 10 Gbit/s and 19.8 ms are the papers' (NXE, section 4.2). Of the
other applications the poster says what kind of traffic they are, and no sizes: theirs are ours, so that a run lasts as
long as the papers'. `quick` has the same shape at a tenth of the rate and about a hundredth of the volume.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from generator.suites.parameters import Defaults

NO_SIZE = '"null"'
"""Of a barrier: its messages have one byte, and a scenario says none."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Defaults of the parameters, how many seeds, and the values of each application's own parameters."""

    rate: str
    rtt: str
    seeds: int
    sizes: Mapping[str, Mapping[str, str | int]]
    patterns: tuple[Mapping[str, str], ...]
    """PA: pattern, size of a message."""

    def defaults(self, app: str) -> Defaults:
        """TU has one source at full speed. PA's congestion and BU's reverse traffic are those of the poster's examples;
        the others have its highest level of congestion: without any, every variant fills its link.
        """
        match app:
            case "TU":
                return Defaults(self.rate, self.rtt, k="1")
            case "PA":
                return Defaults(self.rate, self.rtt, cg="1.0")
            case "BU":
                return Defaults(self.rate, self.rtt, r="1.0")
        return Defaults(self.rate, self.rtt)


PATTERNS: tuple[Mapping[str, str], ...] = (
    {"pattern": "all-to-all", "size": "16kB"},
    {"pattern": "neighbour-exchange", "size": "64kB"},
    {"pattern": "barrier", "size": NO_SIZE},
)

QUICK = Profile(
    rate="1G",
    rtt="20ms",
    seeds=3,
    sizes={
        "TU": {"volume": "3Gbit"},
        "BU": {"volume": "180Mbit", "apart": "60ms"},
        "PP": {"volume": "90Mbit", "apart": "30ms"},
        "WM": {"length": "3s", "page": "30kB", "think": "200ms", "file": "1MB"},
        "PA": {"compute": "2ms", "iterations": 20},
    },
    patterns=PATTERNS,
)

PAPER = Profile(
    rate="10G",
    rtt="19.8ms",
    seeds=5,
    sizes={
        "TU": {"volume": "300Gbit"},
        "BU": {"volume": "30Gbit", "apart": "1s"},
        "PP": {"volume": "30Gbit", "apart": "1s"},
        "WM": {"length": "300s", "page": "30kB", "think": "1s", "file": "10MB"},
        "PA": {"compute": "2ms", "iterations": 1000},
    },
    patterns=PATTERNS,
)

PROFILES = {"quick": QUICK, "paper": PAPER}
