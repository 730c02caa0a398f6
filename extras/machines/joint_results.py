"""The results of one run from all machines of a lab become those that one machine would have left.

In: a directory of each machine, with the files that `ewan-node batch` writes (emulator/batch/src), and the program's
parts. Out: the same files of the whole run: numbers of commands, flows and spinners are those of the whole. A lost
machine has no results, and its flows and commands have an error. `clocks.json` has how far the machines' clocks were
apart."""

from __future__ import annotations

import contextlib
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeVar

from ewan.extras.machines import flow_records
from ewan.extras.machines.joint_probes import Offset
from ewan.extras.machines.programs import SINK, SOURCE, NodePlaces, ProgramSplit
from ewan.extras.machines.run_documents import LinksDocument
from ewan.generator.traffic_request import FlowRecord, TrafficResult
from ewan.labs.base import codec, documents
from ewan.labs.base.codec import Document, Struct, replace
from ewan.labs.base.documents import DocumentError
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.base.writing import anew, write
from ewan.labs.record import events as events_of_runs
from ewan.labs.record.commands import CommandEntry, CommandsDocument
from ewan.labs.record.events import Event, EventOutcome, EventOutcomes
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Command, Program

TABLES = (
    "links.csv",
    "link_flows.csv",
    "link_waits.csv",
    "command_sockets.csv",
    "classes.csv",
    "drops.csv",
    "releases.csv",
    "spinners.csv",
    "machine.csv",
)
FLOWS = tuple(f"traffic/{name}.csv" for name in ("series", "media", "goodput", "exchanges", "frames"))
GOODPUT = "traffic/goodput.csv"
DOCUMENTS = ("commands.json", "links.json", "traffic/traffic.json")
Kind = TypeVar("Kind")
_NOTHING = Offset(0, 0)


@dataclass(frozen=True, slots=True)
class LostMachine:
    """A machine, and when it was last heard of, in ns after T0."""

    machine: str
    at_ns: int

    @property
    def words(self) -> str:
        """One line: which seconds count."""
        whole = self.at_ns // NS_PER_SECOND
        count = (
            "no second counts" if whole == 0 else "second 0 counts" if whole == 1 else f"seconds 0–{whole - 1} count"
        )
        return f"machine {self.machine} was lost {about(self.at_ns, 'time', 3)} after T0: {count}"


class ClockEntry(Struct):
    """The time (ns) by which a machine's clock was ahead of the reference's, and its uncertainty at any moment."""

    before_ns: int
    after_ns: int
    uncertainty_ns: int


class ClocksDocument(Document, tag="ewan-clocks/1"):
    """clocks.json."""

    reference: str
    machines: Mapping[str, ClockEntry]


class LostMachineDocument(Document, tag="ewan-lost/1"):
    """lost.json: from when after T0, and until when, a machine was missing."""

    machine: str
    at_ns: int
    until_ns: int


@dataclass(frozen=True, slots=True)
class Clocks:
    """The time by which each machine's clock was ahead of that of the `reference`, before and after a run."""

    reference: str
    before: Mapping[str, Offset]
    after: Mapping[str, Offset]

    def drift_ns(self, machine: str) -> int:
        """The time (ns) by which it was further ahead at the run's middle than before it."""
        return (self.after.get(machine, _NOTHING).ns - self.before.get(machine, _NOTHING).ns) // 2

    def uncertainty_ns(self, machine: str) -> int:
        """The uncertainty (ns) of the difference at any moment of the run."""
        before, after = self.before.get(machine, _NOTHING), self.after.get(machine, _NOTHING)
        return max(before.uncertainty_ns, after.uncertainty_ns) + abs(self.drift_ns(machine))

    @property
    def kept(self) -> ClocksDocument:
        """The clocks in the form of the run's files."""
        machines = {
            name: ClockEntry(before.ns, self.after.get(name, before).ns, self.uncertainty_ns(name))
            for name, before in self.before.items()
        }
        return ClocksDocument(self.reference, machines)


@dataclass(frozen=True, slots=True)
class MachineResults:
    """The results of a run. `places`: machine → its directory; `recovered_ns`: for events (by number) that took a
    link's carrier or gave it back, the time from T0 when routes carried every pair again."""

    places: Mapping[str, Path]
    clocks: Clocks
    lost: LostMachine | None = None
    recovered_ns: Mapping[int, int] = field(default_factory=dict)


def merge(
    program: Program,
    split: ProgramSplit,
    where: NodePlaces,
    first_spinner: Mapping[str, int],
    found: MachineResults,
    directory: Path,
) -> None:
    """`first_spinner`: machine → its first spinner's number in the whole plan."""
    places, clocks, lost = found.places, found.clocks, found.lost
    missing = f"machine {lost.machine} was lost" if lost is not None else "its machine left no record"
    for place in places.values():
        _copy(place, directory)
    for name in (*TABLES, *FLOWS):
        if name != GOODPUT:
            _table(places, name, directory / name, _counted_from(first_spinner) if name in TABLES else _as_it_is)
    write(directory / "clocks.json", codec.ordered(clocks.kept))
    if program.commands:
        commands = _commands(program, split, _read(CommandsDocument, places, "commands.json"), missing)
        write(directory / "commands.json", codec.ordered(commands))
    if program.events:
        events = _events(program, split, where, places, missing)
        for number, at_ns in found.recovered_ns.items():
            events[number] = replace(events[number], recovered_ns=at_ns)
        order = sorted(events, key=lambda number: program.events[number].at_ns)
        document = EventOutcomes(tuple(events[number] for number in order))
        write(directory / events_of_runs.FILE, codec.ordered(document))
    links = _links(_read(LinksDocument, places, "links.json"), first_spinner)
    write(directory / "links.json", codec.ordered(links))
    if program.traffic is not None:
        request = directory / "traffic/request.json"
        request.parent.mkdir(exist_ok=True)
        write(request, codec.ordered(program.traffic))
        flows = _Flows(split, _read(TrafficResult, places, "traffic/traffic.json"), clocks, missing)
        write(directory / "traffic/traffic.json", codec.ordered(flows.document()))
        _table(places, GOODPUT, directory / GOODPUT, flows.of_whole)
        flows.add_sums(directory / GOODPUT)
    if lost is not None:
        kept = LostMachineDocument(lost.machine, lost.at_ns, program.expected_ns)
        write(directory / "lost.json", codec.ordered(kept))


def unpack(packed: Path, place: Path) -> None:
    """The regular files of a tar archive, below `place`; LabError for one that leads out of it."""
    place.mkdir(parents=True, exist_ok=True)
    with tarfile.open(packed) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                raise LabError(f"results of a machine: {member.name}: it leads out of their directory")
            if not member.isfile() or (source := archive.extractfile(member)) is None:
                continue
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with source, anew(target) as file:
                shutil.copyfileobj(source, file)


def _copy(place: Path, directory: Path) -> None:
    """Copies files that are no part of a file of the whole run: outputs of commands, and files of theirs."""
    own = {*TABLES, *FLOWS, *DOCUMENTS, events_of_runs.FILE, "program.json", "traffic/request.json"}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place)
        if path.is_file() and str(name) not in own:
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


Cells = list[bytes]
Change = Callable[[str, Sequence[str], Cells], Cells | None]
"""Machine, names of columns, a row's cells → its cells in the whole run's table; None: it has no row there."""


def _as_it_is(machine: str, names: Sequence[str], cells: Cells) -> Cells:
    return cells


def _counted_from(first_spinner: Mapping[str, int]) -> Change:
    def change(machine: str, names: Sequence[str], cells: Cells) -> Cells:
        if "spinner" in names:
            column = names.index("spinner")
            cells[column] = str(int(cells[column]) + first_spinner.get(machine, 0)).encode()
        return cells

    return change


def _table(places: Mapping[str, Path], name: str, target: Path, change: Change) -> None:
    """Rows of all machines below one header, which has the columns of each of them."""
    headings = {machine: names for machine, place in places.items() if (names := _heading(place / name))}
    if not headings:
        return
    every = list(dict.fromkeys(column for names in headings.values() for column in names))
    target.parent.mkdir(parents=True, exist_ok=True)
    write(target, f"{','.join(every)}\n")
    with target.open("ab") as file:
        for machine, names in headings.items():
            with (places[machine] / name).open("rb") as source:
                source.readline()
                for line in source:
                    if line.endswith(b"\n") and (cells := change(machine, names, line[:-1].split(b","))) is not None:
                        own = dict(zip(names, cells, strict=True))
                        file.write(b",".join(own.get(column, b"") for column in every) + b"\n")


def _heading(path: Path) -> list[str]:
    """The columns of a table; empty where there is none, or its header is not whole."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as source:
        line = source.readline()
        return line.decode().strip().split(",") if line.endswith(b"\n") else []
    return []


def _commands(
    program: Program, split: ProgramSplit, told: Mapping[str, CommandsDocument | None], missing: str
) -> CommandsDocument:
    """Each entry also has its machine's T0."""
    found: dict[int, CommandEntry] = {}
    there = {machine: document for machine, document in told.items() if document is not None}
    for machine, document in there.items():
        for number, entry in zip(split.parts[machine].commands, document.commands, strict=False):
            found[number] = replace(entry, t0_unix_ns=document.t0_unix_ns)
    return CommandsDocument(
        interrupted=any(document.interrupted for document in there.values()),
        t0_unix_ns=next((document.t0_unix_ns for document in there.values()), None),
        commands=tuple(
            found.get(number) or _absent(number, each, missing) for number, each in enumerate(program.commands)
        ),
    )


def _absent(number: int, command: Command, why: str) -> CommandEntry:
    name = f"commands/{number + 1}-{command.node}"
    return CommandEntry(
        node=command.node,
        argv=tuple(command.argv),
        at_ns=command.at_ns,
        service=command.service,
        error=why,
        out=f"{name}.out",
        err=f"{name}.err",
        files=name,
    )


def _events(
    program: Program, split: ProgramSplit, where: NodePlaces, places: Mapping[str, Path], missing: str
) -> dict[int, EventOutcome]:
    """The outcome of each event by its number, from the machine of the link's emulator; an error of the other one
    too."""
    told = {machine: _made(place) for machine, place in places.items()}
    made: dict[int, EventOutcome] = {}
    for number, event in enumerate(program.events):
        of_machines = list(where.of_event(event))
        for machine in of_machines:
            # A machine's events are in the order of their times.
            mine = sorted(split.parts[machine].events, key=lambda each: program.events[each].at_ns)
            entries = told.get(machine, ())
            if len(entries) == len(mine):
                entry = entries[mine.index(number)]
                first = made.setdefault(number, entry)
                made[number] = replace(first, error=first.error or entry.error)
        made.setdefault(number, _not_made(event, missing))
    return made


def _made(place: Path) -> tuple[EventOutcome, ...]:
    with contextlib.suppress(DocumentError):  # its machine was lost meanwhile
        return events_of_runs.read(place) or ()
    return ()


def _not_made(event: Event, why: str) -> EventOutcome:
    return EventOutcome(event.at_ns, event.link, event.direction, event.change, None, why, event.down)


def _links(told: Mapping[str, LinksDocument | None], first_spinner: Mapping[str, int]) -> LinksDocument:
    there = {machine: document for machine, document in told.items() if document is not None}
    return LinksDocument(
        links=tuple(each for document in there.values() for each in document.links),
        spinners=tuple(
            replace(each, spinner=each.spinner + first_spinner.get(machine, 0))
            for machine, document in there.items()
            for each in document.spinners
        ),
        down=tuple(each for document in there.values() for each in document.down),
    )


class _Flows:
    """Records of flows, and rows of goodput, with the flows' parts as they are in the whole run."""

    def __init__(
        self, split: ProgramSplit, told: Mapping[str, TrafficResult | None], clocks: Clocks, missing: str
    ) -> None:
        self._interrupted = any(each is not None and each.interrupted for each in told.values())
        self._sides: dict[int, dict[str, list[FlowRecord]]] = {}
        """The records of flows between machines: flow → end → records."""
        self._part_of: dict[int, dict[int, int]] = {}
        """Flow of arrivals → part at its sink → part."""
        self._sums: dict[tuple[int, ...], int] = {}
        """Flow, part, end and width of a bin → bytes: of flows whose both ends receive."""
        machines: dict[int, dict[str, str]] = {}
        self.records: list[FlowRecord] = []
        for machine, part in split.parts.items():
            for flow, side in part.halves.items():
                machines.setdefault(flow, {})[side] = machine
            result = told.get(machine)
            for record in () if result is None else result.flows:
                if (half := part.halves.get(record.flow)) is None:
                    self.records.append(record)
                else:
                    self._sides.setdefault(record.flow, {SOURCE: [], SINK: []})[half].append(record)
        for flow, sides in self._sides.items():
            drift_ns = clocks.drift_ns(machines[flow][SINK]) - clocks.drift_ns(machines[flow][SOURCE])
            self.records += self._whole(flow, sides, missing, drift_ns)

    def _whole(
        self, flow: int, sides: Mapping[str, Sequence[FlowRecord]], missing: str, drift_ns: int
    ) -> list[FlowRecord]:
        sources, sinks = sides[SOURCE], sides[SINK]
        if any(record.kind == "arrivals" for record in (*sources, *sinks)):
            records, self._part_of[flow] = flow_records.arrivals(sources, sinks, missing)
            return records
        source, sink = ({record.part: record for record in those} for those in (sources, sinks))
        return [
            flow_records.whole(source.get(part), sink.get(part), missing, drift_ns) for part in sorted({*source, *sink})
        ]

    def document(self) -> TrafficResult:
        """The records in the order of flows and parts."""
        ordered = sorted(self.records, key=lambda record: (record.flow, record.part))
        return TrafficResult(self._interrupted, tuple(replace(record, port=None) for record in ordered))

    def of_whole(self, machine: str, names: Sequence[str], cells: Cells) -> Cells | None:
        """A row of a receiver's bin, with the numbers of the whole run."""
        flow, part, time_ns, bin_ns = (int(cells[names.index(key)]) for key in ("flow", "part", "time_ns", "bin_ns"))
        if (parts := self._part_of.get(flow)) is not None:
            if part not in parts:
                return None
            cells[names.index("part")] = str(parts[part]).encode()
        elif flow in self._sides and any(record.kind == "requests" for record in self._sides[flow][SOURCE]):
            key = flow, part, time_ns, bin_ns
            self._sums[key] = self._sums.get(key, 0) + int(cells[names.index("delivered_bytes")])
            return None
        return cells

    def add_sums(self, target: Path) -> None:
        """Rows of flows whose both ends receive."""
        if self._sums:
            with target.open("a") as file:
                file.writelines(f"{','.join(map(str, key))},{many},\n" for key, many in sorted(self._sums.items()))


def _read(kind: type[Kind], places: Mapping[str, Path], name: str) -> dict[str, Kind | None]:
    """A document of each machine; None: it was lost meanwhile."""

    def one(path: Path) -> Kind | None:
        with contextlib.suppress(DocumentError, FileNotFoundError):
            return documents.read(kind, path)
        return None

    return {machine: one(place / name) for machine, place in places.items()}
