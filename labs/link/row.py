"""The properties of one key of a link's direction, defined once: `Annotated[type, Row(…)]` in labs/link/keys.py.

Refusals, tables, `ewan lab set`, scenarios' events and devices use them. The meaning of the key for people, its type,
default and example are in the field of pydantic to which the row belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ewan.labs.base.model import GroupOrNone
from ewan.labs.base.units import Duration, Fraction, Rate, Size
from ewan.labs.link.context import Obstacle
from ewan.labs.traces import Column

if TYPE_CHECKING:
    from ewan.labs.link.keys import Direction
    from ewan.labs.link.settings import DirectionSettings


def _never(value: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class KeyUnit:
    """The unit of one number of the plan: the end of its field's name, the quantity for people, and the number of a
    quantity.

    `kind`: how pages call such a quantity. `parse` reads one that is no more than a number of the unit.
    """

    kind: str
    suffix: str
    parse: Callable[[object, int], object]
    quantity: Callable[[int], object]
    number: Callable[[Any], int]

    def words(self, number: int) -> str:
        """The number for people."""
        return str(self.quantity(number))

    def words_or_none(self, number: int) -> str:
        """The same where 0 is none."""
        return self.words(number) if number else "none"

    def number_or_none(self, written: Any) -> int:
        """The text that is written for it, where `none` is 0."""
        return 0 if written == "none" else self.number(written)


BIT_RATE = KeyUnit("rate", "_bps", lambda text, _: Rate.parse(text), Rate, lambda rate: int(rate.bps))
BYTES = KeyUnit("size", "_bytes", lambda text, _: Size.parse(text), Size, lambda size: int(size.bytes))
NANOSECONDS = KeyUnit("duration", "_ns", Duration.parse, Duration, lambda duration: int(duration.ns))
PARTS_PER_BILLION = KeyUnit(
    "fraction", "_ppb", lambda text, _: Fraction.parse(text), Fraction, lambda fraction: int(fraction.ppb)
)


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The least and the most that may be written for a key, an example for its page, and one for refusals."""

    unit: KeyUnit
    least: int
    most: int
    example: str
    like: str

    def read(self, value: object) -> object:
        """A quantity, or `none`; ValueError for one that is not within."""
        if value == "none":
            return value
        quantity = self.unit.parse(value, self.most)
        if self.least <= self.unit.number(quantity) <= self.most:
            return quantity
        raise ValueError(f'write {self.unit.words(self.least)} to {self.unit.words(self.most)}, like "{self.like}"')


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyRow:
    """One key of a direction.

    `plan`: the fields of the plan's `Direction` that it decides, by itself or with other keys.
    `unit`: of the one number of the plan that it is.
    `bounds`: of that number, by which what is written is read then.
    `becomes`: the value of its one field from what is written, where nothing else decides it; 0, false or nothing where
    nothing is written.
    `words`: the values of these fields for people; None: another key with the same fields says them.
    `nothing`: how a description asks for nothing of it, where that is a word.
    `card`: whether a network card does what is written too; what is nothing it does.
    `netem`: why netem and the kernel's queues have nothing of it, what they lack in a direction, or None for nothing.
    `device`: whether external emulators are asked for it; their abilities say how much of it each has.
    `live`: whether it changes while a lab runs.
    `line`: whether it is of the delay line, which a change tells right behind the rate.
    `column`: tables have a place of its own for it; else it is among the impairments, as `table` writes it, or as
    its key and its words.
    `trace`: the column of a trace that says the same.
    """

    plan: tuple[str, ...]
    unit: KeyUnit | None = None
    bounds: KeyBounds | None = None
    becomes: Callable[[Any], object] | None = None
    words: Callable[..., str] | None = None
    nothing: str = ""
    card: Callable[[Any], bool] = _never
    netem: str | Callable[[Direction, DirectionSettings], Obstacle | None] | None = None
    device: bool = False
    live: bool = True
    line: bool = False
    column: bool = False
    table: Callable[..., str] | None = None
    trace: Column | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if self.bounds is None:
            return handler(source)
        return core_schema.nullable_schema(core_schema.no_info_plain_validator_function(self.bounds.read))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Studio's forms offer what changes while a lab runs."""
        live = {} if self.live else {"live": False}
        if self.bounds is None:
            return handler(schema) | live
        title, examples = f"`none` or a {self.bounds.unit.kind}", [self.bounds.example, "none"]
        return {"anyOf": [{"examples": examples, "title": title, "type": "string"}, {"type": "null"}], **live}

    def on_card(self, written: Any) -> bool:
        """Return whether a network card provides the written value, so that no emulator is needed for it."""
        empty = isinstance(written, GroupOrNone) and written.asks_nothing
        return empty or (self.nothing != "" and written == self.nothing) or self.card(written)

    def values(self, holder: object) -> tuple[Any, ...]:
        """The values of its fields in a direction, or in what has the same fields."""
        return tuple(getattr(holder, name) for name in self.plan)

    def said(self, holder: object) -> str:
        """These values for people."""
        assert self.words is not None
        return self.words(*self.values(holder))


def number(unit: KeyUnit, field: str, *, nothing: str = "", **more: Any) -> KeyRow:
    """The row of a key that is one number of the plan as it is written; the unit says its words."""
    words, becomes = (unit.words_or_none, unit.number_or_none) if nothing else (unit.words, unit.number)
    return KeyRow(plan=(field,), unit=unit, becomes=becomes, words=words, nothing=nothing, **more)


def number_within(
    unit: KeyUnit, field: str, least: int, most: int, example: str, *, like: str = "", **more: Any
) -> KeyRow:
    """The same for a number from `least` to `most`, or `none`; its type is that of the quantity or "none" or None."""
    return number(unit, field, nothing="none", bounds=KeyBounds(unit, least, most, example, like or example), **more)
