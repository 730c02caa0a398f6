"""Thousands of forms in which people may write a right answer and a wrong one, the same in each run of the tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from ewan.extras.course import verdicts, words
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.tests.test_course_answers import ASKS, asked
from ewan.extras.course.verdicts import Truth
from ewan.extras.course.words import LanguageWords

EACH = 1000
KINDS = ("time", "rate", "size", "packets", "count", "ratio", "share")
TRUTHS = {
    "time": (0.0421, 0.000_218, 1.37, 212.0, 0.847),
    "rate": (9.52e6, 8.37e8, 42_300.0, 1.17e9),
    "size": (43_700.0, 1_230_000.0, 6_870.0, 2.19e9),
    "packets": (83.0, 4_720.0, 351.0, 26_400.0),
    "count": (7.0, 83.0, 14.0, 342.0),
    "ratio": (2.53, 0.412, 13.7, 1.21),
    "share": (0.951, 0.0643, 0.382, 0.724),
}


def units(size: float, *texts: str) -> tuple[tuple[float, str], ...]:
    """Ways to write a unit of one size."""
    return tuple((size, each) for each in texts)


UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "time": (
        *(
            (1e-3, each)
            for each in ["ms", "msec", "milliseconds", "milli seconds", "Millisekunden", "MS", "msecs", "millisecondes"]
        ),
        *units(
            1e-6,
            "us",
            "µs",
            "μs",
            "usec",
            "microseconds",
            "Mikrosekunden",
        ),
        *units(
            1.0,
            "s",
            "sec",
            "seconds",
            "Sekunden",
            "sek",
            "secondes",
        ),
    ),
    "rate": (
        *(
            (1e6, each)
            for each in ["Mbit/s", "Mbps", "Mb/s", "mbit/s", "megabit/s", "mega bits per second", "Megabit pro Sekunde"]
        ),
        *(
            (1e3, each)
            for each in [
                "kbit/s",
                "kbps",
                "kb/s",
                "Kbit/s",
                "kilobit/s",
                "kbit / s",
                "kilo-bits per second",
                "kbit s^-1",
            ]
        ),
        *units(
            1.0,
            "bit/s",
            "bps",
            "bits per second",
            "bit s⁻¹",
            "Bit/s",
        ),
        *units(
            8e6,
            "MB/s",
            "MByte/s",
            "megabytes per second",
            "mega octets par seconde",
            "MBps",
        ),
    ),
    "size": (
        *(
            (1e3, each)
            for each in ["kB", "KB", "kbytes", "kilobytes", "kilo bytes", "kilo-octets", "ko", "k bytes", "kByte"]
        ),
        *units(
            1e6,
            "MB",
            "MByte",
            "mega bytes",
            "Megabyte",
            "Mo",
            "mega-bytes",
        ),
        *units(
            1.0,
            "B",
            "bytes",
            "Byte",
            "octets",
        ),
        *units(
            125.0,
            "kbit",
            "kilobits",
            "kilo bits",
        ),
        *units(
            1024.0,
            "KiB",
            "kibibytes",
            "kibi bytes",
        ),
    ),
    "packets": units(1.0, "", "packets", "pkts", "segments", "Pakete", "paquets", "full packets"),
    "count": units(1.0, "", "doublings"),
    "ratio": ((1.0, ""), (1.0, "x"), (1.0, "times"), (1.0, "mal"), (1.0, "fois"), (0.01, "%")),
    "share": (
        (0.01, "%"),
        (0.01, "percent"),
        (0.01, "per cent"),
        (0.01, "Prozent"),
        (0.01, "points"),
        (1.0, ""),
        (0.001, "‰"),
    ),
}
NAMES = {"time": " RTT", "rate": " goodput", "share": " share"}
SUPER = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Form:
    """An amount as somebody writes it, in a language."""

    kind: str
    truth: float
    text: str
    own: LanguageWords


def plain(value: float, places: int) -> str:
    return f"{value:.{places}f}"


def number(value: float, rolls: random.Random, comma: bool) -> str:
    """A number with four digits or more, in one of the notations that mean the same in both languages."""
    places = max(0, 4 - len(str(int(abs(value)))) + (2 if abs(value) < 1 else 0))
    text = plain(value, places) if abs(value) >= 1e-3 else f"{value:.8f}"
    notation = rolls.choice(("plain", "plain", "comma", "power", "e", "grouped", "trailing"))
    if notation == "power" or notation == "e":
        mantissa, _, exponent = f"{value:.4e}".partition("e")
        mark, power = rolls.choice(("·10", "*10", " × 10", "x10", " * 10", r" \times 10", r" \cdot 10")), int(exponent)
        if comma:
            mantissa = mantissa.replace(".", ",")
        if notation == "e":
            return f"{mantissa}{rolls.choice('eE')}{power:+03d}" if rolls.random() < 0.5 else f"{mantissa} E{power}"
        written = rolls.choice(
            (f"^{power}", f"**{power}", f"^{{{power}}}", f"^({power})", str(power).translate(SUPER), f" ^ {power}")
        )
        return f"{mantissa}{mark}{written}"
    if notation == "grouped" and abs(value) >= 1000:
        space = rolls.choice((" ", "\u202f", "'", "_", "\u00a0"))
        whole, _, decimals = text.partition(".")
        digits = f"{int(whole):,}".replace(",", space)
        return f"{digits}{',' if comma else '.'}{decimals}" if decimals else digits
    if (notation == "comma" or comma) and "." in text:
        whole, _, decimals = text.partition(".")
        return text if len(decimals) == 3 and whole not in ("0", "-0") and not comma else f"{whole},{decimals}"
    return text


def right(kind: str, rolls: random.Random) -> Form:
    truth = rolls.choice(TRUTHS[kind])
    own = words.of(rolls.choice(("en", "de")))
    size, unit = rolls.choice(UNITS[kind])
    if kind in ("count", "packets"):
        text = str(int(truth)) if rolls.random() < 0.8 else number(truth, rolls, own.comma)
    else:
        text = number(truth / size, rolls, own.comma)
    text += rolls.choice(("", " ", "\u00a0", "  ") if not unit or not unit[0].isalpha() else (" ", "\u00a0", "")) + unit
    text += NAMES.get(kind, "") if rolls.random() < 0.1 and (unit or kind != "share") else ""
    around: tuple[Callable[[str], str], ...] = (
        *([str] * 6),
        lambda text: f"about {text}",
        lambda text: f"ca. {text}",
        lambda text: f"~{text}",
        lambda text: f"≈ {text}",
        lambda text: f"`{text}`",
        lambda text: f"**{text}**",
        lambda text: f"“{text}”",
        lambda text: f"{text} (p95)",
        lambda text: f"= {text}",
        lambda text: f" {text} ",
    )
    return Form(kind, truth, rolls.choice(around)(text), own)


def wrong(kind: str, rolls: random.Random) -> Form:
    """A factor, a swapped unit, a sign, another concept, or a word that makes another amount of it."""
    made = right(kind, rolls)
    mistake = rolls.choice(("factor", "factor", "sign", "concept", "word", "unit"))
    if mistake == "factor":
        factor = rolls.choice((10, 1000, 0.1, 0.001, 2, 0.5, 8, 100, 1.1, 0.9))
        return Form(kind, made.truth * factor, made.text, made.own)
    if mistake == "sign":
        sign = rolls.choice(("-", "- ", "−", "– ", "minus "))
        bare = made.text.strip("`*“” ").removeprefix("about ").removeprefix("ca. ").strip("~≈= ")
        return Form(kind, made.truth, f"{sign}{bare}", made.own)
    bare = made.text.strip("`*“” ").removesuffix("(p95)").rstrip()
    if mistake == "concept":
        other = rolls.choice(
            ("one way", "per packet", "squared", "less", "above the median", "of a million", "jitter", "/ 2")
        )
        return Form(kind, made.truth, f"{bare} {other}", made.own)
    if mistake == "word":
        digits = number(made.truth, rolls, made.own.comma)
        word = rolls.choice(
            ("million", "dozen", "kilo", "Millionen", "thousand", "Tsd.", "billion", "Mio.", "hundred", "Mega")
        )
        unit = rolls.choice([each for size, each in UNITS[kind] if size == 1.0])
        return Form(kind, made.truth, f"{digits} {word} {unit}".rstrip(), made.own)
    other = rolls.choice([each for each in KINDS if each != kind and {each, kind} != {"count", "ratio"}])
    _, unit = rolls.choice([each for each in UNITS[other] if each[1] and each[1] not in "%‰"])
    return Form(kind, made.truth, f"{number(made.truth, rolls, made.own.comma)} {unit}", made.own)


def forms(make: Callable[[str, random.Random], Form], kind: str) -> Iterator[Form]:
    rolls = random.Random(f"{make.__name__} {kind}")
    return (make(kind, rolls) for _ in range(EACH))


def tolerance(kind: str) -> str:
    return {"count": "0", "share": "0.2%"}.get(kind, "1%")


@pytest.mark.parametrize("kind", KINDS)
def test_right_answers_are_right_or_told_how_to_write_them(kind: str) -> None:
    question = asked(kind, tolerance(kind))
    refused = []
    for each in forms(right, kind):
        found = verdicts.judge(question, Truth(each.truth), WrittenAnswer(each.text), each.own)
        if found.state != "right":
            refused.append((each.text, found.state, found.say))
    assert all(state == "unreadable" and ("write" in say or "schreibe" in say) for _, state, say in refused), refused
    assert len(refused) <= 0.01 * EACH, refused


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_answers_are_never_right(kind: str) -> None:
    question = asked(kind, tolerance(kind))
    passed = []
    for each in forms(wrong, kind):
        found = verdicts.judge(question, Truth(each.truth), WrittenAnswer(each.text), each.own)
        if found.state == "right":
            passed.append((each.truth, each.text))
    assert not passed, passed


def test_asks_are_those_of_each_kind() -> None:
    assert set(ASKS) == set(KINDS)
