"""Both live runtimes as one: each lab is handled by the one that made it, a new one is made by the one that is chosen.

In: the choice for new labs: netns, containerlab, or auto, which takes containers where all they need is there. Out: see
`labs.runtime.base.Runtime`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from labs.plan import Plan
from labs.runtime import containers
from labs.runtime.base import Loaded
from labs.runtime.containerlab import ContainerlabRuntime, Show
from labs.runtime.netns import NetnsRuntime
from labs.runtime.program import Program
from labs.runtime.state import State, root_from_environment

Choice = Literal["auto", "netns", "containerlab"]
CHOICES: tuple[Choice, ...] = ("auto", "netns", "containerlab")


class LiveRuntime:
    """`show` is told how far the making of a lab is, `tell` what auto took where that is not netns."""

    def __init__(
        self,
        binary: Path | None = None,
        choice: Choice = "auto",
        state: Path | None = None,
        *,
        show: Show = lambda progress: None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        root = state or root_from_environment()
        self._choice = choice
        self._state = State(root)
        self._netns = NetnsRuntime(binary, root)
        self._containers = ContainerlabRuntime(binary, root, show)
        self._tell = tell

    def up(self, plan: Plan) -> list[str]:
        return self._chosen(plan).up(plan)

    def down(self, name: str) -> dict[str, Any]:
        return self._of(name).down(name)

    def names(self) -> list[str]:
        return self._state.names()

    def load(self, name: str) -> Loaded:
        return self._of(name).load(name)

    def status(self, name: str) -> dict[str, Any]:
        """Also `runtime`."""
        return self._of(name).status(name) | {"runtime": self.runtime_of(name)}

    def exec(self, name: str, node: str, argv: Sequence[str]) -> int:
        return self._of(name).exec(name, node, argv)

    def batch(self, name: str, program: Program, directory: Path) -> None:
        self._of(name).batch(name, program, directory)

    def control(self, name: str, target: int | str, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._of(name).control(name, target, request)

    def converge(self, name: str, longest_s: float = 120.0) -> dict[str, Any]:
        return self._of(name).converge(name, longest_s)

    def carrier(self, name: str, link: str, up: bool, longest_s: float = 60.0) -> dict[str, Any]:
        return self._of(name).carrier(name, link, up, longest_s)

    def versions(self, name: str) -> dict[str, str]:
        """What made a lab that is up, for its records: `runtime`, and of containers the engine and containerlab."""
        return self._of(name).versions(name)

    def runtime_of(self, name: str) -> Choice:
        """What made a lab, whole or in part."""
        manifest = self._state.manifest(name)
        return "containerlab" if manifest is not None and manifest.get("format") == containers.FORMAT else "netns"

    def _of(self, name: str) -> NetnsRuntime:
        return self._containers if self.runtime_of(name) == "containerlab" else self._netns

    def _chosen(self, plan: Plan) -> NetnsRuntime:
        if self._choice == "auto" and self._containers.obstacle(plan) is None:
            self._tell("auto: this lab is made of containers (--runtime netns makes it of namespaces)")
            return self._containers
        return self._containers if self._choice == "containerlab" else self._netns
