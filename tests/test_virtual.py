"""The virtual clock from the command line: a lab verified, programs run, what is refused, the same bytes twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from tests.conftest import ROOT, Ewan

pytestmark = pytest.mark.virtual

VIRTUAL = ("--runtime", "virtual")
SMALL = ("dumbbell", "--rtt", "100ms", "--rate", "10M", *VIRTUAL)


def only_run(directory: Path) -> Path:
    (found,) = (directory / "results").iterdir()
    return found


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name not in ("wall.json", "console.log")
    }


def test_a_lab_is_verified_and_its_record_is_the_same_each_time(ewan: Ewan, tmp_path: Path) -> None:
    runs = []
    for name in ("first", "second"):
        place = tmp_path / name
        place.mkdir()
        result = ewan("lab", *SMALL, cwd=place)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "dumbbell verified" in result.stdout and "of virtual time" in result.stdout
        runs.append(only_run(place))
    assert contents(runs[0]) == contents(runs[1])
    certificate = orjson.loads((runs[0] / "certificate.json").read_bytes())
    assert certificate["passed"] and certificate["clock"] == "virtual"
    wall = orjson.loads((runs[0] / "wall.json").read_bytes())
    assert wall["virtual_ns"] > 10**9 and wall["packets"] > 1000 and wall["kernel_sha256"]


@pytest.mark.parametrize(
    "rtt, rate, buffer",
    [
        pytest.param("1s", "1M", "100pkt", id="a batch of 10 packets takes 31 ms to be due"),
        pytest.param("4s", "100k", "100pkt", id="a batch of 12 packets takes 369 ms"),
        pytest.param("600ms", "100k", "5pkt", id="TCP's window is 11 packets at most"),
    ],
)
def test_long_and_slow_paths_are_within_reach(ewan: Ewan, tmp_path: Path, rtt: str, rate: str, buffer: str) -> None:
    words = ("dumbbell", "--pairs", "1", "--rtt", rtt, "--rate", rate, "--buffer", buffer)
    result = ewan("lab", *words, *VIRTUAL, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    (certificate,) = (orjson.loads(path.read_bytes()) for path in tmp_path.glob("results/*/certificate.json"))
    rows = certificate["rows"]
    assert not [row for row in rows if row["verdict"] == "not measured"], result.stdout
    assert not [row for row in rows if "host" in row["note"]], result.stdout


@pytest.mark.parametrize("runtime", ["netns", "virtual"])
def test_the_same_batch_runs_in_both_clocks(ewan: Ewan, tmp_path: Path, name: str, runtime: str) -> None:
    lab = ("dumbbell", "--rtt", "100ms", "--rate", "100M", "--name", name, "--runtime", runtime)
    commands = ("--do", "left1: ping -c 3 right1", "--do", "right1 at 1s: echo late | cat; exit 0")
    result = ewan("lab", "batch", *lab, *commands, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    document = orjson.loads(result.stdout)
    ping, late = document["commands"]
    assert 2e9 < ping["ended_ns"] - ping["started_ns"] < 2.3e9
    assert 1e9 <= late["started_ns"] < 1.1e9
    directory = tmp_path / document["directory"]
    assert "3 received" in (directory / ping["out"]).read_text()
    assert (directory / late["out"]).read_text() == "late\n"
    assert not list(Path("/run/netns").glob(f"ewan-{name}-*"))


def test_a_command_that_fails_fails_the_batch(ewan: Ewan, tmp_path: Path) -> None:
    result = ewan("lab", "batch", *SMALL, "--do", "left1: false", cwd=tmp_path)
    assert result.returncode == 1 and "commands/1-left1.out" in result.stdout


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(ROOT / "ewan" / "cli.py"),
        "lab",
        "batch",
        *SMALL,
        "--do",
        "left1: ping -i 0.001 right1",
    ]
    process = subprocess.Popen(
        [*command, "--for", "10000s"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in tmp_path.glob("results/*/commands/1-left1.out")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, said = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert "interrupted" in output and "interrupted: what the commands wrote" in said.splitlines()[-1]
    assert "packets transmitted" in (only_run(tmp_path) / "commands/1-left1.out").read_text()


def kernels(directory: Path) -> list[str]:
    """Virtual kernels that run for this directory."""
    shown = subprocess.run(["ps", "-wweo", "args="], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if f"EWAN_RUN={directory}/" in line]


def test_a_kernel_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(ROOT / "ewan" / "cli.py"),
        "lab",
        "batch",
        *SMALL,
        "--do",
        "left1: ping -q -i 0.001 right1",
    ]
    process = subprocess.Popen(
        [*command, "--for", "80000s"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not kernels(tmp_path):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 10
    while kernels(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.1)


REFUSED = {
    "shell": (["lab", "shell", "left1", *VIRTUAL], "a lab that stays up"),
    "up": (["up", "dumbbell", *VIRTUAL], "a lab that stays up"),
    "exec": (["lab", "exec", *VIRTUAL, "left1", "ls"], "a lab that stays up"),
    "watch": (["lab", "watch", *VIRTUAL], "a lab that stays up"),
    "set": (["lab", "set", *VIRTUAL, "core", "rate=1M"], "a lab that stays up"),
    "no command": (["lab", "batch", *SMALL], "--do 'left1: ping -c 5 right1'"),
    "no colon": (["lab", "batch", *SMALL, "--do", "ping right1"], "'left1 at 1s: ping right1'"),
    "no such node": (["lab", "batch", *SMALL, "--do", "left9: true"], "no node left9: hosts are left1, right1"),
    "no unit": (["lab", "batch", *SMALL, "--do", "left1 at 1: true"], "1ms"),
    "open quotes": (["lab", "batch", *SMALL, "--do", "left1: echo 'a"], "close the quotes"),
}


@pytest.mark.parametrize(("arguments", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_in_one_line(ewan: Ewan, tmp_path: Path, arguments: list[str], says: str) -> None:
    result = ewan(*arguments, cwd=tmp_path)
    assert result.returncode == 2, result.stdout + result.stderr
    assert result.stdout == "" and len(result.stderr.strip().splitlines()) == 1
    assert says in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_is_said(ewan: Ewan, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where results should go")
    result = ewan("lab", "batch", *SMALL, "--do", "left1: true", cwd=tmp_path)
    assert result.returncode == 2 and "results" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
