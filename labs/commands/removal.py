"""Shows the result of `ewan down` for a lab that it removed.

In: the report of the node binary. Out: one line, a table of the links' last counters, lines on their spinners.
"""

from __future__ import annotations

from ewan.labs.base.units.shown import about
from ewan.labs.runtime.answers import Removed


def summary(lab: str, report: Removed) -> str:
    """One line on what `down` removed."""
    numbers = [(len(getattr(report, what)), what) for what in ("namespaces", "containers", "networks", "processes")]
    words = ", ".join(f"{count} {what}" for count, what in numbers if count)
    said = f"{lab} is down: removed {words}" if words else f"{lab} is down: its state was all that was left"
    back = ", ".join(card.card for card in report.cards if not card.notes)
    notes = [f"card {card.card}: {note}" for card in report.cards for note in card.notes]
    return "; ".join([said, *([f"gave back {back}"] if back else []), *notes])


def counters(report: Removed) -> tuple[str, list[str], list[list[str]]]:
    """The table of the counters of the links' whole life, by direction; directions without packets are omitted."""
    columns = ["link", "in", "out", "lost", "queue full", "AQM", "no room", "before the link", "late p50", "p99", "max"]
    rows = []
    for spinner in report.spinners:
        for link, stats in (spinner.stats.links if spinner.stats else {}).items():
            for arrow, way, entry in (("→", stats.forward, stats.ports[0]), ("←", stats.backward, stats.ports[1])):
                if way.in_packets:
                    drops, late = way.drops, way.lateness_ns
                    # The ring's overruns and the interface's own count are two views of the same packets.
                    missed = max(entry.ring_overruns, entry.veth_drops.receive) + entry.veth_drops.ring_full
                    dropped = (drops.loss, drops.queue_full, drops.aqm, drops.store_full)
                    counts = [way.in_packets, way.out_packets, *dropped, missed]
                    shown = [str(count) if count or place < 2 else "" for place, count in enumerate(counts)]
                    times = (about(each, "time") for each in (late.p50, late.p99, late.max))
                    rows.append([f"{link} {arrow}", *shown, *times])
    return "What the links counted (packets), and how late they released", columns, rows


def gaps(report: Removed) -> list[str]:
    """A line for each spinner whose CPU was taken away, and for each that could not be asked."""
    lines = []
    for spinner in report.spinners:
        number, stats = spinner.spinner, spinner.stats
        if not stats:
            lines.append(f"spinner {number} gave no counters: {spinner.error or 'it was not running'}")
        elif stats.gaps.count:
            lost, longest = about(stats.gaps.lost_ns, "time"), about(stats.gaps.max_ns, "time")
            lines.append(
                f"CPU {stats.cpu}: the links' thread was interrupted {stats.gaps.count} times "
                f"({lost} in total, {longest} longest)"
            )
    return lines
