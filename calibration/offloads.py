"""Offloads that are on in a lab that is up, where every lab has them off: packets then come several at once, in bursts.

In: what the lab's runtime tells (`ewan-node left-on`): {"node", "interface", "features"} of each interface that has
some on. Out: a row for each of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ewan.calibration.hints import BURSTS
from ewan.calibration.judge import Judge
from ewan.labs.record import Row

QUANTITY = "offloads on"
MOST_SHOWN = 4
SWITCHES = {"tx-generic-segmentation": "gso", "rx-gro": "gro", "rx-lro": "lro"}
"""Features with the words by which ethtool switches them; all of TCP's segmentation are tso."""


def rows(found: Sequence[dict[str, Any]]) -> tuple[Row, ...]:
    """A row for each interface, which says which offloads, and how to switch them off."""
    return tuple(_row(f"{each['node']}:{each['interface']}", each["interface"], each["features"]) for each in found)


def _row(place: str, interface: str, features: Sequence[str]) -> Row:
    switches = {name: SWITCHES.get(name) or ("tso" if name.startswith("tx-tcp") else "") for name in features}
    named = sorted(features, key=lambda name: not switches[name])
    more = f" and {len(named) - MOST_SHOWN} more" if len(named) > MOST_SHOWN else ""
    words = dict.fromkeys(switches[name] or name for name in named[:MOST_SHOWN])
    off = f"ethtool -K {interface} {' '.join(f'{word} off' for word in words)}"
    note = f"{', '.join(named[:MOST_SHOWN])}{more} on: {BURSTS}: in the node, {off}"
    return Judge(place, "", f"{note}; or bring the lab up anew").row(QUANTITY, "count", 0, len(features), 0.0)
