"""The runtimes of the live clock as one: each lab is handled by the runtime that made it, a new one is made by the
chosen runtime.

In: the choice for new labs: a runtime's name, or auto, which takes containers where all they need is there. Out: see
`ewan.labs.runtime.base.LiveClockRuntime`. `LiveRuntime` and `MADE_BY` name every runtime of the live clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ewan.labs.base.codec import replace, tags
from ewan.labs.base.product import DEFAULT_ROOT
from ewan.labs.plan import Plan
from ewan.labs.routing_documents import Convergence, Recovery, RoutingTable
from ewan.labs.runtime import containers, node_overrides
from ewan.labs.runtime.answers import Removed, Status
from ewan.labs.runtime.base import (
    Answer,
    LabError,
    LabState,
    LiveChoice,
    LiveClockRuntime,
    LiveName,
    OpenCapture,
    RemoteMachine,
    Seen,
)
from ewan.labs.runtime.containerlab import ContainerlabRuntime, Show
from ewan.labs.runtime.inspections import Inspection
from ewan.labs.runtime.multi_machine import MANIFEST
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.probe_documents import Probe, ProbeAnswer
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.requests import LinkRequest
from ewan.labs.runtime.state import Owner, State
from ewan.labs.runtime.state_documents import DONE, SettingsChange

if TYPE_CHECKING:
    from ewan.labs.capture.words import CaptureRequest
    from ewan.labs.runtime.multi_machine import MultiMachineRuntime

Maker = Literal[LiveName, "cluster"]
MADE_BY: Mapping[str, Maker] = {tags(containers.ContainersManifest)[0]: "containerlab", MANIFEST: "cluster"}
"""The runtime of a lab by the `format` of its manifest. A lab with another manifest, or with none yet, is of netns."""


class LiveRuntime:
    """`show` receives the progress while a lab is made, `tell` the choice of auto if it is not netns.

    `cluster` gives what handles labs over several machines, where there is one; `stretched`: it makes new labs.
    """

    def __init__(
        self,
        binary: Path | None = None,
        choice: LiveChoice = "auto",
        state: Path = DEFAULT_ROOT,
        *,
        show: Show = lambda progress: None,
        tell: Callable[[str], None] = lambda line: None,
        multi_machine: Callable[[], MultiMachineRuntime] | None = None,
        stretched: bool = False,
        owner: Owner | None = None,
    ) -> None:
        self._owner = owner
        self._choice = choice
        self._multi_machine = multi_machine
        self._stretched = stretched
        self._state = State(state)
        self._containers = ContainerlabRuntime(binary, state, show)
        self._runtimes: dict[Maker, LiveClockRuntime] = {
            "netns": NetnsRuntime(binary, state),
            "containerlab": self._containers,
        }
        self._tell = tell

    def up(self, plan: Plan) -> list[str]:
        """The chosen runtime makes it; auto is containers where all they need is there, else namespaces."""
        warnings = self._chosen(plan).up(plan)
        if self._owner is not None:
            with suppress(LabError):  # it is up
                self._state.own(plan.lab, self._owner)
        return warnings

    def owners(self) -> dict[str, Owner | None]:
        """Who had each lab made, also of those that are there in part; None where that is not known."""
        return {name: self._state.owner(name) for name in self._state.names()}

    def is_own(self, owner: Owner | None) -> bool:
        """Return whether a lab of this owner belongs to this process's user and copy. A lab of an unknown owner does if
        the state directory is not the default one."""
        return owner == self._owner if owner is not None else self._state.root != DEFAULT_ROOT

    def adopt(self, file: Path) -> str:
        """A lab of containers, which containerlab deployed by hand, becomes ours; its name. Raises LabError."""
        return self._containers.adopt(file)

    def down(self, name: str) -> Removed:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).down(name)

    def names(self) -> list[str]:
        """Labs of all runtimes, which share the state root."""
        return self._state.names()

    def load(self, name: str) -> LabState:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).load(name)

    def status(self, name: str) -> Status:
        """Also `runtime`."""
        return replace(self._of(name).status(name), runtime=self.runtime_of(name))

    def exec(self, name: str, node: str, argv: Sequence[str]) -> int:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).exec(name, node, argv)

    def capture(self, name: str, wanted: CaptureRequest, piped: bool = False) -> OpenCapture:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).capture(name, wanted, piped)

    def batch(self, name: str, program: Program, directory: Path) -> None:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        self._of(name).batch(name, program, directory)

    def control(self, name: str, target: int | str, request: LinkRequest[Answer]) -> Answer:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).control(name, target, request)

    def probe(
        self, name: str, probes: Sequence[Probe], tell: Callable[[str], None], seen: Seen | None = None
    ) -> ProbeAnswer:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).probe(name, probes, tell, seen)

    def inspect(self, name: str, what: Inspection[Answer]) -> list[Answer]:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).inspect(name, what)

    def converge(self, name: str, longest_s: float = 120.0) -> Convergence | None:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).converge(name, longest_s)

    def routes(self, name: str) -> dict[str, RoutingTable]:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).routes(name)

    def carrier(self, name: str, link: str, up: bool, longest_s: float = 60.0) -> Recovery:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).carrier(name, link, up, longest_s)

    def note(self, name: str, entry: SettingsChange) -> None:
        """See `Noting`: labs of all runtimes share the state root."""
        self._of(name).load(name)
        self._state.add(name, DONE, entry)

    def notes(self, name: str) -> list[SettingsChange]:
        """See `Noting`."""
        self._of(name).load(name)
        return self._state.lines(SettingsChange, name, DONE)

    def start_machines(self, name: str, tell: Callable[[str], None] = lambda line: None) -> dict[str, str]:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).start_machines(name, tell)

    def versions(self, name: str) -> dict[str, str]:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).versions(name)

    def elsewhere(self, name: str) -> Mapping[str, RemoteMachine]:
        """See `LiveClockRuntime`; the runtime that made the lab does it."""
        return self._of(name).elsewhere(name)

    def runtime_of(self, name: str) -> Maker:
        """The runtime that made a lab, whole or in part."""
        manifest = self._state.manifest(name)
        return "netns" if manifest is None else MADE_BY.get(manifest.format, "netns")

    def _of(self, name: str) -> LiveClockRuntime:
        return self._made_by(self.runtime_of(name))

    def _made_by(self, maker: Maker) -> LiveClockRuntime:
        if maker == "cluster" and maker not in self._runtimes:
            assert self._multi_machine is not None
            self._runtimes[maker] = self._multi_machine()
        return self._runtimes[maker]

    def _chosen(self, plan: Plan) -> LiveClockRuntime:
        if self._stretched:
            return self._made_by("cluster")
        if self._choice == "auto":
            if node_overrides.needs_containers(plan):
                return self._containers  # which says what it lacks
            if self._containers.obstacle(plan) is None:
                self._tell("auto: this lab is made of containers (--runtime netns makes it of namespaces)")
                return self._containers
            return self._runtimes["netns"]
        found = self._runtimes.get(self._choice)
        if found is None:  # of a record that was changed
            raise LabError(f'runtime "{self._choice}": unknown, write {" or ".join(self._runtimes)}')
        return found
