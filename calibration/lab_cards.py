"""The cards of a lab that is up, for its certificate: the speed of each one's line, and whether it stamps packets.

In: what the runtime of the lab tells (`ewan-node cards`). Out: facts, without a verdict. Probes use none of these
stamps: theirs are the kernel's, in software, by one clock for all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ewan.calibration.host.cards import HARDWARE, time_stamps


def facts(told: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each card `card`, `node`, `interface`, `speed_bps` (None: it does not say), `time_stamps` (which it can take),
    `stamps_in_hardware` (of what arrives)."""
    return [_of(each) for each in told]


def _of(told: dict[str, Any]) -> dict[str, Any]:
    words = time_stamps(told["time_stamps"])
    return {**told, "time_stamps": words, "stamps_in_hardware": HARDWARE in words}
