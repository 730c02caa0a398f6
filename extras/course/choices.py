"""The choice of a question that an answer means, by its letter (`b`, `b)`, `option b`), by its words, or by both. Pure.

In: the choices in their order, in the reader's language or in English; an answer. Out: the place of the choice. Signs
and symbols that tell one amount or relation from another count; quotes, capital letters and full stops do not.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from ewan.extras.course.amount_words import MINUS, QUOTES

LETTERS = string.ascii_lowercase
"""The letters of choices, in their order."""
_DROPPED = {**dict.fromkeys(map(ord, f"{QUOTES}*"), None), **MINUS}
_NAMED = re.compile(
    r"(?:the |die |la )?(?:option|choice|answer|letter|antwort|möglichkeit|auswahl|buchstabe|choix|réponse|lettre)\b"
    r"\s*[:=]?\s*"
)
_LETTER = re.compile(r"[(\[]?(?P<letter>[a-z])\s*(?P<behind>[).:,\]-]+|$)\s*(?P<rest>.*)")
_PIECE = re.compile(r"(?:(?<![^\s(])-(?=\w|\.\w)|(?:(?<=\()|^)-(?=\s*[0-9]))|[\w.]+|[+<>=≤≥≠±~≈/^√%×·!¬→←↑↓∞°]")


def key(text: str) -> tuple[str, ...]:
    """The letters and digits of a choice's words, and the signs of amounts and relations, by which choices differ."""
    pieces = _PIECE.findall(text.translate(_DROPPED).casefold().strip())
    return tuple(kept for each in pieces if (kept := each.rstrip(".")))


def chosen(choices: Sequence[str], text: str) -> int | None:
    """The place of the choice that is meant; None: no choice is so."""
    keys = [key(each) for each in choices]
    if (whole := key(text)) in keys:
        return keys.index(whole)
    inner = " ".join(text.translate(_DROPPED).split()).casefold()
    found = _LETTER.fullmatch(_NAMED.sub("", inner, count=1) if _NAMED.match(inner) else inner)
    if found is None or (place := LETTERS.index(found["letter"])) >= len(choices):
        return None
    rest, behind = found["rest"], found["behind"]
    told = {key(rest), key(f"-{rest}")} if behind.endswith("-") else {key(rest)}
    return place if not rest or keys[place] in told else None


def differ(choices: Sequence[str]) -> bool:
    """Return whether there are two choices or more, and no answer can mean two of them."""
    return 2 <= len({key(each) for each in choices}) == len(choices) <= len(LETTERS)
