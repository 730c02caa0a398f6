"""The command line."""

from __future__ import annotations

from .clock import BEGUN_NS  # first: it says when the program began

# isort: split
import argparse
import json
import signal
import socket
import sys
from types import FrameType
from typing import Any, NoReturn

from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger

from . import writes
from .bulk import Receiver, Sender
from .ends import SIGNALS, StoppedError, accept, connect
from .http3 import PROTOCOL, Client, Server
from .peer import Peer, protocol

CONGESTION = ("reno", "cubic")
WINDOW_BYTES = 64_000_000
BUFFER_BYTES = 8_000_000


Parts = tuple[QuicConnection, socket.socket, int, QuicLogger | None]
"""The parts of a peer: a connection, its socket, its number and its log."""


def fail(what: str) -> NoReturn:
    """One line, and the end."""
    print(f"ewan-aioquic: {what}", file=sys.stderr)
    sys.exit(1)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="ewan-aioquic", allow_abbrev=False)
    parser.add_argument("end", choices=("send", "receive", "serve", "get"))
    parser.add_argument("--address", required=True)
    parser.add_argument("--congestion", choices=CONGESTION, default="cubic")
    parser.add_argument("--qlog", choices=("on", "off"), default="off")
    parser.add_argument("--bytes", type=int, action="append")
    parser.add_argument("--writes", type=json.loads)
    parser.add_argument("--size", type=json.loads, default={"law": "constant", "value": 1})
    for name in ("for-ns", "at-ns", "count"):
        parser.add_argument(f"--{name}", type=int)
    defaults = {"port": None, "streams": 1, "after-ns": 0, "bin-ns": 0, "sample-ns": 0, "seed": 0, "parallel": 1}
    for name, usual in (defaults | {"window": WINDOW_BYTES, "buffer": BUFFER_BYTES}).items():
        parser.add_argument(f"--{name}", type=int, default=usual, required=name == "port")
    given = parser.parse_args()
    if given.bytes and len(given.bytes) != given.streams:
        fail("--bytes: write it once for each of --streams")
    given.own_port = given.end == "get"
    return given


def transfer(given: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """Return "send" or "receive", by what this end does, and its connections' parts of the record."""

    def sender(*parts: *Parts) -> Peer:
        volume = given.bytes[parts[2]] if given.bytes else None
        begin_ns = BEGUN_NS + given.after_ns if given.at_ns is None else given.at_ns
        due = None if given.writes is None else writes.schedule(given.writes, given.seed, begin_ns)
        return Sender(*parts, volume, due)

    def receiver(*parts: *Parts) -> Peer:
        return Receiver(*parts, given.bin_ns)

    def client(*parts: *Parts) -> Peer:
        return Client(*parts, writes.sizes(given.size, given.seed), given.count, given.parallel, given.bin_ns)

    protocols = [protocol(stream) for stream in range(given.streams)]
    match given.end:
        case "send":
            return "send", connect(given, "send", protocols, sender)
        case "receive":
            return "receive", accept(given, "receive", protocols, receiver)
        case "serve":
            return "send", accept(given, "send", [PROTOCOL], Server)
        case _:
            return "receive", connect(given, "receive", [PROTOCOL], client)


def main() -> None:
    """The transfer of this command line."""

    def ended(number: int, frame: FrameType | None) -> NoReturn:
        raise StoppedError

    given = arguments()
    for number in SIGNALS:
        signal.signal(number, ended)
    try:
        end, streams = transfer(given)
    except OSError as wrong:
        fail(f"{given.address}: {wrong.strerror}")
    except StoppedError:
        fail("ended before it began")
    record = {"format": "ewan-quic/1", "end": end, "library": "aioquic", "begun_ns": BEGUN_NS}
    print(json.dumps(record | {"streams": streams}))
