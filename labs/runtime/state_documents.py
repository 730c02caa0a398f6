"""The documents of a lab's state directory that the runtimes share: who writes each, and what it says.

In and out: see `ewan.labs.runtime.state.State`, which reads and writes them. What version 0.1 left is read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ewan.labs.base.codec import Struct

Direction = Literal["forward", "backward", "both"]
"""One direction of a link, or both of them."""
MANIFEST = "manifest.json"
"""The list of everything that a lab owns; it is written before anything else is made."""
OWNER = "owner.json"
"""Soon after the manifest: who had the lab made."""
APPLIED = "applied.json"
"""Written last: a lab without it is there in part."""
DOWN = "down.json"
DONE = "done.jsonl"
"""The actions of people in a lab, a line for each."""


class Head(Struct, forbid_unknown_fields=False):
    """The common part of the manifests of all runtimes. `format`: of the runtime that made the lab, and only it reads
    the rest; `id` tells a lab from a later one of its name."""

    format: str
    id: str


class AppliedPlan(Struct):
    """applied.json. `warnings`: what this host lacks and the lab does without, and how many times.

    The rest is there where the node binary made the lab.
    """

    warnings: Mapping[str, int]
    format: Literal["ewan-applied/1"] | None = None
    lab: str = ""
    namespaces: int = 0
    interfaces: int = 0
    phases_us: tuple[tuple[str, int], ...] = ()


class LinksDown(Struct):
    """down.json: the links that were taken down."""

    links: tuple[str, ...]


class SettingsChange(Struct):
    """Settings that a link got, in the words of `ewan lab set`, or only `down` or `up`: `{"down": "true"}`.

    `due_unix_ns`: when, which may be later than now.
    """

    due_unix_ns: int
    link: str
    direction: Direction
    words: Mapping[str, str]
