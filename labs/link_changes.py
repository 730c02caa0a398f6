"""Makes changes to the links of a lab that is up, and keeps a record of them, so that they can be listed and repeated.

In: a lab's runtime, a link, words of `ewan lab set`. Out: the change is made, or refused; `done` returns the changes so
far. The events of a scenario in its own lab are in the records of the run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from ewan.labs import change
from ewan.labs.base.codec import Struct
from ewan.labs.base.source import DescriptionError
from ewan.labs.link import Change
from ewan.labs.link.direction import Heading
from ewan.labs.plan import Plan
from ewan.labs.routing_documents import Recovery
from ewan.labs.runtime.base import LabLifecycle, LabNotes, LinkControl, LinkFailures
from ewan.labs.runtime.requests import ChangesRequest, LinkSetRequest
from ewan.labs.runtime.state_documents import Direction, SettingsChange


class LinkChanges(LabLifecycle, LinkControl, LinkFailures, LabNotes, Protocol):
    """Labs whose links are changed."""


class LinkChangeMade(Struct, kw_only=True):
    """A change of one direction, due in `in_ns`, and what was answered to it, as `SetAnswer` has it."""

    change: Change
    in_ns: int
    at_ns: int | None = None
    ids: tuple[int, ...] | None = None
    ok: bool


def set_link(
    labs: LinkChanges, name: str, link: str, words: Mapping[str, str], direction: Direction
) -> dict[Heading, LinkChangeMade]:
    """Changes a link, as `make` does; LabError and DescriptionError, in one line."""
    plan, headings = labs.load(name).plan, change.headings_of(direction)
    asked = time.time_ns()
    answers = make(labs, plan, link, words, headings)
    in_ns = max((each.in_ns for each in answers.values()), default=0)
    settings = {key: value for key, value in words.items() if key != "at"}
    labs.note(name, SettingsChange(asked + in_ns, link, direction, settings))
    return answers


def make(
    labs: LinkControl, plan: Plan, link: str, words: Mapping[str, str], headings: Sequence[Heading]
) -> dict[Heading, LinkChangeMade]:
    """Changes a link of a lab that is up; of each direction what was changed.

    `words`: KEY → VALUE as on the command line, `at` too. All is compiled before anything is sent: a change that is
    refused (DescriptionError) leaves both directions as they were.
    """
    settings = dict(words)
    in_ns = change.delay_until(settings.pop("at", "+0s"))
    found = next((each for each in plan.links if each.name == link), None)
    if found is None:
        known = ", ".join([each.name for each in plan.links][:12])
        raise DescriptionError(f"{plan.lab} has no link {link}; it has {known}")
    past = labs.control(plan.lab, link, ChangesRequest()).changes
    now, asked = change.as_it_is(found, past), change.wanted(settings)
    change.check_headings(asked, headings)
    compiled = {each: change.compile_change(plan, now, each, asked) for each in headings}
    answers = {}
    for heading, made in compiled.items():
        told = labs.control(plan.lab, link, LinkSetRequest.of(made, link, heading, in_ns))
        answers[heading] = LinkChangeMade(change=made, in_ns=in_ns, at_ns=told.at_ns, ids=told.ids, ok=told.ok)
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
