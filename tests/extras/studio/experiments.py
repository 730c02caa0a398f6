"""Experiments that tests of studio look at: two small ones of the virtual clock, made once, which differ in the rate.

Each has a point for each of two RTTs, and two seeds of each: runs 1 and 2 at 20 ms, 3 and 4 at 40 ms.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

SCENARIO = """
name: brief
title: A brief transfer
lab: {topology: dumbbell, rtt: "${rtt}", wan: {rate: "${rate}"}}
parameters: {rtt: 20ms, rate: 10Mbit/s}
sweep: {rtt: [20ms, 40ms]}
seeds: 2
steps:
  - {name: load, from: left1, to: right1, for: 2s, bulk: {}}
"""


@dataclass(frozen=True)
class Made:
    """`place`: the directory with brief.scenario.yaml and results/, where `first` (10 Mbit/s) and `second` (20 Mbit/s)
    are. Others look at it too: change a copy."""

    place: Path
    first: str
    second: str

    def copy(self, into: Path) -> None:
        """Puts both into another directory."""
        shutil.copy(self.place / "brief.scenario.yaml", into)
        for name in (self.first, self.second):
            shutil.copytree(self.place / "results" / name, into / "results" / name)
