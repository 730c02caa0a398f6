"""A scenario's data as YAML that a person can read, change and run by itself. Pure.

In: plain data with the keys of docs/reference/scenario.md. Out: its text, which reads as the same data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from ewan.labs.base.codec import JsonValue


def to_yaml(document: Mapping[str, JsonValue]) -> str:
    """The text: keys in their order, innermost groups and lists in one line."""
    return yaml.dump(
        document,
        Dumper=_ScenarioDumper,
        default_flow_style=None,
        sort_keys=False,
        allow_unicode=True,
        width=float("inf"),  # a list is not broken within a name
    )


class _ScenarioDumper(yaml.SafeDumper):
    """Writes values out where they repeat, and texts of several lines as they are."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never `&id001`."""
        return True


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_ScenarioDumper.add_representer(str, _string)
