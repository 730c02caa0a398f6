"""The cards of a lab that is up, for its certificate: the speed of each one's line, whether it stamps packets, and the
offloads that are on where every lab has them off: packets then come several at once, in bursts.

In: what the runtime of the lab tells (`ewan-node cards`, `ewan-node left-on`). Out: facts, without a verdict, and a row
for each interface with offloads. Probes use none of these stamps: theirs are the kernel's, in software, by one clock
for all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ewan.calibration.hints import BURSTS
from ewan.calibration.host.cards import HARDWARE, time_stamps
from ewan.calibration.judge import Judge
from ewan.labs.record import Row
from ewan.labs.record.machine_load import LabCard
from ewan.labs.runtime.inspections import CardFacts, EnabledFeatures

QUANTITY = "offloads on"
MOST_SHOWN = 4
SWITCHES = {"tx-generic-segmentation": "gso", "rx-gro": "gro", "rx-lro": "lro"}
"""Features with the words by which ethtool switches them; all of TCP's segmentation are tso."""


def facts(told: Sequence[CardFacts]) -> tuple[LabCard, ...]:
    """The cards' speeds (None where a card does not report it), time stamps, and whether they stamp received
    packets."""
    return tuple(map(_of, told))


def _of(told: CardFacts) -> LabCard:
    words = time_stamps(told.time_stamps)
    return LabCard(told.card, told.interface, told.node, told.speed_bps, HARDWARE in words, words)


def offload_rows(found: Sequence[EnabledFeatures]) -> tuple[Row, ...]:
    """A row for each interface that has some on: it says which, and how to switch them off."""
    return tuple(_row(f"{each.node}:{each.interface}", each.interface, each.features) for each in found)


def _row(place: str, interface: str, features: Sequence[str]) -> Row:
    switches = {name: SWITCHES.get(name) or ("tso" if name.startswith("tx-tcp") else "") for name in features}
    named = sorted(features, key=lambda name: not switches[name])
    more = f" and {len(named) - MOST_SHOWN} more" if len(named) > MOST_SHOWN else ""
    words = dict.fromkeys(switches[name] or name for name in named[:MOST_SHOWN])
    off = f"ethtool -K {interface} {' '.join(f'{word} off' for word in words)}"
    note = f"{', '.join(named[:MOST_SHOWN])}{more} on: {BURSTS}: in the node, {off}"
    return Judge(place, "", f"{note}; or bring the lab up anew").row(QUANTITY, "count", 0, len(features), 0.0)
