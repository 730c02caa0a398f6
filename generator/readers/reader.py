"""The interface of a reader of a program's output: types only.

In: the output of a command, and the calls of the program that are in it. Out: rows of the run's tables without the
columns of the owner, and a line about the reading itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ewan.generator.readers.call import Call
from ewan.generator.rows import Row, Rows


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The output of a command. `calls`: those of the reader's programs; `started_ns`: the command's start, from T0;
    `t0_unix_ns`: T0 as time of day, None where the run did not record it."""

    text: str
    calls: tuple[Call, ...]
    started_ns: int
    t0_unix_ns: int | None


@dataclass(slots=True)
class ReaderResult:
    """`rows` by table. `totals`: columns of the table of readings, as far as the program prints them. `problem`: one
    line on the part that could not be read, None: there is none."""

    rows: Rows = field(default_factory=dict)
    totals: Row = field(default_factory=dict)
    problem: str | None = None


NUMBER = r"\d{1,12}(?:\.\d{1,12})?"
"""A time as programs print it, as a part of an expression. What has more digits is none."""
LONGEST_LINE = 4096
"""Characters. No tool prints a longer line, and expressions that search one take the square of its length."""


def lines(text: str) -> Iterator[str]:
    """The lines of an output, each cut off at `LONGEST_LINE`."""
    return (line[:LONGEST_LINE] for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader. `name`: its name in the table of readings; `programs`: those whose output it reads.

    It refuses nothing: a part that it cannot read is a `problem`."""

    name: str
    programs: tuple[str, ...]
    read: Callable[[CommandOutput], ReaderResult | None]
    """None: the output has no data, as a server's log for example."""
