"""Suggests known words in errors about unknown ones. Pure.

In: the unknown word, and the known ones. Out: the words to write instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_NAMES = 12  # in one line
MOST_LETTERS = 80  # of what was written


def nearest(word: str, known: Iterable[str]) -> str:
    """The suggestion to write instead of an unknown word."""
    names = list(known)
    close = difflib.get_close_matches(word[:MOST_LETTERS], names, n=1, cutoff=0.6)
    shown = [*names[:MOST_NAMES], *(["…"] if len(names) > MOST_NAMES else [])]
    return f'write "{close[0]}"' if close else "write one of " + ", ".join(shown)
