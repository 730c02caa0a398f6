"""Outputs of programs, with changes: whatever they print is rows of tables, or a problem in one line.

What ping, traceroute, tracepath, mtr, iperf3 and ITGDec print, captures of packets, and what generators leave is
changed at random and read as after a run.
"""

from __future__ import annotations

import functools
import random
import struct
from pathlib import Path
from typing import Any

import orjson

from ewan.generator import external, readers
from ewan.generator.readers import captures
from ewan.generator.rows import frame_of
from ewan.generator.tests import schedules
from ewan.labs.base import documents
from ewan.labs.base.codec import replace
from ewan.labs.base.product import ROOT
from ewan.labs.record.schedule import DitgTool, Iperf3Tool
from tests.torture import harness, mutations

TIER = "torture"
QUICK = 100
LONG = 5000

FIXTURES = ROOT / "generator/tests/fixtures"
PROGRAMS = {"ping": ("ping",), "hops": ("mtr", "traceroute", "tracepath"), "iperf3": ("iperf3",), "ditg": ("ITGDec",)}
T0_UNIX_NS = 1_700_000_000_000_000_000


def trial(seed: int, place: Path) -> None:
    draw = random.Random(seed)
    with harness.within_time():
        draw.choice((_printed, _printed, _printed, _captured, _generated))(draw, place)


@functools.cache
def _outputs() -> list[tuple[str, bytes]]:
    """Each kind with an output of it."""
    return [(path.parent.name, path.read_bytes()) for path in sorted(FIXTURES.glob("*/*.*"))]


def _entry(argv: list[str]) -> dict[str, Any]:
    return {
        "node": "a", "argv": argv, "error": None, "at_ns": 0, "started_ns": 5, "out": "out", "err": "err",
        "files": "files", "status": 0,
    }  # fmt: skip


def _printed(draw: random.Random, place: Path) -> None:
    kind, content = draw.choice(_outputs())
    programs = [name for name in PROGRAMS[kind] if kind != "hops" or name in content.decode(errors="replace").lower()]
    program = draw.choice(programs or PROGRAMS[kind])
    structured = content.startswith(b"{")
    (place / "out").write_bytes(mutations.mutated(content, draw, structured))
    (place / "err").touch()
    commands = {"t0_unix_ns": T0_UNIX_NS, "commands": [_entry([program, "x"])]}
    text = orjson.dumps(commands)
    changed = draw.random() < 0.2
    (place / "commands.json").write_bytes(mutations.mutated(text, draw, structured=True) if changed else text)
    schedule = schedules.schedule(commands=[schedules.command(0, "s", "a")])
    try:
        found = readers.results(schedule, place)
    except documents.DocumentError as refused:
        assert changed
        return harness.one_line(str(refused))
    except (LookupError, TypeError, AttributeError):
        # `records.collect` says so in a line: keys that are not there, of a file that ewan-node wrote otherwise.
        assert changed
        return
    for problem in found.tables["readings"]["problem"].drop_nulls() if found.tables else ():
        harness.one_line(problem)


def _capture(draw: random.Random) -> bytes:
    """A capture of a few packets, of which numbers are odd at times."""

    def block(kind: int, body: bytes) -> bytes:
        length = 12 + len(body) + -len(body) % 4
        return struct.pack("<II", kind, length) + body + bytes(-len(body) % 4) + struct.pack("<I", length)

    def option(code: int, value: bytes) -> bytes:
        return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)

    odd = draw.random() < 0.5
    content = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    content += block(1, struct.pack("<HHI", 1, 0, 0) + option(2, b"eth0") + option(9, b"\x09") + bytes(4))
    for number in range(draw.randrange(4)):
        time_ns = draw.choice((0, 2**63, 2**64 - 1)) if odd else T0_UNIX_NS + number
        size = draw.choice((0, 14, 60))
        interface = draw.choice((0, 0, 1, 2**31)) if odd else 0
        head = struct.pack("<IIIII", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, size, size)
        content += block(6, head + draw.randbytes(size) + bytes(-size % 4) + option(2, struct.pack("<I", 1)) + bytes(4))
    return content


def _captured(draw: random.Random, place: Path) -> None:
    (place / "files").mkdir()
    content = _capture(draw)
    (place / "files" / captures.FILE).write_bytes(mutations.mutated(content, draw) if draw.random() < 0.8 else content)
    caught = captures.read(schedules.ran(["ewan-node"]), place, T0_UNIX_NS)
    if caught.problem is not None:
        harness.one_line(caught.problem)


def _generated(draw: random.Random, place: Path) -> None:
    """As where iperf3 and D-ITG are generators."""
    kind, content = draw.choice([each for each in _outputs() if each[0] in ("iperf3", "ditg")])
    (place / "out").write_bytes(mutations.mutated(content, draw, structured=kind == "iperf3"))
    (place / "err").write_bytes(b"")
    (place / "commands.json").write_bytes(orjson.dumps({"commands": [_entry(["x"]), _entry(["x"])]}))
    tool = Iperf3Tool(1, stream=0) if kind == "iperf3" else DitgTool("x.log", 1, stream=0)
    flow = replace(schedules.FLOW, generator=kind, request=None, volume_bytes=None, command=0, tool=tool)
    tables = external.rows(schedules.schedule([flow]), place)
    for error in tables["flows"]["error"].drop_nulls():
        harness.one_line(error)
    for name, frame in tables.items():
        frame_of(frame.to_dicts(), name)
