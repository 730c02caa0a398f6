"""Figures of this host for the report of its calibration.

In: `Timers` and `PathMeasurements`. Out: drawings (SVG, caption, CSV of what is drawn and more), as the reports of
experiments have them; None where nothing was measured that could be drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


from ewan.analysis.figures import style
from ewan.analysis.figures.style import Drawing
from ewan.calibration.host.path_lab import PORT_BPS, SIZES, WIRE_BYTES
from ewan.calibration.host.paths import PROTOCOLS, PathMeasurements, Throughput
from ewan.calibration.host.timers import METHODS, SHOWN_INTERVAL_NS, Lateness, Timers
from ewan.labs.base.units import BITS_PER_BYTE, KILO, MEGA
from ewan.labs.base.units.shown import about, fitting, written

FEWEST = 8
"""Samples of which a distribution is drawn."""
PORTS_BPS = (PORT_BPS, 10 * PORT_BPS)
"""Rates of Ethernet ports, which limit the packet rate of each packet size."""
CURVE_SIZES = [round(SIZES[0] * (SIZES[-1] / SIZES[0]) ** (k / 40)) for k in range(41)]
"""At which what Ethernet carries is drawn."""
LOADS = ((False, "CPUs idle"), (True, "CPUs busy"))


def lateness(timers: Timers, interval_ns: int = SHOWN_INTERVAL_NS) -> Drawing | None:
    """A figure of the lateness at deadlines of one interval: a line for each method of waiting, CPUs idle and busy."""
    drawn = [each for each in timers.lateness if each.interval_ns == interval_ns and each.samples >= FEWEST]
    if not drawn:
        return None
    from matplotlib.ticker import FixedLocator, NullLocator

    least = min(max(each.classes[0][0], 1) for each in drawn)
    most = max(each.classes[-1][0] for each in drawn)
    with style.sheet(len(LOADS), 2.3) as (figure, axes):
        for axis, (loaded, words) in zip(axes, LOADS, strict=True):
            for number, method in enumerate(METHODS):
                for each in (e for e in drawn if (e.method, e.loaded) == (method, loaded)):
                    _line(axis, number, each, METHODS[method], most)
            axis.set_xscale("log")
            axis.set_xlim(0.7 * least, 1.4 * most)
            axis.xaxis.set_major_locator(FixedLocator(list(_decades(least, most))))
            axis.xaxis.set_minor_locator(NullLocator())
            axis.xaxis.set_major_formatter(lambda value, _: written(value, "ns", 3))
            axis.set_ylim(0, 1.03)
            style.title(axis, words, len(LOADS))
        style.outer_labels(axes, "late by", "share of deadlines")
        style.legend(figure, axes)
        text = style.svg(figure)
    samples = [each.samples for each in drawn]
    span = f"{min(samples)}" if min(samples) == max(samples) else f"{min(samples)} to {max(samples)}"
    caption = (
        f"How late deadlines {about(interval_ns, 'time')} apart were met, {span} a line. Spinning ran on CPU "
        f"{timers.link_cpu}, where links spin; the others on CPU {timers.host_cpus[0]}. Busy: a thread of ours on each "
        "CPU of the hosts. Further right is worse. All intervals are in the CSV."
    )
    rows = [row for each in timers.lateness for row in _rows(each)]
    return Drawing("host-lateness", "Lateness of deadlines", caption, text, style.csv(rows))


def _line(axis: Axes, number: int, found: Lateness, label: str, most: float) -> None:
    uppers = [max(upper, 1) for upper, _ in found.classes]
    shares = [count / found.samples for count in accumulate(count for _, count in found.classes)]
    # From zero, and on to the end: the last share is that of all.
    axis.step(
        [uppers[0], *uppers, 2 * most], [0, *shares, 1], where="post", color=style.COLOURS[number],
        linestyle=style.DASHES[number], marker=style.MARKERS[number], markersize=3.5,
        markevery=(0.03 * number, 0.25), label=label,
    )  # fmt: skip


def _decades(least: float, most: float) -> Iterator[float]:
    """Powers of ten, every second one where there would be too many."""
    exponents = [k for k in range(12) if least / 2 <= 10**k <= 2 * most]
    yield from (10.0**k for k in exponents[:: 1 if len(exponents) <= 5 else 2])


def _rows(found: Lateness) -> Iterator[style.Row]:
    total = 0
    for upper, count in found.classes:
        total += count
        yield {
            "method": found.method,
            "busy": found.loaded,
            "interval (ns)": found.interval_ns,
            "lateness at most (ns)": upper,
            "share": total / found.samples,
        }


def packet_rates(paths: PathMeasurements) -> Drawing | None:
    """Packets/s against their size, beside what Ethernet carries."""
    found = sorted(paths.packet_rates, key=lambda each: each.ip_bytes)
    if not found:
        return None
    from matplotlib.ticker import FixedLocator, NullLocator

    with style.sheet(1, 2.5) as (figure, axes):
        axis = axes[0]
        sizes = [each.ip_bytes for each in found]
        axis.plot(
            sizes, [each.packets_per_second for each in found], color=style.COLOURS[0], marker=style.MARKERS[0],
            markersize=4, label="measured: one thread, a veth pair",
        )  # fmt: skip
        for number, port_bps in enumerate(PORTS_BPS, 1):
            axis.plot(
                CURVE_SIZES, [_carried(port_bps, size) for size in CURVE_SIZES], color=style.COLOURS[number],
                linestyle=style.DASHES[number], label=f"expected of Ethernet, {written(port_bps, 'bit/s')}",
            )  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.xaxis.set_major_locator(FixedLocator(list(SIZES)))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
        axis.yaxis.set_major_formatter(_count)
        axis.set_xlabel("IP packet (bytes)")
        axis.set_ylabel("packets/s")
        style.legend(figure, axes)
        text = style.svg(figure)
    rows: list[style.Row] = [
        {
            "IP packet (bytes)": each.ip_bytes,
            "packets/s": each.packets_per_second,
            **{f"Ethernet of {about(port, 'rate')} (packets/s)": _carried(port, each.ip_bytes) for port in PORTS_BPS},
        }
        for each in found
    ]
    caption = (
        "Packets that one thread sends and receives, offered more than it can, without an emulated link. Where that is "
        "above what Ethernet of a rate carries, one thread fills a link of it with packets of that size; below, it "
        "does not."
    )
    return Drawing("host-packet-rates", "Packets/s against size", caption, text, style.csv(rows))


def _carried(port_bps: int, ip_bytes: int) -> float:
    return port_bps / ((ip_bytes + WIRE_BYTES) * BITS_PER_BYTE)


def _count(value: float, _: object = None) -> str:
    """`20 k`, `3 M`; none for what no tick of a decade is."""
    for size, letter in ((MEGA, "M"), (KILO, "k")):
        if value >= size:
            return f"{value / size:g} {letter}"
    return f"{value:g}"


def throughput(paths: PathMeasurements) -> Drawing | None:
    """TCP and UDP payload/s: out of a port with a rate, with the expected figures beside; plain; with offloads."""
    plain = [each for each in paths.throughput if each.port_bps is None and not each.offloads]
    parts = [
        (f"A port of {written(PORT_BPS, 'bit/s')}", [each for each in paths.throughput if each.port_bps is not None]),
        ("No rate, offloads off", plain),
        ("No rate, offloads on", [each for each in paths.throughput if each.offloads]),
    ]
    there = [(title, found) for title, found in parts if found]
    if not there:
        return None
    with style.sheet(len(there), 2.3, len(there), sharex=False, sharey=False) as (figure, axes):
        for axis, (title, found) in zip(axes, there, strict=True):
            _bars(axis, found)
            style.title(axis, title, len(there))
        style.legend(figure, axes)
        text = style.svg(figure)
    rows = [
        {
            "protocol": each.protocol,
            "routers": each.routers,
            "offloads": each.offloads,
            "port (bit/s)": each.port_bps,
            "payload (bit/s)": each.goodput_bps,
            "expected (bit/s)": each.expected_bps,
        }
        for each in paths.throughput
    ]
    caption = (
        "Payload/s between namespaces, MTU 1500. What headers leave of the port's rate (eWAN, table III: 941 and "
        "957 Mbit/s) is drawn across its bars; a port without a rate carries what the CPUs can. Labs have offloads off."
    )
    return Drawing("host-throughput", "TCP and UDP without an emulated link", caption, text, style.csv(rows))


def _bars(axis: Axes, found: Sequence[Throughput]) -> None:
    """Groups by the number of routers, a bar for each protocol; a line across where something is expected."""
    highest = max([each.goodput_bps for each in found] + [each.expected_bps or 0 for each in found])
    divisor, unit = fitting([highest], "bit/s")
    groups = sorted({each.routers for each in found})
    there = [protocol for protocol in PROTOCOLS if any(each.protocol == protocol for each in found)]
    width = 0.8 / len(there)
    for place, protocol in enumerate(there):
        number = PROTOCOLS.index(protocol)
        own = [each for each in found if each.protocol == protocol]
        at = [groups.index(each.routers) + (place - (len(there) - 1) / 2) * width for each in own]
        axis.bar(
            at, [each.goodput_bps / divisor for each in own], 0.9 * width, color=style.COLOURS[number],
            hatch=style.HATCHES[number], edgecolor=style.INK, linewidth=0.5, label=protocol.upper(),
        )  # fmt: skip
        for x, each in zip(at, own, strict=True):
            if each.expected_bps is not None:
                y = each.expected_bps / divisor
                label = "expected of the port"
                axis.plot([x - 0.48 * width, x + 0.48 * width], [y, y], color=style.INK, linewidth=1.8, label=label)
    axis.set_ylim(0, 1.15 * highest / divisor)
    axis.set_ylabel(f"payload ({unit})")
    axis.set_xticks(range(len(groups)), [_routers(count) for count in groups])
    axis.set_xlim(-0.6, len(groups) - 0.4)
    axis.tick_params(axis="x", length=0)
    axis.grid(False, axis="x")


def _routers(count: int) -> str:
    return "direct" if count == 0 else "1 router" if count == 1 else f"{count} routers"
