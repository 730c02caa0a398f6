"""The settings of packets between two places, and the lab that has such ways. Pure.

Comes in: legs, each one direction between two labels (addresses, or the network behind a card). Goes out: a layout: one
pair of ends, a dumbbell; several pairs with one end in common, a graph. Other layouts have no description."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ewan.extras.importers.findings import Findings
from ewan.labs.base.units import Buffer, Duration, Rate

BOX = "box"
"""Label of the machine itself, where it is between more than two networks: a router, and no end."""
LONGEST_NAME = 32
CARD_PACKETS = 1000
"""Linux's `txqueuelen` of Ethernet cards."""

Setting = str | dict[str, "Setting"]


@dataclass(slots=True)
class ImportedSettings:
    """Settings of one direction as a description writes them, each with the reason that stands behind it."""

    settings: dict[str, tuple[Setting, str]] = field(default_factory=dict)

    def put(self, key: str, value: object, why: str) -> None:
        """`value` in the description's own words."""
        self.settings[key] = (value if isinstance(value, dict) else str(value), why)


@dataclass(frozen=True, slots=True)
class ImportedDirection:
    """One direction. `what` describes it for people."""

    line: int
    source: str
    target: str
    what: str
    way: ImportedSettings


@dataclass(frozen=True, slots=True)
class DeviceTraffic:
    """The settings of packets that leave a card, or come in by it."""

    line: int
    device: str
    outward: bool
    way: ImportedSettings

    @property
    def what(self) -> str:
        """A description for people."""
        return f"what {'leaves' if self.outward else 'comes in by'} {self.device}"


@dataclass(frozen=True, slots=True)
class ImportedLayout:
    """`links`: each with its ends, by name; the first leg goes from the first end to the second, the other one back."""

    hosts: tuple[str, ...]
    links: tuple[tuple[str, str, ImportedDirection | None, ImportedDirection | None], ...]
    hub: str | None

    @property
    def alone(self) -> bool:
        """One pair of ends: the lab is a dumbbell."""
        return self.hub is None


def behind(device: str) -> str:
    """The label of the network behind a card."""
    return f"behind {device}"


def of_devices(ways: Sequence[DeviceTraffic], findings: Findings) -> list[ImportedDirection]:
    """Legs of a machine's cards: one card of an end host, two of a box between two networks, or a box with more."""
    devices = list(dict.fromkeys(way.device for way in ways))
    legs: list[ImportedDirection] = []
    for way in ways:
        if len(devices) == 2:
            other = devices[1 - devices.index(way.device)]
            here = behind(other)
        else:
            here = "here" if len(devices) == 1 else BOX
        ends = (here, behind(way.device)) if way.outward else (behind(way.device), here)
        legs.append(ImportedDirection(way.line, *ends, way.what, way.way))
    return legs


def layout(legs: Sequence[ImportedDirection], findings: Findings) -> ImportedLayout:
    """ImportingError where two legs go the same way, or no lab has all of them."""
    ways: dict[tuple[str, str], ImportedDirection] = {}
    for leg in legs:
        if leg.source == leg.target:
            raise findings.error(leg.line, leg.what, "goes from an end to itself: write two ends")
        before = ways.setdefault((leg.source, leg.target), leg)
        if before is not leg:
            message = f"packets that line {before.line} delays pass here too, or never: import only one of them"
            raise findings.error(leg.line, leg.what, message)
    pairs = list({frozenset((leg.source, leg.target)): (leg.source, leg.target) for leg in reversed(legs)}.values())[
        ::-1
    ]
    if len(pairs) == 1:
        source, target = pairs[0]
        return ImportedLayout(
            (source, target), ((source, target, ways.get((source, target)), ways.get((target, source))),), None
        )
    common = set(pairs[0]).intersection(*map(set, pairs[1:]))
    if not common:
        strange = next((leg for leg in legs if not {leg.source, leg.target} & set(pairs[0])), legs[-1])
        message = "the ways of this script have no end in common, so no star has them: import them one by one"
        raise findings.error(strange.line, strange.what, message)
    hub = BOX if BOX in common else pairs[0][0] if pairs[0][0] in common else pairs[0][1]
    others = [source if target == hub else target for source, target in pairs]
    links = tuple((hub, other, ways.get((hub, other)), ways.get((other, hub))) for other in others)
    return ImportedLayout((*(() if hub == BOX else (hub,)), *others), links, hub)


def names(labels: Sequence[str]) -> dict[str, str]:
    """A host's name for each label: small letters, digits, hyphens, each its own."""
    found: dict[str, str] = {}
    for label in labels:
        plain = re.sub(r"[^a-z0-9]+", "-", label.removeprefix("behind ").lower()).strip("-")
        plain = plain if plain[:1].isalpha() else f"h{plain}"
        plain = plain[: LONGEST_NAME - 4].strip("-")
        name, number = plain, 1
        while name in found.values() or name == BOX:
            number += 1
            name = f"{plain}-{number}"
        found[label] = name
    return found


def completed(way: ImportedSettings, framing: tuple[str, str], line_rate: Rate) -> ImportedSettings:
    """All settings that a direction must have; those that a script lacks are the card's. `framing` comes with its
    reason."""
    whole, why = ImportedSettings(), "the script does not say: the card's"
    whole.put("framing", *framing)
    whole.put("rate", line_rate, why)
    whole.put("buffer", Buffer("packets", CARD_PACKETS), why)
    whole.put("delay", Duration(0), "")
    whole.settings.update(way.settings)
    return whole
