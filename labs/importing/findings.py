"""What an importer finds that a description cannot say: refused with its line, or kept as a comment with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from labs.errors import UserError
from labs.importing.script import Command
from labs.reading import one_line
from labs.units import UnitError
from labs.wording import MOST_LETTERS

Value = TypeVar("Value")
LENIENT = "--lenient"
MOST_NOTES = 200


class ImportingError(UserError, ValueError):
    """One line: `file:line: what was written: what is wrong, what to do`."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


@dataclass(slots=True)
class Findings:
    """Of one script. `notes` become comments of the description."""

    file: str
    lenient: bool
    notes: list[tuple[int, str]] = field(default_factory=list)

    def error(self, line: int, what: str, message: str) -> ImportingError:
        """What no import can do without; `what` was written there."""
        return ImportingError(f'{self.file}:{line}: "{one_line(what, MOST_LETTERS)}": {message}')

    def cannot(self, line: int, what: str, why: str, otherwise: str = "leave it out") -> None:
        """What changes the meaning and cannot be said: refused, or done `otherwise` where that is wanted."""
        if not self.lenient:
            raise self.error(line, what, f"{why}: {LENIENT} would {otherwise}, and say so in a comment")
        done = {"leave it out": "left out"}.get(otherwise, otherwise)
        self.note(line, f'"{one_line(what, MOST_LETTERS)}" {why}: {done}')

    def note(self, line: int, text: str) -> None:
        """What the reader of the description should know, and nothing of it changes."""
        if len(self.notes) < MOST_NOTES:
            self.notes.append((line, one_line(text)))
        elif len(self.notes) == MOST_NOTES:
            self.notes.append((line, "and so on: the rest of such notes is left out"))

    def read(self, command: Command, what: str, parse: Callable[[str], Value], text: str) -> Value:
        """A quantity; refused with its line and words where the tool would read something else."""
        try:
            return parse(text)
        except UnitError as error:
            raise self.error(command.line, f"{what} {text}", str(error)) from None
