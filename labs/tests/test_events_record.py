"""Events of a program and of events.json: their data, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.labs.base import codec
from ewan.labs.base.documents import DocumentError
from ewan.labs.link import Change, ConstantDelay
from ewan.labs.record import events
from ewan.labs.record.events import EventOutcome, carrier_change, link_change
from ewan.labs.runtime import program as programs
from ewan.labs.runtime.program import Program

SLOWER = link_change(7, "core", "backward", Change(rate_bps=8000, delay=ConstantDelay(5)))
DOWN, UP = carrier_change(9, "core", True), carrier_change(10, "core", False)


def test_a_program_has_the_same_keys_for_both_kinds() -> None:
    program = Program(events=(SLOWER, DOWN, UP), longest_ns=20)
    data = orjson.loads(program.to_json())["events"]
    assert data == [
        {
            "at_ns": 7,
            "link": "core",
            "direction": "backward",
            "change": {"rate_bps": 8000, "delay": {"kind": "constant", "delay_ns": 5}},
            "down": None,
        },
        {"at_ns": 9, "link": "core", "direction": "forward", "change": {}, "down": True},
        {"at_ns": 10, "link": "core", "direction": "forward", "change": {}, "down": False},
    ]
    assert programs.from_json(program.to_json(), 0) == program


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"down": 1}, r"program\.events\[0\]\.down is 1"),
        ({"down": True, "change": {"rate_bps": 5}}, r"events\[0\].*changes nothing else"),
        ({"down": True, "direction": "backward"}, r"events\[0\].*its direction is forward"),
        ({"rate": 5}, r"events\[0\] has an unknown key 'rate'"),
    ],
)
def test_what_no_event_says_is_refused(change: dict[str, Any], says: str) -> None:
    event = {"at_ns": 9, "link": "core", "direction": "forward", "change": {}, "down": None, **change}
    data = {"format": "ewan-program/1", "probe": None, "commands": [], "longest_ns": 1, "events": [event]}
    with pytest.raises(ValueError, match=says):
        programs.from_json(orjson.dumps(data), 0)


def test_what_became_of_events_is_read(tmp_path: Path) -> None:
    assert events.read(tmp_path) is None
    file = tmp_path / events.FILE
    made = {**codec.data_of(DOWN), "applied_ns": 11, "error": None, "recovered_ns": 12}
    file.write_bytes(orjson.dumps({"format": "ewan-events/1", "events": [made]}))
    assert events.read(tmp_path) == (EventOutcome(9, "core", "forward", Change(), 11, None, True, 12),)
    file.write_bytes(orjson.dumps({"format": "ewan-events/1", "events": [{**made, "applied_ns": "soon"}]}))
    with pytest.raises(DocumentError, match=r"events\.json: events\[0\]\.applied_ns is 'soon'"):
        events.read(tmp_path)
