"""What a runtime is: whatever makes a plan real, and takes it away again.

In: plans, names of labs, names of nodes. Out: labs, and `LabError` for whatever the user can put right: one line
that says what, where and what to do instead; a command ends with exit status 2 then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from labs.plan import Plan


class LabError(Exception):
    """One line for the user; nothing was created, or it was removed again."""


class Loaded(NamedTuple):
    """What a lab's state says: the manifest (what it owns) and the plan (what it is)."""

    manifest: dict[str, Any]
    plan: Plan


class Runtime(Protocol):
    """All methods raise LabError."""

    def up(self, plan: Plan) -> list[str]:
        """Makes a lab, its links running, and gives warnings; on any failure, and on Ctrl-C, nothing is left."""
        ...

    def down(self, name: str) -> dict[str, Any]:
        """Removes a lab, whole or in part, as often as asked; tells what was removed and the links' last counters."""
        ...

    def names(self) -> list[str]:
        """Labs that exist, whole or in part."""
        ...

    def load(self, name: str) -> Loaded: ...

    def status(self, name: str) -> dict[str, Any]:
        """`state` (complete, incomplete, down), `note`, `nodes`, `spinners`, `warnings`, `plan` (its hash or None)."""
        ...

    def exec(self, name: str, node: str, argv: Sequence[str]) -> int:
        """Runs a program in a node on this terminal; its exit status, 128 + signal when one ended it."""
        ...

    def converge(self, name: str, longest_s: float = 120.0) -> dict[str, Any]:
        """Waits until the routers' routes carry every pair of hosts; {} at once where routing is static.

        Else {"format": "ewan-routing/1", "protocol", "converged", "after_ns" (since the first router's services were
        started), "waited_ns", "unreachable", "cut_off", "astray" (of each the first pairs, {"from", "to"}: without a
        route; without any path; not on the plan's path)}; after `longest_s` with `converged` false.
        """
        ...

    def carrier(self, name: str, link: str, up: bool, longest_s: float = 60.0) -> dict[str, Any]:
        """Takes an emulated link down or brings it up, and waits for the routes to follow where a protocol finds them.

        {"recovered_ns" (from the change to the last change of routes; None: not within `longest_s`), "unreachable",
        "cut_off"}, as `converge` has them.
        """
        ...

    def control(self, name: str, target: int | str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Asks a spinner (its number, or a link that it serves) one thing; the answer, whose `ok` is true."""
        ...
