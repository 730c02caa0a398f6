"""The verdict on an answer: right or not, and which mistake it looks like. Pure.

In: a question, its truth, what a student gave. Out: a `QuestionVerdict`. Never in it: the truth, or on which side of it
an amount lies. One rule of rounding holds for all labs: an amount within the tolerance is right, and so is the truth
rounded to three digits or more, whatever the tolerance; the truth rounded to fewer, beyond it, is close. Where a known
mistake of the lab gives an amount that can be distinguished from the truth, and the answer is nearer to it, the answer
is that mistake, also within the tolerance. An amount that is not right as it is read, and may be read in another way in
which it is, is asked about. Of a wrong answer a known mistake of the lab is shown first, then common mistakes (bits for
bytes, a prefix, one way for both, a sign, a reciprocal), then the lab's last hint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction as Exact
from typing import Literal

from ewan.extras.course import amounts, choices, expressions
from ewan.extras.course.amounts import TypedAmount
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.fields import Question, SettingChoice, Tolerance
from ewan.extras.course.measures.base import Value
from ewan.extras.course.words import LanguageWords
from ewan.labs.base.reading import one_line, printable
from ewan.labs.base.units import BITS_PER_BYTE, KILO, MEGA, NS_PER_SECOND, UnitError
from ewan.labs.base.units.shown import written

State = Literal["right", "close", "wrong", "missing", "unreadable", "teacher", "unknown", "predicted", "unpredicted"]
"""`close`: rounded to too few digits; `teacher`: words that a person judges; `unknown`: the truth could not be
computed; `predicted` and `unpredicted`: of a prediction, which is recorded and not judged."""

DIGITS = 3
"""So many are asked for: the texts say so."""
NEAR = 0.05
"""Share of the truth by which an answer that is close differs at most: what rounding to two digits may change."""
APPARENT = 0.5 * 10 ** (1 - DIGITS)
"""Share of the truth by which two amounts differ at least that can be told apart: what rounding may change."""

KEPT = "\n\t\u00a0\u202f"
"""Characters that are no letters, and are kept in an answer in words."""

HALF = Exact(1, 2)
EXACT = 1e-9
"""The error of arithmetic with numbers of 53 bits, which is allowed beyond the tolerance."""
WIDEST = 0.1
"""A common mistake is recognised within the question's tolerance, but of no more than this share of its value."""

APART = 8
"""A common mistake that is near to the truth is recognised within this part of their distance."""
MOST_SUMMARY = 200
"""Letters of a verdict in the journal of checks."""
_PREDICTED = "predicted: "
"""Stands in the journal before what was predicted."""
LONGEST_PATH_S = 1.0
"""A time above this is not that of a path, of which one might take one way for both."""


@dataclass(frozen=True, slots=True)
class KnownMistake:
    """A known mistake of a question: who makes it gets this value."""

    value: Value
    say: str


@dataclass(frozen=True, slots=True)
class Truth:
    """The true answer to a question for one student. `value` None: of words and settings, or where it could not be
    computed (`why`)."""

    value: Value | None = None
    known: tuple[KnownMistake, ...] = ()
    last: str = ""
    closed: float | None = None
    """The same by a formula, where there is one."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class QuestionVerdict:
    """`points` of `most`; None: a person gives them. `say`: a hint, or why it cannot be read; one line."""

    question: str
    state: State
    points: int | None
    most: int
    say: str = ""
    answer: str = field(default="", compare=False)
    """As it was written."""


def judge(question: Question, truth: Truth, given: WrittenAnswer, words: LanguageWords) -> QuestionVerdict:
    """The verdict on an amount, a choice or words; `settle` has those on settings."""
    if question.predicts is not None:
        return _recorded(question, given, words)
    text = (given.text or "").strip()
    wrong = f"{given.place}{question.name}: {given.wrong}" if given.wrong else ""
    if question.answer == "words":
        state: State = "missing" if given.empty else "unreadable" if wrong else "teacher"
        lines = "\n".join(re.split(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]", text))
        return QuestionVerdict(question.name, state, None, question.points, one_line(wrong), printable(lines, KEPT))
    if wrong:
        return _verdict(question, "unreadable", wrong, text)
    if given.empty:
        return _verdict(question, "missing")
    if question.kind is None:
        return _choice(question, truth, text, given, words)
    try:
        typed = amounts.typed(text, question.kind, words.comma, question.asked)
    except UnitError as error:
        said = words.instead.format(how=words.kinds[question.answer]) or str(error)
        return _verdict(question, "unreadable", f'{given.place}{question.name} "{text[:40]}": {said}', text)
    if truth.value is None:
        return _verdict(question, "unknown", truth.why, text)
    found = _amount(question, truth, typed, text, words)
    for both in _readings(question, typed, text, words) if found.state != "right" else ():
        other = amounts.typed(both[1], question.kind, words.comma, question.asked)
        if _amount(question, truth, other, text, words).state == "right":
            said = words.either.format(*(one_line(each) for each in both))
            return _verdict(question, "unreadable", f'{given.place}{question.name} "{text[:40]}": {said}', text)
    return found


def _recorded(question: Question, given: WrittenAnswer, words: LanguageWords) -> QuestionVerdict:
    """Return the verdict on a prediction; `say` is set where it cannot be read."""
    text = (given.text or "").strip()
    if given.empty:
        return QuestionVerdict(question.name, "unpredicted", None, 0)
    said = given.wrong
    if not said and question.kind is not None:
        try:
            amounts.typed(text, question.kind, words.comma, question.asked)
        except UnitError as error:
            said = words.instead.format(how=words.kinds[question.answer]) or str(error)
    elif not said and _place(question, text) is None:
        said = words.letter.format(last=choices.LETTERS[len(question.choices or ()) - 1])
    return QuestionVerdict(question.name, "predicted", None, 0, one_line(said), one_line(text))


def compared(
    questions: Mapping[str, Question],
    found: Sequence[QuestionVerdict],
    words: LanguageWords,
    recorded: Mapping[str, Sequence[str]],
) -> list[QuestionVerdict]:
    """The same, and to each prediction that can be read what was answered, where that is right.

    `recorded`: what earlier checks recorded, see `recorded_predictions`. The first that can be read is shown: who
    rewrites a prediction after the measurement does not replace it.
    """
    right = {each.question: each for each in found if each.state == "right"}
    result = []
    for each in found:
        question = questions[each.question]
        answered = right.get(question.predicts or "")
        if each.state == "predicted" and not each.say and answered is not None:
            texts = [*recorded.get(each.question, ()), each.answer]
            first = next(text for text in texts if not _recorded(question, WrittenAnswer(text), words).say)
            said = words.compared.format(
                predicted=_in_full(question, first),
                answered=_in_full(questions[answered.question], answered.answer),
            )
            each = replace(each, say=one_line(said))
        result.append(each)
    return result


def recorded_predictions(summaries: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """The predictions that checks recorded, the oldest first, by question. `summaries`: see `summary_of`."""
    result: dict[str, list[str]] = {}
    for summary in summaries:
        for name, said in summary.items():
            if said.startswith(_PREDICTED):
                result.setdefault(name, []).append(said.removeprefix(_PREDICTED))
    return result


def _in_full(question: Question, answer: str) -> str:
    """An answer as it was written, and of a choice its words."""
    place = _place(question, answer) if question.answer == "choice" else None
    return answer if place is None else question.shown[place]


def _readings(question: Question, typed: TypedAmount, text: str, words: LanguageWords) -> Iterator[tuple[str, str]]:
    """Yield the two amounts that an answer may mean, the usual reading first: see `amounts.readings`; of a share
    without a unit, 0.95 of the whole and 0.95 %."""
    yield from amounts.readings(text, words.comma)
    if question.kind == "share" and typed.size == 1 and typed.number:
        whole, part = (str(amounts.Amount(typed.number / each, "share")) for each in (1, 100))
        yield (whole.replace(".", ","), part.replace(".", ",")) if words.comma else (whole, part)


def _amount(question: Question, truth: Truth, typed: TypedAmount, text: str, words: LanguageWords) -> QuestionVerdict:
    answer, right = float(typed.amount), float(truth.value or 0)
    digits = DIGITS if question.exact else rounded(typed, right)
    within = agrees(answer, right, question.margin)
    if digits >= DIGITS and not question.exact:
        return _verdict(question, "right", answer=text)
    if within and _nearer(question, truth, answer) is None:
        return _verdict(question, "right", answer=text)
    if 0 < digits < DIGITS and (within or abs(answer - right) <= NEAR * abs(right)):
        return _verdict(question, "close", words.digits, text)
    return _verdict(question, "wrong", _hint(question, truth, answer, right, words), text)


def rounded(typed: TypedAmount, value: float) -> int:
    """To how many digits a value must be rounded to give this amount; 0: it does not give it.

    Zeros before the unit, as in 300 kB, may have been measured or not: the more digits count with which it fits. The
    digits are those of the value: 100 s is 99.6 s rounded to two, and 10.0 s is 9.996 s rounded to three, as 10.00 is.
    """
    exact = Exact(value) / typed.size
    if not exact or not typed.number:
        return 0
    leading = math.floor(math.log10(abs(exact)))
    carried = math.floor(math.log10(abs(typed.number))) > leading
    for place in range(typed.finest - carried, typed.coarsest + 1):
        step = Exact(10) ** place
        if abs(typed.number - exact) <= step * (HALF + Exact(EXACT)):
            return max(0, leading - place + 1)
    return 0


def apart(known: KnownMistake, right: float) -> bool:
    """Return whether a known mistake gives an amount that people who write enough digits can tell from the truth."""
    return not isinstance(known.value, str) and abs(float(known.value) - right) > APPARENT * abs(right)


def _nearer(question: Question, truth: Truth, answer: float) -> KnownMistake | None:
    """The known mistake to whose amount an answer is nearer than to the truth, and within its tolerance."""
    right = float(truth.value or 0)
    found = [
        (abs(answer - float(each.value)), number, each)
        for number, each in enumerate(truth.known)
        if apart(each, right) and agrees(answer, float(each.value), question.margin)
    ]
    nearest = min(found, default=None)
    return None if nearest is None or nearest[0] >= abs(answer - right) else nearest[2]


def _place(question: Question, text: str) -> int | None:
    """The place of the choice that is meant, in the reader's language or in English."""
    found = (choices.chosen(of, text) for of in (question.shown, question.choices or ()))
    return next((each for each in found if each is not None), None)


def _choice(question: Question, truth: Truth, text: str, given: WrittenAnswer, words: LanguageWords) -> QuestionVerdict:
    own = question.choices or ()
    place = _place(question, text)
    if place is None:
        last = choices.LETTERS[len(own) - 1]
        said = words.letter.format(last=last)
        return _verdict(question, "unreadable", f'{given.place}{question.name} "{text[:40]}": {said}', text)
    if truth.value is None:
        return _verdict(question, "unknown", truth.why, text)
    choice = own[place]
    if choice.casefold() == str(truth.value).casefold():
        return _verdict(question, "right", answer=text)
    mistake = next((known.say for known in truth.known if choice.casefold() == str(known.value).casefold()), "")
    return _verdict(question, "wrong", mistake or truth.last or words.again, text)


def settings_of(
    question: Question, given: WrittenAnswer, parameters: Mapping[str, Value], words: LanguageWords
) -> dict[str, str]:
    """Return the choice of a student, as a scenario gets it; UnitError for the first that is missing or cannot be."""
    found = {}
    for name, setting in (question.settings or {}).items():
        text = given.settings.get(name)
        if text is None or not text.strip():
            raise UnitError(f"{name} is missing: write it too")
        try:
            found[name] = checked(setting, text, parameters, words)
        except UnitError as error:
            raise UnitError(f'{name} "{text[:40]}": {error}') from None
    return found


def checked(setting: SettingChoice, text: str, parameters: Mapping[str, Value], words: LanguageWords) -> str:
    """A setting's value as a scenario gets it; UnitError for one that may not be chosen."""
    bdp = None if setting.bdp is None else float(expressions.evaluate(setting.bdp, parameters, {}))
    return setting.check(text, words.comma, bdp)


def settle(
    question: Question, given: WrittenAnswer, held: Sequence[bool] | None, words: LanguageWords, why: str = ""
) -> QuestionVerdict:
    """The verdict on settings. `held`: what held of a run with them, in order; None: it could not be run, and `why`."""
    shown = ", ".join(f"{name}: {text}" for name, text in given.settings.items())
    if given.empty:
        return _verdict(question, "missing")
    why = given.wrong or why
    if given.wrong or held is None:
        return _verdict(question, "unreadable", f"{given.place}{question.name}: {why}", shown)
    failed = [each.otherwise for each, holds in zip(question.holds or (), held, strict=True) if not holds]
    if not failed:
        return _verdict(question, "right", answer=shown)
    return _verdict(question, "wrong", failed[0], shown)


def agrees(answer: float, value: float, tolerance: Tolerance) -> bool:
    """Return whether an answer is within the tolerance of a value, bounds included."""
    return abs(answer - value) <= tolerance.around(value) + EXACT * abs(value)


def _hint(question: Question, truth: Truth, answer: float, right: float, words: LanguageWords) -> str:
    if (mistake := _nearer(question, truth, answer)) is not None:
        return mistake.say
    share = _share(question.margin, right)
    for value, say in _common(question, right, words):
        distance = abs(value - right) / abs(right)
        if agrees(value, right, question.margin):  # whoever is wrong has made another mistake
            continue
        if math.isclose(answer, value, rel_tol=min(share, distance / APART), abs_tol=0.0):
            return say
    return truth.last or words.again


def _share(margin: Tolerance, right: float) -> float:
    """The tolerance as a share of the truth, within which a common mistake is recognised."""
    return max(EXACT, min(WIDEST, margin.around(right) / abs(right))) if right else EXACT


def _common(question: Question, right: float, words: LanguageWords) -> Iterator[tuple[float, str]]:
    """Yield the amounts that common mistakes make of the truth. A hint about a factor does not give its direction."""
    if not right:
        return
    factors: list[tuple[float, str]] = []
    if question.kind in ("size", "rate"):
        factors += [(BITS_PER_BYTE, words.bits)]
    if question.kind == "time" and abs(right) <= LONGEST_PATH_S:
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


def _verdict(question: Question, state: State, say: str = "", answer: str = "") -> QuestionVerdict:
    points = question.points if state == "right" else 0
    return QuestionVerdict(question.name, state, points, question.points, one_line(say), one_line(answer))


def status_of(found: Sequence[QuestionVerdict]) -> int:
    """The exit status of a check: 2 where an answer cannot be read, 1 where one is wrong or missing, else 0."""
    states = {each.state for each in found}
    return 2 if "unreadable" in states else 1 if states & {"close", "wrong", "missing", "unknown"} else 0


def points_of(found: Sequence[QuestionVerdict]) -> tuple[int, int, int]:
    """Points reached, of how many that are checked, and how many more a person can give for what was answered."""
    checked = [each for each in found if each.points is not None]
    return (
        sum(each.points or 0 for each in checked),
        sum(each.most for each in checked),
        sum(each.most for each in found if each.state == "teacher"),
    )


def told(question: Question, truth: Truth) -> str:
    """Return the truth in words, only for the teacher."""
    if truth.value is None:
        return truth.why
    if isinstance(truth.value, str):
        return truth.value
    if question.kind == "time":
        return written(float(truth.value) * NS_PER_SECOND, "ns")
    unit = {"rate": "bit/s", "size": "B", "share": "share"}.get(question.kind or "", "")
    return written(float(truth.value), unit)


def points_in_words(found: Sequence[QuestionVerdict], words: LanguageWords) -> str:
    """`6 of 14 points; 2 more from the teacher`."""
    reached, of, left = points_of(found)
    return words.points.format(reached=reached, of=of) + (words.left.format(left=left) if left else "")


def short(verdict: QuestionVerdict, most: int = 40) -> str:
    """The answer as a table shows it: its beginning."""
    return one_line(verdict.answer, most)


def summary_of(found: Sequence[QuestionVerdict]) -> Mapping[str, str]:
    """The state of each question, by its name; of a prediction also what was predicted, so that it is kept when."""
    return {
        each.question: f"{_PREDICTED}{each.answer}"[:MOST_SUMMARY] if each.state == "predicted" else each.state
        for each in found
    }
