"""A server of a directory of its own that is asked without a socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ewan.extras.studio.server.app import make
from ewan.extras.studio.server.guard import Access, names_of
from ewan.labs.context import Context

PORT = 8765


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """As a script asks, with the token."""
    access = Access(names_of("127.0.0.1", PORT), PORT)
    page = tmp_path / "page"
    page.mkdir()
    headers = {"authorization": f"Bearer {access.token}"}
    app = make(Context.of({"EWAN_STATE": str(tmp_path / "state")}), tmp_path, page, access)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}", headers=headers) as client:
        yield client
