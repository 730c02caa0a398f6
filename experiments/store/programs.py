"""The programs of this machine that a run starts, and what they are.

In: a plan and a program as data. Out: the SHA-256 of each executable by its name, for the run's key: another version
of iperf3 leaves other results. Programs that these start themselves, libraries and files that they read are not looked
at.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ewan.labs.record.experiment import checksum_once
from ewan.labs.runtime.services import OURSELVES, SEARCH

MISSING = ""
"""In place of the checksum of a program that is not there."""


def checksums(plan: Mapping[str, Any], program: Mapping[str, Any]) -> dict[str, str]:
    """Of each program, by the name that it is started by."""
    return {name: _checksum(name) for name in names(plan, program)}


def names(plan: Mapping[str, Any], program: Mapping[str, Any]) -> list[str]:
    """Those that are started, sorted; without our own."""
    return sorted(set(_started(plan, program)) - {OURSELVES})


def _started(plan: Mapping[str, Any], program: Mapping[str, Any]) -> Iterator[str]:
    for step in (*program.get("commands", ()), *program.get("prepare", ())):
        yield step["argv"][0]
    for node in plan["nodes"]:
        yield from (argv[0] for argv in (node.get("own") or {}).get("exec", ()))
        yield from (service["argv"][0] for service in node.get("services", ()))


def _checksum(name: str) -> str:
    found = shutil.which(name, path=SEARCH)
    return MISSING if found is None else checksum_once(Path(found).resolve())
