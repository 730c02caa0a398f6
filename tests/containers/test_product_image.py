"""The container image of ewan itself: an experiment of the virtual clock in it, as its engine starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ewan import __version__
from images.product import build as product
from tests.conftest import ROOT

pytestmark = pytest.mark.containers

MOST_BYTES = 250_000_000


@pytest.fixture(scope="module")
def archive() -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "target/wheel"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    shown = subprocess.run(
        ["images/product/build.sh", "--archive"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    return Path(shown.stdout.strip())


@pytest.mark.parametrize("command", ["docker", "podman"])
def test_an_ordinary_user_runs_an_experiment_in_it(archive: Path, command: str, engine: str, tmp_path: Path) -> None:
    assert archive.stat().st_size <= MOST_BYTES
    loaded = subprocess.run([command, "load", "-q", "-i", archive], capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
    name = f"docker.io/{product.NAME}" if command == "podman" else product.NAME
    results = tmp_path / "results"
    results.mkdir()
    results.chmod(0o777)
    try:
        run = [command, "run", "--rm", "--network=none", "-v", f"{results}:/home/ewan/results", name]
        shown = subprocess.run([*run, "--version"], capture_output=True, text=True, check=True)
        assert shown.stdout == f"ewan, version {__version__}\n"
        shown = subprocess.run([*run, "run", "first"], capture_output=True, text=True, check=False, timeout=250)
        assert shown.returncode == 0, shown.stderr
        assert "complete  report: results/" in shown.stdout
        (report,) = results.glob("*-first/report.html")
        assert report.stat().st_uid == product.USER or command == "podman"
    finally:
        subprocess.run([command, "rmi", "-f", name], capture_output=True, check=False)
