"""The fixture `engine`: a container engine with our images in it, and containerlab, for tests in this folder.

What takes minutes (images, containerlab) is built when tests are collected that want it, before any test's time limit
runs; the engine itself is started with the first of them and stopped with the last.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.container_engine.docker import ROOT, DockerEngine, running

CONTAINERLAB = ROOT / "target/containerlab/containerlab"
# Interfaces, sysctls and files that containerlab makes on the host stay in namespaces of its own.
ALONE = """
cp /etc/hosts "$1"/hosts && mount --bind "$1"/hosts /etc/hosts
[ ! -d /etc/ssh/ssh_config.d ] || mount -t tmpfs none /etc/ssh/ssh_config.d
shift
ip link show docker0 >/dev/null 2>&1 || ip link add docker0 type bridge
exec "$@"
"""


@dataclass(frozen=True)
class EngineOfTests:
    """The container engine and containerlab that tests work with.

    `host`: as DOCKER_HOST, None where docker finds its engine by itself.
    """

    host: str | None
    containerlab: Path
    schema: Path
    scratch: Path
    process: int | None  # of dockerd, where it is ours

    def docker(self, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=timeout)

    def clab(self, *arguments: str, cwd: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs containerlab as a user would, kept away from this machine's interfaces and files."""
        # With our engine in its network namespace, where its bridges are; else in a new one.
        network = [] if self.process else ["--net"]
        enter = ["nsenter", f"--net=/proc/{self.process}/ns/net", "--"] if self.process else []
        alone = ["unshare", "--mount", *network, "sh", "-c", ALONE, "sh", str(self.scratch), str(self.containerlab)]
        return subprocess.run([*enter, *alone, *arguments], cwd=cwd, capture_output=True, text=True, timeout=timeout)


def build(script: str, *arguments: str) -> str | None:
    """Runs a build script with its progress on stderr; None if it went well, else its last line."""
    done = subprocess.Popen(
        [ROOT / script, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert done.stderr
    last = ""
    for line in done.stderr:
        last = line.strip()
        print(last, file=sys.__stderr__, flush=True)
    return None if done.wait() == 0 else last or f"{script} failed"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds what the collected tests need; what went wrong is told by the fixture."""
    wanted = any("engine" in getattr(item, "fixturenames", ()) for item in session.items)
    if wanted and not session.config.option.collectonly:
        prepare(session.config)


PREPARED = pytest.StashKey[str]()


def prepare(config: pytest.Config) -> str:
    """Builds images and containerlab, once in a session; "" if all went well."""
    if PREPARED not in config.stash:
        config.stash[PREPARED] = (
            build("images/build-images.sh", "--archives") or build("images/containerlab/build.sh") or ""
        )
    return config.stash[PREPARED]


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineOfTests]:
    """A container engine with our images in it; DOCKER_HOST is set for the tests and what they start."""
    if unprepared := prepare(request.config):
        pytest.fail(unprepared)
    ours = DockerEngine()
    with running(ours) as host, contextlib.ExitStack() as after:
        if host:
            patch = pytest.MonkeyPatch()
            after.callback(patch.undo)
            patch.setenv("DOCKER_HOST", host)
        if failed := build("images/build-images.sh"):
            pytest.fail(failed)
        scratch = tmp_path_factory.mktemp("containerlab")
        process = ours.process() if os.environ.get("DOCKER_HOST") == ours.host else None
        yield EngineOfTests(host, CONTAINERLAB, CONTAINERLAB.with_name("clab.schema.json"), scratch, process)
