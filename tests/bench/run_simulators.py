"""ns-2 and ns-3 of the distribution's packages: what `ewan results export` wrote for them, compiled and run.

In: a program's or a script's file. Out: what became of each flow. LabError where a simulator is not there or fails.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.extras.simulators.ns3 import MODULES
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.runtime.base import LabError

NS3_NEEDS = "libns3-dev libgsl-dev g++ pkg-config"
NS2_NEEDS = "ns2"


@dataclass(frozen=True, slots=True)
class FlowOutcome:
    """A flow's number, payload that arrived, completion time (None: not complete), goodput; lost packets of UDP."""

    number: int
    received_bytes: int
    completion_ns: int | None
    goodput_bps: float
    lost_packets: int | None


def missing() -> str:
    """The packages that are needed and not there, for apt; empty: all is there."""
    needed = [] if shutil.which("ns") else [NS2_NEEDS]
    try:
        _flags()
    except LabError:
        needed.append(NS3_NEEDS)
    return " ".join(needed)


def compiled(source: Path) -> Path:
    """The program of ns-3 that a file in C++ is; beside it. Quickly: what takes time in it is ns-3's library."""
    binary = source.with_suffix("")
    options = ["-O0", "-std=c++17", "-Wall", "-Wextra", "-Werror"]
    _run(["g++", *options, "-o", str(binary), str(source), *_flags()], f"ns-3 (Debian: {NS3_NEEDS})")
    return binary


def ns3(binary: Path, seed: int | None = None) -> list[FlowOutcome]:
    """What a program of ns-3 prints."""
    return _outcomes([str(binary), *([] if seed is None else [f"--seed={seed}"])], "ns-3")


def ns2(script: Path, seed: int | None = None) -> list[FlowOutcome]:
    """What a script of ns-2 prints."""
    return _outcomes(["ns", str(script), *([] if seed is None else [str(seed)])], f"ns-2 (Debian: {NS2_NEEDS})")


def _flags() -> list[str]:
    return _run(["pkg-config", "--cflags", "--libs", *MODULES, "gsl"], f"ns-3 (Debian: {NS3_NEEDS})").split()


def _run(command: Sequence[str], what: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise LabError(f"{what}: {command[0]} is not there: install it") from None
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout).strip().splitlines() or [f"ended with {error.returncode}"]
        raise LabError(f"{what}: {command[0]}: {lines[0]}") from None


def _outcomes(command: Sequence[str], what: str) -> list[FlowOutcome]:
    lines = _run(command, what).splitlines()
    head = next((index for index, line in enumerate(lines) if line.startswith("flow,name,")), None)
    if head is None:
        raise LabError(f"{what}: printed no table of flows")
    rows = [row for row in csv.DictReader(lines[head:]) if row["goodput_bps"]]
    return [
        FlowOutcome(
            number=int(row["flow"]),
            received_bytes=int(row["received_bytes"]),
            completion_ns=round(float(row["completion_s"]) * NS_PER_SECOND) if row["completion_s"] else None,
            goodput_bps=float(row["goodput_bps"]),
            lost_packets=int(row["lost_packets"]) if row["lost_packets"] else None,
        )
        for row in rows
    ]
