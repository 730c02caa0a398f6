"""A path characterised: probes in an order in which each knows what those before it found.

In: two ends, and what sends probes. Out: a characterisation. Base RTT, MTU and about how fast it is come first, then
the capacity, then the buffer, then loss and cross traffic, whose probes must not fill it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from calibration.advice import estimators, plan
from calibration.advice.estimators import Found, Packet, Train
from calibration.advice.plan import Load, Ways
from calibration.expectation import BYTE_NS
from calibration.path import PathEnd
from calibration.probing import PROBE_BYTES, SECOND
from calibration.uncertainty import Instrument, recorded
from labs.errors import UserError
from labs.record.characterisation import Characterisation, Estimate, Way

Send = Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]
"""Sends probes, and gives a result for each."""
Unit = Literal["ns", "bit/s", "bytes", "ppb"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is measured, and on which clock. `instrument`: what the probes add themselves; None in the virtual clock."""

    a: PathEnd
    b: PathEnd
    lab: str
    clock: Literal["live", "virtual"]
    time: str
    instrument: Instrument | None
    loads: tuple[Load, ...] = ()

    @property
    def ways(self) -> Ways:
        """Who sends to whom."""
        return {"forward": (self.a, self.b), "backward": (self.b, self.a)}


def characterise(asked: Asked, send: Send) -> Characterisation:
    """UserError, one line, where nothing comes through."""
    sizes, trips, trains = (_of(each) for each in send(plan.first(asked.ways, asked.loads)))
    mtu = max((int(name) for name, stream in sizes.items() if stream["received_packets"]), default=0)
    if not mtu:
        raise UserError(
            f"no packet of any size from {asked.a.name} was answered by {asked.b.name}: is the address right, does the "
            "other end route back?"
        )
    base = estimators.least([packet.delay_ns for packet in _packets(trips["trips"])], 2, asked.instrument)
    about = {
        way: estimators.capacity(_trains(way, trains), plan.FIRST_BYTES, asked.instrument).value for way in asked.ways
    }
    if missing := [way for way, value in about.items() if value is None]:
        raise UserError(f"the path's {missing[0]} way lost nearly all trains of packets: nothing can be said of it")
    known = {way: value for way, value in about.items() if value is not None}
    ways = _ways(asked, send, mtu, known)
    return Characterisation(
        source=asked.a.name,
        sink=asked.b.name,
        lab=asked.lab,
        clock=asked.clock,
        time=asked.time,
        mtu_bytes=mtu,
        packet_bytes=PROBE_BYTES,
        base_rtt=_estimate(base, "ns"),
        forward=ways["forward"],
        backward=ways["backward"],
        load=tuple(load.words for load in asked.loads),
        instrument=None if asked.instrument is None else dataclasses.asdict(asked.instrument),
    )


def _ways(asked: Asked, send: Send, mtu: int, about: Mapping[str, float]) -> dict[str, Way]:
    (bursts,) = (_of(each) for each in send([plan.back_to_back(asked.ways, mtu, about, asked.loads)]))
    trains = {way: _trains(way, bursts) for way in asked.ways}
    capacities = {way: estimators.capacity(each, mtu, asked.instrument) for way, each in trains.items()}
    rates = {way: found.value or about[way] for way, found in capacities.items()}
    filled = _filled(asked, send, mtu, rates)
    bases = {way: _base(each, asked.instrument) for way, each in trains.items()}
    rooms = {
        way: estimators.buffer(full, bases[way], capacities[way], mtu, asked.instrument).size.value
        for way, full in filled.packets.items()
    }
    last = [plan.stretched(way, ends, mtu, rates[way], rooms[way], asked.loads) for way, ends in asked.ways.items()]
    forward, backward, lost = (_of(each) for each in send([*last, plan.losses(asked.ways, rates, asked.loads)]))
    stretched = {"forward": forward, "backward": backward}
    result = {}
    for way in asked.ways:
        slower = _trains(way, stretched[way])
        base = _base([*trains[way], *slower], asked.instrument)
        held = estimators.buffer(filled.packets[way], base, capacities[way], mtu, asked.instrument)
        size, wait = held.size, held.wait
        cross = estimators.cross(slower, mtu, base, capacities[way], asked.instrument)
        doubts: tuple[str, ...] = ()
        if why := filled.lacks(way):
            size, wait = Found(None, {}, why), Found(None, {}, why)
        else:
            offered = plan.OVERLOAD * rates[way]
            share = estimators.doubt(filled.packets[way], mtu, offered, rates[way], cross.value or 0.0)
            doubts = tuple(text for text in (share, held.doubt) if text)
        told = lost[way]
        dropped = max(told["lost_packets"] - told["socket_drops_packets"], 0)
        result[way] = Way(
            capacity=_estimate(capacities[way], "bit/s"),
            buffer=_estimate(size, "bytes"),
            buffer_time=_estimate(wait, "ns"),
            loss=_estimate(estimators.loss(dropped, told["sent_packets"]), "ppb"),
            cross=_estimate(cross, "bit/s"),
            doubts=doubts,
        )
    return result


@dataclass(slots=True)
class _Filled:
    """Of each way what arrived in the second half of a load; whether the wait still grew; how long the last one was."""

    packets: dict[str, Sequence[Packet]]
    growing: dict[str, bool]
    lost: dict[str, float]
    """The share of the last load."""
    lasting_ns: float = 0.0

    def lacks(self, way: str) -> str:
        """Why the buffer was not filled; empty where it was."""
        if self.growing[way]:
            return f"not filled by {plan.OVERLOAD:g} × the capacity for {self.lasting_ns / SECOND:g} s"
        if self.lost[way] < plan.FULL_LOSES:
            return f"not filled: of a load of {plan.OVERLOAD:g} × the capacity {self.lost[way]:.1%} were lost"
        return ""


def _filled(asked: Asked, send: Send, mtu: int, rates: Mapping[str, float]) -> _Filled:
    """Loads, each longer than the one before, until the wait grows no more."""
    filled = _Filled({}, dict.fromkeys(asked.ways, True), dict.fromkeys(asked.ways, 0.0))
    number = 0
    while waiting := [way for way, grows in filled.growing.items() if grows]:
        filled.lasting_ns = plan.load_ns(number)
        probes = [
            plan.overload(way, asked.ways[way], mtu, rates[way], filled.lasting_ns, asked.loads) for way in waiting
        ]
        for way, result in zip(waiting, send(probes), strict=True):
            told = _of(result)[way]
            filled.lost[way] = told["lost_packets"] / max(told["sent_packets"], 1)
            packets = sorted(_packets(told), key=lambda packet: packet.sent_ns)
            filled.packets[way] = packets[len(packets) // 2 :]
            filled.growing[way] = estimators.growing(packets, mtu * BYTE_NS / rates[way])
        number += 1
        if filled.lasting_ns >= plan.LONGEST_LOAD_NS:
            break
    return filled


def _of(result: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The streams of a probe by their names; UserError where it could not be sent."""
    if "streams" not in result:
        raise UserError(f"probe {result['name']}: {result.get('error', 'no result')}")
    return {each["name"]: each for each in result["streams"]}


def _packets(stream: Mapping[str, Any]) -> tuple[Packet, ...]:
    return estimators.packets_of(stream)


def _trains(way: str, streams: Mapping[str, Mapping[str, Any]]) -> list[Train]:
    own = (stream for name, stream in streams.items() if name.split()[0] == way)
    return [Train(stream["sent_packets"], _packets(stream)) for stream in own]


def _base(trains: Sequence[Train], instrument: Instrument | None) -> Found:
    """The delay of a full packet that nowhere waited: the least of trains' first packets."""
    return estimators.least([train.packets[0].delay_ns for train in trains if train.packets], 1, instrument)


def _estimate(found: Found, unit: Unit) -> Estimate:
    known = None if found.value is None else recorded(found.components)
    return Estimate(found.value, unit, known, note=found.note)
