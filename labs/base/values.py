"""Values that people write as types that pydantic reads: quantities, names, counts, files that are named.

Comes in: a scalar, list or small mapping, as YAML gave it. Goes out: a typed value, or a ValueError that says what to
write instead. Files are read by the function that `ewan.labs.spec` puts into the context.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, PlainValidator, ValidationInfo, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ewan.labs.base.reading import MOST_DIGITS
from ewan.labs.base.units import Buffer, Duration, Fraction, Rate, Size, parse_millihertz

NAME = re.compile(r"[a-z][a-z0-9-]*")
WHOLE = re.compile(rf"[0-9]{{1,{MOST_DIGITS}}}")
LONGEST_NAME = 32
LONGEST_TABLE = 2**20


def _name(value: object) -> str:
    """A name of small letters, digits and hyphens: it becomes part of the names of nodes, files and namespaces."""
    if isinstance(value, str) and NAME.fullmatch(value) and not value.endswith("-"):
        if len(value) <= LONGEST_NAME:
            return value
        raise ValueError(f"has {len(value)} characters: write a name of at most {LONGEST_NAME}")
    raise ValueError('write a name of small letters, digits and hyphens that begins with a letter, like "dumbbell"')


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number, from YAML or as text from the command line: `Annotated[int, Count(1, 10)]`."""

    least: int
    most: int

    def parse(self, value: object) -> int:
        """The number; ValueError for what is no whole number from `least` to `most`."""
        text = "" if isinstance(value, bool) else str(value)
        digits = text.removeprefix("-") if self.least < 0 else text
        if WHOLE.fullmatch(digits) and self.least <= int(text) <= self.most:
            return int(text)
        example = max(self.least, min(2, self.most))
        raise ValueError(f'write a whole number from {self.least} to {self.most}, like "{example}"')

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file that a description names, and what it holds."""

    name: str
    text: str


def read_file(name: str, info: ValidationInfo) -> str:
    """The content of a file that a description names. ValueError if no file may be named here, or if it cannot be
    read."""
    read = (info.context or {}).get("read")
    if read is None:
        raise ValueError(f"{name}: only a lab's description names files: write the value itself")
    try:
        return str(read(name))
    except OSError as error:
        raise ValueError(f"{name}: {error.strerror}: write a file's path relative to the description") from None


def written_as(title: str, *examples: str) -> WithJsonSchema:
    """The description of a value that is written as text, for the page and the schema."""
    return WithJsonSchema({"type": "string", "title": title, "examples": list(examples)})


Name = Annotated[str, PlainValidator(_name), written_as("name", "dumbbell")]
RateText = Annotated[Rate, PlainValidator(Rate.parse), written_as("rate", "1Gbit/s")]
DurationText = Annotated[Duration, PlainValidator(Duration.parse), written_as("duration", "100ms")]
SizeText = Annotated[Size, PlainValidator(Size.parse), written_as("size", "500kB")]
FractionText = Annotated[Fraction, PlainValidator(Fraction.parse), written_as("fraction", "0.1%")]
BufferText = Annotated[Buffer, PlainValidator(Buffer.parse), written_as("buffer", "1BDP")]
GainText = Annotated[int, PlainValidator(parse_millihertz), written_as("gain", "0.125Hz")]
