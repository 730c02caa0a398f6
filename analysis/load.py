"""An experiment's directory as the analysis sees it.

In: results/<UTC>-<scenario>/ with experiment.json and runs/*/. Out: the document, the runs with their tables, the
certificates. Nothing is judged here; missing data are empty, and data that cannot be read are a `LoadError`.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

import polars as pl

from ewan.labs.base import codec
from ewan.labs.base.codec import JsonValue, Struct
from ewan.labs.base.documents import DocumentError
from ewan.labs.forwarding import BETWEEN
from ewan.labs.record import (
    CERTIFICATES_FOLDER,
    Certificate,
    disturbances,
    events,
    from_json,
    journal,
    own_tables,
    tables,
)
from ewan.labs.record.disturbances import Disturbance
from ewan.labs.record.events import EventOutcome, EventOutcomes
from ewan.labs.record.experiment import DOCUMENT, ExperimentDocument, State, Status, damage, intact
from ewan.labs.record.own_tables import OwnTable
from ewan.labs.record.scenario_requests import Parameter, Values
from ewan.labs.record.schedule import CrossedPath, NamedSchedule

SCHEDULE = "schedule.json"
PLAN = "plan.json"
_PATH = "path of a file"
PARAMETER = "parameter_"
"""Before the name of a parameter that becomes a column, since tables have columns of the same names."""

MOST_AT_ONCE = 16 << 20
"""Bytes of a table that is read and checked in one step; a larger one is read in pieces to be checked, then again."""

NOTHING = (None, "null")
"""Values of parameters that a point does not have."""

T = TypeVar("T")

Link = tuple[str, str]
"""A link's name, and forward or backward."""


class LoadError(ValueError):
    """A file cannot be read; the message is one line that begins with the path."""


@dataclass(frozen=True)
class RunResults:
    """One run: one choice of parameters, one seed."""

    number: int
    name: str
    parameters: Values
    seed: int
    status: Status
    error: str | None
    directory: Path
    certificate: str | None
    plan_sha256: str | None
    root: Path
    """The experiment's directory."""
    files: Mapping[str, str] = field(repr=False, compare=False)
    """The experiment's checksums."""
    own: Collection[str] = field(default=(), repr=False, compare=False)
    """The run's own files among `files`, by their names in the experiment's directory."""
    kept: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    checked: set[str] = field(default_factory=set, repr=False, compare=False)

    def table(self, name: str) -> pl.DataFrame:
        """A table of labs.record.tables, without rows where the run has none; LoadError where it is damaged."""
        if name not in self.kept:
            self.kept[name] = self._read(name)
        return self.kept[name]

    def _read(self, name: str) -> pl.DataFrame:
        with self._readable(name):
            if self.size(name) <= MOST_AT_ONCE:
                content = intact(self.root, self._name(f"{name}.parquet"), self.files)
                return tables.empty(name) if content is None else tables.parse(content, self.path(name))
            if why := damage(self.root, self._name(f"{name}.parquet"), self.files):
                raise LoadError(why)
            return tables.read(self.directory, name)

    def check(self, name: str) -> None:
        """LoadError where the file of a table is damaged, or of another version."""
        with self._readable(name):
            if self.size(name) > MOST_AT_ONCE:
                if why := damage(self.root, self._name(f"{name}.parquet"), self.files):
                    raise LoadError(why)
                tables.check(self.path(name), self.path(name))
                return
            content = intact(self.root, self._name(f"{name}.parquet"), self.files)
            if content is not None:
                tables.check(io.BytesIO(content), self.path(name))

    def check_once(self, name: str) -> None:
        """Check a file against its checksum, unless it was checked before."""
        if name not in self.checked:
            self.check(name)
            self.checked.add(name)

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        """Turns an error in reading a table into a LoadError."""
        try:
            yield
        except (DocumentError, LoadError) as error:
            raise LoadError(str(error)) from None
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise LoadError(f"{self.path(name)}: not readable ({reason})") from None

    def path(self, name: str) -> Path:
        """The file of a table, which need not be there."""
        return self.directory / f"{name}.parquet"

    def size(self, name: str) -> int:
        """Bytes of that; 0 where it is not there."""
        try:
            return self.path(name).stat().st_size
        except OSError:
            return 0

    def own_tables(self) -> dict[str, OwnTable]:
        """Tables of CSV that programs of the run left, by `<step>.<file>`; LoadError where one is damaged."""
        found = {}
        for path in sorted(self.own):
            name = own_tables.name_of(path.removeprefix(self._name("")))
            if name is None:
                continue
            if why := damage(self.root, path, self.files):
                raise LoadError(why)
            try:
                found[name] = own_tables.read(self.directory, name)
            except (OSError, ValueError) as error:
                raise LoadError(str(error).splitlines()[0]) from None
        return found

    def _name(self, name: str) -> str:
        """A file of the run, as the experiment's checksums have it."""
        return self._first + name

    @cached_property
    def _first(self) -> str:
        return "".join(f"{part}/" for part in self.directory.relative_to(self.root).parts)

    def forget(self) -> None:
        """Tables of many runs need not be in memory together."""
        self.kept.clear()

    def json(self, name: str) -> dict[str, JsonValue]:
        """A JSON object in a file of the run's directory; empty where it is not there. LoadError where it is damaged,
        or holds something else."""
        return _json(self.root, self._name(name), self.files) or {}

    def document(self, kind: type[T], name: str, where: str = "") -> T | None:
        """The same as a type; None where it is not there. `where`: stands before the place that is wrong."""
        data = self.json(name)
        try:
            return codec.from_data(kind, data, where) if data else None
        except ValueError as error:
            raise LoadError(f"{self.directory / name}: {error}") from None

    @cached_property
    def paths(self) -> tuple[CrossedPath, ...]:
        """The links that payload crosses, as scheduled; LoadError where the schedule is none."""
        found = self.document(NamedSchedule, SCHEDULE, "schedule")
        return found.paths if found else ()

    @cached_property
    def addresses(self) -> dict[str, frozenset[str]]:
        """The addresses of each node, from the run's plan; LoadError where the file is no plan."""
        plan = self.document(PlanNodes, PLAN)
        return plan.addresses if plan else {}

    def changes_ns(self) -> list[int]:
        """The times of changes of links, in ns since T0; LoadError where the file of events is damaged."""
        return [event.applied_ns for event in self.events if event.applied_ns is not None]

    @cached_property
    def events(self) -> tuple[EventOutcome, ...]:
        """Changes of links; LoadError where the file of events is none."""
        found = self.document(EventOutcomes, events.FILE)
        return found.events if found else ()

    def disturbances(self) -> tuple[list[Disturbance], int] | None:
        """The disturbances of the run's links, and the time after T0 (ns) until which they were watched; None where
        they were not watched, as in the virtual clock."""
        frames = [self.table(name) for name in disturbances.TABLES]
        until_ns = disturbances.watched_ns(frames[-1])
        return None if until_ns is None else (disturbances.judge(*frames), until_ns)

    def has(self, table: str) -> bool:
        """Return whether the run has a table of this name."""
        return self._name(f"{table}.parquet") in self.files

    @property
    def measured(self) -> bool:
        """Return whether there is something to analyse: its flows' table was written."""
        return self.has("flows")

    @property
    def point(self) -> tuple[tuple[str, Parameter], ...]:
        """The parameters of the run, which are the same for runs that differ only in the seed."""
        return tuple(self.parameters.items())


class _Port(Struct, forbid_unknown_fields=False):
    name: str
    addresses: tuple[str, ...]


class _WireEnd(Struct, forbid_unknown_fields=False):
    node: str
    interface: str


class _Wire(Struct, forbid_unknown_fields=False):
    link: str
    a: _WireEnd
    b: _WireEnd


class _NodePorts(Struct, forbid_unknown_fields=False):
    name: str
    interfaces: tuple[_Port, ...]


class PlanNodes(Struct, forbid_unknown_fields=False):
    """The part of a plan that is read here; plans of other versions have it too."""

    nodes: tuple[_NodePorts, ...] = ()
    wires: tuple[_Wire, ...] = ()

    @property
    def addresses(self) -> dict[str, frozenset[str]]:
        """A value for each node, and for each link of a node with several (labs/forwarding.py)."""
        found = {
            node.name: frozenset(address.partition("/")[0] for port in node.interfaces for address in port.addresses)
            for node in self.nodes
        }
        links = {(end.node, end.interface): wire.link for wire in self.wires for end in (wire.a, wire.b)}
        for node in self.nodes:
            ports = [port for port in node.interfaces if port.addresses and (node.name, port.name) in links]
            for port in ports if len(ports) > 1 else ():
                own = frozenset(address.partition("/")[0] for address in port.addresses)
                found[f"{node.name}{BETWEEN}{links[node.name, port.name]}"] = own
        return found


class ExperimentResults:
    """An experiment: its document, and its runs."""

    of_one_directory = True
    """Another process can read the same from `directory`."""
    numbered = ""
    """A sentence that explains the runs' numbers; empty where they need no explanation."""

    def __init__(self, directory: Path, document: ExperimentDocument) -> None:
        self.directory = directory
        self.document = document
        self.runs = tuple(self._runs())

    def _runs(self) -> Iterator[RunResults]:
        own = journal.of_runs(self.document.files)
        for each in self.document.runs:
            yield RunResults(
                number=each.number,
                name=each.name,
                parameters=dict(each.parameters),
                seed=each.seed,
                status=each.status,
                error=each.error,
                directory=self.directory / each.directory,
                certificate=each.certificate,
                plan_sha256=each.plan_sha256,
                root=self.directory,
                files=self.document.files,
                own=own.get(each.directory, ()),
            )

    @cached_property
    def by_number(self) -> dict[int, RunResults]:
        """Its runs, by their numbers."""
        return {run.number: run for run in self.runs}

    @property
    def status(self) -> State:
        """The experiment's own state; each run has one too."""
        return self.document.status

    @cached_property
    def points(self) -> dict[tuple[tuple[str, Parameter], ...], list[RunResults]]:
        """Runs by their parameters, in the order in which they come."""
        found: dict[tuple[tuple[str, Parameter], ...], list[RunResults]] = {}
        for run in self.runs:
            found.setdefault(run.point, []).append(run)
        return found

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """The parameters that differ between runs."""
        names = dict.fromkeys(name for run in self.runs for name in run.parameters)
        return tuple(name for name in names if len({str(run.parameters.get(name)) for run in self.runs}) > 1)

    def label(self, parameters: Mapping[str, Parameter]) -> str:
        """A point in words, by the varied parameters: `cubic, rtt = 20ms`."""
        there = [name for name in self.varied if parameters.get(name) not in NOTHING]
        return ", ".join(word(name, parameters[name], self.shared) for name in there)

    @cached_property
    def shared(self) -> frozenset[str]:
        """The values that several of the varied parameters have."""
        return shared({name: {str(run.parameters.get(name)) for run in self.runs} for name in self.varied})

    @property
    def complete(self) -> bool:
        """Return whether all of its runs are complete."""
        return all(run.status == "complete" for run in self.runs)

    @property
    def so_far(self) -> str:
        """The number of complete runs out of all: `900 of 1000 runs complete`."""
        complete = sum(run.status == "complete" for run in self.runs)
        return f"{complete} of {len(self.runs)} runs complete"

    def frame(self, table: str) -> pl.DataFrame:
        """A table of all runs that were measured, with the columns run, seed and parameter_<name> before its own;
        LoadError where one is damaged."""
        try:
            return self.scan(table).collect()
        except pl.exceptions.PolarsError as error:
            raise LoadError(f"{self.directory}: table {table}: not readable ({str(error).splitlines()[0]})") from None

    def scan(self, table: str, wanted: Collection[int] | None = None) -> pl.LazyFrame:
        """A query of the table that is read when it is collected, and then only as far as it is asked for; `wanted`:
        only these runs. Each file is checked against its checksum before."""
        measured = [run for run in self.runs if run.measured and (wanted is None or run.number in wanted)]
        if not measured:
            return tables.empty(table).lazy()
        runs = [run for run in measured if run.has(table)]
        for run in runs:
            run.check_once(table)
        about = pl.DataFrame(
            {
                _PATH: [str(run.path(table)) for run in runs],
                "run": [run.number for run in runs],
                "seed": [run.seed for run in runs],
                **{PARAMETER + name: [_text(run, name) for run in runs] for name in _names(measured)},
            },
            schema={_PATH: pl.String, "run": pl.Int64, "seed": pl.Int64}
            | {PARAMETER + name: pl.String for name in _names(measured)},
        )
        schema = tables.TABLES[table]
        # A parameter that the first run does not have comes last.
        first = ["run", "seed", *(PARAMETER + name for name in measured[0].parameters)]
        order = [*first, *schema, *(name for name in about.columns if name not in (_PATH, *first))]
        if not runs:
            empty = pl.DataFrame(schema=dict(about.schema) | schema)
            return empty.select(order).lazy()
        rows = pl.scan_parquet(
            about[_PATH].to_list(),
            schema=schema,
            missing_columns="insert",
            extra_columns="ignore",
            include_file_paths=_PATH,
        )
        return rows.join(about.lazy(), on=_PATH, how="left", maintain_order="left").select(order)

    @cached_property
    def by_certificate(self) -> dict[str, list[int]]:
        """The numbers of the runs in each lab, by the path of its certificate relative to the experiment."""
        found: dict[str, list[int]] = {
            path.relative_to(self.directory).as_posix(): []
            for path in sorted((self.directory / CERTIFICATES_FOLDER).glob("*.json"))
        }
        for run in self.runs:
            if run.certificate in found:
                found[run.certificate].append(run.number)
        return found

    def certificate(self, name: str) -> Certificate | None:
        """The certificate at a path relative to the experiment; LoadError for one that cannot be read, None where there
        is none."""
        try:
            content = intact(self.directory, name, self.document.files)
            return None if content is None else from_json(content)
        except DocumentError as error:
            raise LoadError(str(error)) from None
        except (OSError, ValueError) as error:
            raise LoadError(f"{self.directory / name}: {error}") from None


def _names(runs: Collection[RunResults]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.parameters))


def _text(run: RunResults, name: str) -> str | None:
    return str(run.parameters[name]) if name in run.parameters else None


def word(name: str, value: Parameter | None, shared: Collection[str] = ()) -> str:
    """`rtt = 20ms`; a value that is a word needs no name before it, but one of `shared`."""
    return str(value) if str(value)[:1].isalpha() and str(value) not in shared else f"{name} = {value}"


def words(parameters: Iterable[tuple[str, Parameter | None]], shared: Collection[str] = ()) -> str:
    """`cubic, rtt = 20ms`; parameters without a value are left out."""
    return ", ".join(word(name, value, shared) for name, value in parameters if value not in NOTHING)


def shared(values: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The values that several of the varied parameters have: they do not identify their parameter."""
    times = Counter(value for each in values.values() if len(set(each)) > 1 for value in set(each))
    return frozenset(value for value, number in times.items() if number > 1)


def experiment(directory: Path) -> ExperimentResults:
    """LoadError where the directory is none of an experiment."""
    path = directory / DOCUMENT
    if not path.exists():
        what = "no experiment.json is in it" if directory.is_dir() else "there is no such directory"
        raise LoadError(f"{directory}: {what}: name one that ewan run or ewan suite hstts made (see ewan exp list)")
    try:
        return ExperimentResults(directory, journal.load(directory))
    except OSError as error:
        raise LoadError(f"{path}: not readable ({error})") from None
    except DocumentError as error:
        raise LoadError(str(error)) from None


def experiment_once(directory: Path) -> ExperimentResults:
    """The same, of a process that does several parts of one experiment: it is read once, unless it changes."""
    files = [directory / DOCUMENT, directory / journal.JOURNAL]
    return _once(directory, tuple((path.stat().st_mtime_ns, path.stat().st_size) for path in files if path.exists()))


@lru_cache(maxsize=1)
def _once(directory: Path, state: tuple[tuple[int, int], ...]) -> ExperimentResults:
    return experiment(directory)


def _json(directory: Path, name: str, files: Mapping[str, str]) -> dict[str, JsonValue] | None:
    """The JSON object in a file of an experiment, by its path there; None where there is no such file."""
    path = directory / name
    try:
        content = intact(directory, name, files)
        found = None if content is None else json.loads(content)
    except DocumentError as error:
        raise LoadError(str(error)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise LoadError(f"{path}: not readable ({error})") from None
    if found is not None and not isinstance(found, dict):
        raise LoadError(f"{path}: no JSON object")
    return found
