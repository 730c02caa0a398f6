"""Which runtime a command takes: what sudo keeps, what the environment says, which words the commands know."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from generator.engine import cli as engine_cli
from generator.engine.experiment import Experiment
from generator.tests.origins import origin
from labs import cli
from labs.commands import Refused
from labs.record.experiment import Clock


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
        cli.as_root()
    kept = next(word for word in called if word.startswith("--preserve-env=")).partition("=")[2].split(",")
    assert {"DOCKER_HOST", "EWAN_ENGINE", "EWAN_RUNTIME", "EWAN_NODE", "EWAN_STATE"} <= set(kept)


def test_containers_are_of_the_live_clock() -> None:
    assert not cli.is_virtual("containerlab")
    assert set(cli.RUNTIMES) == {"auto", "netns", "containerlab", "virtual"}


@pytest.mark.parametrize("word", ["containerlab", "virtual"])
def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    seen: list[str] = []
    monkeypatch.setenv("EWAN_RUNTIME", word)
    monkeypatch.setattr(cli, "as_root", lambda: None)
    monkeypatch.setattr(cli, "bring_up", lambda plan, choice: seen.append(choice))
    result = CliRunner().invoke(cli.up_command, ["dumbbell"])
    # A lab of the virtual clock does not stay up, and `up` says so.
    assert (result.exit_code, seen) == ((0, [word]) if word == "containerlab" else (2, []))
    assert CliRunner().invoke(cli.up_command, ["dumbbell", "--runtime", "netns"]).exit_code == 0
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
    assert engine_cli.again_on(before, wanted) == is_taken


@pytest.mark.parametrize(("clock", "wanted"), [("virtual", "containerlab"), ("live", "virtual")])
def test_a_repetition_stays_in_its_clock(clock: Clock, wanted: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=f"--runtime {wanted}: the experiment was in the {clock} clock"):
        engine_cli.again_on(Experiment.create(tmp_path, origin(), clock), wanted)
