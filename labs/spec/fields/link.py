"""The keys of links: of each direction, of both, and of the switch behind which hosts are.

Where a setting is None here, nobody wrote it; the compiler knows the default.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ewan.labs.spec.fields.bucket import Police
from ewan.labs.spec.fields.displace import Displace
from ewan.labs.spec.fields.hardware import Hardware
from ewan.labs.spec.fields.loss import Loss
from ewan.labs.spec.fields.model import Model, OneOf
from ewan.labs.spec.fields.queue import Queue
from ewan.labs.spec.fields.radio import Aggregate, Harq
from ewan.labs.spec.fields.trace import Trace
from ewan.labs.spec.values import (
    BlackholeText,
    BufferText,
    BurstText,
    CorrelationText,
    DelayText,
    DurationText,
    FractionText,
    Mtu,
    Name,
    PeakText,
    RateText,
    SlotText,
    VlanId,
)


class Direction(Model):
    """The settings of one direction of a link; None: not said here."""

    rate: RateText | None = Field(
        None, description="of what `framing` counts; wan 1Gbit/s, access 10Gbit/s (or the fastest wan) if absent"
    )
    buffer: BufferText | None = Field(
        None, description="what may wait, without the delay line; wan 1BDP of the longest RTT, access 1000pkt if absent"
    )
    queue: Queue | None = Field(None, description="queue discipline; drop-tail if absent", examples=["codel"])
    framing: Literal["wire", "ethernet", "header", "ip"] | None = Field(
        None,
        description="what a packet's length counts beyond IP: wire 38 B (header 14, FCS 4, preamble and gap 20), "
        "ethernet 18 B, header 14 B (what tc counts), ip nothing; wire if absent",
    )
    loss: Loss | None = Field(None, description="loss model; none if absent", examples=["0.1%"])
    corrupt: FractionText | None = Field(None, description="packets with one flipped bit; none if absent")
    duplicate: FractionText | None = Field(None, description="packets sent twice; none if absent")
    delay: DelayText | None = Field(None, description="one way; from `rtt` if absent, 0 on access links")
    jitter: DurationText | None = Field(None, description="spread of the delay around `delay`; none if absent")
    distribution: Literal["uniform", "normal", "pareto"] | None = Field(
        None,
        description="uniform: within ± jitter; normal: jitter is the standard deviation; pareto: from "
        "delay - jitter on, a tail of shape 3 with that standard deviation; normal if absent",
        examples=["uniform"],
    )
    correlation: CorrelationText | None = Field(
        None,
        description="of a normal jitter: how much of a packet's deviation the next one keeps; n packets later it is "
        "correlation^n. Mean and standard deviation stay what `delay` and `jitter` say; none if absent",
    )
    reorder: bool | None = Field(
        None,
        description="may jitter let packets overtake; false if absent: a packet then leaves no earlier than those "
        "before it, which makes the mean delay longer. Packets that come 1, 0.3, 0.1 or 0.01 of jitter apart are later "
        "by 0.04, 0.28, 0.52 or 0.83 jitter in the mean (uniform), by 0.23, 0.72, 1.21 or 2.13 (normal)",
    )
    displace: Displace | None = Field(
        None,
        description="some packets leave behind so many later ones, whatever the delay is; none if absent",
        examples=["{share: 1%, packets: 3}", "none"],
    )
    ecn: Literal["bleach", "keep"] | None = Field(
        None,
        description="bleach: a middlebox before the queue clears both bits of ECN in every packet; keep if absent",
        examples=["bleach"],
    )
    blackhole: BlackholeText | None = Field(
        None,
        description="IP packets longer than this vanish before the queue, without a word to anyone; none if absent",
    )
    police: Police | None = Field(
        None,
        description="a policer before the queue drops what exceeds a token bucket; none if absent",
        examples=["{rate: 10Mbit/s, burst: 32kB}", "none"],
    )
    burst: BurstText | None = Field(
        None,
        description="the rate is a token bucket's, of this depth: so much passes at once after a pause; none if absent",
    )
    peak: PeakText | None = Field(
        None, description="the rate at which a burst passes; without limit if absent, so that it takes no time"
    )
    aggregate: Aggregate | None = Field(
        None,
        description="packets that wait are sent together and arrive together, as on Wi-Fi; none if absent",
        examples=["{packets: 64, time: 4ms, gap: 150us}", "none"],
    )
    duplex: Literal["full", "half"] | None = Field(
        None,
        description="half: both directions share one medium, so that one waits while the other one sends, and they "
        "take turns where both wait; full if absent",
        examples=["half"],
    )
    slot: SlotText | None = Field(
        None,
        description="packets leave at the ends of slots of this length (a TTI of LTE or NR), each at the end of the "
        "one in which its last bit was sent; none if absent",
    )
    harq: Harq | None = Field(
        None,
        description="transmissions that fail are repeated a round later; none if absent",
        examples=["{errors: 10%, round: 8ms}", "none"],
    )
    acks: Literal["filter", "keep"] | None = Field(
        None,
        description="filter: a pure ACK of TCP takes the place of an earlier one of its flow that still waits in the "
        "queue (RFC 3449); keep if absent",
        examples=["filter"],
    )
    trace: Trace | None = Field(
        None,
        description="rate, delay, loss or buffer over time, from a file; none if absent",
        examples=["{file: lte.csv}"],
    )


class Link(Direction):
    """The settings of a link: for both directions, and what differs in one of them."""

    mtu: Mtu | None = Field(None, description="largest IP packet in bytes; the lab's if absent", examples=[1500])
    forward: Direction | None = Field(None, description="other values for the direction from the link's first end")
    backward: Direction | None = Field(None, description="other values for the direction to the link's first end")


class SingleLink(Link):
    """The settings of one link."""

    hardware: Hardware | None = Field(
        None,
        description="an external emulator is the link (live clock, `netns`); ours if absent",
        examples=["{driver: gtrcnet, address: /dev/ttyUSB0, ports: [eth2, eth3]}"],
    )


class OvsPort(Model):
    """Of the link between a switch and its router, in both directions."""

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
    """What kind of switch the hosts of a router are behind."""

    what: ClassVar[str] = "switch"
    ovs: OvsPort | None = Field(None, description="Open vSwitch, with the port to the router as these keys say")


class AccessLink(Link):
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
