"""Suggests known words in errors about unknown ones. Pure.

In: the unknown word, and the known ones. Out: the words to write instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_NAMES = 12  # in one line
MOST_LETTERS = 80  # of what was written


def nearest(word: object, known: Iterable[str], parts: bool = False) -> str:
    """The suggestion to write instead of an unknown word. `parts`: known words of which it is made count too."""
    names, text = list(known), str(word)
    close = difflib.get_close_matches(text[:MOST_LETTERS], names, n=1, cutoff=0.6)
    if parts:
        close += [name for name in names if f" {name} " in f" {text} " and name not in close]
    shown = [*names[:MOST_NAMES], *(["…"] if len(names) > MOST_NAMES else [])]
    return "write " + (" or ".join(f'"{name}"' for name in close) if close else "one of " + ", ".join(shown))
