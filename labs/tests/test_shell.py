"""Values in commands: words, whatever a shell would make of their characters."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ewan.labs.base.shell import argv, put_in

REFERENCE = re.compile(r"\$\{([a-z]+)\}")
ACTIVE = [
    "$(touch made)",
    "`touch made`",
    "; touch made",
    "| touch made",
    "> made",
    "*",
    "~",
    "it's",
    'say "',
    "a\\",
    "'",
]


def words_of(command: str, value: str, place: Path) -> list[str]:
    """The arguments that printf has when the command is run as a node runs it."""
    text = put_in(command, REFERENCE, {"a": value})
    done = subprocess.run(argv(text), capture_output=True, text=True, check=True, cwd=place)
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize("value", ACTIVE)
@pytest.mark.parametrize("more", ["", " | cat"], ids=["alone", "in a shell"])
def test_a_value_is_words_and_never_a_command(value: str, more: str, tmp_path: Path) -> None:
    assert words_of(f"printf '%s\\0' ${{a}}{more}", value, tmp_path) == value.split()
    assert words_of(f"printf '%s\\0' \"x ${{a}} y\"{more}", value, tmp_path) == [f"x {value} y"]
    assert words_of(f"printf '%s\\0' 'x ${{a}} y'{more}", value, tmp_path) == [f"x {value} y"]
    assert not list(tmp_path.iterdir())


def test_several_words_stay_several_and_quotes_join_them(tmp_path: Path) -> None:
    assert words_of("printf '%s\\0' ${a}", "-c 3  -i 0.2", tmp_path) == ["-c", "3", "-i", "0.2"]
    assert words_of("printf '%s\\0' ${a}", "-t 'two words'", tmp_path) == ["-t", "two words"]
    assert words_of("printf '%s\\0' x ${a}", "", tmp_path) == ["x"]
    assert put_in("ping -c ${a} right${a}", REFERENCE, {"a": 3}) == "ping -c 3 right3"
