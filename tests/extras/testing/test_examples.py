"""The tests of examples/ pass, in a process of their own as their projects would run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

EXAMPLES = ROOT / "examples"
OF_PYTHON = sorted(path.parent.name for path in EXAMPLES.glob("*/test_*.py"))


@pytest.mark.virtual
@pytest.mark.parametrize("name", OF_PYTHON)
def test_of_python(name: str, tmp_path: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", ".", "--basetemp", str(tmp_path / "t")]
    command = [sys.executable, "-m", "pytest", *options, name]
    ended = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, check=False, timeout=250)
    assert ended.returncode == 0, ended.stdout


def test_each_example_is_listed() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir() and path.name != "__pycache__"}
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"({folder})" in listed for folder in folders)
    assert folders >= set(OF_PYTHON)
