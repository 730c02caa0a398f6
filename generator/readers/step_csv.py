"""CSV that a program of a step left in $EWAN_OUT, as a table with units. Pure.

In: the bytes of a file. Out: a table, or what is wrong in one line. The first line names the columns, with units in
parentheses: `time (s),queue depth (packets)`. Times become ns, rates bit/s, sizes bytes, in columns whose names end
with the unit; other units are kept as they are written. `time` counts from the start of the command and becomes a time
from T0, `unix time` is a time of day and becomes the same. A last line without its end was not written whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from polars.exceptions import PolarsError

from ewan.labs.base.units import scale
from ewan.labs.record.own_tables import WHOSE, OwnTable
from ewan.labs.record.tables import UNITS

MOST_COLUMNS = 256

_HEADING = re.compile(r"\s*(.*?)\s*(?:\(([^()]*)\))?\s*", re.DOTALL)
_FROM_START, _OF_DAY, _TIME = "time", "unix_time", "time_ns"
_DIGITS = 18
"""Decimal digits that 64 bits always hold; a further one before them up to 8."""
_INTEGER = r"^[+-]?[0-9]{1,18}$"


@dataclass(frozen=True, slots=True)
class _Heading:
    """`name`: of the column in the table; `unit`: as written, empty for none; `factor`: to the table's unit."""

    text: str
    name: str
    unit: str
    kind: str = ""
    factor: int = 1


def read(content: bytes, started_ns: int, t0_unix_ns: int | None) -> OwnTable:
    """Read a table; ValueError in one line for other content. `started_ns`: the command's start, from T0."""
    whole, _, _ = content.rpartition(b"\n")
    if not whole:
        raise ValueError("is empty: write a line with the names of the columns first")
    try:
        raw = pl.read_csv(whole, has_header=False, infer_schema=False)
    except PolarsError as error:
        why = "a line has more fields than the first" if "more fields" in str(error) else str(error).splitlines()[0]
        raise ValueError(f"is no CSV: {why}") from None
    headings = _headings([str(cell) if cell is not None else "" for cell in raw.row(0)])
    columns = [
        _column(raw[1:].to_series(index), heading, started_ns, t0_unix_ns) for index, heading in enumerate(headings)
    ]
    units = {column.name: _unit(column.name, heading) for column, heading in zip(columns, headings, strict=True)}
    return OwnTable(pl.DataFrame(columns), {name: unit for name, unit in units.items() if unit})


def joined(tables: Sequence[tuple[str, int, OwnTable]]) -> tuple[OwnTable, dict[int, str]]:
    """Tables of one name, with node and command, as one; and why some are left out, by command."""
    units: dict[str, str] = {}
    frames: list[pl.DataFrame] = []
    problems: dict[int, str] = {}
    for node, command, table in tables:
        differing = [name for name, unit in table.units.items() if units.get(name, unit) != unit]
        if differing:
            problems[command] = f"column {differing[0]!r} has another unit than that of the commands before"
            continue
        units |= table.units
        whose = [pl.lit(node).alias(WHOSE[0]), pl.lit(command, pl.Int64).alias(WHOSE[1])]
        frames.append(table.frame.select(*whose, pl.all()))
    return OwnTable(pl.concat(frames, how="diagonal_relaxed"), units), problems


def _headings(cells: Sequence[str]) -> list[_Heading]:
    if len(cells) > MOST_COLUMNS:
        raise ValueError(f"has {len(cells)} columns: write at most {MOST_COLUMNS}")
    result = [_heading(number, text) for number, text in enumerate(cells, 1)]
    seen: set[str] = set(WHOSE)
    for heading in result:
        name = _TIME if heading.name in (_FROM_START, _OF_DAY) and heading.kind == "time" else heading.name
        if name in seen:
            raise ValueError(f"column {heading.text!r}: a table has another column {name!r}: write another name")
        seen.add(name)
    return result


def _heading(number: int, text: str) -> _Heading:
    match = _HEADING.fullmatch(text)
    assert match is not None, "it takes any text"
    name = re.sub(r"[^a-z0-9]+", "_", match[1].lower()).strip("_")
    unit = (match[2] or "").strip()
    if not name:
        raise ValueError(f"column {number} has no name: write one, like time (s)")
    plain = unit.replace("µ", "u").replace("μ", "u")
    for kind, ending in (("time", "ns"), ("rate", "bps"), ("size", "bytes")):
        factors = scale(kind)  # type: ignore[arg-type]
        if plain in factors:
            bare = kind == "time" and name in (_FROM_START, _OF_DAY)
            return _Heading(text.strip(), name if bare else _ended(name, ending), unit, kind, factors[plain])
    if name in (_FROM_START, _OF_DAY):
        raise ValueError(f"column {text.strip()!r}: its unit is no time: write {match[1]} (s), or ms, us, ns")
    return _Heading(text.strip(), _ended(name, unit) if unit in UNITS else name, unit)


def _ended(name: str, ending: str) -> str:
    return name if name.endswith(f"_{ending}") or name == ending else f"{name}_{ending}"


def _unit(name: str, heading: _Heading) -> str:
    return UNITS.get(name.rpartition("_")[2], heading.unit) if heading.kind else heading.unit


def _column(cells: pl.Series, heading: _Heading, started_ns: int, t0_unix_ns: int | None) -> pl.Series:
    text = cells.cast(pl.String).str.strip_chars()
    text = text.set(text == "", None)
    found = (_exact if heading.kind == "time" else _number)(text, heading.factor)
    if (found.is_null() & text.is_not_null()).any():
        if heading.unit:
            wrong = text.filter(found.is_null() & text.is_not_null())[0]
            raise ValueError(f"column {heading.text!r}: {str(wrong)[:40]!r} is no number of {heading.unit}")
        return text.alias(heading.name)
    if heading.kind == "time" and heading.name == _FROM_START:
        return (found + started_ns).alias(_TIME)
    if heading.kind == "time" and heading.name == _OF_DAY:
        if t0_unix_ns is None:
            raise ValueError(f"column {heading.text!r}: the run did not record the time of day of T0")
        return (found - t0_unix_ns).alias(_TIME)
    return found.alias(heading.name)


def _number(text: pl.Series, factor: int) -> pl.Series:
    """The numbers of a column: whole where all are; null for text that is no number."""
    if text.drop_nulls().str.contains(_INTEGER).all() and factor == 1:
        return text.cast(pl.Int64, strict=False)
    return text.cast(pl.Float64, strict=False) * factor


def _exact(text: pl.Series, factor: int) -> pl.Series:
    """Whole nanoseconds, of decimal numbers without rounding: a time of day has more digits than a float."""
    digits = len(str(factor)) - 1
    frame = text.alias("text").to_frame()
    parts = pl.col("text").str.extract_groups(rf"^([+-]?)([0-8]?[0-9]{{1,{_DIGITS - digits}}})(?:\.([0-9]*))?$")
    sign = pl.when(parts.struct.field("1") == "-").then(-1).otherwise(1)
    rest = parts.struct.field("3").fill_null("").str.pad_end(digits, "0").str.slice(0, digits)
    after = pl.when(rest == "").then(pl.lit("0")).otherwise(rest).cast(pl.Int64, strict=False)
    plain = sign * (parts.struct.field("2").cast(pl.Int64, strict=False) * factor + after)
    rounded = (pl.col("text").cast(pl.Float64, strict=False) * factor).round().cast(pl.Int64, strict=False)
    return frame.select(pl.coalesce(plain, rounded).alias("value"))["value"]
