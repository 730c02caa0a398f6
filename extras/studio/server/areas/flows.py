"""TCP flows of labs that are up, some times a second while a page shows them.

In: names of labs, perhaps of a node. Out: flows as `ewan lab watch --flows` has them."""

from __future__ import annotations

import asyncio
import contextlib

import orjson
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from ewan.extras.studio.server import threads
from ewan.extras.studio.server.api import Endpoint
from ewan.extras.studio.server.areas.running import GONE, ends_with
from ewan.labs.base.errors import UserError
from ewan.labs.context import Context
from ewan.labs.flows import Flows


class LiveFlows:
    """The TCP flows of this machine's labs."""

    def __init__(self, context: Context) -> None:
        self._labs = context.live()

    def endpoints(self) -> tuple[Endpoint, ...]:
        """No endpoints: flows are streamed."""
        return ()

    def routes(self) -> tuple[BaseRoute, ...]:
        """The streams of flows."""
        return (WebSocketRoute("/ws/live/{lab}/flows", self.watched),)

    async def watched(self, socket: WebSocket) -> None:
        """The flows of a lab, or of the node that the query names, until the page goes or the lab is down."""
        lab, node = socket.path_params["lab"], socket.query_params.get("node")
        part = ("flows", lab)
        await socket.accept()
        flows: Flows | None = None
        try:
            flows = await threads.run(part, lambda: Flows(self._labs, self._labs.load(lab).plan, node))
            async with ends_with(socket) as gone:
                while not gone.is_set():
                    await socket.send_bytes(orjson.dumps(await threads.run(part, flows.look)))
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(gone.wait(), flows.wait_s)
        except UserError as error:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await socket.close(GONE, str(error)[:120])
        except WebSocketDisconnect:
            return
        finally:
            if flows is not None:
                flows.close()
