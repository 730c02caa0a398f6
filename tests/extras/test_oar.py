"""What `engine: oar` hands to OAR, as far as Debian's oarsub goes without OAR's database: its options are read."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from ewan.extras.executors import dask_workers, reading
from tests.conftest import ROOT

pytestmark = pytest.mark.untimed  # it needs a program that `make check` does not install

USR = ROOT / "target/oar/usr"
DATABASE = 'DB_TYPE="nothing"\nSERVER_HOSTNAME="localhost"\nSERVER_PORT="6666"\n'


def oarsub(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Debian's program, with a configuration that names no database."""
    assert USR.exists(), "there is no oarsub: run ./setup.sh tests"
    configuration = place / "oar.conf"
    configuration.write_text(DATABASE)
    libraries = [str(USR / "share/perl5"), *map(str, USR.glob("lib/*-linux-gnu*/perl5/*"))]
    surroundings = {"OARCONFFILE": str(configuration), "OARDIR": str(USR / "lib/oar"), "OARDO_USER": "root"}
    surroundings["PERL5LIB"] = ":".join(libraries)
    return subprocess.run(
        ["perl", str(USR / "lib/oar/oarsub"), *words],
        env=os.environ
        | {
            "PERL5LIB": ":".join(libraries),
            "OARCONFFILE": str(configuration),
            "OARDO_USER": "root",
            "OARDIR": str(USR / "lib/oar"),
        },
        capture_output=True,
        text=True,
        timeout=30,
    )


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The job of the example."""
    return dask_workers.script(
        reading.load(ROOT / "docs/how-to/experiments/executors/oar.yaml"), tmp_path_factory.mktemp("job")
    )


def options(script: str) -> list[str]:
    """As dask-jobqueue gives them to oarsub."""
    lines = [line.removeprefix("#OAR ") for line in script.splitlines() if line.startswith("#OAR ")]
    return shlex.split(" ".join(lines))


def test_oarsub_reads_the_options_and_looks_for_its_database(script: str, tmp_path: Path) -> None:
    said = oarsub(tmp_path, *options(script), "true")
    assert "Unknown option" not in said.stderr
    assert "install_driver" in said.stderr, "it went as far as the database"


def test_oarsub_refuses_an_option_that_it_does_not_have(script: str, tmp_path: Path) -> None:
    said = oarsub(tmp_path, *options(script), "--nonsense", "true")
    assert "Unknown option: nonsense" in said.stderr


def test_a_job_has_the_cores_memory_and_walltime_of_the_file(script: str) -> None:
    assert "-l /nodes=1/core=16,walltime=02:00:00" in script
    assert "-q default" in script and "-t besteffort" in script
    assert "export EWAN_WORKER_ENDS=$(($(date +%s) + 7200))" in script
    assert "--nworkers 16" in script and "--nthreads 1" in script and "--resources memory=4000000000" in script
