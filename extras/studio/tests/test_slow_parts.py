"""A lab that does not answer, as with a stopped spinner, delays no other request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ewan.extras.studio.server import live, threads
from ewan.extras.studio.server.app import make
from ewan.extras.studio.server.guard import Access, names_of
from ewan.labs.context import Context
from ewan.labs.runtime.answers import Status
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.live import LiveRuntime

MANY = 45
"""More than the threads that all requests would share without pools of their own."""
WITHIN_S = 30


class Stuck:
    """Labs `stuck` and `other`, of which the first answers nothing until the test ends."""

    def __init__(self) -> None:
        self.ends, self.asked, self.named = threading.Event(), threading.Semaphore(0), ["other", "stuck"]
        self.error: LabError | None = None

    def names(self) -> list[str]:
        return self.named

    def runtime_of(self, name: str) -> str:
        return "netns"

    def status(self, name: str) -> Status:
        self._answer(name)
        return Status.unknown(name, "incomplete", "")

    def notes(self, name: str) -> Any:
        self._answer(name)
        raise LabError("is down")

    def _answer(self, name: str) -> None:
        if name == "stuck":
            self.asked.release()
            assert self.ends.wait(WITHIN_S)
            if self.error is not None:
                raise self.error


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    stuck = Stuck()
    for name in ("names", "runtime_of", "status", "notes"):
        method: Callable[..., Any] = getattr(stuck, name)
        monkeypatch.setattr(LiveRuntime, name, lambda self, *words, method=method: method(*words))
    yield stuck
    stuck.ends.set()


@pytest.fixture
def asking(stuck: Stuck, tmp_path: Path) -> Iterator[TestClient]:
    access = Access(names_of("127.0.0.1", 8765), 8765)
    app = make(Context.of({"EWAN_STATE": str(tmp_path / "state")}), tmp_path, tmp_path, access)
    headers = {"authorization": f"Bearer {access.token}"}
    with TestClient(app, base_url="http://127.0.0.1:8765", headers=headers) as client:
        yield client


def test_who_asks_for_something_else_is_answered(asking: TestClient, stuck: Stuck) -> None:
    with ThreadPoolExecutor(MANY + 3) as others:
        waiting = [others.submit(asking.get, "/api/live/stuck/done") for _ in range(MANY)]
        for _ in range(threads.MOST_AT_ONCE):
            assert stuck.asked.acquire(timeout=WITHIN_S)
        asked = [others.submit(asking.get, path) for path in ("/api/live/other/done", "/api/jobs", "/api/files")]
        assert [each.result(WITHIN_S).status_code for each in asked] == [400, 200, 200]
        assert not any(each.done() for each in waiting)
        stuck.ends.set()
        assert {each.result(WITHIN_S).status_code for each in waiting} == {400}


@pytest.mark.parametrize("error", [None, LabError("spinner 0 does not answer")])
def test_labs_are_listed_beside_one_that_does_not_answer(
    asking: TestClient, stuck: Stuck, monkeypatch: pytest.MonkeyPatch, error: LabError | None
) -> None:
    """The answer marks that lab as silent. It is looked at once, by however many requests."""
    monkeypatch.setattr(live, "ANSWERS_S", 0.05)
    for _ in range(3):
        found = {each["lab"]: each["state"] for each in asking.get("/api/live").json()}
        assert found == {"other": "incomplete", "stuck": "silent"}
    assert stuck.asked.acquire(blocking=False) and not stuck.asked.acquire(blocking=False)
    stuck.error = error
    stuck.ends.set()
    monkeypatch.setattr(live, "ANSWERS_S", WITHIN_S)
    assert asking.get("/api/live").json()[1]["state"] == ("silent" if error else "incomplete")


def test_a_lab_that_is_gone_meanwhile_is_not_listed(asking: TestClient, stuck: Stuck) -> None:
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(asking.get, "/api/live")
        assert stuck.asked.acquire(timeout=WITHIN_S)
        stuck.named = ["other"]
        stuck.error = LabError("stuck is not up")
        stuck.ends.set()
        assert [each["lab"] for each in answer.result(WITHIN_S).json()] == ["other"]
