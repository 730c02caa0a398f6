"""Words that people write around an amount and between its number and its unit, in English, German and French. Pure.

In: an answer, like `about 4.2·10^-2 s`, or what is behind its number, like `million packets`. Out: the answer without
words that do not change the amount; the factor that a word like `dozen` is; whether words only name what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ewan.extras.course.named_units import Kind
from ewan.labs.base.units import GIGA, KILO, MEGA

QUOTES = "“”„‟‘’‚«»`"
"""Quotes as editors write them, and the marks of Markdown for code: no part of the value between them."""
MINUS = dict.fromkeys(map(ord, "−–—‐‑⁃﹣－"), "-")
"""Minus signs as editors write them."""
_AROUND = f"{QUOTES}* \u00a0\u202f"
_ABOUT = re.compile(
    r"(?:[~≈=]|about|approx(?:imately|\.)?|ca\.?|circa|etwa|ungefähr|rund|environ|env\.)\s*", re.IGNORECASE
)
_SIGN = re.compile(r"(?:(?P<minus>minus|moins)|plus)\s+(?=[0-9.,])", re.IGNORECASE)
_EXPLAINED = re.compile(r"(?<![\^*])(?<![\^*] )\(([^()]*)\)$")
"""An explanation behind an amount, as in `42 ms (p95)`."""
_EXPONENT = (
    r"(?:\s*(?:\^|\*\*|hoch\s)\s*(?P<open>[({]?)\s*(?P<plain>[+-]?\s?[0-9]{1,2})(?![0-9]|[.,][0-9])\s*[)}]?"
    r"|(?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]{1,2}))"
)
_POWER = re.compile(rf"(?<=[0-9])(?:\s*(?:[×·⋅•*x]|\\times|\\cdot)\s*|\s+)10{_EXPONENT}", re.IGNORECASE)
_EXPONENT_APART = re.compile(r"(?<=[0-9])\s*e\s*([+-]?)\s*([0-9]{1,2})(?![0-9])", re.IGNORECASE)
_ALONE = re.compile(rf"^(?P<sign>[+-]?\s*)(?P<base>10|2){_EXPONENT}", re.IGNORECASE)
_TIMES = re.compile(r"\*+[^*]*$")
"""A factor without what it multiplies, and no bold text."""
_RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_STOP = re.compile(r"([^\W\d_]|[%\s]|[.,][0-9]+)\.$")
"""The end of a sentence, and not the point of `300.`, which says that the zeros were measured."""

_SCALES = {
    **dict.fromkeys(("hundred", "hundert"), 100),
    **dict.fromkeys(("thousand", "tausend", "tsd", "mille"), KILO),
    **dict.fromkeys(("million", "millionen", "mio"), MEGA),
    **dict.fromkeys(("milliard", "milliarde", "milliarden", "mrd"), GIGA),
    **dict.fromkeys(("dozen", "dutzend", "douzaine"), 12),
}
"""Words that multiply, and mean the same in all three languages: a billion does not."""
_LONGEST_FIRST = "|".join(sorted(_SCALES, key=len, reverse=True))
_SCALE = re.compile(rf"({_LONGEST_FIRST})s?\b\.?\s*(?:(?:of|von|de)\s+)?", re.IGNORECASE)
_BIG = re.compile(
    r".*(?:hundred|hundert|thousand|tausend|[bmtr]illi|dozen|dutzend|douzain).*|tsd|mio|mrd|mille|cent"
    r"|kilos?|m[eé]gas?|gigas?|t[eé]ras?|petas?|exas?|mi[ck]ro|nano|pico|piko|de[ck]i|[cz]enti|[kmg]ibi|pp[mb]",
    re.IGNORECASE,
)
_NUMERAL = re.compile(
    r"scores?|gross|pairs?|paare?|paires?|couples?|hal(?:f|ves|be?|bes|ftel)|hälften?|demie?|moitiés?|quarts?|tiers"
    r"|(?:quarter|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)s?|double[ds]?|triples?|twice|thrice"
    r"|(?:drit|vier|fünf|sechs|sieb|ach|neun|zehn)tel|doppelt|dreifach|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|(?:zwan|vier|fünf|sech|sieb|acht|neun)zig|dreißig|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|\w+teen|zwei|drei|vier|fünf|sechs|sieben|acht|neun|\w*zehn|elf|zwölf|deux|trois|quatre|cinq|sept|huit|neuf|dix"
    r"|per|pro|par|of|von|de|durch|sur|minus|plus|moins|less|weniger|more|mehr|no|not|nicht|kein|pas|without|ohne|sans"
    r"|below|under|unter|sous|above|over|über|to|bis|or|oder|ou|and|und|et|each|je|inverse|square[ds]?|cubed|root"
    r"|wurzel|log|log2|log10",
    re.IGNORECASE,
)
"""Words that make another amount of a number, or may: none of them only names what was asked for."""
_HOW_FOUND = re.compile(
    r"p[0-9]{1,2}(?:[.,][0-9]+)?|median|mean|average|avg|max|maximum|percentile|mittel|mittelwert|durchschnitt|perzentil"
    r"|médiane|moyenne|centile|measured|computed|calculated"
    r"|estimated|rounded|exact|exactly|roughly|gemessen|berechnet|geschätzt|gerundet|abgelesen|genau|mesurée?|calculée?"
    r"|estimée?|arrondie?|the|of|from|in|by|my|both|all|runs?|report|csv|figure|table|formula|der|die|das|dem|den|von"
    r"|aus|im|mein|meinem|beider|aller|lauf|läufe|bericht|tabelle|formel|le|la|les|de|du|des|mon|essais?|formule",
    re.IGNORECASE,
)
"""Words of an explanation in brackets that say how an amount was found, of which none makes another one of it."""
_OF_WHAT = re.compile(r"rtts?|goodput|throughput|udp|tcp|delay|pings?|durchsatz|débit|utile", re.IGNORECASE)
"""Words of it that might be a unit, where there is no other: `7 (RTT)`."""
_QUANTITIES: Mapping[Kind, str] = {
    "time": "rtt rtts delay time duration verzögerung zeit dauer délai temps durée",
    "rate": "goodput throughput rate bandwidth durchsatz bandbreite débit utile",
    "size": "size buffer window größe puffer fenster taille tampon fenêtre",
    "packets": "window buffer queue threshold fenster puffer schlange schwelle fenêtre tampon file seuil",
    "share": "share anteil part",
    "number": "factor ratio slope exponent faktor verhältnis steigung facteur rapport pente exposant",
}
"""Names of what is asked for, by its kind, which say nothing of how much it is. German joins words before them."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LETTERS = re.compile(r"[^\W\d_]+")
_OF_BDPS = re.compile(
    r"\b(?:in|en)\s+(?:(?:multiples|vielfachen)\s+(?:of\s+the|of|der|des|von|du|de)\s+)?(?:BDPs?|pipe|tuyau)\b",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(
    r"\b(?:how\s+many|in\s+which|wie\s*viele[rn]?|in\s+welche[rm]|combien\s+d(?:e\s|['’])|dans\s+quel(?:le)?)"
    r"\s*([^.?!:;,(]*)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|\S")
_BY = ("/", "a", "per", "pro", "par", "je")
_SECOND = re.compile(r"s|sec|seconds?|sekunden?|secondes?", re.IGNORECASE)
LEAST_SHARED = 3
MOST_ENDING = 3
"""Letters of a plural that its singular may lack: adjacencies, adjacency."""
MOST_COUNTED = 4
"""Words of a question that say what is counted."""


@dataclass(frozen=True, slots=True)
class RepeatedWords:
    """Words of a question that its answer may repeat. `words`: all of them; `counted`: those behind each `how many`;
    `bdps`: it asks for multiples of the BDP."""

    words: frozenset[str] = frozenset()
    counted: tuple[tuple[str, ...], ...] = ()
    bdps: bool = False

    @classmethod
    def of(cls, question: str) -> RepeatedWords:
        """Return the words of a question's text."""
        words = frozenset(word.casefold() for word in _LETTERS.findall(question))
        counted = tuple(_tokens(each)[: MOST_COUNTED + 1] for each in _HOW_MANY.findall(question))
        return cls(words, counted, _OF_BDPS.search(question) is not None)

    def names(self, text: str, kind: Kind) -> bool:
        """Return whether words behind a unit only name the quantity that was asked for, as the question does."""
        quantities = tuple(_QUANTITIES.get(kind, "").casefold().split())
        told = [word.strip(",;:").casefold() for word in text.split()]
        return all(each.endswith(quantities) and any(asked.endswith(each) for asked in self.words) for each in told)

    def counts(self, text: str) -> bool:
        """Return whether words behind a number name the counted things: `round trips`, `segments/s` of "how many
        segments a second". The question's first word may be left out: of "how many more", "how many full packets"."""
        told = _tokens(text.strip(",;:"))
        if not told or any(_numeral(each) for each in (told[0], told[-1]) if each != "times"):
            return False
        starts = [each[first:] for each in self.counted for first in (0, 1)]
        return any(len(told) <= len(each) and all(map(_alike, told, each)) for each in starts)


NOTHING = RepeatedWords()


def bare(text: str) -> str:
    """An amount without what is written around it, and a power of ten behind its number as in `3e6`."""
    inner = text.translate(MINUS).replace("$", "").strip(_AROUND)
    found = _EXPLAINED.search(inner)
    if found and _explains(found[1], inner[: found.start()].rstrip()):
        inner = inner[: found.start()].rstrip()
    inner = inner[about.end() :] if (about := _ABOUT.match(inner)) else inner
    inner = _SIGN.sub("-", inner, count=1) if (sign := _SIGN.match(inner)) and sign["minus"] else inner
    inner = inner[sign.end() :] if (sign := _SIGN.match(inner)) else inner
    inner = _POWER.sub(lambda power: f"e{_exponent(power)}", inner)
    inner = _EXPONENT_APART.sub(r"e\1\2", inner)
    inner = inner if _TIMES.match(text.strip()) else _ALONE.sub(_power_alone, inner)
    return _STOP.sub(r"\1", inner)


def _explains(text: str, amount: str) -> bool:
    """Return whether the words in brackets explain how the amount before it was found, and nothing of how much it
    is."""
    known = (_HOW_FOUND,) if amount[-1:].isdigit() else (_HOW_FOUND, _OF_WHAT)
    return all(
        any(each.fullmatch(word) for each in known) for word in re.findall(r"[^\s,;:.=](?:[^\s,;:=]*[^\s,;:.=])?", text)
    )


def _numeral(text: str) -> bool:
    return any(_BIG.fullmatch(word) or _NUMERAL.fullmatch(word) for word in _LETTERS.findall(text))


def _exponent(power: re.Match[str]) -> str:
    return re.sub(r"\s", "", (power["plain"] or power["raised"]).translate(_RAISED))


def _power_alone(power: re.Match[str]) -> str:
    exponent = _exponent(power)
    if power["base"] == "10":
        return f"{power['sign']}1e{exponent}"
    return power[0] if int(exponent) < 0 else f"{power['sign']}{2 ** int(exponent)}"


def scaled(text: str) -> tuple[int, str]:
    """The factor that a word like `million` is, and the unit behind it; 1 and the text where there is none."""
    found = _SCALE.match(text)
    if found is None:
        return 1, text
    return _SCALES[found[1].lower()], text[found.end() :]


def cuts(text: str) -> Iterator[tuple[str, str]]:
    """All that may be a unit and the words behind it, the longest unit first."""
    yield text, ""
    for space in reversed(list(re.finditer(r"\s+", text))):
        yield text[: space.start()], text[space.end() :]
    yield "", text


def _tokens(text: str) -> tuple[str, ...]:
    """Words in small letters; "per second" is `/ s`, however it is written."""
    found = [word.casefold() for word in _TOKEN.findall(text)]
    for place, word in enumerate(found):
        if place and _SECOND.fullmatch(word) and found[place - 1] in _BY:
            found[place - 1 : place + 1] = ["/", "s"]
    return tuple(found)


def _alike(one: str, other: str) -> bool:
    """Return whether two words differ in their endings at most, each part of `allers-retours` by itself."""
    parts, others = one.split("-"), other.split("-")
    return len(parts) == len(others) and all(map(_alike_part, parts, others))


def _alike_part(one: str, other: str) -> bool:
    shared = max(LEAST_SHARED, len(one) - MOST_ENDING, len(other) - MOST_ENDING)
    return one == other or (min(len(one), len(other)) >= shared and one[:shared] == other[:shared])
