"""One verification for all: `ewan lab`, `ewan lab verify` and the engine of experiments, in both clocks.

In: a plan, and its lab: one that is up (`LiveLab`), or one that a runtime makes just for the probes (`BatchLab`). Out:
a certificate. Where a protocol finds the routes, they are waited for first. The only part of this package that starts
anything.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from ewan.calibration import devices, elsewhere, exact, expect, lab_cards, machine, plugged_in, probe, spinner
from ewan.calibration.compare import HOLDS_S, compare
from ewan.calibration.probing import ProbePlan, plan_probes
from ewan.calibration.same_plan import differences
from ewan.calibration.so_far import PartialCertificateWriter
from ewan.calibration.thorough import drained_ns
from ewan.calibration.thorough import rows as thorough_rows
from ewan.calibration.tolerances import POLICIES, REASONS, Tolerances, beside_routing
from ewan.calibration.uncertainty import Instrument, quantile
from ewan.labs import routes
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.hardware.device_answers import DeviceSeries, DeviceStatus, SilentDevice
from ewan.labs.plan import Plan, digest
from ewan.labs.record import Certificate, Emulating, MachineFacts, Policy, host_drops, host_facts
from ewan.labs.record.experiment import checksum
from ewan.labs.record.machine_load import MachineRecord
from ewan.labs.runtime.base import (
    BatchRuns,
    LabError,
    LabState,
    LinkControl,
    ProbeSender,
    RemoteLabs,
    RouteConvergence,
    RuntimeVersions,
)
from ewan.labs.runtime.inspections import CARDS, DROPS, LEFT_ON
from ewan.labs.runtime.probe_documents import ProbeAnswer, ProbeResult, StreamResult, StreamsResult
from ewan.labs.runtime.requests import (
    AppliedChange,
    ChangesRequest,
    CountersRequest,
    DeviceRequest,
    DeviceSeriesRequest,
    StatsRequest,
)
from ewan.labs.runtime.spinner_stats import SpinnerStats

QUANTILES = (0.0, 0.001, 0.01, 0.05, *(k / 10 for k in range(1, 10)), 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0)
"""Quantiles of one-way delays that a certificate keeps."""


class VerifiableLabs(LinkControl, RouteConvergence, ProbeSender, RuntimeVersions, RemoteLabs, Protocol):
    """Labs that are up, by name: what a verification needs of their runtime."""

    def load(self, name: str) -> LabState:
        """The manifest and the plan of a lab that is up. Raises LabError."""
        ...


@dataclass(frozen=True, slots=True)
class LiveLab:
    """The plan's lab is up. `binary`: the path of `ewan-node`, which tells of its interfaces."""

    labs: VerifiableLabs
    binary: Path


@dataclass(frozen=True, slots=True)
class BatchLab:
    """The plan's lab is made just for the probes, which leave their results in `directory`."""

    runs: BatchRuns
    directory: Path
    stop: threading.Event | None = None


def verify_lab(
    plan: Plan,
    lab: LiveLab | BatchLab,
    *,
    progress: Callable[[str], None] = lambda text: None,
    tolerances: Tolerances | None = None,
    policy: Policy = "default",
    instrument: Instrument | None = None,
    thorough: bool = False,
    budget: probe.TimeBudget | None = None,
    so_far: Callable[[Certificate], None] | None = None,
) -> Certificate:
    """Waits until the routes are there, then measures every link of `plan`, both ways, and its pairs.

    `thorough`: in the live clock also all links at once, and the metrics of RFC 6349. `tolerances`: in place of the
    policy's. `instrument`: what the probes add on this host, where that was measured. `budget`: how long the probes of
    the live clock may take. `so_far` gets a certificate of what is measured already, between two probes of the live
    clock; what disturbed the links is not known by then.
    LabError where the lab that is up was made of another plan. LabError or RuntimeError with one line when the routes
    are not found, when probes cannot run or were interrupted.
    In the virtual clock the certificate holds nothing of this machine and none of its time: two of the same plan are
    the same bytes.
    """
    if isinstance(lab, LiveLab):
        bounds = tolerances or POLICIES[policy]
        method = probe.LiveProbes(budget or probe.TimeBudget())
        return _live(plan, lab, progress, policy, bounds, instrument or Instrument(), thorough, method, so_far)
    return codec.replace(_batch(plan, lab, tolerances), policy=policy)


def _live(
    plan: Plan,
    lab: LiveLab,
    progress: Callable[[str], None],
    policy: Policy,
    tolerances: Tolerances,
    instrument: Instrument,
    thorough: bool,
    method: probe.LiveProbes,
    so_far: Callable[[Certificate], None] | None,
) -> Certificate:
    if differ := differences(plan, lab.labs.load(plan.lab).plan):
        again = f"ewan down {plan.lab} and bring it up anew, or measure it as it is: ewan lab verify {plan.lab}"
        raise LabError(f"lab {plan.lab}, which is up, was made of another plan ({differ}): {again}")
    # Asked first: it refuses a lab of which a container has ended.
    versions = {"ewan-node": _version(lab.binary), **lab.labs.versions(plan.lab)}
    routing = routes.converged(lab.labs, plan, progress)
    bounds = beside_routing(tolerances, plan)
    begun = time.monotonic_ns()
    nothing = Certificate(
        plan_sha256=digest(plan),
        lab=plan.lab,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        host=host_facts(versions),
        tolerances={**dataclasses.asdict(bounds), "instrument": dataclasses.asdict(instrument), "reasons": REASONS},
        rows=(),
        probes={},
        spinners={},
        elapsed_ns=0,
        routing={} if routing is None else codec.data_of(routing),
        policy=policy,
    )
    expected = expect.expectations(plan)
    probing = plan_probes(expected, plan.lab, method)
    on = lab.labs.inspect(plan.lab, LEFT_ON)
    of_cards = lab_cards.facts(lab.labs.inspect(plan.lab, CARDS) if plan.cards else ())
    counted = _counters(plan, lab.labs)
    since = {link: each.end_ms for link, each in _series(plan, lab.labs, {}).items()}

    def known(results: Sequence[ProbeResult]) -> Certificate:
        first = probing.first(len(results))
        rows = compare(expected, first, ProbeAnswer(tuple(results)), {}, bounds, instrument=instrument)
        measured = tuple(row for row in rows if row.measured is not None)
        return codec.replace(nothing, rows=measured, elapsed_ns=time.monotonic_ns() - begun)

    teller = None if so_far is None else PartialCertificateWriter(so_far)
    tell = None if teller is None else lambda results: teller.offer(lambda: known(results))
    with _off_the_spinners(plan):
        before, around = _statistics(plan, lab.labs), _LoadWatch(plan.lab, lab.labs)
        counters = lab.labs.inspect(plan.lab, DROPS)
        answer = lab.labs.probe(plan.lab, probing.probes, progress, tell)
        after = _statistics(plan, lab.labs)
        seen = around.over(_stats(before), _stats(after))
        dropped = host_drops.grown(counters, lab.labs.inspect(plan.lab, DROPS))
    if seen.machines:
        # Where the user types was measured, if anything was.
        instrument = Instrument()
    instrument = dataclasses.replace(instrument, stolen_ratio=seen.steal_ratio)
    facts = spinner.with_changes(spinner.facts(_stats(before), _stats(after)), _changes(plan, lab.labs))
    rows = compare(expected, probing, answer, facts, bounds, machine=seen.cause, instrument=instrument)
    rows += lab_cards.offload_rows(on) + plugged_in.rows(plan)
    told = _devices(plan, lab.labs)
    rows += devices.rows(told) + devices.read_rates(rows, _series(plan, lab.labs, since))
    rows += devices.counted(counted, _counters(plan, lab.labs))
    if thorough:
        drained_s = drained_ns(expected.links) / NS_PER_SECOND

        def measure(asked: ProbePlan) -> tuple[ProbeAnswer, dict[str, spinner.LinkFacts]]:
            time.sleep(drained_s)
            earlier = _statistics(plan, lab.labs)
            told = lab.labs.probe(plan.lab, asked.probes, lambda text: progress(f"thorough: {text}"))
            return told, spinner.facts(_stats(earlier), _stats(_statistics(plan, lab.labs)))

        with _off_the_spinners(plan):
            rows += tuple(thorough_rows(expected, plan.lab, measure, bounds, instrument, HOLDS_S))
    return codec.replace(
        nothing,
        tolerances={**nothing.tolerances, "instrument": dataclasses.asdict(instrument)},
        rows=rows,
        probes=_recorded(answer),
        spinners={str(index): codec.data_of(found) for index, found in enumerate(after)},
        elapsed_ns=time.monotonic_ns() - begun,
        machine=codec.replace(
            seen.told, devices=tuple(_recorded_device(each) for each in told) or None, cards=of_cards or None
        ),
        machines=seen.machines,
        dropped=dropped,
    )


def _batch(plan: Plan, lab: BatchLab, tolerances: Tolerances | None) -> Certificate:
    """The program waits for the routes itself before its probes, and leaves routing.json."""
    bounds = beside_routing(tolerances or exact.TOLERANCES, plan)
    expected = expect.expectations(plan)
    probing = plan_probes(expected, plan.lab, exact.VirtualProbes())
    run = lab.runs.run(plan, exact.program(plan, probing), lab.directory, lab.stop)
    if run.interrupted:
        raise RuntimeError("interrupted before the lab was verified")
    answer, flows = exact.answer(probing, run.directory)
    rows = compare(expected, probing, answer, {}, bounds, flows=flows)
    probes = _recorded(answer)
    probes["results"] += [each.data for each in flows]
    return Certificate(
        plan_sha256=digest(plan),
        lab=plan.lab,
        time="",
        host=MachineFacts(
            kernel=run.ended.kernel,
            machine="um",
            cpu_model="",
            cpus=1,
            memory_bytes=run.cost.memory_bytes,
            clock_source="virtual",
            hypervisor=False,
            versions={"kernel_sha256": checksum(run.kernel)},
        ),
        tolerances={**dataclasses.asdict(bounds), "reasons": exact.REASONS},
        rows=rows,
        probes=probes,
        spinners={},
        elapsed_ns=sum(result["elapsed_ns"] for result in probes["results"]),
        clock="virtual",
        routing=run.document("routing.json") or {},
        dropped=host_drops.read(run.directory / host_drops.FILE),
    )


@dataclass(frozen=True, slots=True)
class _MachineLoads:
    """The load of the links' machine, or of all machines of the lab, during the probes. `told`: for
    `Certificate.machine`."""

    told: MachineRecord
    steal_ratio: float
    cause: str
    machines: dict[str, Emulating]


class _LoadWatch:
    """Looks at the machine, or at all machines of a lab that stretches over several, when it is made, and again."""

    def __init__(self, lab: str, labs: RemoteLabs) -> None:
        self._lab, self._labs = lab, labs
        self._elsewhere = labs.elsewhere(lab)
        self._here = machine.snapshot(lab)

    def over(self, before: elsewhere.Answers, after: elsewhere.Answers) -> _MachineLoads:
        """`before`, `after`: the spinners' answers."""
        if not self._elsewhere:
            load = machine.between(self._here, machine.snapshot(self._lab), list(zip(before, after, strict=True)))
            return _MachineLoads(load.recorded(), load.steal_ratio, load.cause(), {})
        found = elsewhere.measured(self._elsewhere, self._labs.elsewhere(self._lab), (before, after))
        disturbed = [f"machine {name}: {words}" for name, (_, load) in found.items() for words in load.words()]
        return _MachineLoads(
            MachineRecord(disturbed=tuple(disturbed)),
            max(load.steal_ratio for _, load in found.values()),
            next((load.cause() for _, load in found.values() if load.cause()), ""),
            {name: each for name, (each, _) in found.items()},
        )


@contextlib.contextmanager
def _off_the_spinners(plan: Plan) -> Iterator[None]:
    """Keeps all threads of this program on the hosts' CPUs meanwhile: a progress display that the kernel puts on a
    spinner's CPU would be measured as an error of the link."""
    old = os.sched_getaffinity(0)
    cpus = old & set(plan.host_cpus)
    _run_on(cpus)
    try:
        yield
    finally:
        if cpus:
            _run_on(old)


def _run_on(cpus: set[int]) -> None:
    for task in Path("/proc/self/task").iterdir() if cpus else ():
        # A thread may have ended meanwhile; without the right to move it, it stays.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(task.name), cpus)


class _SilentSpinner(Struct):
    """A spinner that could not be asked, in place of its answer; `error` where it should have one."""

    ok: bool
    error: str | None = None


def _statistics(plan: Plan, labs: LinkControl) -> list[SpinnerStats | _SilentSpinner]:
    """One answer per spinner; a spinner that cannot be asked is part of the result, not an error."""
    answers: list[SpinnerStats | _SilentSpinner] = []
    for each in plan.spinners:
        try:
            link = each.links[0] if each.links else None
            answers.append(_SilentSpinner(False) if link is None else labs.control(plan.lab, link, StatsRequest()))
        except (OSError, RuntimeError, ValueError) as error:
            answers.append(_SilentSpinner(False, str(error)))
    return answers


def _stats(answers: Sequence[SpinnerStats | _SilentSpinner]) -> list[SpinnerStats | None]:
    return [each if isinstance(each, SpinnerStats) else None for each in answers]


def _counters(plan: Plan, labs: LinkControl) -> devices.Counts:
    """By link what its device counts, of those that count and answer."""
    found = {}
    for each in plan.hardware:
        with contextlib.suppress(OSError, RuntimeError, ValueError, LabError):
            found[each.link] = labs.control(plan.lab, each.link, CountersRequest()).counters
    return found


def _changes(plan: Plan, labs: LinkControl) -> list[AppliedChange]:
    """All changes of links since the lab came up; a spinner that cannot be asked tells of none."""
    served = {link for each in plan.spinners for link in each.links}
    asked = [each.links[0] for each in plan.spinners if each.links]
    outside = [each.link for each in plan.hardware]
    # Links of the kernel's parts share one list: any of them tells all.
    asked += [link.name for link in plan.links if link.name not in served and link.name not in outside][:1] + outside
    changes: list[AppliedChange] = []
    for link in asked:
        with contextlib.suppress(OSError, RuntimeError, ValueError, LabError):
            changes += labs.control(plan.lab, link, ChangesRequest()).changes
    return changes


def _devices(plan: Plan, labs: LinkControl) -> list[DeviceStatus | SilentDevice]:
    """The answer of each device's keeper; a device that does not answer is part of the result, not an error."""
    told: list[DeviceStatus | SilentDevice] = []
    for each in plan.hardware:
        try:
            told.append(labs.control(plan.lab, each.link, DeviceRequest()))
        except LabError as error:
            told.append(SilentDevice(each.link, str(error)))
    return told


def _recorded_device(told: DeviceStatus | SilentDevice) -> Any:
    return codec.data_of(told) if isinstance(told, SilentDevice) else {"ok": True, **codec.data_of(told)}


def _series(plan: Plan, labs: LinkControl, since: Mapping[str, int]) -> dict[str, DeviceSeries]:
    """The milliseconds of each device that tells of them, by link, from `since` on; else its last one."""
    found = {}
    for each in plan.hardware:
        with contextlib.suppress(LabError):
            request = DeviceSeriesRequest(each.link, since.get(each.link, -1))
            found[each.link] = labs.control(plan.lab, each.link, request)
    return found


def _version(binary: Path) -> str:
    shown = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    return shown.stdout.strip().removeprefix("ewan-node ") or "unknown"


def _recorded(answer: ProbeAnswer) -> Any:
    """In place of all delays the record has the quantiles from which their distribution can be drawn; the times between
    packets, which come with them, it does not need."""

    def without_raw(stream: StreamResult) -> StreamResult:
        delays = sorted(stream.delays_ns or ())
        drawn = tuple((share, quantile(delays, share)) for share in QUANTILES) if delays else ()
        return codec.replace(stream, delays_ns=None, spacings_ns=None, quantiles_ns=drawn)

    results = [
        codec.replace(each, streams=tuple(map(without_raw, each.streams))) if isinstance(each, StreamsResult) else each
        for each in answer.results
    ]
    return codec.data_of(ProbeAnswer(tuple(results)))
