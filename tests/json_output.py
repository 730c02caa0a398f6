"""Holds the JSON that a command printed against the type whose schema is published for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from ewan import cli
from ewan.labs.base import codec
from ewan.labs.commands import json_reference


@cache
def _outputs() -> dict[tuple[str, ...], tuple[Any, ...]]:
    return {tuple(path.split()[1:]): kinds for path, kinds in json_reference.outputs(cli.main).items()}


def check(arguments: Sequence[str], output: str) -> None:
    """AssertionError where the output of a command with `--json` is of none of the command's types."""
    if "--json" not in arguments or not output.strip():
        return
    kinds = max(((path, kinds) for path, kinds in _outputs().items() if _is(path, arguments)), default=None)
    assert kinds is not None, f"{arguments}: the command has no schema of its JSON output"
    for document in _documents(output):
        wrong = [fault for kind in kinds[1] if (fault := _fault(kind, document)) is not None]
        assert len(wrong) < len(kinds[1]), f"{arguments}: {'; '.join(wrong)}"


def _is(path: tuple[str, ...], arguments: Sequence[str]) -> bool:
    return tuple(arguments[: len(path)]) == path


def _documents(output: str) -> list[Any]:
    decoder, found, rest = json.JSONDecoder(), [], output.lstrip()
    while rest:
        document, end = decoder.raw_decode(rest)
        found.append(document)
        rest = rest[end:].lstrip()
    return found


def _fault(kind: Any, document: Any) -> str | None:
    try:
        codec.from_data(kind, document, "output")
    except ValueError as error:
        return str(error)
    return None
