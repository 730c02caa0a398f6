"""containerlab: where it is, which version, and a deployment that leaves nothing on the host but what was asked for.

In: a topology file, an engine. Out: containers with their links; `LabError` with containerlab's last word. It runs in
network and mount namespaces of its own: it switches reverse-path filtering off in the network that it runs in and
writes names into /etc/hosts and ssh's configuration, none of which is a lab's business to do to the host.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from ewan.labs.base.product import BUILT, from_source
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.container_engine import ContainerEngine
from ewan.labs.runtime.words import last_line

CONTAINERLAB = BUILT / "containerlab/containerlab"
OLDEST = (0, 60, 0)
"""The oldest version that was tried; images/containerlab builds it."""
REMEDY = from_source("make setup-containerlab")
POLL_S = 0.05
ENDS_S = 10.0
VERSION_S = 10.0
# The bridge of labs without a management network. Its stand-in is looked up and set up where containerlab runs.
_ENGINES_BRIDGE = "docker0"
# Its names go into a copy, which ends with the mount namespace; where root has an ssh configuration, likewise.
_SCRIPT = """
ip link add {bridge} type bridge || exit 1
cp /etc/hosts {hosts} && mount --bind {hosts} /etc/hosts || exit 1
[ ! -d /etc/ssh/ssh_config.d ] || mount -t tmpfs tmpfs /etc/ssh/ssh_config.d || exit 1
exec {command}
"""
_LEVEL = re.compile(r'^(?:time="[^"]*" level=(?P<level>\w+) msg=(?P<message>"(?:[^"\\]|\\.)*"|\S+)|(?P<plain>.*))$')
_STAMPED = re.compile(r"^(?P<level>DEBU|INFO|WARN|ERRO|FATA)\[\d+\] (?P<message>.*)$")
_CREATED = re.compile(r"Creating container: ")
_SERIOUS = ("erro", "fata")


def binary() -> Path:
    """LabError where there is none."""
    found = shutil.which("containerlab")
    for candidate in (CONTAINERLAB, Path(found) if found else None):
        if candidate is not None and candidate.exists():
            return candidate
    raise LabError(f"containerlab is not there: {REMEDY}")


@contextmanager
def version_of(path: Path) -> Iterator[Callable[[], str]]:
    """Asks for the version; what it gives waits for the answer, so that others can be asked meanwhile.

    LabError for what cannot be run, or is older than what was tried.
    """
    try:
        process = subprocess.Popen([path, "version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError as error:
        raise LabError(f"{path} cannot be run ({error.strerror}): {REMEDY}") from None

    def answer() -> str:
        try:
            return checked(path, process.communicate(timeout=VERSION_S)[0])
        except subprocess.TimeoutExpired:
            raise LabError(f"{path} gives no answer: {REMEDY}") from None

    with process:
        try:
            yield answer
        finally:
            process.kill()


def checked(path: Path, said: str) -> str:
    """The version in what `containerlab version` says."""
    match = re.search(r"version: *v?(\d+)\.(\d+)\.(\d+)", said)
    if match is None:
        raise LabError(f"{path} tells no version of containerlab: {REMEDY}")
    found = tuple(map(int, match.groups()))
    words = ".".join(map(str, found))
    if found < OLDEST:
        raise LabError(f"{path} is containerlab {words}, older than {'.'.join(map(str, OLDEST))}: {REMEDY}")
    return words


def deploy(
    node: Path,
    path: Path,
    topology: Path,
    engine: ContainerEngine,
    check: Callable[[], None],
    created: Callable[[int], None],
) -> None:
    """Makes what the topology file says; `created` receives the number of containers that it has begun to make.

    node: the node binary; path: containerlab. `check` is called meanwhile, and raises when there is a reason to stop:
    containerlab is ended then, as it is when we die, and what it made is the caller's to remove.
    """
    # In the lab's directory, so that it is gone with the lab whatever becomes of us.
    place = topology.parent / ".deploy"
    place.mkdir(exist_ok=True)
    with socket_of(engine, place) as host:
        command = [str(path), "deploy", "--topo", str(topology), "--log-level", "info"]
        bridge = yaml.safe_load(topology.read_text())["mgmt"].get("bridge", _ENGINES_BRIDGE)
        words = _SCRIPT.format(bridge=bridge, hosts=shlex.quote(f"{place}/hosts"), command=shlex.join(command))
        process = subprocess.Popen(
            [node, "launch", "--", "unshare", "--net", "--mount", "sh", "-c", words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=topology.parent,
            env=_environment(topology.parent, host),
            start_new_session=True,
        )
        said: list[str] = []
        reader = threading.Thread(target=_read, args=(process, said, created), daemon=True)
        reader.start()
        try:
            while process.poll() is None:
                check()
                try:
                    process.wait(POLL_S)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            reader.join(ENDS_S)
    if process.returncode != 0:
        why = meaning(said) or f"ended with status {process.returncode}"
        raise LabError(f"containerlab: {why}{engine.remedy(why)}")


def _read(process: subprocess.Popen[bytes], said: list[str], created: Callable[[int], None]) -> None:
    assert process.stderr is not None
    count = 0
    with process.stderr as stream:
        for line in stream:
            said.append(line.decode(errors="replace").rstrip("\n"))
            if _CREATED.search(said[-1]):
                count += 1
                created(count)


def meaning(lines: list[str]) -> str:
    """The last error that containerlab reported; if it reported none, its last line."""
    told = [message for level, message in map(_parsed, lines) if level in _SERIOUS and message]
    plain = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
    return (plain or told or [last_line("\n".join(message for _, message in map(_parsed, lines)))])[-1]


def _parsed(line: str) -> tuple[str, str]:
    """Level (four letters, "" for none) and message of a line in either of its two forms."""
    stamped = _STAMPED.match(line)
    if stamped is not None:
        return stamped["level"].lower(), stamped["message"].strip()
    match = _LEVEL.match(line)
    if match is None or match["level"] is None:
        return "", line.strip()
    message = match["message"]
    if message.startswith('"'):
        message = message[1:-1].replace('\\"', '"').replace("\\n", " ")
    return match["level"][:4].lower(), message.strip()


def _environment(directory: Path, host: str) -> dict[str, str]:
    """Its own directory is the lab's; the caller of sudo gets no files there, and no server is asked for newer
    versions."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SUDO_", "CLAB_", "DOCKER_HOST"))}
    return (
        kept
        | {"CLAB_LABDIR_BASE": str(directory), "CLAB_VERSION_CHECK": "disable", "CLAB_RUNTIME": "docker"}
        | ({"DOCKER_HOST": host} if host else {})
    )


@contextmanager
def socket_of(engine: ContainerEngine, place: Path) -> Iterator[str]:
    """The DOCKER_HOST that containerlab speaks to; Podman answers as Docker does for as long as it is asked to."""
    if engine.kind == "docker":
        yield engine.host
        return
    socket = place / "podman.sock"
    command = engine.command("system", "service", "--time", "0", f"unix://{socket}")
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as service:
        try:
            for _ in range(round(ENDS_S / POLL_S)):
                if socket.exists() or service.poll() is not None:
                    break
                threading.Event().wait(POLL_S)
            if not socket.exists():
                raise LabError("podman serves no socket (podman system service): use Docker, or --runtime netns")
            yield f"unix://{socket}"
        finally:
            service.terminate()
            service.wait(ENDS_S)
