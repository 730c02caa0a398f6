"""Processes of a lab that are asked over a Unix socket: their start, their server and the client of them.

In: a process's words; what answers a request. Out: one line of JSON for each line of JSON, in order. The server is of
processes in Python; a spinner (`emulator/node`) has one of its own, which answers in the same way.
"""

from __future__ import annotations

import selectors
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.runtime.requests import LinkRequest, answer_in

Answer = TypeVar("Answer")

ENDS_S = 5.0
"""For a process to end that is asked to."""
LONGEST_LINE = 1 << 20
MOST_CLIENTS = 16
CLIENT_S = 3.0
"""For a client to take an answer."""
# Kept, so that Python does not wait for them or warn: they outlive this process.
_started: list[subprocess.Popen[bytes]] = []


@contextmanager
def starting(ending: signal.Signals) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A list for processes that `start` gave, which go on after the context. After an error in it they get the signal
    `ending`, and are killed where they do not end soon."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        yield processes
    except BaseException:
        for process in processes:
            process.send_signal(ending)
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_S)
            process.kill()
        raise
    _started.extend(processes)


def start(words: Sequence[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    """A process in a session of its own, whose output goes to the log."""
    with log.open("wb") as output:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True
        )


def ask(path: Path, request: LinkRequest[Answer], longest_s: float, who: str) -> Answer:
    """One request, one answer; OSError when no process answers, LabError when the answer is a refusal. `who`
    answers."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(longest_s)
        stream.connect(str(path))
        stream.sendall(codec.line(request))
        with stream.makefile("rb") as lines:
            line = lines.readline()
    try:
        return answer_in(request, line, who)
    except ValueError:
        raise ConnectionError("its answer is not whole") from None


def accepted(answer: Struct) -> bytes:
    """The line of an answer that is no refusal."""
    return codec.line({"ok": True, **codec.data_of(answer)})


def refused(why: str) -> bytes:
    """The line of a refusal."""
    return codec.line({"ok": False, "error": why})


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket for this user only, which appears when it listens."""
    with socket.socket(socket.AF_UNIX) as listener:
        new = path.with_suffix(".new")
        listener.bind(str(new))
        new.chmod(0o600)
        listener.listen()
        new.rename(path)
        yield listener


def serve(
    listener: socket.socket,
    ended: socket.socket,
    answer: Callable[[bytes], bytes],
    work: Callable[[], float],
) -> None:
    """Answers until `ended` can be read. `work` is called after each answer, and after the seconds that it gives."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        rest: dict[socket.socket, bytes] = {}
        while True:
            for key, _ in selector.select(work()):
                source = key.fileobj
                assert isinstance(source, socket.socket)
                if source is ended:
                    return
                if source is listener:
                    client, _ = listener.accept()
                    if len(rest) >= MOST_CLIENTS:
                        client.close()
                        continue
                    client.settimeout(CLIENT_S)
                    rest[client] = b""
                    selector.register(client, selectors.EVENT_READ)
                elif not _converse(answer, source, rest):
                    selector.unregister(source)
                    del rest[source]
                    source.close()


def _converse(answer: Callable[[bytes], bytes], client: socket.socket, rest: dict[socket.socket, bytes]) -> bool:
    """Answers what has come; false when the client is gone."""
    try:
        part = client.recv(1 << 16)
        if not part:
            return False
        *lines, rest[client] = (rest[client] + part).split(b"\n")
        for line in lines:
            client.sendall(answer(line))
    except OSError:
        return False
    return len(rest[client]) <= LONGEST_LINE
