"""Changes of a file's bytes, words and structure, from a seeded generator: what slips, crashes and malice leave."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

WORD = re.compile(rb"[A-Za-z0-9_.%/+-]+")
NUMBER = re.compile(rb"[0-9]+")
STRANGE = [
    b"-1", b"0", b"null", b"true", b"[]", b"{}", b"''", b"1e999", b"NaN", b"-0", b"0x10", b"1:30",
    b"99999999999999999999", b"9" * 5000, b"-" + b"9" * 30, b"18446744073709551615", b"9223372036854775807",
    b"2147483648", b"0.0000000000001", b"[" * 10, b"[" * 5000, b"{a: " * 60, b"]" * 5000, b"&a [*a]", b"*a",
    b"&a", b"<<", b"? ", b"!!python/object:os.system x", b"!!binary aaaa", b"%YAML 9.9", b"---\n", b"...\n",
    b"\t", b"\x00", b"\x1b[31m", b"\xff\xfe", b"\xed\xa0\x80", b'"\\ud800"', "١٢".encode(), "🦀".encode(),
    "\u2028".encode(), "\ue000seed\ue001".encode(), b"${x}", b"${seed}", b"$(id)", b"a\nb", b"x" * 100_000,
    b"../../../etc/passwd", b"/dev/zero", b"left[1-99999]", b"left[1-9][1-9][1-9][1-9][1-9]", b"left[5-1]",
    b"10000000Gbit/s", b"1ns", b"9999999999s", b"100%", b"1BDP", b"0pkt", b"1B", b"#", b"|", b">", b"\r\n",
]  # fmt: skip
WRONG: list[Any] = [
    None, True, -1, 0, 1.5, 2**31, 2**63, 2**64, 10**400, "", "x", "x" * 100_000, "\ud800", "\x00", "a\nb",
    "../x", [], {}, [[]], [None], {"x": 1}, [0] * 10_000, {"kind": "x"}, -(2**63), 1e308, "10.0.0.1/33",
    "::/129",
]  # fmt: skip


def mutated(content: bytes, draw: random.Random, structured: bool = False) -> bytes:
    """`content` after one to three changes; `structured`: it is JSON, and most changes are of its values."""
    if structured and draw.random() < 0.7:
        return _in_json(content, draw)
    for _ in range(draw.choice((1, 1, 2, 3))):
        content = draw.choice(_CHANGES)(content, draw)
    return content


def flipped(content: bytes, draw: random.Random) -> bytes:
    if not content:
        return content
    at = draw.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]


def cut(content: bytes, draw: random.Random) -> bytes:
    start, length = _slice(content, draw)
    return content[:start] + content[start + length :]


def cut_off(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def doubled(content: bytes, draw: random.Random) -> bytes:
    start, length = _slice(content, draw)
    times = draw.choice((1, 1, 1, 50))
    return content[:start] + content[start : start + length] * times + content[start:]


def moved(content: bytes, draw: random.Random) -> bytes:
    start, length = _slice(content, draw)
    piece, rest = content[start : start + length], content[:start] + content[start + length :]
    at = draw.randrange(len(rest) + 1)
    return rest[:at] + piece + rest[at:]


def inserted(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content) + 1)
    return content[:at] + draw.choice(STRANGE) + content[at:]


def other_word(content: bytes, draw: random.Random) -> bytes:
    """A word becomes a strange one, or another of the file's own."""
    found = list(WORD.finditer(content))
    if not found:
        return inserted(content, draw)
    here = draw.choice(found)
    other = draw.choice(found)[0] if draw.random() < 0.5 else draw.choice(STRANGE)
    return content[: here.start()] + other + content[here.end() :]


def other_number(content: bytes, draw: random.Random) -> bytes:
    found = list(NUMBER.finditer(content))
    if not found:
        return inserted(content, draw)
    here = draw.choice(found)
    # None makes a lab of as many nodes as are allowed: those take seconds to compile.
    new = draw.choice((0, 1, 2, 3, 7, 10, 64, 255, 1000, 65_536, 10**6, 10**9, 2**31, 2**63, 10**30))
    return content[: here.start()] + str(new).encode() + content[here.end() :]


def lines(content: bytes, draw: random.Random) -> bytes:
    """A line goes, comes twice, changes places or is indented differently."""
    found = content.split(b"\n")
    at, other = draw.randrange(len(found)), draw.randrange(len(found))
    match draw.randrange(4):
        case 0:
            del found[at]
        case 1:
            found.insert(other, found[at])
        case 2:
            found[at], found[other] = found[other], found[at]
        case _:
            found[at] = b"  " + found[at] if draw.random() < 0.5 else found[at].removeprefix(b"  ")
    return b"\n".join(found)


def _slice(content: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randrange(len(content) + 1)
    return start, draw.choice((1, 2, 8, 40, 200))


_CHANGES: list[Callable[[bytes, random.Random], bytes]] = [
    flipped, cut, cut_off, doubled, moved, inserted, other_word, other_word, other_word, other_number,
    other_number, lines,
]  # fmt: skip


def _in_json(content: bytes, draw: random.Random) -> bytes:
    document = json.loads(content)
    for _ in range(draw.choice((1, 1, 2))):
        _change(document, draw)
    return json.dumps(document).encode()


def _change(document: Any, draw: random.Random) -> None:
    """Changes one value somewhere in nested lists and objects."""
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = draw.choice(keys)
        if not isinstance(place[key], (dict, list)) or not place[key] or draw.random() < 0.15:
            match draw.randrange(5):
                case 0:
                    del place[key]
                case 1 if isinstance(place, list):
                    place.append(copy.deepcopy(place[key]))
                case 1:
                    place[f"{key}x"] = place.pop(key)
                case _:
                    place[key] = copy.deepcopy(draw.choice(WRONG))
            break
        place = place[key]
