"""Bounds of a live lab that hold before a run and while it goes: what its verification judges by, and what marks a run.

In: nothing. Out: constants, for calibration (the tolerances of a certificate, what disturbed its probes) and for
labs/record/disturbances.py.
"""

from __future__ import annotations

from ewan.labs.base.units import NS_PER_MS

RELEASE_P99_NS = 500_000
"""The p99 of how long after its due time a packet leaves its link."""
LONGEST_GAP_NS = NS_PER_MS
"""A CPU that is taken from its links for longer at once is reported."""
STEAL_SHARE = 0.01
"""Share of all CPU time from which on the time that the hypervisor took is reported."""
