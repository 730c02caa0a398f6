"""Runs on the cores of Dask's workers: on this machine, by Slurm, by SSH, by a scheduler that is there. Real runs.

Whatever becomes of workers, the tables are those of an experiment whose runs were executed here, to the byte.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests import slurm_rig
from tests.conftest import ROOT
from tests.experiments import document, only, statuses, written
from tests.extras.machines_rig import machines

LENGTH = "20s"
KERNEL = "linux"
"""The name of a virtual kernel's process."""
WORKER = "spawn_main"
"""In the command of Dask's worker on this machine."""


IN_TIME = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from ewan.experiments.engine import preparation
preparation.MOST_AT_ONCE = 1
from ewan.cli import main
main()
"""
"""ewan that writes each run as it is about to start, as it does where there are thousands."""


def ewan_command() -> list[str]:
    return [sys.executable, str(ROOT / "ewan" / "cli.py")]


def command(place: Path, *words: str, ewan: Sequence[str] | None = None) -> list[str]:
    scenario = str(place / "two.scenario.yaml")
    return [*(ewan or ewan_command()), "run", scenario, "--set", f"length={LENGTH}", *words]


def surroundings(place: Path, **more: str) -> dict[str, str]:
    return os.environ | {"NO_COLOR": "1", "COLUMNS": "200", "EWAN_STORE": str(place / "results/store")} | more


def ran(place: Path, file: Path) -> subprocess.CompletedProcess[str]:
    """The study by the workers that a file describes."""
    words = command(place, "--cluster", str(file))
    return subprocess.run(words, cwd=place, env=surroundings(place), capture_output=True, text=True)


def tables(place: Path) -> dict[str, bytes]:
    directory = only(place)
    assert statuses(directory) == ["complete"] * 6
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.glob("runs/*/*.parquet")}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tables of the study whose runs this machine executed."""
    place = tmp_path_factory.mktemp("here")
    prepare(place, "engine: local")
    result = subprocess.run(
        command(place, "--runtime", "virtual"), cwd=place, env=surroundings(place), capture_output=True
    )
    assert result.returncode == 0, result.stderr
    found = tables(place)
    assert len(found) >= 6
    return found


def prepare(place: Path, text: str) -> Path:
    """The study's scenario, and a file for --cluster."""
    written(place, variants="reno, cubic", seeds=3)
    # The same name in every directory: it is in the tables.
    scenario = place / "two.scenario.yaml"
    scenario.write_text(re.sub(r"^name: .*", "name: two", scenario.read_text().lstrip(), flags=re.MULTILINE, count=1))
    file = place / "w.yaml"
    file.write_text(text)
    return file


def guests(of: int) -> Iterator[tuple[psutil.Process, psutil.Process]]:
    """Virtual kernels that workers of a process run, each with its worker."""
    for process in psutil.Process(of).children(recursive=True):
        try:
            if process.name() == KERNEL:
                # Between them are the first process of its namespaces and who waits for that one.
                above = (each for each in process.parents() if WORKER in " ".join(each.cmdline()))
                if (worker := next(above, None)) is not None:
                    yield process, worker
        except psutil.NoSuchProcess:
            continue


@pytest.mark.virtual
def test_a_worker_that_is_killed_in_a_run_changes_nothing(here: dict[str, bytes], tmp_path: Path) -> None:
    """Nor does it that runs are written as they are about to start."""
    file = prepare(tmp_path, "engine: local\ncores: 2\n")
    words = command(tmp_path, "--cluster", str(file), ewan=[sys.executable, "-c", IN_TIME])
    with subprocess.Popen(
        words, cwd=tmp_path, env=surroundings(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        end, killed = time.monotonic() + 120, None
        while killed is None and process.poll() is None and time.monotonic() < end:
            for guest, worker in guests(process.pid):
                killed = guest
                worker.kill()
                break
            time.sleep(0.02)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    assert killed is not None, "no worker was at work"
    assert not killed.is_running(), "its virtual kernel ended with it"
    assert tables(tmp_path) == here
    assert not (only(tmp_path) / ".workers").exists()


@pytest.mark.virtual
def test_a_store_that_takes_nothing_hinders_nothing(here: dict[str, bytes], tmp_path: Path) -> None:
    """Workers send back what they cannot keep there."""
    file = prepare(tmp_path, "engine: local\ncores: 2\n")
    (tmp_path / "nothing").touch()
    result = subprocess.run(
        command(tmp_path, "--cluster", str(file)),
        cwd=tmp_path,
        env=surroundings(tmp_path) | {"EWAN_STORE": str(tmp_path / "nothing/store")},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("nothing more is put into the store") == 1
    assert tables(tmp_path) == here


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("engine: local\ncores: 2\nmemory: 64MB\n", "needs 270MB of memory and a worker has"),
        ("engine: dask\naddress: tcp://127.0.0.1:9\n", "no scheduler of Dask answers at tcp://127.0.0.1:9"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(text: str, why: str, tmp_path: Path) -> None:
    file = prepare(tmp_path, text)
    result = ran(tmp_path, file)
    last = result.stderr.splitlines()[-1]
    assert result.returncode == 2 and why in last, result.stderr


@contextlib.contextmanager
def scheduler(place: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Dask's own, with two workers, as somebody may have them; killed at the end."""
    address = f"127.0.0.1:{port}"
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    with (place / "dask.log").open("ab") as log:
        first = subprocess.Popen([*words, "--no-dashboard"], stdout=log, stderr=log)
        words = [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{address}", "--nworkers", "2"]
        second = subprocess.Popen([*words, "--nthreads", "1", "--no-dashboard"], cwd=place, stdout=log, stderr=log)
    try:
        yield first
    finally:
        first.kill()
        second.terminate()
        for each in (first, second):
            each.wait()


@pytest.mark.virtual
def test_a_scheduler_that_is_killed_and_comes_back_changes_nothing(here: dict[str, bytes], tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    file = prepare(tmp_path, f"engine: dask\naddress: tcp://127.0.0.1:{port}\n")
    words = command(tmp_path, "--cluster", str(file))
    with contextlib.ExitStack() as stack:
        with scheduler(tmp_path, port):
            process = stack.enter_context(
                subprocess.Popen(words, cwd=tmp_path, env=surroundings(tmp_path), stderr=subprocess.PIPE, text=True)
            )
            stack.callback(process.kill)
            end = time.monotonic() + 90
            while not list(tmp_path.glob("results/*/runs/*/flows.parquet")):
                assert process.poll() is None and time.monotonic() < end, "no run has ended"
                time.sleep(0.02)
        with scheduler(tmp_path, port):
            said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    assert tables(tmp_path) == here


@pytest.mark.untimed
def test_slurm_executes_the_same_study_by_its_example(here: dict[str, bytes], tmp_path: Path) -> None:
    """Debian's Slurm and munge: by dask-jobqueue, with a job that Slurm ends in a run as its walltime is over, and
    nothing in the queue afterwards; then as an array of shards."""
    file = prepare(tmp_path, (ROOT / "docs/how-to/experiments/executors/slurm.yaml").read_text())
    shell = """
        cd "$1"; shift; "$@" & work=$!
        until ls results/*/runs/*/flows.parquet >/dev/null 2>&1; do kill -0 $work || exit 1; sleep 0.1; done
        scancel --full --signal=STOP 1
        scontrol update JobId=1 EndTime=now || exit 1
        wait $work || exit 1
        squeue --noheader --states=R,PD >queue
        scontrol show job 1 >ended
        mkdir array; cd array; export EWAN_STORE=$PWD/results/store
        sbatch --quiet --wait --array=1-3 --wrap "$SHARD --shard \\$SLURM_ARRAY_TASK_ID/3" || exit 1
        $COLLECT results/two-*
    """
    words = ["sh", "-c", shell, "sh", str(tmp_path), *command(tmp_path, "--cluster", str(file))]
    more = {"SHARD": shlex.join(command(tmp_path)), "COLLECT": shlex.join([*ewan_command(), "collect"])}
    result = subprocess.run(
        slurm_rig.command(words),
        cwd=ROOT,
        env=surroundings(tmp_path) | more,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert result.returncode == 0, result.stderr
    assert tables(tmp_path) == here and (tmp_path / "queue").read_text().split() == []
    assert "JobState=TIMEOUT" in (tmp_path / "ended").read_text()
    shutil.rmtree(next((tmp_path / "array/results").glob("two-*")))
    assert tables(tmp_path / "array") == here
    assert "workers by w.yaml, 2 at once" in result.stderr


@pytest.mark.untimed
def test_a_partition_that_is_not_there_is_named(tmp_path: Path) -> None:
    text = (ROOT / "docs/how-to/experiments/executors/slurm.yaml").read_text().replace("queue: cpu", "queue: nowhere")
    words = ["sh", "-c", 'cd "$1"; shift; exec "$@"', "sh", str(tmp_path)]
    file = prepare(tmp_path, text)
    result = subprocess.run(
        slurm_rig.command([*words, *command(tmp_path, "--cluster", str(file))]),
        cwd=ROOT,
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert result.returncode == 2
    assert "w.yaml: no job was taken: sbatch: error" in result.stderr.splitlines()[-1]


@pytest.mark.untimed
def test_machines_that_see_nothing_of_this_one_execute_the_same_study(here: dict[str, bytes], tmp_path: Path) -> None:
    """Over SSH: kernel and node binary are sent, results come back, no key stays there."""
    with machines(2) as rig, rig.inside():
        text = "\n".join(
            [
                "engine: ssh",
                "hosts: [one, two]",
                f"ssh_config: {rig.ssh_config}",
                f"python: {sys.executable}",
                f"interface: {rig.interface}",
            ]
        )
        file = prepare(tmp_path, text)
        result = ran(tmp_path, file)
        assert result.returncode == 0, result.stderr
        for name in rig.names:
            assert not list((rig.directory / name / "home/root/.cache/ewan/workers").glob("*/*"))
    assert tables(tmp_path) == here
    assert document(only(tmp_path))["status"] == "complete"
