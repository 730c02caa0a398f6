"""The live runtime on this machine: nodes are network namespaces, links are spinning processes.

In: plans. Out: labs. All changes to the system are made by the node binary, which writes the manifest first;
this module starts the links, watches over both, and answers for them.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ewan.labs import plan as plans
from ewan.labs.base import codec, writing
from ewan.labs.base.codec import OtherVersionError, Struct, replace, tags
from ewan.labs.base.interrupt import deferred
from ewan.labs.base.product import DEFAULT_ROOT
from ewan.labs.base.reading import one_line, read_bytes
from ewan.labs.plan import Plan
from ewan.labs.routing_documents import Convergence, Recovery, RoutingTable
from ewan.labs.runtime import devices, machines, node_overrides, readouts, run_leftovers, services, spinners
from ewan.labs.runtime.answers import NodeStatus, Removed, SpinnerStatus, Status, Tables
from ewan.labs.runtime.base import Answer, LabError, LabState, OpenCapture, RemoteMachine, Seen
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.inspections import Inspection
from ewan.labs.runtime.local_capture import LocalCapture
from ewan.labs.runtime.namespaces import NAMESPACES, identity_of, processes_in
from ewan.labs.runtime.probe_documents import Probe, ProbeAnswer
from ewan.labs.runtime.probes import send
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.requests import (
    AppliedChange,
    AppliedChanges,
    ChangesRequest,
    LinkRequest,
    LinkSetRequest,
    SetAnswer,
    StatsRequest,
)
from ewan.labs.runtime.state import State
from ewan.labs.runtime.state_documents import APPLIED, DOWN, AppliedPlan, LinksDown

if TYPE_CHECKING:
    from ewan.labs.capture.words import CaptureRequest

BATCH_POLL_S = 0.1
MOST_SAID = 200  # characters of what is wrong with a file
DEVICE = -1
"""In place of a spinner's number: the link is a device, which has a keeper."""


@lru_cache(maxsize=8)
def _read(text: bytes) -> tuple[Plan, str]:
    """A plan and its digest; what watches a lab asks every second. ValueError, OtherVersionError."""
    plan = plans.from_json(text)
    return plan, plans.digest(plan)


class _Spinner(Struct, forbid_unknown_fields=False):
    links: tuple[str, ...]


class _Device(Struct, forbid_unknown_fields=False):
    link: str


class _LinkName(Struct, forbid_unknown_fields=False):
    name: str


class _Served(Struct, forbid_unknown_fields=False):
    """The part of a plan that says which process serves each link."""

    links: tuple[_LinkName, ...]
    spinners: tuple[_Spinner, ...]
    hardware: tuple[_Device, ...] = ()


class NetnsRuntime:
    """See `ewan.labs.runtime.base.LiveClockRuntime`."""

    def __init__(self, binary: Path | None = None, state: Path = DEFAULT_ROOT) -> None:
        self._wanted = binary
        self._state = State(state)

    def up(self, plan: Plan) -> list[str]:
        """Namespaces, interfaces and routes are made by the node binary, then the spinners are started."""
        self._need_root("making a lab")
        binary = node_binary(self._wanted)
        node_overrides.check_namespaces(plan)
        services.check_programs(plan)
        devices.check(plan)
        machines.check(plan)
        spinners.check_cpus(plan.lab, plan.spinners)
        directory = self._state.directory(plan.lab)
        with self._state.locked() as lock, deferred() as check:
            self._check_new(plan.lab)
            try:
                # The plan goes in by standard input: nothing is written before the manifest.
                command = [str(binary), "apply", "--plan", "/dev/stdin", "--state", str(directory)]
                self._run(command, lock, plans.to_json(plan))
                manifest = self._state.manifest(plan.lab)
                if manifest is None:
                    raise LabError(f"lab {plan.lab} vanished while it was made")
                spinners.start(binary, directory, manifest.id, plan.spinners, check)
                check()
                made = devices.start(directory, binary, manifest.id, plan, check)
                enter = [str(binary), "exec", "--state", str(directory)]
                node_overrides.run(plan, directory, lambda node, argv: [*enter, node, "--", *argv], check)
                return [*(self._warnings(plan.lab) or []), *made]
            except BaseException:
                self._remove(binary, directory, lock)
                raise

    def down(self, name: str) -> Removed:
        """The node binary removes what the manifest names, and checks that it is gone."""
        self._need_root("removing a lab")
        binary, directory = node_binary(self._wanted), self._state.directory(name)
        # Before the lock is ours nothing is certain: an `up` that was killed may have left a binary at work.
        with self._state.locked() as lock, deferred():
            return self._remove(binary, directory, lock)

    def names(self) -> list[str]:
        """Labs that have a state directory, also of a making that was killed."""
        return self._state.names()

    def load(self, name: str) -> LabState:
        """Reads the state directory; LabError for a lab that is down, there in part, or of another version."""
        manifest, text = self._state.manifest(name), self._plan_text(name)
        if manifest is None or text is None:
            raise self._absent(name)
        try:
            return LabState(manifest, _read(text)[0])
        except OtherVersionError as error:
            message = f"{name} was made by another version of ewan ({error}): remove it with `ewan down {name}`"
            raise LabError(message) from None
        except ValueError as error:
            said = one_line(str(error), MOST_SAID)
            raise LabError(f"{name}: its plan is damaged ({said}): remove it with `ewan down {name}`") from None

    def status(self, name: str) -> Status:
        """Asks the spinners and looks into /run/netns."""
        manifest = self._state.manifest(name)
        status = Status.unknown(name, "incomplete", f"made in part: remove it with `ewan down {name}`")
        if not self._state.directory(name).exists():
            return Status.unknown(name, "down", "")
        text = self._plan_text(name)
        if manifest is None or text is None:
            return status
        try:
            plan, digest = _read(text)
        except OtherVersionError:
            return replace(status, note=f"made by another version of ewan: remove it with `ewan down {name}`")
        except ValueError:  # its writer died half way
            return status
        warnings = self._warnings(name)
        down = self._state.read(LinksDown, name, DOWN)
        status = replace(
            status,
            plan=digest,
            nodes=self._nodes(plan),
            spinners=self._spinners(name, plan, manifest.id),
            warnings=tuple(warnings or ()),
            links_down=down.links if down else (),
        )
        silent = [spinner for spinner in status.spinners if spinner.error]
        if warnings is None or not all(node.up for node in status.nodes):
            return status
        if silent:
            return replace(status, note="; ".join(f"spinner {each.spinner}: {each.error}" for each in silent))
        if why := node_overrides.unfinished(name, self._state.directory(name)):
            return replace(status, note=why)
        return replace(status, state="complete", note="")

    def exec(self, name: str, node: str, argv: Sequence[str]) -> int:
        """The node binary enters the namespace; signals that come meanwhile are passed on to the program."""
        self._need_root("entering a node")
        directory = self._state.directory(name)
        if self._state.manifest(name) is None:
            raise self._absent(name)
        command = [str(node_binary(self._wanted)), "exec", "--state", str(directory), node, "--", *argv]
        process = subprocess.Popen(command)
        # Ctrl-C is the command's; it was started with the default handling, and we wait for it.
        with deferred(process.send_signal):
            status = process.wait()
        return 128 - status if status < 0 else status

    def capture(self, name: str, wanted: CaptureRequest, piped: bool = False) -> OpenCapture:
        """The node binary opens its sockets in the namespaces, from outside; it ends when we do."""
        self._need_root("capturing packets")
        cpus = ",".join(map(str, self.load(name).plan.host_cpus))
        binary = str(node_binary(self._wanted))
        command = [binary, "launch", "--", binary, "capture", "--tell", *(["--cpus", cpus] if cpus else [])]
        return LocalCapture([*command, *wanted.words(name)], piped)

    def batch(self, name: str, program: Program, directory: Path) -> None:
        """Runs a program in a lab that is up; its results are in the directory, also when Ctrl-C ended it early."""
        self._need_root("entering a node")
        if self._state.manifest(name) is None:
            raise self._absent(name)
        self.start_machines(name)
        file = directory / "program.json"
        writing.write(file, program.to_json())
        binary = str(node_binary(self._wanted))
        # It ends when this process is killed: its output would not be read, and the next run may write there.
        command = [binary, "launch", "--", binary, "batch", "--state", str(self._state.directory(name))]
        command += ["--program", str(file), "--out", str(directory)]
        told = readouts.of_devices(self._state.directory(name), self.load(name).plan)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        said = b""
        with deferred() as check:
            while process.returncode is None:
                told.fetch()
                with suppress(subprocess.TimeoutExpired):
                    _, said = process.communicate(timeout=BATCH_POLL_S)
                try:
                    check()
                except (KeyboardInterrupt, SystemExit):
                    # It ends its commands then, and writes what there is; we wait for it.
                    process.send_signal(signal.SIGINT)
            wrong = run_leftovers.settle(directory)
            told.write(directory)
        if process.returncode != 0:
            raise self._refusal(said, f"the program ended with status {process.returncode}")
        if wrong is not None:
            raise LabError(wrong)

    def converge(self, name: str, longest_s: float = 120.0) -> Convergence | None:
        """Waits for the routes; the node binary reads the routers' own tables."""
        if self.load(name).plan.routing == "static":
            return None
        return codec.decode(Convergence, self._routes(name, "converge", [], longest_s), "routing")

    def routes(self, name: str) -> dict[str, RoutingTable]:
        """The node binary reads the nodes' own tables; needs root."""
        self._need_root("reading routes")
        self.load(name)
        command = [str(node_binary(self._wanted)), "routes", "--state", str(self._state.directory(name))]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        if result.returncode != 0:
            raise self._refusal(result.stderr, f"routes ended with status {result.returncode}")
        return codec.decode(Tables, result.stdout, "routes").tables

    def carrier(self, name: str, link: str, up: bool, longest_s: float = 60.0) -> Recovery:
        """The node binary takes the carrier of the link's two ends away, or gives it back; needs root."""
        self._need_root("changing a link")
        self.load(name)
        told = self._routes(name, "carrier", ["--link", link, "--up" if up else "--down"], longest_s)
        return codec.decode(Recovery, told, "routes")

    def _routes(self, name: str, command: str, more: list[str], longest_s: float) -> bytes:
        """The answer of the binary about routes. The binary waits without our lock, and ends when this process ends."""
        binary, directory = str(node_binary(self._wanted)), str(self._state.directory(name))
        words = [binary, "launch", "--", binary, command, "--state", directory, "--longest-s", str(round(longest_s))]
        result = subprocess.run([*words, *more], stdin=subprocess.DEVNULL, capture_output=True)
        if result.returncode != 0:
            raise self._refusal(result.stderr, f"{command} ended with status {result.returncode}")
        return result.stdout

    def control(self, name: str, target: int | str, request: LinkRequest[Answer]) -> Answer:
        """Asks the spinner over its socket. A link of the kernel's parts is changed by the node binary."""
        number = target if isinstance(target, int) else self._serving(name, target)
        if number == DEVICE:
            return devices.ask(self._state.directory(name), str(target), request)
        if number is None:
            return self._kernel_link(name, str(target), request)
        try:
            return spinners.ask(self._state.directory(name), number, request)
        except OSError as error:
            log = spinners.log(self._state.directory(name), number)
            raise LabError(
                f"lab {name}: spinner {number} does not answer ({error.strerror or error}), its links are dead; "
                f"its log is {log}: remove the lab with `ewan down {name}` and bring it up again"
            ) from None

    def probe(
        self, name: str, probes: Sequence[Probe], tell: Callable[[str], None], seen: Seen | None = None
    ) -> ProbeAnswer:
        """One process enters all namespaces, and reads one clock for both ends."""
        self._need_root("measuring a lab")
        cpus = self.load(name).plan.host_cpus
        try:
            return send(probes, cpus, node_binary(self._wanted), tell, seen)
        except RuntimeError as error:
            raise LabError(str(error)) from None

    def inspect(self, name: str, what: Inspection[Answer]) -> list[Answer]:
        """The node binary enters the namespaces with the plan on its standard input."""
        text = plans.to_json(self.load(name).plan)
        asked = subprocess.run([str(node_binary(self._wanted)), what.command], input=text, capture_output=True)
        if asked.returncode != 0:
            raise self._refusal(asked.stderr, f"ewan-node {what.command}: status {asked.returncode}")
        return what.read(asked.stdout)

    def start_machines(self, name: str, tell: Callable[[str], None] = lambda line: None) -> dict[str, str]:
        """Each is a QEMU of the node's namespace."""
        plan = self.load(name).plan
        if machines.of(plan):
            self._need_root("starting a machine")
        return machines.start(node_binary(self._wanted), self._state.directory(name), plan, tell)

    def versions(self, name: str) -> dict[str, str]:
        """Only the runtime's name: the lab is made of this machine's kernel."""
        return {"runtime": "netns"}

    def elsewhere(self, name: str) -> Mapping[str, RemoteMachine]:
        """None: all of it is here."""
        return {}

    def _kernel_link(self, name: str, link: str, request: LinkRequest[Answer]) -> Answer:
        """The answer for a link without a spinner; see `CHANGES` in emulator/lab/src/links.rs."""
        if isinstance(request, ChangesRequest):
            return cast(Answer, AppliedChanges(tuple(self._state.lines(AppliedChange, name, "changes.jsonl"))))
        if not isinstance(request, LinkSetRequest):
            raise LabError(f"link {link} is made of the kernel's parts, which tell no {tags(type(request))[0]}")
        if request.in_ns:
            raise LabError(f"link {link} is made of the kernel's parts, which change at once: leave at= out")
        self._need_root("changing a link")
        binary, directory = str(node_binary(self._wanted)), str(self._state.directory(name))
        command = [binary, "change", "--state", directory, "--link", link, "--direction", request.direction]
        with self._state.locked() as lock:
            self._run(command, lock, codec.compact(request.change))
        return cast(Answer, SetAnswer(ok=True))

    def _serving(self, name: str, link: str) -> int | None:
        """The spinner of a link, DEVICE of a device, None of the kernel's. Asked often: it reads no whole plan."""
        plan = self._state.read(_Served, name, "plan.json")
        if plan is None:
            raise self._absent(name)
        for number, spinner in enumerate(plan.spinners):
            if link in spinner.links:
                return number
        if any(each.link == link for each in plan.hardware):
            return DEVICE
        if any(each.name == link for each in plan.links):
            return None
        known = ", ".join(each.name for each in plan.links[:10])
        raise LabError(f"lab {name} has no link {link}: links are {known}{' …' if len(plan.links) > 10 else ''}")

    def _spinners(self, name: str, plan: Plan, identity: str) -> tuple[SpinnerStatus, ...]:
        running = self._processes(plan, identity)
        found = []
        for number, spinner in enumerate(plan.spinners):
            pid = running.get(number)
            try:
                answer = self.control(name, number, StatsRequest())
                found.append(SpinnerStatus(number, spinner.cpu, pid, answer, spinners.ended(answer)))
            except LabError as error:
                why = str(error) if number in running else "not running"
                found.append(SpinnerStatus(number, spinner.cpu, pid, None, why))
        return tuple(found)

    def _processes(self, plan: Plan, identity: str) -> dict[int, int]:
        """Spinner number → process id; `identity` is the manifest's."""
        return spinners.processes(identity)

    def _nodes(self, plan: Plan) -> tuple[NodeStatus, ...]:
        """Each node with its addresses, whether its namespace is there, and the processes in it."""
        host = identity_of(Path("/proc/self/ns/net"))
        found = {node.name: identity_of(NAMESPACES / f"ewan-{plan.lab}-{node.name}") for node in plan.nodes}
        inside = processes_in([each for each in found.values() if each is not None])
        nodes = []
        for node in plan.nodes:
            own = found[node.name]
            up = own is not None and host is not None and own[0] == host[0]
            addresses = tuple(address for interface in node.interfaces for address in interface.addresses)
            pids = tuple(sorted(inside.get(own, []))) if own is not None and up else ()
            nodes.append(NodeStatus(node.name, node.kind, addresses, up, pids))
        return tuple(nodes)

    def _warnings(self, name: str) -> list[str] | None:
        """The warnings of the node binary; None if it did not finish."""
        applied = self._state.read(AppliedPlan, name, APPLIED)
        return None if applied is None else list(applied.warnings)

    def _plan_text(self, name: str) -> bytes | None:
        try:
            return read_bytes(self._state.directory(name) / "plan.json")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LabError(f"{error.filename}: {error.strerror}") from None

    def _check_new(self, name: str) -> None:
        """LabError where there is a lab of this name, whole or in part; asked with the lock held."""
        if name in self._state.names():
            raise LabError(
                f"lab {name} exists already, or what is left of it: "
                f"remove it with `ewan down {name}`, or give this one another name"
            )

    def _absent(self, name: str) -> LabError:
        if name in self._state.names():
            return LabError(f"lab {name} is there only in part: remove it with `ewan down {name}`")
        return LabError(f"no lab named {name} is up ({', '.join(self._state.names()) or 'none is'})")

    def _remove(self, binary: Path, directory: Path, lock: int) -> Removed:
        return codec.decode(Removed, self._run([str(binary), "down", "--state", str(directory)], lock), "removed")

    def _run(self, command: list[str], lock: int, text: bytes = b"") -> bytes:
        """Runs the binary; it holds our lock too, so that no other process starts while it works on after our death."""
        result = subprocess.run(command, input=text, capture_output=True, pass_fds=(lock,), start_new_session=True)
        if result.returncode != 0:
            raise self._refusal(result.stderr, f"{command[0]} {command[1]} ended with status {result.returncode}")
        return result.stdout

    def _refusal(self, said: bytes, otherwise: str) -> LabError:
        """An error with the last line of the binary's output."""
        words = said.decode(errors="replace").strip().splitlines() or [otherwise]
        return LabError(self._state.full(words[-1]) or words[-1])

    @staticmethod
    def _need_root(what: str) -> None:
        if os.geteuid() != 0:
            raise LabError(f"{what} of the live clock needs root: use sudo")
