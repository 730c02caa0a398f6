"""The keys of links: what is of both directions, and of the switch behind which hosts are.

Where a setting is None here, it is not written; the compiler knows the default.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ewan.labs.base.model import Model, OneOf
from ewan.labs.base.values import BufferText, Name, RateText
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.spec.fields.hardware import HardwareKeys
from ewan.labs.spec.values import Mtu, VlanId


class LinkKeys(DirectionKeys):
    """The settings of a link: for both directions, and what differs in one of them."""

    mtu: Mtu | None = Field(None, description="largest IP packet in bytes; the lab's if absent", examples=[1500])
    forward: DirectionKeys | None = Field(None, description="other values for the direction from the link's first end")
    backward: DirectionKeys | None = Field(None, description="other values for the direction to the link's first end")


class SingleLink(LinkKeys):
    """The settings of one link."""

    hardware: HardwareKeys | None = Field(
        None,
        description="an external emulator is the link (live clock, `netns`); ours if absent",
        examples=["{driver: gtrcnet, address: /dev/ttyUSB0, ports: [eth2, eth3]}"],
    )


class OvsPort(Model):
    """The port of a switch: the link between a switch and its router, in both directions."""

    rate: RateText | None = Field(
        None,
        description="of the switch's port to the router, and back; that of the fastest access link behind the switch "
        "if absent, as on a switch of equal ports",
        examples=["1Gbit/s"],
    )
    buffer: BufferText | None = Field(
        None,
        description="what may wait at the switch's port to the router, and at the router's to the switch; as `access` "
        "says, or 1000pkt, if absent",
        examples=["100pkt"],
    )


class Switch(OneOf):
    """The kind of switch that stands between a router and its hosts."""

    what: ClassVar[str] = "switch"
    ovs: OvsPort | None = Field(None, description="Open vSwitch, with the port to the router as these keys say")


class AccessLink(LinkKeys):
    """The settings of the links between hosts and their routers."""

    switch: Switch | None = Field(
        None,
        description="puts the hosts of each router ROUTER behind one switch, sw-ROUTER, into one subnet; `rate` and "
        "`buffer` beside it are those of a host's card and of the switch's port to that host; none if absent",
        examples=["ovs", "{ovs: {rate: 1Gbit/s, buffer: 100pkt}}"],
    )


class GraphLink(SingleLink):
    """One link of a graph, with its ends."""

    between: tuple[Name, Name] = Field(description="the two ends; `forward` goes from the first", examples=["[a, r1]"])
    name: Name | None = Field(None, description="the first end, a hyphen, the second end if absent")
    role: Literal["wan", "access"] | None = Field(
        None, description="access where one end is a host or a switch, else wan, if absent", examples=["wan"]
    )
    vlan: VlanId | None = Field(
        None,
        description="of a switch's link: the VLAN of its untagged frames, as of an access port; beside `trunk` the "
        "native VLAN; 1 if both are absent",
        examples=["10"],
    )
    trunk: Annotated[tuple[VlanId, ...], Field(min_length=1)] | None = Field(
        None,
        description="of a switch's link: the VLANs whose frames cross it with a tag (IEEE 802.1Q); a router has an "
        "interface in each of them, a host is in one",
        examples=["[10, 20]"],
    )
