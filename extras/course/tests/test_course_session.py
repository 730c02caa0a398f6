"""A lab of the course in Python: answers that are written into the file, verdicts that are shown. No lab is run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ewan.extras.course import answer_file, answers, folder, reading, verdicts, words
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.reading import Lab
from ewan.extras.course.session import CheckTable, Session
from ewan.extras.course.tests.courses import written
from ewan.extras.course.verdicts import Truth
from ewan.labs.context import Context


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return reading.read(written(tmp_path_factory.mktemp("course")))


@pytest.fixture
def own(lab: Lab, tmp_path: Path) -> Session:
    path = folder.start(lab, "4711", tmp_path / "pipe")

    def unseen(*_: object) -> None:
        raise AssertionError("nothing is run here")

    return Session(path, Context.of(os.environ), unseen, unseen, lab.folder.parent)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "1.2MB",
        "it's 5: so # it is",
        '"quoted" \\ text',
        "two\nlines\n",
        "- a list?",
        "{braces}",
        "null",
        "ä µ →",
        "!tag",
        "tab\there",
    ],
)
def test_what_is_written_is_read_as_the_same(lab: Lab, text: str) -> None:
    before = folder.blank(lab)
    after = answer_file.put(before, "why", text, lab.questions, "answers.yaml")
    again = answer_file.put(after, "why", "more", lab.questions, "answers.yaml")
    found = answers.read(after, "answers.yaml", lab.questions)
    assert found["why"].text == text
    assert answers.read(again, "answers.yaml", lab.questions)["why"].text == "more"
    kept = [line for line in before.splitlines() if line != "why:"]
    assert [line for line in again.splitlines() if line != "why: more"] == kept, "all else is as it was"


def test_settings_are_written_where_they_are(lab: Lab) -> None:
    before = folder.blank(lab)
    for text in (before, "tuned: {buffer: 1kB}\n", "tuned:\n", "pipe: 1kB", "tuned:\n  buffer: 1kB  # so\n"):
        after = answer_file.put(text, "tuned", {"buffer": "30kB"}, lab.questions, "answers.yaml")
        assert answers.read(after, "answers.yaml", lab.questions)["tuned"].settings == {"buffer": "30kB"}, after
        assert after.count("#") == text.count("#")


@pytest.mark.parametrize("text", ["pipe: [", "- a\nlaw: b\n", "why: {a: 1}\n", "tuned: {other: 1}\n"])
def test_a_file_that_was_broken_by_hand_is_written_to(lab: Lab, text: str) -> None:
    after = answer_file.put(
        answer_file.put(text, "why", "x", lab.questions, "a"), "tuned", {"buffer": "1kB"}, lab.questions, "a"
    )
    found = answers.read(after, "a", lab.questions)
    assert found["why"].text == "x" and found["tuned"].settings == {"buffer": "1kB"}
    assert found["pipe"].text == ("[" if "pipe" in text else None)


def test_answers_of_a_notebook_are_in_the_file(own: Session, tmp_path: Path) -> None:
    own.answer("pipe", "42kB")
    own.answer("tuned", buffer="30kB")
    own.answer("delay", "")
    own.answer("tuned", buffer="")
    text = (tmp_path / "pipe/answers.yaml").read_text()
    assert "\npipe: 42kB\n" in text and "\ntuned: {buffer: 30kB}\n" in text and "\ndelay:\n" in text
    with pytest.raises(ValueError, match='unknown question, write "pipe"'):
        own.answer("pip", "42kB")
    assert (tmp_path / "pipe/answers.yaml").read_text() == text


def test_the_notebooks_cells_are_calls_of_the_session(own: Session, lab: Lab, tmp_path: Path) -> None:
    found = json.loads((tmp_path / "pipe/pipe.ipynb").read_text())
    for cell in found["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            compile(source, "cell", "exec")
            called = source.rpartition("lab.")[2].partition("(")[0]
            assert "ewan.course" in source or hasattr(own, called)


def test_commands_run_in_the_folder_and_tell_when_they_fail(own: Session, capfd: pytest.CaptureFixture[str]) -> None:
    own.run("ls answers.yaml\necho done")
    assert capfd.readouterr().out == "answers.yaml\ndone\n"
    own.run("ewan --version")
    assert "ewan, version" in capfd.readouterr().out
    with pytest.raises(ValueError, match="ended with status 3, see above"):
        own.run("exit 3")
    with pytest.raises(ValueError, match="there is no experiment yet"):
        own.figure("rtt over time")


def test_a_check_is_shown_as_text_and_as_a_table(lab: Lab) -> None:
    judged = verdicts.judge(lab.questions["why"], Truth(), WrittenAnswer("<b>&"), words.of("en"))
    wrong = verdicts.judge(lab.questions["pipe"], Truth(42_000.0), WrittenAnswer("1kB"), words.of("en"))
    found = CheckTable("A pipe", (wrong, judged), "en")
    assert repr(found).splitlines()[1] == f"pipe  wrong: {words.of('en').again}"
    assert "&lt;b&gt;&amp;" in found._repr_html_() and "<b>&" not in found._repr_html_()
    assert found.points == "0 of 1 points; 2 more from the teacher"


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no course\.json"):
        Session(tmp_path, Context.of(os.environ), None, None)  # type: ignore[arg-type]
