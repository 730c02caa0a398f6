"""Reads the facts that the compiler needs about this machine: its CPUs, the networks that it already uses, and the back
end that performs better.

In: /proc, the scheduler's affinity mask, and what `ewan measure host` left in the user's cache. Out: `HostFacts`. The
compiler itself reads nothing.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from ewan.labs.base import cache
from ewan.labs.compile import HostFacts

OPEN_VSWITCH = Path("/sys/module/openvswitch")
"""There where the kernel itself can forward for Open vSwitch: the module is loaded, or built in."""


PREFERRED = "host/preferred-back-end"
"""In the user's cache: what `emulator: auto` is to take, and the kernel for which that was measured."""


def facts(proc: Path = Path("/proc")) -> HostFacts:
    """CPUs this process may use, and every IPv4 and IPv6 network that the host has a route to."""
    return HostFacts(
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        networks=networks_of(_lines(proc / "net/route"), _lines(proc / "net/ipv6_route")),
        datapath="system" if OPEN_VSWITCH.exists() else "netdev",
        preferred=preferred(cache.root(os.environ)),
    )


def preferred(cached: Path | None) -> Literal["user", "kernel"]:
    """The back end that calibration found better on this kernel; our own links if it found none, or ran on another
    kernel."""
    try:
        words = [] if cached is None else (cached / PREFERRED).read_text().split()
    except OSError:
        words = []
    return "kernel" if words == ["kernel", os.uname().release] else "user"


def virtual_facts() -> HostFacts:
    """The facts of the virtual clock's own kernel: one CPU, no networks; the same on every machine."""
    return HostFacts(cpus=(0,), networks=(), clock="virtual", datapath="system")


def cpus_of(text: str) -> tuple[int, ...]:
    """CPUs of a list as the kernel writes it (`0-3,8`), ascending; of what is no list none."""
    found: set[int] = set()
    for part in text.split(","):
        if match := re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip()):
            first, last = int(match[1]), int(match[2] or match[1])
            found.update(range(first, last + 1))
    return tuple(sorted(found))


def networks_of(ipv4: Sequence[str], ipv6: Sequence[str]) -> tuple[str, ...]:
    """The networks in the lines of a machine's /proc/net/route and /proc/net/ipv6_route."""
    return tuple(sorted({*ipv4_networks(ipv4), *ipv6_networks(ipv6)}))


def ipv4_networks(lines: Sequence[str]) -> Iterator[str]:
    """/proc/net/route, the main table: destination and mask in hexadecimal, bytes reversed; no default route."""
    for line in lines[1:]:
        fields = line.split()
        destination, mask = (bytes.fromhex(fields[i])[::-1] for i in (1, 7))
        if any(mask):
            yield str(ipaddress.IPv4Network((destination, ipaddress.IPv4Address(mask).exploded), strict=False))


def ipv6_networks(lines: Sequence[str]) -> Iterator[str]:
    """/proc/net/ipv6_route: destination and prefix length in hexadecimal; link-local and multicast do not clash."""
    for line in lines:
        fields = line.split()
        network = ipaddress.IPv6Network((bytes.fromhex(fields[0]), int(fields[1], 16)), strict=False)
        if network.prefixlen and not (network.is_link_local or network.is_multicast or network.is_loopback):
            yield str(network)


def _lines(table: Path) -> list[str]:
    try:
        return table.read_text().splitlines()
    except FileNotFoundError:  # a kernel without this protocol
        return []
