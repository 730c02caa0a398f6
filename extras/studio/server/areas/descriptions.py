"""Descriptions and scenarios: the meaning of a text, the list of files, reading and writing them.

In: texts and names. Out: drawings, refusals with their line, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic.json_schema import JsonSchemaValue
from starlette.routing import BaseRoute

from ewan.extras.studio.server import drawing, files, live
from ewan.extras.studio.server.api import Body, Endpoint, Word
from ewan.extras.studio.server.drawing import Drawing, Refusal
from ewan.extras.studio.server.guard import Access
from ewan.labs import spec
from ewan.labs.plan import Plan
from ewan.labs.spec.fields import Topology


class Describe(Body):
    """A text; `name` is the file that it is of, or will be."""

    name: Word = "untitled.lab.yaml"
    text: str
    virtual: bool = False


class Between(Describe):
    """A text, and two hosts of it."""

    source: Word
    sink: Word


class Write(Body):
    """A file's new text; `made_of`: the tag of the text that was changed."""

    text: str
    made_of: Word | None = None


@dataclass(frozen=True, slots=True)
class About:
    """The first data of the page: whether it may change anything, the lab that it was started for, the topologies."""

    view: bool
    lab: str | None
    templates: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class DescriptionResult:
    """The result of reading a text; one of the two is None."""

    refusal: Refusal | None
    drawing: Drawing | None


class Descriptions:
    """Descriptions of labs, and their meaning."""

    def __init__(self, here: Path, access: Access, lab: str | None) -> None:
        self._files, self._access, self._lab = files.Files(here), access, lab

    def about(self) -> About:
        """The first data of the page."""
        return About(self._access.view, self._lab, templates())

    def schema(self) -> JsonSchemaValue:
        """The description format as JSON Schema, for completion."""
        return spec.json_schema()

    def describe(self, body: Describe) -> DescriptionResult:
        """The result of reading a text: its drawing, or the line that is wrong."""
        found = self._described(body)
        if isinstance(found, Refusal):
            return DescriptionResult(found, None)
        return DescriptionResult(None, found[0])

    def paths(self, body: Between) -> live.Paths:
        """The links between two hosts by the plan, each way."""
        found = self._described(body)
        if isinstance(found, Refusal):
            raise files.RefusedError(found.message)
        return live.planned(found[1], body.source, body.sink)

    def _described(self, body: Describe) -> tuple[Drawing, Plan] | Refusal:
        path = self._files.path(body.name)
        # A viewer's own text would tell which files of this machine there are.
        alone = self._access.view and not self._files.stands(body.name, body.text)
        return drawing.described(body.text, path, drawing.facts(body.virtual), alone=alone)

    def listed(self) -> list[files.FileName]:
        """Descriptions and scenarios."""
        return self._files.every()

    def read(self, where: files.Where, name: str) -> files.FileText:
        """One of them."""
        if where not in ("here", "library"):
            raise files.RefusedError(f'"{where}": write here or library')
        return self._files.read(name, where)

    def write(self, name: str, body: Write) -> files.FileText:
        """Writes one of the directory."""
        return self._files.write(name, body.text, body.made_of)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (
            Endpoint("GET", "/api/studio", "the first data of the page", self.about),
            Endpoint("GET", "/api/schema", "the description format as JSON Schema", self.schema),
            Endpoint("POST", "/api/describe", "the drawing of a text, or the line that is wrong", self.describe),
            Endpoint("POST", "/api/paths", "the links between two hosts by the plan", self.paths),
            Endpoint("GET", "/api/files", "descriptions and scenarios", self.listed),
            Endpoint("GET", "/api/files/{where}/{name}", "one of them", self.read),
            Endpoint("PUT", "/api/files/here/{name}", "write one", self.write),
        )

    def routes(self) -> tuple[BaseRoute, ...]:
        """No routes but the endpoints."""
        return ()


def templates() -> Mapping[str, list[str]]:
    """Each topology with its plain settings."""
    return {word: Topology.parameters(word) for word in Topology.words()}
