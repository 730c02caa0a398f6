"""Connections within limits: who says nothing is closed soon, and nobody keeps others out by opening many.

In: connections, as asyncio gives them. Out: uvicorn's protocol for each. A connection that has not sent a whole request
is closed after `HEADERS_S`, and the oldest of these as soon as there are too many. A log is bounded too: an error that
comes with each attempt of a stranger does not fill the disk.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 10.0
"""How long the head of a request may take."""
MOST = 256
"""Connections at a time, and a third of the files that this process may have open."""
MOST_LINES, LINES_S = 20, 60.0
"""So many records of a logger in so long a time."""


def most_connections() -> int:
    """How many connections this process holds at a time."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if files == resource.RLIM_INFINITY else max(min(MOST, files // 3), 8)


def protocol(most: int, headers_s: float = HEADERS_S) -> type[asyncio.Protocol]:
    """The class of a server's connections, which know of each other."""
    waiting: dict[Any, asyncio.TimerHandle] = {}
    """Those that have not sent a whole request, the oldest first."""

    class Bounded(H11Protocol):
        """A connection."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Too many are there: the one that has been silent for longest goes."""
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > most:
                oldest = next(iter(waiting))
                oldest.end()

        def connection_lost(self, exc: Exception | None) -> None:
            """It no longer counts."""
            self._heard()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            """A request is at work, or its head is not whole."""
            super().data_received(data)
            upgraded = self.transport.get_protocol() is not self
            if upgraded or (self.cycle is not None and not self.cycle.response_complete):
                self._heard()
            elif self not in waiting and not self.transport.is_closing():
                self._wait()

        def end(self) -> None:
            """Closes it at once."""
            self._heard()
            self.transport.abort()

        def on_response_complete(self) -> None:
            """From then on uvicorn's own time for idle connections runs."""
            self._heard()
            super().on_response_complete()

        def _wait(self) -> None:
            waiting[self] = self.loop.call_later(headers_s, self.end)

        def _heard(self) -> None:
            if (timer := waiting.pop(self, None)) is not None:
                timer.cancel()

    return Bounded


class Sparse(logging.Filter):
    """Lets few records of a logger pass in a time, and of these one line each: a traceback is for nobody here."""

    def __init__(self) -> None:
        super().__init__()
        self._begun, self._passed = time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        now = time.monotonic()
        if now - self._begun > LINES_S:
            self._begun, self._passed = now, 0
        self._passed += 1
        if record.name == "asyncio":
            record.exc_info = record.exc_text = None
        return self._passed <= MOST_LINES


def bound_logs() -> None:
    """For the loggers of this process that strangers can cause to write."""
    for name in ("asyncio", "uvicorn.error"):
        logger = logging.getLogger(name)
        if not any(isinstance(each, Sparse) for each in logger.filters):
            logger.addFilter(Sparse())
