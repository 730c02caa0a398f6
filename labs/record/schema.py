"""The schema of a certificate, published as docs/certificate.schema.json.

In: the types of labs/record. Out: JSON Schema, draft 2020-12. `ewan docs` writes it; its `$id` has the version.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import orjson
from pydantic import TypeAdapter

from ewan.labs.record import CERTIFICATE_FORMAT, ONLY_SOME, Certificate


def certificate_schema() -> str:
    """JSON, keys in order, with `passed`, which a certificate's file has besides its fields."""
    schema: dict[str, Any] = TypeAdapter(Certificate).json_schema()
    properties = schema["properties"]
    properties["format"] = {"const": CERTIFICATE_FORMAT, "title": "Format", "type": "string"}
    properties["passed"] = {
        "title": "Passed",
        "type": "boolean",
        "description": "Nothing was outside its tolerance; see policy. It follows from the rows.",
    }
    schema["required"] = sorted({*(each.name for each in dataclasses.fields(Certificate)), "passed"} - {*ONLY_SOME})
    schema["additionalProperties"] = False
    for name in ("Row", "Uncertainty", "MachineFacts", "Emulating"):
        schema["$defs"][name]["additionalProperties"] = False
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{CERTIFICATE_FORMAT.replace('/', ':')}",
        "title": "Certificate of a lab: what its links were measured to do",
    }
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps({**schema, **head}, option=options).decode()
