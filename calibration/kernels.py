"""Judges a kernel of the virtual clock: whether its time is exact, and whether the same run gives the same bytes.

In: a kernel that is built. Out: a certificate of a lab in it, as `ewan lab --runtime virtual` makes one, and what was
compared between two runs each.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from ewan.calibration.certify import BatchLab, verify_lab
from ewan.generator import traffic_request
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.batch import LONGEST_NS
from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Plan
from ewan.labs.record import Certificate
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import parse

LAB = "name: kernel\ntopology: {dumbbell: {pairs: 2}}\nrtt: 20ms\nwan: {rate: 100Mbit/s, buffer: 1BDP, loss: 1%}\n"
"""A lab with each stage of a link: delay, rate, buffer and random losses."""
SENDS_NS = 3 * NS_PER_SECOND
_NOT_OF_THE_RUN = {"console.log", "progress", "program.json", "plan.json"}


class KernelVerification(Struct):
    """`release`: what the kernel calls itself; `passed`: whether each measured value is inside its tolerance;
    `certificate`: of the lab; `repeats`: what two runs were compared by, and whether their bytes were the same."""

    release: str
    passed: bool
    repeats: dict[str, bool]
    certificate: Certificate

    @property
    def good(self) -> bool:
        """Return whether labs may rely on the kernel."""
        return self.passed and all(self.repeats.values())


def verify(runtime: VirtualRuntime, progress: Callable[[str], None]) -> KernelVerification:
    """Makes a lab four times in the runtime's kernel: twice for the probes, twice for transfers. LabError or
    RuntimeError where one of them could not be done."""
    plan = compile(parse(LAB, Path("kernel.lab.yaml")), HostFacts((0,), (), "virtual"))
    with tempfile.TemporaryDirectory(prefix="ewan-kernel-") as scratch:
        place = Path(scratch)
        certificates = []
        for number in ("first", "second"):
            progress(f"measuring its links, {number} time")
            certificates.append(verify_lab(plan, BatchLab(runtime, place / f"probes-{number}"), policy="default"))
        runs = []
        for number in ("first", "second"):
            progress(f"sending over them, {number} time")
            runs.append(_results(runtime, plan, place / f"transfers-{number}"))
        one, other = (codec.document(each) for each in certificates)
        repeats = {"probes of the links": one == other}
        for name in sorted(runs[0].keys() | runs[1].keys()):
            repeats[name] = runs[0].get(name) == runs[1].get(name)
    certificate = certificates[0]
    return KernelVerification(certificate.host.kernel, certificate.passed, repeats, certificate)


def _results(runtime: VirtualRuntime, plan: Plan, directory: Path) -> dict[str, bytes]:
    """The files that a run with transfers leaves, apart from what describes it."""
    controls = ("cubic", "reno")
    wanted = [
        traffic_request.BulkTransfer(end.source, end.sink, control, duration_ns=SENDS_NS)
        for end, control in zip(plan.pairs, controls, strict=True)
    ]
    request = traffic_request.transfers(plan, wanted, "virtual", sample_ns=NS_PER_SECOND // 100, longest_ns=LONGEST_NS)
    runtime.run(plan, Program(traffic=request, longest_ns=LONGEST_NS, expected_ns=SENDS_NS), directory)
    traffic_request.completed(directory)
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.name not in _NOT_OF_THE_RUN)
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}
