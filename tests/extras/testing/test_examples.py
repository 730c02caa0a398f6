"""The tests of examples/ pass, in a process of their own as their projects would run them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ewan.labs.base import cache, writing
from tests.conftest import ROOT, Ewan

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


def fetch(target: Path) -> Path:
    """The program of examples/quinn, built once for all clones: of the same sources it is the same."""
    folder = EXAMPLES / "quinn"
    sources = [folder / "Cargo.lock", folder / "Cargo.toml", *sorted((folder / "src").iterdir())]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    kept = cache.kept(os.environ, "examples", ROOT) / digest
    if not kept.exists():
        command = ["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(target)]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=290)
        built = next(path for path in target.rglob("release/fetch") if path.is_file())
        writing.write(kept, built.read_bytes())
        kept.chmod(0o755)
    return kept


@pytest.mark.virtual
def test_of_rust(ewan: Ewan, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / "quinn", project, ignore=shutil.ignore_patterns("target", "results"))
    (project / "target/release").mkdir(parents=True)
    shutil.copy(fetch(tmp_path / "target"), project / "target/release/fetch")
    ended = ewan("test", "network.test.yaml", cwd=project)
    assert ended.returncode == 0, ended.stderr
    assert "5 of 5 passed" in ended.stderr
