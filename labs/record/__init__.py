"""Records: what was measured, on what machine, and what follows. Versioned, written as JSON, read back as typed.

A certificate says whether the links of one plan do what the plan says; it names the plan by its hash and carries
its circumstances, so that a reader needs nothing else to judge it.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import asdict

from ewan.labs.base import codec, documents
from ewan.labs.base.codec import Document, Struct, field
from ewan.labs.base.documents import DocumentError
from ewan.labs.record.machine_load import MachineRecord

CERTIFICATE_FORMAT = "ewan-certificate/2"
OLDER_FORMATS = ("ewan-certificate/1",)
CERTIFICATE_FILE = "certificate.json"
"""In the directory of a verification."""
SO_FAR_FILE = "certificate.so-far.json"
"""A certificate with the rows that are there, in place of the whole one while a lab is measured."""
CERTIFICATES_FOLDER = "certificates"
"""In that of an experiment; of each lab a file."""

Verdict = Literal["ok", "outside", "not decidable", "not measured", "shown"]
"""`shown`: a value that nothing is decided by. `not decidable`: within its uncertainty it may be either."""
GRAVITY: tuple[Verdict, ...] = ("outside", "not decidable", "ok", "shown", "not measured")
"""All verdicts: the first one of several stands for all of them."""
Policy = Literal["strict", "default", "teaching"]
"""The rule by which a certificate is judged: `strict` requires each value to be certainly inside its tolerance,
`default` none to be certainly outside, `teaching` the same with wide tolerances."""
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
ONLY_SOME = ("machines", "dropped")
"""Keys that a certificate lacks where there is nothing to say."""
COVERAGE_FACTOR = 2.0
"""k: the expanded uncertainty is so many standard ones. It holds the true value in about 95 % of all cases."""


class MachineFacts(Struct):
    """The machine (or the virtual kernel): what a measurement depends on, apart from the plan."""

    kernel: str
    machine: str
    cpu_model: str
    cpus: int
    memory_bytes: int
    clock_source: str
    hypervisor: bool
    versions: dict[str, str]


class Uncertainty(Struct, omit_defaults=False):
    """The uncertainty of a measured value, in its unit: the standard uncertainty by source, and the expanded one (GUM,
    JCGM 100)."""

    components: dict[str, float]
    expanded: float
    """U = `coverage_factor` × the root of the sum of squares."""
    coverage_factor: float = COVERAGE_FACTOR


class Row(Struct, omit_defaults=False):
    """One comparison. Values are in `unit` (ns, bit/s, bytes, ppb, ratio or count); None: there is no such value."""

    link: str
    direction: str
    quantity: str
    unit: str
    configured: float | None
    measured: float | None
    error: float | None
    tolerance: float | None
    verdict: Verdict
    note: str = ""
    uncertainty: Uncertainty | None = None
    needs: int | None = None
    """The number of samples that would decide; None if it is decided, or if no number would."""
    holds_s: int | None = None
    """The time after `Certificate.time` for which it holds, if lab and host do not change; None: for ever, for the same
    plan, kernel and node binary."""


class Emulating(Struct):
    """A machine of a lab that stretches over several. `link_cpus`: of its links' spinners; `host_cpus`: where its nodes
    run; `load`: what else it did while the links were measured, as `Certificate.machine` has it of a lab on one."""

    facts: MachineFacts
    link_cpus: tuple[int, ...]
    host_cpus: tuple[int, ...]
    load: MachineRecord


class Certificate(Document, tag=CERTIFICATE_FORMAT):
    """The result of one verification. `probes` and `spinners` are the raw answers the rows were made from; `routing`
    tells how long a protocol took to find the routes, as the runtime's `converge` does; `machine` what else the machine
    did meanwhile (`ewan.calibration.machine`), with `disturbed`, the same in words where it may have disturbed the
    links.

    `machines`: of a lab that stretches over several, each one by its name; other certificates lack it. `host` is then
    the one where the user typed, on which nothing is emulated, and `machine` has only `disturbed`, of all of them.

    `dropped`: what hosts and routers dropped meanwhile, by node and counter (labs/record/host_drops.py); other
    certificates lack it.

    In the virtual clock `host` tells of the virtual kernel, `time` is empty and `elapsed_ns` is virtual: nothing
    depends on the machine.
    """

    plan_sha256: str
    lab: str
    time: str
    host: MachineFacts
    tolerances: Mapping[str, int | float | Mapping[str, int | float | str]]
    rows: tuple[Row, ...]
    probes: dict[str, Any]
    spinners: dict[str, Any]
    elapsed_ns: int
    clock: Literal["live", "virtual"] = "live"
    routing: Mapping[str, str | bool | int | Sequence[Mapping[str, str]]] = field(default_factory=dict)
    machine: MachineRecord = MachineRecord()
    policy: Policy = "default"
    machines: dict[str, Emulating] = field(default_factory=dict)
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Nothing was outside its tolerance, by the strict policy nothing may have been either, and where anything was
        to be measured, something was."""
        if self.count("outside") or (self.policy == "strict" and self.count("not decidable")):
            return False
        return bool(self.count("ok") or self.count("not decidable") or not self.count("not measured"))

    def count(self, verdict: Verdict) -> int:
        """The number of rows that have this verdict."""
        return sum(row.verdict == verdict for row in self.rows)


def to_json(certificate: Certificate) -> bytes:
    """With `passed`, which follows from the rows, for readers that do not want to look at them."""
    said = {name: value for name, value in asdict(certificate).items() if value or name not in ONLY_SOME}
    said |= {"format": certificate.format, "passed": certificate.passed, "machine": codec.data_of(certificate.machine)}
    return codec.document(said, fields_sorted=False)


def from_json(text: bytes) -> Certificate:
    """Raises DocumentError, a ValueError, for another format, unknown or missing keys, and values of a wrong type."""
    fields = documents.json_of(text, "certificate")
    if not isinstance(fields, dict):
        raise DocumentError("not a certificate: no JSON object")
    if fields.get("format") in OLDER_FORMATS:
        raise DocumentError(
            f"an older version made it (format {fields['format']}, this version reads {CERTIFICATE_FORMAT}): "
            "measure the lab again with ewan lab verify, or run its experiment once more"
        )
    if fields.get("format") != CERTIFICATE_FORMAT:
        said = repr(fields.get("format"))[: codec.MOST_SHOWN]
        raise DocumentError(f"format is {said}, this version reads {CERTIFICATE_FORMAT!r}")
    fields.pop("passed", None)
    return documents.checked(Certificate, fields, "not a certificate")


def host_facts(versions: dict[str, str]) -> MachineFacts:
    """This machine; `versions` of the parts that took part are added to Python's."""
    cpu = processor(_cpu_info())
    return MachineFacts(
        kernel=platform.release(),
        machine=platform.machine(),
        cpu_model=cpu.get("model name", platform.machine()),
        cpus=os.cpu_count() or 0,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        clock_source=clock_source(),
        hypervisor="hypervisor" in cpu.get("flags", "").split(),
        versions={"python": platform.python_version(), **versions},
    )


def clock_source() -> str:
    """The time source of this machine's kernel: "tsc", "hpet", …"""
    return _first_line(CLOCK_SOURCE)


@functools.cache
def _cpu_info() -> str:
    """It is read once in this process."""
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def processor(cpuinfo: str) -> dict[str, str]:
    """The first processor of the text of /proc/cpuinfo, which lists all of them."""
    first = cpuinfo.split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}


def _first_line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return "unknown"
