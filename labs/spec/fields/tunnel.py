"""The keys of a tunnel."""

from __future__ import annotations

from pydantic import Field, field_validator

from ewan.labs.base.model import Model
from ewan.labs.base.values import Name
from ewan.labs.link.encapsulation import TunnelKind
from ewan.labs.spec.values import KeepaliveText, Mtu


class TunnelKeys(Model):
    """A tunnel between two nodes."""

    name: Name = Field(description="names the tunnel, and its interface at both ends", examples=["vpn"])
    between: tuple[Name, Name] = Field(
        description="its ends, routers or hosts; the first one of WireGuard begins the handshake",
        examples=["[branch, hub]"],
    )
    kind: TunnelKind = Field(
        description="how packets are wrapped: `gre` (RFC 2784), `vxlan` (RFC 7348) or `wireguard`", examples=["gre"]
    )
    over: tuple[Name, ...] | None = Field(
        None,
        description="the link by which the outer packets leave an end, and come to it; a list names one for each end, "
        "or several of one end, of which the first that has a carrier is taken (WireGuard); by the routes if absent",
        examples=["isp1", "[isp1, isp2]"],
    )
    carries: dict[Name, tuple[Name, ...]] | None = Field(
        None,
        description="between routers: the hosts behind each end, to which packets of the other end go by the tunnel; "
        "the hosts that are linked to the ends if absent",
        examples=["{branch: [pc], hub: [server]}"],
    )
    mtu: Mtu | None = Field(
        None,
        description="largest IP packet in the tunnel, in bytes; what the path of the outer packets leaves if absent",
        examples=["1400"],
    )
    keepalive: KeepaliveText | None = Field(
        None,
        description="WireGuard: the first end sends an empty packet after this time without one of its own, from which "
        "the other one learns where it is; none if absent",
        examples=["25s"],
    )

    @field_validator("over", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        """A single name stands for a list with one element."""
        return [value] if isinstance(value, str) else value
