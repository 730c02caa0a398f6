"""The record of a lab over several machines, where the user types: the share of each machine, and the tunnels'
measurements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ewan.extras.machines.file import ClusterMachine
from ewan.extras.machines.shares import TunnelWire, machine_of_spinner
from ewan.extras.machines.tunnels import TunnelQuality
from ewan.labs.base.codec import Document
from ewan.labs.runtime.multi_machine import MANIFEST


class ClusterLabRecord(Document, tag=MANIFEST):
    """The property of a lab, which is its shares on these machines. Its `id` distinguishes it from a later lab of its
    name; no process here belongs to it.

    `binary`: machine → the path of the node binary there; `machine_of`: of each node; `first_spinner`: of each machine
    that has one, its first spinner's number in the whole plan; `addresses`: of each machine, at the network between
    them; `host_cpus`: of each machine, the CPUs where its hosts and routers run."""

    id: str
    lab: str
    machines: tuple[ClusterMachine, ...]
    ssh_config: str | None
    binary: Mapping[str, str]
    machine_of: Mapping[str, str]
    first_spinner: Mapping[str, int]
    stretched: tuple[TunnelWire, ...]
    tunnels: tuple[TunnelQuality, ...]
    addresses: Mapping[str, str]
    host_cpus: Mapping[str, tuple[int, ...]]

    @property
    def config(self) -> Path | None:
        """SSH's configuration."""
        return None if self.ssh_config is None else Path(self.ssh_config)

    def machine_of_spinner(self, number: int) -> tuple[str, int]:
        """Machine and the number there of a spinner of the whole plan."""
        return machine_of_spinner(self.first_spinner, number)
