"""Programs on a machine at the other end of an SSH connection; coroutines, for `ewan.extras.machines.ssh`.

In: a connection, a command as the shell there reads it. Out: what the program wrote and how it ended; LabError when the
connection is lost, or the time is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from signal import SIGTERM
from typing import BinaryIO, TypedDict

import asyncssh

from ewan.extras.machines.results import CompletedProgram
from ewan.labs.runtime.base import LabError

KEPT_BYTES = 1 << 16
"""Bytes of the end of the standard error of a long program that are kept."""
SIGNAL_S = 2.0
_CHUNK = 1 << 16
Fed = Callable[[float], None]
"""Gets the share of what a program is given that has gone, from 0 to 1; in the thread of the connections."""
NUMBER = re.compile(rb"^ewan:pid:(\d+)\n", re.MULTILINE)
_NUMBERED = 'echo "ewan:pid:$$" >&2; exec "$@"'


class TerminalOptions(TypedDict):
    """A terminal, in the arguments of asyncssh: `term_size`: columns, rows, and both in pixels."""

    term_type: str
    term_size: tuple[int, int, int, int]


@dataclass(frozen=True)
class RemoteCommand:
    """A program and its words; `before`: the words of the program that starts it (sudo)."""

    argv: Sequence[str]
    before: Sequence[str] = ()

    def line(self, numbered: bool) -> str:
        """The line for the login shell there: the program replaces the shell. `numbered`: its process number is printed
        first."""
        said = ("sh", "-c", _NUMBERED, "sh") if numbered else ()
        return f"exec {shlex.join([*said, *self.before, *self.argv])}"

    def other(self, argv: Sequence[str]) -> str:
        """The line of another program, started the same way."""
        return RemoteCommand(argv, self.before).line(numbered=False)

    def __str__(self) -> str:
        line = " ".join(shlex.join(self.argv).split())
        return line if len(line) <= 60 else f"{line[:59]}…"


def lost(who: str, error: Exception | None) -> LabError:
    """The connection ended."""
    why = getattr(error, "reason", None) or (str(error) if error else "")
    return LabError(f"{who}: the connection was lost{f' ({why})' if why else ''}: is the machine up, and its network?")


@contextlib.asynccontextmanager
async def within(longest_s: float | None, what: str) -> AsyncIterator[None]:
    """A time limit, and the LabError when it is over."""
    try:
        async with asyncio.timeout(longest_s):
            yield
    except TimeoutError as error:
        raise LabError(f"{what} within {longest_s:g} s") from error


class RemoteProgram:
    """One program. Without a terminal of its own, the first thing that it writes to standard error is its number."""

    def __init__(
        self,
        who: str,
        connection: asyncssh.SSHClientConnection,
        command: RemoteCommand,
        process: asyncssh.SSHClientProcess[bytes],
        terminal: bool,
    ) -> None:
        self._who, self._connection, self._command = who, connection, command
        self.process, self._terminal = process, terminal
        self._read = bytearray()
        self._error = bytearray()
        self._errors: asyncio.Task[None] | None = None
        self._number: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        if terminal:
            self._number.set_result(None)

    @classmethod
    async def start(
        cls,
        who: str,
        connection: asyncssh.SSHClientConnection,
        command: RemoteCommand,
        terminal: TerminalOptions | None = None,
    ) -> RemoteProgram:
        """Start it; LabError when the server refuses. `terminal`: its terminal there."""
        try:
            process = await connection.create_process(
                command.line(numbered=terminal is None),
                encoding=None,
                subsystem=None,
                request_pty=False if terminal is None else "force",
                **({} if terminal is None else dict(terminal)),
            )
        except asyncssh.ChannelOpenError as error:
            if connection.is_closed():
                raise lost(who, error) from error
            raise LabError(
                f"{who}: sshd there refuses one more program at once ({error.reason}): MaxSessions of its sshd_config"
            ) from error
        except (asyncssh.Error, OSError) as error:
            raise lost(who, error) from error
        return cls(who, connection, command, process, terminal is not None)

    def collect(self) -> RemoteProgram:
        """Read its standard error from now on, of which the end is kept; without this call, the caller reads it."""
        self._errors = asyncio.create_task(self._collected())
        return self

    async def _collected(self) -> None:
        with contextlib.suppress(LabError):
            while chunk := await self.next_error():
                self._error += chunk
                del self._error[:-KEPT_BYTES]

    async def next_error(self) -> bytes:
        """Read the next bytes of its standard error; empty at its end."""
        chunk = await self.next(self.process.stderr)
        if self._number.done():
            return chunk
        # Shells may have printed something before.
        while chunk and not (found := NUMBER.search(chunk)) and len(chunk) < _CHUNK:
            if not (more := await self.next(self.process.stderr)):
                break
            chunk += more
        self._number.set_result(int(found[1]) if chunk and found else None)
        return NUMBER.sub(b"", chunk, count=1) or (await self.next(self.process.stderr) if chunk else b"")

    @property
    def error(self) -> bytes:
        """The end of its standard error until now."""
        return bytes(self._error)

    async def write(self, data: bytes) -> None:
        """Gives it more on standard input; waits while it reads slower."""
        try:
            self.process.stdin.write(data)
            await self.process.stdin.drain()
        except (asyncssh.Error, OSError) as error:
            raise self._broken(error) from error

    async def end_input(self) -> None:
        """Ends its standard input."""
        with contextlib.suppress(OSError):
            self.process.stdin.write_eof()

    async def read(self) -> bytes:
        """Read the next bytes of standard output; empty at its end."""
        if self._read:
            read, self._read = bytes(self._read), bytearray()
            return read
        return await self.next(self.process.stdout)

    async def next(self, stream: asyncssh.SSHReader[bytes]) -> bytes:
        """Read the next bytes of one of its streams."""
        try:
            return await stream.read(_CHUNK)
        except (asyncssh.Error, OSError) as error:
            raise lost(self._who, error) from error

    async def line(self, longest_s: float | None = None) -> bytes:
        """A line of standard output; without its end when the output ended there, empty when it ended before."""
        async with within(longest_s, f"{self._who}: no line came"):
            return await self._line()

    async def _line(self) -> bytes:
        looked = 0
        while (end := self._read.find(b"\n", looked)) < 0:
            looked = len(self._read)
            chunk = await self.next(self.process.stdout)
            if not chunk:
                end = looked - 1
                break
            self._read += chunk
        line = bytes(self._read[: end + 1])
        del self._read[: end + 1]
        return line

    async def wait(self, longest_s: float | None = None, most_bytes: int | None = None) -> CompletedProgram:
        """Wait until it ended; the result has the output that is not read yet. LabError where that is more than
        `most_bytes`."""
        async with within(longest_s, f"{self._who}: the program did not end"):
            return await self._wait(most_bytes)

    async def _wait(self, most_bytes: int | None) -> CompletedProgram:
        output = bytearray()
        while chunk := await self.read():
            output += chunk
            if most_bytes is not None and len(output) > most_bytes:
                raise LabError(f"{self._who}: {self._command} prints more than {most_bytes} bytes")
        if self._errors is not None:
            await self._errors
        return CompletedProgram(await self.code(), bytes(output), self.error)

    async def code(self) -> int:
        """The exit status of the program, whose output has ended."""
        await self.process.wait_closed()
        if (code := self.process.returncode) is None:
            raise self._broken(None)
        return code

    async def send_signal(self, number: int) -> None:
        """Sends it and its children a signal, if it still runs.

        By a program of ours: sshd sends none for root, and none to what sudo started. One that has a terminal loses it.
        """
        if self.process.returncode is not None:
            return
        with contextlib.suppress(asyncssh.Error, OSError, TimeoutError):
            async with asyncio.timeout(SIGNAL_S):
                group = await asyncio.shield(self._number)
            if group is None:
                self.process.close()
                return
            kill = self._command.other(["kill", f"-{number}", "--", f"-{group}"])
            await self._connection.run(kill, stdin=asyncssh.DEVNULL, request_pty=False, timeout=SIGNAL_S)

    def resized(self, columns: int, rows: int, wide: int, high: int) -> None:
        """Sets the size of its terminal."""
        with contextlib.suppress(OSError):
            self.process.change_terminal_size(columns, rows, wide, high)

    async def close(self) -> None:
        """Ends it, if it still runs, with SIGTERM; its end is not waited for, nor a machine that does not answer."""
        if self.process.returncode is None and not self._connection.is_closed():
            told = asyncio.create_task(self.send_signal(SIGTERM))
            await asyncio.wait({told}, timeout=SIGNAL_S)
            told.cancel()
        self.process.close()
        if self._errors is not None:
            self._errors.cancel()

    def _broken(self, error: Exception | None) -> LabError:
        code = self.process.returncode
        if code is not None:
            said = CompletedProgram(code, b"", self.error).said
            return LabError(f"{self._who}: the program ended with status {code}: {said}")
        return lost(self._who, error)


async def started(who: str, connection: asyncssh.SSHClientConnection, command: RemoteCommand) -> RemoteProgram:
    """A program that runs on."""
    return (await RemoteProgram.start(who, connection, command)).collect()


async def run(
    who: str,
    connection: asyncssh.SSHClientConnection,
    command: RemoteCommand,
    given: bytes,
    longest_s: float | None,
    fed: Fed = lambda share: None,
    most_bytes: int | None = None,
) -> CompletedProgram:
    """Run a program to its end, with `given` on its standard input; `fed` is called with the share of it that has gone.
    LabError where it prints more than `most_bytes`."""
    running: RemoteProgram | None = None
    feeding: asyncio.Task[None] | None = None
    try:
        async with within(longest_s, f"{who}: {command} did not end"):
            running = await started(who, connection, command)
            feeding = asyncio.create_task(_feed(running, given, fed))
            return await running.wait(most_bytes=most_bytes)
    finally:
        if feeding is not None:
            feeding.cancel()
        if running is not None:
            await running.close()


async def save(who: str, connection: asyncssh.SSHClientConnection, command: RemoteCommand, file: BinaryIO) -> None:
    """Run a program to its end, with its output in a file; LabError when it fails."""
    running = await started(who, connection, command)
    try:
        await running.end_input()
        while chunk := await running.read():
            file.write(chunk)
        ended = await running.wait()
        if ended.returncode != 0:
            raise LabError(f"{who}: {command}: {ended.said}")
    finally:
        await running.close()


async def _feed(running: RemoteProgram, given: bytes, fed: Fed) -> None:
    # A program may end without reading it.
    with contextlib.suppress(LabError):
        for begin in range(0, len(given), _CHUNK):
            await running.write(given[begin : begin + _CHUNK])
            fed(min(begin + _CHUNK, len(given)) / len(given))
    await running.end_input()
