"""What `ewan new` writes works as it is written: installed by pip, its tests pass, and the product knows it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner

from ewan.cli import main
from ewan.labs.context import Context

pytestmark = pytest.mark.slow
PIP = """#!{python}
import sys
from pip._internal.cli.main import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an extra, a metric and a scenario. The first two are installed by the commands that are printed,
    into an environment `.venv` that has all packages of this one and does not change it."""
    place = tmp_path_factory.mktemp("new")
    python = place / ".venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / ".venv"], check=True)
    (packages,) = place.glob(".venv/lib/python*/site-packages")
    (packages / "below.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    pip = place / ".venv/bin/pip"
    pip.write_text(PIP.format(python=python))
    pip.chmod(0o755)
    for words in (["scenario", "two-controls"], ["extra", "hello"], ["metric", "largest-share"]):
        made = program("-m", "ewan", "new", *words, place=place)
        assert made.returncode == 0, made.stderr
        if words[0] != "scenario":
            command = made.stderr.partition("install it: ")[2].partition(";")[0]
            done = subprocess.run(command, shell=True, cwd=place, env=environment(), capture_output=True, text=True)
            assert command and done.returncode == 0, f"{command}: {done.stderr}"
    return place


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_INDEX": "1"}


def program(*words: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Runs the Python of the environment into which the skeletons are installed."""
    python = place / ".venv/bin/python"
    return subprocess.run([python, *words], cwd=place, env=environment(), capture_output=True, text=True)


@pytest.mark.parametrize("folder", ["hello", pytest.param("largest-share", marks=pytest.mark.virtual)])
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
