"""Answers of the course as people write them: right ones are read, wrong ones are never judged right."""

from __future__ import annotations

import pytest

from ewan.extras.course import verdicts, words
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.fields import Question, SettingChoice
from ewan.extras.course.verdicts import QuestionVerdict, Truth
from ewan.labs.base.units import UnitError

EN, DE, FR = words.of("en"), words.of("de"), words.of("fr")
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


def judged(question: Question, truth: float | str, answer: str, own: words.LanguageWords = EN) -> QuestionVerdict:
    return verdicts.judge(question, Truth(truth), WrittenAnswer(answer), own)


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
        ("time", 0.0421, "42.1 ms s"),
        ("time", 0.0421, "42.1 MSS"),
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
        ("share", 0.95, "95.0 % lost"),
        ("share", 0.95, "95.0 % (lost)"),
        ("rate", 9.52e6, "9.52 Mbit/s download"),
        ("ratio", 2.5, "2.5 BDP"),
        ("ratio", 2.5, "2.5 goodput"),
        ("count", 7, "7 windows"),
        ("count", 7, "7 (RTT)"),
        *(
            ("time", 0.0421, f"42.1 ms ({each})")
            for each in [
                *("times 2", "half", "double it", "doubled", "mal 2", "x2", "one way", "or 50", "50 ms", "RTT/2", "½"),
                *("vierfach", "das Doppelte", "quadruple", "in us", "wrong", "a round trip"),
            ]
        ),
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
        ("count", 7, "7 doublings of the window"),
        ("ratio", 2.5, "2.50 times the goodput"),
        ("time", 0.0421, "42.1 ms (p95 of the pings)"),
        ("time", 0.0421, "42.1 ms (rtt p99.9, measured)"),
        ("time", 0.0421, "42,1 ms (gemessen: Median aller Pings)"),
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


LEFT = asked("share", "1.5%", "What share of the law's goodput is left at a loss of 16 %?")
CUT = asked("ratio", "0.02", "To what share of its window does CUBIC go at a cut? (Take a cut between 5 s and 50 s.)")
GROWTH = asked(
    "rate", "2%", "Reno adds one segment in each round trip. By how much does its goodput grow in one second?"
)
SLOPE = asked("ratio", "5%", "By how many segments a second does Reno's window grow between two cuts?")
BUFFER = asked("ratio", "8%", "Which buffer, in BDP, do 4 flows need for 96 % of what the link carries?")
PIPES = asked("ratio", "5%", "How large does the window become, in multiples of the pipe?")
OLDER = asked("count", "0", "How many more round trips of data did your file take, from the BDP on?")


@pytest.mark.parametrize(
    ("question", "truth", "text"),
    [
        (LEFT, 0.6, "60% loss"),
        (LEFT, 0.6, "40 % lost"),
        (LEFT, 0.6, "60 % goodput loss"),
        (LEFT, 0.6, "60 % left"),
        (CUT, 0.7, "70 % cut"),
        (CUT, 0.7, "30% cut"),
        (CUT, 0.7, "0.7 at a cut"),
        (GROWTH, 1.2e6, "1.20 Mbit/s in one round trip"),
        (GROWTH, 1.2e6, "1.20 Mbit/s round trip"),
        (GROWTH, 1.2e6, "1.20 Mbit/s/segment"),
        (SLOPE, 25, "25.0 segments/cut"),
        (SLOPE, 25, "25.0 segments between two cuts"),
        (SLOPE, 25, "25.0 cuts a second"),
        (SLOPE, 25, "25.0 segments per hour"),
        (SLOPE, 25, "25 BDP"),
        (OLDER, 2, "2 BDP"),
        (OLDER, 2, "2 files"),
    ],
)
def test_words_of_a_question_that_make_another_amount_are_refused(question: Question, truth: float, text: str) -> None:
    found = judged(question, truth, text)
    assert found.state == "unreadable" and "write a" in found.say


@pytest.mark.parametrize(
    ("question", "truth", "text"),
    [
        (LEFT, 0.6, "60 % share"),
        (GROWTH, 1.2e6, "1.20 Mbit/s goodput"),
        (SLOPE, 25, "25 segments per second"),
        (SLOPE, 25, "25 segments a second"),
        (SLOPE, 25, "25.0 segments/s"),
        (SLOPE, 25, "25.0 segments / sec"),
        (SLOPE, 25, "25 per second"),
        (BUFFER, 0.25, "0.25 BDP"),
        (PIPES, 2.7, "2.7 BDP"),
        (OLDER, 2, "2 round trips"),
        (OLDER, 2, "2 round trips of data"),
    ],
)
def test_the_unit_of_a_question_may_be_in_its_words(question: Question, truth: float, text: str) -> None:
    assert judged(question, truth, text).state == "right"


ROUNDS = asked("count", "0", "En combien d'allers-retours de données votre fichier est-il envoyé ?")


@pytest.mark.parametrize(
    ("question", "truth", "text"),
    [
        (ROUNDS, 1, "1 aller-retour"),
        (ROUNDS, 5, "5 allers-retours de données"),
        (asked("ratio", "5%", "Quelle taille la fenêtre atteint-elle, en multiples du tuyau ?"), 2.7, "2,7 BDP"),
        (asked("share", "1%", "De combien la part est-elle plus petite ?"), 0.056, "5,6 points de pourcentage"),
        (asked("rate", "1%", "Quel débit utile la loi donne-t-elle ?"), 9.2e6, "9,20 Mbit/s débit utile"),
        (asked("rate", "1%", "Que donne la loi ?"), 9.2e6, "9,20 Mbit/s (débit utile)"),
    ],
)
def test_an_answer_in_french_may_repeat_what_is_asked_for(question: Question, truth: float, text: str) -> None:
    assert judged(question, truth, text, FR).state == "right"


@pytest.mark.parametrize(
    ("truth", "tolerance", "text", "state"),
    [
        (99.6155, "0.1%", "100000 ms", "close"),
        (99.6155, "0.1%", "100 s", "close"),
        (99.6155, "0.1%", "99.6 s", "right"),
        (0.996155, "0.01%", "1.00 s", "close"),
        (9.996, "0.01%", "10.0 s", "right"),
        (9.996, "0.01%", "10 s", "close"),
        (100.4, "0.1%", "100 s", "right"),
    ],
)
def test_three_digits_are_those_of_the_truth(truth: float, tolerance: str, text: str, state: str) -> None:
    assert judged(asked("time", tolerance), truth, text).state == state


@pytest.mark.parametrize(
    ("answer", "truth", "text", "both"),
    [
        ("rate", 9.53e6, "9.53 MBPS", ("9.53 MB/s", "9.53 Mbit/s")),
        ("rate", 9.53e3, "9.53KBPS goodput", ("9.53kB/s goodput", "9.53kbit/s goodput")),
        ("rate", 9.53e9, "9.53 GB/S", ("9.53 GB/s", "9.53 Gbit/s")),
        ("size", 1206 * 1024, "1206 KB", ("1206 kB", "1206 KiB")),
        ("size", 1206 * 1024, "1206 KBYTES", ("1206 kB", "1206 KiB")),
    ],
)
def test_capitals_may_be_of_two_units(answer: str, truth: float, text: str, both: tuple[str, str]) -> None:
    """As they are read, they are right; where the other meaning is right, they are asked about."""
    question = asked(answer)
    first, second = both
    said = f'q "{text}": may be either of two amounts: write "{first}" or "{second}"'
    found = judged(question, truth, text)
    assert (found.state, found.say) == ("unreadable", said)
    assert judged(question, truth, second).state == "right" and judged(question, truth, first).state == "wrong"
    as_read = 1206e3 if answer == "size" else truth * 8
    assert judged(question, as_read, text).state == "right"


def test_the_two_amounts_of_a_comma_have_their_unit() -> None:
    said = 'may be either of two numbers: write "42.100 us" or "42100 us"'
    assert judged(asked("time"), 0.0421, "42,100 us").say == f'q "42,100 us": {said}'
    setting = SettingChoice.model_validate({"from": "3kB", "to": "10MB", "bdp": "1"})
    with pytest.raises(UnitError) as refused:
        setting.check("43,750 B", bdp=1e5)
    assert str(refused.value) == 'may be either of two numbers: write "43.750 B" or "43750 B"'


@pytest.mark.parametrize("text", ["42.1 ms\x1b[2J", "1\r2 ms", "42.1\u2028ms", "42.1\u202ems"])
def test_control_characters_of_an_answer_are_shown_as_such(text: str) -> None:
    for answer in ("time", "words"):
        question = asked("time") if answer == "time" else Question(name="q", ask="Why?", answer="words")
        found = judged(question, 0.0421, text)
        assert all(each.isprintable() or each == "\n" for each in found.answer + found.say)
    assert judged(question, 0, "a\n\tb\u202f!\r\nc\u2028d").answer == "a\n\tb\u202f!\nc\nd"


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
