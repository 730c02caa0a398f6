"""What `ewan new` writes works as it is written: installed by pip, its tests pass, and the product knows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ewan.cli import main
from ewan.labs.context import Context
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an extra, a metric and a scenario, of which the first two are installed in `site`."""
    place = tmp_path_factory.mktemp("new")
    for words in (["extra", "hello"], ["metric", "largest-share"], ["scenario", "two-controls"]):
        assert program("-m", "ewan", "new", *words, place=place).returncode == 0
    pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", "site"]
    done = program(*pip, "./hello", "./largest-share", place=place)
    assert done.returncode == 0, done.stderr
    return place


def program(*words: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python with what is installed in `site`."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{place / 'site'}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *words], cwd=place, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("folder", ["hello", "largest-share"])
def test_the_tests_of_a_skeleton_pass(folder: str, place: Path) -> None:
    done = program("-m", "pytest", "-q", "-p", "no:cacheprovider", f"{folder}/tests", place=place)
    assert done.returncode == 0, done.stdout


def test_the_product_has_the_command_of_an_extra(place: Path) -> None:
    assert "hello" in program("-m", "ewan", "--help", place=place).stdout
    done = program("-m", "ewan", "hello", "star", place=place)
    assert done.stdout.startswith("star: ") and done.returncode == 0


def test_scenarios_may_name_the_metric_of_an_extra(place: Path) -> None:
    file = place / "two-controls.scenario.yaml"
    file.write_text(file.read_text().replace("[utilisation,", "[largest share, utilisation,"))
    done = program("-m", "ewan", "run", str(file), "--show", place=place)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["extra", "Hello"], "write small letters, digits and hyphens, beginning with a letter"),
        (["scenario", "../x"], "write small letters, digits and hyphens, beginning with a letter"),
        (["topology", "x"], "is not one of 'extra', 'metric', 'scenario'"),
    ],
)
def test_a_name_that_cannot_be_is_refused(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["new", *words], obj=Context.of(os.environ))
    assert said in str(done.output) + str(done.exception)


def test_nothing_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hello").mkdir()
    done = CliRunner().invoke(main, ["new", "extra", "hello"], obj=Context.of(os.environ))
    assert "hello is there already" in str(done.output) + str(done.exception)
    assert not any((tmp_path / "hello").iterdir())
