"""From a student's folder to a grade: a small lab, run as students do, handed in, changed in all ways, graded."""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ewan.analysis.one_run import SingleRun
from ewan.experiments.engine.unit import Tools
from ewan.extras.course import (
    answers,
    copies,
    folder,
    grading,
    grading_cli,
    hand_in,
    history,
    local_executor,
    pool,
    reading,
    submission,
)
from ewan.extras.course.grade import Grade
from ewan.extras.course.grading import GradingMachine, GradingTask
from ewan.extras.course.ledger import GradeLedger
from ewan.extras.course.runs import Student
from ewan.extras.course.sources import SourceError, below
from ewan.extras.course.submission import Submission
from ewan.labs.base.codec import replace
from ewan.labs.base.product import ROOT
from ewan.labs.base.reporter import SilentReporter
from ewan.labs.context import Context
from ewan.labs.runtime import kernel
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.tests.lab import BINARY
from tests.extras.course.handed_in import handed_in

pytestmark = pytest.mark.virtual

LABS = Path(__file__).parent / "labs"
EWAN = [sys.executable, str(ROOT / "ewan" / "cli.py")]
ANSWERS = {
    "law": "grow",
    "why": "More bytes fit into a longer pipe, and whoever asks for more waits for it.",
    "tuned": {"buffer": "15kB"},
}


@dataclasses.dataclass
class Class:
    """Two students of the tiny lab, the first of whom has run it; a machine that grades."""

    place: Path
    machine: GradingMachine
    first: Submission
    second: Submission

    def grade(self, told: Submission, name: str = "") -> Grade:
        path = self.place / (name or f"{told.lab}-{told.student}.zip")
        path.write_bytes(submission.packed(told))
        return grading.graded(self.machine, GradingTask(path.name, path, grading_cli.digest(path)))


def answers_of(mine: folder.Folder) -> dict[str, Any]:
    """As a student has them: by hand, and from the table that `ewan run` printed."""
    rate, rtt = (float(mine.drawing.numbers[name]) for name in ("rate", "rtt"))
    found = {"pipe": f"{rate * rtt / 8:.0f}B", "both": f"{2 * rtt * 1000:g}ms", **ANSWERS}
    for summary in mine.path.glob("results/*/summary.json"):
        for point in json.loads(summary.read_bytes())["points"]:
            if point["parameters"]["buffer"] == "10BDP":
                found["goodput"] = f"{point['metrics']['aggregate goodput']['mean'] / 1e6:.4g}Mbit/s"
    return found


def started(place: Path, student: str) -> folder.Folder:
    lab = reading.find("tiny", root=LABS)
    path = folder.start(lab, student, place / student)
    return folder.load(path, LABS)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Class]:
    place = tmp_path_factory.mktemp("course")
    first, second = started(place, "4711"), started(place, "4712")
    run = [*EWAN, "run", "tiny.scenario.yaml", "--runtime", "virtual"]
    subprocess.run(run, cwd=first.path, check=True, capture_output=True)
    for mine in (first, second):
        mine.answers.write_text(yaml.safe_dump(answers_of(mine)))
        for verdict in ("wrong", "right"):
            history.add(mine.path, {"pipe": verdict})
    first, second = (folder.load(mine.path, LABS) for mine in (first, second))
    tools = Tools(kernel.kernel(lambda line: None), node_binary(BINARY))
    machine = GradingMachine(SingleRun, tools, place / "store", place, LABS)
    yield Class(place, machine, hand_in.made(first).submission, hand_in.made(second).submission)


def verdicts(grade: Grade) -> dict[str, str]:
    return {each.name: each.verdict for each in grade.questions}


def test_a_good_student_is_right_and_confirmed(course: Class) -> None:
    found = course.grade(course.first)
    assert (found.status, found.notes) == ("graded", ()), found
    assert set(verdicts(found).values()) == {"right", "teacher"}
    assert (found.points, found.most, found.by_teacher) == (5.0, 5.0, 2.0)
    assert [run.said for run in found.runs] == ["confirmed", "confirmed"]
    truth = next(each.truth for each in found.questions if each.name == "goodput")
    assert truth.endswith("Mbit/s")


def ran(course: Class, chosen: str, **changed: Any) -> Submission:
    """The first student's submission with the record of one more experiment, as its run would leave it."""
    name, _, values = chosen.partition("=")
    lab = reading.find("tiny", root=LABS)
    drawing = folder.load(course.place / "4711", LABS).drawing
    executor = local_executor.LocalExecutor(SilentReporter(), BINARY, None, course.place, workers=1)
    with Student(lab, drawing, executor, SingleRun) as student:
        works = list(student.changed("tiny", {name: values}).units())
        runs = [
            submission.SubmittedRun(
                name=work.name,
                key=work.key,
                inputs=grading.inputs_of(work),
                tables=grading.tables_of(executor.results([work])[0]),
            )
            for work in works
        ]
    (own,) = course.first.experiments
    more = replace(own, **{"runs": tuple(runs), "changed": True, "settings": {name: values}, **changed})
    return replace(course.first, experiments=(own, more))


@pytest.mark.parametrize(
    ("settings", "changed", "said"),
    [
        ("buffer=2BDP,10BDP", {}, "confirmed"),
        ("buffer=10kB,3BDP", {}, "confirmed"),
        ("buffer=2kB", {}, "not confirmed: settings that the lab does not ask for"),
        ("rate=5Mbit/s", {}, "not confirmed: settings that the lab does not ask for"),
        ("buffer=10kB", {"text": "0" * 64}, "not confirmed: changed scenario"),
        ("buffer=2BDP", {"settings": {}}, "confirmed"),
    ],
)
def test_runs_that_the_lab_asks_for_are_confirmed(
    course: Class, settings: str, changed: dict[str, Any], said: str
) -> None:
    """Those of the text's commands, and those with settings that a question leaves free; no others are executed."""
    before = len(list((course.place / "store").rglob("*.tar.zst")))
    found = course.grade(ran(course, settings, **changed))
    assert {run.said for run in found.runs[2:]} <= {said} and len(found.runs) >= 3
    if said != "confirmed":
        assert len(list((course.place / "store").rglob("*.tar.zst"))) == before


def test_a_student_who_ran_nothing_is_said_to_the_teacher(course: Class) -> None:
    alone = replace(course.first, experiments=())
    assert course.grade(alone).notes == ("5 of 5 right, no confirmed run, 2 checks",)
    fewer = replace(alone, answers={"pipe": alone.answers["pipe"]})
    assert course.grade(fewer).notes == (), "what was computed by hand needs no run"
    once = replace(course.first, checks=(), journal=submission.CheckJournal(checks=0, last=""))
    assert course.grade(once).notes == ("5 of 5 right, 0 checks",)
    cut = replace(course.first, checks=course.first.checks[1:])
    assert course.grade(cut).notes == ("the journal of checks was changed: 1 of 2 are in it",)


def test_what_is_executed_is_kept(course: Class) -> None:
    course.grade(course.first)
    assert len(list((course.place / "store").rglob("*.tar.zst"))) >= 3


def test_a_copy_is_wrong_and_found_out(course: Class) -> None:
    copied = replace(course.first, student="4712")
    first, second = copies.looked_at([course.grade(course.first), course.grade(copied)])
    assert verdicts(second) == {
        "pipe": "wrong",
        "goodput": "wrong",
        "both": "wrong",
        "law": "right",
        "tuned": "right",
        "why": "teacher",
    }
    assert {run.said for run in second.runs} == {"not confirmed: changed scenario"}
    assert second.notes == (
        "3 wrong answers are the right ones of 4711",
        "the text of why is the same as that of 4711",
        "2 of its runs are of the scenarios of 4711",
    )
    assert first.notes == (
        "3 of its right answers are in the submission of 4712 too, where they are wrong",
        "the text of why is the same as that of 4712",
        "4712 handed in 2 runs of its scenarios",
    )


def changed(told: Submission, **of_runs: str) -> Submission:
    def one(each: submission.SubmittedExperiment) -> submission.SubmittedExperiment:
        runs = tuple(replace(run, **of_runs) for run in each.runs)
        return replace(each, runs=runs)

    return replace(told, experiments=tuple(one(each) for each in told.experiments))


@pytest.mark.parametrize(
    ("of_runs", "said"),
    [
        ({"tables": "0" * 64}, "not confirmed: bytes differ"),
        ({"tables": "0" * 64, "key": "0" * 64}, "not confirmed: made by another version"),
        ({"key": "0" * 64}, "confirmed"),
        ({"inputs": "0" * 64}, "not confirmed: changed scenario"),
    ],
)
def test_records_that_were_changed_are_not_confirmed(course: Class, of_runs: dict[str, str], said: str) -> None:
    assert {run.said for run in course.grade(changed(course.first, **of_runs)).runs} == {said}


def test_settings_beyond_their_limits_are_not_run(course: Class) -> None:
    before = len(list((course.place / "store").rglob("*.tar.zst")))
    for chosen in ("1000GB", "-1B", "1B; touch x", "${rate}", "$(id)", "1e99B", "9" * 5000):
        told = replace(course.first, answers={"tuned": {"buffer": chosen}})
        found = course.grade(told)
        assert verdicts(found)["tuned"] == "unreadable"
    assert len(list((course.place / "store").rglob("*.tar.zst"))) == before


def test_answers_of_another_form_are_none(course: Class) -> None:
    told = replace(course.first, answers={"pipe": {"a": "1B"}, "tuned": "1kB", "goodput": "7", "x": "y"})
    found = course.grade(told)
    assert verdicts(found) == {
        "pipe": "missing",
        "goodput": "unreadable",
        "both": "missing",
        "law": "missing",
        "tuned": "missing",
        "why": "missing",
    }
    assert found.notes == ("answers to unknown questions: x",)


def test_an_older_lab_is_said(course: Class) -> None:
    found = course.grade(replace(course.first, content="0" * 64))
    assert found.notes == ("the student had another version of the lab",)


def test_an_unknown_lab_is_refused_and_a_strange_language_is_english(course: Class) -> None:
    assert course.grade(replace(course.first, lab="none")).status == "refused"
    assert course.grade(replace(course.first, language="xx")).status == "graded"


def test_whatever_goes_wrong_here_is_a_line(course: Class, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> SingleRun:
        raise RuntimeError("broken\nin two lines")

    machine = dataclasses.replace(course.machine, see=broken)
    path = course.place / "x.zip"
    path.write_bytes(submission.packed(course.first))
    found = grading.graded(machine, GradingTask("x.zip", path, "0" * 64))
    assert (found.status, found.error) == ("failed", "broken in two lines")


def directory(course: Class, tmp_path: Path) -> Path:
    """What a teacher may find: good ones, none at all, links, other files."""
    place = tmp_path / "submissions"
    (place / "Ä B_1_file_").mkdir(parents=True)
    (place / "Ä B_1_file_" / "tiny-4711.zip").write_bytes(submission.packed(course.first))
    (place / "tiny-4712.zip").write_bytes(submission.packed(course.second))
    (place / "bomb.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    (place / "essay.pdf").write_bytes(b"%PDF-1.7")
    (place / "unknown.zip").write_bytes(handed_in(lab="nosuch"))
    (place / "link.zip").symlink_to("/etc/passwd")
    os.mkfifo(place / "fifo.zip")
    (place / os.fsdecode(b"\xff\n.zip")).write_bytes(b"x")
    (place / "unpacked").mkdir()
    (place / "unpacked" / "submission.json").write_bytes(submission.to_json(course.second))
    (place / "unpacked" / "evil.py").write_text("raise SystemExit")
    (place / "__MACOSX").mkdir()
    (place / "__MACOSX" / "._tiny-4711.zip").write_bytes(b"x")
    shutil.copytree(course.place / "4711", place / "folder")
    return place


def graded_all(course: Class, place: Path, table: Path) -> list[Grade]:
    context = Context.of({})
    with GradeLedger(table).opened() as book:
        return grading_cli.all_graded(context, course.machine, below(place), book)


def test_one_bad_submission_stops_no_other(course: Class, tmp_path: Path) -> None:
    """By several processes as by one."""
    place = directory(course, tmp_path)
    found = graded_all(course, place, tmp_path / "ledger")
    assert {each.file: each.status for each in found} == {
        "bomb.zip": "refused",
        "essay.pdf": "refused",
        "fifo.zip": "refused",
        "\ufffd\n.zip": "refused",
        "folder/course.json": "refused",
        "link.zip": "refused",
        "tiny-4712.zip": "graded",
        "unknown.zip": "refused",
        "unpacked/submission.json": "graded",
        "Ä B_1_file_/tiny-4711.zip": "graded",
    }
    assert not any("passwd" in each.error for each in found)
    (mine,) = (each.error for each in found if each.file == "folder/course.json")
    assert mine == "is a student's folder: hand in the file that `ewan course hand-in` writes"
    same = functools.partial(replace, seconds=0.0)
    for source, several in zip(below(place), found, strict=True):
        if source.file != "link.zip":
            alone = grading.graded(
                course.machine, GradingTask(source.file, source.path, grading_cli.digest(source.path))
            )
            assert same(alone) == same(several)


def test_what_was_graded_is_not_graded_again_until_it_changes(
    course: Class, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "submissions"
    place.mkdir()
    for told in (course.first, course.second, replace(course.second, student="4714")):
        (place / f"tiny-{told.student}.zip").write_bytes(submission.packed(told))
    asked: list[int] = []

    def cut(
        function: Callable[[GradingTask], Grade], given: Sequence[GradingTask], *_: object
    ) -> Iterator[tuple[int, Grade]]:
        """The call is interrupted when two are done."""
        asked.append(len(given))
        for number, each in enumerate(given):
            if number == 2:
                raise KeyboardInterrupt
            yield number, function(each)

    monkeypatch.setattr(pool, "each", cut)
    with pytest.raises(KeyboardInterrupt):
        graded_all(course, place, tmp_path / "ledger")
    whole = graded_all(course, place, tmp_path / "ledger")
    assert asked == [3, 1]
    assert {each.status for each in whole} == {"graded"}
    assert graded_all(course, place, tmp_path / "ledger") == whole
    assert asked == [3, 1]
    better = replace(course.second, answers={"law": "shrink"})
    (place / "tiny-4712.zip").write_bytes(submission.packed(better))
    assert [each.count("right") for each in graded_all(course, place, tmp_path / "ledger")] != [
        each.count("right") for each in whole
    ]
    assert asked == [3, 1, 1]


def test_an_experiment_that_is_damaged_is_not_taken(course: Class, tmp_path: Path) -> None:
    shutil.copytree(course.place / "4711", tmp_path / "mine")
    (document,) = (tmp_path / "mine").glob("results/*/experiment.json")
    shutil.copytree(document.parent, document.parent.with_name("other"))
    document.write_bytes(document.read_bytes()[:-100])
    made = hand_in.made(folder.load(tmp_path / "mine", LABS))
    assert [len(each.runs) for each in made.submission.experiments] == [2]
    (line,) = made.notes
    assert "damaged" in line and str(document) in line


def test_what_is_handed_in_is_the_same_each_time_and_has_no_place_in_it(course: Class, tmp_path: Path) -> None:
    mine = folder.load(course.place / "4711", LABS)
    assert hand_in.made(mine).content == hand_in.made(mine).content
    shutil.copytree(mine.path, tmp_path / "elsewhere")
    assert hand_in.made(folder.load(tmp_path / "elsewhere", LABS)).content == hand_in.made(mine).content


def test_a_notebook_goes_along_unread(course: Class) -> None:
    mine = folder.load(course.place / "4711", LABS)
    made = hand_in.made(mine, with_notebook=True)
    assert len(made.content) > len(hand_in.made(mine).content)
    assert submission.read(made.content) == made.submission


def test_a_place_without_submissions_is_one_line(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(SourceError, match="hand"):
            below(place)


def ewan(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*EWAN, *words], cwd=cwd, capture_output=True, text=True, check=False)


def test_the_commands(tmp_path: Path) -> None:
    """With a lab of the course, as students and teachers call them; what is refused needs no truth."""
    place = tmp_path / "in"
    place.mkdir()
    (place / "bad.zip").write_bytes(b"PK")
    (place / "link.zip").symlink_to("bad.zip")
    (tmp_path / "students").write_text("4711\n")
    forms = ("--format", "gradescope", "--format", "json")
    done = ewan("course", "grade", "in", "--students", "students", *forms, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "graded before" not in done.stderr
    rows = list(csv.DictReader((tmp_path / "grades.csv").read_text().splitlines()))
    assert [row["state"] for row in rows] == ["refused"] * 2
    assert json.loads((tmp_path / "grades/bad/results.json").read_text())["score"] == 0
    assert json.loads((tmp_path / "grades/grades.json").read_text())["grades"][0]["file"] == "bad.zip"
    for words, said in (
        (["grade", "none"], "no such file"),
        (["grade", "in", "--students", "none"], "--students"),
        (["grade", "in", "--csv", "none/x.csv"], "--csv"),
        (["hand-in", "none"], "ewan course start"),
    ):
        done = ewan("course", *words, cwd=tmp_path)
        assert done.returncode == 2, done
        (line,) = done.stderr.strip().splitlines()
        assert said in line


def test_names_and_lines_with_brackets_are_said_as_they_are(tmp_path: Path) -> None:
    made = ewan("course", "start", "bufferbloat", "--student", "4711", "--folder", "my [x]", cwd=tmp_path)
    assert made.returncode == 0 and made.stdout.startswith("my [x]: read my [x]/bufferbloat.md"), made
    assert "takes no directory with blanks" in made.stderr
    (tmp_path / "my [x]" / answers.FILE).write_text("[/red]x: 1\npipe:\n")
    done = ewan("course", "check", "my [x]", cwd=tmp_path)
    assert done.returncode == 2 and 'my [x]/answers.yaml:1: "[/red]x: 1": unknown question' in done.stderr, done
    done = ewan("course", "hand-in", "my [x]", cwd=tmp_path)
    assert done.returncode == 0 and '"[/red]x: 1": unknown question' in done.stderr, done
    assert done.stdout.startswith(f"{tmp_path}/bufferbloat-4711.zip: "), "a path that an upload form takes"
