"""Findings of an importer that have no equivalent in a description: refused with its line, or kept as a comment with
it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from ewan.extras.importers.script import ScriptCommand
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import one_line
from ewan.labs.base.units import UnitError
from ewan.labs.base.wording import MOST_LETTERS

Value = TypeVar("Value")
LENIENT = "--lenient"
MOST_NOTES = 200


class ImportingError(UserError, ValueError):
    """An error in one line: `file:line: the text: the mistake, the remedy`."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class CommandOutcome(Enum):
    """The outcome of a command that is not refused."""

    LAB = "the lab has what it does"
    UNDONE = "a later line undoes it"
    NAMED = "a comment of the description names it"
    NOTHING = "it configures no network"


@dataclass(frozen=True, slots=True)
class Note:
    """A comment of the description; `warns` if something of the script is not in the lab."""

    line: int
    text: str
    warns: bool


@dataclass(slots=True)
class Findings:
    """Findings about one script: the fate of each command by its number, and notes, which become comments of the
    description."""

    file: str
    lenient: bool
    notes: list[Note] = field(default_factory=list)
    fates: dict[int, set[CommandOutcome]] = field(default_factory=dict)

    def error(self, line: int, what: str, message: str) -> ImportingError:
        """An error without whose correction no import is possible; `what` is the text there."""
        return ImportingError(f'{self.file}:{line}: "{one_line(what, MOST_LETTERS)}": {message}')

    def cannot(self, command: ScriptCommand, what: str, why: str, otherwise: str = "leave it out") -> None:
        """Refuses a setting that changes the meaning and has no equivalent, or warns that it is done `otherwise` in a
        lenient import."""
        if not self.lenient:
            message = f"{why}: {LENIENT} would {otherwise}, and say so in a comment"
            raise self.error(command.line, what, message)
        done = {"leave it out": "left out"}.get(otherwise, otherwise)
        self.warn(command, f'"{one_line(what, MOST_LETTERS)}" {why}: {done}')

    def note(self, command: ScriptCommand, text: str) -> None:
        """Notes a fact that the reader of the description should know, and that changes nothing of it."""
        self.notes.append(Note(command.line, one_line(text), warns=False))

    def warn(self, command: ScriptCommand, text: str) -> None:
        """Notes an effect of the script that the lab lacks."""
        self.settle(command, CommandOutcome.NAMED)
        self.notes.append(Note(command.line, one_line(text), warns=True))

    def settle(self, command: ScriptCommand, fate: CommandOutcome) -> None:
        """A command without any fate is named at the end as not imported."""
        self.fates.setdefault(command.number, set()).add(fate)

    def name_the_rest(self, commands: Iterable[ScriptCommand]) -> None:
        """Warns of each command that no reader has settled, so that none is forgotten."""
        for command in commands:
            if command.number not in self.fates:
                self.warn(command, f"not imported: {command.text}{' > ' * bool(command.writes)}{command.writes}")

    def shown(self) -> list[Note]:
        """The notes by line, each once; notes that are too many for comments are given only by their lines."""
        notes = sorted(dict.fromkeys(self.notes), key=lambda note: note.line)
        if len(notes) <= MOST_NOTES:
            return notes
        rest = notes[MOST_NOTES:]
        lines = ", ".join(map(str, dict.fromkeys(note.line for note in rest)))
        return [
            *notes[:MOST_NOTES],
            Note(rest[0].line, f"{len(rest)} more notes are left out, about lines {lines}", warns=True),
        ]

    def read(self, command: ScriptCommand, what: str, parse: Callable[[str], Value], text: str) -> Value:
        """A quantity; refused with its line and words where the tool would read something else."""
        try:
            return parse(text)
        except UnitError as error:
            raise self.error(command.line, f"{what} {text}", str(error)) from None
