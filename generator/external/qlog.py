"""qlog files that libraries of QUIC write: the sender's state over time, and the packets of both ends.

Comes in: a file of qlog 0.3, as JSON with all events or as a sequence of JSON texts (RFC 7464). Goes out: states, and
packets that were sent, received and taken for lost. Times of a sequence count from the program's start, those of the
other are times of day. quinn writes the times of `recovery:metrics_updated` in seconds, where qlog has milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ewan.generator.rows import WRONG
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND

Packet = tuple[str, int]
"""The packet's type, by which its number space is known, and its number."""
_SEQUENCE, _WHOLE = ".sqlog", ".qlog"
_SEPARATOR = b"\x1e"
_SPACES = {"initial": "initial", "handshake": "handshake", "0RTT": "application", "1RTT": "application"}


@dataclass(frozen=True, slots=True)
class SenderState:
    """The state of a sender until the next one. `time_ns` counts from T0."""

    time_ns: int
    in_flight_bytes: int | None
    rttvar_ns: int | None


@dataclass(frozen=True, slots=True)
class Qlog:
    """One end of a connection. `datagrams`: how many UDP datagrams its packets went in, where the file tells."""

    path: Path
    sent: tuple[tuple[Packet, int], ...]
    received: frozenset[Packet]
    lost: tuple[Packet, ...]
    metrics: tuple[tuple[float, int | None, int | None], ...]

    def states(self, begun_ns: int) -> list[SenderState]:
        """The states by time; `begun_ns`: the program's start from T0."""
        result: list[SenderState] = []
        in_flight: int | None = None
        rttvar: int | None = None
        for time_ms, bytes_in_flight, variance_ns in self.metrics:
            in_flight = in_flight if bytes_in_flight is None else bytes_in_flight
            rttvar = rttvar if variance_ns is None else variance_ns
            result.append(SenderState(begun_ns + round(time_ms * NS_PER_MS), in_flight, rttvar))
        return result

    @property
    def sent_bytes(self) -> int:
        """The bytes of all packets that it sent."""
        return sum(size for _, size in self.sent)


def read(directory: Path, name: str) -> Qlog:
    """The file of this name in the folder of a command; OSError where there is none, ValueError where it is no qlog."""
    for ending in (_SEQUENCE, _WHOLE):
        if (path := directory / f"{name}{ending}").exists():
            return of_file(path)
    raise FileNotFoundError(2, "there is no qlog", str(directory / name))


def of_file(path: Path) -> Qlog:
    """One file; ValueError where it is no qlog."""
    sent: list[tuple[Packet, int]] = []
    received: set[Packet] = set()
    lost: list[Packet] = []
    metrics: list[tuple[float, int | None, int | None]] = []
    unit_ns = NS_PER_SECOND if path.suffix == _SEQUENCE else NS_PER_MS
    try:
        for event in _events(path):
            name, data = event["name"], event["data"]
            if name == "recovery:metrics_updated":
                variance = data.get("rtt_variance")
                known = None if variance is None else round(variance * unit_ns)
                metrics.append((event["time"], data.get("bytes_in_flight"), known))
            elif name == "transport:packet_sent":
                sent.append((_packet(data["header"]), _size(data)))
            elif name == "transport:packet_received":
                received.add(_packet(data["header"]))
            elif name == "recovery:packet_lost":
                lost.append(_packet(data.get("header") or data))
    except WRONG as wrong:
        raise ValueError(f"{path.name}: is no qlog ({wrong})") from None
    return Qlog(path, tuple(sent), frozenset(received), tuple(lost), tuple(metrics))


def spurious(sender: Qlog, receiver: Qlog) -> list[Packet]:
    """The packets that the sender took for lost, and that arrived."""
    return [packet for packet in sender.lost if packet in receiver.received]


def _events(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == _WHOLE:
        (trace,) = orjson.loads(path.read_bytes())["traces"]
        yield from trace["events"]
        return
    with path.open("rb") as file:
        texts: Iterable[bytes] = (line.lstrip(_SEPARATOR).strip() for line in file)
        events = (orjson.loads(text) for text in texts if text)
        if "qlog_version" not in next(events, {}):
            raise ValueError("its header is missing")
        yield from events


def _packet(header: dict[str, Any]) -> Packet:
    return _SPACES[header.get("packet_type") or header["type"]], header["packet_number"]


def _size(data: dict[str, Any]) -> int:
    size = data["header"].get("length")
    return int(data["raw"]["length"] if size is None else size)
