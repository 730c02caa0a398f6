"""Which links packets cross, and how long they take: measured in one run of the virtual clock.

In: a plan of the virtual clock and pairs of hosts. Out: of each pair the round-trip time of a lone packet, and the
directions of emulated links whose counters grew while a stream of packets went from the source to the sink.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from ewan.generator import traffic_request
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.plan import Plan
from ewan.labs.record.traffic import ConstantLaw, FlowRequest, SocketOptions, TrafficRequest, UdpWork
from ewan.labs.runtime.probe_documents import ProbeRequest, ProbeStream, RttProbe
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

Ends = tuple[str, str]
Link = tuple[str, str]
"""A link's name, and forward or backward."""

PACKET_BYTES = 100
"""Of IP, of a packet whose round trip is measured."""
PACKETS = 200
_GAP_NS = 1_000_000
_TURN_NS = 3 * NS_PER_SECOND
"""From one pair's beginning to the next one's: longer than a stream and the longest round trip."""


def measured(plan: Plan, pairs: Sequence[Ends], directory: Path) -> tuple[list[float], list[set[Link]]]:
    """Round-trip times in ns, and the links that packets from source to sink crossed, of each pair in turn."""
    program = Program(
        probe=_round_trips(plan, pairs),
        traffic=_streams(plan, pairs),
        longest_ns=(len(pairs) + 1) * _TURN_NS,
        expected_ns=len(pairs) * _TURN_NS,
        watch_ns=_TURN_NS,
    )
    VirtualRuntime(BINARY).run(plan, program, directory)
    results = json.loads((directory / "probe.json").read_text())["results"]
    trips = [stream["delay"] for result in results for stream in result["streams"]]
    return [trip["min_ns"] if trip else float("nan") for trip in trips], _moved(directory / "links.csv", len(pairs))


def _round_trips(plan: Plan, pairs: Sequence[Ends]) -> ProbeRequest:
    """One probe a pair, so that no packet waits for another pair's."""
    addresses = traffic_request.addresses_of(plan)

    def probe(source: str, sink: str) -> RttProbe:
        a, b = (traffic_request.end(plan.lab, node, addresses[node]) for node in (source, sink))
        stream = ProbeStream(f"{source} to {sink}", a, b, PACKET_BYTES, _TURN_NS, 2, raw=False)
        return RttProbe(stream.name, (stream,), _TURN_NS)

    return ProbeRequest(tuple(plan.host_cpus), tuple(probe(*ends) for ends in pairs), "virtual")


def _streams(plan: Plan, pairs: Sequence[Ends]) -> TrafficRequest:
    addresses = traffic_request.addresses_of(plan)
    work = UdpWork(PACKETS, ConstantLaw(PACKET_BYTES), ConstantLaw(_GAP_NS))
    flows = [
        FlowRequest(
            name=f"{source} to {sink}",
            start_ns=turn * _TURN_NS,
            stop_ns=turn * _TURN_NS + 2 * PACKETS * _GAP_NS,
            socket=SocketOptions(),
            from_=traffic_request.end(plan.lab, source, addresses[source]),
            to=traffic_request.end(plan.lab, sink, addresses[sink]),
            work=work,
        )
        for turn, (source, sink) in enumerate(pairs)
    ]
    return traffic_request.request(plan, flows, "virtual", (len(pairs) + 1) * _TURN_NS)


def _moved(path: Path, turns: int) -> list[set[Link]]:
    """The directions over which at least half of the packets of a turn went; a routing protocol sends a few."""
    counts: dict[Link, dict[int, int]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            of_link = counts.setdefault((row["link"], row["direction"]), {})
            # The last look is when all has ended.
            of_link[round(int(row["time_ns"]) / _TURN_NS + 0.49)] = int(row["sent_packets"])
    grown = {
        link: [seen.get(turn + 1, max(seen.values())) - seen[turn] for turn in range(turns)]
        for link, seen in counts.items()
    }
    return [{link for link, packets in grown.items() if packets[turn] >= PACKETS / 2} for turn in range(turns)]
