"""What the machines of a lab measured of one run becomes what one machine would have left.

In: a directory of each machine, with what `ewan-node batch` writes (labs/node/src/batch), and who did what. Out: the
same files of the whole run: numbers of commands, flows and spinners are those of the whole. Of a machine that was lost
nothing is there, and what it had to do says so. `clocks.json` has how far the machines' clocks were apart.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from labs.cluster import halves
from labs.cluster.probing import Offset
from labs.cluster.programs import SINK, SOURCE, Split, Where
from labs.runtime.base import LabError
from labs.runtime.program import Program
from labs.units import NS_PER_SECOND, about

CLOCKS_FORMAT = "ewan-clocks/1"
LOST_FORMAT = "ewan-lost/1"
TABLES = ("links.csv", "classes.csv", "releases.csv", "spinners.csv", "machine.csv")
FLOWS = tuple(f"traffic/{name}.csv" for name in ("series", "goodput", "exchanges"))
DOCUMENTS = ("commands.json", "events.json", "links.json", "traffic/traffic.json")
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_NOTHING = Offset(0, 0)


@dataclass(frozen=True, slots=True)
class Lost:
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

    def to_data(self) -> dict[str, Any]:
        """As JSON has it."""
        machines = {
            name: {
                "before_ns": before.ns,
                "after_ns": self.after.get(name, before).ns,
                "uncertainty_ns": self.uncertainty_ns(name),
            }
            for name, before in self.before.items()
        }
        return {"format": CLOCKS_FORMAT, "reference": self.reference, "machines": machines}


def merge(
    program: Program,
    split: Split,
    where: Where,
    first_spinner: Mapping[str, int],
    places: Mapping[str, Path],
    clocks: Clocks,
    lost: Lost | None,
    directory: Path,
) -> None:
    """`places`: machine → its directory; `first_spinner`: machine → its first spinner's number in the whole plan."""
    missing = f"machine {lost.machine} was lost" if lost is not None else "its machine left no record"
    for place in places.values():
        _copy(place, directory)
    for name in (*TABLES, *FLOWS):
        parts = [(place / name, first_spinner.get(machine, 0)) for machine, place in places.items()]
        _table([(path, first) for path, first in parts if path.exists()], directory / name)
    _write(directory / "clocks.json", clocks.to_data())
    told = {name: {machine: _read(place / name) for machine, place in places.items()} for name in DOCUMENTS}
    if program.commands:
        _write(directory / "commands.json", _commands(program, split, told["commands.json"], missing))
    if program.events:
        _write(directory / "events.json", _events(program, split, where, told["events.json"], missing))
    _write(directory / "links.json", _links(told["links.json"], first_spinner))
    if program.traffic is not None:
        request = directory / "traffic/request.json"
        request.parent.mkdir(exist_ok=True)
        _write(request, dict(program.traffic))
        _write(directory / "traffic/traffic.json", _flows(split, told["traffic/traffic.json"], clocks, missing))
    if lost is not None:
        data = {"format": LOST_FORMAT, "machine": lost.machine, "at_ns": lost.at_ns, "until_ns": program.expected_ns}
        _write(directory / "lost.json", data)


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
            with source, target.open("wb") as file:
                shutil.copyfileobj(source, file)


def _copy(place: Path, directory: Path) -> None:
    """What is no part of a file of the whole run: outputs of commands, and files of theirs."""
    own = {*TABLES, *FLOWS, *DOCUMENTS, "program.json", "traffic/request.json"}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place)
        if path.is_file() and str(name) not in own:
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


def _table(parts: Iterable[tuple[Path, int]], target: Path) -> None:
    """Rows of all parts below one header; spinners counted from each part's first number."""
    heading = b""
    for path, first in parts:
        with path.open("rb") as source:
            own = source.readline()
            if not own.endswith(b"\n"):
                continue
            if not heading:
                heading = own
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(own)
            names = own.decode().strip().split(",")
            column = names.index("spinner") if "spinner" in names and first else None
            with target.open("ab") as file:
                for line in source:
                    if not line.endswith(b"\n"):
                        break
                    if column is not None:
                        cells = line.split(b",")
                        cells[column] = str(int(cells[column]) + first).encode()
                        line = b",".join(cells)
                    file.write(line)


Documents = Mapping[str, dict[str, Any] | None]


def _commands(program: Program, split: Split, told: Documents, missing: str) -> dict[str, Any]:
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


def _events(program: Program, split: Split, where: Where, told: Documents, missing: str) -> dict[str, Any]:
    """What the machine of the link's emulator says; an error of the other one too."""
    made: dict[int, dict[str, Any]] = {}
    for number, event in enumerate(program.events):
        of_machines = list(where.of_event(event))
        for machine in of_machines:
            # A machine's events are in the order of their times.
            mine = sorted(split.parts[machine].events, key=lambda each: program.events[each].at_ns)
            entries = (told.get(machine) or {}).get("events", [])
            entry = entries[mine.index(number)] if len(entries) == len(mine) else None
            if entry is None:
                continue
            first = made.setdefault(number, entry)
            first["error"] = first["error"] or entry["error"]
        made.setdefault(number, {**event.to_data(), "applied_ns": None, "error": missing})
    order = sorted(made, key=lambda number: program.events[number].at_ns)
    return {"format": "ewan-events/1", "events": [made[number] for number in order]}


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


def _flows(split: Split, told: Documents, clocks: Clocks, missing: str) -> dict[str, Any]:
    """Records in the order of flows and parts."""
    records: dict[tuple[int, int], dict[str, Any]] = {}
    sides: dict[tuple[int, int], dict[str, tuple[str, dict[str, Any]]]] = {}
    machines: dict[int, dict[str, str]] = {}
    for machine, part in split.parts.items():
        for flow, side in part.halves.items():
            machines.setdefault(flow, {})[side] = machine
        for record in (told.get(machine) or {}).get("flows", ()):
            key = record["flow"], record["part"]
            if (half := part.halves.get(record["flow"])) is None:
                records[key] = record
            else:
                sides.setdefault(key, {})[half] = machine, record
    for key, ends in sides.items():
        drift_ns = clocks.drift_ns(machines[key[0]][SINK]) - clocks.drift_ns(machines[key[0]][SOURCE])
        source, sink = (ends[side][1] if side in ends else None for side in (SOURCE, SINK))
        records[key] = halves.whole(source, sink, missing, drift_ns)
    return {
        "format": "ewan-traffic-result/1",
        "interrupted": any(document is not None and document["interrupted"] for document in told.values()),
        "flows": [records[key] for key in sorted(records)],
    }


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = orjson.loads(path.read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None
    return found


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.write_bytes(orjson.dumps(data, option=_OPTIONS))
