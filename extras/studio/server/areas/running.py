"""Labs that are up: their links at each moment, changes of them, packets, shells.

In: names of labs, links and nodes. Out: frames and packets as they come, bytes of a terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from ewan.extras.studio.server import api, files, live, threads
from ewan.extras.studio.server.api import Body, Endpoint, Word
from ewan.extras.studio.server.capture import LONGEST, MOST, Capture
from ewan.extras.studio.server.guard import Access
from ewan.extras.studio.server.terminal import Terminal
from ewan.generator.scenario.link_recording import recorded
from ewan.labs import link_changes, routed_paths
from ewan.labs.base import codec
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.context import Context

GONE = 4404
"""A WebSocket is closed with this when what it shows is gone."""


class Set(Body):
    """A change of a link, in the words of `ewan lab set`."""

    words: Annotated[dict[Word, Word], Field(min_length=1)]
    direction: Literal["forward", "backward", "both"] = "both"


class CaptureDownload(Body):
    """Packets that are kept: where, by which filter of tcpdump, for how long."""

    place: Annotated[Word, Field(min_length=1)]
    filter: Word = ""
    longest: Word = "10s"


class Carrier(Body):
    """A link fails, or is mended."""

    up: bool


class RecordingRequest(Body):
    """The description that the lab was made of."""

    text: str


@dataclass(frozen=True, slots=True)
class LinkChange:
    """A change of a link; `due`: UNIX time in s, `words`: the change in a person's words."""

    due: float
    link: str
    words: str


@dataclass(frozen=True, slots=True)
class RecordedScenario:
    """A scenario's text."""

    text: str


class LiveLabs:
    """The labs that are up on this machine."""

    def __init__(self, context: Context, access: Access) -> None:
        self._context, self._access, self._live = context, access, live.Live(context)

    def up(self) -> list[live.Up]:
        """Labs that are up."""
        return self._live.every()

    def set(self, lab: str, link: str, body: Set) -> Any:
        """Changes a link of a lab that is up."""
        return codec.data_of(self._live.set(lab, link, body.words, body.direction))

    def carrier(self, lab: str, link: str, body: Carrier) -> live.CarrierSet:
        """Fails a link, or mends it."""
        return self._live.carrier(lab, link, body.up)

    def table(self, lab: str, node: str) -> list[routed_paths.TableRoute]:
        """A node's routing table."""
        return self._live.routes(lab, node)

    def paths(self, lab: str, source: str, sink: str) -> live.Paths:
        """The links between two hosts now, each way."""
        return self._live.paths(lab, source, sink)

    def done(self, lab: str) -> list[LinkChange]:
        """The changes of the links of a lab since it came up."""
        return [
            LinkChange(each.due_unix_ns / NS_PER_SECOND, each.link, link_changes.said(each))
            for each in self._live.done(lab)
        ]

    def recorded(self, lab: str, body: RecordingRequest) -> RecordedScenario:
        """A scenario that does it again."""
        return RecordedScenario(recorded(body.text, self._live.plan(lab), self._live.done(lab)))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (
            Endpoint("GET", "/api/live", "labs that are up", self.up),
            Endpoint("POST", "/api/live/{lab}/links/{link}/set", "change a link, as ewan lab set does", self.set),
            Endpoint("GET", "/api/live/{lab}/done", "the changes of the links of a lab", self.done),
            Endpoint("POST", "/api/live/{lab}/recorded", "a scenario that does it again", self.recorded),
            Endpoint("POST", "/api/live/{lab}/links/{link}/carrier", "fail a link, or mend it", self.carrier),
            Endpoint("GET", "/api/live/{lab}/routes/{node}", "a node's routing table", self.table),
            Endpoint("GET", "/api/live/{lab}/paths/{source}/{sink}", "the links between two hosts now", self.paths),
        )

    def routes(self) -> tuple[BaseRoute, ...]:
        """The streams, and the download of a capture."""
        return (
            Route("/api/live/{lab}/capture", self.captured, methods=["POST"]),
            WebSocketRoute("/ws/live/{lab}", self.watched),
            WebSocketRoute("/ws/live/{lab}/packets", self.packets),
            WebSocketRoute("/ws/live/{lab}/nodes/{node}", self.terminal),
        )

    async def watched(self, socket: WebSocket) -> None:
        """Frames of a lab's links, 20 a second, until the page goes or the lab is down."""
        lab = socket.path_params["lab"]
        part = ("frames", lab)
        await socket.accept()
        try:
            frames = await threads.run(part, self._live.frames, lab)
            async with ends_with(socket) as gone:
                while not gone.is_set():
                    moments = await threads.run(part, frames.next)
                    await socket.send_bytes(orjson.dumps(moments))
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(gone.wait(), live.FRAME_MS / 1000)
        except UserError as error:
            await socket.close(GONE, str(error)[:120])
        except WebSocketDisconnect:
            return

    async def captured(self, request: Request) -> Response:
        """Packets as pcapng, for as long as is asked for."""
        try:
            asked = CaptureDownload.model_validate_json(await request.body())
        except ValidationError as error:
            return api.refused(HTTPStatus.BAD_REQUEST, api.wrong(error))
        bounds = ["-w", "-", "--size", MOST, "--for", asked.longest]
        lab = request.path_params["lab"]
        try:
            capture = await Capture.begin(lab, asked.place, asked.filter, bounds, self._context.environment)
        except files.RefusedError as error:
            return api.refused(HTTPStatus.BAD_REQUEST, str(error))

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in capture.pieces():
                    yield piece
            finally:
                await capture.close()

        return StreamingResponse(pieces(), media_type="application/x-pcapng")

    async def packets(self, socket: WebSocket) -> None:
        """Packets as they come, a line each; the query has `place` and `filter`."""
        await socket.accept()
        if self._access.view:
            return await socket.close(GONE, "--view")
        asked, lab = socket.query_params, socket.path_params["lab"]
        where, words = asked.get("place", ""), asked.get("filter", "")
        try:
            capture = await Capture.begin(lab, where, words, ["--for", LONGEST], self._context.environment)
        except files.RefusedError as error:
            return await socket.close(GONE, str(error)[:120])
        try:
            async with ends_with(socket) as gone:
                ending = asyncio.create_task(_after(gone, capture.close))
                async for piece in capture.pieces():
                    await socket.send_text(piece.decode(errors="replace"))
                ending.cancel()
            await socket.close()
        except (WebSocketDisconnect, RuntimeError):
            return
        finally:
            await capture.close()

    async def terminal(self, socket: WebSocket) -> None:
        """A shell in a node: binary frames are its bytes, JSON in text frames is the window's size."""
        lab, node = socket.path_params["lab"], socket.path_params["node"]
        try:
            plan = await threads.run(("terminal", lab), self._live.plan, lab)
        except UserError as error:
            await socket.accept()
            return await socket.close(GONE, str(error)[:120])
        await socket.accept()
        if self._access.view or node not in {each.name for each in plan.nodes}:
            return await socket.close(GONE, f"{lab} has no node of that name" if not self._access.view else "--view")
        shell = Terminal(lab, node, self._context.environment)

        async def shown() -> None:
            while data := await shell.read():
                await socket.send_bytes(data)
            await socket.close(GONE, "the shell has ended")

        printing = asyncio.create_task(shown())
        try:
            while (message := await socket.receive())["type"] == "websocket.receive":
                if (data := message.get("bytes")) is not None:
                    await shell.write(data)
                elif (text := message.get("text")) is not None:
                    with contextlib.suppress(ValueError, KeyError, TypeError):
                        size = orjson.loads(text)
                        shell.resize(int(size["columns"]), int(size["rows"]))
        finally:
            printing.cancel()
            with contextlib.suppress(asyncio.CancelledError, RuntimeError, WebSocketDisconnect):
                await printing
            await shell.close()


@contextlib.asynccontextmanager
async def ends_with(socket: WebSocket) -> AsyncIterator[asyncio.Event]:
    """An event that is set when the other end goes."""
    gone = asyncio.Event()

    async def listen() -> None:
        while (await socket.receive())["type"] != "websocket.disconnect":
            continue
        gone.set()

    task = asyncio.create_task(listen())
    try:
        yield gone
    finally:
        task.cancel()


async def _after(gone: asyncio.Event, close: Callable[[], Awaitable[None]]) -> None:
    """Closes a stream when its client is gone, also while there is nothing to send."""
    await gone.wait()
    await close()
