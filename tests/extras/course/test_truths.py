"""Truths of a small lab, from runs in the virtual clock: through the store, with a student's settings, when stopped."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from ewan.analysis.one_run import SingleRun
from ewan.experiments.engine.unit import Unit
from ewan.experiments.store import Store
from ewan.extras.course import answer_check, answers, parameters, reading, truths
from ewan.extras.course.local_executor import LocalExecutor
from ewan.extras.course.measures.base import NoValueError
from ewan.extras.course.reading import Lab
from ewan.extras.course.runs import Files, RunSelection, Student
from ewan.extras.course.tests.courses import COURSE, SCENARIO, written
from ewan.extras.course.verdicts import QuestionVerdict
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.runtime.base import LabError
from tests.extras.course.desk import Desk

pytestmark = pytest.mark.virtual


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return reading.read(written(tmp_path_factory.mktemp("labs")))


@pytest.fixture(scope="module")
def desk(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    place = tmp_path_factory.mktemp("desk")
    return Desk.of(lab, "4711", place, place / "store")


def check(desk: Desk, text: str, executor: LocalExecutor) -> dict[str, QuestionVerdict]:
    given = answers.read(text, "answers.yaml", desk.lab.questions)
    found = answer_check.check(desk.lab, desk.folder.drawing, given, executor, SingleRun, {})
    return {each.question: each for each in found}


def test_what_a_student_has_run_is_not_run_again(desk: Desk, tmp_path: Path) -> None:
    (command,) = desk.commands
    results = desk.run(command)
    busy = desk.read(results, "utilisation")
    executor = desk.executor(tmp_path)
    found = check(desk, f"busy: {100 * busy:.2f}%\npipe: 1B\n", executor)
    assert executor.executed == 0, "the keys are those of ewan run"
    assert found["busy"].state == "right" and found["pipe"].state == "wrong"
    assert found["delay"].state == "missing"


def test_what_is_seen_of_a_run_is_what_reports_compute(desk: Desk, tmp_path: Path) -> None:
    results = desk.run(desk.commands[0])
    with Student(desk.lab, desk.folder.drawing, desk.executor(tmp_path), SingleRun) as student:
        (run,) = student.runs(RunSelection())
    for words in ("aggregate goodput", "mean rtt", "utilisation", "queueing delay p95", "start lateness p99"):
        assert run.metric(words) == pytest.approx(desk.read(results, words), rel=1e-12), words
    sampled = results.table("series").filter(pl.col("cwnd_segments").is_not_null())
    cwnd = run.series("cwnd", step="load")
    assert (cwnd.times * NS_PER_SECOND).round().tolist() == sampled["time_ns"].to_list()
    assert cwnd.values.tolist() == sampled["cwnd_segments"].to_list()
    coarse = run.series("rtt", window=0.5)
    assert 3 <= coarse.times.size <= 5 and 0.02 < coarse.values.max() < 1
    assert run.table("flows").equals(results.table("flows").select(run.table("flows").columns))
    assert run.parameters["rtt"] == desk.number("rtt") and run.parameters["variant"] == desk.values["variant"]
    with pytest.raises(NoValueError, match="unknown metric"):
        run.metric("rtt p94")
    with pytest.raises(NoValueError, match=r'unknown series .*write "cwnd"'):
        run.series("cwn")
    with pytest.raises(NoValueError, match="left no console"):
        run.text("console")


def test_nothing_is_run_for_words_alone(desk: Desk, tmp_path: Path) -> None:
    class Nobody(LocalExecutor):
        def results(self, units: Sequence[Unit]) -> list[Files]:
            raise AssertionError("nothing is to be run")

    executor = Nobody(desk.context.reporter, desk.context.binary, None, tmp_path)
    assert check(desk, "why: So.\n", executor)["why"].state == "teacher"


@pytest.mark.parametrize(
    ("buffer", "state", "say"),
    [
        ("0.9", "right", ""),
        ("3", "wrong", "It works with less."),
        ("50GB", "unreadable", 'answers.yaml:1: tuned: buffer "50GB": write one from 1kB to 10MB'),
        ("a lot", "unreadable", 'tuned: buffer "a lot": write a size as "1.2MB"'),
        ("{a: 1}", "unreadable", 'tuned: a "1": unknown setting, write one of buffer'),
    ],
)
def test_settings_are_run(desk: Desk, tmp_path: Path, buffer: str, state: str, say: str) -> None:
    share = buffer.replace(".", "").isdigit()
    bdp = desk.number("rate") * desk.number("rtt") / 8
    text = f"tuned: {{buffer: {f'{float(buffer) * bdp:.0f}B' if share else buffer}}}\n"
    executor = desk.executor(tmp_path)
    found = check(desk, text, executor)["tuned"]
    assert found.state == state and say in found.say
    assert executor.executed == (1 if state in ("right", "wrong") else 0)


def test_a_damaged_entry_of_the_store_is_measured_again(desk: Desk, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    first = LocalExecutor(desk.context.reporter, desk.context.binary, store, tmp_path / "scratch")
    assert check(desk, "busy: 1%\n", first)["busy"].state == "wrong" and first.executed == 1
    (entry,) = (tmp_path / "store").rglob("*.tar.zst")
    content = entry.read_bytes()
    entry.write_bytes(content[: len(content) // 2])
    for executed in (1, 0):
        again = LocalExecutor(desk.context.reporter, desk.context.binary, store, tmp_path / "scratch")
        assert check(desk, "busy: 1%\n", again)["busy"].state == "wrong" and again.executed == executed
    assert not list((tmp_path / "scratch").iterdir())


def test_a_store_that_takes_nothing_hinders_nothing(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    executor = LocalExecutor(
        desk.context.reporter, desk.context.binary, Store(tmp_path / "store"), tmp_path / "scratch"
    )
    assert check(desk, "busy: 1%\n", executor)["busy"].state == "wrong"


def test_a_truth_that_a_run_does_not_give_is_nobodys_fault(tmp_path: Path) -> None:
    course = COURSE.replace('truth: metric("utilisation")', 'truth: metric("ping rtt p95")')
    lab = reading.read(written(tmp_path / "labs", course))
    desk = Desk.of(lab, "4711", tmp_path, tmp_path / "store")
    found = check(desk, "busy: 90%\n", desk.executor(tmp_path / "scratch"))["busy"]
    assert found.state == "unknown" and "has no ping rtt p95" in found.say and found.points == 0


def test_a_run_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    """What Ctrl-C does: those at work are told to stop."""
    lab = reading.read(written(tmp_path / "labs", scenario=SCENARIO.replace("for: 2s", "for: 3000s")))
    desk = Desk.of(lab, "4711", tmp_path, tmp_path / "store")
    executor = LocalExecutor(desk.context.reporter, desk.context.binary, None, tmp_path / "scratch")
    with Student(desk.lab, desk.folder.drawing, executor, SingleRun) as student:
        work = next(student.units("pipe"))
        stop = threading.Event()
        stop.set()
        with pytest.raises(LabError, match="interrupted"):
            executor._run(work, stop)
    assert not list((tmp_path / "scratch").iterdir())


def test_the_truths_of_two_students_are_of_their_own_networks(desk: Desk, tmp_path: Path) -> None:
    found = []
    for who in ("4711", "4712"):
        drawing = parameters.drawn("pipe", who, desk.lab.course.parameters)
        with Student(desk.lab, drawing, desk.executor(tmp_path), SingleRun) as student:
            found.append(truths.of(student))
            assert found[-1]["pipe"].value == pytest.approx(
                float(drawing.numbers["rate"]) * float(drawing.numbers["rtt"]) / 8
            )
    assert found[0]["pipe"].value != found[1]["pipe"].value
    assert found[0]["busy"].value != found[1]["busy"].value
