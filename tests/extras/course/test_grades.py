"""Grades beside each other: confirmed runs, copies, lists of students, the ledger."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ewan.extras.course import (
    answers,
    confirmation,
    copies,
    doubts,
    folder,
    grade,
    hand_in,
    history,
    reading,
    records,
    roster,
    sources,
    submission,
    uploader,
    verdicts,
)
from ewan.extras.course.confirmation import KnownRun, StudentVersions
from ewan.extras.course.ledger import GradeLedger
from ewan.extras.course.roster import RosterError
from ewan.labs.runtime.base import LabError
from tests.extras.course.handed_in import experiment, graded, handed_in, question, run

OWN = KnownRun("bloat", "buffer=1BDP", key="c" * 64, inputs="a" * 64, tables="b" * 64)
VERSIONS = StudentVersions(kernel="e" * 64, binary="f" * 64, texts={"bloat": "d" * 64})


def said(*experiments: object, known: tuple[KnownRun, ...] = (OWN,)) -> list[str]:
    return [each.said for each in confirmation.confirm(experiments, known, VERSIONS)]  # type: ignore[arg-type]


def test_the_same_run_with_the_same_bytes_is_confirmed() -> None:
    assert said(experiment(run())) == ["confirmed"]


def test_other_bytes_by_the_same_version_differ() -> None:
    assert said(experiment(run(tables="9"))) == ["not confirmed: bytes differ"]


def test_other_bytes_by_another_version_are_said_to_be_so() -> None:
    assert said(experiment(run(tables="9", key="8"))) == ["not confirmed: made by another version"]


def test_the_same_bytes_by_another_version_are_confirmed() -> None:
    """Another compiler makes another kernel, which leaves the same bytes: they prove that the run was executed."""
    assert said(experiment(run(key="8"), kernel="0" * 64)) == ["confirmed"]


def test_a_run_of_a_changed_scenario_is_said_to_be_so() -> None:
    assert said(experiment(run("9"), text="0" * 64)) == ["not confirmed: changed scenario"]
    tried = "not confirmed: settings that the lab does not ask for"
    assert said(experiment(run("9"), changed=True)) == [tried]
    # Its scenario is untouched and so is the version: the description beside it was changed.
    assert said(experiment(run("9"))) == ["not confirmed: changed scenario"]


def test_what_another_kernel_or_binary_made_is_said_to_be_so() -> None:
    for other in ({"kernel": "0" * 64}, {"binary": "0" * 64}):
        for made in (run("9"), run(tables="9"), run(tables="9", key="8")):
            assert said(experiment(made, **other)) == ["not confirmed: made by another kernel or node binary"]


def test_a_run_that_cannot_be_executed_here_is_not_the_students_fault() -> None:
    broken = KnownRun("bloat", "buffer=1BDP", key="c" * 64, inputs="a" * 64, tables=None, error="no room in /dev/shm")
    assert said(experiment(run()), known=(broken,)) == [
        "not confirmed: could not be executed here: no room in /dev/shm"
    ]


def test_the_same_run_again_counts_once() -> None:
    assert said(experiment(run()), experiment(run())) == ["confirmed"]


def test_a_run_that_is_forged_beside_a_real_one_is_seen() -> None:
    assert said(experiment(run(), run(tables="9"))) == ["confirmed", "not confirmed: bytes differ"]


def test_no_more_than_so_many_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "MOST_RUNS", 2)
    found = said(experiment(run(), run("1"), run("2"), run("3")))
    assert found == [grade.CONFIRMED, grade.CHANGED, grade.TOO_MANY, grade.TOO_MANY]


def wrong(name: str, value: float, truth: str = "else") -> grade.QuestionGrade:
    return question(name, "wrong", value=value, truth=truth)


def right(name: str, value: float) -> grade.QuestionGrade:
    return question(name, "right", value=value, truth=f"{value}")


def notes(*grades: grade.Grade) -> list[tuple[str, ...]]:
    return [each.notes for each in copies.looked_at(grades)]


def test_honest_ones_are_not_noted() -> None:
    first = graded("1", right("a", 1.0), right("b", 2.0), wrong("c", 7.0))
    second = graded("2", right("a", 1.5), right("b", 2.0), wrong("c", 7.0))
    assert notes(first, second) == [(), ()]


def test_answers_of_another_student_are_found() -> None:
    first = graded("1", right("a", 1.0), right("b", 2.0))
    second = graded("2", wrong("a", 1.0), wrong("b", 2.0))
    assert notes(first, second) == [
        ("2 of its right answers are in the submission of 2 too, where they are wrong",),
        ("2 wrong answers are the right ones of 1",),
    ]


def test_who_has_a_value_in_common_by_chance_is_not_named() -> None:
    first = graded("1", right("a", 1.0), right("b", 2.0), right("c", 3.0))
    second = graded("2", wrong("a", 1.0), wrong("b", 2.0), wrong("c", 3.0))
    third = graded("3", right("a", 1.0), right("b", 2.0), right("c", 4.0))
    assert notes(first, second, third) == [
        ("3 of its right answers are in the submission of 2 too, where they are wrong",),
        ("3 wrong answers are the right ones of 1",),
        (),
    ]


def test_answers_that_are_wrong_for_both_are_found() -> None:
    def given(truth: str) -> list[grade.QuestionGrade]:
        return [wrong(name, 1.0, truth) for name in "abc"]

    assert notes(graded("1", *given("x")), graded("2", *given("y")), graded("3", *given("z"))) == [
        ("3 wrong answers are the same as those of 2, 3",),
        ("3 wrong answers are the same as those of 1, 3",),
        ("3 wrong answers are the same as those of 1, 2",),
    ]


def test_the_same_mistake_where_the_same_is_true_is_no_copy() -> None:
    given = [wrong(name, 1.0, "x") for name in "abc"]
    assert notes(graded("1", *given), graded("2", *given)) == [(), ()]


def test_answers_of_other_labs_are_not_held_against_each_other() -> None:
    first = graded("1", right("a", 1.0), right("b", 2.0))
    assert notes(first, graded("2", wrong("a", 1.0), wrong("b", 2.0), lab="mathis")) == [(), ()]


def test_a_text_that_two_wrote_alike_is_found_whatever_its_spaces() -> None:
    text = "A sender fills whatever buffer there is, since only loss tells it to slow down."
    first = graded("1", question("why", "teacher", kind="words", answer=text))
    second = graded("2", question("why", "teacher", kind="words", answer=text.upper().replace(" ", "\n  ")))
    short = graded("3", question("why", "teacher", kind="words", answer="Loss."))
    assert notes(first, second, short, graded("4", *short.questions)) == [
        ("the text of why is the same as that of 2",),
        ("the text of why is the same as that of 1",),
        (),
        (),
    ]


def test_records_of_another_student_are_found() -> None:
    ran = grade.RunGrade(scenario="bloat", name="x", inputs="a" * 64, said=grade.CONFIRMED)
    first = graded("1", runs=(ran,), own=("a" * 64,))
    second = graded(
        "2", runs=(grade.RunGrade(scenario="bloat", name="x", inputs="a" * 64, said=grade.CHANGED),), own=("b" * 64,)
    )
    assert notes(first, second) == [
        ("2 handed in 1 run of its scenarios",),
        ("1 of its runs are of the scenarios of 1",),
    ]


def test_runs_that_are_the_same_for_all_are_everybodys() -> None:
    ran = grade.RunGrade(scenario="bloat", name="x", inputs="a" * 64, said=grade.CONFIRMED)
    assert notes(*(graded(name, runs=(ran,), own=("a" * 64,)) for name in "12")) == [(), ()]


def test_the_same_file_twice_and_another_number_in_it_are_found() -> None:
    first = graded("1", file="1/bufferbloat-1.zip")
    second = graded("1", file="2/bufferbloat-2.zip")
    found = notes(first, second)
    assert found == [
        ("the same file as 2/bufferbloat-2.zip",),
        (
            "the same file as 1/bufferbloat-1.zip",
            "does not count: 1/bufferbloat-1.zip does, of the same student",
            "the file is named for 2, the submission is of 1",
        ),
    ]


def test_browsers_may_number_files() -> None:
    assert notes(graded("1", file="bufferbloat-1 (2).zip"), graded("2", file="bufferbloat-2-1.zip")) == [(), ()]


def test_a_second_submission_of_a_student_is_said() -> None:
    """The one in which something was done last counts, once, whatever the order of the files."""
    first = graded("1", right("a", 1.0), file="a.zip", sha256="1" * 64, latest="2026-11-02T10:00:00+00:00")
    second = graded("1", wrong("a", 1.0), file="b.zip", sha256="2" * 64, latest="2026-11-01T10:00:00+00:00")
    for grades in ([first, second], [second, first]):
        found = {each.file: each for each in copies.looked_at(grades)}
        assert found["a.zip"].notes == ("1 handed in more than once: this one counts, not b.zip",)
        assert found["b.zip"].notes == ("does not count: a.zip does, of the same student",)
        assert (found["a.zip"].replaced, found["b.zip"].replaced) == ("", "a.zip")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("bufferbloat-1.zip", "bufferbloat-1_final.zip"),
        ("bufferbloat-1.zip", "bufferbloat-1 - Kopie.zip"),
        ("bufferbloat-1.zip", "bufferbloat-1 (1).zip"),
        ("bufferbloat-1 (2).zip", "bufferbloat-1 (10).zip"),
        ("bufferbloat-1.zip", "bufferbloat-1-2.zip"),
        ("attempt 9/bufferbloat-1.zip", "attempt 10/bufferbloat-1.zip"),
    ],
)
def test_a_later_copy_of_a_file_counts_where_nothing_was_done_meanwhile(first: str, second: str) -> None:
    """As after a text was written anew, which nobody checks; whatever the student added to the file's name."""
    files = sorted([first, second])
    found = copies.looked_at([graded("1", file=file, sha256=f"{len(file):064}") for file in files])
    assert {each.file: each.replaced for each in found} == {first: second, second: ""}
    assert not any("is named for" in note for each in found for note in each.notes)


def test_of_two_submissions_of_the_same_second_the_one_with_more_checks_counts() -> None:
    second = "2026-11-02T10:00:00+00:00"
    first = graded("1", file="first.zip", sha256="1" * 64, latest=second, checks=2)
    later = graded("1", file="a later one.zip", sha256="2" * 64, latest=second, checks=3)
    assert [each.replaced for each in copies.looked_at([later, first])] == ["", "a later one.zip"]


def test_a_file_of_somebody_whose_number_begins_alike_is_misnamed() -> None:
    for other in ("42", "4.b", "4@b"):
        ((note,),) = notes(graded("4", file=f"bufferbloat-{other}.zip"))
        assert note == f"the file is named for {other}, the submission is of 4"


def test_things_that_are_counted_speak_for_no_copy() -> None:
    """Who counts rounds from 0 has the small numbers of half of the class."""

    def counted(verdict: verdicts.State, truth: str) -> list[grade.QuestionGrade]:
        return [question(name, verdict, kind="count", value=4.0, truth=truth) for name in "abc"]

    assert notes(graded("1", *counted("right", "4")), graded("2", *counted("wrong", "5"))) == [(), ()]


@pytest.mark.parametrize(
    "text",
    [
        "4711\n4712\n\n# left\n4713\n",
        "4711 \n 4712\n4713\n",
        "student\n4711\n4712\n4713\n",
        "name;Matriculation;mail\nA, B;4711;a@b\nC;4712;\nD;4713;d\n",
        "\ufeffName,ID\r\nA,4711\r\nB,4712\r\nC,4713\r\n4,4711\r\n",
        '"Number"\t"x"\n"4711"\t1\n4712\t1\n4713\t1\n',
        "Nachname;Matrikelnummer;E-Mail-Adresse\nÄ;4711;\nß;4712;\nC;4713;d\n",
        'Student,ID,SIS User ID\n"A, B",1,4711\nC,2,4712\nD,3,4713\n',
    ],
)
def test_lists_of_students_are_read_as_they_come(tmp_path: Path, text: str) -> None:
    path = tmp_path / "students.csv"
    for encoding in ("utf-8", "cp1252", "utf-16"):
        if "\ufeff" not in text or encoding == "utf-8":
            path.write_bytes(text.encode(encoding))
            assert roster.read(path) == ["4711", "4712", "4713"]


@pytest.mark.parametrize("text", ["", "# none\n", "a,b\n1,2\n", "4711\n../x\n", "4711\n=1+1\n", "4711\n\x1b[2J\n"])
def test_lists_that_are_none_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "students.csv"
    path.write_text(text)
    with pytest.raises(RosterError) as found:
        roster.read(path)
    assert str(found.value).isprintable()


def test_a_list_has_numbers_in_the_form_that_counts(tmp_path: Path) -> None:
    path = tmp_path / "students"
    path.write_text("S4711\na.b@c.org\ns4711\n")
    assert roster.read(path) == ["s4711", "a.b@c.org"]


def test_a_list_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RosterError, match="No such file"):
        roster.read(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RosterError, match=r'row 1: student "[^"]+": write a number'):
        roster.read(tmp_path / "binary")


def test_of_a_students_folder_the_file_that_is_handed_in_is_graded(tmp_path: Path) -> None:
    """`ewan course hand-in` writes it there, and whoever hands in the whole folder has it in it."""
    for name, files in {
        "whole": [
            "course.json",
            "answers.yaml",
            "bufferbloat-4711.zip",
            "results/1/experiment.json",
            "results/1/x.zip",
        ],
        "without": ["course.json", "answers.yaml", "results/1/experiment.json"],
        "unpacked": ["submission.json", "bufferbloat-4711.zip"],
        "results": ["experiment.json", "summary.json"],
    }.items():
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    assert [each.file for each in sources.below(tmp_path)] == [
        "results/experiment.json",
        "unpacked/submission.json",
        "whole/bufferbloat-4711.zip",
        "without/course.json",
    ]


def test_who_is_missing_and_who_is_unknown() -> None:
    found = roster.held([graded("1"), graded("9"), graded("2", lab="mathis")], ["1", "2"], {"bufferbloat", "mathis"})
    assert [(each.student, each.lab, each.status) for each in found] == [
        ("1", "bufferbloat", "graded"),
        ("9", "bufferbloat", "graded"),
        ("2", "mathis", "graded"),
        ("2", "bufferbloat", "missing"),
        ("1", "mathis", "missing"),
    ]
    assert found[1].notes == ("9 is not on the list of students",)


def test_who_handed_in_what_cannot_be_read_did_not_hand_in_nothing() -> None:
    refused = [
        grade.Grade(file=f"A B_1_file_/{name}", status="refused", error="is no zip")
        for name in ("bufferbloat-s1.zip", "BUFFERBLOAT-S2 (1).ZIP", "bufferbloat-s33.zip", "x.pdf")
    ]
    found = roster.held([graded("s9"), *refused], ["s1", "s2", "s3"], {"bufferbloat"})[5:]
    assert [each.status for each in found] == ["missing"] * 3
    assert [each.error for each in found] == [*["nothing that can be read was handed in"] * 2, "nothing was handed in"]
    assert [each.notes for each in found] == [
        ("A B_1_file_/bufferbloat-s1.zip is no zip",),
        ("A B_1_file_/BUFFERBLOAT-S2 (1).ZIP is no zip",),
        (),
    ]


FULL = graded(
    "4711",
    question("pipe", value=1.5, truth="1.5s", say="x"),
    runs=(grade.RunGrade(scenario="s", name="n", inputs="a" * 64, said=grade.CONFIRMED),),
    own=("a" * 64,),
    checks=3,
    seconds=1.5,
    notes=("n",),
)


def test_a_grade_is_found_again_until_anything_changes(tmp_path: Path) -> None:
    with GradeLedger(tmp_path / "g").opened() as book:
        book.add(FULL, "by")
    with GradeLedger(tmp_path / "g").opened() as book:
        assert book.find(FULL.file, FULL.sha256, "by") == FULL
        renamed = book.find("other.zip", FULL.sha256, "by")
        assert renamed is not None and renamed.file == "other.zip"
        assert book.find(FULL.file, "0" * 64, "by") is None
        assert book.find(FULL.file, FULL.sha256, "another version") is None
    with GradeLedger(tmp_path / "g").opened(again=True) as book:
        assert book.find(FULL.file, FULL.sha256, "by") is None


def test_a_ledger_that_was_cut_anywhere_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "g"
    other = graded("4712")
    with GradeLedger(path).opened() as book:
        book.add(FULL, "by")
        first = path.stat().st_size
        book.add(other, "by")
    whole = path.read_bytes()
    for length in range(first, len(whole), 7):
        path.write_bytes(whole[:length])
        with GradeLedger(path).opened() as book:
            assert book.find(FULL.file, FULL.sha256, "by") == FULL
            book.add(other, "by")
        with GradeLedger(path).opened() as book:
            assert book.find(other.file, other.sha256, "by") == other
            assert book.find(FULL.file, FULL.sha256, "by") == FULL


def test_lines_that_are_none_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "g"
    path.write_bytes(
        b'x\n{"format":"ewan-grades/1"}\n{"format":"ewan-grades/1","basis":"by","grade":{"file":1}}\n\xff\n[]\n'
    )
    with GradeLedger(path).opened() as book:
        assert book.find("1", "", "by") is None


def test_one_grader_at_a_time(tmp_path: Path) -> None:
    with (
        GradeLedger(tmp_path / "g").opened(),
        pytest.raises(LabError, match="another"),
        GradeLedger(tmp_path / "g").opened(),
    ):
        pass


def test_a_ledger_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--csv"), GradeLedger(tmp_path / "none" / "g").opened():
        pass


def test_grades_are_for_the_teacher_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with GradeLedger(tmp_path / "g").opened():
            assert (tmp_path / "g").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def check(number: int, before: str = "") -> submission.CheckRecord:
    return submission.CheckRecord(
        at="2026-11-24T17:00:00+00:00", verdicts={"pipe": "wrong"}, number=number, before=before
    )


def chain(length: int) -> list[submission.CheckRecord]:
    found: list[submission.CheckRecord] = []
    for number in range(1, length + 1):
        found.append(check(number, found[-1].digest if found else ""))
    return found


def test_a_journal_that_was_cut_anywhere_is_seen() -> None:
    whole = chain(5)
    journal = submission.CheckJournal(checks=5, last=whole[-1].digest)
    assert history.missing(whole, journal) == ""
    assert history.missing(whole, submission.CheckJournal(checks=4, last=whole[3].digest)) == "", (
        "a check was interrupted"
    )
    assert history.missing([], submission.CheckJournal(checks=0, last="")) == ""
    for cut in (whole[:4], whole[1:], whole[:2] + whole[3:], [], [whole[-1]], [*whole[:4], check(5)], whole[::-1]):
        said = history.missing(cut, journal)
        assert said == f"the journal of checks was changed: {len(cut)} of 5 are in it"
    old = [check(0), check(0)]
    assert history.missing(old, submission.CheckJournal(checks=0, last="")) == "", "checks of an older version"
    later = check(3, old[-1].digest)
    assert history.missing([*old, later], submission.CheckJournal(checks=3, last=later.digest)) == ""


def test_checks_are_chained_in_the_folder(tmp_path: Path) -> None:
    mine = folder.start(reading.find("bufferbloat"), "4711", tmp_path / "mine")
    for _ in range(3):
        history.add(mine, {"pipe": "wrong"})
    loaded = folder.load(mine)
    made = submission.CheckJournal(checks=loaded.record.checks, last=loaded.record.last_check)
    assert (made.checks, history.missing(history.read(mine), made)) == (3, "")
    lines = (mine / history.FILE).read_text().splitlines(keepends=True)
    (mine / history.FILE).write_text(lines[-1])
    assert history.missing(history.read(mine), made) == "the journal of checks was changed: 1 of 3 are in it"
    (mine / history.FILE).unlink()
    assert history.missing(history.read(mine), made) == "the journal of checks was changed: 0 of 3 are in it"
    history.add(mine, {"pipe": "right"})
    loaded = folder.load(mine)
    made = submission.CheckJournal(checks=loaded.record.checks, last=loaded.record.last_check)
    assert history.missing(history.read(mine), made), "checks that are made later do not hide it"


USERS = {"users": [{"id": 7, "name": "Ada L", "email": "Ada@Example.org"}]}


@pytest.mark.parametrize(
    ("student", "numbers", "status", "said"),
    [
        ("4711", {"ada@example.org": "4711"}, "graded", ""),
        ("4711", {"ada@example.org": "4712"}, "refused", "was uploaded by Ada L (ada@example.org), and it is the"),
        ("ada", {}, "graded", ""),
        ("ada@example.org", {}, "graded", ""),
        ("bob@example.org", {}, "refused", "it is the submission of another student"),
        ("4711", {}, "graded", "uploaded by Ada L (ada@example.org): is that 4711?"),
    ],
)
def test_who_uploaded_it_is_held_against_whose_it_is(
    tmp_path: Path, student: str, numbers: dict[str, str], status: str, said: str
) -> None:
    (tmp_path / uploader.FILE).write_text(json.dumps(USERS))
    (found,) = uploader.held([graded(student, right("a", 1.0))], uploader.found(tmp_path / "submission"), numbers)
    assert found.status == status and said in "; ".join([found.error, *found.notes])
    assert (found.points, bool(found.notes)) == (0.0 if status == "refused" else 1.0, said.startswith("uploaded"))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"users": 1}', '{"users": [1]}', '{"users": [{}]}'])
def test_what_is_beside_submissions_may_be_anything(tmp_path: Path, content: str) -> None:
    (tmp_path / uploader.FILE).write_text(content)
    for mine in ([], uploader.found(tmp_path / "submission")):
        assert uploader.held([graded("4711")], mine, {})[0].status == "graded"


def test_a_list_may_have_addresses(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("SID,Email\n4711,Ada@Example.org\n4712,\n")
    assert roster.addresses(tmp_path / "list.csv") == {"4711": "ada@example.org", "4712": ""}


def test_broken_answers_stop_no_hand_in(tmp_path: Path) -> None:
    mine = folder.start(reading.find("bufferbloat"), "4711", tmp_path / "mine")
    lines = ["pipe: [1, 2", "full: 1,1s", "full: 2s", "why: It waits: for a loss.", "- so", "pip: 3kB"]
    lines += ["tuned: {bufer: 1kB}", "small: 99,9ms", "remedy: " + "x" * 30_000]
    (mine / answers.FILE).write_text("\n".join(lines))
    made = hand_in.made(folder.load(mine))
    assert made.submission.answers["why"] == "It waits: for a loss.\n- so"
    assert (made.submission.answers["small"], made.submission.answers["pipe"]) == ("99,9ms", "[1, 2")
    assert submission.read(made.content) == made.submission
    said = "\n".join(made.notes)
    for words in (
        '"pip: 3kB": unknown question',
        "full: is answered twice",
        'bufer "1kB": unknown setting',
        "20000 letters",
    ):
        assert words in said


def test_who_tries_much_hands_in_the_runs_that_were_asked_for() -> None:
    """Of very many experiments, the oldest tries of the scenario that was tried most are left out."""

    def at(minute: int, scenario: str, changed: bool) -> submission.SubmittedExperiment:
        return experiment(run(), started=f"2026-11-24T17:{minute:02}:00+00:00", scenario=scenario, changed=changed)

    asked = [at(0, "tuning", False), at(1, "stock", True), at(2, "buffers", False)]
    tried = [at(minute % 60, "tuning", True) for minute in range(3, 70)]
    kept = records.taken([*asked, *tried])
    assert len(kept) == submission.MOST_EXPERIMENTS and all(each in kept for each in asked)
    assert [each.started for each in kept] == sorted(each.started for each in kept)
    assert records.taken(asked) == asked


def test_a_scenario_whose_runs_nobody_confirmed_is_said() -> None:
    lab = reading.find("buffer-sizing")
    told = submission.read(handed_in(lab="buffer-sizing", journal={"checks": 9, "last": ""}))
    questions = [question(name) for name in ("pipe", "four", "price", "whole")]
    ran = [grade.RunGrade(scenario="single", name="x", inputs="a" * 64, said=grade.CONFIRMED)]
    known = [KnownRun(name, "x", "c" * 64, inputs * 64, "b" * 64) for name, inputs in (("single", "a"), ("many", "b"))]
    (line, journal) = doubts.of(told, lab, questions, ran, known)
    assert line == "no confirmed run of many, whose results are right answers to four, price"
    assert journal == "the journal of checks was changed: 0 of 9 are in it"
    both = [*ran, grade.RunGrade(scenario="many", name="x", inputs="b" * 64, said=grade.CONFIRMED)]
    assert list(doubts.of(told, lab, questions, both, known)) == [journal]
    assert next(doubts.of(told, lab, questions, [], known)) == "4 of 4 right, no confirmed run, 9 checks"
    assert list(doubts.of(told, lab, questions[:1], [], known)) == [journal], "what is computed needs no run"


def test_a_run_of_two_experiments_counts_once_in_what_is_handed_in() -> None:
    first, second = experiment(run(), run(inputs="1")), experiment(run())
    told = submission.Submission(
        lab="bloat", student="1", language="en", content="a" * 64, answers={}, experiments=(first, second), checks=()
    )
    assert hand_in.HandIn(told, b"", (), ()).runs == 2
