"""Answers put into answers.yaml by a program, with all else of the file as it was. Pure.

In: the file's text, a question, an answer. Out: the text with the answer behind the question's name; comments, other
answers and the order stay. DescriptionError where the file is not what a student's folder has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from labs.spec import DescriptionError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = re.compile(r"[0-9A-Za-z][0-9A-Za-z ._%/+-]*")


def put(text: str, name: str, answer: str | Mapping[str, str], file: str) -> str:
    """The text with an answer; `answer`: of settings a value for each."""
    root = _root(text, file)
    value = next((each for key, each in root.value if key.value == name), None) if root is not None else None
    if value is None:
        ended = text if not text or text.endswith("\n") else f"{text}\n"
        return f"{ended}{name}: {_written(answer)}\n"
    if isinstance(answer, str):
        if not isinstance(value, yaml.ScalarNode):
            raise DescriptionError(f"{file}: {name} has several values there: write the answer there by hand")
        return _replaced(text, value, _written(answer))
    if isinstance(value, yaml.ScalarNode):
        return _replaced(text, value, _written(answer))
    for key, each in answer.items():
        inner = next((node for own, node in value.value if own.value == key), None)
        if not isinstance(inner, yaml.ScalarNode):
            raise DescriptionError(f"{file}: {name} has no {key} there: write the answer there by hand")
        text = _replaced(text, inner, _written(each))
        root = _root(text, file)
        assert root is not None
        value = next(node for own, node in root.value if own.value == name)
    return text


def _root(text: str, file: str) -> yaml.MappingNode | None:
    """What the file holds; None where it has no answer and no name yet."""
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError:
        raise DescriptionError(f"{file}: is no YAML: put it right by hand, or make a new folder") from None
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise DescriptionError(f"{file}: consists of keys: put it right by hand, or make a new folder")
    return root


def _replaced(text: str, node: yaml.ScalarNode, value: str) -> str:
    """The text with another value in place of one, on its line."""
    first, last = node.start_mark.index, node.end_mark.index
    if node.style in ("|", ">"):  # ends with its last line
        value += "\n" * text[first:last].endswith("\n")
    space = "" if first and text[first - 1] in " \t" else " "
    return text[:first] + space + value + text[last:]


def _written(answer: str | Mapping[str, str]) -> str:
    """As YAML that is read as the same text."""
    if isinstance(answer, str):
        return (
            answer if _PLAIN.fullmatch(answer) and not answer.endswith(" ") else json.dumps(answer, ensure_ascii=False)
        )
    return "{" + ", ".join(f"{name}: {_written(each)}" for name, each in answer.items()) + "}"
