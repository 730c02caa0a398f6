"""Detects the environment of this host's Linux (WSL, a container, a virtual machine of Lima's, another architecture),
and its consequences for labs. Pure.

In: `uname -m`, the text of /proc/version, the environment, and which of `MARKS` are there. Out: findings. What a
kernel allows does not follow from any of this: `trials.py` tries it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ewan.calibration.host.finding import Finding
from ewan.labs.runtime.kernel import MACHINE

Where = Literal["WSL 1", "WSL 2", "Codespaces", "a dev container", "a container", "a Lima machine"]
DOCKER, PODMAN, LIMA = "/.dockerenv", "/run/.containerenv", "/mnt/lima-cidata"
MARKS = (DOCKER, PODMAN, LIMA)
"""Files and directories by which surroundings are known."""

MEANINGS: Mapping[Where, str] = {
    "WSL 1": "it has no Linux kernel: no lab of either clock; wsl --set-version NAME 2",
    "WSL 2": "a virtual machine: its kernel decides on live labs; keep the clone in Linux's own files, not in /mnt/c",
    "Codespaces": "a container: simulated time; live labs only where it is privileged",
    "a dev container": "simulated time; live labs only where it is privileged (.devcontainer/)",
    "a container": "simulated time; live labs only where it is privileged",
    "a Lima machine": "a virtual machine of its own: root, and so live labs, are within reach",
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`machine` as `uname -m` says it; `version`: the text of /proc/version; `marks`: those of `MARKS` that are
    there."""

    machine: str
    version: str
    environment: Mapping[str, str]
    marks: Collection[str] = ()

    def where(self) -> tuple[Where, str] | None:
        """And what shows it. None: Linux on a machine of its own, or on a virtual one that does not show."""
        version = self.version.lower()
        if "microsoft" in version:
            # Of WSL 1 the version ends in "-Microsoft"; the kernel of WSL 2 is built from a tree "microsoft-standard".
            first = "-microsoft" in version and "microsoft-standard" not in version
            return "WSL 1" if first else "WSL 2", "/proc/version"
        if "WSL_INTEROP" in self.environment:  # WSL 2 with a kernel that its user built
            return "WSL 2", "WSL_INTEROP"
        if self.environment.get("CODESPACES") == "true":
            return "Codespaces", "CODESPACES"
        for name in ("REMOTE_CONTAINERS", "DEVCONTAINER"):
            if self.environment.get(name):
                return "a dev container", name
        for mark in MARKS:
            if mark in self.marks:
                return "a Lima machine" if mark == LIMA else "a container", mark
        return None

    def findings(self) -> Iterator[Finding]:
        """A row for the architecture, and one for what is around it."""
        if self.machine == MACHINE:
            yield Finding("architecture", self.machine, "good", "simulated time and live labs")
        else:
            meaning = f"live labs; no simulated time: User-Mode Linux, in which it runs, is for {MACHINE} alone"
            yield Finding("architecture", self.machine, "limited", meaning)
        if (known := self.where()) is not None:
            where, mark = known
            yield Finding(
                "surroundings", f"{where} ({mark})", "missing" if where == "WSL 1" else "good", MEANINGS[where]
            )
