"""The status of runs is kept as they end: none of it is lost, and the bytes that are read and written for each run do
not grow with their number."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.analysis import load
from ewan.experiments.engine import execution, outcome, preparation
from ewan.experiments.engine.experiment import RESERVE, Experiment, Job
from ewan.experiments.engine.parts import Facts
from ewan.experiments.engine.progress import Board
from ewan.experiments.tests.origins import origin
from ewan.generator import scenario
from ewan.labs.record import journal
from ewan.labs.record.experiment import INPUTS, DeployedLab, Entry
from ewan.labs.record.journal import JOURNAL
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Program

TEXT = """
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}
seeds: %d
steps:
  - {name: load, from: left1, to: right1, congestion: reno, for: 1s, bulk: {}}
"""
RESULT = b"what a run left " * 8


def begun(directory: Path, runs: int) -> Experiment:
    """An experiment whose runs wait, and whose document is there."""
    directory.mkdir(exist_ok=True)
    of_scenario = scenario.parse(TEXT % runs, Path("x.scenario.yaml")).runs()
    jobs = preparation.jobs(of_scenario, virtual=True)
    prepared = preparation.prepare(jobs, Facts({}, origin()), virtual=True, directory=directory)
    prepared.experiment.save()
    return prepared.experiment


def loaded(experiment: Experiment) -> Experiment:
    """The experiment that another process reads while an engine is at work."""
    with experiment.locked():
        return Experiment.load(experiment.directory)


def end(experiment: Experiment, entry: Entry) -> None:
    """A run ends, and its tables are made, as the engine does it."""

    def work(job: Job) -> None:
        (experiment.place(entry) / "flows.parquet").write_bytes(RESULT)
        (experiment.place(entry) / "wall.json").write_bytes(RESULT)

    board = Board("execution", len(experiment.runs), 0)
    execution.attempt(experiment, entry, board, work)
    experiment.record_results(entry)
    experiment.save_run(entry)


@pytest.fixture(autouse=True)
def _all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(directory: Path, program: Program) -> None:
        return None

    monkeypatch.setattr(outcome, "judge", judge)


def moved_bytes(what: str) -> int:
    """The bytes that this thread has read (`rchar`) or written (`wchar`) so far."""
    counters = dict(line.split(": ") for line in Path("/proc/thread-self/io").read_text().splitlines())
    return int(counters[what])


class Counted(dict[str, str]):
    """Counts the names that are looked at one after the other."""

    seen = 0

    def __iter__(self) -> Iterator[str]:
        for name in super().__iter__():
            self.seen += 1
            yield name


def test_what_is_written_grows_with_the_runs(tmp_path: Path) -> None:
    """Four times as many runs, four times as many bytes; all of the document for each would be sixteen times."""
    written = []
    for runs in (20, 80):
        experiment = begun(tmp_path / str(runs), runs)
        before = moved_bytes("wchar")
        for entry in experiment.runs:
            end(experiment, entry)
        written.append(moved_bytes("wchar") - before)
    assert written[0] > 20 * len(RESULT)
    assert 3.5 < written[1] / written[0] < 4.5


def test_no_run_looks_at_the_files_of_others(tmp_path: Path) -> None:
    experiment = begun(tmp_path, 5)
    for entry in experiment.runs:
        end(experiment, entry)
    experiment.document.files = counted = Counted(experiment.document.files)
    for entry in experiment.runs:
        experiment.check_results(entry)
        end(experiment, entry)
    assert counted.seen == 0
    experiment.check()
    assert counted.seen == len(experiment.files), "all of them are looked at when all are checked"


def test_what_a_run_executes_is_read_once(tmp_path: Path) -> None:
    experiment = begun(tmp_path, 2)
    for entry in experiment.runs:
        size = sum((experiment.place(entry) / name).stat().st_size for name in INPUTS)
        nothing = -moved_bytes("rchar") + moved_bytes("rchar")
        before = moved_bytes("rchar")
        experiment.job(entry)
        assert moved_bytes("rchar") - before - nothing == pytest.approx(size, abs=200)


def test_nothing_that_ended_is_lost(tmp_path: Path) -> None:
    """After SIGKILL the document is as old as its stage, and the journal has the rest."""
    experiment = begun(tmp_path, 4)
    for entry in experiment.runs[1:3]:
        end(experiment, entry)
    experiment.runs[1].error = "left1 fell over"
    experiment.save_run(experiment.runs[1])
    assert {run["status"] for run in orjson.loads((tmp_path / "experiment.json").read_bytes())["runs"]} == {"waiting"}
    left = loaded(experiment)
    assert left.document == experiment.document
    assert [entry.status for entry in left.runs] == ["waiting", "complete", "complete", "waiting"]
    left.check()
    seen = load.experiment(tmp_path)
    assert [run.measured for run in seen.runs] == [False, True, True, False]
    assert seen.runs[1].error == "left1 fell over"


def test_runs_that_are_added_meanwhile_are_kept(tmp_path: Path) -> None:
    experiment = begun(tmp_path, 2)
    (_, _, third) = preparation.jobs(scenario.parse(TEXT % 3, Path("x.scenario.yaml")).runs(), virtual=True)
    experiment.add(third)
    experiment.save_run(third.entry)
    end(experiment, third.entry)
    left = Experiment.load(tmp_path)
    assert [(entry.number, entry.status) for entry in left.runs] == [(1, "waiting"), (2, "waiting"), (3, "complete")]
    assert left.job(left.runs[2]).program == third.program


def test_the_lab_that_is_up_is_kept(tmp_path: Path) -> None:
    experiment = begun(tmp_path, 1)
    for deployed in (DeployedLab(lab="x", id="7"), None):
        experiment.document.deployed, experiment.document.runtime = deployed, "netns"
        experiment.save_lab()
        assert Experiment.load(tmp_path).document.deployed == deployed
    assert Experiment.load(tmp_path).document.runtime == "netns"


def test_what_an_earlier_attempt_left_is_forgotten(tmp_path: Path) -> None:
    experiment = begun(tmp_path, 2)
    for entry in experiment.runs:
        end(experiment, entry)
    experiment.forget(experiment.runs[0])
    experiment.save_run(experiment.runs[0])
    left = Experiment.load(tmp_path)
    assert [name for name in left.files if "/001/" in name] == [f"runs/001/{name}" for name in INPUTS]
    assert "runs/002/flows.parquet" in left.files


def test_a_line_that_was_not_written_whole_says_nothing(tmp_path: Path) -> None:
    experiment = begun(tmp_path, 2)
    end(experiment, experiment.runs[0])
    whole = (tmp_path / JOURNAL).read_bytes()
    for cut in (0, 20, len(whole.splitlines(keepends=True)[0]), len(whole) - 1):
        (tmp_path / JOURNAL).write_bytes(whole[:cut])
        assert Experiment.load(tmp_path).runs[1].status == "waiting"
    assert Experiment.load(tmp_path).runs[0].status == "complete", "its first line was whole"


def test_the_journal_of_an_earlier_document_says_nothing(tmp_path: Path) -> None:
    """SIGKILL between the replacement of the document and the removal of the journal leaves such a journal."""
    experiment = begun(tmp_path, 2)
    end(experiment, experiment.runs[0])
    old = (tmp_path / JOURNAL).read_bytes()
    experiment.forget(experiment.runs[0])
    experiment.document.unverified = True
    experiment.save()
    assert not (tmp_path / JOURNAL).exists()
    (tmp_path / JOURNAL).write_bytes(old)
    assert loaded(experiment).document == experiment.document


def test_an_experiment_whose_engine_was_killed_is_incomplete(tmp_path: Path) -> None:
    experiment = begun(tmp_path, 1)
    experiment.document.stages["execution"].status = "running"
    experiment.save()
    read = (loaded(experiment).document, Experiment.load(tmp_path).document)
    assert [each.status for each in read] == ["running", "incomplete"]
    assert [each.stages["execution"].status for each in read] == ["running", "incomplete"]


@pytest.mark.parametrize("changes", [{"run": 1}, {"files": {"../x": ""}}, {"colour": 1}, None])
def test_a_damaged_line_is_named_with_a_remedy(tmp_path: Path, changes: dict[str, Any] | None) -> None:
    experiment = begun(tmp_path, 1)
    end(experiment, experiment.runs[0])
    last = (tmp_path / JOURNAL).read_bytes().splitlines()[-1]
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b"{" if changes is None else orjson.dumps({**orjson.loads(last), **changes}))
        file.write(b"\n")
    said = f"{tmp_path / JOURNAL}: line 4 is damaged: remove it, and `ewan exp resume {tmp_path}` does anew what it"
    for read, error in ((Experiment.load, LabError), (load.experiment, load.LoadError)):
        with pytest.raises(error) as refusal:
            read(tmp_path)
        assert str(refusal.value).startswith(said)


def test_a_full_disk_costs_the_reserve_and_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try writes half a line; the status of ended runs is kept all the same."""
    experiment = begun(tmp_path, 2)
    end(experiment, experiment.runs[0])
    assert (tmp_path / RESERVE).exists()
    add = journal.Journal.add

    def full(self: journal.Journal, change: Any) -> None:
        if (tmp_path / RESERVE).exists():
            with (tmp_path / JOURNAL).open("ab") as file:
                file.write(b'{"files": {')
            raise OSError(errno.ENOSPC, "No space left on device")
        add(self, change)

    monkeypatch.setattr(journal.Journal, "add", full)
    end(experiment, experiment.runs[1])
    assert not (tmp_path / RESERVE).exists()
    assert loaded(experiment).document == experiment.document


def test_at_the_end_the_document_alone_is_there(tmp_path: Path) -> None:
    experiment = begun(tmp_path, 2)
    for entry in experiment.runs:
        end(experiment, entry)
    experiment.finish("complete")
    assert not (tmp_path / JOURNAL).exists()
    assert loaded(experiment).document == experiment.document


def test_the_seconds_in_which_a_run_was_disturbed_are_kept_and_written_of_watched_runs_alone(tmp_path: Path) -> None:
    made = begun(tmp_path, 3)
    made.runs[0].disturbed, made.runs[1].disturbed = [2, 17], []
    for entry in made.runs:
        end(made, entry)
    assert (tmp_path / JOURNAL).exists()
    assert [entry.disturbed for entry in Experiment.load(tmp_path).runs] == [None, None, None], "each began anew"
    made.runs[0].disturbed, made.runs[1].disturbed = [2, 17], []
    for entry in made.runs:
        made.save_run(entry)
    assert [entry.disturbed for entry in Experiment.load(tmp_path).runs] == [[2, 17], [], None]
    made.save()
    written = orjson.loads((tmp_path / "experiment.json").read_bytes())["runs"]
    assert [run.get("disturbed", "unsaid") for run in written] == [[2, 17], [], "unsaid"]
    assert [entry.disturbed for entry in Experiment.load(tmp_path).runs] == [[2, 17], [], None]
