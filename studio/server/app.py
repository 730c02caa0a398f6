"""The application: the page's files, what it can ask, and its sockets, behind the guard.

In: what this process was told, the directory where it was started, who may ask. Out: an ASGI application.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from analysis.listing import Row
from labs import spec
from labs.context import Context
from labs.errors import UserError
from labs.spec.fields import Topology
from studio.server import api, drawing, files, live
from studio.server.api import Body, Endpoint
from studio.server.capturing import LONGEST, MOST, Capture
from studio.server.guard import Access, Guard
from studio.server.jobs import PLACE, Job, Jobs
from studio.server.results import Experiments
from studio.server.terminal import Terminal

GONE = 4404
"""A WebSocket is closed with this when what it shows is gone."""


class Describe(Body):
    """A text; `name` is the file that it is of, or will be."""

    name: str = "untitled.lab.yaml"
    text: str
    virtual: bool = False


class Write(Body):
    """A file's new text; `made_of`: the tag of the text that was changed."""

    text: str
    made_of: str | None = None


class Begin(Body):
    """A job: what is done with which file or lab."""

    kind: Literal["lab", "run", "verify", "down"]
    name: str
    where: files.Where = "here"
    runtime: Literal["auto", "netns", "containerlab", "virtual"] = "auto"
    scale: str | None = None


class Set(Body):
    """A change of a link, in the words of `ewan set`."""

    words: Annotated[dict[str, str], Field(min_length=1)]
    direction: Literal["forward", "backward", "both"] = "both"


class Captured(Body):
    """Packets that are kept: where, by which filter of tcpdump, for how long."""

    place: Annotated[str, Field(min_length=1)]
    filter: str = ""
    longest: str = "10s"


class Carrier(Body):
    """A link fails, or is mended."""

    up: bool


class Studio:
    """What can be asked; each method is what an endpoint does."""

    def __init__(self, context: Context, here: Path, access: Access, lab: str | None) -> None:
        self._context, self._access, self._lab = context, access, lab
        self._files, self._live = files.Files(here), live.Live(context)
        self._jobs = Jobs(here / PLACE, context.environment)
        self._experiments = Experiments(here)

    def about(self) -> dict[str, Any]:
        """What the page begins with."""
        return {"view": self._access.view, "lab": self._lab, "templates": templates()}

    def schema(self) -> dict[str, Any]:
        """The description format as JSON Schema, for completion."""
        return spec.json_schema()

    def describe(self, body: Describe) -> dict[str, Any]:
        """What a text is: its drawing, or the line that is wrong."""
        path = self._files.path(body.name)
        found = drawing.described(body.text, path, drawing.facts(body.virtual))
        if isinstance(found, drawing.Refusal):
            return {"refusal": found, "drawing": None}
        return {"refusal": None, "drawing": found[0]}

    def listed(self) -> list[files.Named]:
        """Descriptions and scenarios."""
        return self._files.every()

    def read(self, where: files.Where, name: str) -> files.Text:
        """One of them."""
        if where not in ("here", "library"):
            raise files.RefusedError(f'"{where}": write here or library')
        return self._files.read(name, where)

    def write(self, name: str, body: Write) -> files.Text:
        """Writes one of the directory."""
        return self._files.write(name, body.text, body.made_of)

    def jobs(self) -> list[Job]:
        """Long work, the newest first."""
        return self._jobs.every()

    def job(self, job: str) -> Job:
        """One job."""
        return self._jobs.find(job)

    def begin(self, body: Begin) -> Job:
        """Begins long work."""
        if body.kind in ("verify", "down"):
            self._live.plan(body.name)
            return self._jobs.start([body.kind, body.name])
        path = self._files.path(body.name, body.where)
        if not path.is_file():
            raise files.RefusedError(f"{body.name}: save it first")
        ending = f".{'lab' if body.kind == 'lab' else 'scenario'}.yaml"
        if not body.name.endswith(ending):
            raise files.RefusedError(f"{body.name}: {body.kind} takes a file that ends in {ending}")
        scale = [] if body.scale is None else ["--scale", body.scale]
        return self._jobs.start([body.kind, str(path.absolute()), "--runtime", body.runtime, *scale])

    def stop(self, job: str) -> Job:
        """Asks a job to end."""
        return self._jobs.stop(job)

    def up(self) -> list[live.Up]:
        """Labs that are up."""
        return self._live.every()

    def set(self, lab: str, link: str, body: Set) -> dict[str, Any]:
        """Changes a link of a lab that is up."""
        found: dict[str, Any] = self._live.set(lab, link, body.words, body.direction)
        return found

    def carrier(self, lab: str, link: str, body: Carrier) -> dict[str, Any]:
        """Fails a link, or mends it."""
        return self._live.carrier(lab, link, body.up)

    def experiments(self) -> list[Row]:
        """Experiments, the newest first."""
        return self._experiments.every()

    async def report(self, request: Request) -> Response:
        """A file of an experiment's report."""
        words = request.path_params
        try:
            return await run_in_threadpool(self._experiments.file, words["name"], words["path"])
        except files.RefusedError as error:
            return api.refused(HTTPStatus.NOT_FOUND, str(error))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (
            Endpoint("GET", "/api/studio", "what the page begins with", self.about),
            Endpoint("GET", "/api/schema", "the description format as JSON Schema", self.schema),
            Endpoint("POST", "/api/describe", "what a text is: its drawing, or the line that is wrong", self.describe),
            Endpoint("GET", "/api/files", "descriptions and scenarios", self.listed),
            Endpoint("GET", "/api/files/{where}/{name}", "one of them", self.read),
            Endpoint("PUT", "/api/files/here/{name}", "write one", self.write),
            Endpoint("GET", "/api/jobs", "long work, the newest first", self.jobs),
            Endpoint("POST", "/api/jobs", "begin long work", self.begin),
            Endpoint("GET", "/api/jobs/{job}", "one job", self.job),
            Endpoint("POST", "/api/jobs/{job}/stop", "ask a job to end", self.stop),
            Endpoint("GET", "/api/experiments", "experiments, the newest first", self.experiments),
            Endpoint("GET", "/api/live", "labs that are up", self.up),
            Endpoint("POST", "/api/live/{lab}/links/{link}/set", "change a link, as ewan set does", self.set),
            Endpoint("POST", "/api/live/{lab}/links/{link}/carrier", "fail a link, or mend it", self.carrier),
        )

    async def watched(self, socket: WebSocket) -> None:
        """Frames of a lab's links, 20 a second, until the page goes or the lab is down."""
        lab = socket.path_params["lab"]
        await socket.accept()
        try:
            frames = await asyncio.to_thread(self._live.frames, lab)
            async with _ends_with(socket) as gone:
                while not gone.is_set():
                    moments = await asyncio.to_thread(frames.next)
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
            asked = Captured.model_validate_json(await request.body())
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
            async with _ends_with(socket) as gone:
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
            plan = await asyncio.to_thread(self._live.plan, lab)
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
async def _ends_with(socket: WebSocket) -> AsyncIterator[asyncio.Event]:
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
    """Ends what nobody looks at any more, also while it has nothing to say."""
    await gone.wait()
    await close()


def templates() -> Mapping[str, list[str]]:
    """Each topology with its plain settings."""
    return {word: Topology.parameters(word) for word in Topology.words()}


def make(context: Context, here: Path, page: Path, access: Access, lab: str | None = None) -> ASGIApp:
    """The application; `page`: the directory of the page's files as they were built."""
    studio = Studio(context, here, access, lab)
    endpoints = studio.endpoints()
    described = api.openapi(endpoints)

    async def index(request: Request) -> Response:
        return FileResponse(page / "index.html")

    async def told(request: Request) -> Response:
        return api.json(described)

    routes = [
        Route("/", index),
        Route("/api/openapi.json", told),
        *(each.route() for each in endpoints),
        Route("/results/{name}/{path:path}", studio.report),
        Route("/api/live/{lab}/capture", studio.captured, methods=["POST"]),
        WebSocketRoute("/ws/live/{lab}", studio.watched),
        WebSocketRoute("/ws/live/{lab}/packets", studio.packets),
        WebSocketRoute("/ws/live/{lab}/nodes/{node}", studio.terminal),
        Mount("/", StaticFiles(directory=page)),
    ]
    return Guard(Starlette(routes=routes), access)
