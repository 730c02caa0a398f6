"""Signals that ask a command to end: each is sent to this process, at a point that the test chooses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from click.testing import CliRunner

from ewan.labs import rundir
from ewan.labs.base import interrupt
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.context import COMMAND


def come(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What came in one test is nobody's affair in the next one."""
    yield
    with interrupt.heeded():
        pass


def ended(work: Callable[[], Any]) -> tuple[int, str]:
    """The status of a command that does this work, and what it says."""

    @click.command()
    @guarded
    def command() -> None:
        work()

    result = CliRunner().invoke(command)
    return result.exit_code, result.output


def again() -> None:
    """Work that goes on after the first signal until all is tidy, and is asked to end once more meanwhile."""
    try:
        come()
    finally:
        come()
        click.echo("tidy")


def within_a_library() -> None:
    def default(_value: object) -> str:
        come()
        return ""

    orjson.dumps(object(), default=default)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_status_is_that_of_a_program_which_the_signal_ended(number: int) -> None:
    assert ended(lambda: come(number)) == (128 + number, "ewan: interrupted\n")


def test_a_second_one_disturbs_no_end() -> None:
    assert ended(again) == (130, "tidy\newan: interrupted\n")


def test_a_library_that_makes_another_error_of_it_is_no_matter() -> None:
    assert ended(within_a_library) == (130, "ewan: interrupted\n")


def test_an_error_that_follows_from_it_is_said_with_its_status() -> None:
    def work() -> None:
        with suppress(KeyboardInterrupt):
            come(signal.SIGTERM)
        raise Refused("the lab cannot be removed")

    assert ended(work) == (143, "ewan: the lab cannot be removed\n")


def test_what_was_made_is_named_where_anything_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def work() -> None:
        rundir.make("empty")
        (rundir.make("written") / "x").touch()
        come()

    status, said = ended(work)
    (left,) = Path("results").iterdir()
    assert (status, said) == (130, f"ewan: interrupted; what was written until then is in {left}\n")


def test_one_that_comes_in_a_part_waits_for_its_end() -> None:
    done = []
    with pytest.raises(interrupt.Interrupted) as raised, interrupt.deferred():
        with interrupt.deferred():
            come(signal.SIGTERM)
            done.append("inner")
        done.append("outer")
    assert (done, raised.value.number) == (["inner", "outer"], signal.SIGTERM)


def test_a_part_that_answers_it_has_no_more_of_it() -> None:
    with interrupt.deferred() as check:
        come()
        with pytest.raises(KeyboardInterrupt):
            check()
        check()


def test_what_is_passed_on_is_answered() -> None:
    passed: list[int] = []
    with interrupt.deferred(passed.append):
        come(signal.SIGTERM)
        come(signal.SIGINT)  # the terminal sends it to all
    assert passed == [signal.SIGTERM]


class Late:
    """Its end is a place where Python can raise nothing."""

    def __del__(self) -> None:
        come()


def test_one_that_is_lost_comes_again(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        Late()
        time.sleep(10)
        click.echo("nothing came")

    assert ended(work) == (130, "ewan: interrupted\n")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_comes_while_python_starts_ends_it_without_words(number: int) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, interrupt.SIGNALS)  # as the launcher does it
    try:
        process = subprocess.Popen([*COMMAND, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        process.send_signal(number)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (-number, b"")


def test_a_program_that_was_interrupted_dies_of_the_signal() -> None:
    program = (
        "import atexit, os, sys; from ewan.labs.base import interrupt; interrupt.begin()\n"
        "def work():\n"
        "    atexit.register(print, 'tidy')\n"
        "    try:\n"
        "        with interrupt.heeded(): os.kill(os.getpid(), 15)\n"
        "    except KeyboardInterrupt: sys.exit(143)\n"
        "interrupt.run(work)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(COMMAND[-1]).parent, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, b"tidy\n", b"")
