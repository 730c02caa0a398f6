"""A Python that the product starts imports nothing from the directory where it is started: others may write there."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.calibration.host import trials
from ewan.extras.studio.server.files import RefusedError
from ewan.extras.studio.server.jobs import Jobs
from ewan.extras.studio.server.reader import Reader
from ewan.generator import congestion
from ewan.labs.context import COMMAND
from tests.conftest import ROOT

PARTS = ("analysis", "calibration", "emulator", "experiments", "extras", "generator", "images", "labs")
IN_THE_PROJECT = {"labs/runtime/devices.py", "labs/hardware/catalogue.py"}
"""They start one with the project's own directory as its working directory."""
OF_USERS = {"labs/runtime/controllers.py"}
"""They start a program that the user names, which may import what lies beside it."""
OF_SHELL = re.compile(r"python3?[\"}]*\s+-[a-zA-Z]*[cm]\b")
PLANTED = ("ctypes", "importlib", "multiprocessing", "signal", "socket", "struct", "subprocess")


def product() -> Iterator[Path]:
    files = (path for part in PARTS for path in (ROOT / part).rglob("*.py"))
    yield from (path for path in files if "tests" not in path.relative_to(ROOT).parts)
    yield ROOT / "ewan" / "cli.py"


def starts(tree: ast.AST) -> Iterator[ast.expr]:
    """What follows a Python in lists of words; COMMAND begins with one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Starred) and ast.unparse(node.value) == "COMMAND":
            yield ast.copy_location(ast.Constant(COMMAND[1]), node)
        if isinstance(node, ast.List | ast.Tuple):
            for word, after in zip(node.elts, node.elts[1:], strict=False):
                if ast.unparse(word) in ("sys.executable", "workers.python"):
                    yield after


def texts(tree: ast.AST) -> Iterator[str]:
    """Its texts, without docstrings."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.value


def test_python_starts_no_python_that_imports_from_where_it_is_started() -> None:
    found = 0
    for path in product():
        tree, name = ast.parse(path.read_text()), str(path.relative_to(ROOT))
        for after in starts(tree):
            found += 1
            safe = isinstance(after, ast.Constant) and after.value in ("-P", "-I")
            assert safe or name in IN_THE_PROJECT | OF_USERS, (
                f"{name}:{after.lineno}: write -P after the name of the Python"
            )
        for text in texts(tree):
            assert not OF_SHELL.search(text), f"{name}: {text}: write -P or -I before -c and -m"
    assert found > 10


def test_scripts_start_one_only_in_the_project_itself() -> None:
    for path in (
        ROOT / name for name in subprocess.check_output(["git", "ls-files", "*.sh"], cwd=ROOT, text=True).split()
    ):
        text = path.read_text()
        for match in OF_SHELL.finditer(re.sub(r"(?m)^\s*#.*", "", text)):
            entered = re.search(r'(?m)^cd ("\$root"|"\$\(dirname "\$0"\)")', text)
            assert entered, f"{path}: {match[0]}: write -P, or enter the project's directory before"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with modules that somebody else left; the file that is there if one is imported."""
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "imported"


def test_trials_of_this_host_import_nothing_from_where_they_are_made(planted: Path) -> None:
    congestion.in_live()
    trials.live(os.geteuid() == 0)
    assert not planted.exists()


def test_processes_of_the_command_do_not_either(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    beside = tmp_path_factory.mktemp("beside")
    (beside / "sitecustomize.py").write_text(
        "import atexit, multiprocessing.util as of, sys\n"
        "atexit.register(lambda: sys.argv[0].endswith('cli.py') and print(of._args_from_interpreter_flags()))\n"
    )
    words = [sys.executable, str(ROOT / "ewan" / "cli.py"), "ps", "--help"]
    environment = dict(os.environ) | {"PYTHONPATH": str(beside)}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert "-P" in ended.stdout.splitlines()[-1] and not planted.exists()


def test_studio_imports_nothing_from_its_folder(planted: Path, tmp_path: Path) -> None:
    jobs, reader = Jobs(tmp_path / "jobs", os.environ, ("true",)), Reader(tmp_path, os.environ)
    jobs.start([])
    with pytest.raises(RefusedError, match="no-results"):
        reader.ask("about", "no-results")
    reader.close()
    end = time.monotonic() + 20
    while jobs.find("1").state == "running" and time.monotonic() < end:
        time.sleep(0.02)
    assert jobs.find("1").status == 0 and not planted.exists()
