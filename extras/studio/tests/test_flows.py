"""A client that asks for unknown flows gets an error, and the socket is closed."""

from __future__ import annotations

from contextlib import ExitStack
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from ewan.extras.studio.server.areas.running import GONE
from ewan.extras.studio.tests.conftest import PORT


@pytest.mark.parametrize("lab", ["nobody", ".", "<img>", "x" * 200])
def test_a_lab_that_is_not_up_has_no_flows(client: TestClient, lab: str) -> None:
    with ExitStack() as stack:
        address = f"ws://127.0.0.1:{PORT}/ws/live/{quote(lab)}/flows?node=left1"
        socket = stack.enter_context(client.websocket_connect(address))
        gone = stack.enter_context(pytest.raises(WebSocketDisconnect))
        socket.receive_bytes()
    assert gone.value.code == GONE and 0 < len(gone.value.reason) <= 120 and "\n" not in gone.value.reason
