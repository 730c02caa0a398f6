"""The request of one step to the generator: its kind's work, its laws, its sockets' options; and the keys that it may
not have.

Comes in: a step with the scenario's defaults. Goes out: the keys `work` and `socket` of a flow of the request
(emulator/traffic/src/flows/request.rs), one for each parallel stream; errors point to the word that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

from ewan.generator.scenario.fields import LEAST_UDP, MOST_UDP, NO_TCP, MultipathKeys, ScenarioStep, Socket
from ewan.generator.scenario.kinds import MOST_MEDIA, NO_HTTP3, QUIC_CONGESTION, Kind, Media, Quic, WrittenVolume
from ewan.generator.scenario.laws import Either, amount, least, mean, number_or, request
from ewan.labs.base.source import DescriptionError, Path
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND, Duration, Size
from ewan.labs.record.traffic import (
    LEAST_PAUSE_NS,
    ArrivalsWork,
    BulkWork,
    ConstantLaw,
    MediaPause,
    MediaWork,
    MessagesWork,
    RequestLaw,
    RequestsWork,
    SocketOptions,
    UdpWork,
    Work,
    Writes,
    usual,
)
from ewan.labs.spec.fields import Pacing

DEFAULT_CONGESTION = "cubic"

Error = Callable[[Path, str], DescriptionError]
"""An error at a path within the step."""

# What a step may not say of itself, by kind; what `defaults` say does not concern it then.
_TCP = ("congestion", "window", "mss", "nodelay")
# emulator/traffic/src/socket.rs
_MOST_BUFFER = (2**31 - 1) // 2
_BUFFERS = {
    "send_buffer": (1, _MOST_BUFFER),
    "receive_buffer": (1, _MOST_BUFFER),
    "window": (1152, _MOST_BUFFER // 4),
}
LEAST_INTERVAL_NS = 100  # between packets; emulator/traffic/src/flows/udp.rs
LEAST_WRITE_NS = 1000  # between writes; emulator/traffic/src/flows/bulk.rs
LEAST_CHUNK = 1448
"""Bytes of one write where only a rate is given."""
WRITES_A_SECOND = 1000
"""The number of such writes, where they are larger."""

_NAMED_INSIDE = {"generator": "library", "congestion": "congestion"}
"""Keys of a step that are keys of `quic` there."""
_SENDS = ("from_", "to", "streams")
FOREIGN: dict[Kind, tuple[str, ...]] = {
    "bulk": ("ranks", "on"),
    "bidirectional": ("ranks", "on", "multipath"),
    "arrivals": ("ranks", "on", "streams", "multipath"),
    "requests": ("ranks", "on", "streams", "multipath"),
    "udp": ("ranks", "on", "streams", "multipath", *_TCP),
    # Its sockets and its congestion control are the library's.
    "quic": (
        "ranks",
        "on",
        "mss",
        "nodelay",
        "ecn",
        "dscp",
        "send_buffer",
        "receive_buffer",
        "multipath",
        *_NAMED_INSIDE,
    ),
    "messages": (*_SENDS, "on", "pacing", "multipath"),
    "media": ("ranks", "on", "streams", "multipath", *_TCP),
    "run": (
        *_SENDS,
        "pacing",
        "ranks",
        "for_",
        "role",
        "generator",
        "ecn",
        "dscp",
        "send_buffer",
        "receive_buffer",
        "multipath",
        *_TCP,
    ),
}


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """The settings of a step: its own, those of `defaults`, or the usual ones."""

    generator: str
    congestion: str | None
    streams: int
    socket: SocketOptions
    pacing: Pacing | None = None
    """The pacing that the step or `defaults` have; None: neither has one."""
    multipath: MultipathKeys | None = None
    """The same of several paths."""


def settings(step: ScenarioStep, defaults: Socket) -> FlowSettings:
    """The settings of a step, from its own keys and those of `defaults`."""

    def said(key: str) -> Any:
        own = getattr(step, key)
        return own if own is not None else None if key in FOREIGN[step.kind] else getattr(defaults, key)

    def size(key: str) -> int | None:
        value: Size | None = said(key)
        return None if value is None else value.bytes

    generator = step.work.library if step.kind == "quic" else said("generator") or "ewan"
    tcp = step.kind not in ("udp", "quic", "media", "run") and generator not in NO_TCP
    congestion = said("congestion") or DEFAULT_CONGESTION if tcp else None
    socket = SocketOptions(
        congestion=congestion,
        send_buffer_bytes=size("send_buffer"),
        receive_buffer_bytes=size("receive_buffer"),
        window_bytes=size("window"),
        mss_bytes=said("mss"),
        dscp=said("dscp") or 0,
        ecn=_marked(step, said("ecn")),
        nodelay=said("nodelay") or False,
    )
    streams = 1 if step.kind == "quic" and step.work.http3 is not None else said("streams") or 1
    return FlowSettings(generator, congestion, streams, socket, said("pacing"), said("multipath"))


def _marked(step: ScenarioStep, ecn: bool | None) -> bool:
    """Return whether its packets say that they may be marked, as ECT(0). What `defaults` say is not for media that
    knows no marks, or those of L4S."""
    if step.kind == "media" and (step.work.control != "scream" or step.work.l4s):
        return False
    return bool(ecn)


def check(step: ScenarioStep, error: Error) -> None:
    """Refuses a step that lacks what its kind needs, or has keys that its kind has no use for or cannot fulfil."""
    kind, work = step.kind, step.work
    for key in FOREIGN[kind]:
        if getattr(step, key) is not None and not (key == "role" and step.flows is not None):
            shown = key.removesuffix("_")
            if kind == "quic" and key in _NAMED_INSIDE:
                raise error((shown,), f'is not for QUIC: write "quic: {{{_NAMED_INSIDE[key]}: …}}"')
            raise error((shown,), f"a step of kind {kind} has none: leave it out")
    if step.service and kind != "run":
        raise error(("service",), "is for commands: leave it out, or write \"run:\"")  # fmt: skip
    if step.ready is not None and not step.service:
        raise error(("ready",), 'is for services: leave it out, or write "service: true"')
    if step.flows is not None:
        _check_command_flows(step, error)
    needed = {"run": ("on",), "messages": ("ranks",)}.get(kind, ("from_", "to"))
    for key in needed:
        if getattr(step, key) is None:
            shown = key.removesuffix("_")
            raise error((shown,), f'is missing: write "{shown}:" too')
    check_buffers(step, error)
    if step.for_ is not None and not step.for_.ns:
        raise error(("for",), 'is no time at all: write a duration like "10s"')
    if kind == "quic" and work.http3 is not None:
        _check_http3(step, error)
    elif kind in ("bulk", "bidirectional", "quic"):
        if work.volume is None and step.for_ is None:
            raise error((kind,), 'never ends: write its volume, "{volume: 500MB}", or how long, "for: 10s"')
        if work.volume is not None and not work.volume.bytes:
            raise error((kind, "volume"), 'is nothing: write a volume like "500MB"')
    elif kind in ("arrivals", "requests", "udp") and work.count is None and step.for_ is None:
        raise error((kind,), 'never ends: write a "count:", or how long, "for: 10s"')
    elif kind == "media":
        _check_media(step, error)
    _check_laws(step, error)
    if kind in ("bulk", "bidirectional", "quic"):
        _check_writes(step, error)
    for key in ("http3", "qlog"):
        if kind == "quic" and work.library in NO_HTTP3 and getattr(work, key):
            raise error((kind, key), f'{work.library} has none here: leave it out, or write "library: quinn"')
    if kind == "quic" and work.control not in QUIC_CONGESTION[work.library]:
        known = " or ".join(QUIC_CONGESTION[work.library])
        raise error((kind, "congestion"), f"{work.library} has no such congestion control: write {known}")


def _check_command_flows(step: ScenarioStep, error: Error) -> None:
    if step.kind != "run":
        raise error(("flows",), 'is for commands, a step of traffic is a flow anyway: leave it out, or write "run:"')
    assert step.flows is not None
    if step.flows.from_ is None and step.flows.to is None:
        raise error(("flows",), 'lacks the other end: write who sends the payload, "from: right1", or who gets it')
    if step.flows.sockets is not None:
        if step.flows.port:
            raise error(("flows", "port"), 'is of all sockets that have it: leave it out, or "sockets: own"')
        if step.flows.from_ is not None and step.flows.to is not None:
            raise error(
                ("flows",), "has both ends, and own sockets are in the node of the command: write the other one"
            )
    if step.repeat is not None:
        raise error(("repeat",), "would be one flow, whose rounds links do not tell apart: write a step for each")


def _check_http3(step: ScenarioStep, error: Error) -> None:
    work = step.work
    for key in ("volume", "rate", "chunk", "interval", "on", "off"):
        if getattr(work, key) is not None:
            raise error((step.kind, key), "is not for HTTP/3, whose objects have a size: leave it out")
    if step.streams not in (None, 1):
        raise error(("streams",), 'HTTP/3 has one connection here: leave it out, or write "parallel:" in http3')
    if work.http3.count is None and step.for_ is None:
        raise error((step.kind, "http3"), 'never ends: write a "count:", or how long, "for: 10s"')
    if work.http3.size.kind == "constant" and not amount(work.http3.size.choice):
        raise error((step.kind, "http3", "size"), "is 0: write more")


def _check_media(step: ScenarioStep, error: Error) -> None:
    work = step.work
    if step.for_ is None:
        raise error(("media",), 'never ends: write how long, "for: 60s"')
    if work.most.bps > MOST_MEDIA.bps:
        raise error(("media", "most"), f"a source makes at most {MOST_MEDIA}: write no more")
    for low, high in (("least", "rate"), ("rate", "most")):
        if getattr(work, low).bps > getattr(work, high).bps:
            shown = f"{getattr(work, low)}, and {high} is {getattr(work, high)}"
            raise error(("media", low), f"is {shown}: write no more than that, or a higher {high}")
    if work.keyframe is not None and not work.keyframe.ns:
        raise error(("media", "keyframe"), 'is 0: write a duration like "10s"')
    if work.pause is not None and work.pause.for_.ns < LEAST_PAUSE_NS:
        raise error(("media", "pause", "for"), f"is less than {Duration(LEAST_PAUSE_NS)}: write a longer pause")
    for key, marks in (("ecn", step.ecn), ("l4s", work.l4s)):
        if marks and work.control != "scream":
            path: Path = ("ecn",) if key == "ecn" else ("media", "l4s")
            raise error(path, f'control "{work.control}" knows no marks: leave it out, or write "control: scream"')
    if step.ecn and work.l4s:
        raise error(("ecn",), "packets with l4s are ECT(1), with ecn ECT(0): write one of them")


def _check_writes(step: ScenarioStep, error: Error) -> None:
    kind, work = step.kind, step.work
    if not work.limited:
        return
    if (work.rate is None) == (work.interval is None):
        raise error((kind,), 'write one of "rate:" and "interval:"')
    if work.interval is not None and work.chunk is None:
        raise error((kind, "chunk"), 'is missing: write what is written at once, like "1MB"')
    if (work.on is None) != (work.off is None):
        raise error((kind,), 'write both "on:" and "off:", or neither')
    interval = write_law(work).interval_ns
    if isinstance(interval, ConstantLaw) and interval.value < LEAST_WRITE_NS:
        raise error((kind,), "writes more than a million times a second: write a lower rate or a larger chunk")


def write_law(work: WrittenVolume) -> Writes:
    """The writes of the application that limits a bulk transfer."""
    on, off = (None if each is None else request(each) for each in (work.on, work.off))
    if work.rate is None:
        assert work.interval is not None and work.chunk is not None, "it was checked"
        return Writes(request(work.chunk), request(work.interval), on, off)
    least = max(LEAST_CHUNK, work.rate.bps // (BITS_PER_BYTE * WRITES_A_SECOND))
    size = ConstantLaw(least) if work.chunk is None else request(work.chunk)
    usually = least if work.chunk is None else mean(work.chunk)
    return Writes(size, ConstantLaw(number_or(usually * BITS_PER_BYTE * NS_PER_SECOND / work.rate.bps)), on, off)


def piece_bytes(work: WrittenVolume) -> float | None:
    """About the bytes of a write of the application, or of an object over HTTP/3; None where neither limits it."""
    if isinstance(work, Quic) and work.http3 is not None:
        return mean(work.http3.size)
    return usual(write_law(work).size_bytes) if work.limited else None


def written_bps(work: WrittenVolume) -> int | None:
    """The mean rate of an application that limits a bulk transfer; None where none does."""
    if not work.limited:
        return None
    writes = write_law(work)
    share = 1.0 if work.on is None or work.off is None else mean(work.on) / (mean(work.on) + mean(work.off))
    return max(1, round(share * usual(writes.size_bytes) * BITS_PER_BYTE * NS_PER_SECOND / usual(writes.interval_ns)))


def whole_bytes(work: WrittenVolume) -> float | None:
    """The volume of a transfer, or about that of its objects; None where its time ends it."""
    objects = work.http3 if isinstance(work, Quic) else None
    if objects is not None:
        return None if objects.count is None else objects.count * mean(objects.size)
    return None if work.volume is None else work.volume.bytes


def check_buffers(socket: Socket, error: Error) -> None:
    """Refuses sizes of buffers and windows that sockets do not take; errors point to the key."""
    for key, (low, high) in _BUFFERS.items():
        size: Size | None = getattr(socket, key)
        if size is not None and not low <= size.bytes <= high:
            raise error((key,), f'sockets take {Size(low)} to {Size(high)}: write a size within, like "4MB"')


def _check_laws(step: ScenarioStep, error: Error) -> None:
    kind, work = step.kind, step.work
    for key in ("size", "chunk", "request", "response", "interval", "on", "off"):
        law: Either | None = getattr(work, key, None) if kind != "run" else None
        if law is not None and law.kind == "constant" and not amount(law.choice):
            raise error((kind, key), "is 0: write more")
    if step.repeat is not None and step.repeat.every.kind == "constant" and not amount(step.repeat.every.choice):
        raise error(("repeat", "every"), 'is 0: write a duration like "10s"')
    if kind == "udp":
        if (work.rate is None) == (work.interval is None):
            raise error(("udp",), 'write one of "rate:" and "interval:"')
        interval = packet_interval(step)
        if isinstance(interval, ConstantLaw) and interval.value < LEAST_INTERVAL_NS:
            raise error(("udp",), "sends more than ten million packets a second: write a lower rate or a larger size")
        if (work.on is None) != (work.off is None):
            raise error(("udp",), 'write both "on:" and "off:", or neither')
        if work.size.kind in ("constant", "uniform", "pareto") and not LEAST_UDP <= least(work.size) <= MOST_UDP:
            raise error(("udp", "size"), f"a packet holds {LEAST_UDP} to {MOST_UDP} bytes: write a size within")
        if work.size.kind == "uniform" and amount(work.size.choice.high) > MOST_UDP:
            raise error(("udp", "size"), f"a packet holds {LEAST_UDP} to {MOST_UDP} bytes: write a size within")
    if kind == "messages":
        if work.pattern == "barrier" and work.size is not None:
            raise error(("messages", "size"), "a barrier's messages have 1 byte: leave it out")
        if work.pattern != "barrier" and work.size is None:
            raise error(("messages", "size"), 'is missing: write the size of a message, like "10kB"')


def packet_interval(step: ScenarioStep) -> RequestLaw:
    """The law of the times between packets; a rate counts UDP payload."""
    if step.work.rate is None:
        return request(step.work.interval)
    return ConstantLaw(number_or(mean(step.work.size) * BITS_PER_BYTE * NS_PER_SECOND / step.work.rate.bps))


def _media(work: Media) -> MediaWork:
    return MediaWork(
        control=work.control,
        initial_bps=work.rate.bps,
        least_bps=work.least.bps,
        most_bps=work.most.bps,
        frames_per_second=work.fps,
        packet_bytes=work.packet.bytes,
        key_interval_ns=None if work.keyframe is None else work.keyframe.ns,
        even=work.model == "constant",
        l4s=work.l4s,
        pause=None if work.pause is None else MediaPause(work.pause.at.ns, work.pause.for_.ns),
    )


def works(step: ScenarioStep, streams: int, error: Error) -> list[tuple[Work, int | None]]:
    """The work of each parallel stream of one transfer, with its volume in bytes; messages still lack their ranks."""
    work = step.work
    match step.kind:
        case "quic" if work.http3 is not None:
            size, nothing = request(work.http3.size), ConstantLaw(0)
            volume = whole_bytes(work) if isinstance(size, ConstantLaw) else None
            objects = RequestsWork(work.http3.count, nothing, size, nothing, False)
            return [(objects, None if volume is None else round(volume))]
        case "bulk" | "bidirectional" | "quic":
            both = step.kind == "bidirectional"
            shares: list[int | None] = [None] * streams
            if work.volume is not None:
                if work.volume.bytes < streams:
                    raise error((step.kind, "volume"), f"is less than a byte for each of {streams} streams: write more")
                share, rest = divmod(work.volume.bytes, streams)
                shares = [share + (stream < rest) for stream in range(streams)]
            writes = write_law(work) if work.limited else None
            if writes is not None and streams > 1:
                raise error((step.kind,), "is written by one application: leave out streams, or rate and interval")
            return [(BulkWork(share, both, writes), share) for share in shares]
        case "arrivals":
            return [(ArrivalsWork(work.count, request(work.interval), request(work.size)), None)]
        case "requests":
            laws = request(work.request), request(work.response), request(work.think)
            return [(RequestsWork(work.count, *laws, work.new_connection), None)]
        case "udp":
            on, off = (None if each is None else request(each) for each in (work.on, work.off))
            return [(UdpWork(work.count, request(work.size), packet_interval(step), on, off), None)]
        case "messages":
            size = ConstantLaw(1) if work.size is None else request(work.size)
            return [(MessagesWork(work.pattern, work.iterations, size, request(work.compute)), None)]
        case "media":
            return [(_media(work), None)]
        case "run":
            return []  # a command is not of our generator
        case never:
            assert_never(never)
