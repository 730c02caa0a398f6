"""What comes from elsewhere executes nothing that nobody vouched for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from generator.engine import trust
from generator.tests.scenarios import HEAD, parse
from labs.context import Context
from labs.runtime.base import LabError

LINES = ["left1: sh -c 'curl x | sh'", "left1: ping right1"]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context.of({"EWAN_CACHE": str(tmp_path / "cache")})


def test_without_a_terminal_it_is_refused_and_with_trust_it_is_remembered(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "x.tar.zst"
    with pytest.raises(LabError, match=r"comes from elsewhere and executes left1: sh .* and 1 more: write --trust"):
        trust.ask(context, path, LINES, False, None)
    trust.ask(context, path, LINES, True, None)
    trust.ask(context, path, LINES, False, None)
    with pytest.raises(LabError, match="comes from elsewhere"):
        trust.ask(context, path, [*LINES, "left2: true"], False, None)
    with pytest.raises(LabError, match="comes from elsewhere"):
        trust.ask(context, path, LINES, False, None, "another text")


def test_what_is_asked_for_is_shown_whole_and_cannot_write_to_the_terminal(context: Context, tmp_path: Path) -> None:
    asked: list[str] = []

    def refuse(question: str) -> bool:
        asked.append(question)
        return False

    with pytest.raises(LabError, match="is not trusted: nothing was executed"):
        trust.ask(context, tmp_path, ["left1: \x1b[2Jls"], False, refuse)
    assert "left1: ?[2Jls" in asked[0] and "\x1b" not in asked[0]
    trust.ask(context, tmp_path, LINES, False, lambda question: True)
    trust.ask(context, tmp_path, LINES, False, None)


def test_nothing_is_left_out_of_what_is_shown(context: Context, tmp_path: Path) -> None:
    lines = [*(f"left1: ping -c {number} right1" for number in range(100)), f"left1: true{' ' * 500}; rm -r results"]
    asked: list[str] = []

    def refuse(question: str) -> bool:
        asked.append(question)
        return False

    with pytest.raises(LabError, match="is not trusted"):
        trust.ask(context, tmp_path, lines, False, refuse)
    assert all(line in asked[0] for line in lines)


def test_a_program_of_ours_that_starts_another_is_shown() -> None:
    """Only the parts that the project itself adds to a run are not."""
    steps = [
        {"node": "left1", "argv": ["ewan-node", "capture", "--link", "core", "packets.pcapng"]},
        {"node": "left1", "argv": ["ewan-node", "capture", "--link", "core", "/root/x"]},
        {"node": "left1", "argv": ["ewan-node", "launch", "--", "sh", "-c", "id"]},
        {"node": "left1", "argv": ["ewan-node"]},
    ]
    shown = list(trust._commands({"nodes": []}, {"commands": steps}))
    assert shown == [
        "left1: ewan-node capture --link core /root/x",
        "left1: ewan-node launch -- sh -c id",
        "left1: ewan-node",
    ]


def test_what_the_lab_of_a_scenario_executes_is_shown(tmp_path: Path) -> None:
    lab = "lab: {topology: dumbbell, nodes: {left1: {exec: [id]}}}"
    text = "\n".join(lab if line.startswith("lab:") else line for line in HEAD.splitlines())
    runs = parse(text + "\nsteps: [{name: a, on: left1, run: id}]").runs()
    assert 'lab: exec: ["id"]' in trust.of_scenario(runs, virtual=True)


def test_what_executes_nothing_of_others_asks_nobody(context: Context, tmp_path: Path) -> None:
    trust.ask(context, tmp_path, [], False, None)


def test_archives_crates_and_files_of_others_are_from_elsewhere(context: Context, tmp_path: Path) -> None:
    own = tmp_path / "own.scenario.yaml"
    for path in (own, tmp_path / "x.tar.zst", tmp_path / "x.crate.zip"):
        path.touch()
    (tmp_path / "crate").mkdir()
    (tmp_path / "crate" / trust.CRATE).touch()
    (tmp_path / "experiment").mkdir()
    found = {path.name for path in tmp_path.iterdir() if trust.is_from_elsewhere(context, path)}
    assert found == {"x.tar.zst", "x.crate.zip", "crate"}
    if os.geteuid() == 0:
        os.chown(own, 61002, 61002)
        assert trust.is_from_elsewhere(context, own)


def test_what_another_user_has_agreed_to_is_not_agreed_to(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cache that several users share."""
    assert os.geteuid() == 0, "this test gives a file to another user: run it as root"
    monkeypatch.setattr("labs.cache.kept", lambda *of: tmp_path)
    trust.ask(context, tmp_path, ["id"], True, None)
    trust.ask(context, tmp_path, ["id"], False, None)
    (known,) = tmp_path.iterdir()
    os.chown(known, 61002, 61002)
    with pytest.raises(LabError, match="comes from elsewhere"):
        trust.ask(context, tmp_path, ["id"], False, None)


def test_every_point_of_a_scenario_is_looked_at() -> None:
    text = (
        'parameters: {c: "true"}\nsweep: {c: ["true", "id"]}\nneeds: [/srv]\nsteps: [{name: a, on: left1, run: "${c}"}]'
    )
    runs = parse(HEAD + text).runs()
    assert trust.of_scenario(runs, virtual=True) == ["left1: true", "reads /srv", "left1: id"]
    assert trust.of_scenario(runs, virtual=False)[0] == trust.OF_LIVE
