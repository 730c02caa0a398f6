"""Predictions: recorded before the measurement, never marked, and shown beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ewan.extras.course import answers, folder, markdown, parameters, reading, rendering, verdicts, words
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.reading import Lab
from ewan.extras.course.tests.courses import COURSE, TEXT, written
from ewan.extras.course.verdicts import QuestionVerdict, Truth
from ewan.labs.base.errors import UserError

DELAY = "  - {name: expected, ask: How long will it take?, answer: time, predicts: delay}\n"
LAW = "  - {name: bet, ask: How will it grow?, answer: choice, choices: [linear, square root], predicts: law}\n"
WITH = COURSE.replace("questions:\n", f"questions:\n{DELAY}{LAW}")
ASKING = TEXT.replace(
    '{{ question("pipe") }}', '{{ question("pipe") }}\n\n{{ question("expected") }}\n\n{{ question("bet") }}'
)
EN, DE = words.of("en"), words.of("de")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    place = written(tmp_path_factory.mktemp("course"), WITH, ASKING)
    for file in place.glob("*.de.*"):
        file.unlink()
    return reading.read(place)


def judged(lab: Lab, earlier: Sequence[Mapping[str, str]] = (), /, **given: str) -> dict[str, QuestionVerdict]:
    """The verdicts on some answers after `earlier` checks; the delay is 42 ms, the law a square root."""
    truths = {"delay": Truth(0.042), "law": Truth("square root")}
    found = [
        verdicts.judge(each, truths.get(each.name, Truth()), WrittenAnswer(given.get(each.name)), EN)
        for each in lab.course.questions
        if each.settings is None
    ]
    recorded = verdicts.recorded_predictions(earlier)
    return {each.question: each for each in verdicts.compared(lab.questions, found, EN, recorded)}


def test_a_prediction_is_recorded_and_not_marked(lab: Lab) -> None:
    found = judged(lab, expected="50ms")
    assert found["expected"] == QuestionVerdict("expected", "predicted", None, 0)
    assert found["bet"].state == "unpredicted" and found["bet"].most == 0
    assert verdicts.points_of(list(found.values()))[1] == sum(each.points for each in lab.course.questions) - 2 - 1
    assert verdicts.status_of([found["expected"], found["bet"]]) == 0
    assert verdicts.summary_of([found["expected"]]) == {"expected": "predicted: 50ms"}


def test_what_was_predicted_stands_beside_the_answer_once_that_is_right(lab: Lab) -> None:
    assert judged(lab, expected="50ms", delay="42ms")["expected"].say == "you predicted 50ms, answered 42ms"
    assert judged(lab, expected="50ms", delay="77ms")["expected"].say == ""
    assert judged(lab, bet="a", law="b")["bet"].say == "you predicted linear, answered square root"


def test_a_prediction_that_is_rewritten_later_does_not_replace_the_first_one(lab: Lab) -> None:
    checks = [verdicts.summary_of(list(judged(lab, **each).values())) for each in (
        {}, {"expected": "long", "bet": "b"}, {"expected": "50ms"}, {"expected": "60ms"},
    )]  # fmt: skip
    found = judged(lab, checks, expected="42ms", delay="42ms", bet="a", law="b")
    assert found["expected"].answer == "42ms", "the table shows what is in the file"
    assert found["expected"].say == "you predicted 50ms, answered 42ms", "the first that can be read"
    assert found["bet"].say == "you predicted square root, answered square root"


def test_a_prediction_that_cannot_be_read_says_how_to_write_it(lab: Lab) -> None:
    found = judged(lab, expected="long", bet="z", delay="42ms")
    assert found["expected"].state == found["bet"].state == "predicted"
    assert "42.1ms" in found["expected"].say and found["bet"].say == "write a letter from a to b"
    assert verdicts.status_of([found["expected"]]) == 0


def test_a_folder_asks_for_predictions_as_such(lab: Lab) -> None:
    made = folder.contents(lab, "4711")
    assert "# Prediction: How long will it take?\n" in made["answers.yaml"].decode()
    page = made["pipe.md"].decode()
    assert "> **Prediction `expected`**: How long will it take?\n" in page and EN.unmarked in page
    assert answers.read(made["answers.yaml"].decode(), "answers.yaml", lab.questions)["expected"].empty


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("predicts: delay", "predicts: dely", 'no question of this name comes later, write "delay"'),
        ("predicts: delay", "predicts: pipe", "a prediction of an answer that is a size is a size or a choice"),
        ("predicts: delay", "predicts: expected", "no question of this name comes later"),
        ("predicts: delay", "predicts: delay, points: 2", 'a prediction has no "points": leave it out'),
        ("predicts: delay", "predicts: delay, truth: rtt", 'a prediction has no "truth": leave it out'),
        ("answer: time, predicts", "answer: words, predicts", "a prediction is an amount or a choice"),
        ("[linear, square root], predicts", "[linear], predicts", "write two choices or more"),
    ],
)
def test_what_is_wrong_with_one_is_said_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        reading.read(written(tmp_path, WITH.replace(old, new, 1), ASKING))
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_text_asks_for_a_prediction_before_the_measurement(tmp_path: Path) -> None:
    late = TEXT + '{{ question("expected") }}\n{{ question("bet") }}\n'
    lab = reading.read(written(tmp_path, WITH, late))
    drawing = parameters.drawn(lab.name, "4711", lab.course.parameters)
    with pytest.raises(UserError, match='question\\("expected"\\): predicts "delay": ask it before that'):
        rendering.text(lab, drawing, markdown.marker)


def test_a_text_begins_with_time_level_prerequisites_and_goals(tmp_path: Path) -> None:
    own = reading.read(written(tmp_path))
    for lab, lines in (
        (own, ["**Time**: 45 minutes. **Level**: bachelor.", "- what a bit is", "- compute what fits into a path"]),
        (reading.translated(own, "de"), ["**Zeit**: 45 Minuten. **Niveau**: Bachelor.", "- was ein Bit ist"]),
    ):
        page = folder.contents(lab, "4711")["pipe.md"].decode()
        head = page.partition("## 1.")[0].splitlines()
        assert head[0].startswith("# ") and [each for each in lines if each not in head] == []


AXES = "```axes\nx: time (s), 0 to 45\ny: RTT (ms), 0 to {{ (numbers.rtt * 3000) | int }}\n```\n"


def test_empty_axes_are_a_picture_in_the_folder_that_page_and_notebook_show(tmp_path: Path) -> None:
    made = folder.contents(reading.read(written(tmp_path, text=f"{TEXT}\n{AXES}")), "4711")
    picture = ElementTree.fromstring(made["axes-1.svg"])
    texts = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"time (s)", "RTT (ms)", "0", "40"} <= set(texts)
    for file in ("pipe.md", "pipe.ipynb"):
        assert "![RTT (ms) / time (s)](axes-1.svg)" in made[file].decode()


@pytest.mark.parametrize(
    ("old", "new"),
    [("x: time", "t: time"), ("0 to 45", "45 to 0"), ("0 to 45", "0 to 1.2.3"), ("x: time (s), 0 to 45\n", "")],
)
def test_axes_that_cannot_be_drawn_are_refused(tmp_path: Path, old: str, new: str) -> None:
    lab = reading.read(written(tmp_path, text=f"{TEXT}\n{AXES.replace(old, new)}"))
    with pytest.raises(UserError, match=r"text\.md: axes") as error:
        folder.contents(lab, "4711")
    assert "\n" not in str(error.value)
