"""Connections that say nothing, or half of it, keep nobody else out."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from studio.server.connections import MOST_LINES, Sparse, protocol

pytestmark = pytest.mark.slow

MOST, HEADERS_S = 16, 0.4


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    config = uvicorn.Config(PlainTextResponse("here"), log_level="error", http=protocol(MOST, HEADERS_S))
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
                assert each.recv(1) == b""
        assert time.monotonic() - begun < 20 * HEADERS_S
    finally:
        for each in silent:
            each.close()


def test_a_second_request_that_stays_half_ends_too(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=5) as own:
        own.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
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
