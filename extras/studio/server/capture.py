"""Packets of a lab that is up: `ewan lab capture`, listed as they come, or as one pcapng to download.

In: a place (`left1`, `core:forward`) and a filter in the words of tcpdump, words of a process and never of a shell.
Out: lines, or bytes. The capture ends when its reader is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence

from ewan.extras.studio.server.files import RefusedError
from ewan.labs.base.reading import one_line
from ewan.labs.context import COMMAND

LONGEST = "60s"
MOST = "100MB"
PIECE_BYTES = 64 << 10
ENDS_S = 3.0


class Capture:
    """A capture that goes on; `close` ends it."""

    def __init__(self, process: asyncio.subprocess.Process, first: bytes) -> None:
        self._process, self._first = process, first

    @classmethod
    async def begin(
        cls, lab: str, where: str, words: str, bounds: Sequence[str], environment: Mapping[str, str]
    ) -> Capture:
        """Begins a capture, and waits for its first output; RefusedError with its own line where it fails."""
        command = [*COMMAND, "lab", "capture", "--lab", lab, *bounds, "--", where]
        process = await asyncio.create_subprocess_exec(
            *command,
            *([words] if words.strip() else []),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=dict(environment) | {"NO_COLOR": "1", "COLUMNS": "160", "PYTHONUNBUFFERED": "1"},
        )
        assert process.stdout is not None and process.stderr is not None
        self = cls(process, b"")
        try:
            self._first = await process.stdout.read(PIECE_BYTES)
            if not self._first and await process.wait():
                said = (await process.stderr.read()).decode(errors="replace").strip()
                raise RefusedError(one_line(said.rpartition("\n")[2].removeprefix("ewan: ") or "nothing was captured"))
        except BaseException:
            await self.close()
            raise
        return self

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes that it writes, until it ends."""
        assert self._process.stdout is not None
        piece = self._first
        while piece:
            yield piece
            piece = await self._process.stdout.read(PIECE_BYTES)

    async def close(self) -> None:
        """Asks it to end; it takes down its own parts."""
        for number in (signal.SIGINT, signal.SIGKILL):
            if self._process.returncode is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), ENDS_S)
