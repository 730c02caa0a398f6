"""Traces as files have them: our CSV, mahimahi's lists of opportunities, TheaterQ's rows, Pensieve's pairs. Pure.

In: a file's name and its text. Out: a `Trace`, or a TraceError in one line that names the file and the line. What is
no quantity is not shown: as root it may be a line of a file that others must not see.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Literal

from ewan.labs.base.units import MEGA, NS_PER_MS, NS_PER_SECOND, PPB, Duration, Fraction, Rate, Size
from ewan.labs.traces import COLUMNS, LONGEST_NS, MOST_ROWS, Opportunities, Trace, TraceError, TraceStep, TraceSteps

Format = Literal["csv", "mahimahi", "theaterq", "pensieve"]
FORMATS: tuple[Format, ...] = ("csv", "mahimahi", "theaterq", "pensieve")
_QUANTITY = re.compile(r"[+-]?[0-9.]{1,20} ?[A-Za-zµ%/]{0,6}")
_WHOLE = re.compile(r"[0-9]{1,20}")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{0,24})?(?:[eE][+-]?[0-9]{1,2})?")
_PAIR = re.compile(rf"{_NUMBER.pattern}[ \t]+{_NUMBER.pattern}")
_NOTHING = re.compile(r"0(?:\.0*)? ?(?:[kMG]?bit/s)?")
_US = 1000
_SCALE = 2**32 - 1
"""TheaterQ's 100 %."""


def parse(name: str, text: str, form: Format | None = None) -> Trace:
    """The trace of a file, in the format that is named or that the file shows.

    A last line without a line end is refused: of a file that was cut off it may be half a row, and then a shorter
    number or an empty cell, which say something else.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    if lines and not text.endswith(("\n", "\r")):
        half = "has no line end: the file may be cut off there: fetch it again, or end the line"
        raise TraceError(f"{name}:{lines[-1][0]}: the last line {half}")
    match form or detect(text):
        case "csv":
            return _csv(name, [(number, line) for number, line in lines if line and not line.startswith("#")])
        case "mahimahi":
            return _mahimahi(name, [(number, line) for number, line in lines if line and not line.startswith("#")])
        case "theaterq":
            return _theaterq(name, [(number, line) for number, line in lines if line[:1].isdigit()])
        case "pensieve":
            return _pensieve(name, [(number, line) for number, line in lines if line and not line.startswith("#")])


def detect(text: str) -> Format:
    """By the first line that says something: our header, a whole number, two numbers with a space between, or else."""
    for line in text.splitlines():
        said = line.strip()
        if said and not said.startswith("#"):
            if said.split(",")[0].strip() == "time":
                return "csv"
            if _PAIR.fullmatch(said):
                return "pensieve"
            return "mahimahi" if _WHOLE.fullmatch(said) else "theaterq"
    return "csv"


def _wrong(name: str, number: int, what: str, found: str, instead: object) -> TraceError:
    shown = f' "{found}"' if _QUANTITY.fullmatch(found) else ""
    return TraceError(f"{name}:{number}: {what}{shown}: {instead}")


def _rate(text: str) -> int:
    return 0 if _NOTHING.fullmatch(text) else Rate.parse(text).bps


def _buffer(text: str) -> int:
    size = Size.parse(text).bytes
    if not 0 < size <= Size.parse("8GiB").bytes:
        raise TraceError('write a buffer from 1B to 8GiB, like "500kB"')
    return size


_READ: dict[str, Callable[[str], int]] = {
    "time": lambda text: Duration.parse(text, LONGEST_NS).ns,
    "rate": _rate,
    "delay": lambda text: Duration.parse(text).ns,
    "loss": lambda text: Fraction.parse(text).ppb,
    "buffer": _buffer,
}


def _csv(name: str, lines: list[tuple[int, str]]) -> TraceSteps:
    if not lines:
        raise TraceError(f'{name} is empty: write a header, like "time,rate,delay,loss", and rows')
    number, header = lines[0]
    names = [part.strip() for part in header.split(",")]
    if names[0] != "time" or len(names) < 2 or len(set(names)) < len(names) or set(names) - _READ.keys():
        raise TraceError(f'{name}:{number}: write a header of "time" and any of {", ".join(COLUMNS)}, each once')
    if len(lines) - 1 > MOST_ROWS:
        raise TraceError(f"{name} has {len(lines) - 1} rows: write at most {MOST_ROWS}")
    rows: list[TraceStep] = []
    known: dict[tuple[str, str], int] = {}
    for number, line in lines[1:]:
        cells = [part.strip() for part in line.split(",")]
        if len(cells) != len(names):
            raise TraceError(f"{name}:{number}: has {len(cells)} columns: write {len(names)}, as the header has")
        values: dict[str, int] = {}
        for column, cell in zip(names, cells, strict=True):
            if not cell:
                continue
            if (column, cell) not in known:
                try:
                    known[column, cell] = _READ[column](cell)
                except ValueError as error:
                    raise _wrong(name, number, column, cell, error) from None
            values[column] = known[column, cell]
        _in_order(name, number, rows[-1].at_ns if rows else None, values.pop("time", None))
        at_ns = known["time", cells[0]]
        missing = [] if rows else [column for column in names[1:] if column not in values]
        if missing:
            raise TraceError(f"{name}:{number}: the first row says no {missing[0]}: write one, or leave the column out")
        rows.append(TraceStep(at_ns, **{COLUMNS[column]: value for column, value in values.items()}))  # type: ignore[index]
    if not rows:
        raise TraceError(f'{name} has no row: write one at time 0s below the header, like "0s,10Mbit/s"')
    return TraceSteps(tuple(rows), rows[-1].at_ns)


def _in_order(name: str, number: int, before_ns: int | None, at_ns: int | None) -> None:
    if at_ns is None:
        raise TraceError(f'{name}:{number}: says no time: write one, like "15s"')
    if before_ns is None and at_ns:
        raise _wrong(name, number, "time", str(Duration(at_ns)), 'the first one must be 0: write "0s"')
    if before_ns is not None and at_ns <= before_ns:
        raise _wrong(name, number, "time", str(Duration(at_ns)), "is not after the row before it: write a later one")


def _whole(name: str, number: int, what: str, text: str, most: int) -> int:
    if _WHOLE.fullmatch(text) and int(text) <= most:
        return int(text)
    raise _wrong(name, number, what, text, f"write a whole number up to {most}")


def _mahimahi(name: str, lines: list[tuple[int, str]]) -> Opportunities:
    counts: dict[int, int] = {}
    before = 0
    for number, line in lines:
        at = _whole(name, number, "opportunity", line, LONGEST_NS // NS_PER_MS)
        if at < before:
            raise _wrong(name, number, "opportunity", line, "is before the one above it: write milliseconds in order")
        before = at
        counts[at] = counts.get(at, 0) + 1
    if not before:
        raise TraceError(f"{name} has no opportunity after 0: write one a line, in milliseconds")
    if len(counts) > MOST_ROWS:
        raise TraceError(f"{name} has opportunities at {len(counts)} times: write at most {MOST_ROWS}")
    return Opportunities(tuple((at * NS_PER_MS, count) for at, count in counts.items()), before * NS_PER_MS)


def _theaterq(name: str, lines: list[tuple[int, str]]) -> TraceSteps:
    """KEEP (µs), LATENCY (ns), RATE (bit/s), LOSS (of 2^32 - 1), LIMIT; or the longer lines of its extended format.

    The limit counts packets that are delayed too, which no limit here does: it is read and not taken over.
    """
    rows: list[TraceStep] = []
    at_ns = 0
    for number, line in lines:
        cells = [part.strip() for part in line.split(",")]
        if len(cells) not in (5, 8, 9):
            write = "write KEEP,LATENCY,RATE,LOSS,LIMIT, a header of ours, or seconds and Mbit/s with a space between"
            columns = len(cells) if len(cells) > 1 else len(line.replace(";", " ").split())
            raise TraceError(f"{name}:{number}: has {columns} columns: {write}")
        if len(cells) > 5:
            jitter, *more = cells[2], *cells[6:]
            if any(each != "0" for each in (jitter, *more)):
                raise TraceError(f"{name}:{number}: a trace here has no jitter, duplicates or routes: write 0 for them")
            cells = [*cells[:2], *cells[3:6]]
        keep = _whole(name, number, "KEEP", cells[0], LONGEST_NS // _US)
        latency = _whole(name, number, "LATENCY", cells[1], Duration.LONGEST)
        rate = _whole(name, number, "RATE", cells[2], Rate.HIGHEST)
        loss = _whole(name, number, "LOSS", cells[3], _SCALE)
        _whole(name, number, "LIMIT", cells[4], _SCALE)
        if not keep:
            raise TraceError(f"{name}:{number}: KEEP is 0: write at least 1 (µs)")
        if rate < Rate.LOWEST:
            raise _wrong(name, number, "RATE", cells[2], f"write at least {Rate.LOWEST} (0 is no limit there)")
        if len(rows) == MOST_ROWS:
            raise TraceError(f"{name} has more than {MOST_ROWS} rows: write fewer")
        rows.append(TraceStep(at_ns, rate, latency, (loss * PPB + _SCALE // 2) // _SCALE))
        at_ns += keep * _US
    if not rows:
        raise TraceError(f"{name} has no row: write KEEP,LATENCY,RATE,LOSS,LIMIT, or a header of ours")
    return TraceSteps(tuple(rows), at_ns)


def _pensieve(name: str, lines: list[tuple[int, str]]) -> TraceSteps:
    """Seconds and Mbit/s, rounded to ns and bit/s.

    As in Pensieve's simulator (`fixed_env`), the rate of a line holds from the time of the line before it to its own:
    the first line says when the trace begins, and its rate is not used.
    """
    if len(lines) - 1 > MOST_ROWS:
        raise TraceError(f"{name} has {len(lines)} rows: write at most {MOST_ROWS}")
    rows: list[TraceStep] = []
    begin_ns: int | None = None
    at_ns = 0
    for number, line in lines:
        cells = line.split()
        if len(cells) != 2:
            raise TraceError(
                f"{name}:{number}: has {len(cells)} columns: write seconds and Mbit/s with a space between"
            )
        time_ns = _times(name, number, "time", cells[0], NS_PER_SECOND)
        rate = _times(name, number, "rate", cells[1], MEGA)
        if begin_ns is None:
            begin_ns = time_ns
            continue
        if time_ns - begin_ns <= at_ns:
            raise _wrong(name, number, "time", cells[0], "is not after the line before it: write a later one")
        if 0 < rate < Rate.LOWEST:
            raise _wrong(name, number, "rate", cells[1], "write 0 for an outage, or at least 0.008 (Mbit/s)")
        if rate > Rate.HIGHEST:
            raise _wrong(name, number, "rate", cells[1], f"write at most {Rate(Rate.HIGHEST)}, in Mbit/s")
        rows.append(TraceStep(at_ns, rate))
        at_ns = time_ns - begin_ns
    if not rows:
        raise TraceError(f"{name} has no two lines of seconds and Mbit/s: the second one says the rate until its time")
    return TraceSteps(tuple(rows), at_ns)


def _times(name: str, number: int, what: str, text: str, unit: int) -> int:
    if not _NUMBER.fullmatch(text) or (found := Decimal(text) * unit) >= 2**62:
        raise _wrong(name, number, what, text, 'write a number, like "0.5"')
    return round(found)
