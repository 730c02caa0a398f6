"""Token buckets and bands of tc: tbf, HTB and its classes, prio.

See tc-tbf(8), tc-htb(8), tc-prio(8) and net/sched of Linux.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ewan.extras.importers.directions import CARD_PACKETS
from ewan.extras.importers.findings import Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc.options import ALIKE, OF_BUCKETS, bucket, pairs, unknown
from ewan.extras.importers.tc.queues import QueueSettings
from ewan.extras.importers.tc.tree import Class
from ewan.labs.base.units import Buffer, Rate, Size
from ewan.labs.base.units.tools import tbf_limit, tc_bps, tc_rate, tc_size, tc_time, tc_whole

ONE_PACKET = Size.parse("2000B")
"""A bucket up to this holds one packet of 1514 bytes and never two: it is no burst."""
FULL_FRAME = Size.parse("1514B")


@dataclass(slots=True)
class Shaper:
    """A rate. `limit`: bytes that wait for it where nothing is below it; None for a class."""

    command: ScriptCommand
    rate: Rate
    burst: Size | None = None
    peak: Rate | None = None
    limit: Size | None = None


def tbf(command: ScriptCommand, options: Sequence[str], findings: Findings) -> Shaper:
    """The shaper of a tbf; ImportingError for options that tc refuses, and for a second bucket that holds more than a
    packet."""
    given = pairs(options, (), command, findings, once=OF_BUCKETS, alike=ALIKE)
    unknown(given, OF_BUCKETS, command, findings)
    missing = [key for key in ("rate", "burst") if key not in given]
    waits = [key for key in ("latency", "limit") if given.get(key, "0").strip("0.")]
    if missing or len(waits) != 1:
        what = missing[0] if missing else "latency or limit, one of them"
        raise findings.error(command.line, command.text, f"tbf needs {what}: write it")
    rate = findings.read(command, "rate", tc_rate, given["rate"])
    burst = findings.read(command, "burst", bucket, given["burst"])
    if burst < FULL_FRAME:
        findings.cannot(
            command, f"burst {burst}", f"is less than a packet, and tbf drops such: write {FULL_FRAME} or more"
        )
    shaper = Shaper(command, rate, burst if burst > ONE_PACKET else None)
    if "peakrate" in given and not given.get("mtu", "0").strip("0"):
        message = 'has a peakrate, for which tc needs mtu (or minburst) too: write it, like "mtu 1540"'
        raise findings.error(command.line, command.text, message)
    if "peakrate" in given:
        peak = findings.read(command, "peakrate", tc_rate, given["peakrate"])
        least = findings.read(command, "mtu", bucket, given.get("mtu", "0"))
        if least > ONE_PACKET:
            why = f"lets {least} pass at once above the peak rate, which has no word in a description"
            findings.cannot(command, f"mtu {given['mtu']}", why)
        shaper.peak = peak if shaper.burst else None
    if "limit" in given:
        shaper.limit = findings.read(command, "limit", tc_size, given["limit"])
    else:
        latency = findings.read(command, "latency", tc_time, given["latency"])
        shaper.limit = tbf_limit(rate, latency, burst)
        if "peakrate" in given:
            shaper.limit = min(shaper.limit, tbf_limit(peak, latency, least))
    _sizes(given, command, findings)
    return shaper


def _sizes(given: dict[str, str], command: ScriptCommand, findings: Findings) -> None:
    for key, why in (
        ("mpu", "counts short packets as longer ones, which has no word in a description"),
        ("overhead", "is no longer read by Linux here: write it as stab overhead, or leave it out"),
        ("linklayer", "counts cells, which has no word in a description"),
    ):
        if given.get(key, "0") not in ("0", "0b", "ethernet"):
            findings.cannot(command, f"{key} {given[key]}", why)


@dataclass(frozen=True, slots=True)
class HtbClass:
    """A class of HTB. `ceil` is at least `rate`. `burst`: the size of the smaller bucket; None for a packet."""

    rate: Rate
    ceil: Rate
    burst: Size | None


def _class_rate(text: str) -> Rate:
    """The rate of a class, which may be below a link's least, since a class may have its ceil."""
    bps = tc_bps(text)
    return Rate(int(bps)) if 0 < bps < Rate.LOWEST and bps.denominator == 1 else tc_rate(text)


def htb(of: Class, findings: Findings) -> HtbClass:
    """A class of HTB by itself; `leaf` decides about its borrowing."""
    command = of.command
    alike = {"buffer": "burst", "maxburst": "burst", "cbuffer": "cburst", "cmaxburst": "cburst"}
    given = pairs(of.options, (), command, findings, once=("rate", "ceil"), alike=alike)
    known = ("rate", "ceil", "burst", "cburst", "prio", "quantum", "mtu", "mpu", "overhead", "linklayer")
    unknown(given, known, command, findings)
    if "rate" not in given:
        raise findings.error(command.line, command.text, "a class of HTB needs rate: write it")
    rate = findings.read(command, "rate", _class_rate, given["rate"])
    ceil = findings.read(command, "ceil", _class_rate, given["ceil"]) if "ceil" in given else rate
    if ceil < rate:
        raise findings.error(command.line, command.text, f"ceil {ceil} is below rate {rate}: write the intended one")
    _sizes(given, command, findings)
    buckets = [findings.read(command, key, bucket, given[key]) for key in ("burst", "cburst") if key in given]
    depth = min(buckets) if len(buckets) == 2 else None
    if len(buckets) == 1:
        findings.note(command, "of burst and cburst only one is written: the other one is a packet, so nothing bursts")
    return HtbClass(rate, ceil, depth if depth is not None and depth > ONE_PACKET else None)


def htb_root(command: ScriptCommand, options: Sequence[str], findings: Findings) -> tuple[int, QueueSettings]:
    """The minor number of the default class (0: none), and the queue of packets that no class limits."""
    given = pairs(options, ("offload",), command, findings)
    unknown(given, ("default", "r2q", "direct_qlen", "offload"), command, findings)
    if "offload" in given:
        message = "leaves HTB to the card, which few can, so tc refuses it: leave offload out"
        raise findings.error(command.line, command.text, message)
    text = given.get("default", "0")
    try:
        minor = int(text, 16)
    except ValueError:
        raise findings.error(command.line, f"default {text}", 'is no class: write one like "10"') from None
    packets = findings.read(command, "direct_qlen", tc_whole, given.get("direct_qlen", str(CARD_PACKETS)))
    return minor & 0xFFFF, QueueSettings(command, Buffer("packets", packets), None, "direct_qlen")


@dataclass(frozen=True, slots=True)
class Bands:
    """The bands of a prio: the minor number of the band for each priority of packets that no filter chooses."""

    count: int
    of_priority: tuple[int, ...]

    @property
    def ordinary(self) -> int:
        """The band of packets without TOS bits."""
        return self.of_priority[0]

    @property
    def of_tos(self) -> frozenset[int]:
        """The bands of packets whose TOS bits ask for something (rt_tos2priority in Linux)."""
        return frozenset(self.of_priority[priority] for priority in (_BULK, _INTERACTIVE_BULK, _INTERACTIVE))


_BULK, _INTERACTIVE_BULK, _INTERACTIVE = 2, 4, 6
_PRIOMAP = (1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)


def bands(command: ScriptCommand, options: Sequence[str], findings: Findings) -> Bands:
    """The bands of a prio; ImportingError for options that tc or Linux refuses (prio_tune in net/sched/sch_prio.c)."""
    left, count, of_priority = list(options), 3, list(_PRIOMAP)
    while left:
        key = left.pop(0)
        if key == "bands" and left and left[0].isdecimal():
            count = int(left.pop(0))
        elif key == "priomap":
            given: list[int] = []
            while left and left[0].isascii() and left[0].isdecimal():
                given.append(int(left.pop(0)))
            of_priority[: len(given)] = given
        elif key not in ("multiqueue", "nomultiqueue"):
            raise findings.error(command.line, key, 'is no option of prio that can be read here: write "bands 3"')
    if not 2 <= count <= len(_PRIOMAP) or len(of_priority) > len(_PRIOMAP) or max(of_priority) >= count:
        why = f"has {count} bands, and its priomap (the default one if absent) names band {max(of_priority)}"
        message = f"{why}, counted from 0, so tc refuses it: write 2 to 16 bands, and a priomap of them"
        raise findings.error(command.line, command.text, message)
    return Bands(count, tuple(band + 1 for band in of_priority))
