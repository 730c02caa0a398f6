"""Requests to Studio with wrong and hostile values, beside a lab that is up: each is answered, none with status 500.

Paths and bodies are those of the interface's own description, and of what it does not describe: captures, files and
WebSockets. In them stand names of the lab that is up, and values that nobody would write.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from ewan.extras.studio.server.app import make
from ewan.extras.studio.server.guard import Access, names_of
from ewan.labs.context import Context
from tests.torture import folders, harness
from tests.torture.commands import TOPOLOGY, run
from tests.torture.mutations import WRONG

TIER = "untimed"
QUICK = 1
LONG = 40

REQUESTS = 250
"""Requests of a trial."""
PORT = 8765
LARGE_BYTES = 3_000_000
LONGEST_PART = 5000
"""Characters of a part of an address: whoever asks in this process has a limit of his own."""
ANSWERS = {200, 303, 400, 403, 404, 405, 409, 413}
WORDS: tuple[Any, ...] = (
    *(each for each in WRONG if isinstance(each, str) and each.isprintable()),
    *("", " ", ".", "..", "\0", "a\0b", "hop1\0", "\n", "\x1b[31m", "\x7f", "%00", "\u202e", "ü" * 130, "-w", "--help"),
    *("x" * 255, "x" * 256, "x" * 5000, "x" * LARGE_BYTES, "1" * 5000, "/etc/passwd", "+1e400s", "+-5s"),
)  # fmt: skip
SETTINGS = ("rate", "delay", "loss", "buffer", "queue", "jitter", "at", "nosuch")
SOCKETS = ("/ws/live/{lab}", "/ws/live/{lab}/packets", "/ws/live/{lab}/flows", "/ws/live/{lab}/nodes/{node}")
FURTHER = (
    ("POST", "/api/live/{lab}/capture"), ("GET", "/results/{name}/{path}"), ("GET", "/results/{name}/export/{kind}"),
    ("GET", "/{path}"), ("TRACE", "/"), ("PUT", "/api/studio"),
)  # fmt: skip


def trial(seed: int, place: Path) -> None:
    draw = random.Random(seed)
    lab = f"tr{os.getpid()}s{seed}"
    with _up(lab, place), _client(place) as client:
        (place / "mine.lab.yaml").write_text("topology: dumbbell\n")
        (place / "mine.scenario.yaml").write_text(
            "lab: dumbbell\nsteps: [{from: left1, to: right1, for: 1s, bulk: }]\n"
        )
        shutil.copytree(folders.whole(), place / "results" / "x")
        known = {"lab": lab, "link": "hop1", "node": "left1", "source": "left1", "sink": "right1", "name": "x"}
        asking = _Asking(draw, client, known, client.get("/api/openapi.json").json())
        for _ in range(REQUESTS):
            asking.one()
        assert client.get(f"/api/live/{lab}/done").status_code == HTTPStatus.OK


@contextlib.contextmanager
def _up(lab: str, place: Path) -> Iterator[None]:
    status, said = run(place, "up", *TOPOLOGY, "--name", lab)
    assert status == 0, said
    try:
        yield
    finally:
        run(place, "down", lab)


@contextlib.contextmanager
def _client(place: Path) -> Iterator[TestClient]:
    """Asks an application in this process: an exception of it is one of the trial."""
    access = Access(names_of("127.0.0.1", PORT), PORT)
    (place / "page").mkdir()
    (place / "page/index.html").touch()
    context = Context.of(os.environ | {"EWAN_STATE": str(place / "state")})
    headers = {"authorization": f"Bearer {access.token}"}
    app = make(context, place, place / "page", access)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}", headers=headers, follow_redirects=False) as client:
        yield client


class _Asking:
    """Random requests."""

    def __init__(self, draw: random.Random, client: TestClient, known: dict[str, str], described: Any) -> None:
        self._draw, self._client, self._known = draw, client, known
        self._schemas = described["components"]["schemas"]
        self._endpoints = [
            (method.upper(), path, self._body_of(told))
            for path, methods in described["paths"].items()
            for method, told in methods.items()
        ]
        self._endpoints += [(method, path, {}) for method, path in FURTHER]

    def one(self) -> None:
        """Asks once, and looks at the answer."""
        if self._draw.random() < 0.1:
            return self._socket()
        method, pattern, schema = self._draw.choice(self._endpoints)
        path = self._path(pattern)
        content = self._content(pattern, schema)
        said = f"{method} {path[:200]} {content[:300]!r}"
        try:
            answer = self._client.request(method, path, content=content, headers={"content-type": "application/json"})
        except Exception as error:
            raise AssertionError(f"{said}: {type(error).__name__}: {error}") from error
        assert answer.status_code in ANSWERS, f"{said}: {answer.status_code} {answer.text[:500]}"
        if answer.status_code != HTTPStatus.OK and answer.headers.get("content-type") == "application/json":
            harness.one_line(answer.json()["error"])

    def _socket(self) -> None:
        path = self._path(self._draw.choice(SOCKETS))
        query = {
            name: str(self._word(name))[:LONGEST_PART]
            for name in ("place", "filter", "node")
            if self._draw.random() < 0.7
        }
        address = f"ws://127.0.0.1:{PORT}{path}?{urlencode(query, errors='replace')}"
        try:
            with self._client.websocket_connect(address) as socket, contextlib.suppress(WebSocketDisconnect):
                socket.send_text(self._draw.choice(('{"columns": 80}', "[" * 500, '{"rows": 1e400, "columns": 5}')))
                socket.close()
        except WebSocketDisconnect:
            return
        except Exception as error:
            raise AssertionError(f"{address[:300]}: {type(error).__name__}: {error}") from error

    def _path(self, pattern: str) -> str:
        parts = [
            quote(str(self._word(part[1:-1]))[:LONGEST_PART], safe="", errors="replace")
            if part.startswith("{")
            else part
            for part in pattern.split("/")
        ]
        return "/".join(parts)

    def _word(self, name: str) -> Any:
        """A name that there is, or one that nobody would write."""
        if self._draw.random() < 0.6:
            return self._known.get(name, self._draw.choice(("1", "2", "0", "x", "here", "mine.lab.yaml", "csv")))
        return self._draw.choice(WORDS)

    def _body_of(self, told: Any) -> Any:
        if "requestBody" not in told:
            return {}
        found = told["requestBody"]["content"]["application/json"]["schema"]
        return self._schemas[found["$ref"].rpartition("/")[2]] if "$ref" in found else found

    def _content(self, pattern: str, schema: Any) -> bytes:
        chance = self._draw.random()
        if chance < 0.05:
            return self._draw.choice((b"", b"[" * 100_000, b"\xff\xfe", b"{", b'{"text": "\xed\xa0\x80"}', b"null"))
        fields = {"place": {}, "filter": {}, "longest": {}} if "capture" in pattern else schema.get("properties", {})
        body = {name: self._value(name, each) for name, each in fields.items() if self._draw.random() < 0.9}
        if chance < 0.1:
            body[str(self._draw.choice(WORDS))[:100]] = 1
        if body.get("kind") in ("down", "verify"):
            body["name"] = self._draw.choice(WORDS)  # the lab is to stay up
        return json.dumps(body).encode("utf-8", "replace")

    def _value(self, name: str, schema: Any) -> Any:
        chance = self._draw.random()
        if chance < 0.2:
            return self._draw.choice(WRONG)
        if "enum" in schema and chance < 0.8:
            return self._draw.choice(schema["enum"])
        if name == "words":
            return {str(self._draw.choice(SETTINGS)): self._draw.choice(("1ms", "0", *WORDS)) for _ in range(2)}
        if schema.get("type") == "boolean" and chance < 0.8:
            return self._draw.random() < 0.5
        if name == "tags":
            return [self._word(name) for _ in range(self._draw.choice((0, 1, 100)))]
        return self._word(name)
