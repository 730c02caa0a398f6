"""A terminal in a node: `ewan lab shell` on a pseudo-terminal, whose bytes go through a WebSocket.

In: a lab, a node, what is typed and how large the window is. Out: what the shell prints. It ends with the
socket, and the socket with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping

from ewan.labs.context import COMMAND

PIECE_BYTES = 64 << 10
ENDS_S = 2.0
MOST_COLUMNS, MOST_ROWS = 1000, 1000


class Terminal:
    """A shell that runs, in a loop of asyncio; `close` ends it."""

    def __init__(self, lab: str, node: str, environment: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        try:
            self._shell = subprocess.Popen(
                [*COMMAND, "lab", "shell", "--lab", lab, "--", node],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                env=dict(environment) | {"TERM": "xterm-256color"},
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        finally:
            os.close(theirs)
        os.set_blocking(self._ours, False)
        self._readable, self._writable = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._ours, self._readable.set)

    def resize(self, columns: int, rows: int) -> None:
        """Sets the window's size; impossible sizes are ignored."""
        if 0 < columns <= MOST_COLUMNS and 0 < rows <= MOST_ROWS:
            fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def read(self) -> bytes:
        """Read its next output; empty: it has ended."""
        while True:
            await self._readable.wait()
            self._readable.clear()
            try:
                return os.read(self._ours, PIECE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return b""  # the other end is closed

    async def write(self, data: bytes) -> None:
        """Send typed bytes to it."""
        while data:
            try:
                data = data[os.write(self._ours, data) :]
            except BlockingIOError:
                self._loop.add_writer(self._ours, self._writable.set)
                await self._writable.wait()
                self._writable.clear()
                self._loop.remove_writer(self._ours)
            except OSError:
                return

    async def close(self) -> None:
        """Hangs up, as a terminal that is closed does."""
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        os.close(self._ours)
        for each in (signal.SIGHUP, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._shell.pid, each)
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._shell.wait, ENDS_S)
                return
