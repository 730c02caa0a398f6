"""Addresses: an IPv4 /30 and an IPv6 /64 for each link, out of private pools that the host does not use.

Comes in: how many links each router owns, and the host's networks. Goes out: for each link a number in one space
from which both families follow. A router's links are neighbours in that space, aligned, so that one route a
family leads to all of them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

LARGEST_LAB = 1 << 16  # links: the /64s in a /48

# RFC 1918, and RFC 2544's networks for benchmarks. Away from the lower end of 10/8, where most people begin.
_IPV4_POOLS = [
    *(f"10.{second}.0.0/16" for second in (*range(64, 256), *range(64))),
    *(f"172.{second}.0.0/16" for second in range(16, 32)),
    "192.168.0.0/16",
    "198.18.0.0/16",
    "198.19.0.0/16",
]
_ULA = 0xFD65_7761_6E00 << 80  # fd, then "ewan" less its first half of the last byte (RFC 4193)


class PoolError(ValueError):
    """No room is left beside the host's networks."""


class Pool:
    """`links` numbered links beside the host's `networks`."""

    def __init__(self, links: int, networks: Sequence[str]) -> None:
        taken = [ipaddress.ip_network(network, strict=False) for network in networks]
        used = [[(int(n[0]), int(n[-1])) for n in taken if n.version == v and n.prefixlen] for v in (4, 6)]
        self.ipv4 = _first_free(_ipv4_starts(4 * links), used[0])
        starts = ((_ULA + (step << 80), 1 << 80) for step in range(256))
        self.ipv6 = _first_free(starts, used[1])
        self._v6 = f"{self.ipv6 >> 112:x}:{self.ipv6 >> 96 & 0xFFFF:x}:{self.ipv6 >> 80 & 0xFFFF:x}"

    def v4(self, link: int, end: int) -> str:
        """The address of one end (1 or 2) of a link."""
        a = self.ipv4 + 4 * link + end
        return f"{a >> 24}.{a >> 16 & 255}.{a >> 8 & 255}.{a & 255}"

    def v6(self, link: int, end: int) -> str:
        """The address of one end (1 or 2) of a link, in the link's own /64."""
        return f"{self._v6}:{link:x}::{end:x}" if link else f"{self._v6}::{end:x}"

    def v4_block(self, first: int, links: int) -> str:
        """The prefix of `links` links (a power of two) from `first` on."""
        return f"{self.v4(first, 0)}/{30 - (links.bit_length() - 1)}"

    def v6_block(self, first: int, links: int) -> str:
        """The prefix of `links` links (a power of two) from `first` on."""
        start = f"{self._v6}:{first:x}::" if first else f"{self._v6}::"
        return f"{start}/{64 - (links.bit_length() - 1)}"


def _ipv4_starts(size: int) -> Iterator[tuple[int, int]]:
    """Candidates as (start, size): one /16, or as many /16s in a row as are needed."""
    room = max(1 << 16, 1 << (size - 1).bit_length())
    for pool in _IPV4_POOLS:
        start = int(ipaddress.IPv4Network(pool)[0])
        last = f"{start + room - 1 >> 24}.{start + room - 1 >> 16 & 255}.0.0/16"
        if start % room == 0 and last in _IPV4_POOLS:
            yield start, room


def _first_free(candidates: Iterator[tuple[int, int]], used: list[tuple[int, int]]) -> int:
    for start, size in candidates:
        if all(last < start or first >= start + size for first, last in used):
            return start
    raise PoolError


def blocks(owned: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Owner → (first number, size): powers of two, the largest first, so that each is aligned."""
    placed, free = {}, 0
    for owner, count in sorted(owned.items(), key=lambda item: -item[1]):
        if count:
            size = 1 << (count - 1).bit_length()
            placed[owner] = (free, size)
            free += size
    return placed
