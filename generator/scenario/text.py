"""Scenarios that programs write, as YAML that people read: keys in their order, short groups on one line.

In: a scenario's data. Out: its text.
"""

from __future__ import annotations

from typing import Any

import yaml


def dumped(document: dict[str, Any]) -> str:
    """The text of a scenario."""
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
