"""What is done with the links of a lab that is up, made and noted, so that it can be told and done again.

In: a lab's runtime, a link, words of `ewan lab set`. Out: the change is made, or refused; `done` tells what was. What a
scenario's events do in its own lab is told by its records.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from ewan.labs import change
from ewan.labs.routing_documents import Recovery
from ewan.labs.runtime.base import LabLifecycle, LabNotes, LinkControl, LinkFailures
from ewan.labs.runtime.state_documents import Direction, SettingsChange


class LinkChanges(LabLifecycle, LinkControl, LinkFailures, LabNotes, Protocol):
    """Labs whose links are changed."""


def set_link(labs: LinkChanges, name: str, link: str, words: Mapping[str, str], direction: Direction) -> dict[Any, Any]:
    """Changes a link as `change.make` does, whose answer it gives; LabError and DescriptionError, in one line."""
    plan, headings = labs.load(name).plan, change.headings_of(direction)
    asked = time.time_ns()
    answers = change.make(plan, link, words, headings, lambda request: labs.control(name, link, request))
    in_ns = max((each["in_ns"] for each in answers.values()), default=0)
    settings = {key: value for key, value in words.items() if key != "at"}
    labs.note(name, SettingsChange(asked + in_ns, link, direction, settings))
    return answers


def set_carrier(labs: LinkChanges, name: str, link: str, up: bool) -> Recovery:
    """Fails a link, or mends it, as the runtime's `carrier` does, whose answer it gives; LabError."""
    asked = time.time_ns()
    told = labs.carrier(name, link, up)
    labs.note(name, SettingsChange(asked, link, "both", {"up" if up else "down": "true"}))
    return told


def done(labs: LabNotes, name: str) -> list[SettingsChange]:
    """All that was done in a lab since it came up, by its time; what is due later too."""
    return sorted(labs.notes(name), key=lambda each: each.due_unix_ns)


def said(each: SettingsChange) -> str:
    """`delay=40ms`, `down`; with its direction if it has one."""
    words = [key if key in ("down", "up") else f"{key}={value}" for key, value in each.words.items()]
    return " ".join(words) + ("" if each.direction == "both" else f", {each.direction}")
