"""The content of a file for --cluster, as one value: the cores that execute runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Engine = Literal["local", "slurm", "oar", "pbs", "ssh", "dask"]
BATCH: tuple[Engine, ...] = ("slurm", "oar", "pbs")
"""Schedulers of batch jobs, each of which is to end within its walltime."""


@dataclass(frozen=True, slots=True)
class Workers:
    """`jobs` at once, each with `cores`, on each of which a worker executes one run at a time."""

    file: Path
    engine: Engine
    jobs: int
    cores: int
    memory_bytes: int | None
    """The memory of a job; None: that of the machine."""
    walltime_s: int | None
    """The walltime of a batch job; no run is begun that would not end within it."""
    queue: str | None
    account: str | None
    options: tuple[str, ...]
    """Further ones of the scheduler, each as its job scripts have it."""
    setup: tuple[str, ...]
    """Shell commands before a worker in its job."""
    interface: str | None
    """The interface of the machine where Dask's scheduler runs, to which the workers connect."""
    python: str
    """There: that of this project, with what `make setup-cluster` installs."""
    hosts: tuple[str, ...]
    """SSH targets."""
    ssh_config: Path | None
    address: str | None
    """The address of a Dask scheduler that runs already."""
    certificates: tuple[Path, Path, Path] | None
    """For that address: the authority's certificate, our own, and its key."""
    shared: bool
    """True where workers see the files of this machine under the same paths."""

    @property
    def memory_of_a_worker(self) -> int | None:
        """The worker's share of the job's memory."""
        return None if self.memory_bytes is None else self.memory_bytes // self.cores
