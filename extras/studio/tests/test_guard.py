"""Refusals of the guard: other sites' pages, other names, no token, large bodies, many sockets, and --view's
refusals."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from ewan.extras.studio.server.app import make
from ewan.extras.studio.server.guard import CODE_S, MOST_BODY_BYTES, MOST_SOCKETS, POLICY, Access, names_of
from ewan.labs.context import Context

PORT = 8765
URL = f"http://127.0.0.1:{PORT}"
OWN = {"origin": URL}
SOCKETS = f"ws://127.0.0.1:{PORT}"


@pytest.fixture
def access() -> Access:
    return Access(names_of("127.0.0.1", PORT), PORT)


@pytest.fixture
def client(access: Access, tmp_path: Path) -> Iterator[TestClient]:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<!doctype html><title>here</title>")
    (tmp_path / "secret.lab.yaml").write_text("topology: dumbbell\n")
    environment = {"EWAN_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    app = make(Context.of(environment), tmp_path, page, access)
    with TestClient(app, base_url=URL) as client:
        yield client


@pytest.fixture
def known(client: TestClient, access: Access) -> TestClient:
    """A client that is the page: it has the cookie and the key, and its requests carry their Origin."""
    opened = client.get(f"/?token={access.token}")
    assert opened.text.startswith("<!doctype html>")
    client.headers |= {"origin": URL, "x-ewan-key": opened.url.params["key"], "sec-fetch-site": "same-origin"}
    return client


def test_the_address_gives_a_cookie_and_the_token_is_gone_from_it(client: TestClient, access: Access) -> None:
    answer = client.get(f"/?token={access.token}", follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == f"/?key={access.key}"
    assert access.token not in str(answer.headers)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert answer.headers["content-security-policy"] == POLICY and "script-src 'self';" in POLICY
    again = client.get(f"/?token={access.token}", follow_redirects=False)
    assert again.status_code == 303, "also of a browser that is known"


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/api/files", "/api/studio", "/page.js", "/api/openapi.json"])
def test_nothing_is_told_without_the_token(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 401 and "topology" not in answer.text
    assert "open the address with ?token= that ewan studio printed" in answer.text and answer.text.count("\n") == 1


def test_a_code_opens_the_page_once(client: TestClient, access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    code, late = access.code(), access.code()
    assert client.get(f"/?code={code}", follow_redirects=False).status_code == 303
    client.cookies.clear()
    assert client.get(f"/?code={code}", follow_redirects=False).status_code == 401, "whoever reads it later is too late"
    later = time.monotonic() + CODE_S + 1
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert client.get(f"/?code={late}", follow_redirects=False).status_code == 401


def test_the_cookie_alone_opens_nothing_but_what_is_shown(client: TestClient, access: Access) -> None:
    """The browser shows it to a server at another port of this host."""
    client.get(f"/?token={access.token}")
    cookie = client.cookies[access.cookie]
    assert cookie != access.token and client.get("/").status_code == 200
    asked = {"origin": URL, "sec-fetch-site": "same-origin"}
    for headers in (asked, {"authorization": f"Bearer {cookie}"}, asked | {"x-ewan-key": cookie}):
        assert client.get("/api/files", headers=headers).status_code == 401
        assert client.post("/api/jobs", json={}, headers=headers).status_code == 401
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(f"{SOCKETS}/ws/live/x", headers=headers):
            pass
    assert client.get("/api/files", headers={"authorization": f"Bearer {access.key}"}).status_code == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_page_has_the_browser_fetch_is_not_answered(known: TestClient, site: str) -> None:
    for path in ("/api/files", "/results/x/report.html", "/page.js"):
        assert known.get(path, headers={"sec-fetch-site": site}).status_code == 403
    assert known.get("/", headers={"sec-fetch-site": site}).status_code == 200, "a link may lead here"


def test_a_script_may_bring_the_token_itself(client: TestClient, access: Access) -> None:
    assert client.get("/api/files", headers={"authorization": f"Bearer {access.token}"}).status_code == 200
    assert client.get("/api/files", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get(f"/api/files?token={access.token}").status_code == 401


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{PORT}"])
def test_pages_of_others_are_not_answered(known: TestClient, origin: str) -> None:
    assert known.get("/api/files", headers={"origin": origin}).status_code == 403
    body = {"text": "topology: dumbbell"}
    assert known.post("/api/describe", json=body, headers={"origin": origin}).status_code == 403
    with (
        pytest.raises(WebSocketDisconnect),
        known.websocket_connect(f"{SOCKETS}/ws/live/x", headers={"origin": origin}),
    ):
        pass


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_name_that_was_made_to_point_here_is_not_answered(known: TestClient, host: str) -> None:
    assert known.get("/api/files", headers={"host": host}).status_code == 403


def test_sockets_need_the_token_and_an_origin(client: TestClient, access: Access) -> None:
    bearer = {"authorization": f"Bearer {access.token}"}
    for headers in ({}, {"origin": URL}, {"authorization": "Bearer wrong"}):
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(f"{SOCKETS}/ws/live/x", headers=headers):
            pass
    with ExitStack() as stack:
        socket = stack.enter_context(client.websocket_connect(f"{SOCKETS}/ws/live/x", headers=bearer))
        ended = stack.enter_context(pytest.raises(WebSocketDisconnect))
        socket.receive_bytes()
    assert ended.value.code == 4404, "it was let in; there is no such lab"


@pytest.mark.parametrize(
    "name", ["../etc/passwd", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "x.yaml", "a/b.lab.yaml", ".lab.yaml"]
)
def test_paths_stay_in_the_directory(known: TestClient, name: str) -> None:
    assert known.get(f"/api/files/here/{name}").status_code in (400, 404)
    assert known.put(f"/api/files/here/{name}", json={"text": "x"}).status_code in (400, 404, 405)


def test_of_results_reports_alone_are_shown(known: TestClient, tmp_path: Path) -> None:
    run = tmp_path / "results/20260101T000000Z-x"
    (run / "figures").mkdir(parents=True)
    for name in ("report.html", "experiment.json", "figures/rtt.svg"):
        (run / name).write_text("<p>here</p>")
    (run / "figures/away.svg").symlink_to("/etc/passwd")
    shown = known.get(f"/results/{run.name}/report.html")
    assert shown.text == "<p>here</p>" and "sandbox" in shown.headers["content-security-policy"]
    assert "script-src" not in shown.headers["content-security-policy"]
    assert known.get(f"/results/{run.name}/figures/rtt.svg").status_code == 200
    links = [f'<a href="figures/{name}.svg">' for name in ("rtt", "away", "gone")]
    (run / "report.html").write_text("".join(links))
    here = f"data:image/svg+xml;base64,{base64.b64encode(b'<p>here</p>').decode()}"
    carried = known.get(f"/results/{run.name}/report.html").text
    assert carried == "".join([f'<a href="{here}">', *links[1:]]), "in a sandbox it cannot be followed"
    for path in ("experiment.json", "figures/away.svg", "..%2F..%2Fsecret.lab.yaml", "figures/..%2Freport.html", ""):
        assert known.get(f"/results/{run.name}/{path}").status_code == 404, path
    assert known.get("/results/..%2Fresults/report.html").status_code == 404


def test_a_link_out_of_the_directory_is_not_followed(known: TestClient, tmp_path: Path) -> None:
    (tmp_path / "away.lab.yaml").symlink_to("/etc/passwd")
    answer = known.get("/api/files/here/away.lab.yaml")
    assert answer.status_code == 400 and "elsewhere" in answer.json()["error"]
    assert known.put("/api/files/here/away.lab.yaml", json={"text": "x"}).status_code == 400


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_refused(known: TestClient, chunked: bool) -> None:
    piece = b" " * (1 << 20)

    def body() -> Iterator[bytes]:
        for _ in range(50):
            yield piece

    content = body() if chunked else piece * 50
    answer = known.post("/api/describe", content=content)
    assert answer.status_code == 413 and str(MOST_BODY_BYTES) in answer.text


def test_a_thousand_sockets_are_too_many(known: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from ewan.extras.studio.server import live

    class Still:
        def next(self) -> list[live.Moment]:
            return []

    monkeypatch.setattr(live.Live, "frames", lambda self, name: Still())
    with ExitStack() as stack:
        for _ in range(MOST_SOCKETS):
            stack.enter_context(known.websocket_connect(f"{SOCKETS}/ws/live/x", headers=OWN))
        with (
            pytest.raises(WebSocketDisconnect),
            known.websocket_connect(f"{SOCKETS}/ws/live/x", headers=OWN),
        ):
            pass
    key = known.headers.pop("x-ewan-key")
    with known.websocket_connect(f"{SOCKETS}/ws/live/x?key={key}", headers=OWN) as socket:
        assert socket.receive_bytes() == b"[]"


def test_view_shows_and_changes_nothing(client: TestClient, tmp_path: Path) -> None:
    access = Access(names_of("127.0.0.1", PORT), PORT, view=True)
    app = make(Context.of({"EWAN_STATE": str(tmp_path / "state")}), tmp_path, tmp_path / "page", access)
    headers = {"authorization": f"Bearer {access.token}"}
    with TestClient(app, base_url=URL, headers=headers) as viewer:
        assert viewer.get("/api/studio").json()["view"] is True
        assert viewer.post("/api/describe", json={"text": "topology: dumbbell"}).json()["drawing"]["lab"] == "untitled"
        assert viewer.put("/api/files/here/new.lab.yaml", json={"text": "x"}).status_code == 403
        assert viewer.post("/api/jobs", json={"kind": "lab", "name": "secret.lab.yaml"}).status_code == 403
        assert viewer.post("/api/live/x/links/core/set", json={"words": {"delay": "1ms"}}).status_code == 403
    assert not (tmp_path / "new.lab.yaml").exists()
