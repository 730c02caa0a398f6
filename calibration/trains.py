"""Pictures of what a link does to a train of packets, for docs/explanation/links.md.

`python -m ewan.calibration.trains` draws them anew.

In: settings of a link as a description writes them, and sources of packets. The link's model (`link-bench model`) says
the outcome of each packet. Out: SVG, one picture a setting: a line a packet, from when it came to when it left.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ewan.analysis.figures.style import COLOURS, FAINT, INK, PAGE_RC, svg
from ewan.calibration.link_model import departures
from ewan.labs import host
from ewan.labs.base.product import ROOT
from ewan.labs.base.units import NS_PER_MS, NS_PER_US
from ewan.labs.compile import compile
from ewan.labs.plan import Link
from ewan.labs.spec import parse

PLACE = ROOT / "docs/explanation/links"
FULL, SMALL, ACK = 1462, 462, 40
"""Bytes of IP packets: 1500, 500 and 84 on the wire, which are 1.2, 0.4 and 0.07 ms at 10 Mbit/s."""
DASHES = (0, (2, 1.5))
STYLE = PAGE_RC | {"font.size": 8, "axes.spines.left": False}


@dataclass(frozen=True, slots=True)
class PacketSource:
    """Equal packets at equal times; `port` tells flows apart, `traffic_class` is DSCP and ECN. They are datagrams, or
    acknowledge 2920 bytes more each. Backward ones come from the link's other end."""

    count: int
    every_us: int
    start_us: int = 0
    ip_bytes: int = FULL
    port: int = 5000
    traffic_class: int = 0
    acknowledge: bool = False
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Train:
    """`settings` of the link; `sources` have a colour each, and a name where there are several."""

    settings: str
    sources: tuple[PacketSource, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that arrived: its time and its source."""

    at_ns: int
    source: int
    ip_bytes: int
    head: str
    backward: bool


@dataclass(frozen=True, slots=True)
class PacketOutcome:
    """The outcome of a packet: the time at which it left (None: never), and whether it was marked or corrupted."""

    source: int
    came_ns: int
    left_ns: int | None
    marked: bool = False
    corrupt: bool = False


def _steady(every_us: int = 1000, count: int = 24, traffic_class: int = 0) -> tuple[PacketSource, ...]:
    return (PacketSource(count, every_us, traffic_class=traffic_class),)


ECT0, ECT1, EF = 2, 1, 46 << 2
_TWO_FLOWS = (PacketSource(26, 800), PacketSource(5, 4000, 300, SMALL, port=5001))
TRAINS: dict[str, Train] = {
    "plain": Train("", _steady(1500, 12)),
    "loss": Train("loss: 20%", _steady()),
    "loss-bursts": Train("loss: {gilbert-elliott: {to_bad: 10%, to_good: 30%}}", _steady()),
    "loss-every": Train("loss: {every: 5}", _steady()),
    "blackhole": Train(
        "blackhole: 600B", (PacketSource(8, 3000), PacketSource(8, 3000, 1500, SMALL, port=5001)), ("1500 B", "500 B")
    ),
    "police": Train("police: {rate: 5Mbit/s, burst: 4500B}", _steady(1250, 20)),
    "burst": Train("burst: 6kB", _steady(200, 12)),
    "corrupt-duplicate": Train("corrupt: 20%, duplicate: 20%", _steady(2500, 12)),
    "drop-tail": Train("buffer: 5pkt", _steady(600, 30)),
    "step": Train("queue: {step: {at: 3pkt}}, buffer: 10pkt", _steady(1000, 24, traffic_class=ECT0)),
    "red": Train("queue: {red: {min: 3kB, max: 9kB, max_p: 50%, weight: 2}}, buffer: 20kB", _steady(800, 30)),
    "codel": Train("queue: {codel: {target: 2ms, interval: 8ms}}, buffer: 40pkt", _steady(900, 40)),
    "acks": Train(
        "acks: filter, buffer: 40pkt",
        (PacketSource(14, 1100), PacketSource(34, 450, 100, ACK, 5001, acknowledge=True)),
        ("data", "ACKs"),
    ),
    "shared": Train("buffer: 40pkt", _TWO_FLOWS, ("much", "little")),
    "fq-codel": Train("queue: fq-codel, buffer: 40pkt", _TWO_FLOWS, ("much", "little")),
    "drr": Train(
        "queue: drr, buffer: 40pkt",
        (PacketSource(14, 1200), PacketSource(42, 400, 0, SMALL, 5001)),
        ("1500 B", "500 B"),
    ),
    "dualpi2": Train(
        "queue: {dualpi2: {step: 500us}}, buffer: 40pkt",
        (
            PacketSource(20, 1000),
            PacketSource(8, 2500, 100, SMALL, 5001, ECT1),
            PacketSource(5, 100, 12_000, SMALL, 5001, ECT1),
        ),
        ("classic", "L4S", "L4S, a burst"),
    ),
    "priority": Train(
        "queue: {priority: {classes: [{name: voice, dscp: [ef]}, {name: rest}]}}, buffer: 40pkt",
        (PacketSource(20, 900), PacketSource(9, 2000, 500, SMALL, 5001, EF)),
        ("rest", "voice"),
    ),
    "weighted": Train(
        "queue: {weighted: {classes: [{name: gold, dscp: [ef], weight: 3}, {name: rest}]}}, buffer: 40pkt",
        (PacketSource(20, 600), PacketSource(20, 600, 100, FULL, 5001, EF)),
        ("rest, weight 1", "gold, weight 3"),
    ),
    "aggregate": Train("aggregate: {packets: 4, gap: 2ms}, buffer: 40pkt", _steady(1300, 24)),
    "duplex": Train(
        "duplex: half, buffer: 40pkt",
        (PacketSource(16, 1300), PacketSource(12, 900, 6500, SMALL, backward=True)),
        ("forward", "backward"),
    ),
    "slot": Train("slot: 5ms, buffer: 40pkt", _steady(1600, 20)),
    "harq": Train("harq: {errors: 25%, round: 6ms}", _steady(2000, 16)),
    "jitter": Train("jitter: 2ms", _steady(1300, 24)),
    "correlation": Train("jitter: 2ms, correlation: 90%", _steady(1300, 24)),
    "displace": Train("displace: {share: 12%, packets: 3}", _steady(1300, 24)),
    "reorder": Train("jitter: 2ms, reorder: true", _steady(1300, 24)),
}


def link(settings: str) -> Link:
    """A link of 10 Mbit/s and 4 ms with these settings, as the plan says it."""
    text = f"name: train\ntopology: dumbbell\nwan: {{rate: 10Mbit/s, delay: 4ms, {settings}}}\nseed: 5\n"
    return compile(parse(text, Path("train.lab.yaml")), host.virtual_facts()).links[0]


def packets(sources: tuple[PacketSource, ...]) -> list[Packet]:
    """All that comes, in order of time."""
    found = []
    for number, source in enumerate(sources):
        for k in range(source.count):
            at_ns = (source.start_us + k * source.every_us) * NS_PER_US
            found.append(Packet(at_ns, number, source.ip_bytes, _head(source, k), source.backward))
    return sorted(found, key=lambda packet: packet.at_ns)


def _head(source: PacketSource, k: int) -> str:
    if source.acknowledge:
        protocol, rest = 6, struct.pack(">HHIIBBHHH", source.port, 5000, 1, 2920 * k, 5 << 4, 0x10, 500, 0, 0)
    else:
        protocol, rest = 17, struct.pack(">HHHH", source.port, 5000, source.ip_bytes - 20, 0)
    ends = b"\n\0\0\1", b"\n\0\0\2"
    lengths = source.traffic_class, source.ip_bytes
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, *lengths, 0, 0, 64, protocol, 0, *ends)
    return (bytes(12) + b"\x08\x00" + ip + rest).hex()


def treated(settings: str, came: list[Packet]) -> list[PacketOutcome]:
    """The outcome of each packet according to the link's model."""
    way = link(settings)
    left = departures(way.forward, came, backward=way.backward)
    lines = []
    for each in left:
        packet = came[each.packet]
        corrupt = each.corrupt is not None
        lines.append(PacketOutcome(packet.source, packet.at_ns, each.due_ns, each.mark_ce, corrupt))
    numbers = {each.packet for each in left}
    lines += [
        PacketOutcome(packet.source, packet.at_ns, None) for number, packet in enumerate(came) if number not in numbers
    ]
    return lines


def draw(train: Train, lines: list[PacketOutcome]) -> str:
    """A line a packet from above (came) to below (left), in its source's colour; what never left is a cross."""
    last_ms = max(line.left_ns or line.came_ns for line in lines) / NS_PER_MS
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(6.6, 1.5), layout="constrained")
        axis = figure.subplots()
        left = [line for line in lines if line.left_ns is not None]
        for source in sorted({line.source for line in left}):
            colour = COLOURS[source % len(COLOURS)]
            mine = [line for line in left if line.source == source]
            for dashed in (False, True):
                ways = [[_top(line), _bottom(line)] for line in mine if line.corrupt == dashed]
                dashes = DASHES if dashed else "-"
                axis.add_collection(LineCollection(ways, colors=colour, linewidths=0.9, linestyles=dashes))
            axis.plot(*zip(*map(_bottom, mine), strict=True), ls="", marker="|", color=colour, markersize=6)
            if marked := [_bottom(line) for line in mine if line.marked]:
                axis.plot(*zip(*marked, strict=True), ls="", marker="o", color=colour, markersize=3.5)
        for source in sorted({line.source for line in lines}):
            came = [_top(line) for line in lines if line.source == source]
            axis.plot(*zip(*came, strict=True), ls="", marker="|", color=COLOURS[source % len(COLOURS)], markersize=6)
        if dropped := [_top(line) for line in lines if line.left_ns is None]:
            axis.plot(*zip(*dropped, strict=True), ls="", marker="x", color=INK, markersize=5, zorder=3)
        axis.set_yticks([0, 1], ["leaves", "comes"])
        axis.set_ylim(-0.15, 1.15)
        axis.set_xlim(-0.5, last_ms + 0.5)
        axis.tick_params(left=False)
        axis.grid(axis="x", color=FAINT, linewidth=0.5)
        axis.set_xlabel("ms")
        figure.legend(handles=_keys(train, lines), loc="outside right center", frameon=False)
        return svg(figure)


def _top(line: PacketOutcome) -> tuple[float, float]:
    return line.came_ns / NS_PER_MS, 1


def _bottom(line: PacketOutcome) -> tuple[float, float]:
    return (line.left_ns or 0) / NS_PER_MS, 0


def _keys(train: Train, lines: list[PacketOutcome]) -> list[Line2D]:
    names = train.names or ("packet",)
    keys = [Line2D([], [], color=COLOURS[number], label=name) for number, name in enumerate(names)]
    if any(line.left_ns is None for line in lines):
        keys.append(Line2D([], [], marker="x", markersize=5, label="dropped", color=INK, linestyle="none"))
    if any(line.marked for line in lines):
        keys.append(Line2D([], [], marker="o", markersize=4, label="marked", color=INK, linestyle="none"))
    if any(line.corrupt for line in lines):
        keys.append(Line2D([], [], color=INK, linestyle=DASHES, label="one bit flipped"))
    return keys


def picture(train: Train) -> str:
    """The picture of a train as SVG."""
    return draw(train, treated(train.settings, packets(train.sources)))


if __name__ == "__main__":
    for name, each in TRAINS.items():
        (PLACE / f"{name}.svg").write_text(picture(each))
