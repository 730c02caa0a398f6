"""A lab or a scenario by its name: the file of the current directory, then that of labs/library."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.generator.scenario import DescriptionError, find, parse
from ewan.labs.base.product import LIBRARY
from ewan.labs.spec import names
from tests.conftest import Ewan

LAB = "topology: dumbbell\nrtt: 7ms\n"
SCENARIO = """
lab: own
steps:
  - {name: probe, on: left1, run: ping -c 1 right1}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a lab `my` and a scenario `my`, which is the current one."""
    (tmp_path / "my.lab.yaml").write_text(LAB)
    (tmp_path / "my.scenario.yaml").write_text(
        "lab: dumbbell\nsteps: [{name: bulk, from: left1, to: left9, for: 1s, bulk: }]\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("ending", [names.LAB, names.SCENARIO])
def test_a_name_is_looked_for_here_and_then_in_the_library(place: Path, ending: str) -> None:
    library = next(file for file in sorted(LIBRARY.glob(f"*{ending}")))
    ready = library.name.removesuffix(ending)
    assert names.find("my", ending) == Path(f"my{ending}")
    assert names.find(ready, ending) == library
    (place / library.name).write_text("")
    assert names.find(ready, ending) == Path(library.name)
    assert names.find(f"./my{ending}", ending) == Path(f"my{ending}")
    assert names.find("./my", ending) == Path(f"my{ending}")
    assert {"my", ready} <= set(names.known(ending))


@pytest.mark.parametrize("word", ["", ".", "..", "nothing", "x" * 300, "my.lab"])
def test_what_is_no_name_is_not_found(place: Path, word: str) -> None:
    assert names.find(word, names.LAB) is None


def test_compile_finds_a_lab_of_the_current_directory(ewan: Ewan, place: Path) -> None:
    result = ewan("lab", "compile", "my", "-o", "out", cwd=place)
    assert result.returncode == 0, result.stderr
    assert (place / "out/my.plan.json").exists() and "7ms" in result.stdout


def test_run_finds_a_scenario_of_the_current_directory(ewan: Ewan, place: Path) -> None:
    result = ewan("run", "my", cwd=place)
    assert result.returncode == 2
    assert "my.scenario.yaml:2: steps[0].to" in result.stderr and "left9" in result.stderr


def test_the_template_is_meant_by_its_name_and_the_file_is_told_of(ewan: Ewan, place: Path) -> None:
    (place / "dumbbell.lab.yaml").write_text(LAB)
    template = ewan("lab", "compile", "dumbbell", "-o", "out", cwd=place)
    assert template.returncode == 0 and "100ms" in template.stdout
    assert "./dumbbell.lab.yaml" in template.stderr
    file = ewan("lab", "compile", "./dumbbell.lab.yaml", "-o", "out", cwd=place)
    assert file.returncode == 0 and "7ms" in file.stdout and file.stderr == ""


@pytest.mark.parametrize("words", [["lab", "compile", "mi"], ["lab", "myy"], ["run", "mi"], ["run", "myy"]])
def test_a_wrong_name_gives_those_that_are_near(ewan: Ewan, place: Path, words: list[str]) -> None:
    for ending in (names.LAB, names.SCENARIO):
        (place / f"mine{ending}").write_text(LAB)
    result = ewan(*words, cwd=place)
    assert result.returncode == 2
    assert ('"mine"' if words[-1] == "mi" else '"my"') in result.stderr and len(result.stderr.strip().splitlines()) == 1


def test_several_near_names_are_all_told() -> None:
    assert names.near("udp", ["udp-cbr", "udp-laws", "star"], names.SCENARIO) == 'write "udp-cbr" or "udp-laws"'
    assert "path of a file (*.lab.yaml)" in names.near("zzz", ["star"], names.LAB)


def test_a_scenario_finds_the_lab_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "any.scenario.yaml"
    with pytest.raises(DescriptionError, match="no such lab"):
        list(parse(SCENARIO, file).runs())
    (tmp_path / "own.lab.yaml").write_text(LAB)
    (run,) = parse(SCENARIO, file).runs()
    assert str(run.spec.description.rtt) == "7ms"


def test_find_takes_paths(place: Path) -> None:
    assert find(place / "my.scenario.yaml") == place / "my.scenario.yaml"
    assert find("nowhere/my.scenario.yaml") == Path("nowhere/my.scenario.yaml")
