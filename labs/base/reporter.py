"""Prints the output of a command: results on standard output, messages and progress on standard error.

In: lines, tables, one document. Out: text for a terminal of its width, or for a pipe or a log. Brackets are brackets,
since people name files so and write them: rich's markup is interpreted only with `markup=True`, and in cells of
tables. `rich` is imported with the first output.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

LOG_EVERY_S = 5.0
"""Between two lines of a log that say how far something is."""
LOG_WIDTH = 120

Tell = Callable[[str], None]
"""Takes a line for the user."""


class Progress:
    """One line that says how far something is: on a terminal it is replaced, in a log lines follow each other."""

    def __init__(self, messages: Console, replace: Tell) -> None:
        self._messages = messages
        self._replace = replace
        self._said_s = time.monotonic()

    def update(self, text: str) -> None:
        """Only on a terminal."""
        if self._messages.is_terminal:
            self._replace(text)

    def step(self, text: str, log: str | None = None) -> None:
        """A log has a line of each: `log`, or the text itself."""
        if self._messages.is_terminal:
            self._replace(text)
        else:
            self._messages.print(text if log is None else log, soft_wrap=True)

    def tick(self, text: str) -> None:
        """A log has a line at most every `LOG_EVERY_S`."""
        if self._messages.is_terminal:
            self._replace(text)
        elif time.monotonic() - self._said_s > LOG_EVERY_S:
            self._said_s = time.monotonic()
            self._messages.print(text, soft_wrap=True)


class Reporter:
    """`wide`: standard output is no terminal, and nothing says its width: lines need not be short there. `plain`:
    messages are lines of a log, whatever shows them, as in a notebook."""

    def __init__(self, wide: bool = False, plain: bool = False) -> None:
        self._wide, self._plain = wide, plain

    def confirmation(self) -> Callable[[str], bool] | None:
        """Asks at the terminal whether what a text says is to be done; None where there is none."""

        def ask(question: str) -> bool:
            sys.stderr.write(f"{question} [y/N]: ")
            sys.stderr.flush()
            return sys.stdin.readline().strip().lower() in ("y", "yes")

        return ask if sys.stdin.isatty() and sys.stderr.isatty() else None

    @cached_property
    def console(self) -> Console:
        """Standard output."""
        from rich.console import Console

        return Console(highlight=False, emoji=False, markup=False, width=LOG_WIDTH if self._wide else None)

    @cached_property
    def messages(self) -> Console:
        """Standard error."""
        from rich.console import Console

        if self._plain:
            return Console(
                stderr=True, highlight=False, emoji=False, markup=False, force_terminal=False, force_jupyter=False
            )
        return Console(stderr=True, highlight=False, emoji=False, markup=False)

    def emit(self, document: Any) -> None:
        """One JSON document on standard output; values of the codec's types may stand in it."""
        import orjson

        from ewan.labs.base.codec import data_of

        option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        sys.stdout.buffer.write(orjson.dumps(document, default=data_of, option=option))
        sys.stdout.flush()

    def note(self, line: str) -> None:
        """Print a line about an action that the user did not ask for."""
        self.messages.print(line, style="dim", soft_wrap=True)

    def warn(self, line: str) -> None:
        """Print a warning: a reason to doubt the results."""
        self.messages.print(f"warning: {line}", style="yellow", soft_wrap=True)

    def tell(self, line: str) -> None:
        """Print a line about the present action; a line that begins with "warning: " stands out."""
        style = "yellow" if line.startswith("warning: ") else None
        self.messages.print(line, style=style, soft_wrap=True)

    @contextmanager
    def progress(self, text: str) -> Iterator[Progress]:
        """Shows how far something is, for as long as it lasts."""
        from rich.text import Text

        with self.messages.status(Text(text)) as status:
            yield Progress(self.messages, lambda line: status.update(Text(line)))


class SilentReporter(Reporter):
    """Prints warnings only, for work whose progress others report."""

    def note(self, line: str) -> None:
        """Nothing."""

    def tell(self, line: str) -> None:
        """Nothing."""

    @contextmanager
    def progress(self, text: str) -> Iterator[Progress]:
        """Nothing."""
        from rich.console import Console

        yield Progress(Console(file=io.StringIO(), quiet=True), lambda text: None)
