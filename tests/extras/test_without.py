"""The product without an extra: its commands are not there, everything else is."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from ewan.extra import Extra, installed
from tests.architecture import PICTURE, ROOT, picture

pytestmark = pytest.mark.slow

EXTRAS = tuple(installed().usable)
STANDS_ON = {"suites": ("papers",)}
"""Extras that import another one."""
BLOCKED = """
import importlib.abc, sys

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if any(name == blocked or name.startswith(blocked + ".") for blocked in {blocked}):
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Block())
from ewan.cli import main, names
if {words} == ["names"]:
    print(*names(), sep="\\n")
else:
    main({words}, prog_name="ewan")
"""


LIST = ["names"]
"""In place of a command: the names of all commands are printed, one in each line."""


def run(blocked: list[str], words: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of the product, of which these extras cannot be imported."""
    program = BLOCKED.format(blocked=[f"ewan.extras.{name}" for name in blocked], words=words)
    return subprocess.run([sys.executable, "-c", program], cwd=place, capture_output=True, text=True)


def commands(text: str) -> set[str]:
    """The names of commands, a line each."""
    return {line.strip() for line in text.splitlines()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """All commands of the product."""
    return commands(run([], LIST, tmp_path_factory.mktemp("whole")).stdout)


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_that_cannot_be_imported_takes_only_its_own_commands_away(
    name: str, whole: set[str], tmp_path: Path
) -> None:
    assert run([name], ["--help"], tmp_path).returncode == 0
    done = run([name], LIST, tmp_path)
    known = installed().usable
    own = {command for each in (name, *STANDS_ON.get(name, ())) for command in known[each].commands}
    assert done.returncode == 0
    assert whole - own <= commands(done.stdout) <= whole - set(known[name].commands)
    assert f"the extra {name} (ewan.extras.{name}:EXTRA) cannot be used: ImportError" in done.stderr


def test_a_lab_runs_without_any_extra(tmp_path: Path) -> None:
    done = run(list(EXTRAS), ["lab", "compile", "dumbbell", "--rtt", "100ms", "-o", "out"], tmp_path)
    assert done.returncode == 0 and not done.stderr
    assert (tmp_path / "out/dumbbell.plan.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "dumbbell", "--machines", "m.yaml"], "labs over several machines need an extra that makes them"),
        (["run", "udp-cbr", "--cluster", "w.yaml"], "--cluster needs an extra that executes runs on other machines"),
        (["suite", "hstts"], "No such command 'hstts'"),
    ],
)
def test_what_only_an_extra_does_is_refused_in_one_line(words: list[str], said: str, tmp_path: Path) -> None:
    for name in ("m.yaml", "w.yaml"):
        (tmp_path / name).write_text("x: 1\n")
    done = run(list(EXTRAS), words, tmp_path)
    assert done.returncode == 2
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_picture_of_the_architecture_is_of_the_code() -> None:
    assert PICTURE.read_text() == picture(), "draw it again: python -m tests.architecture"


def test_the_page_of_extras_has_each_field_of_the_contract() -> None:
    page = (ROOT / "docs/contribute/adding/extra.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [each.name for each in fields(Extra)]
