"""The feasibility of a lab or a scenario: whether it runs live on this host, and its cost in the virtual clock.

In: the context of this process; the text of a description or a scenario. Out: a `Verdict`: the reason for which `ewan
lab` and `ewan run` would refuse it now, the load of its links relative to the envelope, and a forecast of wall time.
Nothing is made and no link is measured; the cost of the virtual clock on this host is found once, by two of the
smallest runs, where `ewan measure host` has not measured it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ewan.calibration import envelope
from ewan.calibration.host import calibrations, measurement, refusal
from ewan.calibration.host.calibrations import HostCalibration
from ewan.experiments.engine import link_loads, preparation, reservation
from ewan.experiments.engine.experiment import Job
from ewan.experiments.engine.forecast import Forecast, amount
from ewan.experiments.engine.parts import Wall
from ewan.generator import scenario as scenarios
from ewan.generator.scenario import Runs, Scenario
from ewan.labs import spec
from ewan.labs.base import codec
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.errors import UserError
from ewan.labs.base.source import Places, read_yaml
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.compile import compile as compile_spec
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.record.schedule import CrossedLink, CrossedPath
from ewan.labs.runtime import kernel
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.memory import free_memory_bytes
from ewan.labs.runtime.spinners import check_cpus

LOOKED_NS = NS_PER_SECOND
"""So long are points of a sweep looked at: others are like those."""
SENDS = "10s"
NOT_MEASURED = "this host was not measured yet: ewan measure host does it, as root"
Word = Literal["inside", "outside", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class LiveFeasibility:
    """Feasibility in the live clock. `refused`: a command would not begin it. `outside`: the host was found to carry
    less; it is measured once more before a run is refused. `share`: the demand as a share of the host's capacity,
    margin included."""

    verdict: Word
    why: str
    share: float | None = None
    measured: str | None = None


@dataclass(frozen=True, slots=True)
class VirtualFeasibility:
    """Feasibility in the virtual clock. `wall_ns`: the time of all runs, or of a lab for each second of its clock;
    None: it is unknown, and `why` has the reason."""

    verdict: Word
    why: str
    wall_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict for both clocks. `looked`: the number of points that were checked, which is below `points` where
    there are many."""

    live: LiveFeasibility
    virtual: VirtualFeasibility
    looked: int
    points: int


class Verdicts:
    """Facts about the host of this process, found once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._wall: Wall | None = None

    def of_lab(self, text: str, file: Path) -> Verdict:
        """The verdict on a lab where all pairs send at once, one way; DescriptionError for another text."""
        live_plan = compile_spec(spec.parse(text, file), preparation.facts_of(False))
        live = self._live([], [(live_plan, _of_pairs(live_plan))])
        if live.share:
            live = replace(live, why=f"with all pairs sending, {live.why}")
        return Verdict(live, self._lab_virtual(text, file, live_plan), 1, 1)

    def of_scenario(self, scenario: Scenario, directory: Path, scale: str | None = None) -> Verdict:
        """The verdict on a scenario. `directory`: the place of its results. DescriptionError for a mistake that `ewan
        run` refuses in either clock."""
        runs = scenario.runs(None, scale)
        virtual_jobs = list(_firsts(runs, virtual=True))
        try:
            jobs = list(_firsts(runs, virtual=False))
            live = self._live(jobs, [(job.plan, _of_schedule(job)) for job in jobs], directory)
        except UserError as error:  # its lab is for the virtual clock
            live = LiveFeasibility("refused", str(error))
        virtual = self._scenario_virtual(runs, virtual_jobs, directory)
        return Verdict(live, virtual, len(virtual_jobs), len(runs.points))

    # Live

    def _live(
        self, jobs: Sequence[Job], loaded: Sequence[tuple[Plan, link_loads.Loads]], directory: Path | None = None
    ) -> LiveFeasibility:
        try:
            if directory is None:
                for plan, _ in loaded:
                    check_cpus(plan.lab, plan.spinners)
            else:
                reservation.check(reservation.needs(jobs, False), False, directory)
        except LabError as error:
            return LiveFeasibility("refused", str(error))
        found = calibrations.load(self._context)
        if found is None:
            return LiveFeasibility("unknown", NOT_MEASURED)
        worst: LiveFeasibility | None = None
        for plan, loads in loaded:
            told = _predicted(found, plan, loads)
            if told is not None and (worst is None or (told.share or 0) > (worst.share or 0)):
                worst = told
        return worst or LiveFeasibility("inside", "no emulated link is loaded", 0.0, found.time)

    # Virtual

    def _cost(self) -> Wall | str:
        """The cost of a run on this host, or the reason why it is unknown."""
        with self._lock:
            if self._wall is None:
                if kernel.built() is None:
                    return "the virtual kernel is not built yet: make kernel does it, once"
                try:
                    self._wall = measurement.wall_of(self._context)
                except (LabError, OSError) as error:
                    return str(error)
            return self._wall

    def _scenario_virtual(self, runs: Runs, jobs: Sequence[Job], directory: Path) -> VirtualFeasibility:
        try:
            workers = reservation.check(reservation.needs(jobs, True), True, directory)
        except LabError as error:
            return VirtualFeasibility("refused", str(error))
        wall = self._cost()
        if isinstance(wall, str):
            return VirtualFeasibility("unknown", wall)
        entries = [entry for job in jobs for entry in [job.entry] * runs.seeds]
        more = len(runs) - len(entries)
        if entries and more:  # points that were not looked at are like the mean of the others
            entries += [codec.replace(entries[0], demand=None)] * more
        forecast = Forecast(entries, wall)
        at_once = max(min(workers, len(entries)), 1)
        each = [forecast.run_ns(entry) for entry in entries]
        return VirtualFeasibility("inside", forecast.words(entries, workers), round(max(sum(each) / at_once, *each)))

    def _lab_virtual(self, text: str, file: Path, plan: Plan) -> VirtualFeasibility:
        if not plan.pairs:
            return VirtualFeasibility("unknown", "it has no pairs: what it costs depends on what is sent")
        try:
            job = next(_firsts(_sending(text, file, plan).runs(), virtual=True))
        except UserError as error:
            return VirtualFeasibility("refused", str(error))
        wall = self._cost()
        if isinstance(wall, str):
            return VirtualFeasibility("unknown", wall)
        entry = job.entry
        assert entry.demand is not None
        took_ns, u_ns = wall(entry.demand)
        each_ns = round(took_ns * NS_PER_SECOND / max(entry.expected_ns, 1))
        packets = amount(round(entry.demand.packets * NS_PER_SECOND / max(entry.expected_ns, 1)))
        share = f"{100 * u_ns / max(took_ns, 1):.0f}"
        why = f"a second with all pairs sending takes about {about(each_ns, 'time', 2)} ± {share} % ({packets} packets)"
        return VirtualFeasibility("inside", why, each_ns)


def _firsts(runs: Runs, virtual: bool) -> Iterator[Job]:
    """The first run of each point, for as long as points are looked at; one at least."""
    begun = time.monotonic_ns()
    for number in runs.firsts:
        yield from preparation.jobs(runs, virtual, [number])
        if time.monotonic_ns() - begun > LOOKED_NS:
            return


def _sending(text: str, file: Path, plan: Plan) -> Scenario:
    """Bulk from the source to the sink of every pair."""
    lab, known = read_yaml(text, str(file))
    places = Places(known.file, {("lab", *path): place for path, place in known.known.items()})
    ends: dict[str, JsonValue] = {
        "from": [pair.source for pair in plan.pairs],
        "to": [pair.sink for pair in plan.pairs],
    }
    quiet = {"sample": "0s", "series": "0s", "watch": "0s"}
    data = {"name": plan.lab, "lab": lab, **quiet, "steps": [{"name": "load", **ends, "for": SENDS, "bulk": {}}]}
    return scenarios.from_data(data, places, text, file)


def _of_pairs(plan: Plan) -> link_loads.Loads:
    rates = {(link.name, "forward"): link.forward.rate_bps for link in plan.links}
    rates |= {(link.name, "backward"): link.backward.rate_bps for link in plan.links}
    crossed = (
        CrossedPath(
            pair.source,
            pair.sink,
            "load",
            tuple(
                CrossedLink(hop.link, hop.direction, rates.get((hop.link, hop.direction))) for hop in pair.forward.hops
            ),
        )
        for pair in plan.pairs
    )
    return link_loads.loads(crossed, (link.name for link in plan.links))


def _of_schedule(job: Job) -> link_loads.Loads:
    return link_loads.loads(job.schedule.paths, (link.name for link in job.plan.links))


def _predicted(found: HostCalibration, plan: Plan, loads: link_loads.Loads) -> LiveFeasibility | None:
    """The worst prediction for the load of a plan's spinners and of the kernel; None where none is possible."""
    worst: LiveFeasibility | None = None
    for demand in refusal.demands(plan, loads):
        try:
            told = envelope.predict(found.links, demand, free_memory_bytes())
        except envelope.NoEnvelopeError:
            continue
        if worst is None or told.share > (worst.share or 0):
            worst = LiveFeasibility("inside" if told.inside else "outside", told.why, told.share, found.time)
    return worst


def lines(verdict: Verdict) -> list[str]:
    """The lines of a verdict for a terminal."""
    live, virtual = verdict.live, verdict.virtual
    found = [f"live: {live.verdict}: {live.why}"]
    if live.measured:
        found.append(f"      by the measurement of {live.measured}")
    found.append(f"virtual: {'' if virtual.verdict == 'inside' else f'{virtual.verdict}: '}{virtual.why}")
    if verdict.looked < verdict.points:
        found.append(f"{verdict.looked} of {verdict.points} points were looked at")
    return found
