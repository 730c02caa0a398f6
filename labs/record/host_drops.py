"""The drops in the kernels of hosts and routers beside the links: the counters, their units and their words.

In: a run's table `drops` (labs/record/columns.py), or two looks at the counters of a lab's nodes. Out: counts, and
lines for people. Both clocks, runs and verifications, count by this one list. Names are those of nstat(8), and three of
our own (emulator/system/src/counters.rs). What all CPUs of a machine drop together (/proc/net/softnet_stat) is not
here: it belongs to no node, and the interfaces count it too.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ewan.labs.base.codec import Struct
from ewan.labs.base.reading import read_bytes
from ewan.labs.record.summary import RunSummary

if TYPE_CHECKING:
    import polars as pl

Counts = dict[str, dict[str, int]]
"""By node and counter, without zeros."""

TABLE = "drops"
FILE = "drops.csv"
"""In a run's directory, as `ewan-node` writes it; not there where nothing was dropped."""
_MOST_LINES = 8
_MOST_BYTES = 64 << 20


class NodeCounters(Struct):
    """The counters of a node's kernel, by the names of nstat(8)."""

    node: str
    counters: dict[str, int]


@dataclass(frozen=True, slots=True)
class DropKind:
    """Counters of IPv4 and of IPv6 that tell of the same. `beyond`: kinds whose drops these counters have too.

    `unit`: of what, in the plural; `why`: what follows it; `done`: what a node did with them.
    """

    counters: tuple[str, ...]
    unit: str
    why: str
    beyond: tuple[str, ...] = ()
    done: str = "dropped"


KINDS: dict[str, DropKind] = {
    "receive buffer": DropKind(
        ("UdpRcvbufErrors", "Udp6RcvbufErrors"), "datagrams", "for want of receive buffer (SO_RCVBUF)"
    ),
    "UDP memory": DropKind(("UdpMemErrors", "Udp6MemErrors"), "datagrams", "for want of memory of UDP (udp_mem)"),
    "UDP checksum": DropKind(
        ("UdpInCsumErrors", "Udp6InCsumErrors"), "datagrams", "that had been damaged on their way"
    ),
    "UDP received": DropKind(
        ("UdpInErrors", "Udp6InErrors"),
        "datagrams",
        "not whole (UdpInErrors)",
        ("receive buffer", "UDP memory", "UDP checksum"),
    ),
    "queue": DropKind(("QdiscDropped",), "packets", "for want of room in the queue of an interface (qdisc)"),
    "send buffer": DropKind(
        ("UdpSndbufErrors", "Udp6SndbufErrors"),
        "datagrams",
        "for want of send buffer (SO_SNDBUF): their program got an error",
        ("queue",),
        "did not send",
    ),
    "IP sent": DropKind(
        ("IpOutDiscards", "Ip6OutDiscards"), "packets", "(IpOutDiscards)", ("queue", "send buffer"), "did not send"
    ),
    "IP received": DropKind(("IpInDiscards", "Ip6InDiscards"), "packets", "on receipt (IpInDiscards)"),
    "IP header": DropKind(
        ("IpInHdrErrors", "Ip6InHdrErrors"),
        "packets",
        "for their IP header: damaged on their way, or their hop limit (TTL) was used up (IpInHdrErrors)",
    ),
    "IP address": DropKind(
        ("IpInAddrErrors", "Ip6InAddrErrors"), "packets", "with an address that they may not have here (IpInAddrErrors)"
    ),
    "no route": DropKind(("IpExtInNoRoutes", "Ip6InNoRoutes"), "packets", "to where they had no route (InNoRoutes)"),
    "no route out": DropKind(
        ("IpOutNoRoutes", "Ip6OutNoRoutes"),
        "packets",
        "for want of a route (OutNoRoutes): their program got an error",
        done="did not send",
    ),
    "too large": DropKind(
        ("IpFragFails", "Ip6InTooBigErrors"), "packets", "larger than the MTU of the next link (IpFragFails)"
    ),
    "ICMP checksum": DropKind(
        ("IcmpInCsumErrors", "Icmp6InCsumErrors"), "ICMP messages", "that had been damaged on their way"
    ),
    "no port": DropKind(("UdpNoPorts", "Udp6NoPorts"), "datagrams", "for a port that no program had open (UdpNoPorts)"),
    "reassembly time": DropKind(
        ("IpReasmTimeout", "Ip6ReasmTimeout"), "datagrams", "of which a fragment did not come in time (ipfrag_time)"
    ),
    "reassembly": DropKind(
        ("IpReasmFails", "Ip6ReasmFails"),
        "fragments",
        "for want of memory to put them together (ipfrag_high_thresh)",
        ("reassembly time",),
    ),
    "TCP checksum": DropKind(("TcpInCsumErrors",), "segments", "that had been damaged on their way"),
    "TCP backlog": DropKind(
        ("TcpExtTCPBacklogDrop",), "segments", "while a program held their socket (TCPBacklogDrop)"
    ),
    "TCP receive queue": DropKind(("TcpExtTCPRcvQDrop",), "segments", "for want of receive buffer (TCPRcvQDrop)"),
    "TCP out of order": DropKind(
        ("TcpExtTCPOFODrop",), "segments", "that came early, for want of receive buffer (TCPOFODrop)"
    ),
    "accept queue": DropKind(
        ("TcpExtListenOverflows",), "connections", "whose server was slow to accept (ListenOverflows)"
    ),
    "listen": DropKind(
        ("TcpExtListenDrops",), "connections", "before they were accepted (ListenDrops)", ("accept queue",)
    ),
    "interface": DropKind(
        ("DeviceRxDropped",), "packets", "as they came to an interface (its backlog, or of no known protocol)"
    ),
    "interface out": DropKind(("DeviceTxDropped",), "packets", "at an interface that was down or could not send them"),
}

NAMES: tuple[str, ...] = tuple(counter for kind in KINDS.values() for counter in kind.counters)
"""All counters that are watched."""


def grown(before: Iterable[NodeCounters], after: Iterable[NodeCounters]) -> Counts:
    """Between two answers of `ewan-node drops`."""
    past = {each.node: each.counters for each in before}
    found: Counts = {}
    for each in after:
        old = past.get(each.node)
        if old is None:
            continue
        counts = {name: each.counters.get(name, 0) - old.get(name, 0) for name in NAMES}
        if kept := {name: count for name, count in counts.items() if count > 0}:
            found[each.node] = kept
    return found


def read(path: Path) -> Counts:
    """Read the counters that `ewan-node` wrote of a run; incomplete lines are left out."""
    found: Counts = {}
    try:
        rows = list(csv.reader(read_bytes(path, _MOST_BYTES).decode(errors="replace").splitlines()[1:]))
    except (OSError, ValueError, csv.Error):
        return found
    for row in rows:
        if len(row) == 3 and row[1] in NAMES and row[2].isdecimal() and len(row[2]) < 19:
            found.setdefault(row[0], {})[row[1]] = int(row[2])
    return found


def counts(table: pl.DataFrame) -> Counts:
    """The counters in a run's table."""
    found: Counts = {}
    for node, counter, count in table.select("node", "counter", "count").iter_rows():
        found.setdefault(node, {})[counter] = count
    return found


def added(every: Iterable[Counts]) -> Counts:
    """The sum of the counters of several runs."""
    total: Counts = {}
    for each in every:
        for node, own in each.items():
            known = total.setdefault(node, {})
            for counter, count in own.items():
                known[counter] = known.get(counter, 0) + count
    return total


def of_kinds(own: Mapping[str, int]) -> dict[str, int]:
    """One node's counters by kind, each drop once, without zeros."""
    whole = {name: sum(own.get(counter, 0) for counter in kind.counters) for name, kind in KINDS.items()}
    alone = {name: whole[name] - sum(whole[other] for other in kind.beyond) for name, kind in KINDS.items()}
    return {name: count for name, count in alone.items() if count > 0}


def lines(found: Counts) -> list[str]:
    """`right1 dropped 3,864 datagrams for want of receive buffer (SO_RCVBUF)`: the most first, of many a few."""
    every = [(count, node, name) for node, own in found.items() for name, count in of_kinds(own).items()]
    every.sort(key=lambda each: (-each[0], each[1], each[2]))
    told = [_line(*each) for each in every[:_MOST_LINES]]
    return told + ([f"{len(every) - _MOST_LINES} more counts of drops are kept"] if len(every) > _MOST_LINES else [])


def _line(count: int, node: str, name: str) -> str:
    kind = KINDS[name]
    return f"{node} {kind.done} {count:,} {kind.unit if count != 1 else kind.unit.removesuffix('s')} {kind.why}"


def of_runs(runs: Sequence[RunSummary]) -> list[str]:
    """The same of all runs of an experiment together, by its summary.json; where it has several, also in which."""
    own = {run.number: run.dropped for run in runs if run.dropped}
    told = lines(added(own.values()))
    if len(runs) < 2:
        return told
    named = ", ".join(map(str, list(own)[:_MOST_LINES])) + (" …" if len(own) > _MOST_LINES else "")
    return [f"{line} (run{'s' * (len(own) > 1)} {named})" for line in told]
