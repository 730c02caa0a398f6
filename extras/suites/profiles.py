"""Profiles of the suite: `quick` for minutes, `paper` for the papers' sizes. Each application has sizes for both.

10 Gbit/s and 19.8 ms are the papers' (NXE, section 4.2), and so are BU's sizes. Of the other applications the poster
says what kind of traffic they are, and no sizes: theirs are ours, so that a run lasts as long as the papers'. `quick`
has the same shape at a tenth of the rate and about a hundredth of the volume.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ewan.extras.suites.parameters import Defaults


@dataclass(frozen=True, slots=True)
class SuiteProfile:
    """The bottleneck's rate, the base RTT, and how many seeds."""

    rate: str
    rtt: str
    seeds: int

    def defaults(self, of_application: Mapping[str, str]) -> Defaults:
        """The default values of the poster's parameters: the application's, else the suite's.

        The suite's level of congestion is the poster's highest: without congestion, any congestion control fills its
        link."""
        return Defaults(self.rate, self.rtt, **of_application)


PROFILES = {"quick": SuiteProfile("1G", "20ms", seeds=3), "paper": SuiteProfile("10G", "19.8ms", seeds=5)}
