"""The possessions of a lab of containers: its manifest, the check that its names are free, and its removal.

In: a topology file and an engine; a state directory. Out: a manifest that exists before anything else; one line about
each name that is in use by another owner; nothing of the lab after its removal. A part is removed only if the manifest
names it and, for a container, if it was made from the manifest's topology file: containerlab labels each container with
it.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import yaml

from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct
from ewan.labs.base.writing import anew
from ewan.labs.plan import Plan, digest
from ewan.labs.runtime import spinners
from ewan.labs.runtime.answers import EndedProcess, LastCounters, Removed
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.container_engine import Container, ContainerEngine, Kind
from ewan.labs.runtime.namespaces import NAMESPACES, identity_of, processes_in
from ewan.labs.runtime.requests import StatsRequest
from ewan.labs.runtime.state_documents import MANIFEST

UNFINISHED = ".manifest.json.new"
"""A manifest that was being written when its writer died; nothing else existed then."""
TOPOLOGY_LABEL = "clab-topo-file"
ENGINES_NETWORK = "bridge"
"""The engine's own, which exists always: a lab without a management network names it, and is not in it."""
ANSWER_S = 1.0
ENDS_S = 1.0
GONE_S = 60.0
POLL_S = 0.05


class Adopted(Struct):
    """The directory of a lab that was deployed by hand, and that of containerlab."""

    directory: str
    clab_directory: str


class ContainersManifest(Document, tag="ewan-containers/1"):
    """The manifest of a lab of containers: everything that it owns. `host`: of the engine, empty for its default;
    `plan`: its digest; `adopted`: None if the lab was not deployed by hand."""

    lab: str
    id: str
    created_unix_ns: int
    engine: Kind
    host: str
    engine_version: str
    containerlab_version: str
    containers: tuple[str, ...]
    networks: tuple[str, ...]
    topology: str
    plan: str
    spinners: int
    adopted: Adopted | None = None


def name_of(lab: str, node: str) -> str:
    """The name of the container, and of its namespace below /run/netns."""
    return f"ewan-{lab}-{node}"


def manifest_of(
    plan: Plan, topology: Path, text: str, engine: ContainerEngine, containerlab: str
) -> ContainersManifest:
    """All that containerlab will make of the topology file's text. containerlab: its version."""
    described = yaml.safe_load(text)
    network = described["mgmt"]["network"]
    return ContainersManifest(
        lab=plan.lab,
        id=uuid.uuid4().hex,
        created_unix_ns=time.time_ns(),
        engine=engine.kind,
        host=engine.host,
        engine_version=engine.version(),
        containerlab_version=containerlab,
        containers=tuple(name_of(plan.lab, node) for node in described["topology"]["nodes"]),
        networks=() if network == ENGINES_NETWORK else (network,),
        topology=str(topology),
        plan=digest(plan),
        spinners=len(plan.spinners),
    )


def engine_of(manifest: ContainersManifest) -> ContainerEngine:
    """The engine that made a lab, whatever the environment says now."""
    return ContainerEngine(manifest.engine, manifest.host)


def write(directory: Path, manifest: ContainersManifest) -> None:
    """Makes the state directory, and in it the manifest: whole or not at all, whatever happens next. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    unfinished = directory / UNFINISHED
    with anew(unfinished) as file:
        file.write(codec.ordered(manifest))
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(directory / MANIFEST)


def forget(directory: Path) -> None:
    """Removes a state directory whose manifest could not be written: nothing else was made."""
    (directory / UNFINISHED).unlink(missing_ok=True)
    if directory.exists():
        directory.rmdir()


def check_free(engine: ContainerEngine, manifest: ContainersManifest, text: str) -> None:
    """LabError for the first name or port of a lab to be made that is in use."""
    lab, another = manifest.lab, "or give this lab another name"
    for container in engine.containers(manifest.containers).values():
        label = f"{TOPOLOGY_LABEL}={container.labels.get(TOPOLOGY_LABEL)}"
        if container.labels.get(TOPOLOGY_LABEL) == manifest.topology:
            listed = f"{engine.kind} rm -f $({engine.kind} ps -aq --filter label={label})"
            raise LabError(f"containers of an earlier lab {lab}, whose state is lost, are there: {listed}, {another}")
        remedy = f"{engine.kind} rm -f {container.name}"
        raise LabError(f"container {container.name} exists and is not ours: remove it ({remedy}), {another}")
    for name in manifest.containers:
        if os.path.lexists(NAMESPACES / name):
            remedy = f"ip netns delete {name}"
            raise LabError(f"namespace {name} exists and is no lab's that is up: remove it ({remedy}), {another}")
    for name in engine.networks(manifest.networks):
        remedy = f"{engine.kind} network rm {name}"
        raise LabError(f"network {name} of {engine.kind} exists and is not ours: remove it ({remedy}), {another}")
    for node, address, port, protocol in published(text):
        if not _free(address, port, protocol):
            shown, word = ("UDP port", "u") if protocol == "udp" else ("port", "t")
            raise LabError(
                f"{shown} {port} is taken, and {node} of lab {lab} is published there: end what listens on it "
                f"(ss -l{word}np 'sport = :{port}'), or publish another port"
            )


def published(text: str) -> Iterator[tuple[str, str, int, str]]:
    """Node, address, port and protocol (tcp, udp) of each port of the host that a topology file takes."""
    for node, described in yaml.safe_load(text)["topology"]["nodes"].items():
        for written in described.get("ports") or ():
            ports, _, protocol = str(written).partition("/")
            *address, port, _ = ["", *ports.rsplit(":", 2)][-3:]
            if port:
                yield node, "".join(address), int(port), protocol or "tcp"


def _free(address: str, port: int, protocol: str) -> bool:
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as probe:
        # A port of TCP may be left in TIME_WAIT; of UDP this would share one that is in use.
        if kind == socket.SOCK_STREAM:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.strip("[]"), port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def check_deployed(engine: ContainerEngine, manifest: ContainersManifest, plan_label: str) -> None:
    """LabError where not all containers of a lab run that was deployed from its topology file as it is now."""
    lab, file = manifest.lab, manifest.topology
    found = _ours(engine, manifest)
    deploy, destroy = f"containerlab deploy -t {file}", f"containerlab destroy -t {file} --cleanup"
    if not found:
        raise LabError(f"lab {lab} is not deployed from this file, by {engine.kind}: {deploy}")
    if missing := [name for name in manifest.containers if name not in found or not found[name].running]:
        raise LabError(f"lab {lab} is there only in part: container {missing[0]} does not run: {destroy}, {deploy}")
    if any(each.labels.get(plan_label) != manifest.plan for each in found.values()):
        raise LabError(f"{file} was compiled again since lab {lab} was deployed: {destroy}, {deploy}")


def remove(
    directory: Path,
    manifest: ContainersManifest,
    settle_s: float = 0.0,
    last: Callable[[], list[str]] = lambda: [],
) -> Removed:
    """Removes a lab, however much of it there is; LabError when something of it stays, which `down` removes later.

    settle_s: how long to look for containers that come into being all the same, whoever asked for them being dead;
    last: what else is to be removed when nothing runs any more, and tells its paths.
    """
    engine = engine_of(manifest)
    counters = tuple(_last_stats(directory, number) for number in range(manifest.spinners))
    containers = _ours(engine, manifest)
    entered = _entered(containers)
    made = _remove_containers(engine, manifest, containers, settle_s)
    networks = sorted(engine.networks(manifest.networks))
    engine.remove_networks(networks)
    paths = []
    for link in map(NAMESPACES.joinpath, manifest.containers):
        if link.is_symlink():
            link.unlink(missing_ok=True)
            paths.append(str(link))
    processes = _end(entered)
    paths += last()
    for entry in directory.iterdir():
        if entry.name == MANIFEST:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
    (directory / MANIFEST).unlink()
    directory.rmdir()
    return Removed(
        lab=manifest.lab,
        namespaces=(),
        processes=processes,
        paths=(*paths, str(directory)),
        spinners=counters,
        containers=tuple(made),
        networks=tuple(networks),
    )


def _ours(engine: ContainerEngine, manifest: ContainersManifest) -> dict[str, Container]:
    """The containers of the manifest that were made from its topology file."""
    found = engine.containers(manifest.containers)
    return {name: each for name, each in found.items() if each.labels.get(TOPOLOGY_LABEL) == manifest.topology}


def _remove_containers(
    engine: ContainerEngine, manifest: ContainersManifest, found: dict[str, Container], settle_s: float
) -> list[str]:
    """Until none is left; the names of those that were removed."""
    removed: set[str] = set()
    begun = last = time.monotonic()
    while found or time.monotonic() - last < settle_s:
        if time.monotonic() - begun > GONE_S:
            raise LabError(f"container {min(found)} of lab {manifest.lab} does not go; try again")
        if found:
            removed |= found.keys()
            last = time.monotonic()
        engine.remove([each.identity for each in found.values()])
        time.sleep(POLL_S if settle_s else 0)
        found = _ours(engine, manifest)
    return sorted(removed)


def _entered(containers: Mapping[str, Container]) -> list[psutil.Process]:
    """Processes of the host that are in the network of a container of ours without being in the container."""
    running = [each for each in containers.values() if each.running]
    inside = {
        identity_of(Path(f"/proc/{each.pid}/ns/net")): identity_of(Path(f"/proc/{each.pid}/ns/pid")) for each in running
    }
    inside.pop(None, None)
    processes = []
    for network, found in processes_in(set(inside) - {None}).items():  # type: ignore[arg-type]
        for pid in found:
            if pid != os.getpid() and identity_of(Path(f"/proc/{pid}/ns/pid")) != inside[network]:
                with suppress(psutil.NoSuchProcess):
                    processes.append(psutil.Process(pid))
    return processes


def _end(processes: Sequence[psutil.Process]) -> tuple[EndedProcess, ...]:
    """Ends processes, by force those that are there `ENDS_S` after SIGTERM; what they were.

    A process that ended since it was looked up is left out, also where its number is another's by now.
    """
    asked, ended = [], []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            words = " ".join(process.cmdline())
            process.terminate()
            asked.append(process)
            ended.append(EndedProcess(process.pid, words))
    _, heedless = psutil.wait_procs(asked, ENDS_S)
    for process in heedless:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return tuple(ended)


def _last_stats(directory: Path, number: int) -> LastCounters:
    """A spinner's counters, or why there are none."""
    try:
        answer = spinners.ask(directory, number, StatsRequest(), ANSWER_S)
    except (OSError, LabError) as error:
        return LastCounters(number, error=getattr(error, "strerror", None) or str(error))
    return LastCounters(number, answer)
