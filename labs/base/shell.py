"""A command as people write it, as the words that a node executes.

Comes in: one line of text. Goes out: the program and its arguments; what needs a shell goes to one. Values are put into
a command as words: what a shell would act on is a plain character in them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_SHELL = re.compile(r"[|&;<>()$`*?~\n]")


def argv(text: str) -> tuple[str, ...]:
    """`ping -c 3 right1`; ValueError for quotes that are not closed."""
    if _SHELL.search(text):
        return ("sh", "-c", text)
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{str(error).lower()}: close the quotes") from None


def put_in(text: str, reference: re.Pattern[str], values: Mapping[str, str | int]) -> str:
    """`text` with values in place of references, whose first group is a name.

    Outside of quotes a value is the words that it consists of; within quotes it is part of that word. Whoever gives it
    to a further shell (`sh -c "…"`) has that shell read it once more.
    """
    parts, end, quote = [], 0, ""
    for match in reference.finditer(text):
        before = text[end : match.start()]
        quote, end = _quote_after(before, quote), match.end()
        parts += [before, _within(quote, str(values[match[1]]))]
    return "".join([*parts, text[end:]])


def _quote_after(text: str, quote: str) -> str:
    """The quote that is open after `text`, if `quote` was open before it; empty: none."""
    letters = iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            next(letters, "")
        elif letter == quote:
            quote = ""
        elif letter in "'\"" and not quote:
            quote = letter
    return quote


def _within(quote: str, value: str) -> str:
    if quote == "'":
        return value.replace("'", "'\"'\"'")
    if quote:
        return re.sub(r'([\\"$`])', r"\\\1", value)
    try:
        words = shlex.split(value)
    except ValueError:  # quotes that are not closed
        words = value.split()
    return shlex.join(words)
