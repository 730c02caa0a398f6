"""What a command of the core imports before it works."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

from ewan import commands


@pytest.mark.parametrize("words", ["--version", "down --help", "ps --help"])
def test_a_command_of_the_core_looks_for_no_extra(words: str) -> None:
    text = f"import sys\nfrom ewan.cli import main\nmain({words.split()}, standalone_mode=False)\n"
    text += "print([name for name in sys.modules if name.startswith('importlib.metadata')])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "words", ["exp list --help", "lab verify --help", "lab dumbbell --help", "measure host --help"]
)
def test_a_command_of_a_group_looks_for_no_extra(words: str) -> None:
    """Libraries of these commands read the environment too, so that the question is put to the cache."""
    text = f"from ewan.cli import main\nmain({words.split()}, standalone_mode=False)\n"
    text += "from ewan.extra import installed\nprint(installed.cache_info().misses)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


@pytest.mark.parametrize("words", ["lab path --help", "lab exec --help"])
def test_a_command_of_the_group_lab_does_not_import_the_one_that_verifies(words: str) -> None:
    text = f"import sys\nfrom ewan.cli import main\nmain({words.split()}, standalone_mode=False)\n"
    text += "print('ewan.calibration.cli' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("words", "library"), [("ps --help", "polars"), ("lab set --help", "polars"), ("run --help", "matplotlib")]
)
def test_a_command_imports_no_library_before_it_needs_it(words: str, library: str) -> None:
    text = f"import sys\nfrom ewan.cli import main\nmain({words.split()}, standalone_mode=False)\n"
    text += "from ewan.labs.context import Context\n"
    text += f"Context.of({{'EWAN_STATE': '/nonexistent'}}).live()\nprint({library!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_help_lists_each_command_of_the_core() -> None:
    assert re.findall(r'case "([^"]+)":', inspect.getsource(commands.load)) == list(commands.NAMES)
