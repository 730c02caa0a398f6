"""Command lines for a machine's shell."""

from __future__ import annotations

import shlex
import subprocess

from ewan.extras.machines.processes import NUMBER, RemoteCommand
from ewan.extras.machines.results import CompletedProgram

WORDS = ["printf", "%s|", "a b", "it's", "$HOME", "*", "", "-n", "\n", "ü"]


def test_each_word_arrives_as_it_is() -> None:
    done = subprocess.run(["sh", "-c", RemoteCommand(WORDS).line(numbered=False)], capture_output=True, check=True)
    assert done.stdout.decode() == "a b|it's|$HOME|*||-n|\n|ü|"


def test_the_number_is_that_of_the_program() -> None:
    line = RemoteCommand(["sh", "-c", "echo $$; echo bad >&2"]).line(numbered=True)
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=True)
    found = NUMBER.search(done.stderr)
    assert found is not None
    assert found[1] == done.stdout.strip()
    assert NUMBER.sub(b"", done.stderr, count=1) == b"bad\n"


def test_sudo_stands_before_the_program_and_before_what_is_sent_after_it() -> None:
    command = RemoteCommand(["id", "-u"], ("sudo", "-n", "--"))
    assert command.line(numbered=False) == "exec sudo -n -- id -u"
    assert command.other(["kill", "-15", "--", "-7"]) == "exec sudo -n -- kill -15 -- -7"
    assert shlex.split(command.line(numbered=True))[-5:] == ["sudo", "-n", "--", "id", "-u"]


def test_messages_have_the_last_line_that_says_something() -> None:
    assert CompletedProgram(1, b"out\n", b"first\nwhy\n\n").said == "why"
    assert CompletedProgram(1, b"out\n", b"\n").said == "out"
    assert CompletedProgram(1, b"", b"").said == "it printed nothing"
    assert str(RemoteCommand(["sh", "-c", "x" * 100])).endswith("…")
    assert len(str(RemoteCommand(["sh", "-c", "x" * 100]))) == 60
