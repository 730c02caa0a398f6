"""What a page asks each second while a lab is watched and nothing changes: answered at once, and gone afterwards.

Memory over half an hour is watched by `make bench PART=studio OPTS=--minutes=30`; here the page asks fifty times as
often.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Route

from tests.extras.studio.conftest import looking
from tests.extras.studio.server import Server

pytestmark = pytest.mark.untimed

HURRIED = """const every = window.setInterval;
window.setInterval = (what, ms, ...rest) => every(what, ms / 50, ...rest);"""
WINDOWS, ANSWERS, ROUNDS = 3, 100, 170
"""What is loaded or compiled late grows one window. A leak grows all of them, so the window that grew least counts."""
MOST_A_ROUND = 8_000
"""Bytes: in half an hour 14 MB. The allocator takes them in steps of a megabyte or two."""
WAY: dict[str, Any] = {"rate_bps": 10**7, "delay_ns": 10**7, "limit_bytes": 25000, "words": ["rate 10Mbit/s"] * 4}
LINKS = [
    {"name": f"arm{n}", "a": "hub", "b": f"host{n}", "role": "wan", "forward": WAY, "backward": WAY, "bottleneck_of": 1}
    for n in range(200)
]
LAB = {"lab": "other", "runtime": "netns", "state": "complete", "links": LINKS, "down": []}


def test_the_page_forgets_answers_that_are_as_before(browser: Browser, server: Server) -> None:
    body, answered = json.dumps([LAB]), 0

    def answer(route: Route) -> None:
        nonlocal answered
        answered += 1
        route.fulfill(body=body, content_type="application/json")

    with looking(browser) as page:
        page.add_init_script(HURRIED)
        page.route("**/api/live", answer)
        page.goto(server.url)
        inside = page.context.new_cdp_session(page)

        def used_after(count: int) -> int:
            while answered < count:
                page.wait_for_timeout(100)
            inside.send("HeapProfiler.collectGarbage")
            return int(inside.send("Runtime.getHeapUsage")["usedSize"])

        used = [used_after(50 + ANSWERS * window) for window in range(WINDOWS + 1)]
        grown = min(after - before for before, after in pairwise(used))
        assert grown < ANSWERS * len(body) / 20, f"{grown} bytes more after {ANSWERS} answers of {len(body)} bytes"


@pytest.fixture
def asked(server: Server) -> Iterator[Callable[[], None]]:
    """Asks all of it once, over one connection."""
    address = urlsplit(server.url)
    token = parse_qs(address.query)["token"][0]

    def ask() -> None:
        for path in ("live", "jobs", "labs/other/verification"):
            connection.request("GET", f"/api/{path}", headers={"authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            assert answer.read() and answer.status == 200

    with closing(http.client.HTTPConnection(address.netloc)) as connection:
        yield ask


def test_the_server_forgets_what_it_was_asked(server: Server, asked: Callable[[], None]) -> None:
    """As often as in eight minutes."""

    def grown_after(rounds: int) -> int:
        before = server.memory_bytes()
        for _ in range(rounds):
            asked()
        return server.memory_bytes() - before

    grown_after(200)
    assert min(grown_after(ROUNDS) for _ in range(WINDOWS)) < ROUNDS * MOST_A_ROUND


def test_an_answer_does_not_wait_for_an_acknowledgement(asked: Callable[[], None]) -> None:
    """By Nagle's algorithm (RFC 896) the second segment of an answer waits for the ACK of the first: 40 ms."""

    def took_s() -> float:
        begun = time.monotonic()
        asked()
        return time.monotonic() - begun

    asked()
    assert min(took_s() for _ in range(30)) < 0.03
