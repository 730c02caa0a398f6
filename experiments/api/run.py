"""A run of a lab that Python put together, and its results.

In: a scenario of one run, the handles of its steps. Out: tables, metrics and flows, and the ends of its programs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ewan.analysis.counted_packets import LOST
from ewan.experiments.api.experiment import check_clock
from ewan.experiments.api.experiment import execute as execute_experiment
from ewan.experiments.engine import preparation, unit
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.outcome import INTERRUPTED
from ewan.experiments.engine.source import SCENARIO
from ewan.generator.scenario import Scenario, ScenarioRun
from ewan.labs.base import documents, writing
from ewan.labs.base.errors import UserError
from ewan.labs.record import commands, quantities
from ewan.labs.record import schedule as schedules
from ewan.labs.record.commands import CommandEntry, CommandsDocument
from ewan.labs.record.schedule import Clock, NamedSchedule
from ewan.labs.runtime import kernel
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.virtual import check_path

if TYPE_CHECKING:
    import polars as pl

    from ewan.analysis.one_run import Line, SingleRun


LINK_FLOWS = "link_flows.csv"
"""The counts of flows at links, of a run in which links count flows."""


@dataclass(eq=False)
class LabFlow:
    """A flow of the lab's own generator: a step of the scenario. Its figures are in `RunResult.flow`."""

    name: str


@dataclass(eq=False)
class LabProgram:
    """A program that a run starts in a node. Its end is known after `Lab.run`; times are nanoseconds from the begin of
    the run."""

    name: str
    node: str
    command: str
    port: int | None = field(default=None, repr=False)
    """The port at which it is to listen before others start."""
    _entry: CommandEntry | None = field(default=None, repr=False)
    _directory: Path | None = field(default=None, repr=False)
    _owner: object = field(default=None, repr=False)

    @property
    def exit_code(self) -> int | None:
        """Its exit status; None if a signal ended it or the run ended before it."""
        return self._known.status

    @property
    def signal(self) -> str | None:
        """The signal that ended it, as `SIGKILL`."""
        return self._known.signal

    @property
    def stopped(self) -> bool:
        """Return whether the run ended it: it is a service, or the time was over."""
        return self._known.stopped

    @property
    def error(self) -> str | None:
        """The reason why it could not be started."""
        return self._known.error

    @property
    def started(self) -> int | None:
        """The time when it started, in nanoseconds; None if it did not."""
        return self._known.started_ns

    @property
    def ended(self) -> int:
        """The time when it ended, in nanoseconds; UserError if it did not."""
        if self.ended_or_none is None:
            raise UserError(f"{self.name} ({self.command}) has not ended: {self.error or 'the time was over'}")
        return self.ended_or_none

    @property
    def ended_or_none(self) -> int | None:
        """The same, and None if it did not end."""
        return self._known.ended_ns

    @property
    def output(self) -> str:
        """Its standard output."""
        return self._text(self._known.out)

    @property
    def error_output(self) -> str:
        """Its standard error."""
        return self._text(self._known.err)

    @property
    def files(self) -> Path | None:
        """The directory of the files that it wrote to `$EWAN_OUT`; None if it wrote none."""
        assert self._directory is not None
        return self._directory / self._known.files if self._known.files else None

    @property
    def succeeded(self) -> bool:
        """Return whether it ended with status 0, or is a service that the run ended, and listened where it was to."""
        served = self._known.service and self.stopped and self.started is not None
        return self.error is None and not self._deaf and (self.exit_code == 0 or served)

    @property
    def _deaf(self) -> bool:
        """Return whether it never listened where it was to."""
        return self.port is not None and not isinstance(self._known.ready_ns, int)

    @property
    def outcome(self) -> str:
        """Its end in a few words, with the last lines that it wrote to standard error."""
        if self._entry is None:
            return "has not run"
        how = self.error or ("ended with the run" if self.stopped else self.signal or f"status {self.exit_code}")
        if self.started is None and not self.error:
            how = "was not started: what it waits for did not come before the run ended"
        elif self._deaf:
            how += f", and never listened at port {self.port}"
        last = self.error_output.strip().splitlines()[-3:]
        return "\n  ".join([how, *last])

    @property
    def _known(self) -> CommandEntry:
        if self._entry is None:
            raise UserError(f"{self.name} ({self.command}) has not run: call lab.run() before")
        return self._entry

    def _text(self, name: str) -> str:
        assert self._directory is not None
        return (self._directory / name).read_text(errors="replace") if name else ""

    def ended_as(self, entry: CommandEntry, directory: Path, owner: object) -> None:
        """Take over what a run recorded of it. `owner` removes the directory when nothing needs it any more."""
        self._entry, self._directory, self._owner = entry, directory, owner


@dataclass(frozen=True)
class Lost:
    """Packets that did not leave the links, by the cause. `by_link`: by the links' loss models; `by_queue`: the buffer
    was full, or the queue's discipline dropped them; `by_outage`: the link went down."""

    by_link: int
    by_queue: int
    by_outage: int
    all: int
    """Those of every cause, which are more: packets beyond a black hole's or a policer's bounds, for example."""


@dataclass(frozen=True)
class FlowResult:
    """The measurements of a flow. `row`: its row of the table `flows`; `counted`: the last rows of `link_flows` of its
    packets at each direction of each link, by which the packets are counted; None where links counted no flows."""

    row: dict[str, object]
    counted: pl.DataFrame | None

    @property
    def received_bytes(self) -> int:
        """The payload that the sink got."""
        value = self.row["received_bytes"]
        assert isinstance(value, int)
        return value

    @property
    def lost(self) -> Lost:
        """The packets that links lost; UserError where links counted no flows."""
        return Lost(
            by_link=self._sum("lost_packets"),
            by_queue=self._sum("queue_full_packets", "aqm_packets"),
            by_outage=self._sum("cut_packets"),
            all=self._sum(*LOST),
        )

    @property
    def marked(self) -> int:
        """The packets that links marked (ECN); UserError where links counted no flows."""
        return self._sum("marked_packets")

    def _sum(self, *columns: str) -> int:
        if self.counted is None:
            raise UserError(f"{self.row['step']}: links counted no flows: write lab.run(count_flows=True)")
        return int(sum(self.counted[column].sum() for column in columns))


class RunResult:
    """The results of a run. `directory`: its records, with `scenario.yaml`, of which `ewan run` makes the same run."""

    def __init__(
        self, directory: Path, schedule: NamedSchedule, owner: tempfile.TemporaryDirectory[str] | None
    ) -> None:
        self.directory = directory
        self._schedule, self._owner = schedule, owner

    def table(self, name: str) -> pl.DataFrame:
        """A table of docs/reference/metrics.md; without rows where the run has none. ValueError for an unknown one."""
        return self._run.table(name)

    def metric(self, words: str) -> float | None:
        """A metric in SI units, as `"aggregate goodput"` or `"packet loss of client"`; None where the run has none.
        UserError for a step that is none."""
        chosen = quantities.parse(words).selection
        steps = [flow.step for flow in self._schedule.flows]
        steps += [command.step for command in self._schedule.commands]
        if chosen is not None and (missing := chosen.missing(steps)) is not None:
            raise UserError(f"{words}: {missing}")
        return self._run.metric(words)

    def series(self, name: str, step: str = "", flow: str = "", link: str = "", window: float = 0.0) -> dict[str, Line]:
        """The lines of a series over time, by their labels: times in seconds and values."""
        return self._run.series(name, step, flow, link, window)

    def flow(self, step: LabFlow | LabProgram | str) -> FlowResult:
        """The flow of a step; UserError if it has none, or several."""
        if not isinstance(step, (str, LabFlow, LabProgram)):
            raise UserError(f"{step!r}: write the name of a step, or what start or send returned")
        name = step if isinstance(step, str) else step.name
        rows = [row for row in self.table("flows").iter_rows(named=True) if name in (row["step"], row["name"])]
        if len(rows) != 1:
            raise UserError(
                f"{name} has {len(rows)} flows: "
                + ("see result.table('flows')" if rows else "write flows={...} where it starts")
            )
        if not (self.directory / LINK_FLOWS).exists():
            return FlowResult(rows[0], None)
        counted = self.table("link_flows")
        mine = counted.filter(counted["flow"] == rows[0]["flow"])
        return FlowResult(rows[0], mine.group_by("link", "direction", "entry", maintain_order=True).last())

    @cached_property
    def _run(self) -> SingleRun:
        from ewan.analysis.one_run import SingleRun

        files = {name: path.read_bytes() for name, path in unit.results(self.directory) if name.endswith(".parquet")}
        return SingleRun(files, (self.directory / "plan.json").read_bytes(), schedules.unnamed_to_json(self._schedule))


def execute(
    scenario: Scenario, steps: Sequence[LabFlow | LabProgram], clock: Clock, directory: Path | None
) -> RunResult:
    """Run a scenario of one run; the handles of its steps get what it recorded of them. UserError where it could not
    be executed, or a flow of the generator failed."""
    runs = scenario.runs()
    if len(runs) != 1:
        raise UserError(f"{scenario.name} stands for {len(runs)} runs: write ewan.run for it")
    check_clock(clock)
    if clock == "virtual":
        return execute_run(runs[0], steps, directory)
    place, owner = _place(directory)
    execute_experiment(scenario, place, clock, stored=False)
    (run,) = Experiment.load(place).runs
    left = place / run.directory
    schedule = schedules.from_json((left / "schedule.json").read_bytes())
    return _result(left, schedule, steps, run.error, owner)


def execute_run(run: ScenarioRun, steps: Sequence[LabFlow | LabProgram], directory: Path | None) -> RunResult:
    """The same for one of a scenario's runs, in the virtual clock."""
    check_path(Path.cwd())
    job = preparation.repeated(run, virtual=True)
    place, owner = _place(directory)
    writing.write(place / SCENARIO, run.scenario.text)
    ended = unit.run(job.plan, job.program, job.schedule, place, _tools())
    if ended.error == INTERRUPTED:
        raise KeyboardInterrupt
    return _result(place, job.schedule, steps, ended.error, owner)


def _place(directory: Path | None) -> tuple[Path, tempfile.TemporaryDirectory[str] | None]:
    """The directory of a run, and the temporary directory that it is."""
    owner = tempfile.TemporaryDirectory(prefix="ewan-run-") if directory is None else None
    place = Path(owner.name) if owner is not None else directory
    assert place is not None
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{place}: {error.strerror}: write another directory") from None
    return place, owner


def _result(
    place: Path,
    schedule: NamedSchedule,
    steps: Sequence[LabFlow | LabProgram],
    error: str | None,
    owner: tempfile.TemporaryDirectory[str] | None,
) -> RunResult:
    failed = _commands_of(place, steps, schedule, owner)
    if error is not None and not failed:
        raise UserError(error)
    return RunResult(place, schedule, owner)


@cache
def _tools() -> unit.Tools:
    return unit.Tools(kernel.kernel(lambda line: None), node_binary())


def _commands_of(place: Path, steps: Sequence[LabFlow | LabProgram], schedule: NamedSchedule, owner: object) -> bool:
    """Hands its record to each program; return whether one of them failed."""
    try:
        data = documents.read_object(place / commands.FILE)
    except FileNotFoundError:
        return False
    found = documents.checked(CommandsDocument, data, commands.FILE)
    entries = {each.step: found.commands[each.index] for each in schedule.commands}
    failed = False
    for step in steps:
        if isinstance(step, LabProgram):
            entry = entries[step.name]
            step.ended_as(entry, place, owner)
            failed |= not step.succeeded
    return failed
