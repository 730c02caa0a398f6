"""The container image of ewan itself: an experiment of the virtual clock in it, as its engine starts it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ewan import __version__
from images.product import build as product
from tests.conftest import ROOT
from tests.container_engine.fixtures import EngineOfTests
from tests.container_engine.podman import configured
from tests.test_wheel import built

pytestmark = pytest.mark.containers

MOST_BYTES = 250_000_000


@pytest.fixture(scope="module")
def archive() -> Path:
    built(ROOT / "target/wheel")
    shown = subprocess.run(
        ["images/product/build.sh", "--archive"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    return Path(shown.stdout.strip())


def run_in(command: str, archive: Path, name: str, results: Path) -> None:
    """An experiment in a container without a network, as the engine starts it: /dev/shm is small, there are no
    rights."""
    assert archive.stat().st_size <= MOST_BYTES
    loaded = subprocess.run([command, "load", "-q", "-i", archive], capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
    results.mkdir()
    results.chmod(0o777)
    try:
        run = [command, "run", "--rm", "--network=none", "-v", f"{results}:/home/ewan/results", name]
        shown = subprocess.run([*run, "--version"], capture_output=True, text=True, check=False)
        assert shown.stdout == f"ewan, version {__version__}\n", shown.stderr
        shown = subprocess.run([*run, "run", "first"], capture_output=True, text=True, check=False, timeout=250)
        assert shown.returncode == 0, shown.stderr
        assert "complete  report: results/" in shown.stdout
        (report,) = results.glob("*-first/report.html")
        assert report.stat().st_uid == product.USER
    finally:
        subprocess.run([command, "rmi", "-f", name], capture_output=True, check=False)


def test_an_ordinary_user_runs_an_experiment_in_docker(archive: Path, engine: EngineOfTests, tmp_path: Path) -> None:
    run_in("docker", archive, product.NAME, tmp_path / "results")


def test_an_ordinary_user_runs_an_experiment_in_podman(archive: Path, tmp_path: Path) -> None:
    with configured(tmp_path) as environment, pytest.MonkeyPatch.context() as patch:
        patch.delenv("DOCKER_HOST", raising=False)
        for key, value in environment.items():
            patch.setenv(key, value)
        run_in("podman", archive, f"docker.io/{product.NAME}", tmp_path / "results")
