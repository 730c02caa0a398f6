"""The cards of a lab that is up, for its certificate: the speed of each one's line, and whether it stamps packets.

In: the plan, and the node binary, which asks the drivers. Out: facts, without a verdict. Probes use none of these
stamps: theirs are the kernel's, in software, by one clock for all nodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibration import node
from calibration.host.cards import HARDWARE, time_stamps
from labs.plan import Plan


def facts(plan: Plan, binary: Path) -> list[dict[str, Any]]:
    """Of each card `card`, `node`, `interface`, `speed_bps` (None: it does not say), `time_stamps` (which it can take),
    `stamps_in_hardware` (of what arrives). None of a lab without cards. RuntimeError with one line."""
    return [_of(told) for told in (node.told(plan, binary, "cards") if plan.cards else ())]


def _of(told: dict[str, Any]) -> dict[str, Any]:
    words = time_stamps(told["time_stamps"])
    return {**told, "time_stamps": words, "stamps_in_hardware": HARDWARE in words}
