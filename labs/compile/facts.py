"""The facts that the compiler needs about the machine on which a lab runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ewan.labs.compile.egress import Clock
from ewan.labs.compile.ovs import Datapath


@dataclass(frozen=True, slots=True)
class HostFacts:
    """CPUs that may be used, networks (CIDR) in use, whose clock runs.

    `datapath`: where switches forward, which is in the kernel where that can. `preferred`: what `emulator: auto` takes
    in the live clock for links that the kernel can express.
    """

    cpus: tuple[int, ...]
    networks: tuple[str, ...]
    clock: Clock = "live"
    datapath: Datapath = "netdev"
    preferred: Literal["user", "kernel"] = "user"
