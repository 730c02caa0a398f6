"""Readings of another instrument in place of the configured values: what a certificate says against them.

In: a file of readings, or what a program prints (GtrcNET-1 stood so beside netem in the eWAN paper, section IV). Out: a
certificate whose rows are judged against the readings, their uncertainty included. Rows without a reading stay.

{"format": "ewan-readings/1", "instrument": "GtrcNET-1, 3 Nov", "readings": [
  {"link": "core", "direction": "forward", "quantity": "delay p50", "unit": "ns", "value": 50011000,
   "uncertainty": 20}]}
`uncertainty` is expanded, with k = 2; `unit` is the row's own.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Literal

from ewan.calibration.uncertainty import decide, expanded
from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct, replace
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import read_bytes
from ewan.labs.record import COVERAGE_FACTOR, Certificate, Row, Uncertainty

PATIENCE_S = 120.0
"""For a program that reads an instrument."""


class InstrumentReading(Struct):
    """One value. `direction` is empty for a pair, whose name is `link`."""

    link: str
    direction: Literal["forward", "backward", ""]
    quantity: str
    unit: str
    value: float
    uncertainty: float


class Readings(Document, tag="ewan-readings/1"):
    """The readings of one instrument."""

    instrument: str
    readings: tuple[InstrumentReading, ...]


def read(path: Path) -> Readings:
    """The readings in a file, or those that a program there prints; UserError, one line, if they are no readings."""
    try:
        text = _printed(path) if os.access(path, os.X_OK) and path.is_file() else read_bytes(path)
        return codec.decode(Readings, text, "")
    except ValueError as error:
        raise UserError(f"{path}: {error}: write readings as docs/explanation/calibration.md says") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def _printed(path: Path) -> bytes:
    try:
        done = subprocess.run([path.absolute()], capture_output=True, check=False, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise UserError(f"{path}: printed no readings within {PATIENCE_S:.0f} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"{path}: ended with status {done.returncode}: {said[-1] if said else 'it printed nothing'}")
    return done.stdout


def against(certificate: Certificate, found: Readings, where: Path) -> Certificate:
    """The certificate judged against readings; UserError for one of a row that there is not."""
    rows = {(row.link, row.direction, row.quantity): row for row in certificate.rows}
    for each in found.readings:
        key = each.link, each.direction, each.quantity
        row = rows.get(key)
        if row is None:
            known = sorted({quantity for link, way, quantity in rows if (link, way) == key[:2]})
            there = f"it has {', '.join(known)}" if known else f"there is no {each.link} {each.direction}".rstrip()
            raise UserError(f'{where}: "{each.quantity}" of {each.link} {each.direction}: no such row, {there}')
        if row.unit != each.unit:
            raise UserError(f'{where}: {each.quantity} of {each.link}: unit "{each.unit}": write it in {row.unit}')
        rows[key] = judged(row, each, found.instrument)
    return replace(certificate, rows=tuple(rows.values()))


def judged(row: Row, reading: InstrumentReading, instrument: str) -> Row:
    """A row against a reading, by the row's own tolerance; both uncertainties together."""
    note = "; ".join(part for part in (row.note, f"against {instrument}") if part)
    if row.measured is None:
        return replace(row, configured=reading.value, note=note)
    parts = dict(row.uncertainty.components if row.uncertainty else {})
    parts["reference"] = reading.uncertainty / COVERAGE_FACTOR
    known = Uncertainty(parts, expanded(parts))  # type: ignore[arg-type]
    error = row.measured - reading.value
    if row.tolerance is None:
        return replace(row, configured=reading.value, error=error, note=note, uncertainty=known)
    verdict = decide(error, row.tolerance, row.tolerance, known.expanded)
    return replace(
        row, configured=reading.value, error=error, verdict=verdict, note=note, uncertainty=known, needs=None
    )
