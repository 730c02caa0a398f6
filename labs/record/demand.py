"""The demand of a run on a virtual kernel, counted before it begins: the document that its producers and readers share.

In: counts. Out: the same, typed. The generator counts (generator/scenario/demand.py), the calibration of this host says
how long that takes (calibration/host/virtual.py), an experiment's record keeps it of each run.
"""

from __future__ import annotations

from typing import Annotated

from ewan.labs.base.codec import Meta, Struct

Count = Annotated[int, Meta(ge=0)]


class Demand(Struct):
    """Expected counts of one run."""

    packets: Count
    """Received by nodes, as wall.json counts them: each packet once at every node that it comes to, ACKs too."""
    mixed_packets: Count
    """The packets, of `packets`, that follow a packet of another pair of hosts: their data is not in the cache."""
    paced_packets: Count
    """Packets that wait for the card of a router or switch, each with a timer of its own."""
    flight_packets: Count
    """On links and in queues at one time, on average."""
    flows: Count
    """TCP connections at one time, each of which keeps its state."""
    entries: Count
    """The number of times that the kernel enters a program: system calls, page faults."""
    direct_entries: Count = 0
    """The entries, of `entries`, by calls that a jump makes (mapped programs, docs/explanation/virtual-clock.md)."""
    program_ns: Count = 0
    """CPU time of programs themselves, on the machine of the reference (calibration/host/virtual.py)."""
