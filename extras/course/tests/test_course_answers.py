"""Answers of the course as people write them: right ones are read, wrong ones are never judged right."""

from __future__ import annotations

import pytest

from ewan.extras.course import verdicts, words
from ewan.extras.course.answers import Given
from ewan.extras.course.fields import Question
from ewan.extras.course.verdicts import Truth, Verdict

EN, DE = words.of("en"), words.of("de")
ASKS = {
    "time": "What RTT did 95 % of the pings not exceed?",
    "rate": "Which goodput had the download?",
    "size": "How many bytes are on their way there and back?",
    "packets": "How many full packets wait in the queue?",
    "count": "How many doublings of the window took it?",
    "ratio": "How many times the goodput of the far flow does the near one get?",
    "share": "Which share of what the link carries was lost?",
}


def asked(answer: str, tolerance: str = "1%", ask: str = "") -> Question:
    told = {"name": "q", "ask": ask or ASKS[answer], "truth": "1", "because": "So.", "answer": answer}
    return Question.model_validate({**told, "tolerance": tolerance})


def chosen(*choices: str) -> Question:
    told = {"name": "q", "ask": "Which?", "truth": "'x'", "answer": "choice", "choices": choices}
    return Question.model_validate(told)


def judged(question: Question, truth: float | str, answer: str, own: words.Words = EN) -> Verdict:
    return verdicts.judge(question, Truth(truth), Given(answer), own)


@pytest.mark.parametrize(
    ("answer", "truth", "text"),
    [
        ("count", 7, "7 million"),
        ("count", 7, "7 dozen"),
        ("count", 7, "7 hundred doublings"),
        ("count", 7, "7 Tausend"),
        ("count", 7, "7 Tsd."),
        ("count", 7, "7 billion"),
        ("count", 7, "7 (million)"),
        ("count", 7, "7 (x10^3)"),
        ("count", 7, "7 (ms)"),
        ("count", 7, "7 tenths"),
        ("count", 7, "7 halves"),
        ("count", 7, "7 per mille"),
        ("count", 7, "7 kilo"),
        ("count", 7, "7 doublings per hour"),
        ("ratio", 2.5, "2.50 kilo"),
        ("ratio", 2.5, "2.50 Mega"),
        ("ratio", 2.5, "2,50 Millionen"),
        ("ratio", 2.5, "2.50 Mio."),
        ("ratio", 2.5, "2.50 million times"),
        ("ratio", 2.5, "2.50 thousandths"),
        ("packets", 83, "83 thousand packets"),
        ("packets", 83, "83 dozen"),
        ("time", 0.0421, "42.1 ms squared"),
        ("time", 0.0421, "42.1 ms per packet"),
        ("time", 0.0421, "42.1 ms one way"),
        ("time", 0.0421, "42.1 million ms"),
        ("time", 0.0421, "-42.1 ms"),
        ("time", 90.0, "1 min 90 s"),
        ("time", 90.0, "1 min - 30 s"),
        ("time", 90.0, "30 s 1 min"),
        ("time", 90.0, "90 s 1 ms 1 kB"),
        ("share", 0.95, "0.950 %"),
        ("share", 0.0095, "3.95%"),
        ("rate", 1e9, "10^9.5 bit/s"),
        ("rate", 1e9, "10^8 bit/s"),
        ("rate", 1e9, "10^9 bytes/s"),
        ("size", 1.2e6, "1.20 mega bits"),
        ("size", 1.2e6, "1.20 mega bytes/s"),
    ],
)
def test_a_wrong_amount_is_never_right(answer: str, truth: float, text: str) -> None:
    """Whatever is written beside a number and makes another amount of it."""
    for own in (EN, DE):
        assert judged(asked(answer), truth, text, own).state in ("wrong", "unreadable")


@pytest.mark.parametrize(
    ("answer", "truth", "text"),
    [
        ("share", 0.95, "0.950"),
        ("share", 0.95, "0,950"),
        ("share", 0.95, ".95"),
        ("share", 0.95, "95.0 % lost"),
        ("share", 0.0095, "9.5 ‰"),
        ("rate", 1e9, "10^9 bit/s"),
        ("rate", 1e9, "10**9 bit/s"),
        ("rate", 1e9, "10⁹ bit/s"),
        ("rate", 1e9, "10^{9} bit/s"),
        ("rate", 1e9, "$10^9$ bit/s"),
        ("rate", 1e9, "10 hoch 9 bit/s"),
        ("rate", 1e9, "1 x 10^9 bit/s"),
        ("rate", 1e9, "1 E9 bit/s"),
        ("rate", 1e9, "1e+09 bits per second"),
        ("rate", 9.52e6, r"9.52 \times 10^{6} bit/s"),
        ("rate", 9.52e6, "9.52 10^6 bit/s"),
        ("rate", 9.52e6, "9.52 * 10 ** 6 bit s^-1"),
        ("rate", 9.52e6, "9.52 M bit / s"),
        ("rate", 9.52e6, "9.52 Mbit/s goodput"),
        ("rate", 9.52e6, "9,52 Millionen bit/s"),
        ("size", 2**20, "2^20 bytes"),
        ("size", 1.2e6, "1.20 mega bytes"),
        ("size", 1.2e6, "1.20 mega-bytes"),
        ("size", 1.2e6, "1.20 M bytes"),
        ("size", 1.2e6, "1,20 Mo"),
        ("size", 1.2e6, "1.20 million bytes"),
        ("size", 1.2e6, "1 MB 200 kB"),
        ("time", 0.0421, "42.1 ms RTT"),
        ("time", 0.0421, "42.1 milli seconds"),
        ("time", 0.0421, "4.21·10^−2 s"),
        ("time", 0.0421, "4.21e−2 s"),
        ("time", -0.0421, "- 42.1 ms"),
        ("time", -0.0421, "− 42.1 ms"),
        ("time", -0.0421, "‐42.1 ms"),
        ("time", -0.0421, "minus 42.1 ms"),
        ("time", 90.0, "1 min 30 s"),
        ("time", 90.0, "1min30s"),
        ("time", 90.0, "1m30s"),
        ("time", 90.0, "1 minute and 30.0 seconds"),
        ("time", 90.0, "1 Minute und 30 Sekunden"),
        ("time", 3690.0, "1 h, 1 min, 30 s"),
        ("time", 1.2, "1 s 200 ms"),
        ("count", 7, "7 doublings"),
        ("count", 7, "7"),
        ("count", 84, "7 dozen"),
        ("ratio", 2.5, "2.50 times"),
        ("packets", 83, "83 full packets"),
        ("packets", 2500, "2.5 thousand packets"),
    ],
)
def test_a_right_amount_is_read(answer: str, truth: float, text: str) -> None:
    assert judged(asked(answer), truth, text).state == "right"
    assert judged(asked(answer), truth, text, DE).state == "right"


def test_a_share_without_a_unit_may_be_of_a_hundred() -> None:
    question = asked("share", "0.02%")
    found = judged(question, 0.0095, "0.95")
    assert (found.state, found.say) == ("unreadable", 'q "0.95": may be either of two amounts: write "95%" or "0.95%"')
    assert judged(question, 0.0095, "0,95", DE).say.endswith('kann zweierlei sein: schreibe "95%" oder "0,95%"')
    assert judged(question, 0.95, "95").say == 'q "95": write a share as "95%"'


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("42.1ms", "right"),
        ("42ms", "right"),
        ("42.5ms", "right"),
        ("0.042 s", "right"),
        ("40ms", "close"),
        ("42.6ms", "wrong"),
        ("43ms", "wrong"),
        ("40.0ms", "wrong"),
    ],
)
def test_within_the_tolerance_digits_do_not_matter(text: str, state: str) -> None:
    """An answer that is nearer to the truth is never judged worse than one that is not; beyond the tolerance rounding
    is told from error."""
    assert judged(asked("time"), 0.0421, text).state == state


SIGNS = chosen("-6 dB", "+6 dB", "6 dB", "x < y", "x > y", "1/n", "n", "√n", "n^2", "n2")


@pytest.mark.parametrize("place", range(10))
def test_choices_that_differ_by_a_sign_are_told_apart(place: int) -> None:
    for number, text in enumerate(SIGNS.choices or ()):
        letter = "abcdefghij"[number]
        for told in (
            text,
            text.upper(),
            f"{letter}) {text}",
            f"`{text}`",
            letter,
            f"Option {letter}",
            f"{letter} - {text}",
        ):
            state = judged(SIGNS, (SIGNS.choices or ())[place], told).state
            assert state == ("right" if number == place else "wrong"), told


@pytest.mark.parametrize(
    "text",
    [
        "option a",
        "Option A",
        "choice a)",
        "Antwort: a",
        "answer = a",
        "[a]",
        "**a**",
        "a.",
        "a) linear",
    ],
)
def test_a_choice_may_be_called_one(text: str) -> None:
    assert judged(chosen("linear", "square root"), "linear", text).state == "right"


@pytest.mark.parametrize(
    "text",
    [
        "option",
        "option c",
        "a or b",
        "not a",
        "a, b",
        "ab",
        "a square root",
        "-linear",
        "option a b",
    ],
)
def test_an_answer_that_is_no_choice_says_how(text: str) -> None:
    found = judged(chosen("linear", "square root"), "linear", text)
    assert found.state == "unreadable" and "write a letter from a to b" in found.say


@pytest.mark.parametrize("same", [("6 dB", "6 dB."), ("a", "A"), ("x", "“x”"), ("−1", "-1")])
def test_choices_differ(same: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="that differ"):
        chosen(*same)
