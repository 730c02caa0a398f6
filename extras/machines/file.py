"""The machines that a lab stretches over: their addresses and their resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ewan.labs.base.codec import Struct


class ClusterMachine(Struct):
    """One of them. `ssh`: `host`, `user@host`, `user@host:port`, `[v6]:port`, or a Host of SSH's own configuration."""

    name: str
    ssh: str
    interface: str
    """The network interface there that reaches the other machines."""
    address: str | None
    """The address of that interface, as the other machines reach it (IPv4 or IPv6); None: its own first one."""
    cpus: tuple[int, ...] | None
    """CPUs that the lab may have there; None: all."""
    sudo: bool
    """True where commands that need root go through `sudo -n` there."""


@dataclass(frozen=True)
class Cluster:
    """All of them, by the order of their file."""

    machines: tuple[ClusterMachine, ...]
    ssh_config: Path | None
    """Read in place of ~/.ssh/config, as `ssh -F` does."""
    placement: Mapping[str, str] = field(default_factory=dict)
    """Pattern of nodes' names → machine, where a person decided."""
