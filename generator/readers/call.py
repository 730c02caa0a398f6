"""The programs that a command of a scenario calls, as far as its words show. Pure.

In: the words that a node executed; a shell's line is split into its simple commands. Out: the calls of programs that
have a reader, each with its arguments. A program behind a variable or a script is not found."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_WRAPPERS = frozenset(
    ("busybox", "chrt", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "time", "timeout")
)
"""Programs that run another program, named in their arguments."""
_KEYWORDS = frozenset(("{", "!", "do", "else", "if", "then", "until", "while"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_SHELLS = ("sh", "bash", "dash")
_COMMAND = re.compile(r"-[a-z]*c")
MOST_SHELLS = 4
"""Shells within shells whose lines are followed."""


@dataclass(frozen=True, slots=True)
class Call:
    """A program by its name without a directory, and its arguments. `at_once`: nothing of its command ran before."""

    program: str
    arguments: tuple[str, ...]
    at_once: bool


def calls(argv: Sequence[str], programs: Collection[str]) -> list[Call]:
    """The calls of `programs` in a command, in the order in which they are written."""
    found = [_call(words, programs, number == 0) for number, words in enumerate(_lines(list(argv), MOST_SHELLS))]
    return [each for each in found if each is not None]


def _lines(words: list[str], deep: int) -> list[list[str]]:
    """The simple commands of a command, where it is a shell's line those of that line, also of a shell within it."""
    named = (index for index, word in enumerate(words) if PurePosixPath(word).name in _SHELLS)
    at = next((index for index in named if index == 0 or _before(words[0])), len(words))
    if deep and len(words) > at + 2 and _COMMAND.fullmatch(words[at + 1]):
        return [line for inner in _simple_commands(words[at + 2]) for line in _lines(inner, deep - 1)]
    return [words]


def _before(word: str) -> bool:
    """Return whether a word may stand before the program that a simple command calls."""
    return PurePosixPath(word).name in _WRAPPERS or word in _KEYWORDS or _ASSIGNMENT.fullmatch(word) is not None


def _call(words: Sequence[str], programs: Collection[str], at_once: bool) -> Call | None:
    for index, word in enumerate(words):
        name = PurePosixPath(word).name
        if name in programs:
            return Call(name, tuple(words[index + 1 :]), at_once)
        if index == 0 and not _before(word):
            return None
    return None


def _simple_commands(text: str) -> list[list[str]]:
    """A shell's line at its operators, without redirections; empty for one that the shell would refuse."""
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    result: list[list[str]] = [[]]
    for token, after in itertools.zip_longest(tokens, tokens[1:], fillvalue=""):
        redirects = set(token) <= set("<>&") and ("<" in token or ">" in token)
        if redirects:
            result[-1].append(">")
        elif token and set(token) <= set("();|&"):
            result.append([])
        elif result[-1][-1:] == [">"]:
            result[-1].pop()
        elif not (token.isdigit() and after[:1] in ("<", ">") and after):
            result[-1].append(token)
    return [words for words in result if words]
