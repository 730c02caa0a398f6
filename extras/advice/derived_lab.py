"""A lab with the measured properties of a path: a description that a person can read and change. Pure.

In: a characterisation, and the number of pairs of hosts of the lab. Out: the lab as data and as text, and the
assumptions. Values have two digits of their uncertainty. The lab is a dumbbell whose one link is the bottleneck, with a
drop-tail queue; its rates are of IP packets (`framing: ip`), as those of the characterisation are."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ewan.generator.scenario.data import ScenarioMapping
from ewan.generator.scenario.writing import to_yaml
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND, Duration, Fraction, Rate, Size
from ewan.labs.base.units.shown import written
from ewan.labs.record.characterisation import Characterisation, Estimate, PathDirection

NAME = "derived"
ASSUMED_BUFFER = "1BDP"
WORDS = {"capacity": "capacity", "buffer": "buffer", "loss": "loss", "cross": "cross traffic"}


@dataclass(frozen=True, slots=True)
class DerivedLab:
    """A lab's description, as data and as text; `assumed`: a line for each value that was not measured,
    and for each doubt of one that was."""

    lab: ScenarioMapping
    text: str
    assumed: tuple[str, ...]


def derive(found: Characterisation, pairs: int) -> DerivedLab:
    """ValueError, one line, where a value is missing that no assumption can stand for."""
    rtt = _needed(found.base_rtt, "base_rtt")
    assumed: list[str] = []
    ways = {name: _way(name, way, found.mtu_bytes, assumed) for name, way in found.ways().items()}
    # The probes' own time at the bottleneck, there and back, is no propagation.
    own = sum(
        found.packet_bytes * BITS_PER_BYTE * NS_PER_SECOND / _needed(way.capacity, f"{name}.capacity")
        for name, way in found.ways().items()
    )
    propagation = Duration(max(round(rounded((rtt - own) / 2, found.base_rtt.expanded / 2)), 0) * 2)
    lab: ScenarioMapping = {
        "name": NAME,
        "topology": {"dumbbell": {"pairs": pairs}},
        "rtt": str(propagation),
        "mtu": found.mtu_bytes,
        "wan": {"framing": "ip", **ways},
    }
    return DerivedLab(lab, "".join(f"# {line}\n" for line in _said(found, assumed)) + to_yaml(lab), tuple(assumed))


def crossing(way: PathDirection) -> float:
    """The cross traffic that is more than its uncertainty, in bit/s of full IP packets; else 0."""
    value = way.cross.value or 0.0
    return value if value > way.cross.expanded else 0.0


def rounded(value: float, expanded: float) -> float:
    """Round a value to two digits of its expanded uncertainty (GUM, JCGM 100:2008, 7.2.6), never to zero."""
    if expanded <= 0 or value <= 0:
        return value
    step = 10.0 ** (math.floor(math.log10(expanded)) - 1)
    return round(value / step) * step or value


def _way(name: str, way: PathDirection, mtu: int, assumed: list[str]) -> dict[str, str]:
    capacity = _needed(way.capacity, f"{name}.capacity")
    if crossing(way) >= capacity:
        raise ValueError(
            f"{name}.cross leaves nothing of {name}.capacity: the rate varies, or others fill it: write less"
        )
    assumed += [f"{name}: {doubt}: the derived lab is a guess" for doubt in way.doubts]
    settings = {"rate": str(Rate(round(rounded(capacity, way.capacity.expanded))))}
    if way.buffer.value is None:
        settings["buffer"] = ASSUMED_BUFFER
        why = f" ({way.buffer.note})" if way.buffer.note else ""
        assumed.append(f"{name}: the buffer was not found{why}: {ASSUMED_BUFFER} is assumed")
    else:
        settings["buffer"] = str(Size(max(round(rounded(way.buffer.value, way.buffer.expanded)), mtu)))
    if way.loss.value is None:
        assumed.append(f"{name}: loss was not found: none is assumed")
    elif way.loss.value:
        settings["loss"] = str(Fraction(round(rounded(way.loss.value, way.loss.expanded))))
    return settings


def _needed(estimate: Estimate, where: str) -> float:
    if not estimate.value:
        why = f" ({estimate.note})" if estimate.note else ""
        raise ValueError(f"{where} has no value{why}: write one, in {estimate.unit}")
    return estimate.value


def _said(found: Characterisation, assumed: list[str]) -> list[str]:
    """The measured values, a line each."""
    place = f" of lab {found.lab}" if found.lab else ""
    lines = [f"Derived from the path from {found.source} to {found.sink}{place}, as measured (U: k = 2):"]
    lines.append(f"  base RTT {_known(found.base_rtt)}, of packets of {found.packet_bytes} B; MTU {found.mtu_bytes} B")
    for name, way in found.ways().items():
        values = (f"{words} {_known(getattr(way, key))}" for key, words in WORDS.items())
        lines.append(f"  {name}: {', '.join(values)}")
    return [*lines, *assumed]


def _known(estimate: Estimate) -> str:
    if estimate.value is None:
        return "not found"
    return f"{written(estimate.value, estimate.unit, 6)} ± {written(estimate.expanded, estimate.unit, 2)}"
