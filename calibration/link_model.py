"""Runs the model of a link in a process of its own (`link-bench model`), without any network.

`python -m ewan.calibration.link_model` builds it, which takes a while beside tests that run on all CPUs.

In: a direction of a link, or both, and when which packets come. Out: what leaves, and when.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from typing import Protocol

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.product import ROOT
from ewan.labs.link import Direction

PROGRAM = ["--profile", "checked", "--locked", "--quiet", "-p", "ewan-datapath", "--bin", "link-bench"]
"""As the tests of Rust build it."""


class Arrival(Protocol):
    """A packet that comes to the link."""

    @property
    def at_ns(self) -> int:
        """The arrival time in ns."""

    @property
    def ip_bytes(self) -> int:
        """The length of the IP packet."""

    @property
    def backward(self) -> bool:
        """True if the packet arrives from the link's other end."""

    @property
    def head(self) -> str:
        """Its first bytes from Ethernet's header on, in hex."""


class Departure(Struct):
    """A packet that leaves the link: its number among the arrivals, and when. `corrupt`: the random number that chose
    the bit that was turned over."""

    packet: int
    due_ns: int
    mark_ce: bool
    corrupt: int | None
    bleach: bool


def departures(
    direction: Direction, arrivals: Iterable[Arrival], begin_ns: int = 0, backward: Direction | None = None
) -> tuple[Departure, ...]:
    """The packets that leave the link, in order. A trace begins at `begin_ns`. CalledProcessError if the model refuses
    the direction.
    """
    came = [
        {"at_ns": each.at_ns, "ip_bytes": each.ip_bytes, "head": each.head, "backward": each.backward}
        for each in arrivals
    ]
    request = codec.compact({"direction": direction, "backward": backward, "begin_ns": begin_ns, "arrivals": came})
    done = subprocess.run(
        ["cargo", "run", *PROGRAM, "--", "model"], cwd=ROOT, input=request, stdout=subprocess.PIPE, check=True
    )
    return codec.decode(tuple[Departure, ...], done.stdout, "departures")


if __name__ == "__main__":
    subprocess.run(["cargo", "build", *PROGRAM], cwd=ROOT, check=True)
