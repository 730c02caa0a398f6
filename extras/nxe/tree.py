"""XML as elements that know where they stand, read without risk.

In: the text of a file. Out: the root `Element`; DescriptionError with line and column for what is no XML, and for all
that XML offers beyond elements and text: a document type is refused, so that there are no entities, internal or
external, to expand (Debian's and Python's own advice on untrusted XML). Sizes are those of descriptions in YAML.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from ewan.labs.base.source import DEEPEST, MOST_VALUES
from ewan.labs.spec import DescriptionError


@dataclass(slots=True)
class Element:
    """An element, with its text (stripped) and its children. `line` and `column` count from 1."""

    name: str
    line: int
    column: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def every(self, name: str) -> Iterator[Element]:
        """The children of this name."""
        return (child for child in self.children if child.name == name)

    def first(self, name: str) -> Element | None:
        """The first child of this name, if there is one."""
        return next(self.every(name), None)

    def said(self, name: str) -> str:
        """The text of the child of this name; empty where there is none."""
        child = self.first(name)
        return "" if child is None else child.text


def read(text: str, file: str) -> Element:
    """The root of a document."""
    return _Reader(file).read(text)


class _Reader:
    """The elements that are open, innermost last."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: list[Element] = []
        self._root: Element | None = None
        self._count = 0
        self._parser: Any = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._words
        self._parser.StartDoctypeDeclHandler = self._doctype

    def read(self, text: str) -> Element:
        """The root; the parser calls the methods below."""
        try:
            self._parser.Parse(text.encode(), True)
        except expat.ExpatError as error:
            where = f"{self._file}:{error.lineno}:{error.offset + 1}"
            raise DescriptionError(f"{where}: {expat.ErrorString(error.code)}: write well-formed XML") from None
        assert self._root is not None  # expat refuses a document without an element
        return self._root

    def _error(self, message: str) -> DescriptionError:
        line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        return DescriptionError(f"{self._file}:{line}:{column}: {message}")

    def _doctype(self, *_: object) -> None:
        raise self._error("has a document type (<!DOCTYPE>): leave it out, and write entities' text in their place")

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if attributes:
            key = next(iter(attributes))
            raise self._error(f'<{name}> has an attribute "{key}": write it as an element within, or leave it out')
        if self._open and self._open[-1].text:
            raise self._error(f"<{name}> stands beside text in <{self._open[-1].name}>: write one or the other")
        self._count += 1
        if self._count > MOST_VALUES:
            raise self._error(f"holds more than {MOST_VALUES} elements: write fewer")
        if len(self._open) >= DEEPEST:
            raise self._error(f"is nested more than {DEEPEST} deep: write fewer elements within elements")
        line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        element = Element(name, line, column)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _words(self, text: str) -> None:
        words = text.strip()
        if not words:
            return
        if self._open[-1].children:
            raise self._error(f"text stands beside elements in <{self._open[-1].name}>: write one or the other")
        self._open[-1].text = f"{self._open[-1].text} {words}".strip()
