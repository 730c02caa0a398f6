"""What the tests that cross parts share: the command as a user runs it, and labs that are gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import json_output
from tests.container_engine.fixtures import engine, pytest_collection_finish
from tests.preloaded import Preloaded
from tests.tiers import pytest_collection_modifyitems, pytest_configure, pytest_xdist_make_scheduler

__all__ = [
    "engine",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_xdist_make_scheduler",
]

ROOT = Path(__file__).parent.parent

Ewan = Callable[..., "subprocess.CompletedProcess[str]"]
Disk = Callable[[str], Path]


@pytest.fixture(scope="session")
def state() -> Iterator[Path]:
    """A state directory of the tests' own: a user's labs are not seen and not touched."""
    root = Path(f"/run/ewan-test-{os.getpid()}")
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    """Commands that do not wait for their imports."""
    with Preloaded() as server:
        yield server


@pytest.fixture(scope="session")
def ewan(state: Path, preloaded: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ewan]:
    """Runs `ewan …` and gives its result; all labs are down at the end."""
    home = tmp_path_factory.mktemp("home")

    def run(*arguments: str, timeout: float = 300, cwd: Path = home) -> subprocess.CompletedProcess[str]:
        # Labs of containers are made by those tests that say so, also where an engine is there.
        environment = {"EWAN_RUNTIME": "netns", **os.environ}
        environment |= {"EWAN_STATE": str(state), "NO_COLOR": "1", "COLUMNS": "200"}
        ended = preloaded.run(arguments, environment, cwd, timeout)
        assert "the old name works until" not in ended.stderr, f"{arguments}: a test writes the new name"
        json_output.check(arguments, ended.stdout)
        return ended

    yield run
    run("down", "--all")


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A lab name that no other test and no user has."""
    return f"t{os.getpid() % 100000}x{abs(hash(request.node.nodeid)) % 1000}"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Mounts a file system of the test's own, of a size like 64m or with another option."""
    assert os.geteuid() == 0, "this test mounts file systems: run it as root"
    mounted: list[Path] = []

    def make(options: str) -> Path:
        place = tmp_path / str(len(mounted))
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
        mounted.append(place)
        return place

    yield make
    for place in mounted:
        subprocess.run(["umount", "-l", place], check=True)
