"""Connections that send nothing, or half a request, keep no others out."""

from __future__ import annotations

import asyncio
import logging
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from ewan.extras.studio.server.connections import MOST_LINES, REFUSAL, Sparse, protocol

pytestmark = pytest.mark.slow

MOST, WAITS_S = 16, 0.4
LARGE = 1 << 20
ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


release = threading.Event()
at_work: list[str] = []


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Takes the body of a request; the answer to /large is of a megabyte, that to /late comes when `release` is set."""
    if scope["type"] == "http":
        request = Request(scope, receive)
        await request.body()
        if request.url.path == "/late":
            at_work.append(request.url.path)
            while not release.is_set():
                await asyncio.sleep(0.01)
        content = "x" * LARGE if request.url.path == "/large" else "here"
        await PlainTextResponse(content)(scope, receive, send)


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    config = uvicorn.Config(answer, log_level="critical", http=protocol(MOST, WAITS_S))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listening.getsockname()
    server.should_exit = True
    thread.join()


def asked(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, timeout=5) as own:
        own.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return own.recv(4096)


def is_answered(address: tuple[str, int]) -> bool:
    try:
        return asked(address).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: "])
def test_silent_connections_give_way_and_end(address: tuple[str, int], said: bytes) -> None:
    silent = [socket.create_connection(address, timeout=5) for _ in range(4 * MOST)]
    try:
        for each in silent:
            each.sendall(said)
        begun = time.monotonic()
        assert asked(address).startswith(b"HTTP/1.1 200")
        for each in silent:
            with suppress(ConnectionResetError):
                assert not each.recv(4096).removeprefix(REFUSAL) and each.recv(1) == b""
        assert time.monotonic() - begun < 20 * WAITS_S
    finally:
        for each in silent:
            each.close()


@pytest.mark.parametrize(
    ("said", "least"),
    [
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf", 1),
        (ASKED, 10),
        (b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * 20, 1),
    ],
    ids=["half a body", "idle after an answer", "nobody reads the answers"],
)
def test_whatever_connections_wait_for_they_keep_nobody_out(address: tuple[str, int], said: bytes, least: int) -> None:
    others = []
    try:
        for _ in range(3 * MOST):
            others.append(socket.create_connection(address, timeout=5))
            others[-1].sendall(said)
        # The server may be at work on all of them at one moment. Later it has seen what each of them waits for.
        assert sum([is_answered(address) for _ in range(30)][20:]) >= least
    finally:
        for each in others:
            each.close()


def connection_at_work(address: tuple[str, int]) -> socket.socket:
    """A connection whose request waits for `release`. The server may still count connections of earlier tests, and
    refuses it then: it is made once more."""
    before = len(at_work)
    for _ in range(500):
        own = socket.create_connection(address, timeout=5)
        own.sendall(b"GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while not select.select([own], [], [], 0.01)[0]:
            if len(at_work) > before:
                return own
        own.close()
    raise AssertionError("the server takes no further request")


def test_who_asks_while_too_many_are_at_work_is_told_so(address: tuple[str, int]) -> None:
    release.clear()
    at_work.clear()
    late: list[socket.socket] = []
    try:
        late += [connection_at_work(address) for _ in range(MOST)]
        for _ in range(3):
            status, *_, error = asked(address).split(b"\r\n")
            assert status == b"HTTP/1.1 503 Service Unavailable" and b"too many connections" in error
        release.set()
        assert all(each.recv(4096).startswith(b"HTTP/1.1 200") for each in late)
    finally:
        release.set()
        for each in late:
            each.close()


def test_a_second_request_that_stays_half_ends_too(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=5) as own:
        own.sendall(ASKED)
        said = b""
        while b"here" not in said:
            said += own.recv(4096)
        own.sendall(b"GET / HT")
        with suppress(ConnectionResetError):
            assert own.recv(4096) == b""


def test_a_log_is_bounded() -> None:
    sparse = Sparse()
    error = (ValueError, ValueError("x"), None)
    records = [logging.LogRecord("asyncio", logging.ERROR, "", 1, "accept", None, error) for _ in range(1000)]
    assert sum(sparse.filter(each) for each in records) == MOST_LINES
    assert all(each.exc_info is None for each in records)
