"""Outputs that are closed, full or in another encoding: one line at most, a status that tells, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ewan import cli
from tests.forked import Done, Server

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
EXPERIMENT = """{"format": "ewan-experiment/1", "scenario": "x", "clock": "virtual", "status": "running", "runs": []}"""
SHOWS = {
    "help": "--help",
    "version": "--version",
    "a table": "lab compile star -o out",
    "a document": "lab compile star --json -o out",
    "labs": "ps",
    "documents of labs": "ps --json",
    "experiments": "exp list",
    "a script": "completion bash",
    **{f"help of {command}": f"{command} --help" for command in cli.names()},
}
REFUSED = {"an option": "lab --rtt", "a lab": "lab compile nowhere", "a report": "results report nowhere"}
FULL = "standard output: No space left on device"


Run = Callable[[str, str], Done]


def module_of(name: str) -> str:
    """The module that has the command of a name."""
    command = cli.load(name)
    assert command is not None and command.callback is not None
    return command.callback.__module__


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a command with an output of REDIRECTIONS or an encoding of ENCODINGS."""
    place = tmp_path_factory.mktemp("streams")
    (place / "results/x").mkdir(parents=True)
    (place / "results/x/experiment.json").write_text(EXPERIMENT)
    environment = {"EWAN_STATE": str(place / "state"), "NO_COLOR": "1"}
    modules = sorted({module_of(name) for name in cli.names()})
    with Server("ewan.cli", *modules, environment=environment) as server:

        def run(command: str, how: str) -> Done:
            streams = {str(number): path for number, path in REDIRECTIONS.get(how, {}).items()}
            return server.command(command.split(), place, streams=streams, encoding=ENCODINGS.get(how, "utf-8"))

        yield run


REDIRECTIONS: dict[str, dict[int, str | None]] = {
    "closed": {1: None},
    "full": {1: "/dev/full"},
    "no messages": {2: None},
    "full messages": {2: "/dev/full"},
    "nothing": {0: None, 1: None, 2: None},
}
ENCODINGS = {"Latin-1": "latin-1", "ASCII": "ascii"}


@pytest.mark.parametrize("command", SHOWS.values())
def test_a_full_output_is_one_line_and_a_status(run: Run, command: str) -> None:
    found = run(command, "full")
    assert found.err == f"ewan: {FULL}: not all was shown, give it a place with room\n"
    assert found.status == 1


@pytest.mark.parametrize("command", SHOWS.values())
@pytest.mark.parametrize("how", REDIRECTIONS)
def test_lost_output_has_a_status_and_no_traceback(run: Run, command: str, how: str) -> None:
    found = run(command, how)
    assert "Traceback" not in found.out + found.err
    assert "Exception ignored" not in found.err
    assert len(found.err.splitlines()) <= 1
    kept = how in ("no messages", "full messages")
    assert found.status == (0 if kept else 1), found.err
    assert bool(found.out) == kept
    if how == "closed":
        assert found.err == "ewan: standard output: is closed: not all was shown, give it a place with room\n"


@pytest.mark.parametrize("command", REFUSED.values())
@pytest.mark.parametrize("how", [*REDIRECTIONS, *ENCODINGS])
def test_a_refusal_stays_one(run: Run, command: str, how: str) -> None:
    found = run(command, how)
    assert found.status == 2
    assert found.out == ""
    assert len(found.err.splitlines()) == (0 if how in ("no messages", "full messages", "nothing") else 1)


@pytest.mark.parametrize("command", SHOWS.values())
@pytest.mark.parametrize("how", ENCODINGS)
def test_characters_that_an_encoding_lacks_are_replaced(run: Run, command: str, how: str) -> None:
    found = run(command, how)
    assert found.status == 0, found.err
    assert found.out
    assert "Traceback" not in found.err


# The same from the shell, of which a process forked by a test could be different.


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("lab compile star -o out >&-", 1, "ewan: standard output: is closed"),
        ("lab compile star -o out > /dev/full", 1, f"ewan: {FULL}"),
        ("lab compile star -o out > >(exec <&-; sleep 1)", 1, ""),
        ("lab compile star -o out >&- 2>&-", 1, ""),
        ("runs 2> /dev/full", 1, ""),
        ("runs 2> /dev/null", 0, ""),
    ],
)
def test_redirections_of_a_shell(tmp_path: Path, command: str, status: int, said: str) -> None:
    words = ["bash", "-c", f"{sys.executable} {ROOT / 'ewan/cli.py'} {command}"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == bool(said)
    if "compile" in command:  # a closed number 1 would be the first file that is opened, and get what is shown
        assert (tmp_path / "out/star.plan.json").read_bytes().rstrip().endswith(b"}")
