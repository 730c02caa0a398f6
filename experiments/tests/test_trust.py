"""An experiment from elsewhere executes nothing before the user vouches for it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.experiments.engine import preparation, source
from ewan.experiments.engine import trust as of_experiments
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.tests.origins import origin
from ewan.generator.scenario import schedule
from ewan.generator.tests.scenarios import HEAD, parse
from ewan.labs import descriptions, trust
from ewan.labs.base import reading
from ewan.labs.base.errors import UserError
from ewan.labs.context import Context
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Command, Program

ASKED = orjson.dumps({"file": "x.scenario.yaml", "scale": None, "settings": {}, "seeds": None})
LINES = ["left1: sh -c 'curl x | sh'", "left1: ping right1"]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context.of({"EWAN_CACHE": str(tmp_path / "cache")})


def given_away(path: Path) -> None:
    """The file belongs to another user from now on."""
    assert os.geteuid() == 0, "this test gives files to another user: run it as root"
    os.chown(path, 61002, 61002)


def experiment_in(directory: Path, seed: int) -> Experiment:
    """A stored experiment of the virtual clock with one command and this seed."""
    directory.mkdir()
    runs = parse(f"{HEAD}seeds: [{seed}]\nsteps: [{{name: a, on: left1, run: id}}]").runs()
    experiment = Experiment.create(directory, origin(), "virtual")
    for job in preparation.jobs(runs, virtual=True):
        experiment.add(job)
    experiment.save()
    return experiment


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
    """Only the parts that the project itself adds to a run are not shown."""
    steps = [
        ("ewan-node", "capture", "--link", "core", "packets.pcapng"),
        ("ewan-node", "capture", "--link", "core", "/root/x"),
        ("ewan-node", "launch", "--", "sh", "-c", "id"),
        ("ewan-node",),
    ]
    program = Program(commands=tuple(Command("left1", argv) for argv in steps))
    assert list(of_experiments._of_program(program, True)) == [
        "left1: ewan-node capture --link core /root/x",
        "left1: ewan-node launch -- sh -c id",
        "left1: ewan-node",
    ]


def test_all_that_decides_what_a_lab_executes_is_shown(tmp_path: Path) -> None:
    (tmp_path / "driver").write_text("#!/bin/sh")
    own = {
        "exec": [["id", "-u"]],
        "env": {"BASH_FUNC_ping%%": "() { id; }"},
        "cmd": ["nginx"],
        "entrypoint": ["sh"],
        "image": "app:1",
        "binds": [{"source": "/root", "target": "/mnt"}],
    }
    service = {"argv": ["sh", "{run}/go"], "files": {"go": "id\n", "long": "x" * 9999}}
    lines = trust.of_plan(
        {
            "nodes": [{"name": "left1", "own": own, "services": [service]}],
            "hardware": [{"link": "core", "driver": str(tmp_path / "driver")}],
        }
    )
    text = "\n".join(lines)
    for shown in (
        "left1: id -u",
        'left1: env: {"BASH_FUNC_ping%%":"() { id; }"}',
        'left1: cmd: ["nginx"]',
        'left1: entrypoint: ["sh"]',
        'left1: image: "app:1"',
        'left1: binds: [{"source":"/root","target":"/mnt"}]',
        "left1: sh '{run}/go'",
        'left1: {run}/go: "id\\n"',
        "left1: {run}/long: 9999 letters with the SHA-256 ",
        f'core: driver: {{"link":"core","driver":"{tmp_path}/driver"}} with the SHA-256 ',
    ):
        assert shown in text


def test_what_the_lab_of_a_scenario_executes_is_shown(tmp_path: Path) -> None:
    lab = "lab: {topology: dumbbell, nodes: {left1: {exec: [id], env: {PATH: /tmp}}}}"
    text = "\n".join(lab if line.startswith("lab:") else line for line in HEAD.splitlines())
    runs = parse(text + "\nsteps: [{name: a, on: left1, run: id}]").runs()
    lines, _ = of_experiments.of_scenario(runs, virtual=True)
    assert lines == ["left1: id", 'left1: env: {"PATH":"/tmp"}']


def test_what_executes_nothing_of_others_asks_nobody(context: Context, tmp_path: Path) -> None:
    trust.ask(context, tmp_path, [], False, None)


def test_an_archive_is_asked_about_again_where_its_plan_differs(context: Context, tmp_path: Path) -> None:
    """The commands are the same, and something else decides the programs that they execute."""
    texts = []
    for name, seed in (("one", 1), ("two", 2)):
        experiment = experiment_in(tmp_path / name, seed)
        lines, text = of_experiments.of_experiment(experiment)
        texts.append((lines, text))
    assert texts[0][0] == texts[1][0] and texts[0][1] != texts[1][1]


@pytest.mark.parametrize("name", ["", "experiment.json", "runs/001/plan.json", "runs/001/program.json"])
def test_each_file_of_a_directory_counts(context: Context, tmp_path: Path, name: str) -> None:
    experiment = experiment_in(tmp_path / "one", 1)
    of_experiments.ask_for_experiment(context, experiment.directory, experiment)
    given_away(experiment.directory / name)
    with pytest.raises(LabError, match=r"comes from elsewhere and executes left1: id"):
        of_experiments.ask_for_experiment(context, experiment.directory, experiment)


def test_the_lab_of_which_going_on_makes_further_runs_counts(context: Context, tmp_path: Path) -> None:
    lab = tmp_path / "x.lab.yaml"
    lab.write_text("topology: dumbbell\nnodes: {left1: {exec: [id]}}\n")
    experiment = experiment_in(tmp_path / "one", 1)
    stop = "stop: {metric: mean goodput, within: 5%}\nsteps: [{name: a, from: left1, to: right1, for: 1s, bulk: }]"
    (experiment.directory / source.SCENARIO).write_text(f"lab: {lab}\n{stop}\n")
    asked: dict[str, Any] = {"file": str(tmp_path / "x.scenario.yaml"), "scale": None, "settings": {}, "seeds": None}
    (experiment.directory / source.SETTINGS).write_bytes(orjson.dumps(asked))
    of_experiments.ask_for_experiment(context, experiment.directory, experiment, resumed=True)
    given_away(lab)
    with pytest.raises(LabError, match=r"comes from elsewhere and executes left1: id"):
        of_experiments.ask_for_experiment(context, experiment.directory, experiment, resumed=True)


def test_archives_and_crates_are_from_elsewhere(tmp_path: Path) -> None:
    for name in ("x.tar.zst", "x.crate.zip"):
        (tmp_path / name).touch()
    (tmp_path / "crate").mkdir()
    (tmp_path / "crate" / of_experiments.CRATE).touch()
    (tmp_path / "experiment").mkdir()
    found = {path.name for path in tmp_path.iterdir() if of_experiments.is_from_elsewhere(path)}
    assert found == {"x.tar.zst", "x.crate.zip", "crate"}


def test_the_lab_of_another_user_in_a_scenario_of_ones_own_is_asked_for(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = tmp_path / "x.lab.yaml"
    lab.write_text("topology: dumbbell\nnodes: {left1: {exec: [id]}}\n")
    text = "\n".join(f"lab: {lab}" if line.startswith("lab:") else line for line in HEAD.splitlines())
    scenario = parse(text + "\nsteps: [{name: a, on: left1, run: pwd}]")
    of_experiments.ask_for_scenario(context, scenario.runs(), virtual=True)
    given_away(lab)
    with pytest.raises(LabError, match=rf"{lab}: comes from elsewhere and executes left1: pwd and 1 more"):
        of_experiments.ask_for_scenario(context, scenario.runs(), virtual=True)
    trusting = dataclasses.replace(context, trusted=True)
    of_experiments.ask_for_scenario(trusting, scenario.runs(), virtual=True)
    of_experiments.ask_for_scenario(context, scenario.runs(), virtual=True)
    lab.write_text("topology: dumbbell\nrtt: 7ms\nnodes: {left1: {exec: [id]}}\n")
    with pytest.raises(UserError, match="was changed after you were asked about it"):
        _ = scenario.runs()[0]
    monkeypatch.setattr(reading, "_held", {})  # as in another process
    with pytest.raises(LabError, match="comes from elsewhere"):
        of_experiments.ask_for_scenario(context, scenario.runs(), virtual=True)


def test_a_lab_of_another_user_is_asked_for(context: Context, tmp_path: Path) -> None:
    lab = tmp_path / "x.lab.yaml"
    lab.write_text("topology: dumbbell\nnodes: {left1: {exec: [id]}}\n")
    descriptions.trusted_plan_of(context, str(lab), {}, virtual=True)
    given_away(lab)
    with pytest.raises(LabError, match=rf"{lab}: comes from elsewhere and executes left1: id: write --trust"):
        descriptions.trusted_plan_of(context, str(lab), {}, virtual=True)
    with pytest.raises(LabError, match=f"executes {trust.OF_LIVE} and 1 more"):
        descriptions.trusted_plan_of(context, str(lab), {}, virtual=False)


def test_a_file_of_workers_of_another_user_is_asked_for(context: Context, tmp_path: Path) -> None:
    file = tmp_path / "workers.yaml"
    file.write_text("engine: local\n\ncores: 1\n")
    trust.ask_for_file(context, file)
    given_away(file)
    with pytest.raises(LabError, match=r"executes workers.yaml: engine: local and 1 more: write --trust"):
        trust.ask_for_file(context, file)


def test_an_answer_that_another_user_wrote_into_the_cache_counts_for_nothing(context: Context, tmp_path: Path) -> None:
    trust.ask(context, tmp_path, LINES, True, None)
    for answer in (tmp_path / "cache" / trust.KIND).iterdir():
        given_away(answer)
    with pytest.raises(LabError, match="comes from elsewhere"):
        trust.ask(context, tmp_path, LINES, False, None)


def test_what_another_user_has_agreed_to_is_not_agreed_to(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several users share the cache."""
    assert os.geteuid() == 0, "this test gives a file to another user: run it as root"
    monkeypatch.setattr("ewan.labs.base.cache.kept", lambda *of: tmp_path)
    trust.ask(context, tmp_path, ["id"], True, None)
    trust.ask(context, tmp_path, ["id"], False, None)
    (known,) = tmp_path.iterdir()
    os.chown(known, 61002, 61002)
    with pytest.raises(LabError, match="comes from elsewhere"):
        trust.ask(context, tmp_path, ["id"], False, None)


def test_an_answer_is_to_one_question_and_stands_where_nobody_else_writes(context: Context, tmp_path: Path) -> None:
    """Another user can give a file of ours another name where he can write, and does not thereby answer for us."""
    trust.ask(context, tmp_path, LINES, True, None)
    answers = tmp_path / "cache" / trust.KIND
    (known,) = answers.iterdir()
    trust.ask(context, tmp_path, ["id"], True, None)
    (other,) = set(answers.iterdir()) - {known}
    known.rename(other)
    with pytest.raises(LabError, match="comes from elsewhere"):
        trust.ask(context, tmp_path, ["id"], False, None)
    trust.ask(context, tmp_path, ["id"], True, None)
    trust.ask(context, tmp_path, ["id"], False, None)
    for place in (answers, answers.parent):
        given_away(place)
        with pytest.raises(LabError, match="comes from elsewhere"):
            trust.ask(context, tmp_path, ["id"], False, None)
        os.chown(place, os.geteuid(), os.getegid())
    answers.parent.chmod(0o777)
    with pytest.raises(LabError, match="comes from elsewhere"):
        trust.ask(context, tmp_path, ["id"], False, None)
    answers.parent.chmod(0o1777)
    answers.chmod(0o777)
    trust.ask(context, tmp_path, ["id"], False, None)
    assert answers.stat().st_mode & 0o077 == 0


def test_who_has_no_cache_is_asked_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(trust, "ROOT", tmp_path / "file")
    context = Context.of({"HOME": "/dev/null"})
    trust.ask(context, tmp_path, LINES, True, None)
    with pytest.raises(LabError, match="comes from elsewhere"):
        trust.ask(context, tmp_path, LINES, False, None)


@pytest.mark.parametrize("content", [b"\xff", b"x" * (reading.MOST_TEXT + 1), None])
def test_a_stored_scenario_that_cannot_be_read_is_one_line(
    content: bytes | None, context: Context, tmp_path: Path
) -> None:
    experiment = experiment_in(tmp_path / "one", 1)
    (experiment.directory / source.SETTINGS).write_bytes(b"{}" if content is None else ASKED)
    (experiment.directory / source.SCENARIO).write_bytes(content or b"")
    with pytest.raises(LabError, match=r"settings.json|scenario.yaml: is damaged"):
        of_experiments.ask_for_experiment(context, experiment.directory, experiment, resumed=True)


@pytest.mark.parametrize(("key", "times"), [("commands", {"at_ns": 0, "service": False}), ("prepare", {})])
def test_a_stored_command_without_words_is_one_line(key: str, times: dict[str, object], tmp_path: Path) -> None:
    experiment = experiment_in(tmp_path / "one", 1)
    file = experiment.place(experiment.runs[0]) / "program.json"
    program = orjson.loads(file.read_bytes())
    program[key] = [{"node": "left1", "argv": [], **times}]
    file.write_bytes(orjson.dumps(program))
    experiment.record(file)
    with pytest.raises(LabError, match="a command without words"):
        of_experiments.of_experiment(experiment)
    assert not trust.is_own([])


def test_what_is_needed_is_asked_about_again_where_it_leads_elsewhere(context: Context, tmp_path: Path) -> None:
    link = tmp_path / "data"
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        runs = parse(f"{HEAD}needs: [{link}]\nsteps: [{{name: a, on: left1, run: id}}]").runs()
        found.append(of_experiments.of_scenario(runs, virtual=True)[0])
        (job,) = preparation.jobs(runs, virtual=True)
        assert job.program.needs == (str(link), str(tmp_path / name))
        link.unlink()
        link.symlink_to("/")
        (job,) = preparation.jobs(runs, virtual=True)
        assert job.program.needs == (str(link), str(tmp_path / name)), "as somebody was asked"
        schedule._led.cache_clear()  # as in another process
    assert found == [["left1: id", f"reads {link}", f"reads {tmp_path / name}"] for name in ("one", "two")]


def test_every_point_of_a_scenario_is_looked_at() -> None:
    text = (
        'parameters: {c: "true"}\nsweep: {c: ["true", "id"]}\nneeds: [/srv]\nsteps: [{name: a, on: left1, run: "${c}"}]'
    )
    runs = parse(HEAD + text).runs()
    assert of_experiments.of_scenario(runs, virtual=True)[0] == ["left1: true", "reads /srv", "left1: id"]
    assert of_experiments.of_scenario(runs, virtual=False)[0][0] == trust.OF_LIVE


def test_the_source_of_a_module_is_asked_for_and_counts(tmp_path: Path) -> None:
    """Its lines and its bytes decide: a scenario, and the experiment of it, name the same."""
    text = (
        f"{HEAD}cc: {{mine: {{source: {tmp_path}/tcp_mine.c}}}}\n"
        "steps: [{name: a, from: left1, to: right1, for: 1s, congestion: mine, bulk: }]"
    )
    questions, digests = [], []
    for content in ("int a;", "int b;"):
        (tmp_path / "tcp_mine.c").write_text(content)
        runs = parse(text).runs()
        lines, digest = of_experiments.of_scenario(runs, virtual=True)
        digests.append(digest)
        job = next(preparation.jobs(runs, virtual=True))
        assert lines == list(of_experiments._of_program(job.program, True))
        questions.append(lines[0])
    assert len(set(questions)) == len(set(digests)) == 2
    assert all("in the virtual kernel: the module of tcp_mine.c, SHA-256 " in each for each in questions)
