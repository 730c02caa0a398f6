"""The application: the page's files, and the areas of the interface, behind the guard.

In: the context of this process, the directory where it was started, the access rights. Out: an ASGI application."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pydantic.json_schema import JsonSchemaValue
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ewan.extras.studio.server import api
from ewan.extras.studio.server.areas.descriptions import Descriptions
from ewan.extras.studio.server.areas.experiments import Experiments
from ewan.extras.studio.server.areas.flows import LiveFlows
from ewan.extras.studio.server.areas.replays import Replays
from ewan.extras.studio.server.areas.running import LiveLabs
from ewan.extras.studio.server.areas.scenarios import Scenarios
from ewan.extras.studio.server.areas.verdicts import Verdicts
from ewan.extras.studio.server.areas.verifications import Verifications
from ewan.extras.studio.server.areas.work import Work
from ewan.extras.studio.server.guard import Access, Guard
from ewan.extras.studio.server.live import Moment
from ewan.labs.context import Context
from ewan.labs.flows import Connection

MOST_SAID = 80  # characters of an address that is wrong


def interface() -> JsonSchemaValue:
    """The description that /api/openapi.json gives, without a server."""
    context, here, access = Context.of({}), Path(), Access(frozenset(), 0)
    areas = (Work(context, here, access), *_areas(context, here, access, None))
    return _described([endpoint for area in areas for endpoint in area.endpoints()])


def _described(endpoints: Sequence[api.Endpoint]) -> JsonSchemaValue:
    return api.openapi(endpoints, messages=[Moment, Connection])


def _areas(context: Context, here: Path, access: Access, lab: str | None) -> tuple[api.Area, ...]:
    return (
        Descriptions(here, access, lab),
        Scenarios(here, access),
        Verdicts(context, here),
        Verifications(here),
        LiveLabs(context, access),
        LiveFlows(context),
        Experiments(context, here, access),
        Replays(here),
    )


def make(context: Context, here: Path, page: Path, access: Access, lab: str | None = None) -> ASGIApp:
    """The application; `page`: the directory of the page's files as they were built."""
    work = Work(context, here, access)
    areas = (work, *_areas(context, here, access, lab))
    endpoints = [endpoint for area in areas for endpoint in area.endpoints()]
    described = _described(endpoints)

    async def index(request: Request) -> Response:
        return FileResponse(page / "index.html")

    async def told(request: Request) -> Response:
        return api.json(described)

    async def nothing(request: Request, error: Exception) -> Response:
        path = request.url.path[:MOST_SAID]
        return api.refused(HTTPStatus.NOT_FOUND, f"{path}: nothing is here: /api/openapi.json says what is")

    async def prevented(request: Request, error: Exception) -> Response:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return api.refused(HTTPStatus.SERVICE_UNAVAILABLE, f"this machine refuses it: {why}")

    routes = [
        Route("/", index),
        Route("/api/openapi.json", told),
        *(each.route() for each in endpoints),
        *(route for area in areas for route in area.routes()),
        Mount("/", StaticFiles(directory=page)),
    ]

    async def gone(request: Request, error: Exception) -> Response:
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # the client is gone

    handlers: dict[Any, Any] = {HTTPStatus.NOT_FOUND: nothing, OSError: prevented, ClientDisconnect: gone}
    return Guard(Starlette(routes=routes, exception_handlers=handlers, lifespan=lambda app: work.serving()), access)
