"""The schemas of documents for other programs, published as docs/reference/certificate.schema.json and
docs/reference/characterisation.schema.json.

In: the types of labs/record. Out: JSON Schema, draft 2020-12, keys in order. `ewan docs` writes them; an `$id` has the
version.
"""

from __future__ import annotations

import inspect

import msgspec
import orjson
from pydantic.json_schema import JsonSchemaValue

from ewan.labs.base.codec import Document
from ewan.labs.record import CERTIFICATE_FORMAT, ONLY_SOME, Certificate
from ewan.labs.record.characterisation import Characterisation


class CertificateFile(Certificate, tag=CERTIFICATE_FORMAT, kw_only=True):
    """A certificate as its file has it (see `Certificate`). `passed` follows from the rows: nothing was outside its
    tolerance by the policy."""

    passed: bool


def certificate_schema() -> str:
    """The schema of a certificate, with `passed`, which its file has besides its fields. All keys but two are always
    present."""
    made = _schema(CertificateFile, "Certificate of a lab: what its links were measured to do")
    made["required"] = sorted(made["properties"].keys() - {*ONLY_SOME})
    return _text(made)


def characterisation_schema() -> str:
    """The schema of a path's characterisation."""
    return _text(_schema(Characterisation, "Characterisation of a path: RTT, capacity, buffer, loss and cross traffic"))


def _schema(kind: type[Document], title: str) -> JsonSchemaValue:
    (_,), known = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    for each in known.values():
        each["description"] = inspect.cleandoc(each["description"])
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{str(kind.__struct_config__.tag).replace('/', ':')}",
        "$defs": {name: each for name, each in known.items() if name != kind.__name__},
    }
    return {**known[kind.__name__], **head, "title": title}


def _text(schema: JsonSchemaValue) -> str:
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(schema, option=options).decode()
