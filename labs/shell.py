"""A command as people write it, as the words that a node executes.

Comes in: one line of text. Goes out: the program and its arguments; what needs a shell goes to one.
"""

from __future__ import annotations

import re
import shlex

_SHELL = re.compile(r"[|&;<>()$`*?~\n]")


def argv(text: str) -> tuple[str, ...]:
    """`ping -c 3 right1`; ValueError for quotes that are not closed."""
    if _SHELL.search(text):
        return ("sh", "-c", text)
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{str(error).lower()}: close the quotes") from None
