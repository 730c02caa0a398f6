"""Events on links: the words of a scenario as changes that a running link understands.

Comes in: a run and its plan. Goes out: the program's events, in order of time, those that wait for a state last; each
change is compiled against the link as the events before it leave it, and refused for what `ewan lab set` would refuse
it for.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from ewan.generator.scenario import fields
from ewan.generator.scenario.conditions import Conditions
from ewan.generator.scenario.runs import ScenarioRun
from ewan.labs.base.codec import replace
from ewan.labs.base.source import DescriptionError
from ewan.labs.base.units import Duration
from ewan.labs.base.wording import nearest
from ewan.labs.change import ChangeRequest, after, check_headings, compile_change, headings_of
from ewan.labs.link import Change, Direction
from ewan.labs.link.change import LIVE
from ewan.labs.link.direction import Heading
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.plan import Plan
from ewan.labs.record.events import Event, carrier_change, link_change

_TIMES = ("at", "when", "for")
NOT_OF_THE_LINK = (*_TIMES, "link", "direction")
"""The keys of an event that say when it is and of what; the others are what the link gets."""


def events(run: ScenarioRun, plan: Plan, conditions: Conditions, begin_ns: int, longest_ns: int) -> tuple[Event, ...]:
    """The events of a run; DescriptionError for an unknown link, for keys that no link has, and for values that a link
    has no room for."""
    links = {link.name: link for link in plan.links}
    made: list[Event] = []
    changed: dict[tuple[int, Heading], tuple[Direction, Change]] = {}
    _check_apart(run)
    for begins, index, event in _in_order(run):
        path = ("events", index)
        if event.link not in links:
            raise run.places.error((*path, "link"), f"is no emulated link: {nearest(event.link, links)}")
        if event.when is None and "at" not in event.model_fields_set:
            raise run.places.error((*path, "at"), 'is missing: write "at:" or "when:" too')
        waits, when = conditions.number("events", index), "" if event.when is None else event.when.said
        lasts_ns = 0 if begins or event.for_ is None else event.for_.ns
        at_ns = event.at.ns + lasts_ns + (0 if waits else begin_ns)
        if at_ns >= longest_ns:
            key, what = ("at", "is") if begins else ("for", "ends")
            message = f'{what} when all is over, at {Duration(longest_ns - begin_ns)}: write a larger "longest:"'
            raise run.places.error((*path, key), message)
        if event.down is not None or event.up is not None:
            down = _is_down(event, run, index)
            change = carrier_change(at_ns, event.link, down if begins else not down)
            made.append(replace(change, after=waits, when=when))
            continue
        asked = _asked(event, run, index)
        headings = headings_of(event.direction)
        for direction in headings:
            try:
                if begins:
                    check_headings(asked, headings)
                    change = compile_change(plan, links[event.link], direction, asked)
                    link = links[event.link]
                    changed[index, direction] = (link.forward if direction == "forward" else link.backward, change)
                else:
                    change = _back(*changed[index, direction])
            except DescriptionError as error:
                raise run.places.error(path, str(error)) from None
            links[event.link] = after(links[event.link], direction, change)
            made.append(replace(link_change(at_ns, event.link, direction, change), after=waits, when=when))
    return tuple(made)


def _check_apart(run: ScenarioRun) -> None:
    """DescriptionError for an event that changes what another one changes for a while that has not passed, and for one
    that brings a link back for a while."""
    timed = [(index, event) for index, event in enumerate(run.document.events) if event.when is None]
    for index, lasting in enumerate(run.document.events):
        if lasting.for_ is not None and lasting.up is not None:
            raise run.places.error(("events", index, "for"), 'is of a change, or of "down: true": leave it out')
    for index, lasting in timed:
        if lasting.for_ is None:
            continue
        ends_ns = lasting.at.ns + lasting.for_.ns
        for other, event in timed:
            both = _named(run, index) & _named(run, other)
            ways = "both" in (lasting.direction, event.direction) or lasting.direction == event.direction
            within = lasting.at.ns <= event.at.ns < ends_ns
            if other != index and event.link == lasting.link and both and ways and within:
                message = f"changes {min(both)} while events[{index}] does, until {Duration(ends_ns)}: write it later"
                raise run.places.error(("events", other, "at"), message)


def _named(run: ScenarioRun, index: int) -> set[str]:
    """The keys of a link that an event changes; its carrier is one."""
    keys = run.written("events", index).keys() - set(NOT_OF_THE_LINK)
    return {"down" if key == "up" else key for key in keys}


def _in_order(run: ScenarioRun) -> list[tuple[bool, int, fields.EventKeys]]:
    """The beginnings (True) and the ends of all events, with their numbers, in order of time; those that wait for a
    state are last."""
    listed = []
    for index, event in enumerate(run.document.events):
        waits = event.when is not None
        listed.append(((waits, event.at.ns, True), (True, index, event)))
        if event.for_ is not None:
            if not event.for_.ns:
                raise run.places.error(("events", index, "for"), 'is no time: write for example "50ms"')
            listed.append(((waits, event.at.ns + event.for_.ns, False), (False, index, event)))
    return [item for _, item in sorted(listed, key=lambda item: item[0])]


def _back(before: Direction, change: Change) -> Change:
    """The change that gives a direction back the values which `change` replaced."""
    named = [key for key, value in asdict(change).items() if value is not None and key != "restart_trace"]
    values = {key: getattr(before, key) for key in named}
    if None in values.values():
        raise DescriptionError('has something that the link did not have before: leave "for" out')
    return Change(**values)


def _asked(event: fields.EventKeys, run: ScenarioRun, index: int) -> ChangeRequest:
    """The settings that the event names."""
    path = ("events", index)
    said = {key: value for key, value in run.written("events", index).items() if key not in NOT_OF_THE_LINK}
    for key in said:
        if key not in LIVE:
            message = f"does not change while a lab runs: write one of {', '.join(LIVE)}"
            raise run.places.error((*path, key), message)
    named = {key: _word(value) for key, value in said.items() if value is not None}
    if not named:
        raise run.places.error(path, 'changes nothing: write for example "rate: 500Mbit/s"')
    keys = DirectionKeys.model_construct(**{key: getattr(event, key) for key in named})
    return ChangeRequest(keys, named)


def _is_down(event: fields.EventKeys, run: ScenarioRun, index: int) -> bool:
    """Return whether the event takes the link down, or else brings it back; such an event may change nothing else."""
    written = run.written("events", index).keys() - {*_TIMES, "link"}
    if len(written) > 1 or (event.down if event.up is None else event.up) is not True:
        raise run.places.error(("events", index), 'write "down: true" or "up: true", and nothing else of the link')
    return event.up is None


def _word(value: Any) -> Any:
    """The value as the command line writes it; groups of keys (a loss model) stay as they are."""
    return ("true" if value else "false") if isinstance(value, bool) else value
