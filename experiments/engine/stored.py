"""A program read back from its program.json, so that a run is resumed or repeated from its directory alone. Pure."""

from __future__ import annotations

from typing import Any

import orjson

from ewan.labs.base.typed import MOST_SHOWN, read_typed
from ewan.labs.runtime.program import FORMAT, Command, DisturbanceWatch, Event, Preparation, Program

KINDS: dict[str, Any] = {
    "probe": dict | None,
    "traffic": dict | None,
    "commands": tuple[Command, ...],
    "prepare": tuple[Preparation, ...],
    "events": tuple[Event, ...],
    "watch_ns": int,
    "disturbances": DisturbanceWatch | None,
    "drops": tuple[str, ...],
    "longest_ns": int,
    "needs": tuple[str, ...],
}
"""What each key of the file holds; what is in requests is for `ewan-node` to check."""


def program(text: bytes, expected_ns: int) -> Program:
    """The program whose `to_json` is `text`; ValueError for another format or unknown keys.

    `expected_ns` is for progress alone and is not in the file.
    """
    document = orjson.loads(text)
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise ValueError(f"the program's format is not {FORMAT!r}")
    absent: dict[str, Any] = {
        "prepare": [],
        "traffic": None,
        "events": [],
        "watch_ns": 0,
        "disturbances": None,
        "drops": [],
        "needs": [],
    }
    result = {**absent, **document}
    for key in result.keys() ^ KINDS.keys():
        raise ValueError(f"the program has {'an unknown' if key in result else 'no'} key {key[:MOST_SHOWN]!r}")
    found = {key: read_typed(kind, result[key], f"program.{key}") for key, kind in KINDS.items()}
    if any(not each.argv for each in (*found["commands"], *found["prepare"])):
        raise ValueError("the program has a command without words")
    return Program(expected_ns=expected_ns, **found)
