"""The protocols of runtimes: each protocol is one ability that some of them have, and callers ask for no more than they
need.

In: plans, names of labs, names of nodes. Out: labs, and `LabError` for whatever the user can put right: one line
that says what, where and what to do instead; a command ends with exit status 2 then. The runtimes of the live clock
are all of `LiveClockRuntime`; that of the virtual clock is `BatchRuns`. `labs/runtime/tests/test_protocols.py` has mypy
check it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeVar, get_args

from ewan.labs.base.errors import UserError

if TYPE_CHECKING:
    import threading
    from pathlib import Path
    from typing import IO

    from ewan.labs.capture.words import CaptureCounts, CaptureRequest
    from ewan.labs.plan import Plan
    from ewan.labs.routing_documents import Convergence, Recovery, RoutingTable
    from ewan.labs.runtime.answers import Removed, Status
    from ewan.labs.runtime.inspections import Inspection
    from ewan.labs.runtime.probe_documents import Probe, ProbeAnswer, ProbeResult
    from ewan.labs.runtime.program import Program
    from ewan.labs.runtime.requests import LinkRequest
    from ewan.labs.runtime.state_documents import Head, SettingsChange
    from ewan.labs.runtime.virtual import Run


Answer = TypeVar("Answer")

LiveName = Literal["netns", "containerlab"]
"""The runtimes of the live clock."""
LiveChoice = Literal["auto", LiveName]
"""The runtime that makes new labs; auto is the one whose needs are all met."""
Name = Literal[LiveChoice, "virtual"]
"""The values of --runtime."""
NAMES: tuple[Name, ...] = get_args(Name)


Seen = Callable[[Sequence["ProbeResult"]], None]
"""Gets the results of all probes that have ended."""


class LabError(UserError):
    """One line for the user; nothing was created, or it was removed again."""


class LabState(NamedTuple):
    """The state of a lab: the manifest (what it owns) and the plan (what it is)."""

    manifest: Head
    plan: Plan


class LabLifecycle(Protocol):
    """Makes labs that stay up, and removes them. All methods raise LabError."""

    def up(self, plan: Plan) -> list[str]:
        """Makes a lab, its links running, and gives warnings; on any failure, and on Ctrl-C, nothing is left."""
        ...

    def down(self, name: str) -> Removed:
        """Removes a lab, whole or in part, as often as asked; tells what was removed and the links' last counters."""
        ...

    def names(self) -> list[str]:
        """Labs that exist, whole or in part."""
        ...

    def load(self, name: str) -> LabState:
        """The manifest and the plan of a lab that is up."""
        ...

    def status(self, name: str) -> Status:
        """The status of a lab, whole or in part."""
        ...


class NodeAccess(Protocol):
    """Runs programs in the nodes of labs that are up. All methods raise LabError."""

    def exec(self, name: str, node: str, argv: Sequence[str]) -> int:
        """Runs a program in a node on this terminal; its exit status, 128 + signal when one ended it."""
        ...

    def batch(self, name: str, program: Program, directory: Path) -> None:
        """Runs a whole program; its results are in the directory, also when Ctrl-C ended it early."""
        ...


class OpenCapture(Protocol):
    """Packets that are being captured; whoever has it closes it."""

    @property
    def stream(self) -> IO[bytes]:
        """The pcapng that it writes, of one that is `piped`."""
        ...

    def end(self) -> None:
        """Asks it to end; what it has by then is whole. It does not wait, and may be called by a signal's handler."""
        ...

    def wait(self) -> CaptureCounts:
        """Until it ended. Raises LabError with what was wrong."""
        ...

    def close(self) -> None:
        """Ends it by force, if it still goes on."""
        ...


class PacketCapture(Protocol):
    """Labs whose packets can be captured while they are up."""

    def capture(self, name: str, wanted: CaptureRequest, piped: bool = False) -> OpenCapture:
        """Begins to capture. `piped`: what goes to standard output is read from `OpenCapture.stream`. Raises
        LabError."""
        ...


class LinkControl(Protocol):
    """Links that can be asked and changed while they run."""

    def control(self, name: str, target: int | str, request: LinkRequest[Answer]) -> Answer:
        """Asks a spinner (its number, or a link that it serves) one thing; the answer.

        Raises LabError.
        """
        ...


class ProbeSender(Protocol):
    """Labs through which probes can be sent while they are up."""

    def probe(
        self, name: str, probes: Sequence[Probe], tell: Callable[[str], None], seen: Seen | None = None
    ) -> ProbeAnswer:
        """Sends probes one after the other; the answer of `ewan-node probe`.

        `tell` gets a line of each that begins; `seen` the results so far, after each, before the next begins. Raises
        LabError.
        """
        ...

    def inspect(self, name: str, what: Inspection[Answer]) -> list[Answer]:
        """Asks the node binary about interfaces or nodes. Raises LabError."""
        ...


class RouteConvergence(Protocol):
    """Labs in which routing protocols find the routes."""

    def converge(self, name: str, longest_s: float = 120.0) -> Convergence | None:
        """Waits until the routers' routes carry every pair of hosts; None at once where routing is static.

        After `longest_s` with `converged` false. Raises LabError.
        """
        ...


class RouteReader(Protocol):
    """Labs whose nodes' routes can be read."""

    def routes(self, name: str) -> dict[str, RoutingTable]:
        """Each node's main routing table and its interfaces' carriers, as they are now; `labs/routed_paths.py` reads
        them. Raises LabError.
        """
        ...


class LinkFailures(Protocol):
    """Links that can fail."""

    def carrier(self, name: str, link: str, up: bool, longest_s: float = 60.0) -> Recovery:
        """Takes an emulated link down or brings it up, and waits for the routes to follow where a protocol finds them,
        `longest_s` at most. Raises LabError.
        """
        ...


class GuestMachines(Protocol):
    """Labs with hosts that are machines with kernels of their own."""

    def start_machines(self, name: str, tell: Callable[[str], None] = lambda line: None) -> dict[str, str]:
        """Starts those of a lab that do not run yet and waits until they answer; by node what `uname -r` says there.

        {} at once for a lab that has none. `tell` gets what is waited for. Raises LabError.
        """
        ...


class RuntimeVersions(Protocol):
    """Labs that say what made them."""

    def versions(self, name: str) -> dict[str, str]:
        """The versions of the software that made a lab that is up, for its records: `runtime`, and of containers the
        engine and containerlab. Raises LabError.
        """
        ...


class RemoteMachine(NamedTuple):
    """A machine of a lab that stretches over several. `spinners`: those there, by their numbers in the plan;
    `host_cpus`: where nodes run; `files`: what it tells of itself now, by the names of extras/machines/inventory.py.
    """

    spinners: tuple[int, ...]
    host_cpus: tuple[int, ...]
    files: Mapping[str, str]


class RemoteLabs(Protocol):
    """Labs that may be on other machines."""

    def elsewhere(self, name: str) -> Mapping[str, RemoteMachine]:
        """The machines of a lab that stretches over several; none of one that is on this machine. Raises LabError."""
        ...


class LabNotes(Protocol):
    """Labs in whose state it is noted what people did."""

    def note(self, name: str, entry: SettingsChange) -> None:
        """Adds an entry to what was done in a lab that is up. Raises LabError."""
        ...

    def notes(self, name: str) -> list[SettingsChange]:
        """All entries since the lab came up, in the order in which they were noted. Raises LabError."""
        ...


class LiveClockRuntime(
    LabLifecycle,
    NodeAccess,
    PacketCapture,
    LinkControl,
    ProbeSender,
    RouteConvergence,
    RouteReader,
    LinkFailures,
    GuestMachines,
    RuntimeVersions,
    RemoteLabs,
    Protocol,
):
    """A runtime of the live clock."""


class BatchRuns(Protocol):
    """A runtime whose labs exist for one program, from its start to its end: that of the virtual clock."""

    def run(self, plan: Plan, program: Program, directory: Path, stop: threading.Event | None = None) -> Run:
        """Makes the lab of `plan`, runs `program` in it, leaves its results in `directory`.

        Raises LabError when it could not be done. Ctrl-C, and `stop`, end it early: what was measured until then is
        kept.
        """
        ...
