"""What an answer is worth: right or not, and which mistake it looks like. Pure.

In: a question, its truth, what a student gave. Out: a `Verdict`. Never in it: the truth, or on which side of it an
answer lies. A known mistake of the lab comes first, then those that anybody makes (bits for bytes, a prefix, one way
for both, a sign, a reciprocal), then the lab's last hint.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from generator.course.answers import Given
from generator.course.fields import Question, Tolerance
from generator.course.measures.base import Value
from generator.course.words import Words
from labs.reading import one_line
from labs.units import BITS_PER_BYTE, KILO, MEGA, NS_PER_SECOND, UnitError, amounts
from labs.units.shown import written

State = Literal["right", "wrong", "missing", "unreadable", "teacher", "unknown"]
"""`teacher`: words that a person judges; `unknown`: the truth could not be computed."""

EXACT = 1e-9
"""Of an amount: what arithmetic with numbers of 53 bits may differ in, beyond the tolerance."""
WIDEST = 0.1
"""A common mistake is recognised within the question's tolerance, but of no more than this share of its value."""

APART = 8
"""A common mistake that is near to the truth is recognised within this part of their distance."""


@dataclass(frozen=True, slots=True)
class Known:
    """A known mistake of a question: who makes it gets this value."""

    value: Value
    say: str


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of a question for one student. `value` None: of words and settings, or where it could not be
    computed (`why`)."""

    value: Value | None = None
    known: tuple[Known, ...] = ()
    last: str = ""
    closed: float | None = None
    """The same by a formula, where there is one."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`points` of `most`; None: a person gives them. `say`: a hint, or why it cannot be read; one line."""

    question: str
    state: State
    points: int | None
    most: int
    say: str = ""
    answer: str = field(default="", compare=False)
    """As it was written."""


def judge(question: Question, truth: Truth, given: Given, words: Words) -> Verdict:
    """The verdict on an amount, a choice or words; `settle` has those on settings."""
    text = (given.text or "").strip()
    if question.answer == "words":
        return Verdict(question.name, "missing" if given.empty else "teacher", None, question.points, answer=text)
    if given.empty:
        return _verdict(question, "missing")
    if question.kind is None:
        return _choice(question, truth, text, given, words)
    try:
        answer = float(amounts.read_as(text, question.kind))
    except UnitError as error:
        instead = words.instead.format(how=words.kinds[question.answer]) or str(error)
        return _verdict(question, "unreadable", f'{given.place}{question.name} "{text[:40]}": {instead}', text)
    if truth.value is None:
        return _verdict(question, "unknown", truth.why, text)
    right = float(truth.value)
    if agrees(answer, right, question.margin):
        return _verdict(question, "right", answer=text)
    return _verdict(question, "wrong", _hint(question, truth, answer, right, words), text)


def _choice(question: Question, truth: Truth, text: str, given: Given, words: Words) -> Verdict:
    choices = {each.casefold(): each for each in question.choices or ()}
    chosen = " ".join(text.split()).casefold()
    if chosen not in choices:
        instead = f"write one of {', '.join(choices.values())}"
        return _verdict(question, "unreadable", f'{given.place}{question.name} "{text[:40]}": {instead}', text)
    if truth.value is None:
        return _verdict(question, "unknown", truth.why, text)
    if chosen == str(truth.value).casefold():
        return _verdict(question, "right", answer=text)
    mistake = next((known.say for known in truth.known if chosen == str(known.value).casefold()), "")
    return _verdict(question, "wrong", mistake or truth.last or words.again, text)


def settings_of(question: Question, given: Given) -> dict[str, str]:
    """What a student chose, as a scenario gets it; UnitError for the first that is missing or cannot be."""
    found = {}
    for name, setting in (question.settings or {}).items():
        text = given.settings.get(name)
        if text is None or not text.strip():
            raise UnitError(f"{name} is missing: write it too")
        try:
            found[name] = setting.check(text)
        except UnitError as error:
            raise UnitError(f'{name} "{text[:40]}": {error}') from None
    return found


def settle(question: Question, given: Given, held: Sequence[bool] | None, words: Words, why: str = "") -> Verdict:
    """The verdict on settings. `held`: what held of a run with them, in order; None: it could not be run, and `why`."""
    shown = ", ".join(f"{name}: {text}" for name, text in given.settings.items())
    if given.empty:
        return _verdict(question, "missing")
    if held is None:
        return _verdict(question, "unreadable", f"{given.place}{question.name}: {why}", shown)
    failed = [each.otherwise for each, holds in zip(question.holds or (), held, strict=True) if not holds]
    if not failed:
        return _verdict(question, "right", answer=shown)
    return _verdict(question, "wrong", failed[0], shown)


def agrees(answer: float, value: float, tolerance: Tolerance) -> bool:
    """Whether an answer is so near to a value, bounds included."""
    return abs(answer - value) <= tolerance.around(value) + EXACT * abs(value)


def _hint(question: Question, truth: Truth, answer: float, right: float, words: Words) -> str:
    for known in truth.known:
        if not isinstance(known.value, str) and agrees(answer, float(known.value), question.margin):
            return known.say
    share = _share(question.margin, right)
    for value, say in _common(question, right, words):
        apart = abs(value - right) / abs(right)
        if math.isclose(answer, value, rel_tol=min(share, apart / APART), abs_tol=0.0):
            return say
    return truth.last or words.again


def _share(margin: Tolerance, right: float) -> float:
    """The tolerance as a share of the truth, within which a common mistake is recognised."""
    return max(EXACT, min(WIDEST, margin.around(right) / abs(right))) if right else EXACT


def _common(question: Question, right: float, words: Words) -> Iterator[tuple[float, str]]:
    """What common mistakes make of the truth. Those that tell of a factor say nothing of its direction."""
    if not right:
        return
    factors: list[tuple[float, str]] = []
    if question.kind in ("size", "rate"):
        factors += [(BITS_PER_BYTE, words.bits)]
    if question.kind == "time":
        factors += [(2, words.round_trip)]
    if question.kind in ("time", "size", "rate"):
        factors += [(KILO, words.prefix), (MEGA, words.prefix)]
    if question.kind == "size":
        factors += [(1024 / 1000, words.binary), ((1024 / 1000) ** 2, words.binary)]
    for factor, say in factors:
        yield right * factor, say
        yield right / factor, say
    yield -right, words.sign
    if question.kind in ("number", "share"):
        yield 1 / right, words.reciprocal


def _verdict(question: Question, state: State, say: str = "", answer: str = "") -> Verdict:
    points = question.points if state == "right" else 0
    return Verdict(question.name, state, points, question.points, say, answer)


def status_of(found: Sequence[Verdict]) -> int:
    """The exit status of a check: 2 where an answer cannot be read, 1 where one is wrong or missing, else 0."""
    states = {each.state for each in found}
    return 2 if "unreadable" in states else 1 if states & {"wrong", "missing", "unknown"} else 0


def points_of(found: Sequence[Verdict]) -> tuple[int, int, int]:
    """Points reached, of how many that are checked, and how many more a person can give for what was answered."""
    checked = [each for each in found if each.points is not None]
    return (
        sum(each.points or 0 for each in checked),
        sum(each.most for each in checked),
        sum(each.most for each in found if each.state == "teacher"),
    )


def told(question: Question, truth: Truth) -> str:
    """The truth in words, for the teacher alone."""
    if truth.value is None:
        return truth.why
    if isinstance(truth.value, str):
        return truth.value
    if question.kind == "time":
        return written(float(truth.value) * NS_PER_SECOND, "ns")
    unit = {"rate": "bit/s", "size": "B", "share": "share"}.get(question.kind or "", "")
    return written(float(truth.value), unit)


def points_in_words(found: Sequence[Verdict], words: Words) -> str:
    """`6 of 14 points; 2 more from the teacher`."""
    reached, of, left = points_of(found)
    return words.points.format(reached=reached, of=of) + (words.left.format(left=left) if left else "")


def short(verdict: Verdict, most: int = 40) -> str:
    """The answer as a table shows it: its beginning."""
    return one_line(verdict.answer, most)


def summary_of(found: Sequence[Verdict]) -> Mapping[str, str]:
    """The state of each question, by its name."""
    return {each.question: each.state for each in found}
