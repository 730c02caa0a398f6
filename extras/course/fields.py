"""The keys of course.yaml as pydantic models: what a lab of the course says of itself, its parameters and questions.

In: plain data, as YAML gave it. Out: typed values, or pydantic's errors. What takes more than one key to see is looked
at here too; expressions are held against the names of the lab in `reading.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction as Exact
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, PlainValidator, PrivateAttr, model_validator

from ewan.extras.course import amount_words, amounts
from ewan.extras.course.amounts import Amount, Kind
from ewan.extras.course.choices import LETTERS, differ
from ewan.generator.scenario.fields import Text
from ewan.labs.base.model import Model
from ewan.labs.base.units import UnitError

AnswerKind = Literal["time", "rate", "size", "packets", "count", "ratio", "share", "choice", "words", "settings"]
QUANTITIES: dict[str, Kind] = {
    "time": "time",
    "rate": "rate",
    "size": "size",
    "packets": "packets",
    "count": "number",
    "ratio": "number",
    "share": "share",
}
"""Answers that are amounts, and of which kind."""
ANSWERS: tuple[AnswerKind, ...] = get_args(AnswerKind)
Level = Literal["bachelor", "master"]
"""The level of the students that a lab is for."""
MOST_VALUES = 10_000
"""The most values that a parameter may take."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
LAB = re.compile(r"[a-z][a-z0-9-]*")
"""A prerequisite of this form is the name of a lab."""
_RELATIVE = re.compile(r"[0-9.]+ ?%")


def _name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError('write a name of small letters, digits and "_", like "pipe"')
    return value


def _expression(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError('write an expression, like "rate * rtt / 8"')
    return str(value)


def _letters(word: str) -> str:
    """A name without what may be written in several ways: `FQ_CoDel` and `fq-codel` are one."""
    return re.sub(r"[\s_-]", "", word).casefold()


NameText = Annotated[str, PlainValidator(_name)]
ExpressionText = Annotated[str, PlainValidator(_expression)]


class DrawnParameter(Model):
    """Values of which each student gets one: `from`, `to` and `step`, or `one of`."""

    what: ClassVar[str] = "key of a parameter"
    low: Any = Field(None, alias="from")
    high: Any = Field(None, alias="to")
    step: Any = None
    one_of: tuple[Any, ...] | None = Field(None, alias="one of")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        ranged = [self.low, self.high, self.step]
        if self.one_of is not None and any(each is not None for each in ranged):
            raise ValueError('write "one of", or "from", "to" and "step"')
        if self.one_of is not None:
            if not self.one_of:
                raise ValueError("is empty: write values, like {one of: [reno, cubic]}")
            return self
        if any(each is None for each in ranged):
            raise ValueError("write {from: 10ms, to: 50ms, step: 1ms} or {one of: [reno, cubic]}")
        first, last, step = (amounts.read(each) for each in ranged)
        if not first.kind == last.kind == step.kind:
            raise ValueError('"from", "to" and "step" are of different kinds: write all three with one, like ms')
        if step.value <= 0 or last.value <= first.value:
            raise ValueError('"to" is more than "from", and "step" more than nothing')
        if (last.value - first.value) / step.value >= MOST_VALUES:
            raise ValueError(f"has more than {MOST_VALUES} values: write a larger step")
        return self

    @cached_property
    def values(self) -> Sequence[str]:
        """All that may be drawn, in order, as people write them."""
        if self.one_of is not None:
            return [str(each) for each in self.one_of]
        first, last, step = (amounts.read(each) for each in (self.low, self.high, self.step))
        count = int((last.value - first.value) / step.value) + 1
        return [str(Amount(first.value + number * step.value, first.kind)) for number in range(count)]


class SettingChoice(Model):
    """The values that a student may choose for a parameter of a scenario: from a least to a most, or one of several.

    `bdp`: the bytes of one BDP, an expression of the student's parameters; then multiples of it may be chosen too."""

    what: ClassVar[str] = "key of a setting"
    low: Any = Field(None, alias="from")
    high: Any = Field(None, alias="to")
    one_of: tuple[Any, ...] | None = Field(None, alias="one of")
    bdp: ExpressionText | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.one_of is not None and self.low is None and self.high is None:
            return self
        if self.one_of is not None or self.low is None or self.high is None:
            raise ValueError("write {from: 10kB, to: 64MB} or {one of: [reno, cubic]}")
        if amounts.read(self.low).kind != amounts.read(self.high).kind:
            raise ValueError('"from" and "to" are of different kinds: write both with one, like kB')
        if self.bdp is not None and amounts.read(self.low).kind != "size":
            raise ValueError('"bdp" is for sizes: leave it out')
        return self

    def check(self, text: str, comma: bool = False, bdp: float | None = None) -> str:
        """Return the choice, as the scenario gets it; UnitError for anything else. `comma`: see `amounts.typed`; `bdp`:
        the bytes of one BDP, where multiples of it may be chosen."""
        if self.one_of is not None:
            words = {_letters(str(each)): str(each) for each in self.one_of}
            if _letters(text) not in words:
                raise UnitError(f"write one of {', '.join(words.values())}")
            return words[_letters(text)]
        low, high = amounts.read(self.low), amounts.read(self.high)
        chosen = self._amount(text, low.kind, comma, bdp)
        if not low.value <= chosen.value <= high.value:
            raise UnitError(f"write one from {low} to {high}")
        return str(chosen)

    @staticmethod
    def _amount(text: str, kind: Kind, comma: bool, bdp: float | None) -> Amount:
        try:
            return amounts.read_as(text, kind, comma)
        except UnitError as error:
            if bdp is None:
                raise
            try:
                share = amounts.read_as(text, "bdp", comma).value
            except UnitError as other:
                if str(other) == str(error):
                    raise error from None
                raise UnitError(f"{error}, or {str(other).removeprefix('write ')}") from None
            return Amount(Exact(round(share * Exact(bdp))), kind)


class Hint(Model):
    """The reply to a wrong answer: to one that agrees with the value of `if`, else the first without it."""

    what: ClassVar[str] = "key of a hint"
    given: ExpressionText | None = Field(None, alias="if")
    say: Text


class SettingCondition(Model):
    """A condition for a run with a student's settings, and the reply where it does not hold."""

    what: ClassVar[str] = 'key of what is in "holds"'
    that: ExpressionText
    otherwise: Text = Field(alias="else")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest deviation of an answer from the truth, bounds included: relative, or absolute in SI base units."""

    relative: Exact | None = None
    absolute: Exact | None = None

    def around(self, truth: float) -> float:
        """Return the largest deviation from this truth."""
        if self.absolute is not None:
            return float(self.absolute)
        return abs(truth) * float(self.relative or 0)


class Question(Model):
    """One question: how it is asked, what its answer is, and what is true.

    `predicts`: the name of the question whose answer is predicted here; a prediction is recorded and never marked."""

    what: ClassVar[str] = "key of a question"
    name: NameText
    ask: Text
    answer: AnswerKind
    truth: ExpressionText | None = None
    tolerance: Any = None
    because: Text | None = None
    points: int = Field(1, ge=0, le=100)
    hints: tuple[Hint, ...] = ()
    closed: ExpressionText | None = None
    within: Any = None
    choices: tuple[Text, ...] | None = None
    of: str | None = None
    settings: dict[str, SettingChoice] | None = None
    holds: tuple[SettingCondition, ...] | None = None
    predicts: NameText | None = None
    _translated: tuple[str, ...] | None = PrivateAttr(None)

    _WANTED: ClassVar[dict[str, tuple[str, ...]]] = {
        "amount": ("truth", "tolerance", "because"),
        "choice": ("truth", "choices"),
        "words": (),
        "settings": ("settings", "holds"),
        "prediction of an amount": (),
        "prediction of a choice": ("choices",),
    }
    _ALLOWED: ClassVar[dict[str, tuple[str, ...]]] = {
        "amount": ("closed", "within"),
        "choice": ("because",),
        "words": (),
        "settings": ("of", "because"),
    }

    @model_validator(mode="before")
    @classmethod
    def _unmarked(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("predicts") is None:
            return value
        if wrong := [key for key in ("points", "hints") if key in value]:
            raise ValueError(f'a prediction has no "{wrong[0]}": leave it out')
        return {**value, "points": 0}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        kind: str = "amount" if self.kind is not None else self.answer
        if self.predicts is not None:
            if kind not in ("amount", "choice"):
                raise ValueError("a prediction is an amount or a choice: write another answer, like time")
            kind = "prediction of an amount" if kind == "amount" else "prediction of a choice"
        told = "a prediction" if self.predicts is not None else f"a question whose answer is {self.answer}"
        own = ("truth", "tolerance", "because", "closed", "within", "choices", "of", "settings", "holds")
        for key in own:
            there, wanted = getattr(self, key) is not None, key in self._WANTED[kind]
            if wanted and not there:
                raise ValueError(f'"{key}:" is missing: {told} has one')
            if there and not wanted and key not in self._ALLOWED.get(kind, ()):
                raise ValueError(f'{told} has no "{key}": leave it out')
        if (self.closed is None) != (self.within is None):
            raise ValueError('"closed" and "within" go together: write both')
        if self.kind is not None and self.predicts is None:
            _ = self.margin
        if self.within is not None and not _RELATIVE.fullmatch(str(self.within)):
            raise ValueError('write "within" as "5%"')
        if self.choices is not None and not differ(self.choices):
            raise ValueError(
                f"write two choices or more, at most {len(LETTERS)}, that differ in letters, digits or signs"
            )
        return self

    @property
    def shown(self) -> tuple[str, ...]:
        """The choices in the reader's language; `choices` are those that truths are held against."""
        return self._translated or self.choices or ()

    def in_words(
        self,
        translated: tuple[str, ...] | None,
        ask: str,
        hints: tuple[Hint, ...],
        holds: tuple[SettingCondition, ...] | None,
    ) -> Question:
        """The question with other words, and choices in the reader's language."""
        result = self.model_copy(update={"ask": ask, "hints": hints, "holds": holds})
        result._translated = translated
        return result

    @cached_property
    def asked(self) -> amount_words.RepeatedWords:
        """The words of the question that an answer may repeat behind its amount."""
        return amount_words.RepeatedWords.of(self.ask)

    @property
    def kind(self) -> Kind | None:
        """The kind of the amount that answers the question; None where no amount does."""
        return QUANTITIES.get(self.answer)

    def setting_called(self, word: str) -> str | None:
        """The name of the setting that is meant, as by `Send buffer`; None: no setting is called so."""
        return next((name for name in self.settings or {} if _letters(name) == _letters(word)), None)

    @property
    def exact(self) -> bool:
        """The answer is a number of things that are counted: none is near to it."""
        return self.kind is not None and self.predicts is None and self.margin.absolute == 0

    @cached_property
    def margin(self) -> Tolerance:
        """The tolerance of an amount: relative, but of shares in points; or absolute, with the answer's own unit."""
        assert self.kind is not None
        text = str(self.tolerance)
        if _RELATIVE.fullmatch(text):
            share = amounts.read_as(text, "share").value
            return Tolerance(absolute=share) if self.kind == "share" else Tolerance(relative=share)
        try:
            found = amounts.read_as(self.tolerance, self.kind)
        except UnitError as error:
            raise ValueError(f'tolerance "{text}": write "2%", or {str(error).removeprefix("write ")}') from None
        if found.value < 0:
            raise ValueError("a tolerance is not negative")
        return Tolerance(absolute=found.value)


class Course(Model):
    """The keys of course.yaml. `prerequisites`: names of labs, and in words what else students know before; `goals`:
    what they can do afterwards."""

    what: ClassVar[str] = "key of a course lab"
    title: Text
    about: Text
    level: Level
    prerequisites: tuple[Text, ...] = ()
    goals: tuple[Text, ...] = Field(min_length=1)
    minutes: int = Field(60, ge=5, le=180)
    parameters: dict[NameText, DrawnParameter] = Field({})
    values: dict[NameText, ExpressionText] = Field({})
    questions: tuple[Question, ...] = Field(min_length=1)


class QuestionWords(Model):
    """A question in another language: hints, `else` and choices in the order of the lab's own."""

    what: ClassVar[str] = "key of a translated question"
    ask: Text
    hints: tuple[Text, ...] = ()
    otherwise: tuple[Text, ...] = Field((), alias="else")
    choices: tuple[Text, ...] = ()


class Overlay(Model):
    """The keys of course.LANGUAGE.yaml."""

    what: ClassVar[str] = "key of a translation"
    title: Text
    about: Text
    prerequisites: tuple[Text, ...] = ()
    goals: tuple[Text, ...] = ()
    questions: dict[str, QuestionWords] = Field({})
