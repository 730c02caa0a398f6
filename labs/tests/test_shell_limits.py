"""Limits of a shell: too low ones are told in a line, before anything that cannot tell of them is imported."""

from __future__ import annotations

import errno
import resource
import subprocess

import pytest

from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.context import COMMAND


def ended(limit: int, soft: int, hard: int) -> tuple[int, str]:
    """The status of `ewan --version` within a limit, and what it says."""
    done = subprocess.run(
        [*COMMAND, "--version"],
        preexec_fn=lambda: resource.setrlimit(limit, (soft, hard)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("limit", "value", "says"),
    [
        (resource.RLIMIT_AS, 400_000 << 10, "ewan: address space: 400000 kB are allowed here, and "),
        (resource.RLIMIT_STACK, 64 << 10, "ewan: stack: 64 kB are allowed here, and 1024 kB are needed: "),
        (resource.RLIMIT_NOFILE, 16, "ewan: open files: 16 are allowed here, and 64 are needed: "),
    ],
)
def test_a_low_limit_is_one_line(limit: int, value: int, says: str) -> None:
    status, said = ended(limit, value, value)
    (line,) = said.splitlines()
    assert status == 2 and line.startswith(says) and "raise the limit (ulimit -" in line


def test_a_soft_one_is_raised() -> None:
    assert ended(resource.RLIMIT_NOFILE, 16, 64) == (0, "")


def test_too_many_open_files_are_told_with_what_to_do() -> None:
    @guarded
    def command() -> None:
        raise OSError(errno.EMFILE, "Too many open files", "x.csv")

    with pytest.raises(Refused) as refused:
        command()
    assert refused.value.message == "x.csv: Too many open files: raise the limit of open files (ulimit -n)"
