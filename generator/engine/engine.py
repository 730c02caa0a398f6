"""The engine: an experiment's stages, one after the other, each shown with its time and each able to be taken up again.

In: runs (of a scenario, or stored ones), the parts that it may not know, a directory. Out: that directory with all that
was measured, and the exit status: 0 when all of it is there, 1 when something is missing or was refused. The stages are
those of NXE (R. Guillier and P. Vicat-Blanc Primet, "A Software Suite for High Speed Transport Protocol
Experimentation").
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from generator import records
from generator.engine import archive, execution, reservation, stopping, verification
from generator.engine.deployment import Deployment
from generator.engine.experiment import STAGES, Experiment, Job, family, now
from generator.engine.parts import Facts, Parts, Tell
from generator.engine.verification import UnverifiedLabError
from generator.scenario import ScenarioRun, Stop
from labs import cli, host, rundir
from labs.compile import compile as compile_spec
from labs.plan import digest
from labs.record.experiment import Entry, Stage, StageName
from labs.runtime import cpu, kernel
from labs.runtime.base import LabError
from labs.runtime.binary import node_binary
from labs.units import NS_PER_SECOND, about

Runs = Callable[[], Sequence[ScenarioRun]]
ORDER: tuple[StageName, ...] = tuple(STAGES)


def job(run: ScenarioRun, virtual: bool, number: int | None = None) -> Job:
    """A run of a scenario as it is executed in a clock; DescriptionError and LabError where it cannot be."""
    plan = compile_spec(run.spec, host.virtual_facts() if virtual else host.facts())
    schedule = run.schedule(plan, "virtual" if virtual else "live")
    number = run.number if number is None else number
    entry = Entry(
        number=number,
        name=run.name,
        parameters=dict(run.parameters),
        seed=run.seed,
        plan_sha256=digest(plan),
        family=family(plan),
        directory=f"runs/{number:03}",
        expected_ns=schedule.program.expected_ns or schedule.program.longest_ns,
    )
    return Job(entry, plan, schedule.program, schedule.document)


def run(
    jobs: Sequence[Job],
    facts: Facts,
    *,
    virtual: bool,
    directory: Path,
    parts: Parts,
    tell: Tell,
    unverified: bool = False,
    stop: Stop | None = None,
    again: Runs | None = None,
) -> int:
    """A new experiment in a directory that is there and empty. LabError when it cannot begin: then nothing is left."""
    begun = time.monotonic_ns()
    try:
        reservation.check(jobs, virtual, directory)
    except LabError:
        with contextlib.suppress(OSError):
            directory.rmdir()
        raise
    with rundir.kept(directory):
        for name, content in facts.files.items():
            (directory / name).write_bytes(content)
        experiment = Experiment.create(directory, facts.origin, "virtual" if virtual else "live", unverified=unverified)
        with experiment.locked():
            for name in facts.files:
                experiment.record(directory / name)
            for each in jobs:
                experiment.add(each)
            experiment.save()
            return Engine(experiment, parts, tell, stop, again).go("reservation", begun)


def resume(
    directory: Path,
    *,
    parts: Parts,
    tell: Tell,
    start: StageName | None = None,
    stop: Stop | None = None,
    again: Runs | None = None,
) -> int:
    """Goes on with the first stage that is not complete, or from the one that is named."""
    with rundir.kept(directory):
        experiment = Experiment.load(directory)
        with experiment.locked():
            experiment = Experiment.load(directory)
            states = experiment.document.stages
            unfinished = next((stage for stage in ORDER if states[stage].status != "complete"), None)
            if (first := start or unfinished) is None:
                tell(f"{directory}: nothing is left to do: --from STAGE repeats from one on")
                return 0
            experiment.document.status, experiment.document.ended = "running", None
            engine = Engine(experiment, parts, tell, stop, again)
            if start is not None:
                engine.forget(start)
            return engine.go(first, time.monotonic_ns())


class Engine:
    def __init__(
        self, experiment: Experiment, parts: Parts, tell: Tell, stop: Stop | None = None, again: Runs | None = None
    ) -> None:
        self._experiment = experiment
        self._parts = parts
        self._tell = tell
        self._stop = stop
        self._again = again
        self._deployment = None if experiment.virtual else Deployment(experiment, tell)
        self._workers = 1
        self._stages: dict[StageName, Callable[[], str]] = {
            "reservation": self._reserve,
            "deployment": self._deploy,
            "configuration": self._configure,
            "execution": self._execute,
            "logs": self._collect,
            "analysis": self._analyse,
            "archiving": self._archive,
        }

    def forget(self, start: StageName) -> None:
        """What is to be repeated, from a stage on, is done anew."""
        if ORDER.index(start) <= ORDER.index("configuration"):
            self._drop_certificates()
        if ORDER.index(start) <= ORDER.index("execution"):
            for entry in self._experiment.runs:
                entry.status, entry.error = "waiting", None

    def go(self, start: StageName, begun_ns: int) -> int:
        """All stages from `start` on. Raises what ended it early; the document says incomplete then."""
        first = ORDER.index(start)
        if first <= ORDER.index("execution"):
            first = 0  # what is executed needs its resources and its lab, whatever was there before
        try:
            for stage in ORDER[first:]:
                self._stage(stage, begun_ns if stage == "reservation" else time.monotonic_ns())
            return 0 if not self._experiment.wanting() else 1
        except UnverifiedLabError:
            self._end("refused")
            raise
        except BaseException:
            self._end("incomplete")
            raise
        finally:
            if self._deployment is not None:
                self._deployment.close()

    def _stage(self, stage: StageName, begun_ns: int) -> None:
        state = Stage(status="running", started=now())
        self._experiment.document.stages[stage] = state
        self._experiment.save()
        self._tell(f"{STAGES[stage]} …")
        try:
            said = self._stages[stage]()
        except BaseException:
            state.status = "incomplete"
            raise
        took_ns = time.monotonic_ns() - begun_ns
        done = stage != "execution" or not self._experiment.wanting()
        state.status, state.seconds = "complete" if done else "incomplete", round(took_ns / NS_PER_SECOND, 3)
        self._experiment.save()
        self._tell(f"{STAGES[stage]}: {said} ({about(took_ns, 'time', 3)})")

    def _end(self, status: str) -> None:
        with contextlib.suppress(OSError):
            self._experiment.finish("refused" if status == "refused" else "incomplete")

    def _reserve(self) -> str:
        jobs = [self._experiment.job(entry) for entry in self._experiment.runs]
        self._workers = reservation.check(jobs, self._experiment.virtual, self._experiment.directory)
        kinds = len(verification.kinds(self._experiment.runs))
        if self._experiment.virtual and (line := cpu.notice()):
            self._tell(f"warning: {line}")
        several = f", {self._workers} at once" if self._workers > 1 else ""
        return f"{counted(len(jobs), 'run')} in {counted(kinds, 'lab')}{several}"

    def _deploy(self) -> str:
        if self._deployment is None:
            image = kernel.kernel(self._tell)
            self._experiment.document.kernel_sha256 = kernel.digest(image)
            self._experiment.document.binary_sha256 = kernel.digest(node_binary(cli.BINARY))
            return f"virtual kernel {image.name}"
        self._experiment.document.binary_sha256 = kernel.digest(node_binary(cli.BINARY))
        waiting = self._experiment.wanting()
        if not waiting:
            return "nothing is to be run"
        first = self._experiment.job(waiting[0]).plan
        self._deployment.ensure(first)
        return (
            f"lab {first.lab} is up: {counted(len(first.nodes), 'node')}, {counted(len(first.links), 'emulated link')}"
        )

    def _configure(self) -> str:
        self._drop_other_kernels()
        found = verification.certify(
            self._experiment, self._experiment.runs, self._parts, self._deployment, self._workers
        )
        wrong = verification.refusals(found)
        if wrong and not self._experiment.document.unverified:
            more = f" (and {counted(len(wrong) - 1, 'other lab')})" if len(wrong) > 1 else ""
            raise UnverifiedLabError(
                f"{wrong[0]}{more}: nothing was run: --unverified runs it all the same, and its records say so"
            )
        for line in wrong:
            self._tell(f"warning: {line}")
        rows = sum(len(each.certificate.rows) for each in found)
        verdict = f", {len(wrong)} of them not to be believed and run all the same" if wrong else " verified"
        return f"{counted(len(found), 'lab')}{verdict}, {rows} comparisons"

    def _drop_other_kernels(self) -> None:
        """Certificates of the virtual clock hold for the kernel and the node binary they were made with."""
        document = self._experiment.document
        made_with = [document.kernel_sha256, document.binary_sha256]
        if document.certified_with not in (None, made_with):
            self._drop_certificates()
        document.certified_with = made_with
        self._experiment.save()

    def _drop_certificates(self) -> None:
        for entry in verification.kinds(self._experiment.runs).values():
            verification.forget(self._experiment, entry)

    def _execute(self) -> str:
        begun = len(self._experiment.wanting())
        self._run(self._experiment.wanting())
        while batch := self._further():
            self._run(batch)
        left = self._experiment.wanting()
        for entry in left:
            self._tell(f"run {entry.number} ({entry.name}) is {entry.status}: {entry.error}")
        total = len(self._experiment.runs)
        again = f", {total - begun} before" if begun < total and not self._stop else ""
        return f"{total - len(left)} of {counted(total, 'run')} complete{again}"

    def _run(self, entries: Sequence[Entry]) -> None:
        if self._deployment is None:
            execution.in_virtual(self._experiment, entries, self._workers)
        else:
            execution.in_live(self._experiment, entries, self._deployment)

    def _further(self) -> list[Entry]:
        """More runs, where the scenario repeats them until an interval is narrow enough."""
        if self._stop is None or self._again is None:
            return []
        self._tables([entry for entry in self._experiment.runs if not self._has_tables(entry)])
        found = stopping.values(self._parts.analyse(self._experiment.directory), self._stop.metric)
        if not any(found.values()):
            raise LabError(f'stop: no run has a "{self._stop.metric}": name a metric that its flows have')
        self._tell(stopping.words(self._stop, found, self._parts.estimate))
        seeds: dict[stopping.Point, list[int]] = {}
        for entry in self._experiment.runs:
            seeds.setdefault(stopping.point_of(entry.parameters), []).append(entry.seed)
        first = {stopping.point_of(each.parameters): each for each in self._again()}
        batch = []
        for point, seed in stopping.further(self._stop, found, seeds, self._parts.estimate, self._workers):
            number = self._experiment.runs[-1].number + 1
            more = job(first[point].again(number, seed), self._experiment.virtual)
            same = next(each for each in self._experiment.runs if each.parameters == more.entry.parameters)
            more.entry.certificate, more.entry.verified = same.certificate, same.verified
            self._experiment.add(more)
            batch.append(more.entry)
        self._experiment.save()
        return batch

    def _has_tables(self, entry: Entry) -> bool:
        return f"{entry.directory}/flows.parquet" in self._experiment.files

    def _collect(self) -> str:
        kept = self._tables(self._experiment.runs)
        return f"tables of {counted(kept, 'run')}"

    def _tables(self, entries: Sequence[Entry]) -> int:
        """Makes the tables of runs that left something; of how many."""
        kept = 0
        for entry in entries:
            if entry.status == "waiting":
                continue
            job = self._experiment.job(entry)
            self._experiment.check(entry)  # what is not made anew here must be what it was
            try:
                why = records.collect(self._experiment.place(entry), job.schedule, job.program.traffic)
                if why is not None and entry.status == "complete":
                    entry.status, entry.error = "incomplete", why
                kept += 1
            except ValueError as error:
                entry.status, entry.error = "incomplete", entry.error or f"its records are not whole: {error}"
            self._experiment.record_results(entry)
        self._experiment.save()
        return kept

    def _analyse(self) -> str:
        document = self._experiment.document
        document.status, document.ended = "incomplete" if self._experiment.wanting() else "complete", now()
        self._experiment.save()
        try:
            summary = self._parts.analyse(self._experiment.directory)
            report = self._parts.report(self._experiment.directory)
        except ValueError as error:
            raise LabError(str(error)) from None
        return f"{counted(len(summary['points']), 'point')}, {report.name}"

    def _archive(self) -> str:
        archive.clean(self._experiment.directory)
        self._experiment.finish("incomplete" if self._experiment.wanting() else "complete")
        path = archive.pack(self._experiment.directory, self._experiment.name)
        return f"{path.name}, {about(path.stat().st_size, 'size', 3)}"


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
