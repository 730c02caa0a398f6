"""The scenario format as JSON Schema, with that of the lab that is written out in it. Pure."""

from __future__ import annotations

from pydantic.json_schema import JsonSchemaValue

from ewan.generator.scenario.fields import ScenarioDescription
from ewan.labs import spec


def json_schema() -> JsonSchemaValue:
    """The JSON Schema for completion: keys with their meaning."""
    found: JsonSchemaValue = ScenarioDescription.model_json_schema(by_alias=True)
    lab = spec.json_schema()
    found["$defs"] = {**lab.pop("$defs", {}), **found.get("$defs", {}), "Lab": lab}
    found["properties"]["lab"]["anyOf"] = [{"type": "string"}, {"$ref": "#/$defs/Lab"}]
    return found
