"""The engine: an experiment's stages, one after the other, each shown with its time and each able to be taken up again.

In: runs (of a scenario, or stored ones), the parts that it may not know, a directory. Out: that directory with all that
was measured, and the exit status: 0 when all of it is there, 1 when something is missing or was refused. The stages are
those of NXE (R. Guillier and P. Vicat-Blanc Primet, "A Software Suite for High Speed Transport Protocol
Experimentation").
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

from ewan.experiments.engine import archive, execution, forecast, link_loads, reservation, stop_rule, verification
from ewan.experiments.engine.deployment import Deployment
from ewan.experiments.engine.executor import Executor, ThisMachine
from ewan.experiments.engine.experiment import SOURCES, Experiment
from ewan.experiments.engine.parts import Parts
from ewan.experiments.engine.preparation import ReadyExperiment, made_again, repeated
from ewan.experiments.engine.stored_runs import ResultKeeper
from ewan.experiments.engine.unit import now
from ewan.experiments.engine.verification import UnverifiedLabError
from ewan.experiments.store import Store
from ewan.generator import readers, records
from ewan.generator.scenario import ScenarioRun, Stop
from ewan.labs import rundir
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.congestion import library
from ewan.labs.context import Context
from ewan.labs.record.experiment import STAGES, Entry, Stage, StageName, checksum
from ewan.labs.runtime import cpu
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.multi_machine import MultiMachineRuntime
from ewan.labs.runtime.program import KernelModule, Program

Repeat = Callable[[dict[str, str | int], int, int], ScenarioRun]
"""The run of a scenario at a point of its parameters, with a number and a seed, for stop conditions."""

ORDER: tuple[StageName, ...] = tuple(STAGES)
MOST_TOLD = 20
"""Runs that are not complete, each in a line."""


def run(
    prepared: ReadyExperiment,
    *,
    parts: Parts,
    context: Context,
    stop: Stop | None = None,
    repeat: Repeat | None = None,
    fresh: bool = False,
    executor: Executor | None = None,
    last: StageName = ORDER[-1],
) -> int:
    """Run a new experiment, to the end of the stage `last`, and return its exit status. `fresh`: nothing is taken from
    the store; `executor`: for runs that are not there, in the virtual clock; this machine if absent."""
    experiment = prepared.experiment
    engine = Engine(experiment, parts, context, stop, repeat, prepared.workers, fresh=fresh, executor=executor)
    try:
        with rundir.kept(experiment.directory), experiment.locked():
            experiment.save()
            return engine.go("reservation", time.monotonic_ns() - prepared.took_ns, last)
    except LabError:
        if engine.module_refused:
            prepared.drop()
        raise


def resume(
    directory: Path,
    *,
    parts: Parts,
    context: Context,
    start: StageName | None = None,
    stop: Stop | None = None,
    repeat: Repeat | None = None,
    fresh: bool = False,
    executor: Executor | None = None,
) -> int:
    """Goes on with the first stage that is not complete, or from the named one. Stages that are done again take nothing
    from the store; neither does any with `fresh`, or of a repetition."""
    with rundir.kept(directory, "copy the experiment to where you may write, and resume the copy"):
        experiment = Experiment.load(directory)
        with experiment.locked():
            experiment = Experiment.load(directory)
            states = experiment.document.stages
            unfinished = next((stage for stage in ORDER if states[stage].status != "complete"), None)
            if (first := start or unfinished) is None:
                context.reporter.tell(f"{directory}: nothing is left to do: --from STAGE repeats from one on")
                return 0
            if not all(entry.written for entry in experiment.runs):
                experiment.make = made_again(directory)
            experiment.document.status, experiment.document.ended = "running", None
            again = start is not None and ORDER.index(start) <= ORDER.index("execution")
            fresh = fresh or again or experiment.document.rerun_of is not None
            engine = Engine(experiment, parts, context, stop, repeat, fresh=fresh, executor=executor)
            if start is not None:
                engine.forget(start)
            return engine.go(first, time.monotonic_ns())


class Engine:
    """The stages of one experiment. `workers`: how many runs may be at work at once, where that was asked already;
    `fresh`: nothing is taken from the store; `executor`: of runs of the virtual clock, this machine if absent."""

    def __init__(
        self,
        experiment: Experiment,
        parts: Parts,
        context: Context,
        stop: Stop | None = None,
        repeat: Repeat | None = None,
        workers: int | None = None,
        *,
        fresh: bool = False,
        executor: Executor | None = None,
    ) -> None:
        self._experiment = experiment
        self._parts = parts
        self._context, self._tell = context, context.reporter.tell
        self._stop = stop
        self._repeat = repeat
        self._deployment = None if experiment.virtual else Deployment(experiment, context)
        self._executor = executor or ThisMachine(context)
        self._fresh, self._tables_again = fresh, False
        self._keeping: ResultKeeper | None = None
        self._reserved = workers
        self._workers = workers or 1
        self._wall = forecast.NOTHING
        self.module_refused = False
        """A module of the runs, or a state of theirs for which a run waits, cannot be had: no run has begun."""
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
        """Discards the results from a stage on, so that they are made again."""
        self._tables_again = start == "logs"
        if ORDER.index(start) <= ORDER.index("configuration"):
            self._drop_certificates()
        if ORDER.index(start) <= ORDER.index("execution"):
            for entry in self._experiment.runs:
                entry.begin_anew()

    def go(self, start: StageName, begun_ns: int, last: StageName = ORDER[-1]) -> int:
        """Run all stages from `start` on, to `last`. An error that ends it early is raised; the document's status is
        incomplete then."""
        first = ORDER.index(start)
        if first <= ORDER.index("execution"):
            first = 0  # what is executed needs its resources and its lab, whatever was there before
        try:
            for stage in ORDER[first : ORDER.index(last) + 1]:
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
            outcome = self._stages[stage]()
        except BaseException:
            state.status = "incomplete"
            raise
        took_ns = time.monotonic_ns() - begun_ns
        done = stage != "execution" or not self._experiment.wanting()
        state.status, state.seconds = "complete" if done else "incomplete", round(took_ns / NS_PER_SECOND, 3)
        self._experiment.save()
        self._tell(f"{STAGES[stage]}: {outcome} ({about(took_ns, 'time', 3)})")

    def _end(self, status: str) -> None:
        with contextlib.suppress(OSError):
            self._experiment.finish("refused" if status == "refused" else "incomplete")

    def _reserve(self) -> str:
        experiment = self._experiment
        if not experiment.virtual:
            self._check_modules()
        if self._reserved is None:
            wanted = reservation.of_stored(experiment, self._over())
            self._workers = reservation.check(wanted, experiment.virtual, experiment.directory)
        self._hold_against_the_host()
        kinds = len(verification.kinds(self._experiment.runs))
        if self._experiment.virtual and (line := cpu.notice()):
            self._tell(f"warning: {line}")
        several = f", {self._workers} at once" if self._workers > 1 else ""
        return f"{counted(len(experiment.runs), 'run')} in {counted(kinds, 'lab')}{several}"

    def _hold_against_the_host(self) -> None:
        """Refuses runs that this host cannot carry in the live clock; other machines are not checked."""
        asked: set[tuple[str, str]] = set()
        elsewhere = self._experiment.virtual or self._context.machines is not None
        for entry in () if elsewhere else self._experiment.wanting():
            job = self._experiment.job(entry)
            crossed = job.schedule.paths
            wanted = link_loads.loads(crossed, (link.name for link in job.plan.links))
            key = entry.family, repr(sorted(wanted.items()))
            if key in asked:
                continue
            asked.add(key)
            why = self._parts.outside(self._context, job.plan, wanted)
            if why and not self._experiment.document.unverified:
                raise UnverifiedLabError(
                    f"run {entry.number}: outside what this host can be trusted with: {why}: nothing was run: "
                    "--runtime virtual runs it exactly, --unverified runs it all the same and marks what comes of it"
                )
            if why:
                self._tell(f"warning: run {entry.number}: outside what this host can be trusted with: {why}")

    def _deploy(self) -> str:
        if self._deployment is None:
            versions, words = self._executor.ready()
            if self._executor.here:
                self._check_modules()
            self._experiment.document.kernel_sha256 = versions.kernel
            self._experiment.document.binary_sha256 = versions.binary
            store = None if self._context.store is None else Store(self._context.store, self._context.environment)
            self._keeping = ResultKeeper(self._experiment, store, versions, self._tell, fresh=self._fresh)
            self._keeping.name(entry for entry in self._experiment.wanting() if entry.written)
            return f"{words}{self._forecast()}"
        self._experiment.document.binary_sha256 = checksum(node_binary(self._context.binary))
        waiting = self._experiment.wanting()
        if not waiting:
            return "nothing is to be run"
        first = self._experiment.job(waiting[0]).plan
        self._deployment.ensure(first)
        return (
            f"lab {first.lab} is up: {counted(len(first.nodes), 'node')}, {counted(len(first.links), 'emulated link')}"
        )

    def _check_modules(self) -> None:
        """Tries the modules of all runs, so that a mistake in one of them, or in a state of theirs for which a run
        waits, is reported once, before any run."""
        if not (self._experiment.directory / SOURCES).is_dir():
            return  # no run has a module, so no program need be read for them
        points = {stop_rule.point_of(entry.parameters): entry for entry in self._experiment.wanting() if entry.written}
        found: dict[str | None, dict[str, KernelModule]] = {}
        waiting: dict[str | None, dict[Hashable, Program]] = {}
        for entry in points.values():
            job = self._experiment.job(entry)
            kernel = None if job.plan.kernel is None else job.plan.kernel.name
            for module in job.program.modules or ():
                found.setdefault(kernel, {}).setdefault(module.key, module)
            if (traffic := job.program.traffic) is not None and traffic.conditions:
                asked = traffic.conditions, tuple(flow.socket.congestion for flow in traffic.flows)
                waiting.setdefault(kernel, {}).setdefault(asked, job.program)
        try:
            for kernel, modules in found.items():
                if self._experiment.virtual:
                    runtime = self._context.virtual(tell=self._tell, kernel=kernel)
                    library.check(modules.values(), runtime, node_binary(self._context.binary))
                    for program in waiting.get(kernel, {}).values():
                        library.check_states(program, runtime, node_binary(self._context.binary))
                elif self._context.machines is None:
                    self._context.host_kernel().check(modules.values())
        except LabError:
            self.module_refused = True
            raise

    def _forecast(self) -> str:
        """Forecasts the time of runs; without a forecast they run all the same."""
        waiting = self._experiment.wanting()
        known = {entry.number for entry in self._keeping.known(waiting)} if self._keeping else set()
        waiting = [entry for entry in waiting if entry.number not in known]
        if not self._executor.here or not any(entry.demand for entry in waiting):
            return ""
        try:
            self._wall = forecast.Forecast(self._experiment.runs, self._parts.wall(self._context))
        except LabError as error:
            self._tell(f"warning: the time that the runs will take is not known: {error}")
            return ""
        return f"; {self._wall.words(waiting, self._workers)}"

    def _configure(self) -> str:
        self._drop_other_kernels()
        result = verification.certify(
            self._context,
            self._experiment,
            self._experiment.runs,
            self._parts,
            self._deployment,
            self._workers,
            self._keeping,
            may_measure=self._deployment is not None or self._executor.here,
        )
        wrong = verification.refusals(result)
        if wrong and not self._experiment.document.unverified:
            more = f" (and {counted(len(wrong) - 1, 'other lab')})" if len(wrong) > 1 else ""
            raise UnverifiedLabError(
                f"{wrong[0]}{more}: nothing was run: --unverified runs it all the same, and its records say so"
            )
        for line in wrong:
            self._tell(f"warning: {line}")
        rows = sum(len(each.certificate.rows) for each in result)
        verdict = f", {len(wrong)} of them not to be believed and run all the same" if wrong else " verified"
        return f"{counted(len(result), 'lab')}{verdict}, {rows} comparisons"

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
        for entry in left[:MOST_TOLD]:
            self._tell(f"run {entry.number} ({entry.name}) is {entry.status}: {entry.error}")
        if len(left) > MOST_TOLD:
            self._tell(f"and {len(left) - MOST_TOLD} more runs are not complete: experiment.json tells why")
        total = len(self._experiment.runs)
        again = f", {total - begun} before" if begun < total and not self._stop else ""
        return f"{total - len(left)} of {counted(total, 'run')} complete{again}"

    def _run(self, entries: Sequence[Entry]) -> None:
        if self._deployment is None:
            assert self._keeping is not None, "the deployment comes before"
            around = self._context, self._experiment, entries, self._workers, self._keeping
            execution.from_store(*around, executes=self._executor.here)
            if left := [entry for entry in entries if entry.status != "complete"]:
                self._executor.execute(self._experiment, left, self._keeping, self._workers, self._wall)
                if known := self._keeping.met():
                    self._tell(f"{known} more runs were in the store ({self._keeping.place})")
        else:
            execution.in_live(self._context, self._experiment, entries, self._deployment)

    def _further(self) -> list[Entry]:
        """More runs, where the scenario repeats them until an interval is narrow enough."""
        if self._stop is None or self._repeat is None:
            return []
        self._tables([entry for entry in self._experiment.runs if not self._has_tables(entry)])
        result = stop_rule.values(self._parts.analyse(self._experiment.directory), self._stop.metric)
        if not any(result.values()):
            raise LabError(f'stop: no run has a "{self._stop.metric}": name a metric that its flows have')
        self._tell(stop_rule.words(self._stop, result, self._parts.estimate))
        seeds: dict[stop_rule.Point, list[int]] = {}
        for entry in self._experiment.runs:
            seeds.setdefault(stop_rule.point_of(entry.parameters), []).append(entry.seed)
        first = {stop_rule.point_of(entry.parameters): entry for entry in reversed(self._experiment.runs)}
        batch = []
        for point, seed in stop_rule.further(self._stop, result, seeds, self._parts.estimate, self._workers):
            number = self._experiment.runs[-1].number + 1
            same = first[point]
            again = self._repeat(same.parameters, number, seed)
            more = repeated(again, self._experiment.virtual, same.demand, self._over())
            more.entry.certificate, more.entry.verified = same.certificate, same.verified
            self._experiment.add(more)
            self._experiment.save_run(more.entry)
            batch.append(more.entry)
        if self._keeping is not None:
            self._keeping.name(batch)
        return batch

    def _over(self) -> MultiMachineRuntime | None:
        """The machines over which labs stretch."""
        return None if self._context.machines is None else self._context.multi_machine()

    def _has_tables(self, entry: Entry) -> bool:
        return f"{entry.directory}/flows.parquet" in self._experiment.files

    def _collect(self) -> str:
        kept = self._tables(self._experiment.runs, again=self._tables_again)
        return f"tables of {counted(kept, 'run')}"

    def _tables(self, entries: Sequence[Entry], again: bool = False) -> int:
        """Makes the tables of runs that left something, of those that have tables only where it is to be done `again`;
        how many have some."""
        kept = 0
        problems: dict[str, list[int]] = {}
        for entry in entries:
            if entry.status == "waiting" or not entry.written:
                continue
            self._experiment.check_results(entry)  # tables that are not made anew here must have their old bytes
            if (again or not self._has_tables(entry)) and not self._make_tables(entry):
                continue
            kept += 1
            for line in readers.problems(self._experiment.place(entry)):
                problems.setdefault(line, []).append(entry.number)
        for line, runs in problems.items():
            self._tell(f"{f'run {runs[0]}' if len(runs) == 1 else counted(len(runs), 'run')}: {line}")
        return kept

    def _make_tables(self, entry: Entry) -> bool:
        """Make the tables of a run and return whether its records sufficed; errors go into the run's entry."""
        job, made = self._experiment.job(entry), True
        try:
            why = records.collect(self._experiment.place(entry), job.schedule, job.plan.links)
            if why is not None and entry.status == "complete":
                entry.status, entry.error = "incomplete", why
        except ValueError as error:
            entry.status, entry.error, made = "incomplete", entry.error or f"its records are not whole: {error}", False
        self._experiment.record_results(entry)
        self._experiment.save_run(entry)
        return made

    def _analyse(self) -> str:
        document = self._experiment.document
        document.status, document.ended = "incomplete" if self._experiment.wanting() else "complete", now()
        self._experiment.save()
        try:
            summary = self._parts.analyse(self._experiment.directory)
            report = self._parts.report(self._experiment.directory)
        except ValueError as error:
            raise LabError(str(error)) from None
        return f"{counted(len(summary.points), 'point')}, {report.name}"

    def _archive(self) -> str:
        archive.clean(self._experiment.directory)
        self._experiment.finish("incomplete" if self._experiment.wanting() else "complete")
        path = archive.pack(self._experiment.directory, self._experiment.name)
        return f"{path.name}, {about(path.stat().st_size, 'size', 3)}"


def counted(number: int, what: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
