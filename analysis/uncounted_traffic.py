"""Finds traffic that belongs to no flow: programs send it, and no generator counts their flows.

In: a run. Out: the busiest link, and the share of its bytes that no flow explains, where that is more than headers and
acknowledgments leave open. Flows are taken to explain rather too much than too little, so that traffic is reported only
where it exists."""

from __future__ import annotations

import polars as pl

from ewan.analysis import flows, network
from ewan.analysis.arrivals import FLOW
from ewan.analysis.network import BYTE_NS
from ewan.analysis.rundata import RunData
from ewan.labs.record.summary import LinkUse, UnexplainedShare

LEAST = 0.05
"""A smaller share is not reported."""
HEADERS_BYTES = 110
"""A packet has at most so many beside its payload: Ethernet with preamble, checksum and gap (38), IPv6 (40), TCP with
time stamps (32)."""
ACKNOWLEDGMENT_BYTES = HEADERS_BYTES + 40
"""With blocks of SACK."""
HANDSHAKES = 8
"""Packets of a connection that carry no payload, there and back."""
USUAL_SEGMENT = 1000
"""Bytes of payload in a packet, where it is not known: fewer than mostly, so that headers weigh more."""
_OPPOSITE = {"forward": "backward", "backward": "forward"}


def of_run(run: RunData) -> UnexplainedShare | None:
    """The unexplained share on the busiest link of all that flows cross; None where it is no more than `LEAST`, and
    where the sent bytes of a flow are unknown."""
    active = flows.active(run.all_flows)
    crossed = {(hop.link, hop.direction) for path in run.paths for hop in path.hops}
    if not active or not crossed or flows.untold(run.all_flows) or (run.all_flows["kind"] == "messages").any():
        return None
    uses = run.uses if active == run.active else network.link_use(run.watched, active)
    busiest = network.bottleneck(uses, crossed)
    if busiest is None or not busiest.sent_bytes:
        return None
    # What was sent and had not arrived at the end, and copies that the link made.
    on_its_way = len(active) * busiest.rate_bps * _longest_rtt_ns(run) / BYTE_NS
    copies = _copies(run, busiest, active)
    share = 1 - copies - (_explained(run, busiest) + on_its_way) / busiest.sent_bytes
    if share < LEAST:
        return None
    return UnexplainedShare(busiest.link, busiest.direction, share)


def _explained(run: RunData, use: LinkUse) -> float:
    """The bytes on the link that flows explain: their payload there, and the acknowledgments of payload in the other
    direction."""
    there = run.crossing((use.link, use.direction))
    back = run.crossing((use.link, _OPPOSITE[use.direction]))
    total = 0.0
    columns = (*FLOW, "kind", "received_bytes", "segment_bytes", "retransmitted_segments", "sent_packets",
               "received_packets")  # fmt: skip
    for flow, part, kind, received, segment, repeated, sent, arrived in run.all_flows.select(columns).iter_rows():
        size, segment = received or 0, segment or USUAL_SEGMENT
        if (flow, part) in there:
            packets = (sent or 0) if kind == "udp" else size / segment + (repeated or 0)
            bytes_each = (size / arrived if arrived else segment) if kind == "udp" else segment
            total += packets * (bytes_each + HEADERS_BYTES) + HANDSHAKES * ACKNOWLEDGMENT_BYTES
        if (flow, part) in back and kind != "udp":
            total += size / segment * ACKNOWLEDGMENT_BYTES + HANDSHAKES * ACKNOWLEDGMENT_BYTES
    return total


def _longest_rtt_ns(run: RunData) -> int:
    longest = run.all_flows.select(pl.col("min_rtt_ns").max()).item()
    return int(longest or 0)


def _copies(run: RunData, use: LinkUse, active: list[tuple[int, int]]) -> float:
    """The share of packets that the link made itself (`duplicate`)."""
    samples = run.watched[use.link, use.direction]
    inside = samples.inside(active)
    made, served = (
        int(samples.grown[name][inside].sum()) if name in samples.grown else 0
        for name in ("duplicated_packets", "served_packets")
    )
    return min(made / served, 1.0) if served else 0.0
