"""The load of machines while the links of a lab were measured, and the lab's cards: a part of its certificate.

The keys are in the order of the alphabet, as certificates have them.
"""

from __future__ import annotations

from typing import Any

from ewan.labs.base.codec import Struct


class CpuInterruptions(Struct, omit_defaults=False):
    """Interruptions of a spinner: their number, their time in all, the longest one, and whether its CPU is shared."""

    count: int
    cpu: int
    longest_ns: int
    lost_ns: int
    shared: bool


class LabCard(Struct, omit_defaults=False):
    """A card of a lab: the speed of its line (None: it does not say), whether it stamps what arrives, and which time
    stamps it can take."""

    card: str
    interface: str
    node: str
    speed_bps: int | None
    stamps_in_hardware: bool
    time_stamps: tuple[str, ...]


class MachineRecord(Struct):
    """The load of a machine; None for what was not observed. `devices`: the report of each keeper
    (labs/hardware/device_answers.py); `disturbed`: in words what may have disturbed the links; `programs`: name and
    share of one CPU of those that are not the lab's, largest first; `taken`: of each spinner."""

    cards: tuple[LabCard, ...] | None = None
    clock_source: str | None = None
    """The kernel's time source; two words with an arrow if it changed meanwhile."""
    cpus: int | None = None
    devices: tuple[Any, ...] | None = None
    disturbed: tuple[str, ...] | None = None
    load_average: float | None = None
    programs: tuple[tuple[str, float], ...] | None = None
    steal_ratio: float | None = None
    taken: tuple[CpuInterruptions, ...] | None = None
