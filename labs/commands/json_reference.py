"""The reference of the JSON documents that commands print with `--json`: a page and one JSON Schema, made of the types.

In: the root command, whose options `--json` know the types (labs/commands/options.py). Out: Markdown, and JSON Schema
(draft 2020-12) with a definition for each command, by the words by which it is called, and for each type in them.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import click
import msgspec
import orjson
from pydantic.json_schema import JsonSchemaValue

from ewan.labs.commands.options import JsonOption
from ewan.labs.commands.reference import commands_of

HEAD = """# JSON output

With `--json`, a command prints one JSON document on standard output; messages stay on standard error, and the exit
status is the same. `ewan lab watch` prints a document per line. Times are in ns, rates in bit/s and sizes in bytes
where the name of a key says no other unit. The schema of all documents is [output.schema.json](output.schema.json)
(JSON Schema, draft 2020-12): `$defs` has each command under the words by which it is called.

| command | document | keys |
|---|---|---|
"""

DOCUMENTS = {"TwoExperiments": "The differences between two experiments"}
"""The meaning of documents whose types have no description of their own."""


def outputs(root: click.Group) -> dict[str, tuple[Any, ...]]:
    """The types of the documents of each command that has `--json`; `root` is the command `ewan`."""
    found = {}
    for path, command in commands_of(root, click.Context(root, info_name="ewan")):
        for option in command.params:
            if isinstance(option, JsonOption):
                kinds = option.output()
                found[path] = kinds if isinstance(kinds, tuple) else (kinds,)
    return found


def schema(root: click.Group) -> str:
    """The schema of all documents as JSON text."""
    commands = outputs(root)
    kinds = [kind for those in commands.values() for kind in those]
    schemas, known = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for each in known.values():
        if "description" in each:
            each["description"] = inspect.cleandoc(each["description"])
    each_schema = iter(schemas)
    by_command = {path: _either([next(each_schema) for _ in those]) for path, those in commands.items()}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "JSON documents that the commands of ewan print",
        "$defs": {**known, **by_command},
    }
    return orjson.dumps(
        document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    ).decode()


def markdown(root: click.Group) -> str:
    """The page."""
    rows = []
    for path, kinds in outputs(root).items():
        for kind in kinds:
            about, keys = _words(kind)
            rows.append(f"| [`{path}`](commands.md#{path.replace(' ', '-')}) | {about} | {keys} |\n")
    return HEAD + "".join(rows)


def _either(schemas: Sequence[JsonSchemaValue]) -> JsonSchemaValue:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _words(kind: Any) -> tuple[str, str]:
    """Return the first sentence of a type's docstring, and the type's keys."""
    (shown,), known = msgspec.json.schema_components([kind], ref_template="{name}")
    inside = shown.get("items") or shown.get("additionalProperties") or shown
    name = inside.get("$ref")
    if name is None:
        return "The lab, the plan's SHA-256, and the written files by their kind.", "`lab`, `plan_sha256`, …"
    about = " ".join(inspect.cleandoc(known[name].get("description", DOCUMENTS.get(name, name))).split())
    sentence = about.partition(". ")[0].partition(" (see")[0].removesuffix(".")
    form = "List. " if "items" in shown else "Object by name. " if inside is not shown else ""
    return f"{form}{sentence}.", ", ".join(f"`{key}`" for key in known[name]["properties"])
