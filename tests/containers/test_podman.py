"""Labs of Podman's containers: through `ewan`, and from the file alone by containerlab, which asks Podman as it asks
Docker. Their nodes are in no management network, so nothing of the machine's own network changes."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.labs.runtime.clab import socket_of
from ewan.labs.runtime.container_engine import ContainerEngine
from tests.conftest import Ewan
from tests.container_engine.docker import EngineError
from tests.container_engine.fixtures import CONTAINERLAB, EngineOfTests, build, prepare
from tests.container_engine.podman import configured
from tests.containers.test_own import IMAGE, made
from tests.containers.test_runtime import shortest_ms

pytestmark = pytest.mark.containers

RATE_BPS, RTT_MS = 50e6, 40.0
SIZES = ("--rate", "50Mbit/s", "--rtt", "40ms")


@pytest.fixture(scope="module")
def podman(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineOfTests]:
    """Podman with our images in it, for the tests and what they start."""
    if unprepared := prepare(request.config):
        pytest.fail(unprepared)
    scratch = tmp_path_factory.mktemp("podman")
    try:
        with configured(scratch) as environment, pytest.MonkeyPatch.context() as patch:
            patch.delenv("DOCKER_HOST", raising=False)
            for key, value in environment.items():
                patch.setenv(key, value)
            if failed := build("images/build-images.sh"):
                pytest.fail(failed)
            yield EngineOfTests(None, CONTAINERLAB, CONTAINERLAB.with_name("clab.schema.json"), scratch, None)
    except EngineError as error:
        pytest.fail(str(error))


def ask(*words: str) -> str:
    done = subprocess.run(["podman", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def left(name: str) -> list[str]:
    """All that a lab has left; conmon ends a moment after its container."""
    deadline = time.monotonic() + 10
    while (found := remains(name)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def remains(name: str) -> list[str]:
    """All that there is of a lab now."""
    found = ask("ps", "--all", "--format", "{{.Names}}").split()
    found += [path.name for path in Path("/run/netns").glob(f"ewan-{name}-*")]
    processes = subprocess.run(["pgrep", "-af", f"ewan-{name}-"], capture_output=True, text=True).stdout.splitlines()
    # Podman watches a command that was run over its socket (`exec` in the file) for five minutes more.
    return found + [each for each in processes if not ("conmon" in each and "exit-delay 300" in each)]


LAB = """
topology: dumbbell
wan: {rate: 50Mbit/s}
rtt: 40ms
nodes:
  right1:
    image: ewan-tests/app:1
    env: {GREETING: "hello there"}
    binds: ["www:/srv/www:ro"]
    exec: ["sh -c 'echo $GREETING > /tmp/greeting'"]
"""
"""One host is of an image of one's own."""


@pytest.mark.timeout(400)
def test_up_verified_entered_down(podman: EngineOfTests, ewan: Ewan, state: Path, tmp_path: Path) -> None:
    name = f"pod{os.getpid() % 100000}"
    made(["podman"], IMAGE)
    (tmp_path / "www").mkdir()
    (tmp_path / "www/index.html").write_text("hello from the project\n")
    (tmp_path / f"{name}.lab.yaml").write_text(LAB)
    words = ("lab", f"{name}.lab.yaml", "--runtime", "containerlab", "--json")
    result = ewan(*words, cwd=tmp_path, timeout=200)
    try:
        assert result.returncode in (0, 1), result.stderr
        certificate = json.loads(result.stdout)
        assert certificate["host"]["versions"]["podman"]
        for row in (row for row in certificate["rows"] if row["quantity"] == "rate"):
            if row["verdict"] == "not measured":  # a machine without time for it
                assert certificate["machine"]["disturbed"], row
            else:
                assert row["measured"] == pytest.approx(RATE_BPS, rel=0.01), row  # other tests run beside this one
        ping = ewan("lab", "exec", "--lab", name, "left1", "--", "ping", "-n", "-q", "-c", "10", "-i", "0.1", "right1")
        assert RTT_MS <= shortest_ms(ping.stdout) <= RTT_MS + 1, ping.stdout
        app = f"ewan-{name}-right1"
        assert "app      /bin/busybox httpd -f -h /srv/www -p 8080" in ask(
            "exec", app, "busybox", "ps", "-o", "user,args"
        )
        fetched = ask("exec", app, "busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/")
        assert fetched == "hello from the project\n"
        assert ask("exec", app, "sh", "-c", "cat /tmp/greeting") == "hello there\n"
    finally:
        down = ewan("down", name, timeout=200)
        ask("image", "rm", "--force", IMAGE)
    assert down.returncode == 0, down.stderr
    assert left(name) == []
    assert not (state / name).exists()


@pytest.mark.timeout(400)
def test_the_file_alone(podman: EngineOfTests, ewan: Ewan, tmp_path: Path) -> None:
    name = f"alone{os.getpid() % 100000}"
    compiled = ewan("lab", "compile", "dumbbell", *SIZES, "--name", name, "-o", str(tmp_path))
    assert compiled.returncode == 0, compiled.stderr
    with socket_of(ContainerEngine("podman"), tmp_path) as host, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", host)
        deployed = podman.clab("deploy", "-t", f"{name}.clab.yml", cwd=tmp_path, timeout=200)
        try:
            assert deployed.returncode == 0, deployed.stderr
            ping = ask("exec", f"ewan-{name}-left1", "ping", "-n", "-q", "-c", "10", "-i", "0.1", "right1")
            assert RTT_MS <= shortest_ms(ping) <= RTT_MS + 1, ping
        finally:
            destroyed = podman.clab("destroy", "-t", f"{name}.clab.yml", "--cleanup", cwd=tmp_path, timeout=200)
        assert destroyed.returncode == 0, destroyed.stderr
    assert left(name) == []
