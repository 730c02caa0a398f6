"""The traffic of a step: the keys of each kind of traffic as pydantic models.

Comes in: plain data below a step's key `bulk`, `udp` and so on. Goes out: typed values.
`ewan.generator.scenario.fields` has the step itself."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, PlainValidator, model_validator

from ewan.generator.scenario.laws import SizeLaw, TimeLaw, TimeText, VolumeText, constant
from ewan.labs.base.model import Model
from ewan.labs.base.units import Duration, Rate, Size, UnitError
from ewan.labs.base.values import Count, RateText, written_as
from ewan.labs.record.traffic import RateControl


def at_once() -> TimeLaw:
    """No time at all."""
    law: TimeLaw = constant(Duration(0))
    return law


class WrittenVolume(Model):
    """A volume, or as much as fits in the step's time, and the application that writes it."""

    volume: VolumeText | None = Field(
        None, description="what each member sends, all its streams together; as much as fits in `for` if absent"
    )
    rate: RateText | None = Field(
        None,
        description="an application that writes no faster, while it writes; as fast as its transport takes it if this "
        "and `interval` are absent",
        examples=["5Mbit/s"],
    )
    chunk: SizeLaw | None = Field(
        None, description="what it writes at once; of a `rate` what 1 ms has, at least 1448B, if absent",
        examples=["1MB"],
    )  # fmt: skip
    interval: TimeLaw | None = Field(
        None, description="from a chunk to the next; this or `rate`", examples=["2s", "{exponential: {mean: 1s}}"]
    )
    on: TimeLaw | None = Field(
        None, description="it writes in periods this long only, with `off` between them; always if absent",
        examples=["10s"],
    )  # fmt: skip
    off: TimeLaw | None = Field(None, description="see `on`", examples=["30s"])

    @property
    def limited(self) -> bool:
        """Return whether an application limits it."""
        return any(each is not None for each in (self.rate, self.chunk, self.interval, self.on, self.off))

    @model_validator(mode="before")
    @classmethod
    def _volume(cls, value: Any) -> Any:
        return {} if value is None else value if isinstance(value, dict) else {"volume": value}


class Bulk(WrittenVolume):
    """A transfer of a volume, or of as much as fits in the step's time."""


Library = Literal["quinn", "aioquic", "s2n-quic", "quic-go"]
QUIC_CONGESTION: dict[Library, tuple[str, ...]] = {
    "quinn": ("cubic", "bbr", "newreno"),
    "aioquic": ("cubic", "reno"),
    "s2n-quic": ("cubic", "bbr"),
    "quic-go": ("reno",),
}
"""The congestion controls of each library of QUIC; the first if a step names none."""
NO_HTTP3: tuple[Library, ...] = ("s2n-quic", "quic-go")
"""Libraries without HTTP/3 here, and without qlog."""


class Http3(Model):
    """Objects that `to` GETs of `from` over HTTP/3, on one connection."""

    count: Annotated[int, Count(1, 10_000_000)] | None = Field(
        None, description="objects; as many as fit in `for` if absent", examples=[20]
    )
    size: SizeLaw = Field(description="of each", examples=["100kB", "{pareto: {mean: 12kB, shape: 1.2}}"])
    parallel: Annotated[int, Count(1, 100)] = Field(
        1,
        description="how many are on their way at a time, each on a stream of its own; 1 if absent",
    )


class Quic(WrittenVolume):
    """A transfer over QUIC, of a volume or of as much as fits in the step's time. The library is a program's own, and
    so is its congestion control."""

    library: Library = Field(
        "quinn", description="quinn, s2n-quic (Rust), aioquic (Python) or quic-go (Go), at both ends; quinn if absent"
    )
    congestion: str | None = Field(
        None,
        description="the library's own: of quinn cubic, bbr or newreno, of aioquic cubic or reno, of s2n-quic cubic or "
        "bbr, of quic-go reno; the first if absent",
        examples=["bbr"],
    )
    http3: Http3 | None = Field(
        None, description="`to` GETs objects of `from`; instead of a volume and its writes", examples=["{size: 100kB}"]
    )
    qlog: bool = Field(
        False, description="each end of a connection writes a qlog file, about 250 bytes a packet; false if absent"
    )

    @property
    def control(self) -> str:
        """The congestion control."""
        return self.congestion or QUIC_CONGESTION[self.library][0]


class Arrivals(Model):
    """TCP connections that arrive at random times, each of which sends a random volume."""

    count: Annotated[int, Count(1, 10_000_000)] | None = Field(
        None, description="how many; as many as arrive in `for` if absent", examples=[3000]
    )
    interval: TimeLaw = Field(description="from one to the next", examples=["{exponential: {mean: 100ms}}"])
    size: SizeLaw = Field(description="of each", examples=["{pareto: {mean: 100kB, shape: 1.3}}"])


class Requests(Model):
    """A session: request, response, thinking, and again."""

    count: Annotated[int, Count(1, 10_000_000)] | None = Field(
        None, description="requests of a session; as many as fit in `for` if absent", examples=[100]
    )
    request: SizeLaw = Field(description="from client (`from`) to server (`to`)", examples=["300B"])
    response: SizeLaw = Field(description="the answer", examples=["{pareto: {mean: 12kB, shape: 1.2}}"])
    think: TimeLaw = Field(
        default_factory=at_once,
        description="from an answer to the next request; none if absent",
        examples=["{exponential: {mean: 1s}}"],
    )
    new_connection: bool = Field(False, description="a connection for each request; one for all if absent")


class Udp(Model):
    """A stream of packets at exact times."""

    count: Annotated[int, Count(1, 2**40)] | None = Field(
        None, description="packets; as many as fit in `for` if absent", examples=[1000]
    )
    size: SizeLaw = Field(description="UDP payload of a packet, at least 24B", examples=["1470B"])
    rate: RateText | None = Field(
        None,
        description="of UDP payload, while it sends, at constant intervals; this or `interval`",
        examples=["8Mbit/s"],
    )
    interval: TimeLaw | None = Field(
        None, description="from a packet to the next; this or `rate`", examples=["{exponential: {mean: 1ms}}"]
    )
    on: TimeLaw | None = Field(
        None, description="packets are sent in periods this long only, with `off` between them; always if absent",
        examples=["{exponential: {mean: 500ms}}"],
    )  # fmt: skip
    off: TimeLaw | None = Field(None, description="see `on`", examples=["{exponential: {mean: 500ms}}"])


Pattern = Literal["ping-pong", "all-to-all", "neighbour-exchange", "barrier"]
"""The pairs of ranks that exchange messages; emulator/traffic/src/flows/messages/pattern.rs."""


class Messages(Model):
    """Message passing between ranks."""

    pattern: Pattern = Field(
        description="ping-pong: of ranks 1 and 2, 3 and 4 …; all-to-all: everybody sends to everybody; "
        "neighbour-exchange: each with both neighbours in a ring; barrier: 1 byte, until all are there"
    )
    iterations: Annotated[int, Count(1, 10_000_000)] = Field(description="how often", examples=[100])
    size: SizeLaw | None = Field(None, description="of a message; not for barrier", examples=["10kB"])
    compute: TimeLaw = Field(
        default_factory=at_once, description="what a rank computes before each exchange; 0 if absent", examples=["1ms"]
    )


def _packet(value: object) -> Size:
    result = Size.parse(value)
    if not Size(LEAST_PACKET) <= result <= Size(MOST_PACKET):
        raise UnitError(f'is {result}: write {LEAST_PACKET}B to {MOST_PACKET}B, like "1200B"')
    return result


LEAST_PACKET, MOST_PACKET = 200, 65_507  # emulator/traffic/src/flows/media.rs
MOST_MEDIA = Rate.parse("1Gbit/s")  # emulator/traffic/src/flows/media.rs


class SourcePause(Model):
    """The time in which a source of video captures nothing."""

    what: ClassVar[str] = "key of a pause"
    at: TimeText = Field(description="when it begins, from the start of the step's member", examples=["40s"])
    for_: TimeText = Field(alias="for", description="how long it lasts, at least 2s", examples=["20s"])


class Media(Model):
    """Interactive video, whose source has a rate that follows the network."""

    control: RateControl = Field(
        "gcc",
        description="gcc: Google congestion control (draft-ietf-rmcat-gcc-02), if absent; scream: SCReAMv2 "
        "(draft-ietf-ccwg-rfc8298bis-screamv2), which also reacts to marks; none: the source has its first rate, "
        "whatever the network does",
    )
    rate: RateText = Field(Rate.parse("300kbit/s"), description="what the encoder makes at first; 300kbit/s if absent")
    least: RateText = Field(Rate.parse("150kbit/s"), description="it makes no less; 150kbit/s if absent")
    most: RateText = Field(Rate.parse("2.5Mbit/s"), description="it makes no more; 2.5Mbit/s if absent")
    fps: Annotated[int, Count(1, 240)] = Field(30, description="frames a second; 30 if absent")
    keyframe: TimeText | None = Field(
        None,
        description="from a key frame to the next; if absent the first frame and those that the receiver asks for",
        examples=["10s"],
    )
    model: Literal["synthetic", "constant"] = Field(
        "synthetic",
        description="synthetic: sizes and intervals of frames by the statistical model of RFC 8593, section 5, if "
        "absent; constant: all frames alike, at equal times",
    )
    pause: SourcePause | None = Field(
        None,
        description="the source captures no frame for a while, and a key frame when it goes on",
        examples=["{at: 40s, for: 20s}"],
    )
    l4s: bool = Field(
        False,
        description="`scream`: packets are sent as ECT(1), and marks are those of L4S (RFC 9331); false if absent",
    )
    packet: Annotated[Size, PlainValidator(_packet), written_as("size", "1200B")] = Field(
        Size(1200), description="the most UDP payload of a packet; 1200B if absent"
    )


Kind = Literal["bulk", "bidirectional", "arrivals", "requests", "udp", "quic", "messages", "media", "run"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of steps; each is a key of `Step`."""
