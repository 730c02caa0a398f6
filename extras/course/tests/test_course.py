"""Labs of the course: reading, parameters, expressions, answers, verdicts, folders. No lab is run."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from ewan.extras.course import (
    amount_words,
    amounts,
    answers,
    expressions,
    folder,
    markdown,
    parameters,
    reading,
    rendering,
    verdicts,
    words,
)
from ewan.extras.course.amounts import Kind
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.fields import DrawnParameter, Question, SettingChoice
from ewan.extras.course.measures.base import NoValueError, Value
from ewan.extras.course.reading import Lab
from ewan.extras.course.tests.courses import COURSE, GERMAN, SCENARIO, TEXT, written
from ewan.extras.course.verdicts import KnownMistake, Truth
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import UnitError


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return reading.read(written(tmp_path_factory.mktemp("course")))


def refused(place: Path, old: str, new: str) -> str:
    """What is said of the small lab's course.yaml with another text in it."""
    assert old in COURSE
    found = written(place, COURSE.replace(old, new, 1))
    with pytest.raises(UserError) as error:
        reading.read(found)
    return str(error.value).replace(str(found), "01-pipe")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("level: bachelor", "level: easy", 'course.yaml:4: level "easy": write "bachelor" or "master"'),
        ("goals: [compute what fits into a path]", "goals: []", "goals"),
        ("[what a bit is]", "[bits]", 'yaml:5: prerequisites[0] "bits": no lab of this name comes before this one'),
        ("minutes: 45", "minuts: 45", 'course.yaml:3: minuts "45": unknown key of a course lab, write "minutes"'),
        ("step: 2ms", "step: 2", 'course.yaml:9: parameters.rtt: "from", "to" and "step" are of different kinds'),
        ("[reno, cubic]", "[reno]", "course.yaml:10: parameters.variant: has one value for all"),
        ("truth: bdp\n", "truth: bpd\n", ':17: questions[0].truth "bpd": unknown name "bpd": write "bdp"'),
        ('metric("util', 'metrik("util', 'questions[2].truth "metrik("utilisation")": unknown function "metrik"'),
        ("truth: rtt / 2", "truth: rtt /", 'is no expression: write one like "rate * rtt / 8"'),
        ("truth: rtt / 2", "truth: rtt[0]", "Subscript is no part of expressions"),
        ("truth: rtt / 2", "truth: rtt.real", "a name has no parts"),
        ("truth: rtt / 2", "truth: __import__('os')", 'unknown function "__import__"'),
        ("tolerance: 0.5ms", "tolerance: 0.5", 'tolerance "0.5": write "2%", or a time as "42.1ms"'),
        ("    because: Of the 2 s.\n", "", '"because:" is missing: a question whose answer is share has one'),
        ("answer: words, points: 2", "answer: words, truth: 2", 'whose answer is words has no "truth"'),
        ("name: why", "name: law", "questions[4].name \"law\": there is a question of this name"),
        ("settings.buffer <=", "settings.bufer <=", 'unknown setting "bufer": write "buffer"'),
        ("answer: size", "answer: bytes", "write \"time\", \"rate\""),
        ('utilisation")\n    tol', 'utilisation", of="pip")\n    tol', 'there is no scenario "pip": write "pipe"'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    message = refused(tmp_path, old, new)
    assert said in message and "\n" not in message


def test_a_students_values_are_the_same_everywhere() -> None:
    """Drawn by hand, as docs/contribute/adding/course-lab.md says it."""
    drawn = DrawnParameter.model_validate({"from": "30ms", "to": "90ms", "step": "2ms"})
    digest = hashlib.sha256(b"ewan-course/1\0pipe\x004711\0rtt").digest()
    expected = 30 + 2 * (int.from_bytes(digest, "big") % 31)
    found = parameters.drawn("pipe", " 4711 ", {"rtt": drawn})
    assert found.texts == {"rtt": f"{expected}ms"}
    assert found.numbers["rtt"] == pytest.approx(expected / 1000)
    assert len({parameters.drawn("pipe", str(each), {"rtt": drawn}).texts["rtt"] for each in range(200)}) > 25


@pytest.mark.parametrize("word", ["", "../4711", "a/b", "x" * 200, "4 711", "-4711", "47\n11", "4711\0"])
def test_a_students_number_is_a_word(word: str) -> None:
    with pytest.raises(UserError, match="write a number"):
        parameters.student(word)


def test_ranges_are_exact() -> None:
    drawn = DrawnParameter.model_validate({"from": "0.5Mbit/s", "to": "2Mbit/s", "step": "0.1Mbit/s"})
    assert len(drawn.values) == 16 and drawn.values[0] == "500kbit/s" and drawn.values[-1] == "2Mbit/s"
    assert DrawnParameter.model_validate({"from": 1, "to": 3, "step": 1}).values == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7.0),
        ("rate * rtt / 8", 42_000.0),
        ("sqrt(16) + log2(8)", 7.0),
        ("amount('200ms') * 2", 0.4),
        ("'reno' if rtt > 0.01 else 'cubic'", "reno"),
        ("rtt < 0.05 and rate > 1", True),
        ("min(rtt, 1) ** 2", 0.0016),
    ],
)
def test_expressions_compute(text: str, value: Value) -> None:
    names = {"rate": 8_400_000.0, "rtt": 0.04}
    expressions.check(text, names)
    found = expressions.evaluate(text, names, {})
    assert found == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize("text", ["1 / (rtt - rtt)", "sqrt(0 - rtt)", "10 ** 400 * 1.0", "9 ** 9 ** 9", "log(0)"])
def test_an_expression_without_a_value_says_so(text: str) -> None:
    with pytest.raises(NoValueError):
        expressions.evaluate(text, {"rtt": 0.04}, {})


def test_what_an_expression_needs_of_runs_is_known_before() -> None:
    (first, second) = expressions.calls('metric("rtt p95", buffer="1BDP") - metric("rtt p95", of="other", buffer=rtt)')
    assert first.keywords == {"buffer": "1BDP"} and second.keywords == {"of": "other", "buffer": None}


GOOD = "pipe: 42kB\nlaw: linear\nwhy: |\n  Because.\n  So.\ntuned: {buffer: 50kB}\n"


def test_answers_are_what_was_typed(lab: Lab) -> None:
    found = answers.read(GOOD, "answers.yaml", lab.questions)
    assert found["pipe"].text == "42kB" and found["pipe"].place == "answers.yaml:1: "
    assert found["why"].text == "Because.\nSo." and found["delay"].empty
    assert found["tuned"].settings == {"buffer": "50kB"} and not found.strange
    again = answers.from_data(json.loads(json.dumps(answers.plain(found))), lab.questions)
    assert answers.plain(again) == answers.plain(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pipes: 1kB\n", 'answers.yaml:1: "pipes: 1kB": unknown question, write "pipe"'),
        ("- pipe\n", '"- pipe": belongs to no question'),
        ("  42kB\n", '"42kB": belongs to no question'),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "unknown question"),
        ("why: " + "x" * 300_000, "is larger than 256 KiB"),
    ],
)  # fmt: skip
def test_files_that_hold_no_answers(lab: Lab, text: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        answers.read(text, "answers.yaml", lab.questions)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "Solves: call. Not: pages",
        "- one\n- two",
        "> quoted",
        "'tis so",
        'it says "no" here',
        "{open",
        "[1, 2",
        "*important* word",
        "&amp",
        "!tag",
        "#1 is the queue",
        "100 % sure: yes # and so",
        "@home",
        "`code`",
        "%",
        "a\tb",
        "? why",
        "null",
        "first\n\nsecond: line",
    ],
)
def test_free_text_is_free(lab: Lab, text: str) -> None:
    """However it is put into the file, it is read, and so is what follows."""
    for told in (text, "|\n  " + text.replace("\n", "\n  "), json.dumps(text)):
        found = answers.read(f"pipe: 42kB\nwhy: {told}\n\n# a comment\ntuned:\n  buffer: 5kB\n", "a", lab.questions)
        assert found["why"].text == text and found["pipe"].text == "42kB" and not found.strange
        assert found["tuned"].settings == {"buffer": "5kB"}


@pytest.mark.parametrize(
    ("broken", "name", "said"),
    [
        ("pipe: [1, 2", "pipe", 'a:2: pipe "[1, 2": write a size'),
        ("pipe: !binary aGFsbG8=", "pipe", '"!binary aGFsbG8="'),
        ("pipe: &a 42kB", "pipe", '"&a 42kB"'),
        ("pipe: 1kB\npipe: 2kB", "pipe", "a:3: pipe: is answered twice, in line 2 too: leave one answer"),
        ("tuned: {bufer: 5kB}", "tuned", 'a:2: tuned: bufer "5kB": unknown setting, write "buffer"'),
        ("tuned: {buffer: 5kB\n  buffer: 6kB", "tuned", "buffer: is written twice"),
        ("tuned: {}5kB x {buffer: 3kB}", "tuned", "write the values as {buffer: …}"),
        ("pipe: " + "x" * 30_000, "pipe", "is longer than 20000 letters"),
        ("pipe: \ud800", "pipe", '"?"'),
    ],
)  # fmt: skip
def test_one_broken_answer_stops_no_other(lab: Lab, broken: str, name: str, said: str) -> None:
    found = answers.read(f"delay: 20ms\n{broken}\nlaw: linear\n", "a", lab.questions)
    assert found["delay"].text == "20ms" and found["law"].text == "linear"
    question, given = lab.questions[name], found[name]
    settled = question.settings is not None
    verdict = (
        verdicts.settle(question, given, None, EN) if settled else verdicts.judge(question, TRUTHS[name], given, EN)
    )
    assert verdict.state == "unreadable" and said in verdict.say


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("pipe:42kB", "pipe", "42kB"),
        ("pipe:\t42kB  # so", "pipe", "42kB"),
        ('"pipe": "42kB"', "pipe", "42kB"),
        ("pipe: |\n  42kB", "pipe", "42kB"),
        ("pipe:\n  42kB", "pipe", "42kB"),
        ("pipe:\npipe: 42kB", "pipe", "42kB"),
        ("pipe: ~", "pipe", None),
        ("---\npipe: 42kB\n...", "pipe", "42kB"),
        ("\ufeffpipe: 42kB\r\nlaw: linear\r\n", "pipe", "42kB"),
        ("why: a\nmore: text\npip: 42kB", "why", "a\nmore: text"),
        ("tuned: 5kB", "tuned", "5kB"),
        ("tuned: {buffer: 5kB}\n  buffer:", "tuned", "5kB"),
        ("tuned: 5kB\n  buffer:", "tuned", "5kB"),
        ("tuned: buffer = 0,5 BDP", "tuned", "0,5 BDP"),
        ('tuned: {"buffer": "5kB"}', "tuned", "5kB"),
        ("tuned:\n  buffer: 5kB  # mine", "tuned", "5kB"),
        ("tuned:\nbuffer: 5kB\nlaw: linear", "tuned", "5kB"),
        ("tuned: {\nbuffer: 5kB\n}", "tuned", "5kB"),
        ("tuned:\n- buffer: 5kB", "tuned", "5kB"),
        ("tuned: {Buffer: 5kB}", "tuned", "5kB"),
        ("tuned: {`buffer`: “5kB”}", "tuned", "5kB"),
        ("  pipe: 42kB\n  law: linear", "pipe", "42kB"),
        ("  law: linear\n  pipe: 42kB", "pipe", "42kB"),
        ("tuned:\n  buffer: 5kB\n  pipe: 42kB", "pipe", "42kB"),
        ("tuned:\n  buffer: 5kB\n  pipe: 42kB", "tuned", "5kB"),
        ("why: a\n  pipe: 42kB", "why", "a\npipe: 42kB"),
        ("  why: a\n  pipe: 42kB", "pipe", "42kB"),
        ("why: a\npipe: 42kB\nwhy: b: c", "why", "a\n\nb: c"),
        ("why:\npipe: 42kB\nwhy: a", "why", "a"),
    ],
)  # fmt: skip
def test_answers_are_read_as_people_write_them(lab: Lab, text: str, name: str, value: str | None) -> None:
    found = answers.read(text, "a", lab.questions)
    assert (found[name].settings["buffer"] if name == "tuned" else found[name].text) == value
    assert [line.partition(": ")[2] for line in found.strange] == (
        ['"pip: 42kB": unknown question, write "pipe"'] if "pip:" in text else []
    )


def test_editors_may_write_other_encodings(lab: Lab, tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        file = tmp_path / encoding
        file.write_bytes("why: Die Länge der Schlange\npipe: 42kB\n".encode(encoding))
        found = answers.load(file, lab.questions)
        assert found["why"].text == "Die Länge der Schlange" and found["pipe"].text == "42kB"


def test_no_answers_yet(lab: Lab) -> None:
    found = answers.read(folder.blank(lab), "answers.yaml", lab.questions)
    assert all(each.empty for each in found.values())
    assert list(yaml.safe_load(folder.blank(lab))) == list(lab.questions)


EN = words.of("en")
TRUTHS: Mapping[str, Truth] = {
    "pipe": Truth(42_000.0, (KnownMistake(21_000.0, "This is one way."),), "Multiply rate and time."),
    "delay": Truth(0.02),
    "busy": Truth(0.87),
    "law": Truth("linear"),
    "why": Truth(),
}


@pytest.mark.parametrize(
    ("name", "answer", "state", "say"),
    [
        ("pipe", "42kB", "right", ""),
        ("pipe", "42.84 kB", "right", ""),
        ("pipe", "42.85kB", "wrong", "Multiply rate and time."),
        ("pipe", "336kbit", "right", ""),
        ("pipe", "336kB", "wrong", EN.bits),
        ("pipe", "5.25kB", "wrong", EN.bits),
        ("pipe", "42MB", "wrong", EN.prefix),
        ("pipe", "42KiB", "wrong", EN.binary),
        ("pipe", "21kB", "wrong", "This is one way."),
        ("pipe", "42000", "unreadable", 'a.yaml:7: pipe "42000": write a size as "1.2MB"'),
        ("pipe", "42ms", "unreadable", 'write a size as "1.2MB"'),
        ("pipe", "42,5kB", "right", ""),
        ("pipe", "42,500B", "unreadable", 'write "42.500B" or "42500B"'),
        ("pipe", "41,999.9 bytes", "right", ""),
        ("pipe", "", "missing", ""),
        ("delay", "20.5ms", "right", ""),
        ("delay", "20.6ms", "wrong", EN.again),
        ("delay", "40ms", "wrong", EN.round_trip),
        ("delay", "20,5 msec", "right", ""),
        ("delay", "0.02 seconds", "right", ""),
        ("delay", "20s", "wrong", EN.prefix),
        ("busy", "86%", "right", ""),
        ("busy", "87 points", "right", ""),
        ("busy", "85.9%", "wrong", EN.again),
        ("busy", "0.87", "right", ""),
        ("busy", "87", "unreadable", 'write a share as "95%"'),
        ("busy", "115%", "wrong", EN.reciprocal),
        ("law", "Linear", "right", ""),
        ("law", "square root", "wrong", EN.again),
        ("law", "a", "right", ""),
        ("law", "A)", "right", ""),
        ("law", "(a) linear", "right", ""),
        ("law", "`a`", "right", ""),
        ("law", "“A” – linear", "right", ""),
        ("law", "a - linear", "right", ""),
        ("law", "a, linear", "right", ""),
        ("law", "b", "wrong", EN.again),
        ("law", "b - linear", "unreadable", "write a letter from a to b"),
        ("law", "b) linear", "unreadable", "write a letter from a to b"),
        ("law", "c", "unreadable", "write a letter from a to b"),
        ("law", "cubic", "unreadable", "write a letter from a to b"),
        ("why", "So it is.", "teacher", ""),
    ],
)
def test_verdicts_and_hints(lab: Lab, name: str, answer: str, state: str, say: str) -> None:
    found = verdicts.judge(lab.questions[name], TRUTHS[name], WrittenAnswer(answer, place="a.yaml:7: "), EN)
    assert found.state == state and say in found.say
    assert (found.say == "") == (say == "")


def asked(answer: str, tolerance: str) -> Question:
    told = {"name": "q", "ask": "How?", "truth": "1", "because": "So."}
    return Question.model_validate({**told, "answer": answer, "tolerance": tolerance})


@pytest.mark.parametrize(
    ("truth", "answer", "state"),
    [
        (5.462, "5.5", "close"),
        (5.462, "5.46", "right"),
        (5.462, "5.462", "right"),
        (5.462, "5.50", "wrong"),
        (5.462, "5.4", "wrong"),
        (5.462, "5", "wrong"),
        (0.408, "0.4", "close"),
        (0.408, ".41", "close"),
        (0.408, "0.408", "right"),
        (1.0049, "1.00", "right"),
        (1.203, "1", "wrong"),
        (30.4, "30", "close"),
        (304.0, "300", "close"),
        (299.8, "300", "right"),
        (3044.0, "3000", "close"),
        (9.0, "10", "wrong"),
        (99.7, "100", "close"),
        (99.96, "100", "right"),
        (-0.463, "-0.46", "close"),
        (-0.463, "0.46", "wrong"),
        (0.0, "0", "right"),
    ],
)  # fmt: skip
def test_one_rule_of_rounding(truth: float, answer: str, state: str) -> None:
    """Three digits are right whatever the tolerance, fewer are close, and others are wrong."""
    question = asked("ratio", "0.1%")
    assert verdicts.judge(question, Truth(truth), WrittenAnswer(answer), EN).state == state
    exact = asked("count", "0")
    if state == "close":
        found = verdicts.judge(question, Truth(truth), WrittenAnswer(answer), EN)
        assert (found.points, found.say) == (0, "give three digits")
        assert verdicts.judge(exact, Truth(truth), WrittenAnswer(answer), EN).state == "wrong"
        assert verdicts.status_of([found]) == 1


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("1.222", "right"),
        ("1.217", "right"),
        ("1.235", "right"),
        ("1.21", "wrong"),
        ("1.203", "wrong"),
        ("1.2", "close"),
    ],
)
def test_a_known_mistake_within_the_tolerance_is_told_apart(answer: str, state: str) -> None:
    question = asked("ratio", "2%")
    truth = Truth(1.222, (KnownMistake(1.203, "That is the base RTT."), KnownMistake(1.2221, "Nobody can tell.")))
    found = verdicts.judge(question, truth, WrittenAnswer(answer), EN)
    assert found.state == state and (state != "wrong" or found.say == "That is the base RTT.")


def test_common_mistakes_are_named_where_they_can_be_meant() -> None:
    size = asked("size", "5%")
    assert verdicts.judge(size, Truth(42_000.0), WrittenAnswer("44.2kB"), EN).say == EN.again, "5 % off is no 1024"
    wait = asked("time", "5%")
    assert verdicts.judge(wait, Truth(236.0), WrittenAnswer("118s"), EN).say == EN.again, (
        "minutes are no way of a packet"
    )
    assert verdicts.judge(wait, Truth(0.236), WrittenAnswer("118ms"), EN).say == EN.round_trip


def test_a_german_check_is_in_german(lab: Lab) -> None:
    german = words.of("de")
    found = verdicts.judge(lab.questions["pipe"], TRUTHS["pipe"], WrittenAnswer("42", place="a.yaml:7: "), german)
    assert found.say == 'a.yaml:7: pipe "42": schreibe es als Größe, etwa 1.2MB'
    assert verdicts.judge(lab.questions["pipe"], TRUTHS["pipe"], WrittenAnswer("42,000kB"), german).state == "right"
    assert verdicts.points_in_words([found], german) == "0 von 1 Punkten"
    both = verdicts.judge(lab.questions["pipe"], TRUTHS["pipe"], WrittenAnswer("42.000 B", place="a.yaml:7: "), german)
    assert (both.state, both.say) == (
        "unreadable",
        'a.yaml:7: pipe "42.000 B": kann zweierlei sein: schreibe "42,000 B" oder "42000 B"',
    )
    assert verdicts.judge(lab.questions["pipe"], TRUTHS["pipe"], WrittenAnswer("42.000kB"), german).state == "right"
    assert verdicts.judge(lab.questions["pipe"], TRUTHS["pipe"], WrittenAnswer("43.500 B"), german).state == "wrong"
    assert words.of("eo") == words.of("en"), "English where there are no words"


def test_a_verdict_does_not_tell_the_side(lab: Lab) -> None:
    """An answer above the truth and one below it are told the same."""
    for factor in (1.1, 1.5, 3, 8, 1000, 1e6):
        both = [f"{42_000 * factor:f}B", f"{42_000 / factor:f}B"]
        said = {verdicts.judge(lab.questions["pipe"], TRUTHS["pipe"], WrittenAnswer(each), EN).say for each in both}
        assert len(said) == 1


def test_what_could_not_be_computed_is_no_fault_of_the_student(lab: Lab) -> None:
    found = verdicts.judge(lab.questions["busy"], Truth(why="run 1 has no utilisation"), WrittenAnswer("80%"), EN)
    assert (found.state, found.say) == ("unknown", "run 1 has no utilisation")


def test_an_example_shows_how_settings_are_written(lab: Lab) -> None:
    tuned = lab.questions["tuned"]
    assert markdown.how(tuned, EN) == "like buffer: 2BDP"
    queue = SettingChoice.model_validate({"one of": ["codel", "pie"]})
    target = SettingChoice.model_validate({"from": "1ms", "to": "200ms"})
    both = tuned.model_copy(update={"settings": {"queue": queue, "target": target}})
    assert markdown.how(both, EN) == "like queue: codel, target: 1ms; queue is one of codel, pie"


def test_the_example_is_not_the_answer_of_a_lab() -> None:
    tuned = reading.find("bufferbloat").questions["tuned"]
    assert "2BDP" in markdown.how(tuned, EN), "1 / 0.7 - 1 to 1.25 times as much is right"


def test_settings_are_held_within_bounds(lab: Lab) -> None:
    question = lab.questions["tuned"]
    values = {"rate": 8e6, "rtt": 0.06}

    def settings(text: str | None) -> dict[str, str]:
        return verdicts.settings_of(question, WrittenAnswer(settings={"buffer": text}), values, EN)

    assert settings("50 kB") == {"buffer": "50kB"}
    assert settings("0,5 BDP") == {"buffer": "30kB"}, "of 60 kB"
    bad = [
        ("50", "write a size as .* or a buffer as"),
        ("1GB", "write one from 1kB to 10MB"),
        ("1000BDP", "write one from"),
    ]
    for text, said in [*bad, (None, "buffer is missing")]:
        with pytest.raises(UnitError, match=said):
            settings(text)
    chosen = WrittenAnswer(settings={"buffer": "50kB"})
    assert verdicts.settle(question, chosen, [True, True], EN).state == "right"
    assert verdicts.settle(question, chosen, [True, False], EN).say == "It works with less."


def test_settings_may_be_called_as_people_write_names() -> None:
    for name, text, chosen in (
        ("long-fat-path", "{send buffer: 3MB, Receive-Buffer: 2MB, router_buffer: 1MB}", ["3MB", "2MB", "1MB"]),
        ("active-queues", "queue: FQ_CoDel\ntarget: 5 ms", ["fq-codel", "5ms"]),
    ):
        lab = reading.find(name)
        question = lab.questions["tuned"]
        found = answers.read(f"tuned:\n{text}\n", "a", lab.questions)
        drawing = parameters.drawn(name, "4711", lab.course.parameters)
        assert list(verdicts.settings_of(question, found["tuned"], drawing.numbers, EN).values()) == chosen
        assert not found.strange


def test_a_text_that_is_too_long_is_said(lab: Lab) -> None:
    """What is handed in is its beginning, also of a text that was begun twice."""
    for text in ("why: " + "x" * 20_001, "why: " + "x" * 10_000 + "\npipe: 42kB\nwhy: " + "y" * 10_000):
        given = answers.read(text, "a", lab.questions)["why"]
        found = verdicts.judge(lab.questions["why"], TRUTHS["why"], given, EN)
        assert (found.state, found.points) == ("unreadable", None)
        assert found.say == "a:1: why: is longer than 20000 letters: write less"
        assert given.text is not None and 20_000 - len(given.text) <= 1


def test_the_exit_status_and_the_points(lab: Lab) -> None:
    right = verdicts.judge(lab.questions["pipe"], TRUTHS["pipe"], WrittenAnswer("42kB"), EN)
    wrong = verdicts.judge(lab.questions["delay"], TRUTHS["delay"], WrittenAnswer("1ms"), EN)
    teacher = verdicts.judge(lab.questions["why"], TRUTHS["why"], WrittenAnswer("So."), EN)
    broken = verdicts.judge(lab.questions["pipe"], TRUTHS["pipe"], WrittenAnswer("1"), EN)
    assert [verdicts.status_of(each) for each in ([right, teacher], [right, wrong], [wrong, broken])] == [0, 1, 2]
    assert verdicts.points_of([right, wrong, teacher]) == (1, 2, 2)


def test_a_scenario_gets_the_values_and_keeps_its_text() -> None:
    found = rendering.scenario(SCENARIO, "pipe.scenario.yaml", {"rate": "12.5Mbit/s", "rtt": "44ms", "other": "1"})
    expected = SCENARIO.replace("rate: 8Mbit/s ", "rate: 12.5Mbit/s ").replace("rtt: 60ms", "rtt: 44ms")
    assert found == expected


def test_a_folder_is_whole_and_the_same_each_time(lab: Lab, tmp_path: Path) -> None:
    path = folder.start(lab, "4711", tmp_path / "pipe")
    names = {each.name for each in path.iterdir()}
    assert names == {"pipe.md", "pipe.ipynb", "pipe.scenario.yaml", "answers.yaml", "course.json"}
    again = folder.start(lab, "4711", tmp_path / "again")
    assert all((again / name).read_bytes() == (path / name).read_bytes() for name in names)
    loaded = folder.load(path, lab.folder.parent)
    assert loaded.drawing.student == "4711" and not loaded.older
    text = (path / "pipe.md").read_text()
    assert loaded.drawing.texts["rate"] in text and "**Question `pipe`**" in text and "{{" not in text
    with pytest.raises(UserError, match="is there already"):
        folder.start(lab, "4711", path)
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_a_folder_of_an_older_lab_and_one_that_was_moved(lab: Lab, tmp_path: Path) -> None:
    root = tmp_path / "labs"
    shutil.copytree(lab.folder, root / "01-pipe")
    folder.start(reading.find("pipe", root=root), "4711", tmp_path / "pipe").rename(tmp_path / "moved")
    assert not folder.find("moved", tmp_path, root).older
    (root / "01-pipe/pipe.scenario.yaml").write_text(SCENARIO + "# more\n")
    assert folder.find("moved", tmp_path, root).older
    (root / "01-pipe/pipe.scenario.yaml").write_text(SCENARIO)
    (root / "01-pipe/text.md").write_text(TEXT + "A word more.\n")
    assert not folder.find("moved", tmp_path, root).older, "texts decide nothing"


def test_within_a_folder_its_lab_or_its_name_means_it(lab: Lab, tmp_path: Path) -> None:
    root, place = lab.folder.parent, folder.start(lab, "4711", tmp_path / "mine")
    for word in (None, "pipe", "mine", "mine/"):
        assert folder.find(word, place, root).path == place
    with pytest.raises(UserError, match="there is no such folder"):
        folder.find("bufferbloat", place, root)


def test_no_folder_of_a_lab_is_made_in_a_folder_of_it(lab: Lab, tmp_path: Path) -> None:
    place = folder.start(lab, "4711", tmp_path / "mine")
    for inner in (place / "pipe", place / "results" / "pipe"):
        with pytest.raises(UserError, match=f"would be inside {place}, which is a folder of pipe already"):
            folder.start(lab, "4711", inner)
        assert not inner.exists()
    other = json.loads((place / "course.json").read_text()) | {"lab": "mathis"}
    (place / "course.json").write_text(json.dumps(other))
    folder.start(lab, "4711", place / "pipe")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "ewan-course/2"}', '{"format": 1}', "\xff"])
def test_a_damaged_record_is_refused(lab: Lab, tmp_path: Path, content: str) -> None:
    path = folder.start(lab, "4711", tmp_path / "pipe")
    (path / "course.json").write_text(content, encoding="latin-1")
    with pytest.raises(UserError, match="is no record"):
        folder.load(path, lab.folder.parent)


def test_a_record_of_a_strange_student_or_lab(lab: Lab, tmp_path: Path) -> None:
    path = folder.start(lab, "4711", tmp_path / "pipe")
    good = json.loads((path / "course.json").read_text())
    for change, said in [({"student": "../x"}, "write a number"), ({"lab": "../pipe"}, "there is no such lab")]:
        (path / "course.json").write_text(json.dumps({**good, **change}))
        with pytest.raises(UserError, match=said):
            folder.load(path, lab.folder.parent)


def test_another_language(lab: Lab, tmp_path: Path) -> None:
    german = reading.translated(lab, "de")
    path = folder.start(german, "4711", tmp_path / "pipe")
    assert "**Frage `pipe`**: Wie viele Bytes sind unterwegs?" in (path / "pipe.md").read_text()
    loaded = folder.load(path, lab.folder.parent)
    assert loaded.lab.questions["pipe"].hints[0].say == "Das ist ein Weg."
    assert loaded.lab.questions["pipe"].hints[0].given == "bdp / 2"
    assert "durch den Buchstaben: a) linear zur Zeit; b) Quadratwurzel" in (path / "pipe.md").read_text()
    law = loaded.lab.questions["law"]
    for answer in ("a", "linear zur Zeit", "linear", "Antwort a"):
        assert verdicts.judge(law, TRUTHS["law"], WrittenAnswer(answer), words.of("de")).state == "right"
    assert verdicts.judge(law, TRUTHS["law"], WrittenAnswer("Quadratwurzel"), words.of("de")).state == "wrong"
    with pytest.raises(UserError, match='is not in the language "fr": write one of en, de'):
        reading.translated(lab, "fr")


@pytest.mark.parametrize(("choices", "said"), [("[eins]", "has 1 in its list: write 2"), ("[ja, Ja.]", "that differ")])
def test_translated_choices_are_as_many_and_differ(tmp_path: Path, choices: str, said: str) -> None:
    made = written(tmp_path)
    german = made / "course.de.yaml"
    german.write_text(GERMAN.replace("[linear zur Zeit, Quadratwurzel]", choices))
    with pytest.raises(UserError, match=said):
        reading.translated(reading.read(made), "de")


def test_a_folder_is_announced_in_its_language(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from ewan.cli import main

    place = tmp_path / "puffer"
    told = ["course", "start", "bufferbloat", "--student", "4711", "--language", "de", "--folder", str(place)]
    found = CliRunner().invoke(main, told)
    assert found.exit_code == 0, found.output
    assert found.output.splitlines() == [
        f"{place}: lies {place}/bufferbloat.md, oder öffne bufferbloat.ipynb",
        f"cd {place}",
        "ewan course check sagt, was richtig ist",
    ]


def test_a_text_asks_each_question_once(lab: Lab, tmp_path: Path) -> None:
    for text, said in [
        (TEXT.replace('{{ question("why") }}\n', ""), 'lacks {{ question("why") }}'),
        (TEXT + '{{ question("why") }}\n', "is asked twice"),
        (TEXT + '{{ question("how") }}\n', "there is none of this name"),
        (TEXT + "{{ speed }}\n", "'speed' is undefined"),
        (TEXT + "{{ speed\n", "text.md:"),
    ]:
        place = tmp_path / hashlib.sha256(text.encode()).hexdigest()[:8]
        changed = reading.read(written(place, text=text))
        with pytest.raises(UserError) as error:
            folder.contents(changed, "4711")
        assert said in str(error.value)


def test_the_notebook_has_the_text_and_a_cell_for_each_thing_to_do(lab: Lab) -> None:
    found = json.loads(folder.contents(lab, "4711")["pipe.ipynb"])
    sources = ["".join(each["source"]) for each in found["cells"]]
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert "lab.run('ewan run pipe.scenario.yaml --runtime virtual')" in sources
    assert "lab.figure('utilisation over time')" in sources and "lab.answer('pipe', '')" in sources
    assert "lab.answer('tuned', buffer='')" in sources and sources[-1] == "lab.check()"
    assert len({each["id"] for each in found["cells"]}) == len(found["cells"])
    text = "\n".join(sources)
    assert "answers.yaml" not in text and "between the quotes of the next cell" in text
    assert text.count("Give amounts with three digits") == 1 and text.index("three digits") < text.index("lab.answer")
    page = folder.contents(lab, "4711")["pipe.md"].decode()
    assert page.count("Give amounts with three digits") == 1 and "a) linear; b) square root" in page


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("42.1ms", "time", 0.0421),
        ("42.1 µs", "time", 42.1e-6),
        ("9.5Mbit/s", "rate", 9.5e6),
        ("9.5 Mbps", "rate", 9.5e6),
        ("1MB/s", "rate", 8e6),
        ("1.2MB", "size", 1.2e6),
        ("1KiB", "size", 1024),
        ("8kbit", "size", 1000),
        ("83 packets", "packets", 83),
        ("95 %", "share", 0.95),
        ("-0.5", "number", -0.5),
        ("1e-3", "number", 0.001),
        ("10BDP", "bdp", 10),
        ("2.2mbit/s", "rate", 2.2e6),
        ("1 kByte", "size", 1000),
        ("1mB", "size", 1e6),
        ("5 msec", "time", 0.005),
        ("1min", "time", 60),
        ("2 Stunden", "time", 7200),
        ("41pkts", "packets", 41),
        ("30 Pakete", "packets", 30),
        ("4,795,000B", "size", 4_795_000),
        ("4.795.000 B", "size", 4_795_000),
        ("4 795 000,5 B", "size", 4_795_000.5),
        ("5,64 points", "share", 0.0564),
        ("3 percentage points", "share", 0.03),
        ("95 per cent", "share", 0.95),
        ("9.5 Mbit per second", "rate", 9.5e6),
        ("−0,5", "number", -0.5),
        ("~2.6x", "number", 2.6),
        ("0,795", "number", 0.795),
    ],
)
def test_amounts(text: str, kind: str, value: float) -> None:
    found = amounts.read(text)
    assert found.kind == kind and math.isclose(float(found), value)
    assert amounts.read(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ms",
        "1.2.3ms",
        "1 2ms",
        "1,2,3ms",
        "4,795ms",
        "1,23.4,5ms",
        "9" * 99,
        "--1",
        "1e999",
        "٣ms",
        "1ms2",
        "nan",
        "0x1",
        True,
        None,
    ],
)
def test_what_is_no_amount(text: object) -> None:
    with pytest.raises(UnitError):
        amounts.read(text)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("about 42.1ms", "time", 0.0421),
        ("approx. 42.1 ms", "time", 0.0421),
        ("ca. 42,1 ms", "time", 0.0421),
        ("ungefähr 42,1 ms", "time", 0.0421),
        ("environ 42,1 ms", "time", 0.0421),
        ("= 42.1ms", "time", 0.0421),
        ("42.1 ms.", "time", 0.0421),
        ("42.1 ms (p95)", "time", 0.0421),
        ("“42.1 ms”", "time", 0.0421),
        ("„42,1 ms“", "time", 0.0421),
        ("«42,1 ms»", "time", 0.0421),
        ("`42.1ms`", "time", 0.0421),
        ("**42.1ms**", "time", 0.0421),
        ("4.21*10^-2 s", "time", 0.0421),
        ("4,21 · 10⁻² s", "time", 0.0421),
        ("3×10⁶ bit/s", "rate", 3e6),
        ("3 x 10^6 bit/s", "rate", 3e6),
        ("1.2 kilobytes", "size", 1200),
        ("9.5 megabit/s", "rate", 9.5e6),
        ("9,5 Megabit pro Sekunde", "rate", 9.5e6),
        ("1.5 mebibytes", "size", 1.5 * 2**20),
        ("7.", "number", 7),
        ("0.598.", "number", 0.598),
        ("2.6 x", "number", 2.6),
    ],
)
def test_amounts_of_answers_may_have_what_people_write_around_them(text: str, kind: Kind, value: float) -> None:
    assert math.isclose(float(amounts.read_as(text, kind)), value)


@pytest.mark.parametrize(
    "text", ["about", "about 1 2ms", "42.1ms or 43ms", "1.2 (kB)x", "42(ms", "4*10ms", "*10^3 ms", "**ms**", "= = 1ms"]
)
def test_what_is_no_amount_of_an_answer(text: str) -> None:
    for kind in amounts.EXAMPLES:
        with pytest.raises(UnitError):
            amounts.read_as(text, kind)


def test_a_plain_number_may_say_what_is_counted() -> None:
    asked = amount_words.RepeatedWords.of(
        "How many adjacencies? How many segments per second? In wie vielen Runden? In BDP?"
    )
    texts = (
        ("8 adjacency", 8),
        ("8,2 segments/s", 8.2),
        ("7 Runden", 7),
        ("70%", 0.7),
        ("2.6x", 2.6),
        ("2.7 BDP", 2.7),
    )
    for text, value in texts:
        assert float(amounts.typed(text, "number", asked=asked).amount) == value
    for text in ("8ms", "8 packets", "8 kB", "8.2 s", "8 x1", "8 routers", "8 each", "8.2 segments/ms"):
        with pytest.raises(UnitError):
            amounts.typed(text, "number", asked=asked)


@pytest.mark.parametrize(
    ("ask", "answer", "kind"),
    [
        ("Welche Einwegverzögerung hat ein Paket?", "Einwegverzögerung", "time"),
        ("Welche Einwegverzögerung hat ein Paket?", "Verzögerung", "time"),
        ("Welcher Empfangspuffer genügt?", "Puffer", "size"),
        ("Welche Größe hat der Puffer?", "Größe", "size"),
        ("Auf welchen Wert setzt Reno seine Slow-Start-Schwelle?", "Schwelle", "packets"),
    ],
)
def test_a_german_answer_may_name_what_was_asked_for(ask: str, answer: str, kind: Kind) -> None:
    assert amount_words.RepeatedWords.of(ask).names(answer, kind)


def test_an_answer_does_not_name_what_was_not_asked_for() -> None:
    asked = amount_words.RepeatedWords.of("Welcher Empfangspuffer genügt?")
    assert not asked.names("Sendepuffer", "size")
    assert not asked.names("er", "size")
