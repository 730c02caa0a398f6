"""The sizes of packets in tunnels: what GRE, VXLAN and WireGuard add to an IP packet. Pure."""

from __future__ import annotations

from typing import Literal

TunnelKind = Literal["gre", "vxlan", "wireguard"]
OVERHEAD: dict[TunnelKind, tuple[int, int]] = {"gre": (24, 44), "vxlan": (50, 70), "wireguard": (60, 80)}
"""Bytes around an inner IP packet, with outer headers of IPv4 and of IPv6. GRE has no key (RFC 2784), VXLAN has an
inner Ethernet header (RFC 7348), WireGuard a header and an authentication tag of 16 bytes each."""
_PADDED_TO = 16
"""WireGuard pads what it encrypts to a multiple of this, but not beyond the tunnel's MTU."""


def outer_bytes(kind: TunnelKind, outer_v6: bool, mtu: int, packet_bytes: int) -> int:
    """The size of the outer IP packet around one of `packet_bytes`, in a tunnel of this MTU."""
    size = packet_bytes
    if kind == "wireguard":
        size = max(size, min(-(-size // _PADDED_TO) * _PADDED_TO, mtu))
    return size + OVERHEAD[kind][outer_v6]
