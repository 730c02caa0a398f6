"""Which version of this project makes tables of a run's records, and which verifies labs.

In: its sources. Out: a SHA-256 of each, for keys: results that another version would make otherwise are other results.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ewan.labs.base.product import ROOT

TABLES = (
    "generator/commands.py",
    "generator/link_rates.py",
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
"""What makes tables, and decides whether a run is complete."""
CERTIFICATES = ("analysis/bursts.py", "calibration", "generator/traffic_request.py", "labs")
"""What verifies a lab: calibration, and what it stands on."""


@functools.cache
def tables() -> str:
    """Of what makes tables; the library that writes them is of a version too."""
    return _digest(TABLES, f"polars {pl.__version__}")


@functools.cache
def certificates() -> str:
    """Of what verifies a lab."""
    return _digest(CERTIFICATES)


def sources(names: tuple[str, ...]) -> Iterator[Path]:
    """The modules, sorted by their paths; tests make no results."""
    for name in sorted(names):
        path = ROOT / name
        found = [path] if path.suffix else sorted(path.rglob("*.py"))
        yield from (each for each in found if "tests" not in each.relative_to(ROOT).parts)


def _digest(names: tuple[str, ...], *words: str) -> str:
    result = hashlib.sha256("\n".join(words).encode())
    for path in sources(names):
        content = path.read_bytes()
        result.update(f"\n{path.relative_to(ROOT).as_posix()} {len(content)}\n".encode())
        result.update(content)
    return result.hexdigest()
