"""A line to a box: a serial port, a Unix socket or a TCP connection, on which commands and answers are lines of text.

In: an address: `/dev/ttyUSB0`, `unix:/path`, `tcp:host:port`. Out: answers, each within its time; OSError otherwise.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import termios
import time
import tty
from types import TracebackType

LONGEST = 1 << 16  # bytes of an answer
CONNECTS_S = 5.0


class BoxSilentError(OSError):
    """The box did not answer in time."""

    def __init__(self, message: str) -> None:
        super().__init__(None, message)


class Line:
    """An open line; others cannot open it too."""

    def __init__(self, address: str, baud: int) -> None:
        self._socket: socket.socket | None = None
        if address.startswith("unix:"):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(CONNECTS_S)
            self._connect(address.removeprefix("unix:"), address)
            self._file = self._socket.fileno()
        elif address.startswith("tcp:"):
            host, _, port = address.removeprefix("tcp:").rpartition(":")
            if not host or not port.isdigit():
                raise BoxSilentError(f"{address}: write tcp:host:port")
            self._socket = socket.create_connection((host, int(port)), CONNECTS_S)
            self._file = self._socket.fileno()
        elif address.startswith("/"):
            self._file = _serial(address, baud)
        else:
            raise BoxSilentError(f"{address or 'address'}: write /dev/ttyUSB0, unix:/path or tcp:host:port")
        os.set_blocking(self._file, False)
        self._rest = b""

    def _connect(self, path: str, address: str) -> None:
        assert self._socket is not None
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise BoxSilentError(f"{address}: {error.strerror or error}") from None

    def __enter__(self) -> Line:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Closes it."""
        self.close()

    def close(self) -> None:
        """Others may open it then."""
        if self._socket is not None:
            self._socket.close()
        else:
            os.close(self._file)

    def ask(self, command: str, ends_with: str, within_s: float) -> str:
        """The answer to a command. Earlier input, such as late answers, is ignored."""
        self._rest = b""
        while select.select([self._file], [], [], 0)[0] and os.read(self._file, 1 << 16):
            pass
        deadline = time.monotonic() + within_s
        left = memoryview((command + ends_with).encode())
        while left:
            if not select.select([], [self._file], [], max(0.0, deadline - time.monotonic()))[1]:
                raise BoxSilentError(f"the box takes no command ({command})")
            left = left[os.write(self._file, left) :]
        while not (found := self._whole()):
            if not select.select([self._file], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise BoxSilentError(f"the box does not answer {command} within {within_s:g} s")
            part = os.read(self._file, 1 << 16)
            if not part or len(self._rest) > LONGEST:
                raise BoxSilentError(f"the line to the box is closed, or its answer to {command} has no end")
            self._rest += part
        return found

    def _whole(self) -> str:
        """The first line that has come whole and is not empty, and takes it out."""
        while b"\n" in self._rest or b"\r" in self._rest:
            end = min(place for place in (self._rest.find(b"\n"), self._rest.find(b"\r")) if place >= 0)
            line, self._rest = self._rest[:end], self._rest[end + 1 :]
            if text := line.decode(errors="replace").strip():
                return text
        return ""


def _serial(path: str, baud: int) -> int:
    """Open a terminal line, raw and locked for this process."""
    speed = getattr(termios, f"B{baud}", None)
    if speed is None:
        raise BoxSilentError(f"{path}: no serial line has {baud} baud")
    file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        tty.setraw(file)
        settings = termios.tcgetattr(file)
        settings[2] |= termios.CLOCAL | termios.CREAD
        settings[4] = settings[5] = speed
        termios.tcsetattr(file, termios.TCSANOW, settings)
    except BlockingIOError:
        os.close(file)
        raise BoxSilentError(f"{path}: another program speaks to this box") from None
    except termios.error as error:
        os.close(file)
        raise BoxSilentError(f"{path}: is no serial line ({error.args[-1]})") from None
    return file
