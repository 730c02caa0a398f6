"""A change of a running link: `rate=500Mbit/s delay=80ms` in the words of a description, as the link reads it.

Comes in: the link's direction as it is now, and the settings that it is to have: words of the command line (`wanted`),
or a scenario's own. Goes out: a `Change`. Settings that are not named stay as they are; settings that a description
could not have are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ewan.labs.base.codec import JsonValue, replace
from ewan.labs.base.source import DescriptionError, Path, Place, Places
from ewan.labs.base.units import NS_PER_DAY, Duration, Rate, Size, UnitError
from ewan.labs.base.units.shown import about
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.abilities import refusal
from ewan.labs.link import Change, Direction, DropTail, Queue, Red, TraceOpportunities, acks
from ewan.labs.link.change import LIVE
from ewan.labs.link.context import LinkContext
from ewan.labs.link.delay import nominal_ns
from ewan.labs.link.direction import Heading, compile_direction, described, obstacle
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.link.settings import settings
from ewan.labs.link.trace import said
from ewan.labs.plan import Link, Plan
from ewan.labs.routing_documents import Recovery
from ewan.labs.spec import from_template

# A link's store has a slot for each 256 bytes that its plan asks for, so it holds this much more in full packets.
ROOM = 5

PROTOCOLS = {"static": "static routing", "ospf": "OSPF", "isis": "IS-IS", "bgp": "BGP"}

_PATH: Path = ("wan",)


class PastChange(Protocol):
    """A change that was made to a direction of a link."""

    @property
    def link(self) -> str:
        """The link's name."""
        ...

    @property
    def direction(self) -> Heading:
        """The direction that changed."""
        ...

    @property
    def change(self) -> Change:
        """The new values."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Link settings that a running link is to have; `words` are those that name them, as errors show them."""

    keys: DirectionKeys
    words: Mapping[str, JsonValue]

    @property
    def places(self) -> Places:
        """Errors say `DELAY "5ms": …`."""
        known = {(*_PATH, key): Place("", key.upper(), str(value)) for key, value in self.words.items()}
        return Places("", {(): Place("", "", None), **known})


def wanted(words: Mapping[str, str]) -> ChangeRequest:
    """The change that words of the command line ask for; DescriptionError for words that a description would refuse."""
    unknown = [word for word in words if word not in LIVE]
    if unknown:
        raise DescriptionError(f"{unknown[0]}={words[unknown[0]]}: a link has {', '.join(LIVE)}")
    if not words:
        raise DescriptionError("nothing to change: write for example rate=500Mbit/s")
    return ChangeRequest(from_template("dumbbell", words).description.wan, words)


def check_headings(asked: ChangeRequest, headings: Collection[Heading]) -> None:
    """DescriptionError for what only both directions of a link can become."""
    if "duplex" in asked.words and len(headings) == 1:
        raise DescriptionError(f"duplex={asked.words['duplex']}: both directions share the medium: write no direction")


def compile_change(plan: Plan, link: Link, heading: Heading, asked: ChangeRequest) -> Change:
    """The change in one direction; DescriptionError if it is not possible."""
    now = link.forward if heading == "forward" else link.backward
    _check_trace(link, now, asked)
    way = settings(_PATH, Rate(now.rate_bps), [(_PATH, _kept(now, asked.keys)), (_PATH, asked.keys)])
    delay_ns = way.delay_ns if way.delay_ns is not None else nominal_ns(now.delay)
    longest_ns = max((pair.rtt_ns for pair in plan.pairs), default=2 * delay_ns)
    at = LinkContext(asked.places, link.name, link.role, delay_ns, _mtu(plan, link), longest_ns)
    compiled = compile_direction(way, at)
    if link.backend != "hardware" and compiled.store_bytes > ROOM * now.store_bytes:
        wanted, room = Size(compiled.store_bytes), Size(ROOM * now.store_bytes)
        raise DescriptionError(
            f"{link.name} {heading} would hold {wanted}, and has room for {room}: "
            "bring the lab up with the larger delay, rate or buffer"
        )
    kept = compiled.queue.discipline if "queue" in asked.words else now.queue.discipline
    filters = compiled.ack_filter if "acks" in asked.words else now.ack_filter
    then = replace(compiled, ack_filter=filters, queue=replace(compiled.queue, discipline=kept))
    if why := acks.refusal(filters, then.queue):
        key = "acks" if "acks" in asked.words else "queue"
        raise DescriptionError(f"{key}={asked.words.get(key, '')}: {why}")
    if link.backend == "hardware":
        _check_device(plan, link, then, asked)
    if link.backend in ("kernel", "tbf"):
        found = obstacle(then, way)
        if found is not None:
            key, why = found
            raise DescriptionError(
                f"{key}={asked.words.get(key, '')}: {why}, or emulator: user in the description of {link.name}"
            )
        _check_kernel_queue(link, asked.words, then.queue, now.queue)
    return Change(**{key: getattr(then, key) for word in asked.words for key in LIVE[word].plan})


def _check_device(plan: Plan, link: Link, then: Direction, asked: ChangeRequest) -> None:
    """Refuses what the link's device cannot be; what its keeper finds too where the file beside a driver is gone."""
    found = next(each for each in plan.hardware if each.link == link.name)
    try:
        known = catalogue.models(found.driver)[found.model].abilities
    except (ValueError, KeyError):
        return
    if refused := refusal(then, known, found.own_queue and "buffer" not in asked.words):
        key, why = refused
        raise DescriptionError(f"{key}={asked.words.get(key, '')}: {link.name} is a {found.model}: {why}")


def _kept(now: Direction, asked: DirectionKeys) -> DirectionKeys:
    """The settings of the direction as it is that a change starts from.

    `jitter=0ms` asks for a constant delay: how the jitter was spread until then is not kept.
    """
    keys = described(now)
    if asked.jitter is None or asked.jitter.ns > 0:
        return keys
    return keys.model_copy(update={"distribution": None, "correlation": None, "reorder": None})


def _check_trace(link: Link, now: Direction, asked: ChangeRequest) -> None:
    """Refuses what the trace of a direction says."""
    told = [word for word in asked.words if word in ("aggregate", "duplex")]
    if told and isinstance(now.trace, TraceOpportunities):
        raise DescriptionError(
            f"{told[0]}={asked.words[told[0]]}: the trace of {link.name} says when packets leave: leave it out"
        )
    for column in said(now.trace):
        told = [word for word in asked.words if set(LIVE[word].plan) & set(LIVE[column].plan)]
        if told:
            raise DescriptionError(
                f"{told[0]}={asked.words[told[0]]}: the trace of {link.name} says its {column}: "
                "bring the lab up without it, or with another one"
            )


def _mtu(plan: Plan, link: Link) -> int:
    ports = (port for node in plan.nodes if node.name == link.a.node for port in node.interfaces)
    return next(port.mtu for port in ports if port.name == link.a.interface)


def _check_kernel_queue(link: Link, words: Mapping[str, JsonValue], then: Queue, now: Queue) -> None:
    """Refuses a queue that the kernel could only have by dropping what waits in it."""
    if "queue" not in words and "buffer" not in words:
        return
    word = "queue" if "queue" in words else "buffer"
    kind, was = then.discipline.kind, now.discipline.kind
    unit, counted = ("packets" if each.limit_packets is not None else "bytes" for each in (then, now))
    why = ""
    if kind != was:
        why = f"its queue is {was}, and another one would drop what waits in it"
    elif isinstance(then.discipline, DropTail) and unit != counted:
        why = f"its queue counts {counted}, and another one would drop what waits in it"
    elif isinstance(then.discipline, Red) and (then.limit_bytes, then.limit_packets) != (
        now.limit_bytes,
        now.limit_packets,
    ):
        why = "RED of the kernel drops what waits when it gets another buffer"
    if why:
        raise DescriptionError(
            f"{word}={words[word]}: {link.name} is made of the kernel's parts; {why}: bring the lab up so, or write "
            "emulator: user"
        )


def after(link: Link, heading: Heading, change: Change) -> Link:
    """The link with a change made to one of its directions."""
    if heading == "forward":
        return replace(link, forward=change.applied(link.forward))
    return replace(link, backward=change.applied(link.backward))


def as_it_is(link: Link, past: Sequence[PastChange]) -> Link:
    """The link with the changes that were made to it, in the order in which the spinner tells them."""
    for each in past:
        if each.link == link.name:
            link = after(link, each.direction, each.change)
    return link


def plan_as_it_is(plan: Plan, past: Sequence[PastChange]) -> Plan:
    """The plan with the changes that were made to its links."""
    return replace(plan, links=tuple(as_it_is(link, past) for link in plan.links))


def headings_of(direction: Heading | Literal["both"]) -> tuple[Heading, ...]:
    """The directions that are meant."""
    return ("forward", "backward") if direction == "both" else (direction,)


def delay_until(at: str) -> int:
    """`at=+10s` as nanoseconds from now."""
    if not at.startswith("+"):
        raise DescriptionError(f'at={at}: write a time from now as "+10s"')
    try:
        return Duration.parse(at[1:], NS_PER_DAY).ns
    except UnitError as error:
        raise DescriptionError(f"at={at}: {error}") from None


def carrier_words(plan: Plan, link: str, up: bool, told: Recovery) -> str:
    """The effect on the routes, from the runtime's `carrier` answer, in words that follow "LINK: down, now"."""
    lost = [f"{each.source} to {each.sink}" for each in told.cut_off]
    said = [f"no other path from {lost[0]}{f' and {len(lost) - 1} more pairs' if lost[1:] else ''}"] if lost else []
    left = [f"{each.source} to {each.sink}" for each in told.unreachable]
    if plan.routing == "static":
        said += [f"routes are static, and none leads from {left[0]}"] if left else []
    elif told.recovered_ns is None:
        said += [f"{PROTOCOLS[plan.routing]} has found no way{f' from {left[0]}' if left else ''} yet"]
    elif told.recovered_ns > 0:
        what = "is back on its paths" if up else "goes another way"
        said += [f"{PROTOCOLS[plan.routing]} {what} after {about(told.recovered_ns, 'time', 3)}"]
    elif not lost:
        said += ["no path uses it" if not up else "the paths are as they were"]
    return "".join(f"; {each}" for each in said)
