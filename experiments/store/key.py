"""The name of a result: a SHA-256 over all that decides its bytes.

In: checksums of the files that a run executes and of the programs that make its results; the sources of this project, a
plan and a program, for those checksums. Out: the key. Two runs of one key leave the same bytes, on any machine; the key
covers whatever may change a byte, and nothing else: a run's number and the names of its scenario and of the chosen
values are not part of it."""

from __future__ import annotations

import functools
import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.product import ROOT
from ewan.labs.record.experiment import checksum_once
from ewan.labs.runtime.services import OURSELVES, SEARCH

FORMAT = "ewan-unit/1"
CERTIFICATE_FORMAT = "ewan-unit-certificate/1"
DIGITS = 64
TABLES = (
    "generator/commands.py",
    "generator/counted_flows.py",
    "generator/iperf3_report.py",
    "generator/link_rates.py",
    "generator/own_sockets.py",
    "generator/records.py",
    "generator/rows.py",
    "generator/external",
    "generator/readers",
    "experiments/engine/outcome.py",
    "labs/record/columns.py",
    "labs/record/tables.py",
    "labs/record/own_tables.py",
    "labs/record/schedule.py",
    "labs/record/disturbances.py",
)
"""Sources that make tables, and decide whether a run is complete."""
CERTIFICATES = ("analysis/bursts.py", "calibration", "generator/traffic_request.py", "labs")
"""Sources that verify a lab: calibration, and the modules that it uses."""
MISSING = ""
"""In place of the checksum of a program that is not there."""


def of_run(
    *, plan: str, program: str, schedule: str, kernel: str, binary: str, tables: str, programs: Mapping[str, str]
) -> str:
    """The key of a run. All are SHA-256: of plan.json, program.json and `schedule`, of the virtual kernel, of the node
    binary, of the sources of tables, and of each program of this machine that it starts, by its name."""
    parts = {"plan": plan, "program": program, "schedule": schedule, "kernel": kernel, "binary": binary}
    named = [(f"program {name}", programs[name]) for name in sorted(programs)]
    return _digest(FORMAT, [*parts.items(), ("tables", tables), *named])


def of_certificate(*, family: str, kernel: str, binary: str, judge: str) -> str:
    """The key of a lab's certificate. `family`: that of its plan without seeds; `judge`: the digest of the sources that
    verify."""
    parts = {"family": family, "kernel": kernel, "binary": binary, "judge": judge}
    return _digest(CERTIFICATE_FORMAT, parts.items())


def _digest(word: str, parts: Iterable[tuple[str, str]]) -> str:
    """Over a list of texts, each with its length before it: no two lists give the same bytes."""
    result = hashlib.sha256()
    for text in (word, *(each for part in parts for each in part)):
        content = text.encode()
        result.update(len(content).to_bytes(8, "big"))
        result.update(content)
    return result.hexdigest()


@functools.cache
def tables_digest() -> str:
    """The digest of the sources that make tables, and of the version of the library that writes them."""
    return _of_sources(TABLES, f"polars {pl.__version__}")


@functools.cache
def certificates_digest() -> str:
    """The digest of the sources that verify a lab."""
    return _of_sources(CERTIFICATES)


def sources(names: tuple[str, ...]) -> Iterator[Path]:
    """The modules, sorted by their paths; tests make no results."""
    for name in sorted(names):
        path = ROOT / name
        found = [path] if path.suffix else sorted(path.rglob("*.py"))
        yield from (each for each in found if "tests" not in each.relative_to(ROOT).parts)


def _of_sources(names: tuple[str, ...], *words: str) -> str:
    result = hashlib.sha256("\n".join(words).encode())
    for path in sources(names):
        content = path.read_bytes()
        result.update(f"\n{path.relative_to(ROOT).as_posix()} {len(content)}\n".encode())
        result.update(content)
    return result.hexdigest()


class _ProgramStart(Struct, forbid_unknown_fields=False):
    argv: tuple[str, ...]


class _ProgramOfRun(Struct, forbid_unknown_fields=False):
    """The processes that a program starts."""

    commands: tuple[_ProgramStart, ...] = ()
    prepare: tuple[_ProgramStart, ...] = ()
    controller: _ProgramStart | None = None


class _Own(Struct, forbid_unknown_fields=False):
    exec: tuple[tuple[str, ...], ...] = ()


class _Node(Struct, forbid_unknown_fields=False):
    own: _Own | None = None
    services: tuple[_ProgramStart, ...] = ()


class _PlanOfRun(Struct, forbid_unknown_fields=False):
    """The processes that the nodes of a plan start."""

    nodes: tuple[_Node, ...]


def program_checksums(plan: bytes, program: bytes) -> dict[str, str]:
    """SHA-256 of each program of this machine that a run starts, by the name that it is started by: another version of
    iperf3 leaves other results. Programs that these start themselves, libraries and files that they read are not looked
    at, but for those that words of a controller name by an absolute path. `plan` and `program` as they are written."""
    found = {name: _checksum(name) for name in program_names(plan, program)}
    asked = codec.decode(_ProgramOfRun, program, "program")
    for word in () if asked.controller is None else asked.controller.argv[1:]:
        if word.startswith("/") and Path(word).is_file():
            found[word] = checksum_once(Path(word))
    return found


def program_names(plan: bytes, program: bytes) -> list[str]:
    """The names of the programs that are started, sorted; without our own."""
    made, asked = codec.decode(_PlanOfRun, plan, "plan"), codec.decode(_ProgramOfRun, program, "program")
    return sorted(set(_started(made, asked)) - {OURSELVES})


def _started(plan: _PlanOfRun, program: _ProgramOfRun) -> Iterator[str]:
    yield from (step.argv[0] for step in (*program.commands, *program.prepare))
    if program.controller is not None and not _is_in_its_folder(program.controller.argv[0]):
        yield program.controller.argv[0]
    for node in plan.nodes:
        yield from (argv[0] for argv in (() if node.own is None else node.own.exec))
        yield from (service.argv[0] for service in node.services)


def _is_in_its_folder(name: str) -> bool:
    """Return whether a controller's program is among its files, which are in program.json."""
    return name.endswith(".py") or ("/" in name and not name.startswith("/"))


def _checksum(name: str) -> str:
    found = shutil.which(name, path=SEARCH)
    return MISSING if found is None else checksum_once(Path(found).resolve())
