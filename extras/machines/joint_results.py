"""What the machines of a lab measured of one run becomes what one machine would have left.

In: a directory of each machine, with what `ewan-node batch` writes (emulator/batch/src), and who did what. Out:
the same files of the whole run: numbers of commands, flows and spinners are those of the whole. Of a machine that was
lost nothing is there, and what it had to do says so. `clocks.json` has how far the machines' clocks were apart.
"""

from __future__ import annotations

import contextlib
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from ewan.extras.machines import flow_records
from ewan.extras.machines.joint_probes import Offset
from ewan.extras.machines.programs import SINK, SOURCE, NodePlaces, ProgramSplit
from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct, replace
from ewan.labs.base.documents import DocumentError
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.base.writing import anew, write
from ewan.labs.record import events as events_of_runs
from ewan.labs.record.events import Event, EventOutcome, EventOutcomes
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Program

TABLES = ("links.csv", "classes.csv", "drops.csv", "releases.csv", "spinners.csv", "machine.csv")
FLOWS = tuple(f"traffic/{name}.csv" for name in ("series", "goodput", "exchanges"))
GOODPUT = "traffic/goodput.csv"
DOCUMENTS = ("commands.json", "links.json", "traffic/traffic.json")
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
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
    """By how much a machine's clock was ahead of the reference's, and how uncertain that is at any moment."""

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
    """How far each machine's clock was ahead of that of the `reference`, before and after a run."""

    reference: str
    before: Mapping[str, Offset]
    after: Mapping[str, Offset]

    def drift_ns(self, machine: str) -> int:
        """By how much it was further ahead at the run's middle than before it."""
        return (self.after.get(machine, _NOTHING).ns - self.before.get(machine, _NOTHING).ns) // 2

    def uncertainty_ns(self, machine: str) -> int:
        """Of the difference at any moment of the run."""
        before, after = self.before.get(machine, _NOTHING), self.after.get(machine, _NOTHING)
        return max(before.uncertainty_ns, after.uncertainty_ns) + abs(self.drift_ns(machine))

    @property
    def kept(self) -> ClocksDocument:
        """As the run's files have it."""
        machines = {
            name: ClockEntry(before.ns, self.after.get(name, before).ns, self.uncertainty_ns(name))
            for name, before in self.before.items()
        }
        return ClocksDocument(self.reference, machines)


@dataclass(frozen=True, slots=True)
class MachineResults:
    """What there is after a run. `places`: machine → its directory; `recovered_ns`: of events (by number) that took a
    link's carrier or gave it back, when routes carried every pair again, from T0."""

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
    told = {name: {machine: _read(place / name) for machine, place in places.items()} for name in DOCUMENTS}
    if program.commands:
        _write(directory / "commands.json", _commands(program, split, told["commands.json"], missing))
    if program.events:
        events = _events(program, split, where, places, missing)
        for number, at_ns in found.recovered_ns.items():
            events[number] = replace(events[number], recovered_ns=at_ns)
        order = sorted(events, key=lambda number: program.events[number].at_ns)
        document = EventOutcomes(tuple(events[number] for number in order))
        write(directory / events_of_runs.FILE, codec.ordered(document))
    _write(directory / "links.json", _links(told["links.json"], first_spinner))
    if program.traffic is not None:
        request = directory / "traffic/request.json"
        request.parent.mkdir(exist_ok=True)
        _write(request, codec.data_of(program.traffic))
        flows = _Flows(split, told["traffic/traffic.json"], clocks, missing)
        _write(directory / "traffic/traffic.json", flows.document())
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
    """What is no part of a file of the whole run: outputs of commands, and files of theirs."""
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
    """Rows of all machines below one header."""
    heading = b""
    for machine, place in places.items():
        if not (place / name).exists():
            continue
        with (place / name).open("rb") as source:
            own = source.readline()
            if not own.endswith(b"\n"):
                continue
            if not heading:
                heading = own
                target.parent.mkdir(parents=True, exist_ok=True)
                write(target, own)
            names = own.decode().strip().split(",")
            with target.open("ab") as file:
                for line in source:
                    if line.endswith(b"\n") and (cells := change(machine, names, line[:-1].split(b","))) is not None:
                        file.write(b",".join(cells) + b"\n")


Documents = Mapping[str, dict[str, Any] | None]


def _commands(program: Program, split: ProgramSplit, told: Documents, missing: str) -> dict[str, Any]:
    """Each entry also has its machine's T0, by which what the command stamped is read."""
    found: dict[int, dict[str, Any]] = {}
    for machine, document in told.items():
        for number, entry in zip(split.parts[machine].commands, (document or {}).get("commands", ()), strict=False):
            assert document is not None
            found[number] = entry | {"t0_unix_ns": document["t0_unix_ns"]}
    there = [document for document in told.values() if document is not None]
    return {
        "format": "ewan-commands/1",
        "interrupted": any(document["interrupted"] for document in there),
        "t0_unix_ns": there[0]["t0_unix_ns"] if there else None,
        "commands": [
            found.get(number, _absent(number, each.node, each.argv, each.at_ns, each.service, missing))
            for number, each in enumerate(program.commands)
        ],
    }


def _absent(number: int, node: str, argv: Sequence[str], at_ns: int, service: bool, why: str) -> dict[str, Any]:
    name = f"commands/{number + 1}-{node}"
    nothing = dict.fromkeys(("started_ns", "ended_ns", "status", "signal"))
    files = {"out": f"{name}.out", "err": f"{name}.err", "files": name}
    told = {"node": node, "argv": argv, "at_ns": at_ns, "service": service}
    return {**told, **nothing, "stopped": False, "error": why, **files}


def _events(
    program: Program, split: ProgramSplit, where: NodePlaces, places: Mapping[str, Path], missing: str
) -> dict[int, EventOutcome]:
    """By number, what the machine of the link's emulator says; an error of the other one too."""
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


def _links(told: Documents, first_spinner: Mapping[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {"format": "ewan-links/1", "links": [], "spinners": []}
    for machine, document in told.items():
        if document is None:
            continue
        result["links"] += document["links"]
        first = first_spinner.get(machine, 0)
        result["spinners"] += [each | {"spinner": each["spinner"] + first} for each in document["spinners"]]
        if "down" in document:
            result["down"] = [*result.get("down", ()), *document["down"]]
    return result


class _Flows:
    """Records of flows, and rows of goodput, with the flows' parts as they are in the whole run."""

    def __init__(self, split: ProgramSplit, told: Documents, clocks: Clocks, missing: str) -> None:
        self._split, self._told = split, told
        self._sides: dict[int, dict[str, list[flow_records.Row]]] = {}
        """Of flows between machines: flow → end → records."""
        self._part_of: dict[int, dict[int, int]] = {}
        """Flow of arrivals → part at its sink → part."""
        self._sums: dict[tuple[int, ...], int] = {}
        """Flow, part, end and width of a bin → bytes: of flows whose both ends receive."""
        machines: dict[int, dict[str, str]] = {}
        self.records: list[flow_records.Row] = []
        for machine, part in split.parts.items():
            for flow, side in part.halves.items():
                machines.setdefault(flow, {})[side] = machine
            for record in (told.get(machine) or {}).get("flows", ()):
                if (half := part.halves.get(record["flow"])) is None:
                    self.records.append(record)
                else:
                    self._sides.setdefault(record["flow"], {SOURCE: [], SINK: []})[half].append(record)
        for flow, sides in self._sides.items():
            drift_ns = clocks.drift_ns(machines[flow][SINK]) - clocks.drift_ns(machines[flow][SOURCE])
            self.records += self._whole(flow, sides, missing, drift_ns)

    def _whole(
        self, flow: int, sides: Mapping[str, Sequence[flow_records.Row]], missing: str, drift_ns: int
    ) -> list[flow_records.Row]:
        sources, sinks = sides[SOURCE], sides[SINK]
        if any(row["kind"] == "arrivals" for row in (*sources, *sinks)):
            rows, self._part_of[flow] = flow_records.arrivals(sources, sinks, missing)
            return rows
        source, sink = ({row["part"]: row for row in those} for those in (sources, sinks))
        return [
            flow_records.whole(source.get(part), sink.get(part), missing, drift_ns) for part in sorted({*source, *sink})
        ]

    def document(self) -> dict[str, Any]:
        """In the order of flows and parts."""
        ordered = sorted(self.records, key=lambda row: (row["flow"], row["part"]))
        return {
            "format": "ewan-traffic-result/1",
            "interrupted": any(each is not None and each["interrupted"] for each in self._told.values()),
            "flows": [{key: value for key, value in row.items() if key != "port"} for row in ordered],
        }

    def of_whole(self, machine: str, names: Sequence[str], cells: Cells) -> Cells | None:
        """A row of what a receiver got in a bin."""
        flow, part, time_ns, bin_ns = (int(cells[names.index(key)]) for key in ("flow", "part", "time_ns", "bin_ns"))
        if (parts := self._part_of.get(flow)) is not None:
            if part not in parts:
                return None
            cells[names.index("part")] = str(parts[part]).encode()
        elif flow in self._sides and any(row["kind"] == "requests" for row in self._sides[flow][SOURCE]):
            key = flow, part, time_ns, bin_ns
            self._sums[key] = self._sums.get(key, 0) + int(cells[names.index("delivered_bytes")])
            return None
        return cells

    def add_sums(self, target: Path) -> None:
        """Rows of flows whose both ends receive."""
        if self._sums:
            with target.open("a") as file:
                file.writelines(f"{','.join(map(str, key))},{many},\n" for key, many in sorted(self._sums.items()))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = orjson.loads(path.read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None
    return found


def _write(path: Path, data: Mapping[str, Any]) -> None:
    write(path, orjson.dumps(data, option=_OPTIONS))
