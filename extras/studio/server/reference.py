"""The page of the REST interface, made of its OpenAPI description.

In: the description. Out: Markdown: a row for each path and method, with the names of what is sent and answered.
"""

from __future__ import annotations

from pydantic.json_schema import JsonSchemaValue

HEAD = """# REST interface

`ewan studio` serves the page of [Studio](../how-to/labs/studio.md) and the interface that this page uses, on 127.0.0.1.
A request needs the token that `ewan studio` prints, as a cookie or as `?token=`.
The server describes its interface with all types as OpenAPI at `/api/openapi.json`.

| method | path | does | takes | answers |
|---|---|---|---|---|
"""


def markdown(described: JsonSchemaValue) -> str:
    """The page; `described`: an OpenAPI 3.1 document whose schemas are referred to by name."""
    rows = [
        f"| `{method.upper()}` | `{path}` | {operation['summary']} | {_names(operation.get('requestBody', {}))} "
        f"| {_names(operation['responses'].get('200', {}))} |\n"
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    return HEAD + "".join(rows)


def _names(body: JsonSchemaValue) -> str:
    schemas = [content.get("schema", {}) for content in body.get("content", {}).values()]
    return ", ".join(f"`{schema['$ref'].rpartition('/')[2]}`" for schema in schemas if "$ref" in schema)
