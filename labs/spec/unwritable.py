"""Keys that people look for in a description and cannot write, in the words of its errors; PAGE explains the
alternatives."""

from __future__ import annotations

from ewan.labs.base.source import Path

PAGE = "docs/explanation/limits.md"
ONE_KERNEL = f"a kernel of its own cannot be written for a node, as one virtual kernel runs all nodes ({PAGE})"
_WAYS = ("route", "routes", "path", "paths", "via", "cost", "costs", "metric", "metrics", "gateway", "priority")
_LINKS = ("links", "wan", "access", "topology")


def of_key(path: Path) -> str | None:
    """The error for a key that no group has, if it is one of those keys; the remedy is after the colon."""
    key = str(path[-1])
    if key == "mtu" and {"forward", "backward"} & set(path):
        return 'a link has one MTU for both directions: write "mtu:" of the link'
    if key == "kernel":
        return f'{ONE_KERNEL}: write "kernel:" of the lab'
    if key in _WAYS and (len(path) == 1 or path[0] in _LINKS):
        return 'routes other than those of the shortest delay are written of the lab: write "routes:"'
    return None
