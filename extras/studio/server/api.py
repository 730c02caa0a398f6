"""The endpoints of the interface, each thing once: its path and its function, of which routes and OpenAPI are made.

A body is JSON of a pydantic model; unknown keys are refused. An answer is JSON. An error that the user can correct is
status 400, 404 or 409 with `{"error": "one line"}`, and a refusal by the system, such as a full disk, is status 503."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Protocol, get_type_hints

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ewan.extras.studio.server import threads
from ewan.extras.studio.server.files import RefusedError
from ewan.extras.studio.server.jobs import UnknownJobError
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import one_line, shortened

OPENAPI_VERSION = "3.1.0"


LONGEST_WORD = 1000
"""Characters of a name, a filter or a setting, which may become a word of a process."""
Word = Annotated[str, Field(max_length=LONGEST_WORD, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Body(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", strict=True)


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """One thing that can be asked.

    `function` gets the path's words by name, and `body` where the request has one; it may block.
    """

    method: str
    path: str
    summary: str
    function: Callable[..., Any]

    @property
    def hints(self) -> Mapping[str, type]:
        """The types of the arguments, and of `return`."""
        return get_type_hints(self.function)

    @property
    def body(self) -> type[Body] | None:
        """The body of the request."""
        return self.hints.get("body")

    def route(self) -> Route:
        """The route for Starlette."""
        body = self.body

        async def answer(request: Request) -> Response:
            given: dict[str, str | Body] = dict(request.path_params)
            part = (self.method, self.path, given.get("lab"))  # a lab may be slow, and the others are not
            if body is not None:
                try:
                    given["body"] = body.model_validate_json(await request.body())
                except ValidationError as error:
                    return refused(HTTPStatus.BAD_REQUEST, wrong(error))
            try:
                found = await threads.run(part, functools.partial(self.function, **given))
            except UnknownJobError as error:
                return refused(HTTPStatus.NOT_FOUND, f"there is no job {error}")
            except RefusedError as error:
                return refused(HTTPStatus.CONFLICT if error.conflict else HTTPStatus.BAD_REQUEST, str(error))
            except UserError as error:
                return refused(HTTPStatus.BAD_REQUEST, str(error))
            return json(found)

        return Route(self.path, answer, methods=[self.method])


class Area(Protocol):
    """A part of the interface."""

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints with JSON in requests and answers."""
        ...

    def routes(self) -> tuple[BaseRoute, ...]:
        """The other routes: files, streams, WebSockets."""
        ...


def json(value: Any, status: int = HTTPStatus.OK) -> Response:
    """An answer."""
    return Response(orjson.dumps(value), status, media_type="application/json")


def wrong(error: ValidationError) -> str:
    """The error of a body, and its place."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    said = "write it without control characters" if first["type"] == "string_pattern_mismatch" else first["msg"]
    return f"{where + ': ' if where else ''}{said}"


def refused(status: int, why: str) -> Response:
    """A response with an error that the user can correct, in one line."""
    return json({"error": shortened(one_line(why))}, status)


class InterfaceSchema(GenerateJsonSchema):
    """Types as JSON Schema: an answer has all of its fields, and no title repeats a name."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Return whether a field is required: one with a default may be left out only of a request."""
        return self.mode == "serialization" or super().field_is_required(field, total)

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


def openapi(endpoints: Sequence[Endpoint], messages: Sequence[type] = ()) -> JsonSchemaValue:
    """The interface as OpenAPI describes it. `messages`: those of WebSockets, for which OpenAPI has no paths: their
    types stand among the components."""
    told: list[tuple[tuple[str, str], JsonSchemaMode, TypeAdapter[Any]]] = []
    for each in endpoints:
        told.append(((each.method, each.path), "serialization", TypeAdapter(each.hints["return"])))
        if each.body is not None:
            told.append(((each.method, each.path), "validation", TypeAdapter(each.body)))
    told += [(("", message.__name__), "serialization", TypeAdapter(message)) for message in messages]
    schemas, defined = TypeAdapter.json_schemas(
        told, ref_template="#/components/schemas/{model}", schema_generator=InterfaceSchema
    )
    paths: dict[str, JsonSchemaValue] = {}
    for each in endpoints:
        key = (each.method, each.path)
        path: JsonSchemaValue = {
            "summary": each.summary,
            "responses": {
                "200": {"description": "done", "content": _json(schemas[key, "serialization"])},
                "400": {"$ref": "#/components/responses/Refused"},
            },
        }
        if each.body is not None:
            path["requestBody"] = {"required": True, "content": _json(schemas[key, "validation"])}
        names = [part[1:-1] for part in each.path.split("/") if part.startswith("{")]
        if names:
            path["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
            ]
        paths.setdefault(each.path, {})[each.method.lower()] = path
    return {
        "openapi": OPENAPI_VERSION,
        "info": {"title": "ewan studio", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": {name: _untitled(schema) for name, schema in defined["$defs"].items()},
            "responses": {"Refused": {"description": "refused, in one line", "content": _json(ERROR)}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _untitled(schema: JsonSchemaValue) -> JsonSchemaValue:
    return {key: value for key, value in schema.items() if key != "title"}


def _json(schema: JsonSchemaValue) -> JsonSchemaValue:
    return {"application/json": {"schema": schema}}


ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
