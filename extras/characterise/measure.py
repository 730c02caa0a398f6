"""A path characterised: probes in an order in which each uses the results of those before it.

In: two ends, and a function that sends probes. Out: a characterisation. Base RTT, MTU and a rough estimate of the rate
come first, then the capacity, then the buffer, then loss and cross traffic, whose probes must not fill it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ewan.calibration.expectation import BYTE_NS
from ewan.calibration.path import PathEnd, error_of
from ewan.calibration.probing import PROBE_BYTES, SECOND
from ewan.calibration.uncertainty import Instrument, recorded
from ewan.extras.characterise import estimators, plan
from ewan.extras.characterise.estimators import Packet, PathEstimate, Train
from ewan.extras.characterise.plan import Load, Ways
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import PPB
from ewan.labs.record.characterisation import Characterisation, Estimate, PathDirection
from ewan.labs.runtime.probe_documents import OfStreams, ProbeResult, StreamResult, StreamsResult

ENOUGH_TRAINS = 2
"""So many of the first trains tell about how fast a path is."""

Send = Callable[[Sequence[OfStreams]], Sequence[ProbeResult]]
"""Sends probes, and gives a result for each."""
Streams = dict[str, StreamResult]
"""The streams of a probe's result, by their names."""
Unit = Literal["ns", "bit/s", "bytes", "ppb"]


@dataclass(frozen=True, slots=True)
class MeasurementRequest:
    """The path to measure and its clock. `instrument`: the uncertainty that the probes add themselves; None in the
    virtual clock."""

    a: PathEnd
    b: PathEnd
    lab: str
    clock: Literal["live", "virtual"]
    time: str
    instrument: Instrument | None
    loads: tuple[Load, ...] = ()

    @property
    def ways(self) -> Ways:
        """The sender and the receiver of each way."""
        return {"forward": (self.a, self.b), "backward": (self.b, self.a)}


def characterise(asked: MeasurementRequest, send: Send) -> Characterisation:
    """UserError, one line, where nothing comes through."""
    sizes = _sizes(asked, send)
    mtu = max((int(name) for name, stream in sizes.items() if stream.received_packets), default=0)
    if not mtu:
        raise UserError(
            f"no packet of any size from {asked.a.name} was answered by {asked.b.name}: is the address right, does the "
            "other end route back?"
        )
    longest = max(packet.delay_ns for stream in sizes.values() for packet in _packets(stream))
    (trains,) = (_of(each) for each in send([plan.first(asked.ways, longest, asked.loads)]))
    about = {
        way: estimators.capacity(_trains(way, trains), plan.FIRST_BYTES, asked.instrument, ENOUGH_TRAINS)
        for way in asked.ways
    }
    if missing := [way for way, found in about.items() if found.value is None]:
        raise UserError(f"nothing is known about the path's {missing[0]} way: {about[missing[0]].note}")
    known = {way: found.value for way, found in about.items() if found.value is not None}
    (trips,) = (_of(each) for each in send([plan.trips(asked.ways, known, asked.loads)]))
    base = estimators.least([packet.delay_ns for packet in _packets(trips["trips"])], 2, asked.instrument)
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


def _sizes(asked: MeasurementRequest, send: Send) -> Streams:
    """Streams of packets of each size, sent slowly where nothing came back at first."""
    found: Streams = {}
    for gap_ns in (plan.SIZES_GAP_NS, plan.SIZES_SLOW_NS):
        (found,) = (_of(each) for each in send([plan.sizes(asked.ways, gap_ns)]))
        if any(stream.received_packets for stream in found.values()):
            break
    return found


def _ways(asked: MeasurementRequest, send: Send, mtu: int, about: Mapping[str, float]) -> dict[str, PathDirection]:
    (bursts,) = (_of(each) for each in send([plan.back_to_back(asked.ways, mtu, about, asked.loads)]))
    trains = {way: _trains(way, bursts) for way in asked.ways}
    capacities = {way: estimators.capacity(each, mtu, asked.instrument) for way, each in trains.items()}
    rates = {way: found.value or about[way] for way, found in capacities.items()}
    offered = {way: plan.OVERLOAD * rate for way, rate in rates.items()}
    filled = _filled(asked, send, mtu, rates)
    bursts_of = {way: estimators.burst(load, mtu, offered[way], capacities[way]) for way, load in filled.loads.items()}
    leads, held_ns = dict.fromkeys(asked.ways, 0), dict.fromkeys(asked.ways, 0.0)
    for way, burst in bursts_of.items():
        if burst is not None and burst.capacity.value is not None:
            capacities[way], rates[way] = burst.capacity, burst.capacity.value
            # Packets that come after a burst take their time at the rate, lone ones do not.
            leads[way] = math.ceil(burst.packets * plan.CROSS_ABOVE / (plan.CROSS_ABOVE - 1))
            held_ns[way] = mtu * BYTE_NS / rates[way]
    bases = {way: _later(_base(each, asked.instrument), held_ns[way]) for way, each in trains.items()}
    rooms = {
        way: estimators.buffer(full, bases[way], capacities[way], mtu, asked.instrument).size.value
        for way, full in filled.packets.items()
    }
    last = [
        plan.stretched(way, ends, mtu, rates[way], rooms[way], asked.loads, leads[way])
        for way, ends in asked.ways.items()
    ]
    forward, backward, lost = (_of(each) for each in send([*last, plan.losses(asked.ways, rates, asked.loads)]))
    stretched = {"forward": forward, "backward": backward}
    result = {}
    for way in asked.ways:
        batches = [
            (max(each.lost_packets - each.socket_drops_packets, 0), each.sent_packets)
            for name, each in lost.items()
            if name.split()[0] == way
        ]
        loss = estimators.loss(batches)
        share_lost = (loss.value or 0.0) / PPB
        slower = _trains(way, stretched[way])
        base = _later(_base([*trains[way], *slower], asked.instrument), held_ns[way])
        held = estimators.buffer(filled.packets[way], base, capacities[way], mtu, asked.instrument)
        size, wait = held.size, held.wait
        cross = estimators.cross(slower, mtu, base, capacities[way], asked.instrument, leads[way])
        if plan.CROSS_ABOVE * (1 - share_lost) < plan.CROSS_LEAST:
            cross = PathEstimate(
                None, {}, f"of trains {share_lost:.0%} are lost, and the others are less than the capacity"
            )
        doubts: tuple[str, ...] = ()
        if why := filled.lacks(way, share_lost):
            size, wait = PathEstimate(None, {}, why), PathEstimate(None, {}, why)
        else:
            share = estimators.doubt(filled.packets[way], mtu, offered[way], rates[way], cross.value or 0.0)
            doubts = tuple(text for text in (share, held.doubt) if text)
        if (burst := bursts_of[way]) is not None:
            doubts = (burst.doubt, *doubts)
        result[way] = PathDirection(
            capacity=_estimate(capacities[way], "bit/s"),
            buffer=_estimate(size, "bytes"),
            buffer_time=_estimate(wait, "ns"),
            loss=_estimate(loss, "ppb"),
            cross=_estimate(cross, "bit/s"),
            doubts=doubts,
        )
    return result


@dataclass(slots=True)
class _LoadResults:
    """For each way: the packets that arrived in the second half of a load, whether the wait still grew, and the length
    of the last load."""

    loads: dict[str, Sequence[Packet]]
    """All that arrived of a load, in the order of sending."""
    packets: dict[str, Sequence[Packet]]
    growing: dict[str, bool]
    lost: dict[str, float]
    """The share of the last load."""
    lasting_ns: float = 0.0

    def lacks(self, way: str, lost: float) -> str:
        """The reason why the buffer was not filled; empty where it was. `lost`: the share that the path loses without a
        load."""
        if self.growing[way]:
            return f"not filled by {plan.OVERLOAD:g} × the capacity for {self.lasting_ns / SECOND:g} s"
        if self.lost[way] - lost < plan.FULL_LOSES:
            return f"not filled: of a load of {plan.OVERLOAD:g} × the capacity {self.lost[way]:.1%} were lost"
        return ""


def _filled(asked: MeasurementRequest, send: Send, mtu: int, rates: Mapping[str, float]) -> _LoadResults:
    """Loads, each longer than the one before, until the wait grows no more."""
    filled = _LoadResults({}, {}, dict.fromkeys(asked.ways, True), dict.fromkeys(asked.ways, 0.0))
    number = 0
    while waiting := [way for way, grows in filled.growing.items() if grows]:
        filled.lasting_ns = plan.load_ns(number)
        probes = [
            plan.overload(way, asked.ways[way], mtu, rates[way], filled.lasting_ns, asked.loads) for way in waiting
        ]
        for way, result in zip(waiting, send(probes), strict=True):
            told = _of(result)[way]
            filled.lost[way] = told.lost_packets / max(told.sent_packets, 1)
            packets = sorted(_packets(told), key=lambda packet: packet.sent_ns)
            filled.loads[way] = packets
            filled.packets[way] = packets[len(packets) // 2 :]
            filled.growing[way] = estimators.growing(packets, mtu * BYTE_NS / rates[way])
        number += 1
        if filled.lasting_ns >= plan.LONGEST_LOAD_NS:
            break
    return filled


def _of(result: ProbeResult) -> Streams:
    """The streams of a probe by their names; UserError where it could not be sent."""
    if not isinstance(result, StreamsResult):
        raise UserError(f"probe {result.name}: {error_of(result)}")
    return {each.name: each for each in result.streams}


def _packets(stream: StreamResult) -> tuple[Packet, ...]:
    return estimators.packets_of(stream)


def _trains(way: str, streams: Mapping[str, StreamResult]) -> list[Train]:
    own = (stream for name, stream in streams.items() if name.split()[0] == way)
    return [Train(stream.sent_packets, _packets(stream)) for stream in own]


def _base(trains: Sequence[Train], instrument: Instrument | None) -> PathEstimate:
    """The delay of a full packet that nowhere waited: the least of trains' first packets."""
    return estimators.least([train.packets[0].delay_ns for train in trains if train.packets], 1, instrument)


def _later(base: PathEstimate, held_ns: float) -> PathEstimate:
    return base if base.value is None else dataclasses.replace(base, value=base.value + held_ns)


def _estimate(found: PathEstimate, unit: Unit) -> Estimate:
    known = None if found.value is None else recorded(found.components)
    return Estimate(found.value, unit, known, note=found.note)
