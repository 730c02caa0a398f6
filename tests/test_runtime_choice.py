"""Which runtime a command takes: what sudo keeps, what the environment says, which words the commands know."""

from __future__ import annotations

import dataclasses
import os
import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from ewan.experiments.engine import rerun
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.tests.origins import origin
from ewan.labs.base.product import ROOT
from ewan.labs.commands import live, up
from ewan.labs.commands.errors import Refused
from ewan.labs.commands.privileges import as_root, is_virtual
from ewan.labs.context import VARIABLES, Context
from ewan.labs.plan import Plan
from ewan.labs.record.experiment import Clock
from ewan.labs.render.dashboards import PORT_VARIABLES
from ewan.labs.runtime.base import NAMES


class Executed(Exception):  # noqa: N818 - stands for the end of this process
    pass


def test_sudo_keeps_what_names_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def execute(program: str, words: list[str]) -> None:
        called.extend(words)
        raise Executed

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "execvp", execute)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(Executed):
        as_root(Context.of({}))
    kept = next(word for word in called if word.startswith("--preserve-env=")).partition("=")[2].split(",")
    assert {"DOCKER_HOST", "EWAN_ENGINE", "EWAN_RUNTIME", "EWAN_NODE", "EWAN_STATE"} <= set(kept)
    assert set(PORT_VARIABLES.values()) <= set(VARIABLES)


def test_containers_are_of_the_live_clock() -> None:
    assert not is_virtual(dataclasses.replace(Context.of({}), runtime="containerlab"))
    assert set(NAMES) == {"auto", "netns", "containerlab", "virtual"}


@pytest.mark.parametrize("word", ["containerlab", "virtual"])
def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    seen: list[str] = []
    monkeypatch.setenv("EWAN_RUNTIME", word)
    monkeypatch.setattr(up, "as_root", lambda context: None)

    def brought_up(context: Context, plan: Plan) -> AbstractContextManager[Plan]:
        seen.append(context.runtime)
        return nullcontext(plan)

    monkeypatch.setattr(live, "brought_up", brought_up)
    told = Context.of({})
    result = CliRunner().invoke(up.up_command, ["dumbbell"], obj=told)
    # A lab of the virtual clock does not stay up, and `up` says so.
    assert (result.exit_code, seen) == ((0, [word]) if word == "containerlab" else (2, []))
    assert CliRunner().invoke(up.up_command, ["dumbbell", "--runtime", "netns"], obj=told).exit_code == 0
    assert seen[-1] == "netns"


@pytest.mark.parametrize(
    ("clock", "runtime", "wanted", "is_taken"),
    [
        ("live", "containerlab", None, "containerlab"),
        ("live", "containerlab", "netns", "netns"),
        ("live", "netns", "auto", "netns"),
        ("virtual", "virtual", None, "virtual"),
        ("virtual", "virtual", "virtual", "virtual"),
    ],
)
def test_a_repetition_is_made_as_the_first_was(
    clock: Clock, runtime: str, wanted: str | None, is_taken: str, tmp_path: Path
) -> None:
    before = Experiment.create(tmp_path, origin(runtime=runtime), clock)
    assert rerun.again_on(before, wanted) == is_taken


@pytest.mark.parametrize(("clock", "wanted"), [("virtual", "containerlab"), ("live", "virtual")])
def test_a_repetition_stays_in_its_clock(clock: Clock, wanted: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=f"--runtime {wanted}: the experiment was in the {clock} clock"):
        rerun.again_on(Experiment.create(tmp_path, origin(), clock), wanted)


INTERNAL = {
    "EWAN_CONTROLLER",
    "EWAN_CONTROLLER_RUN",
    "EWAN_SEED",
    "EWAN_DIRECTORY",
    "EWAN_FOLDER",
    "EWAN_OUT",
    "EWAN_EXEC",
    "EWAN_WORKER_ENDS",
    "EWAN_FAULT_AFTER",
    "EWAN_FAULT_LINK",
}
"""Variables that a process of ewan sets for another one, or that tests set."""


def test_the_reference_has_every_variable_that_the_source_reads() -> None:
    folders = ("labs", "generator", "calibration", "analysis", "experiments", "extras", "ewan")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if "tests" not in path.parts]
    found = {name for path in sources for name in re.findall(r'"(EWAN_[A-Z_]+)"', path.read_text())}
    assert found - INTERNAL <= set(VARIABLES)
