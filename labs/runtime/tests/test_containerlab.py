"""Labs of containers: what is refused, with which words, and that nothing is left. Engines pretend here. Needs root."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.labs.base.codec import replace
from ewan.labs.plan import Containers, Plan
from ewan.labs.runtime import clab, containers
from ewan.labs.runtime import container_engine as engines
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.containerlab import ContainerlabRuntime
from ewan.labs.runtime.live import LiveRuntime
from ewan.labs.runtime.namespaces import NAMESPACES
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.tests.fake_engine import Fakes
from ewan.labs.runtime.tests.lab import BINARY, small

pytestmark = pytest.mark.untimed

LAB = f"rc{os.getpid()}"
NAMES = [f"ewan-{LAB}-{node}" for node in ("left", "right", "router")]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    assert os.geteuid() == 0, "labs are made by root"
    return tmp_path / "state"


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    fakes = Fakes(tmp_path, BINARY)
    monkeypatch.setenv("PATH", fakes.path)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("EWAN_ENGINE", "docker")  # a podman of this machine does not pretend
    monkeypatch.setattr(clab, "CONTAINERLAB", tmp_path / "none")
    return fakes


@pytest.fixture
def runtime(fakes: Fakes, state: Path) -> ContainerlabRuntime:
    return ContainerlabRuntime(BINARY, state)


def refusal(runtime: ContainerlabRuntime, state: Path, plan: Plan | None = None) -> str:
    """What `up` says; nothing of the lab is there then."""
    with pytest.raises(LabError) as refused:
        runtime.up(plan or small(LAB))
    assert not state.exists()
    assert not list(NAMESPACES.glob(f"ewan-{LAB}-*"))
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_an_engine_that_is_not_running(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    fakes.set(dead=True)
    said = refusal(runtime, state)
    assert said.startswith("no container engine answers: docker does not answer (Cannot connect to the Docker daemon")
    assert "start it (systemctl start docker)" in said


def test_no_engine(runtime: ContainerlabRuntime, fakes: Fakes, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fakes.programs / "docker").unlink()
    monkeypatch.setenv("PATH", str(fakes.programs))
    assert refusal(runtime, state) == (
        "no container engine answers: docker is not installed (apt install docker.io); --runtime netns needs none"
    )


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("EWAN_ENGINE", "lxc", 'EWAN_ENGINE="lxc": write docker or podman'),
        ("DOCKER_HOST", "tcp://10.0.0.1:2375", "DOCKER_HOST=tcp://10.0.0.1:2375: the engine of another machine"),
    ],
)
def test_an_engine_that_cannot_be(
    runtime: ContainerlabRuntime, state: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert refusal(runtime, state).startswith(says)


def test_no_containerlab(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    (fakes.programs / "containerlab").unlink()
    assert refusal(runtime, state) == "containerlab is not there: make setup-containerlab"


def test_an_old_containerlab(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    fakes.set(containerlab="0.48.6")
    said = refusal(runtime, state)
    assert said.endswith("containerlab is containerlab 0.48.6, older than 0.60.0: make setup-containerlab")


def test_an_image_that_is_not_there(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    found = fakes.read()["image"]
    fakes.set(image={name: image for name, image in found.items() if "router" not in name})
    said = refusal(runtime, state)
    assert said.startswith("image ewan/router:")
    assert said.endswith(" is not there: make images")


def test_an_image_of_another_version(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    found = fakes.read()["image"]
    for image in found.values():
        image["Config"]["Labels"] = {"ewan.node": "0" * 64}
    fakes.set(image=found)
    said = refusal(runtime, state)
    assert "is of another version" in said
    assert said.endswith("make images")


def test_a_container_of_somebody_else(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    fakes.container(NAMES[0])
    assert refusal(runtime, state) == (
        f"container {NAMES[0]} exists and is not ours: remove it (docker rm -f {NAMES[0]}), "
        "or give this lab another name"
    )
    assert fakes.containers() == [NAMES[0]]


def test_containers_whose_state_is_lost(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    """After a reboot: /run is empty, and the engine still has them."""
    topology = f"{state}/{LAB}/{LAB}.clab.yml"
    fakes.container(NAMES[0], {"clab-topo-file": topology})
    said = refusal(runtime, state)
    assert f"docker rm -f $(docker ps -aq --filter label=clab-topo-file={topology})" in said


def test_a_namespace_of_somebody_else(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    link = NAMESPACES / NAMES[0]
    NAMESPACES.mkdir(exist_ok=True)
    link.symlink_to("/proc/0/ns/net")
    try:
        with pytest.raises(LabError, match=f"namespace {NAMES[0]} exists and is no lab's that is up: remove it"):
            runtime.up(small(LAB))
        assert link.is_symlink()
    finally:
        link.unlink()


def test_a_lab_of_that_name(runtime: ContainerlabRuntime, state: Path) -> None:
    (state / LAB).mkdir(parents=True)
    with pytest.raises(LabError, match=f"lab {LAB} exists already, or what is left of it: remove it with"):
        runtime.up(small(LAB))


def test_a_port_that_is_taken(
    runtime: ContainerlabRuntime, fakes: Fakes, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(small(LAB), containers=Containers(management=True, dashboards=True))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv("EWAN_PROMETHEUS_PORT", str(port))
        said = refusal(runtime, state, plan)
    assert said.startswith(f"port {port} is taken, and prometheus of lab {LAB} is published there")


@pytest.mark.parametrize(("kind", "taken"), [(socket.SOCK_DGRAM, True), (socket.SOCK_STREAM, False)])
def test_a_port_of_udp_is_taken_by_udp_alone(
    runtime: ContainerlabRuntime, fakes: Fakes, state: Path, kind: socket.SocketKind, taken: bool
) -> None:
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            other.listen()
        port = other.getsockname()[1]
        text = f"topology: {{nodes: {{a: {{ports: ['127.0.0.1:{port}:53/udp']}}}}}}"
        engine = engines.find()
        manifest = containers.ContainersManifest(LAB, "0", 0, "docker", "", "", "", (), (), "x", "", 0)
        if not taken:
            containers.check_free(engine, manifest, text)
            return
        with pytest.raises(LabError, match=f"UDP port {port} is taken, .*ss -lunp 'sport = :{port}'"):
            containers.check_free(engine, manifest, text)


def test_bridges_of_the_host(runtime: ContainerlabRuntime, state: Path) -> None:
    plan = replace(small(LAB), containers=Containers(ovs_bridge=True))
    assert "are made by hand" in refusal(runtime, state, plan)


def test_a_deployment_that_fails_half_way(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    fakes.container("of-somebody")
    assert refusal(runtime, state) == "containerlab: not all could be made"
    assert fakes.read()["made"]
    assert fakes.containers() == ["of-somebody"]


def test_containers_that_the_machine_does_not_let_start(
    runtime: ContainerlabRuntime, fakes: Fakes, state: Path
) -> None:
    """containerlab does not call that an error."""
    fakes.set(makes=5, starts=False, says=[])
    said = refusal(runtime, state)
    assert said.startswith(f"container ewan-{LAB}-left cannot be started: Error: unable to start container")
    assert "OCI permission denied: this machine's root may not give containers what they ask for" in said
    assert "write --runtime netns" in said
    assert fakes.containers() == []


def test_a_full_disk(runtime: ContainerlabRuntime, fakes: Fakes, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.set(says=['time="x" level=error msg="write /var/lib/docker/x: no space left on device"'])
    assert "no space left on device: make room there (docker system df)" in refusal(runtime, state)

    def full(directory: Path, manifest: object) -> None:
        directory.mkdir(parents=True)
        (directory / containers.UNFINISHED).touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))

    monkeypatch.setattr(containers, "write", full)
    said = f"no space left in {state / LAB}: make room there, or set EWAN_STATE to a directory of root's that has it"
    assert refusal(runtime, state) == said


def test_an_engine_that_dies_half_way(runtime: ContainerlabRuntime, fakes: Fakes, state: Path) -> None:
    fakes.set(dies=True)
    with pytest.raises(LabError, match=f"docker does not answer .*; what is left of lab {LAB} goes with `ewan down"):
        runtime.up(small(LAB))
    live = LiveRuntime(BINARY, state=state)
    assert live.names() == [LAB]
    status = live.status(LAB)
    assert (status.state, status.runtime) == ("incomplete", "containerlab")
    with pytest.raises(LabError, match="docker does not answer"):
        live.down(LAB)
    assert len(fakes.containers()) == 2
    fakes.set(dead=False)
    assert live.down(LAB).containers == (NAMES[0], NAMES[2])
    assert fakes.containers() == []
    assert not state.exists()


def test_down_removes_what_was_made_of_its_own_file_only(
    runtime: ContainerlabRuntime, fakes: Fakes, state: Path
) -> None:
    """Somebody removed our container, and made one of the same name."""
    fakes.set(dies=True)
    with pytest.raises(LabError):
        runtime.up(small(LAB))
    fakes.set(dead=False)
    fakes.container(NAMES[0], {"clab-topo-file": "/home/somebody/x.clab.yml"})
    runtime.down(LAB)
    assert fakes.containers() == [NAMES[0]]


UP = """
import sys
from pathlib import Path
from typing import Any
from ewan.labs.runtime import clab
from ewan.labs.runtime.containerlab import ContainerlabRuntime
from ewan.labs.runtime.tests.lab import BINARY, small
clab.CONTAINERLAB = Path("/none")
print("ready", flush=True)
ContainerlabRuntime(BINARY, Path(sys.argv[1])).up(small(sys.argv[2]))
"""


@pytest.fixture
def process(fakes: Fakes, state: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An `up` that is making containers, one in half a second."""
    fakes.set(makes=3, takes_s=0.5)
    command = [sys.executable, "-c", UP, str(state), LAB]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not fakes.containers():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        yield process


def test_ctrl_c_leaves_nothing(process: subprocess.Popen[bytes], fakes: Fakes, state: Path) -> None:
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert fakes.containers() == []
    assert not state.exists()


def test_a_killed_up_is_removed(process: subprocess.Popen[bytes], fakes: Fakes, state: Path) -> None:
    """containerlab ends with who called it: what it had asked the engine for, and comes later, is found too."""
    topology = f"{state}/{LAB}/{LAB}.clab.yml"
    process.kill()
    process.wait()
    late = threading.Timer(0.5, lambda: fakes.container(NAMES[2], {"clab-topo-file": topology}))
    late.start()
    removed = LiveRuntime(BINARY, state=state).down(LAB)
    late.join()
    assert {NAMES[0], NAMES[2]} <= set(removed.containers)
    assert fakes.containers() == []
    assert not state.exists()


def test_killed_before_the_manifest(state: Path) -> None:
    (state / LAB).mkdir(parents=True)
    (state / LAB / containers.UNFINISHED).write_text("{")
    live = LiveRuntime(BINARY, state=state)
    assert live.names() == [LAB]
    live.down(LAB)
    assert not state.exists()


def test_auto_takes_containers_where_all_is_there(fakes: Fakes, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(NetnsRuntime, "up", lambda self, plan: made.append("netns"))
    monkeypatch.setattr(ContainerlabRuntime, "up", lambda self, plan: made.append("containers"))
    told: list[str] = []
    live = LiveRuntime(BINARY, "auto", state, tell=told.append)
    live.up(small(LAB))
    assert (made, len(told)) == (["containers"], 1)
    fakes.set(image={})
    live.up(small(LAB))
    fakes.set(dead=True)
    live.up(small(LAB))
    assert (made, len(told)) == (["containers", "netns", "netns"], 1)


@pytest.mark.parametrize(
    ("lines", "means"),
    [
        (["INFO[0000] Creating lab directory", "Error: the 'x' lab has already been deployed"], "the 'x' lab has"),
        (['time="x" level=info msg="a"', 'time="x" level=error msg="failed: \\"b\\""', ""], 'failed: "b"'),
        (["ERRO[0003] node r1: no such image", "INFO[0004] Destroying"], "node r1: no such image"),
        (["unshare: unshare failed: Operation not permitted"], "unshare: unshare failed: Operation not permitted"),
        ([], ""),
    ],
)
def test_the_last_meaningful_line(lines: list[str], means: str) -> None:
    assert clab.meaning(lines).startswith(means)
    assert bool(means) == bool(clab.meaning(lines))


def test_ports_that_a_file_publishes() -> None:
    text = "topology: {nodes: {a: {ports: ['127.0.0.1:9090:90', '3000:3000/tcp', '53:53/udp', '80']}, b: {}}}"
    assert list(containers.published(text)) == [
        ("a", "127.0.0.1", 9090, "tcp"),
        ("a", "", 3000, "tcp"),
        ("a", "", 53, "udp"),
    ]
