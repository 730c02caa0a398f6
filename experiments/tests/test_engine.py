"""An experiment's directory: stored files are read back, and the remains of a killed command are replaced."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.experiments.engine import engine, outcome, preparation
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Facts
from ewan.experiments.tests.engines import CONTEXT, jobs, parts
from ewan.experiments.tests.origins import origin
from ewan.generator import readers
from ewan.labs.link import Change
from ewan.labs.record import disturbances, tables
from ewan.labs.record.events import link_change
from ewan.labs.record.experiment import INPUTS
from ewan.labs.record.summary import Summary
from ewan.labs.record.traffic import TrafficRequest
from ewan.labs.runtime import program as programs
from ewan.labs.runtime import run_directory as occupied_module
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Command, DisturbanceWatch, Preparation, Program
from ewan.labs.runtime.run_directory import occupied, root_of
from ewan.labs.runtime.virtual import VirtualRuntime


def test_a_program_is_read_back_as_it_was_written() -> None:
    program = Program(
        commands=(Command("left1", ("ping", "right1"), 5, True),),
        prepare=(Preparation("left1", ("true",)),),
        events=(link_change(7, "core", "forward", Change(rate_bps=1)),),
        traffic=TrafficRequest(clock="virtual", cpus=(1,), seed=5, longest_ns=9, flows=()),
        longest_ns=9,
        expected_ns=8,
        watch_ns=3,
        disturbances=DisturbanceWatch(10, 11),
    )
    assert programs.from_json(program.to_json(), 8) == program
    assert programs.from_json(program.to_json(), 8).to_json() == program.to_json()
    with pytest.raises(ValueError, match="format"):
        programs.from_json(b'{"format": "ewan-program/0"}', 0)


def test_what_was_killed_before_its_document_was_there_has_not_begun(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path, origin(), "virtual")
    made.add(jobs()[0])
    with pytest.raises(LabError, match=r"the experiment had not begun when it ended: run it once more$"):
        Experiment.load(tmp_path)


def test_tables_that_the_document_does_not_record_are_made_again(tmp_path: Path) -> None:
    """A crash between a run's tables and the document leaves such tables."""

    def crash(place: Path) -> Summary:
        raise KeyboardInterrupt

    facts, whole = Facts({}, origin(scenario="engine")), parts("ok")
    with pytest.raises(KeyboardInterrupt):
        crashing = dataclasses.replace(whole, analyse=crash)
        prepared = preparation.prepare(jobs(), facts, virtual=True, directory=tmp_path)
        engine.run(prepared, parts=crashing, context=CONTEXT)
    written = {path: path.read_bytes() for path in tmp_path.glob("runs/*/*.parquet")}
    absent = {
        "classes",
        "command_sockets",
        "device",
        "drops",
        "link_flows",
        "link_waits",
        "subflows",
        "media",
        "frames",
    }
    virtual = tables.TABLES.keys() - {*absent, *disturbances.TABLES, *readers.TABLES}
    assert len(written) == 2 * len(virtual), (
        "its queues have no classes, no link is a device or counts flows, nothing is dropped, nobody disturbs it, no "
        "flow has several paths or is of media"
    )
    left = Experiment.load(tmp_path)
    for path in written:
        left.disown(path.relative_to(tmp_path).as_posix())
        path.write_bytes(b"cut off")
    left.document.stages["logs"].status = "running"
    left.save()
    assert engine.resume(tmp_path, parts=whole, context=CONTEXT) == 0
    assert {path: path.read_bytes() for path in written} == written
    Experiment.load(tmp_path).check()


def test_what_a_killed_command_left_of_a_virtual_lab_is_replaced(tmp_path: Path) -> None:
    (first, _) = jobs()
    root, uml = root_of(tmp_path), tmp_path / "uml"
    (root / "proc").mkdir(parents=True)
    uml.mkdir()
    assert not VirtualRuntime().run(first.plan, first.program, tmp_path).interrupted
    assert not root.exists() and not uml.exists()


def test_a_directory_is_for_one_virtual_lab_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with occupied(tmp_path) as lock:
        inherited = os.dup(lock)
    monkeypatch.setattr(occupied_module, "WAIT_S", 0.1)
    with pytest.raises(LabError, match="another virtual lab is at work there"), occupied(tmp_path):
        pass
    monkeypatch.setattr(occupied_module, "WAIT_S", 10)
    ending = threading.Timer(0.1, lambda: os.close(inherited))
    ending.start()
    with occupied(tmp_path):
        ending.join()


def test_a_document_survives_its_writing(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path, origin(), "virtual")
    made.add(jobs()[0])
    made.save()
    read = Experiment.load(tmp_path)
    assert read.runs == made.runs and read.job(read.runs[0]).program == made.job(made.runs[0]).program
    (tmp_path / "experiment.json").write_text('{"format": "ewan-experiment/0"}')
    with pytest.raises(LabError, match="this version reads"):
        Experiment.load(tmp_path)
    (tmp_path / "experiment.json").write_text('{"format": "ewan-experiment/1"}')
    with pytest.raises(LabError, match=r"experiment\.json: an older version made this experiment"):
        Experiment.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("commands.json", {"commands": []}),
        ("commands.json", {"interrupted": False, "commands": [{"service": False, "error": None, "status": 1}]}),
        ("commands.json", {"interrupted": False, "commands": 1}),
        ("events.json", {"events": [{"error": "a\nb" * 1000}]}),
        ("events.json", {"events": [{"link": "a\nb" * 1000, "error": "a\nb" * 1000}]}),
        ("traffic/traffic.json", {"interrupted": False}),
    ],
)
def test_records_that_a_command_wrote_are_told_in_a_line(tmp_path: Path, name: str, record: dict[str, Any]) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(orjson.dumps(record))
    why = outcome.judge(tmp_path, Program(commands=(Command("a", ("true",)),)))
    assert why is not None and why.isprintable() and len(why) <= outcome.MOST_WORDS


@pytest.mark.parametrize("what", ["removed", "changed", "a directory", "a link", "kept"])
def test_what_a_run_executes_is_the_same_after_it(tmp_path: Path, what: str) -> None:
    made = Experiment.create(tmp_path, origin(), "virtual")
    made.add(jobs()[0])
    made.save()
    plan = made.place(made.runs[0]) / "plan.json"
    refused = pytest.raises(LabError, match=r"changed or removed plan\.json")
    with contextlib.nullcontext() if what == "kept" else refused, made.kept(made.runs[0]):
        if what == "changed":
            plan.write_text("{}")
        elif what != "kept":
            plan.unlink()
        if what == "a directory":
            (plan / "x").mkdir(parents=True)
        if what == "a link":
            plan.symlink_to("/etc/passwd")
    made.check()
    assert not plan.is_symlink()


def test_deep_directories_of_a_killed_run_are_forgotten(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path, origin(), "virtual")
    made.add(jobs()[0])
    folder = os.open(made.place(made.runs[0]), os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=folder)
        folder, above = os.open("d", os.O_RDONLY, dir_fd=folder), folder
        os.close(above)
    os.close(folder)
    made.forget(made.runs[0])
    assert {path.name for path in made.place(made.runs[0]).iterdir()} == set(INPUTS)
