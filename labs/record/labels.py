"""The labels that a person gives to an experiment: a name, tags to find it by, a note. Pure.

In: words of the command line. Out: the keys of experiment.json that they fill; ValueError with one line for words that
cannot be taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypedDict

LONGEST_NAME = 80
LONGEST_NOTE = 4000
MOST_TAGS = 32
TAG = re.compile(r"[^\W_][\w.:-]{0,39}")
"""A letter or digit first: "+" and "-" before a tag say what to do with it."""


def name_of(text: str) -> str:
    """A name in one line; empty: none."""
    words = " ".join(text.split())
    if len(words) > LONGEST_NAME or not words.isprintable():
        raise ValueError(f'name "{words[:LONGEST_NAME]}": write at most {LONGEST_NAME} printable characters')
    return words


def note_of(text: str) -> str:
    """A note of any number of lines; empty: none."""
    words = text.strip()
    if len(words) > LONGEST_NOTE or not words.replace("\n", "").replace("\t", "").isprintable():
        raise ValueError(f"note: write at most {LONGEST_NOTE} printable characters")
    return words


def tags_of(words: Iterable[str]) -> list[str]:
    """Each tag once, in order."""
    return changed((), [f"+{word}" for word in words])


def changed(tags: Sequence[str], changes: Iterable[str]) -> list[str]:
    """Tags after `+TAG` and `-TAG`, each once, in the order in which they came."""
    result = dict.fromkeys(tags)
    for change in changes:
        sign, tag = change[:1], change[1:]
        if sign not in ("+", "-"):
            raise ValueError(f'"{change}": write +{change} to add a tag, -{change} to take it away')
        if TAG.fullmatch(tag) is None:
            raise ValueError(f'tag "{tag}": write letters, digits, ".", "_", ":" and "-", at most 40, like "satellite"')
        if sign == "+":
            result[tag] = None
        elif tag in result:
            del result[tag]
        else:
            has = ", ".join(result) or "none"
            raise ValueError(f'tag "{tag}": the experiment does not have it: its tags are: {has}')
    if len(result) > MOST_TAGS:
        raise ValueError(f"{len(result)} tags: write at most {MOST_TAGS}")
    return list(result)


class Labels(TypedDict, total=False):
    """The keys of the record that a person may give."""

    name: str
    tags: list[str]
    note: str


def labels(name: str | None, tags: Iterable[str], note: str | None) -> Labels:
    """The keys of the record that are given."""
    given: Labels = {}
    if name and (words := name_of(name)):
        given["name"] = words
    if own := tags_of(tags):
        given["tags"] = own
    if note and (text := note_of(note)):
        given["note"] = text
    return given
