"""A program read back from its program.json, so that a run is resumed or repeated from its directory alone. Pure."""

from __future__ import annotations

from typing import Any

import orjson

from labs.runtime.program import FORMAT, Command, Event, Program, Step


def program(text: bytes, expected_ns: int) -> Program:
    """The program whose `to_json` is `text`; ValueError for another format or unknown keys.

    `expected_ns` is for progress alone and is not in the file.
    """
    document: dict[str, Any] = orjson.loads(text)
    if document.pop("format", None) != FORMAT:
        raise ValueError(f"the program's format is not {FORMAT!r}")
    try:
        commands = tuple(Command(**_words(each)) for each in document.pop("commands", ()))
        prepare = tuple(Step(**_words(each)) for each in document.pop("prepare", ()))
        events = tuple(Event(**each) for each in document.pop("events", ()))
        return Program(commands=commands, prepare=prepare, events=events, expected_ns=expected_ns, **document)
    except TypeError as error:
        raise ValueError(f"not a program: {error}") from None


def _words(command: dict[str, Any]) -> dict[str, Any]:
    return {**command, "argv": tuple(command["argv"])}
