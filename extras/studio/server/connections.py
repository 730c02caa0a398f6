"""Connections within limits: a silent connection is closed soon, and many connections of one client keep no others out.

In: connections, as asyncio gives them. Out: uvicorn's protocol for each. A connection waits while no whole request of
it is at work: its head or its body is not whole, it has been answered, or the client does not read the answer. A
connection that waits for `WAITS_S` is closed, and the longest-waiting connection as soon as there are too many: it gets
status 503, unless an answer is under way on it. A log is bounded too: an error that comes with each attempt of a
stranger does not fill the disk."""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

WAITS_S = 10.0
"""The longest time for the head of a request, and without a byte of its body."""
READS_S = 120.0
"""The longest time in which a client reads nothing more of an answer; what the system holds of it is read meanwhile,
over a slow link."""
MOST = 256
"""Connections at a time, and a third of the files that this process may have open."""
TAKES_S = 2.0
"""The longest time for a refused client to read the refusal."""
_REASON = b'{"error": "there are too many connections to Studio at once: ask again, with fewer at a time"}'
REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_REASON), _REASON)
)
MOST_LINES, LINES_S = 20, 60.0
"""So many records of a logger in so long a time."""


def most_connections() -> int:
    """The number of connections that this process holds at a time."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if files == resource.RLIM_INFINITY else max(min(MOST, files // 3), 8)


def most_accepted(most: int) -> int:
    """The number of connections that are accepted at once: those and as many that are just closed have files beside the
    `most`, and so have those that are being refused."""
    return max(most * 3 // 4, 4)


def most_refused(most: int) -> int:
    """The number of connections that are refused at once with an answer; more are closed without one."""
    return max(most // 4, 2)


def protocol(most: int, waits_s: float = WAITS_S) -> type[asyncio.Protocol]:
    """The class of a server's connections, which know of each other."""
    waiting: dict[Any, asyncio.TimerHandle] = {}
    """Connections that wait, the longest-waiting first."""
    refused: dict[Any, asyncio.TimerHandle] = {}
    """Connections that have been refused, and are not closed yet."""

    class Bounded(H11Protocol):
        """A connection."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Accepts a connection; where there are too many, the longest-waiting one is closed."""
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > most:
                oldest = next(iter(waiting))
                oldest.give_way()

        def connection_lost(self, exc: Exception | None) -> None:
            """Forgets the connection."""
            self._heard()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            """A whole request is at work, or the connection waits for the rest of it. The bytes of a refused one are
            read, since the answer would be lost otherwise."""
            if self in refused:
                return
            super().data_received(data)
            if self._is_at_work() or self.conn.their_state is h11.SEND_BODY:
                self._heard()
            self._wait_unless_at_work()

        def end(self) -> None:
            """Closes it at once."""
            self._heard()
            self.transport.abort()

        def give_way(self) -> None:
            """Makes room for another one. A client that may have sent a request meanwhile gets status 503."""
            is_answered = self.cycle is None or self.cycle.response_complete
            if self.flow.write_paused or not is_answered:
                self.end()
                return
            self._heard()
            self._unset_keepalive_if_required()
            self.connections.discard(self)
            if len(refused) == most_refused(most):
                next(iter(refused)).end()
            refused[self] = self.loop.call_later(TAKES_S, self.end)
            self.transport.write(REFUSAL)
            self.transport.write_eof()

        def on_response_complete(self) -> None:
            """Waits for the next request; uvicorn's own time for idle connections, which is shorter, runs from then
            on."""
            super().on_response_complete()
            self._wait_unless_at_work()

        def pause_writing(self) -> None:
            """Waits: the client does not read the answer."""
            super().pause_writing()
            self._heard()
            self._wait(READS_S)

        def resume_writing(self) -> None:
            """Goes on: the client reads the answer."""
            super().resume_writing()
            self._heard()
            self._wait_unless_at_work()

        def _is_at_work(self) -> bool:
            upgraded = self.transport.get_protocol() is not self
            asked = self.cycle is not None and not self.cycle.response_complete
            whole = self.conn.their_state is not h11.SEND_BODY
            return upgraded or (asked and whole and not self.flow.write_paused)

        def _wait_unless_at_work(self) -> None:
            if self not in waiting and not self._is_at_work() and not self.transport.is_closing():
                self._wait()

        def _wait(self, longest_s: float = waits_s) -> None:
            waiting[self] = self.loop.call_later(longest_s, self.end)

        def _heard(self) -> None:
            for timers in (waiting, refused):
                if (timer := timers.pop(self, None)) is not None:
                    timer.cancel()

    return Bounded


class Sparse(logging.Filter):
    """Lets few records of a logger pass in a time, and of these one line each, without a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._begun, self._passed = time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        now = time.monotonic()
        if now - self._begun > LINES_S:
            self._begun, self._passed = now, 0
        self._passed += 1
        if record.name == "asyncio":
            record.exc_info = record.exc_text = None
        return self._passed <= MOST_LINES


def bound_logs() -> None:
    """Bounds the loggers of this process that strangers can cause to write."""
    for name in ("asyncio", "uvicorn.error"):
        logger = logging.getLogger(name)
        if not any(isinstance(each, Sparse) for each in logger.filters):
            logger.addFilter(Sparse())
