"""A change of a running link: `rate=500Mbit/s delay=80ms` in the words of a description, as the link reads it.

Comes in: the link's direction as it is now and the words. Goes out: the keys of `set` on the control socket.
What the words do not say stays as it is; refused is what a description would be refused for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from labs.compile.backends import obstacle
from labs.compile.settings import Settings, add
from labs.compile.stages import Circumstances, Stages
from labs.plan import Direction, Link, Plan, Queue
from labs.spec import from_template
from labs.spec.source import DescriptionError
from labs.units import Duration, Rate, Size, UnitError, about

# A link's store has a slot for each 256 bytes that its plan asks for, so it holds this much more in full packets.
ROOM = 5

PROTOCOLS = {"static": "static routing", "ospf": "OSPF", "isis": "IS-IS", "bgp": "BGP"}

# Word → the keys of a direction that it decides.
WORDS = {
    "rate": ("rate_bps",),
    "delay": ("delay",),
    "jitter": ("delay",),
    "distribution": ("delay",),
    "reorder": ("reorder",),
    "loss": ("loss",),
    "corrupt": ("corrupt_ppb",),
    "duplicate": ("duplicate_ppb",),
    "buffer": ("queue",),
    "queue": ("queue",),
}


def compile_change(plan: Plan, link: Link, heading: str, words: Mapping[str, str]) -> dict[str, Any]:
    """The keys that change in one direction, or DescriptionError."""
    unknown = [word for word in words if word not in WORDS]
    if unknown:
        raise DescriptionError(f"{unknown[0]}={words[unknown[0]]}: a link has {', '.join(WORDS)}")
    if not words:
        raise DescriptionError("nothing to change: write for example rate=500Mbit/s")
    now: Direction = getattr(link, heading)
    written = from_template("dumbbell", {**_as_words(now), **words})
    way = Settings(("wan",))
    add(way, ("wan",), written.description.wan)
    delay_ns = way.delay_ns if way.delay_ns is not None else _delay_ns(now)
    mtu = next(
        port.mtu
        for node in plan.nodes
        if node.name == link.a.node
        for port in node.interfaces
        if port.name == link.a.interface
    )
    longest_ns = max((pair.rtt_ns for pair in plan.pairs), default=2 * delay_ns)
    direction = Stages(written).direction(way, Circumstances(link.name, link.role, delay_ns, mtu, longest_ns), heading)
    then = asdict(direction)
    if then["store_bytes"] > ROOM * now.store_bytes:
        wanted, room = Size(then["store_bytes"]), Size(ROOM * now.store_bytes)
        raise DescriptionError(
            f"{link.name} {heading} would hold {wanted}, and has room for {room}: "
            "bring the lab up with the larger delay, rate or buffer"
        )
    if "queue" in words and "buffer" not in words:
        then["queue"] |= {"limit_packets": now.queue.limit_packets, "limit_bytes": now.queue.limit_bytes}
    if "queue" not in words:
        then["queue"]["discipline"] = now.queue.discipline
    if link.backend != "user":
        _check_kernel(link, words, way, replace(direction, queue=Queue(**then["queue"])), now)
    return {key: then[key] for word in words for key in WORDS[word]}


def _check_kernel(link: Link, words: Mapping[str, str], way: Settings, then: Direction, now: Direction) -> None:
    """Refuses what netem and the kernel's queues cannot do, or not without dropping what waits in them."""
    found = obstacle(way, then)
    if found is not None:
        key, why = found
        raise DescriptionError(
            f"{key}={words.get(key, '')}: {why}, or emulator: user in the description of {link.name}"
        )
    if "queue" not in words and "buffer" not in words:
        return
    word = "queue" if "queue" in words else "buffer"
    kind, was = then.queue.discipline["kind"], now.queue.discipline["kind"]
    unit, counted = ("packets" if each.queue.limit_packets is not None else "bytes" for each in (then, now))
    why = ""
    if kind != was:
        why = f"its queue is {was}, and another one would drop what waits in it"
    elif kind == "drop_tail" and unit != counted:
        why = f"its queue counts {counted}, and another one would drop what waits in it"
    elif kind == "red" and (then.queue.limit_bytes, then.queue.limit_packets) != (
        now.queue.limit_bytes,
        now.queue.limit_packets,
    ):
        why = "RED of the kernel drops what waits when it gets another buffer"
    if why:
        raise DescriptionError(
            f"{word}={words[word]}: {link.name} is made of the kernel's parts; {why}: bring the lab up so, or write "
            "emulator: user"
        )


def as_it_is(link: Link, past: Sequence[Mapping[str, Any]]) -> Link:
    """The link with the changes that were made to it, in the order in which the spinner tells them."""
    for each in past:
        if each["link"] == link.name:
            keys = dict(each["change"])
            if "queue" in keys:
                keys["queue"] = Queue(**keys["queue"])
            way: Direction = getattr(link, each["direction"])
            changed: dict[str, Any] = {each["direction"]: replace(way, **keys)}
            link = replace(link, **changed)
    return link


def delay_until(at: str) -> int:
    """`at=+10s` as nanoseconds from now."""
    if not at.startswith("+"):
        raise DescriptionError(f'at={at}: write a time from now as "+10s"')
    try:
        return Duration.parse(at[1:]).ns
    except UnitError as error:
        raise DescriptionError(f"at={at}: {error}") from None


def carrier_words(plan: Plan, link: str, up: bool, told: Mapping[str, Any]) -> str:
    """What became of the routes, as the runtime's `carrier` tells it, to be said after "LINK: down, now"."""
    lost = [f"{each['from']} to {each['to']}" for each in told["cut_off"]]
    said = [f"no other path from {lost[0]}{f' and {len(lost) - 1} more pairs' if lost[1:] else ''}"] if lost else []
    left = [f"{each['from']} to {each['to']}" for each in told["unreachable"]]
    if plan.routing == "static":
        said += [f"routes are static, and none leads from {left[0]}"] if left else []
    elif told["recovered_ns"] is None:
        said += [f"{PROTOCOLS[plan.routing]} has found no way{f' from {left[0]}' if left else ''} yet"]
    elif told["recovered_ns"] > 0:
        what = "is back on its paths" if up else "goes another way"
        said += [f"{PROTOCOLS[plan.routing]} {what} after {about(told['recovered_ns'], 'time', 3)}"]
    elif not lost:
        said += ["no path uses it" if not up else "the paths are as they were"]
    return "".join(f"; {each}" for each in said)


def _delay_ns(now: Direction) -> int:
    delays: list[int] = now.delay["delays_ns"] if now.delay["kind"] == "table" else [now.delay["delay_ns"]]
    return sum(delays) // len(delays)


def _as_words(now: Direction) -> dict[str, str]:
    """What a description would say of the rate and of a delay that is not a table."""
    words = {"rate": str(Rate(now.rate_bps))}
    if now.delay["kind"] != "table":
        words["delay"] = str(Duration(now.delay["delay_ns"]))
        if now.delay["kind"] != "constant":
            words |= {"jitter": str(Duration(now.delay["jitter_ns"])), "distribution": now.delay["kind"]}
            words |= {"reorder": "true"} if now.reorder else {}
    return words
