"""A server of a directory of its own that is asked without a socket."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient

from ewan.extras.studio.server import app
from ewan.extras.studio.server.guard import Access, names_of
from ewan.labs.context import Context

PORT = 8765


class DescribedClient(TestClient):
    """Holds each answer against the interface that the server describes, in which the page's types are generated."""

    def request(self, method: str, url: Any, **more: Any) -> Any:
        """Send a request as the base class does, and check its answer against the interface."""
        answer = super().request(method, url, **more)
        if answer.status_code == 200:
            for pattern, validator in _answers():
                if pattern.fullmatch(f"{method} {url}"):
                    validator.validate(answer.json())
        return answer


@functools.cache
def _answers() -> list[tuple[re.Pattern[str], Any]]:
    described = copy.deepcopy(app.interface())
    _close(described)
    found = []
    for path, methods in described["paths"].items():
        for method, told in methods.items():
            pattern = re.compile(f"{method.upper()} {re.sub('{[a-z]+}', '[^/]+', path)}")
            schema = told["responses"]["200"]["content"]["application/json"]["schema"]
            validator = jsonschema.Draft202012Validator({**schema, "components": described["components"]})
            found.append((pattern, validator))
    return found


def _close(schema: Any) -> None:
    """Objects have no further keys."""
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _close(each)
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        schema.setdefault("additionalProperties", False)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A client that is a script with the token."""
    access = Access(names_of("127.0.0.1", PORT), PORT)
    page = tmp_path / "page"
    page.mkdir()
    headers = {"authorization": f"Bearer {access.token}"}
    served = app.make(Context.of({"EWAN_STATE": str(tmp_path / "state")}), tmp_path, page, access)
    with DescribedClient(served, base_url=f"http://127.0.0.1:{PORT}", headers=headers) as client:
        yield client
