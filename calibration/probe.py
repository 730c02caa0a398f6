"""Which probes to send through a lab, and sending them through `ewan-node probe`.

In: a plan's expectations and a time budget. Out: the request (pure, `plan_probes`), with a reason for each quantity
that cannot be measured in that time; then the answer (`run`). Delays of all links are measured at once; rates one
after the other, or as many at once as this host can send; TCP last, because it leaves full queues behind.
"""

from __future__ import annotations

import json
import math
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibration.expect import (
    BYTE_NS,
    ENOUGH,
    Expectations,
    LinkExpectation,
    PairExpectation,
    ProbeEnds,
    serialisation_ns,
)
from calibration.slow_start import full_round_trip_ns, slow_start_ns
from generator.traffic_request import end
from labs.plan import Plan
from labs.units import NS_PER_MS, NS_PER_SECOND

MS = NS_PER_MS
SECOND = NS_PER_SECOND
PROBE_BYTES = 100
"""Size of an IP packet that measures delay or loss: small, so that its serialisation time matters little."""
RECOVERY_ROUND_TRIPS = 6
"""For so many round trips Reno sends again what slow start lost; then at least so many are judged."""
SENDER = " sender "
"""Follows the link's key in the name of a stream that is one of several which fill the link together."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How much time and load a verification may take."""

    delay_ns: int = 2 * SECOND
    delay_longest_ns: int = 6 * SECOND
    delay_gap_ns: int = 50_000
    """Between two packets, over all delay streams together."""
    loss_ns: int = 2_500 * MS
    loss_gap_ns: int = 50_000
    pairs: int = 16
    rtt_ns: int = SECOND
    rates_ns: int = 20 * SECOND
    rates_longest_ns: int = 45 * SECOND
    steady_ns: int = 800 * MS
    steady_shortest_ns: int = 50 * MS
    steady_longest_ns: int = 5 * SECOND
    fill_longest_ns: int = 2 * SECOND
    packets_per_second: int = 120_000
    """What this host is asked to send at once; a single link that needs more is tried alone."""
    transfers: int = 3
    filling_longest_ns: int = 10 * SECOND
    tcp_ns: int = SECOND
    """The part of a transfer that is judged, at least; it follows slow start and the recovery of its losses."""
    tcp_longest_ns: int = 5 * SECOND


@dataclass(slots=True)
class Probing:
    """The probes, and the reasons why some quantities of some links are not measured."""

    probes: list[dict[str, Any]] = field(default_factory=list)
    skipped: dict[tuple[str, str], str] = field(default_factory=dict)
    """(link or pair, quantity) → reason."""

    def skip(self, key: str, quantity: str, reason: str) -> None:
        """Records why a quantity of a link or pair is not measured."""
        self.skipped[key, quantity] = reason

    @property
    def duration_ns(self) -> int:
        """About how long all probes take on a host that is fast enough."""
        total = 0
        for probe in self.probes:
            sending = max((s["interval_ns"] * s["packets"] for s in probe.get("streams", ())), default=0)
            flows = max((flow["stop_ns"] - flow["start_ns"] for flow in probe.get("flows", ())), default=0)
            total += sending + flows + probe.get("drain_ns", 0) + probe.get("duration_ns", 0) + 10 * MS
        return total

    def add(self, kind: str, name: str, streams: Sequence[dict[str, Any]], drain_ns: float) -> None:
        """Adds a probe, if it has streams; after the last packet was sent it waits `drain_ns` for those on the way."""
        if streams:
            probe = {"kind": kind, "name": name, "drain_ns": round(drain_ns), "streams": list(streams)}
            self.probes.append(probe)


def plan_probes(expected: Expectations, lab: str, budget: TimeBudget | None = None) -> Probing:
    """The probes of a live lab within the budget: delays, losses, round trips, rates, then TCP. Pure."""
    budget = budget or TimeBudget()
    probing = Probing()
    _delays(probing, expected.links, lab, budget)
    _losses(probing, expected.links, lab, budget)
    _round_trips(probing, expected.pairs, lab, budget)
    _rates(probing, expected.links, lab, budget)
    _transfers(probing, expected.pairs, lab, budget)
    return probing


def packet_stream(
    key: str, ends: ProbeEnds, lab: str, packet_bytes: int, interval_ns: float, packets: int
) -> dict[str, Any]:
    """One stream of a request to `ewan-node probe`: IP packets of equal size at equal intervals, rounded to 1 ns."""
    return {
        "name": key,
        "from": end(lab, ends.source, ends.source_address),
        "to": end(lab, ends.sink, ends.sink_address),
        "packet_bytes": packet_bytes,
        "interval_ns": max(round(interval_ns), 1),
        "packets": packets,
    }


def shared_streams(
    key: str, senders: Sequence[ProbeEnds], lab: str, packet_bytes: int, interval_ns: float, packets: int
) -> list[dict[str, Any]]:
    """The same from each of several senders. The first has the link's own name; the others say that they share it."""
    first, *others = (packet_stream(key, ends, lab, packet_bytes, interval_ns, packets) for ends in senders)
    named = [{**each, "name": f"{key}{SENDER}{number}"} for number, each in enumerate(others, 2)]
    return [first, *({**each, "shares_with": key} for each in named)]


def _size(expected: LinkExpectation) -> int:
    return min(PROBE_BYTES, expected.mtu_bytes)


def _stay_ns(links: Iterable[LinkExpectation]) -> float:
    """How long to wait for the last packet: the longest delay of any, and some time to be late."""
    return max((link.line.mean_ns + 5 * link.line.deviation_ns for link in links), default=0) + 100 * MS


def _delays(probing: Probing, links: Sequence[LinkExpectation], lab: str, budget: TimeBudget) -> None:
    streams = []
    for link in links:
        own = serialisation_ns(link.direction, _size(link))
        interval = max(MS, budget.delay_gap_ns * len(links), 4 * own)
        if not link.line.constant and not link.direction.reorder:
            # Closer together, packets would wait for each other in the delay line.
            interval = max(interval, link.line.spread_ns)
        duration = min(max(budget.delay_ns, 20 * interval), budget.delay_longest_ns)
        stream = packet_stream(link.key, link.ends, lab, _size(link), interval, max(int(duration / interval), 3))
        streams.append({**stream, "raw": not link.line.constant})
    own = max((serialisation_ns(link.direction, _size(link)) for link in links), default=0)
    probing.add("delay", "delay", streams, _stay_ns(links) + own)


def _losses(probing: Probing, links: Sequence[LinkExpectation], lab: str, budget: TimeBudget) -> None:
    lossy = [link for link in links if not link.lossless or link.duplicates > 0]
    streams = []
    for link in lossy:
        own = serialisation_ns(link.direction, _size(link))
        interval = max(budget.loss_gap_ns * len(lossy), 4 * own)
        streams.append(
            packet_stream(link.key, link.ends, lab, _size(link), interval, max(int(budget.loss_ns / interval), 3))
        )
    own = max((serialisation_ns(link.direction, _size(link)) for link in lossy), default=0)
    probing.add("loss", "loss", streams, _stay_ns(lossy) + own)


def _round_trips(probing: Probing, pairs: Sequence[PairExpectation], lab: str, budget: TimeBudget) -> None:
    for pair in pairs[budget.pairs :]:
        probing.skip(pair.key, "base RTT", f"only {budget.pairs} pairs are measured")
    chosen = pairs[: budget.pairs]
    streams = []
    longest = 0.0
    for pair in chosen:
        own = max((serialisation_ns(direction, PROBE_BYTES) for direction in pair.directions), default=0.0)
        # As for delays: packets of pairs that share a link should not wait for each other.
        interval = max(10 * MS, max(4 * own, pair.spread_ns) * len(chosen))
        duration = min(max(budget.rtt_ns, 20 * interval), budget.delay_longest_ns)
        streams.append(packet_stream(pair.key, pair.ends, lab, PROBE_BYTES, interval, max(int(duration / interval), 3)))
        longest = max(longest, pair.round_trip_ns(PROBE_BYTES) + 5 * pair.deviation_ns)
    probing.add("rtt", "rtt", streams, longest + 100 * MS)


def _rates(probing: Probing, links: Sequence[LinkExpectation], lab: str, budget: TimeBudget) -> None:
    # A first guess of how many saturations follow each other decides how long each may be.
    offered = sum(1.25 / serialisation_ns(link.direction, link.mtu_bytes) * SECOND for link in links)
    rounds = max(1, min(len(links), round(offered / budget.packets_per_second)))
    share = budget.rates_ns / rounds
    planned = [(*_saturation(probing, link, lab, budget, share), link.wakeups > 0) for link in links]
    batches: list[list[tuple[dict[str, Any], float]]] = [[]]
    load = 0.0
    for streams, stay, alone in sorted(
        planned, key=lambda item: (item[2], item[0][0]["interval_ns"] * item[0][0]["packets"] + item[1])
    ):
        # A switch in user space needs the CPUs itself.
        pace = sum(SECOND / stream["interval_ns"] for stream in streams) + alone * budget.packets_per_second
        if batches[-1] and (load + pace > budget.packets_per_second or len(batches[-1]) + len(streams) > 256):
            batches.append([])
            load = 0.0
        batches[-1] += [(stream, stay) for stream in streams]
        load += pace
    longest = [max((s["interval_ns"] * s["packets"] + stay for s, stay in batch), default=0.0) for batch in batches]
    # Too many for the time there is: every so many of them, forward and backward in turn.
    every = max(1, math.ceil(sum(longest) / budget.rates_longest_ns))
    for number, batch in enumerate(batches):
        streams = [stream for stream, _ in batch]
        if (number + number // every) % every == 0:
            probing.add("saturate", f"rate {number + 1}", streams, max((stay for _, stay in batch), default=0))
            continue
        for stream in streams:
            for what in ("rate", "queue limit"):
                probing.skip(
                    stream["name"].split(SENDER)[0],
                    what,
                    f"of so many fast links, one direction in {every} is measured",
                )


def _saturation(
    probing: Probing, link: LinkExpectation, lab: str, budget: TimeBudget, share_ns: float
) -> tuple[list[dict[str, Any]], float]:
    """Streams that offer more than the link's rate, and how long after the last packet was sent all have arrived (ns).

    One stream, or several where hosts share a port of a switch.
    """
    direction = link.direction
    stay = link.line.mean_ns + 5 * link.line.deviation_ns + 20 * MS
    steady = min(max(share_ns / 2 - stay, budget.steady_shortest_ns), budget.steady_ns)
    overhead = direction.framing.overhead_bytes
    # Small packets on slow links: at least 40 of them in the steady part.
    size = min(max(int(direction.rate_bps * steady / BYTE_NS / 40) - overhead, PROBE_BYTES), link.mtu_bytes)
    size = min(max(size, PROBE_BYTES), link.mtu_bytes)
    own = serialisation_ns(direction, size)
    # A delay that varies moves both ends of the window: a longer one for 1 % all the same.
    steady = min(max(steady, 12 * own, 200 * link.line.spread_ns), budget.steady_longest_ns)
    senders, above = link.together(1.25 if direction.rate_bps > 200_000_000 else 2.0)
    full = link.queue_packets(size) * own
    fill = full / max(above - 1, 0.001) * 1.1 + 20 * MS
    if above < ENOUGH:
        probing.skip(link.key, "queue limit", "the cards of its senders are no faster than it is")
    elif link.active_queue is not None:
        probing.skip(link.key, "queue limit", f"{link.active_queue} drops before the limit")
    elif not link.line.constant:
        probing.skip(link.key, "queue limit", "the delay varies, so it does not show how long a packet waited")
    elif fill > min(budget.fill_longest_ns, max(share_ns, 150 * MS)):
        probing.skip(link.key, "queue limit", f"filling this queue takes {fill / SECOND:.1f} s")
    if (link.key, "queue limit") in probing.skipped:
        above, fill = min(above, 1.25), 20 * MS + 2 * link.line.spread_ns
    sending = fill + steady
    through = (1 - link.loss.probability) * (1 + link.duplicates)
    interval = max(own * max(through, 0.01) / above, 1_000) * len(senders)
    streams = shared_streams(link.key, senders, lab, size, interval, max(int(sending / interval), 3))
    streams = [{**stream, "skip_ns": round(fill)} for stream in streams]
    return streams, stay + min(full, max(above - 1, 0) * sending) + own


def _transfers(probing: Probing, pairs: Sequence[PairExpectation], lab: str, budget: TimeBudget) -> None:
    """TCP over one pair for each bottleneck."""
    seen: set[tuple[tuple[str, ...], int]] = set()
    for pair in pairs:
        bottleneck = (pair.links, pair.bottleneck_bps)
        if bottleneck in seen:
            continue
        if len(seen) == budget.transfers:
            probing.skip(pair.key, "TCP goodput", f"only {budget.transfers} transfers are made")
            continue
        seen.add(bottleneck)
        recovery = RECOVERY_ROUND_TRIPS * full_round_trip_ns(pair)
        filling = min(round(slow_start_ns(pair) + recovery), budget.filling_longest_ns)
        judged = min(max(round(recovery), budget.tcp_ns), budget.tcp_longest_ns)
        duration = filling + judged
        if pair.goodput_bps * duration / BYTE_NS < 100_000:
            probing.skip(pair.key, "TCP goodput", "too slow for a transfer of a few seconds")
            continue
        tcp = {
            "kind": "tcp",
            "name": f"tcp {pair.key}",
            "from": end(lab, pair.ends.source, pair.ends.source_address),
            "to": end(lab, pair.ends.sink, pair.ends.sink_address),
            # Every kernel has Reno, and its slow start fills the pipe whatever a sample of the RTT says; CUBIC's
            # (HyStart) ends at the first late packet and then needs many seconds.
            "congestion": "reno",
            "duration_ns": duration,
            "steady_ns": judged,
            "connect_timeout_ns": round(3 * pair.rtt_ns) + 3 * SECOND,
        }
        probing.probes.append(tcp)


def run(plan: Plan, probing: Probing, binary: Path, progress: Callable[[str], None]) -> dict[str, Any]:
    """The answer of `ewan-node probe`; RuntimeError with its one line when it could not run."""
    request = json.dumps({"cpus": list(plan.host_cpus), "probes": probing.probes})
    with subprocess.Popen(
        [binary, "probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        answer: list[str] = []
        reader = threading.Thread(target=lambda out: answer.append(out.read()), args=(child.stdout,), daemon=True)
        reader.start()
        last = "no answer"
        try:
            child.stdin.write(request)
            child.stdin.close()
            for line in child.stderr:
                last = _show(line, progress) or last
        except BrokenPipeError:
            last = child.stderr.read().strip() or last
        except BaseException:
            child.kill()
            raise
        reader.join()
    if child.returncode != 0:
        raise RuntimeError(f"ewan-node probe: {last}")
    result: dict[str, Any] = json.loads(answer[0])
    return result


def _show(line: str, progress: Callable[[str], None]) -> str | None:
    """Reports a probe that begins; returns a line that is no event: an error message."""
    try:
        event = json.loads(line)
    except ValueError:
        return line.strip()
    if event["event"] == "started":
        number, of, longest = event["index"] + 1, event["of"], event["longest_ns"] / SECOND
        progress(f"probe {number} of {of}: {event['probe']} (up to {longest:.1f} s)")
    return None
