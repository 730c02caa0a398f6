"""The server of control sockets and its client: requests in parts, several at once, from too many, without an end."""

from __future__ import annotations

import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.runtime import control
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.requests import LinkRequest


class Echo(Struct, forbid_unknown_fields=False):
    asked: dict[str, int | str]


class EchoRequest(LinkRequest[Echo], tag="echo"):
    a: int = 0


class RefusedRequest(LinkRequest[Echo], tag="refuse"):
    pass


def answer(line: bytes) -> bytes:
    request = codec.decode(dict[str, int | str], line, "")
    return control.refused("no") if request.get("command") == "refuse" else control.accepted(Echo(request))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "x.sock"
    with control.listening(path) as listener:
        ended, bell = socket.socketpair()
        thread = threading.Thread(target=control.serve, args=(listener, ended, answer, lambda: 60.0))
        thread.start()
        yield path
        bell.close()
        thread.join(10)
        assert not thread.is_alive()
        ended.close()


@pytest.fixture
def connected(place: Path) -> Iterator[Callable[[], socket.socket]]:
    made: list[socket.socket] = []

    def connect() -> socket.socket:
        made.append(socket.socket(socket.AF_UNIX))
        made[-1].settimeout(10)
        made[-1].connect(str(place))
        return made[-1]

    yield connect
    for each in made:
        each.close()


def test_a_request_has_an_answer(place: Path) -> None:
    assert control.ask(place, EchoRequest(2), 10, "it") == Echo({"command": "echo", "a": 2})
    with pytest.raises(LabError, match=r"^no$"):
        control.ask(place, RefusedRequest(), 10, "it")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_lines_are_answered_in_order_however_they_come(connected: Callable[[], socket.socket]) -> None:
    client = connected()
    client.sendall(b'{"a":1}\n{"a":2}\n{"a"')
    with client.makefile("rb") as lines:
        assert [lines.readline(), lines.readline()] == [
            b'{"ok":true,"asked":{"a":1}}\n',
            b'{"ok":true,"asked":{"a":2}}\n',
        ]
        client.sendall(b":3}\n")
        assert lines.readline() == b'{"ok":true,"asked":{"a":3}}\n'


def test_a_client_too_many_and_a_line_without_end_are_turned_away(
    place: Path, connected: Callable[[], socket.socket]
) -> None:
    first, *_ = [connected() for _ in range(control.MOST_CLIENTS)]
    assert connected().recv(1) == b""
    with pytest.raises(ConnectionError):
        for _ in range(2 + control.LONGEST_LINE // (1 << 16)):
            first.sendall(b" " * (1 << 16))
        first.recv(1)
        raise ConnectionResetError  # it was closed before all was read
    assert control.ask(place, EchoRequest(1), 10, "it").asked["a"] == 1


def test_work_is_done_when_it_is_time(tmp_path: Path) -> None:
    ended, bell = socket.socketpair()
    done: list[float] = []

    def work() -> float:
        done.append(time.monotonic())
        if len(done) == 3:
            bell.close()
        return 0.05

    with control.listening(tmp_path / "x.sock") as listener, ended:
        control.serve(listener, ended, answer, work)
    assert len(done) == 3 and done[2] - done[0] >= 0.1


@pytest.mark.parametrize("said", [b"", b'{"ok":tr', b"[\n"])
def test_an_answer_that_is_not_whole_is_none(tmp_path: Path, said: bytes) -> None:
    def say() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(100)
            client.sendall(said)

    with control.listening(tmp_path / "x.sock") as listener:
        thread = threading.Thread(target=say)
        thread.start()
        with pytest.raises(ConnectionError, match="its answer is not whole"):
            control.ask(tmp_path / "x.sock", EchoRequest(), 10, "it")
        thread.join()


def test_nobody_who_answers_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        control.ask(tmp_path / "x.sock", EchoRequest(), 10, "it")
