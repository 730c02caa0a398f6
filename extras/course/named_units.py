"""Units as people write them behind an amount, in English, German and French. Pure.

In: what is behind a number, like `Mbit/s`, `mega bytes`, `Sekunden`. Out: its kind, and its size in the SI base unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction as Exact
from typing import Literal

from ewan.labs.base.units import BITS_PER_BYTE, GIGA, KILO, MEGA, NS_PER_SECOND, PPB

Kind = Literal["time", "rate", "size", "packets", "share", "bdp", "number"]

_PREFIXES = {
    **{"": 1, "k": KILO, "m": MEGA, "g": GIGA, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30},
    **{"kilo": KILO, "mega": MEGA, "méga": MEGA, "giga": GIGA, "tera": 10**12, "téra": 10**12},
    **{"kibi": 2**10, "mebi": 2**20, "gibi": 2**30},
}
_DATA = re.compile(
    r"(?P<prefix>(?:kilo|m[eé]ga|giga|t[eé]ra|kibi|mebi|gibi|[kmg]i|[kmgt])?)[\s-]?(?P<what>[bBo]|(?i:bits?|bytes?|octets?))"
    r"(?P<per>(?:\s?(?:/|per|pro|par)\s?(?:s|sec|seconds?|sekunde|seconde)|[\s·⋅*]?s\s?(?:\^\s?-1|⁻¹)|(?<=[bB])ps)?)",
    re.IGNORECASE,
)
"""Prefixes of sizes and rates. Letters may be large or small but for b (bits) and B (bytes): millibits are not
meant."""
_SPELLED: tuple[tuple[str, Kind, Exact], ...] = (
    ("ns nsec nanosecond nanosekunde nanoseconde", "time", Exact(1, NS_PER_SECOND)),
    ("us µs μs usec microsecond mikrosekunde microseconde", "time", Exact(1000, NS_PER_SECOND)),
    ("ms msec millisecond millisekunde milliseconde", "time", Exact(1, 1000)),
    ("s sec sek second sekunde seconde", "time", Exact(1)),
    ("min minute", "time", Exact(60)),
    ("h hour stunde heure", "time", Exact(3600)),
    ("packet pkt pkg paket pakete paquet segment segmente seg", "packets", Exact(1)),
    ("% percent prozent pourcent point punkt punkte pp", "share", Exact(1, 100)),
    ("prozentpunkt prozentpunkte pointdepourcentage pointsdepourcentage", "share", Exact(1, 100)),
    ("‰ permille promille", "share", Exact(1, 1000)),
    ("ppm", "share", Exact(1000, PPB)),
    ("bdp", "bdp", Exact(1)),
    ("x × times time mal fois fold", "number", Exact(1)),
)
_WORDS: Mapping[str, tuple[Kind, Exact]] = {
    word: (kind, size) for words, kind, size in _SPELLED for word in words.split()
}
"""Units that are words, in small letters and in the singular."""
_PLURAL = re.compile(r"(?<=[a-zµ]{3})(?:s|n)$")


def unit(text: str) -> tuple[Kind, Exact] | None:
    """Kind and size of a unit as people write it; None for an unknown one."""
    if not text:
        return "number", Exact(1)
    word = re.sub(r"^(?:percentage|per(?= cent))\s*", lambda found: "" if "age" in found[0] else "per", text.lower())
    joined = re.sub(r"[\s-]", "", word)
    for each in (word, joined, _PLURAL.sub("", word), _PLURAL.sub("", joined)):
        if each in _WORDS:
            return _WORDS[each]
    found = _DATA.fullmatch(text)
    if found is None:
        return None
    size = Exact(_PREFIXES[found["prefix"].lower()])
    in_bits = found["what"] == "b" or found["what"].lower().startswith("bit")
    if found["per"]:
        return "rate", size if in_bits else size * BITS_PER_BYTE
    return "size", size / BITS_PER_BYTE if in_bits else size
