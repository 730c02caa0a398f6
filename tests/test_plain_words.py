"""Docstrings, comments and pages are written in plain words: a phrase that only a person who knows the code can resolve
is refused, with what to write instead."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ewan.labs.base.product import ROOT

PHRASES = {
    r"the ones? that": 'the noun: "the link that …"',
    r"as it came": '"unchanged"',
    r"alone": '"only", or "by itself"',
    r"said": '"written", "stated" or "requested"',
    r"told": '"reported", "known" or "distinguished"',
    r"(?:is|are) there for": '"serves"',
    r"what (?:is|are) not": 'the noun: "packets that are not …"',
    r"what is none": 'the noun: "a word that is no …"',
    r"what (?:became|becomes|has become) of": '"the result of", "the state of" or "the outcome of"',
    r"says nothing": '"is ignored", or the thing that is missing',
    r"nobody": '"no user", "no process" or the passive',
    r"somebody": '"a person" or "another user"',
}
ALLOWED = r"stand-?alone|runs? alone|flows? alone|(?:leave|let)s? (?:\w+ )?alone|told apart|told them"
FIRST_WORDS = r"(?:What|Of|How|Whether|Which|That|(?:Where|When|If)(?=[^,.]*(?:\.\s|\.?\Z|\.?\"\"\")))\b"
"""A docstring that begins so has no main clause: it says neither what a function does nor what it returns."""


class Hit(NamedTuple):
    path: str
    line: int
    words: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words}: write {self.instead} instead"


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b".replace(" ", r"\s+"), re.IGNORECASE)


_PHRASES = [(_pattern(words), instead) for words, instead in PHRASES.items()]
_ANY = _pattern("|".join(PHRASES))
_QUOTED = re.compile(rf"```.*?```|`[^`]*`|{_pattern(ALLOWED).pattern}", re.DOTALL | re.IGNORECASE)


def in_text(path: str, first: int, text: str) -> Iterator[Hit]:
    """The refused phrases of a text whose first line has this number; code in backticks does not count."""
    if not _ANY.search(text):
        return
    prose = _QUOTED.sub(lambda found: re.sub(r"\S", " ", found[0]), text)
    for pattern, instead in _PHRASES:
        for found in pattern.finditer(prose):
            yield Hit(path, first + prose.count("\n", 0, found.start()), " ".join(found[0].split()), instead)


def in_source(path: str, source: str) -> Iterator[Hit]:
    """The refused phrases of a Python source: its docstrings, its messages and its comments."""
    if not (_ANY.search(source) or re.search(rf'"""{FIRST_WORDS}', source)):  # to parse all files takes seconds
        return
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            if found := re.match(FIRST_WORDS, node.value.value):
                yield Hit(path, node.lineno, f'"{found[0]} …"', 'a sentence or a noun phrase: "Return …", "The …"')
            yield from in_text(path, node.lineno, node.value.value)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if " " in node.value.strip():  # a message, and no name
            yield from in_text(path, node.lineno, node.value)
    if not _ANY.search("\n".join(re.findall("#(.*)", source))):
        return
    comments: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield from in_text(path, last + 1 - len(comments), "\n".join(comments))
                comments = []
            last = token.start[0]
            comments.append(token.string.lstrip("#"))
    yield from in_text(path, last + 1 - len(comments), "\n".join(comments))


def _is_page(path: str) -> bool:
    if path.startswith("extras/course/labs/"):
        return path.endswith((".md", ".yaml"))
    return path in ("README.md", "CHANGELOG.md") or (path.startswith("docs/") and path.endswith(".md"))


def hits() -> Iterator[Hit]:
    """The refused phrases of all tracked sources and pages; tests are not read."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for path in listed.split("\0"):
        if path.endswith(".py") and "tests" not in Path(path).parts:
            yield from in_source(path, (ROOT / path).read_text())
        elif _is_page(path):
            yield from in_text(path, 1, (ROOT / path).read_text())


def _is_prose_of_a_lab(hit: Hit) -> bool:
    """Texts for students tell of persons and of flows by themselves."""
    return hit.path.startswith("extras/course/labs/") and hit.words.lower() in ("alone", "nobody", "somebody")


def test_sources_and_pages_are_written_in_plain_words() -> None:
    found = [str(each) for each in hits() if not _is_prose_of_a_lab(each)]
    assert not found, "\n".join(found)


def test_a_phrase_is_found_over_the_end_of_a_line_and_not_in_code() -> None:
    source = '"""What it is."""\n\n# The link is the one\n# that `said` names; a stand-alone kernel.\n'
    assert [str(each) for each in in_source("a.py", source)] == [
        'a.py:1: "What …": write a sentence or a noun phrase: "Return …", "The …" instead',
        'a.py:3: the one that: write the noun: "the link that …" instead',
    ]
