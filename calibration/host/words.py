"""The measurements of a host's links, as rows and lines for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ewan.calibration import envelope
from ewan.calibration.envelope import Frontier
from ewan.calibration.host import paths, processors, timers
from ewan.calibration.host.calibrations import HostCalibration
from ewan.calibration.host.finding import Finding
from ewan.calibration.host.virtual import VirtualCost
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.base.units.shown import NONE, about

COLUMNS = ["back end", "packet", "links", "packets/s", "rate of each", "error p50", "p99", "at load", "beyond it"]


def link_row(each: Frontier) -> list[str]:
    """Cells in the order of `COLUMNS`."""
    framed = max(each.packet_bytes + envelope.WIRE.overhead_bytes, envelope.WIRE.minimum_bytes) * BITS_PER_BYTE
    last = each.loads[-1] if each.loads else None
    late = [about(last.error_p50_ns, "time", 3), about(last.error_p99_ns, "time", 3)] if last else [NONE, NONE]
    return [
        each.backend,
        f"{each.packet_bytes} B",
        str(each.links),
        f"{each.packets_per_s:,.0f}",
        about(each.packets_per_s * framed / each.links, "rate", 3),
        *late,
        f"{last.load_ratio:.0%}" if last else NONE,
        envelope.LIMIT_WORDS[each.limit],
    ]


def absences(absent: Mapping[str, str]) -> list[str]:
    """A line for each back end that this host has not."""
    return [f"no links of the back end {name}: {why}" for name, why in absent.items()]


def of_virtual(cost: VirtualCost) -> Finding:
    """The finding on the cost of virtual runs on this host."""
    found = (
        f"{about(cost.packet_ns, 'time', 3)} of CPU time for a packet at a node, {about(cost.entry_ns, 'time', 3)} to "
        f"enter a program, {about(cost.boot_ns, 'time', 3)} to start"
    )
    meaning = f"{NS_PER_SECOND / cost.packet_ns:,.0f} packets/s at most; ewan run says how long its runs take"
    return Finding("virtual clock", found, "good", meaning)


def findings(found: HostCalibration) -> list[Finding]:
    """All that was found of a host besides its links, in the order in which it was measured."""
    known = [*timers.findings(found.timers), *processors.findings(found.processors), *paths.findings(found.paths)]
    return known if found.virtual is None else [*known, of_virtual(found.virtual)]
