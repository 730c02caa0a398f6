"""Keeps the measurements of this host in the user's cache, under the host's fingerprint.

In: the environment and the node binary, for the fingerprint; a measurement. Out: the last measurement of a host like
this one, or none: another kernel, other CPUs, another governor, clock source or version of the project make it void.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import orjson

from ewan.calibration import envelope
from ewan.calibration.envelope import Frontier
from ewan.calibration.host.accuracy import Accuracy
from ewan.calibration.host.paths import PathMeasurements
from ewan.calibration.host.processors import Processors
from ewan.calibration.host.timers import Timers
from ewan.calibration.host.virtual import VirtualCost
from ewan.calibration.uncertainty import Instrument
from ewan.labs import host
from ewan.labs.base import cache, codec
from ewan.labs.base.codec import Document
from ewan.labs.base.ownership import give_back
from ewan.labs.base.product import ROOT
from ewan.labs.base.writing import write
from ewan.labs.context import Context
from ewan.labs.record import host_facts
from ewan.labs.record.experiment import checksum_once
from ewan.labs.runtime.binary import node_binary

KIND = "host"
"""The folder in the cache."""
MOST_KEPT = 8
Profile = Literal["quick", "default", "full"]
PROFILES: tuple[Profile, ...] = ("quick", "default", "full")


class HostCalibration(Document, tag="ewan-host/1"):
    """The measured properties of one host. `circumstances`: the parts of the fingerprint, by name."""

    fingerprint: str
    circumstances: Mapping[str, str]
    time: str
    profile: Profile
    elapsed_ns: int
    timers: Timers
    processors: Processors
    paths: PathMeasurements
    links: tuple[Frontier, ...]
    absent: Mapping[str, str]
    """Back ends that this host has not, with the reason."""
    accuracy: Accuracy | None
    """The accuracy of one link of our own; None in the quick profile."""
    virtual: VirtualCost | None
    """The cost of virtual runs; None if the virtual kernel is not built."""


def circumstances(binary: Path, cpus: Path = Path("/sys/devices/system/cpu")) -> dict[str, str]:
    """The properties on which a measurement of this host depends, each in words."""
    facts = host_facts({})
    governors = {path.read_text().strip() for path in sorted(cpus.glob("cpu[0-9]*/cpufreq/scaling_governor"))}
    return {
        "kernel": f"{facts.kernel} {platform.version()}",
        "CPU": f"{facts.cpus} × {facts.cpu_model}",
        "usable CPUs": ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))),
        "governor": ",".join(sorted(governors)) or "none",
        "clock source": facts.clock_source,
        "ewan-node": checksum_once(node_binary(binary)),
    }


def fingerprint(of: Mapping[str, str]) -> str:
    """SHA-256 of circumstances, in hexadecimal digits."""
    return hashlib.sha256(orjson.dumps(dict(of), option=orjson.OPT_SORT_KEYS)).hexdigest()


def to_json(calibration: HostCalibration) -> bytes:
    """As JSON, keys in order."""
    return codec.sorted_line(calibration)


def from_json(text: bytes) -> HostCalibration:
    """ValueError, one line, for another format, unknown keys and wrong values."""
    try:
        return codec.decode(HostCalibration, text, "host")
    except ValueError as error:
        raise ValueError(f"{error}: ewan measure lab makes one") from None


def path(context: Context) -> Path:
    """The file of this host's measurement, which may not exist yet."""
    place = cache.kept(context.environment, KIND, ROOT)
    return place / f"{fingerprint(circumstances(context.binary))[:16]}.json"


def load(context: Context) -> HostCalibration | None:
    """This host's last measurement; None where there is none that holds. A damaged file counts as none."""
    try:
        return from_json(path(context).read_bytes())
    except (OSError, ValueError):
        return None


def save(context: Context, calibration: HostCalibration) -> Path:
    """Keeps a measurement in place of an older one of the same host. OSError where it cannot be written."""
    place = path(context)
    write(place, to_json(calibration))
    preferred = place.with_name(Path(host.PREFERRED).name)
    write(preferred, f"{envelope.preferred(calibration.links)} {os.uname().release}\n")
    give_back([place, preferred], context.environment)
    known = sorted(place.parent.glob("*.json"), key=lambda each: each.stat().st_mtime, reverse=True)
    for old in known[MOST_KEPT:]:
        old.unlink(missing_ok=True)
    return place


def instrument(context: Context) -> Instrument:
    """The uncertainty that probes add on this host: as measured, else as assumed."""
    found = load(context)
    if found is None:
        return Instrument()
    return instrument_of(found)


def instrument_of(found: HostCalibration) -> Instrument:
    """The uncertainty that probes add on a host that was measured: two network stacks beside a link, and clocks that
    differ in pace."""
    assumed = Instrument()
    stack = found.paths.stack(0)
    clock = found.timers.clock
    asleep = found.timers.late("nanosleep", loaded=False)
    pace = abs(clock.against_raw_ppb) + abs(clock.monotonic_against_raw_ppb) + clock.uncertain_ppb
    return Instrument(
        stack_ns=2.0 * stack.p50_ns if stack is not None else assumed.stack_ns,
        clock_ppb=float(pace),
        instant_ns=assumed.instant_ns,
        wake_up_ns=float(asleep.p50_ns) if asleep is not None and asleep.p50_ns is not None else assumed.wake_up_ns,
        source=f"ewan measure host, {found.time}",
    )
