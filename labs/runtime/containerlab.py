"""The live runtime of containers: nodes are containers of Docker or Podman, which containerlab makes and wires.

In: plans. Out: labs. The state directory is the lab's directory, bound into every container: sockets, logs and names
are where those of a lab of namespaces are, and containerlab gives each container's network the name that such a lab
has for it. So all that looks into a lab, or runs a program in it, is inherited; making, entering, removing are here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from ewan.labs import cards, images
from ewan.labs.base import codec
from ewan.labs.base.interrupt import deferred
from ewan.labs.base.product import DEFAULT_ROOT
from ewan.labs.compile.machines import ALONE
from ewan.labs.plan import Plan, tunnels_of
from ewan.labs.render import containerlab as rendered
from ewan.labs.render import dashboards, files
from ewan.labs.runtime import adoption, clab, containers, machines, node_overrides, spinners
from ewan.labs.runtime import container_engine as engines
from ewan.labs.runtime.answers import NodeStatus, Removed, Status
from ewan.labs.runtime.base import LabError, OpenCapture
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.container_engine import Container, ContainerEngine, NoAnswerError
from ewan.labs.runtime.containers import engine_of, name_of
from ewan.labs.runtime.namespaces import NAMESPACES, identity_of, processes_in
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.requests import StatsRequest
from ewan.labs.runtime.state_documents import APPLIED, MANIFEST, AppliedPlan
from ewan.labs.runtime.words import last_words

if TYPE_CHECKING:
    from ewan.labs.capture.words import CaptureRequest

MARK = "EWAN_EXEC"
"""A variable in the environment of programs that `exec` runs: a word of its own, by which the process in the container
is found."""
READY_S = 120.0
POLL_S = 0.02
LOOK_S = 0.5
# What containerlab had asked the engine for when it was killed is carried out all the same.
SETTLE_S = 1.0

Show = Callable[[str], None]


class ContainerlabRuntime(NetnsRuntime):
    """See `ewan.labs.runtime.base.LiveClockRuntime`; `show` receives the progress while a lab is made."""

    def __init__(
        self, binary: Path | None = None, state: Path = DEFAULT_ROOT, show: Show = lambda progress: None
    ) -> None:
        super().__init__(binary, state)
        self._show = show

    def obstacle(self, plan: Plan) -> str | None:
        """Why this machine cannot make the plan's lab, in one line; None where it can. Asks the engine but once."""
        try:
            _check_possible(plan)
            path = clab.binary()
            asked = engines.candidates()
            if not asked:
                return "no container engine is installed"
            with clab.version_of(path) as version:
                self._check_images(plan, asked[0])
                version()
        except LabError as error:
            return str(error)
        return None

    def up(self, plan: Plan) -> list[str]:
        """Checks images, names and ports, has containerlab deploy the lab, and waits until each node is ready."""
        self._need_root("making a lab")
        spinners.check_cpus(plan.lab, plan.spinners)
        _check_possible(plan)
        if (why := cards.refusal(plan)) is not None:
            raise LabError(f"lab {plan.lab}: {why}")
        path, engine = clab.binary(), engines.find()
        with clab.version_of(path) as asked:
            self._check_images(plan, engine)
            programs = _programs(plan, engine)
            version = asked()
        directory = self._state.directory(plan.lab)
        topology = directory / f"{plan.lab}.clab.yml"
        try:
            ports = dashboards.ports_of(os.environ)
        except ValueError as error:
            raise LabError(str(error)) from None
        scheduling = os.environ.get("EWAN_SCHED", "")
        text = rendered.render(
            plan,
            directory=str(directory),
            version=images.TAG,
            ports=ports,
            wait=False,
            scheduling=scheduling,
            binary=str(node_binary(self._wanted)),
            programs=programs,
        )
        with self._state.locked(), deferred() as check:
            self._check_new(plan.lab)
            manifest = containers.manifest_of(plan, topology, text, engine, version)
            containers.check_free(engine, manifest, text)
            try:
                containers.write(directory, manifest)
                files.lay_out(plan, directory)
                topology.write_text(text)
                self._deploy(path, topology, manifest, check)
                warnings = self._ready(plan, manifest, check)
                node_overrides.run(
                    plan,
                    directory,
                    lambda node, argv: _entering(engine, plan.lab, node, argv),
                    check,
                    engine.environment,
                )
                return [*warnings, *node_overrides.outside(plan)]
            except BaseException as error:
                raise self._given_up(plan.lab, engine, error) from None

    def adopt(self, file: Path) -> str:
        """Takes over a lab that containerlab deployed by hand from a file of `ewan lab compile`; its name."""
        self._need_root("adopting a lab")
        compiled = adoption.read(file)
        lab, engine = compiled.plan.lab, engines.find()
        _check_possible(compiled.plan)
        directory = self._state.directory(lab)
        with self._state.locked(), deferred() as check:
            if lab in self._state.names():
                raise LabError(f"lab {lab} is ewan's already, or another of this name is: see `ewan ps {lab}`")
            self._check_images(compiled.plan, engine)
            try:
                with clab.version_of(clab.binary()) as asked:
                    version = asked()
            except LabError:  # it lies elsewhere: who deployed has it
                version = "unknown"
            made = containers.manifest_of(compiled.plan, compiled.file, compiled.text, engine, version)
            manifest = adoption.manifest_of(compiled, made)
            containers.check_deployed(engine, manifest, adoption.PLAN_LABEL)
            try:
                containers.write(directory, manifest)
                adoption.lead(compiled, directory)
                self._ready(compiled.plan, manifest, check)
            except BaseException as error:
                # The lab stays as it is; nothing of it is ours.
                shutil.rmtree(directory, ignore_errors=True)
                if isinstance(error, OSError):
                    raise LabError(f"{error.filename or directory}: {error.strerror}") from None
                raise
        return lab

    def down(self, name: str) -> Removed:
        """Removes the manifest's containers and networks, and ends what entered them; needs no containerlab.

        Of a lab that was adopted, also what its deployment left; its file is there as it was compiled.
        """
        self._need_root("removing a lab")
        directory = self._state.directory(name)
        with self._state.locked(), deferred():
            manifest = self._manifest(name)
            if manifest is None:
                raise self._absent(name)
            whole = self._warnings(name) is not None
            restored = self._restored(manifest, manifest.adopted) if manifest.adopted else lambda: []
            return containers.remove(directory, manifest, 0.0 if whole else SETTLE_S, last=restored)

    def _manifest(self, name: str) -> containers.ContainersManifest | None:
        return self._state.read(containers.ContainersManifest, name, MANIFEST)

    def _owned(self, name: str) -> containers.ContainersManifest:
        manifest = self._manifest(name)
        if manifest is None:
            raise self._absent(name)
        return manifest

    def _restored(self, manifest: containers.ContainersManifest, places: containers.Adopted) -> Callable[[], list[str]]:
        """Puts an adopted lab's own directory into the state that `ewan lab compile` left; tells what was removed."""
        try:
            plan: Plan | None = self.load(manifest.lab).plan
        except (LabError, ValueError):
            plan = None

        def restore() -> list[str]:
            removed = adoption.forget(manifest, places)
            place = Path(places.directory)
            if plan is not None and place.is_dir():
                with contextlib.suppress(OSError):
                    shutil.rmtree(place / "nodes", ignore_errors=True)
                    files.lay_out(plan, place)
            return removed

        return restore

    def status(self, name: str) -> Status:
        """As for a lab of namespaces; where the engine does not answer, `note` says so."""
        try:
            return super().status(name)
        except NoAnswerError as error:
            return Status.unknown(name, "incomplete", str(error))

    def exec(self, name: str, node: str, argv: Sequence[str]) -> int:
        """The engine runs the program, so that it sees the container's files; signals are passed on to it."""
        self._need_root("entering a node")
        manifest, plan = self._owned(name), self.load(name).plan
        if node not in [each.name for each in plan.nodes]:
            return super().exec(name, node, argv)  # which says what names are near
        engine, terminal = engine_of(manifest), os.isatty(0) and os.isatty(1)
        # What runs in the container is no child of ours: it is found, and signalled, by its mark.
        mark = uuid.uuid4().hex
        words = engine.command("exec", "--interactive", *(["--tty"] if terminal else []), "--env", f"{MARK}={mark}")
        # Without a terminal Ctrl-C is ours to pass on; with one the terminal's own character goes through it.
        process = subprocess.Popen(
            [*words, name_of(name, node), *argv], env=engine.environment, start_new_session=not terminal
        )
        passed = False
        with deferred(lambda number: _signal(mark, number)) as check:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(LOOK_S / 5)
                try:
                    check()
                except (KeyboardInterrupt, SystemExit) as asked:
                    if isinstance(asked, KeyboardInterrupt) and not terminal and not passed:
                        _signal(mark, signal.SIGINT)
                    passed = True

    def capture(self, name: str, wanted: CaptureRequest, piped: bool = False) -> OpenCapture:
        """As for a lab of namespaces; LabError where one of the containers has ended."""
        manifest = self._owned(name)
        _check_running(manifest, list(dict.fromkeys(tap.node for tap in wanted.taps)))
        return super().capture(name, wanted, piped)

    def batch(self, name: str, program: Program, directory: Path) -> None:
        """As for a lab of namespaces; LabError where a container has ended, and for sockets in several of them."""
        self._check_whole(name)
        if spread := next((each for each in program.commands if "--taps" in each.argv), None):
            raise LabError(
                f"lab {name}: a capture at a point reaches into several containers from {spread.node}: write node and "
                "link in place of point, or run ewan lab capture beside it"
            )
        super().batch(name, program, directory)

    def versions(self, name: str) -> dict[str, str]:
        """Those of the engine and of containerlab, from the manifest; LabError where a container has ended."""
        manifest = self._check_whole(name)
        told = {manifest.engine: manifest.engine_version, "containerlab": manifest.containerlab_version}
        return {"runtime": "containerlab", **told}

    def _check_whole(self, name: str) -> containers.ContainersManifest:
        """The manifest; LabError where a container has ended: the name of its network could be another lab's."""
        manifest, plan = self._owned(name), self.load(name).plan
        _check_running(manifest, [node.name for node in plan.nodes])
        return manifest

    def _check_images(self, plan: Plan, engine: ContainerEngine) -> None:
        ours = [node for node in plan.nodes if node.own is None or node.own.image is None]
        kinds: list[str] = sorted({node.kind for node in ours})
        names = [images.image(kind) for kind in [*kinds, *(["prometheus"] if plan.containers.dashboards else [])]]
        found = engine.images(names)
        digest = images.digest(node_binary(self._wanted))
        for name in names:
            labels = dict(found[name].labels) if name in found else None
            if complaint := images.complaint(name, labels, digest):
                raise LabError(complaint)

    def _deploy(
        self, path: Path, topology: Path, manifest: containers.ContainersManifest, check: Callable[[], None]
    ) -> None:
        engine, total = engine_of(manifest), len(manifest.containers)
        look = 0.0

        def check_all() -> None:
            """containerlab itself waits for ever for a node that has failed."""
            nonlocal look
            check()
            if failed := _failed(topology.parent):
                raise LabError(failed)
            if time.monotonic() > look:
                _check_none_ended(manifest)
                look = time.monotonic() + LOOK_S

        def created(count: int) -> None:
            self._show(f"container {count} of {total}")

        try:
            clab.deploy(node_binary(self._wanted), path, topology, engine, check_all, created)
        except LabError as error:
            # The node's own error says more than containerlab's, which only waited for it.
            raise LabError(_failed(topology.parent) or str(error)) from None

    def _ready(self, plan: Plan, manifest: containers.ContainersManifest, check: Callable[[], None]) -> list[str]:
        """Waits until each node has made itself what the plan says; gives their warnings."""
        directory, total = self._state.directory(plan.lab), len(plan.nodes)
        waiting = [node.name for node in plan.nodes]
        deadline, look = time.monotonic() + READY_S, 0.0
        while waiting:
            check()
            if failed := _failed(directory):
                raise LabError(failed)
            waiting = [node for node in waiting if not (directory / "nodes" / node / "ready").exists()]
            if waiting and time.monotonic() > look:
                self._show(f"{total - len(waiting)} of {total} nodes are ready")
                _check_running(manifest, waiting)
                look = time.monotonic() + LOOK_S
            if waiting and time.monotonic() > deadline:
                said = engine_of(manifest).last_words(name_of(plan.lab, waiting[0])) or "it printed nothing"
                raise LabError(f"node {waiting[0]} is not ready after {READY_S:.0f} s: {said}")
            time.sleep(POLL_S if waiting else 0)
        self._check_whole(plan.lab)
        for number in range(len(plan.spinners)):
            self.control(plan.lab, number, StatsRequest())
        warnings = _warnings(directory)
        (directory / APPLIED).write_bytes(codec.compact(AppliedPlan(dict.fromkeys(warnings, 1))))
        return warnings

    def _given_up(self, name: str, engine: ContainerEngine, error: BaseException) -> BaseException:
        """The error to raise if a lab could not be made. Either nothing is left of the lab, or the error names the
        remedy."""
        directory = self._state.directory(name)
        if isinstance(error, OSError):
            error = self._state.unwritable(error, directory)
        manifest = self._manifest(name)
        try:
            if manifest is not None:
                engine.version()
                containers.remove(directory, manifest, SETTLE_S)
            else:
                containers.forget(directory)
        except NoAnswerError as dead:
            return LabError(f"{dead}; what is left of lab {name} goes with `ewan down {name}` then")
        except LabError as left:
            return LabError(f"{error}; and not all of it could be removed ({left}): ewan down {name}")
        return error

    def _nodes(self, plan: Plan) -> tuple[NodeStatus, ...]:
        """The process ids are the host's; a name of a network is believed only where it is its container's."""
        found = engine_of(self._owned(plan.lab)).containers([name_of(plan.lab, each.name) for each in plan.nodes])

        def runs(node: NodeStatus) -> bool:
            container = found.get(name_of(plan.lab, node.name))
            return container is not None and container.running and _is_of(container.name, container.pid)

        return tuple(node if runs(node) else codec.replace(node, up=False, pids=()) for node in super()._nodes(plan))

    def _processes(self, plan: Plan, identity: str) -> dict[int, int]:
        """Each spinner in the container of its first link's emulator."""
        nodes = {link.name: link.node for link in plan.links}
        networks = {
            number: identity_of(NAMESPACES / name_of(plan.lab, nodes[each.links[0]]))
            for number, each in enumerate(plan.spinners)
        }
        inside = processes_in([each for each in networks.values() if each is not None])
        found = {}
        for number, network in networks.items():
            for pid in inside.get(network, []) if network is not None else []:
                with contextlib.suppress(psutil.NoSuchProcess):
                    if spinners.number_of(psutil.Process(pid), inside=True) == number:
                        found[number] = pid
        return found


def _programs(plan: Plan, engine: ContainerEngine) -> dict[str, rendered.ImageProgram]:
    """The programs of nodes with images of one's own, as Docker would run them; LabError for an image that is
    absent."""
    found: dict[str, rendered.ImageProgram] = {}
    for node, said in node_overrides.of(plan):
        if said.image is None:
            continue
        image = engine.image(said.image)
        if image is None:
            raise LabError(
                f"lab {plan.lab}: {node}: image {said.image} is not there: {engine.kind} pull {said.image}, or build it"
            )
        entrypoint, cmd = image.entrypoint, image.cmd
        if said.entrypoint:
            entrypoint, cmd = said.entrypoint, ()
        words = (*entrypoint, *(said.cmd or cmd))
        found[node] = rendered.ImageProgram(words, image.user, image.directory, image.local_name(said.image))
    return found


def _entering(engine: ContainerEngine, lab: str, node: str, argv: Sequence[str]) -> list[str]:
    return engine.command("exec", name_of(lab, node), *argv)


def _check_possible(plan: Plan) -> None:
    if plan.containers.ovs_bridge:
        raise LabError(
            f"lab {plan.lab}: bridges of the host's Open vSwitch are made by hand: use `ewan lab compile` and "
            "containerlab itself, or leave ovs-bridge out"
        )
    for node in machines.of(plan):
        raise LabError(f"lab {plan.lab}: {node.name}: {ALONE}")
    for each in plan.hardware:
        raise LabError(
            f"lab {plan.lab}: link {each.link} is a device, for which nodes are namespaces: write --runtime netns"
        )
    if tunnels_of(plan) and (why := cards.refusal(plan)) is not None:
        raise LabError(f"lab {plan.lab}: {why}")


def _check_running(manifest: containers.ContainersManifest, nodes: Iterable[str]) -> None:
    """LabError for the first of these nodes whose container does not run, or is not what the namespace's name means."""
    engine, lab = engine_of(manifest), manifest.lab
    names = [name_of(lab, node) for node in nodes]
    found = engine.containers(names)
    for name in names:
        container = found.get(name)
        if container is None:
            raise LabError(f"container {name} is gone: remove the lab with `ewan down {lab}`")
        if not container.running or not _is_of(name, container.pid):
            raise LabError(f"{_ended(engine, container)}: remove the lab with `ewan down {lab}`")


def _check_none_ended(manifest: containers.ContainersManifest) -> None:
    """LabError for the first container of a lab that was started and has ended."""
    engine = engine_of(manifest)
    for container in engine.containers(manifest.containers).values():
        if container.ended:
            raise LabError(_ended(engine, container))


def _ended(engine: ContainerEngine, container: Container) -> str:
    """One line on a container that has ended, with the last line that it printed, or that could not even be started."""
    if not container.started:
        return f"container {container.name} cannot be started: {engine.refusal_to_start(container.name)}"
    said = engine.last_words(container.name) or f"status {container.status}, without a word"
    return f"container {container.name} has ended: {said}"


def _is_of(name: str, pid: int) -> bool:
    try:
        return (NAMESPACES / name).samefile(f"/proc/{pid}/ns/net")
    except OSError:
        return False


def _failed(directory: Path) -> str:
    """Why the first of the nodes that failed to set themselves up did; "" where none has failed until now."""
    for path in sorted(directory.glob("nodes/*/failed")):
        return f"{path.parent.name}: {last_words(path) or 'failed without a word'}"
    return ""


def _warnings(directory: Path) -> list[str]:
    """The warnings of nodes while they made themselves, each warning once."""
    lines = [line for path in sorted(directory.glob("nodes/*/warnings")) for line in path.read_text().splitlines()]
    return list(dict.fromkeys(line for line in lines if line))


def _signal(mark: str, number: int) -> None:
    """Sends a signal to the process whose environment has this `mark`, and to what it started."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                process.send_signal(number)
