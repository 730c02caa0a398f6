"""Scenarios: the outline of a text, in time and over its parameters.

In: texts. Out: outlines, refusals with their line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic.json_schema import JsonSchemaValue
from starlette.routing import BaseRoute

from ewan.extras.studio.server import drawing, files
from ewan.extras.studio.server.api import Body, Endpoint, Word
from ewan.extras.studio.server.guard import Access
from ewan.generator import scenario as scenarios
from ewan.generator.scenario.outline import ScenarioOutline, outline
from ewan.generator.scenario.schema import json_schema
from ewan.labs.base.errors import UserError


class DescribeScenario(Body):
    """A scenario's text; `name` is the file that it is of, or will be. `point`: whose steps and events are shown."""

    name: Word = "untitled.scenario.yaml"
    where: files.Where = "here"
    text: str
    virtual: bool = True
    scale: Word | None = None
    point: int = 1


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """The outline of a text, or its refusal; one of the two is None."""

    outline: ScenarioOutline | None
    refusal: drawing.Refusal | None


class Scenarios:
    """Scenarios: their runs, and their varied parameters."""

    def __init__(self, here: Path, access: Access) -> None:
        self._files, self._access = files.Files(here), access

    def schema(self) -> JsonSchemaValue:
        """The scenario format as JSON Schema, for completion."""
        return json_schema()

    def describe(self, body: DescribeScenario) -> ScenarioResult:
        """The outline of a text, or the line that is wrong."""
        path = self._files.path(body.name, body.where)
        # A viewer's own text would tell which files of this machine there are.
        if self._access.view and not self._files.stands(body.name, body.text):
            raise files.RefusedError(f"{body.name}: with --view scenarios are shown as their files have them")
        try:
            found = scenarios.parse(body.text, path)
            clock: scenarios.Clock = "virtual" if body.virtual else "live"
            told = outline(found, drawing.facts(body.virtual), clock, body.scale, body.point)
        except UserError as error:
            return ScenarioResult(None, drawing.refusal_of(str(error), path))
        return ScenarioResult(told, None)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (
            Endpoint("GET", "/api/scenario/schema", "the scenario format as JSON Schema", self.schema),
            Endpoint(
                "POST", "/api/scenario/describe", "the outline of a scenario, or the line that is wrong", self.describe
            ),
        )

    def routes(self) -> tuple[BaseRoute, ...]:
        """No routes but the endpoints."""
        return ()
