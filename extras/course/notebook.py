"""A lab as a notebook for Jupyter: the same text, its commands and figures as cells of Python. Pure.

In: a lab's rendered text. Out: a notebook of format 4.5 (nbformat), as JSON. The cells use `ewan.course()` alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from ewan.extras.course import markdown
from ewan.extras.course.reading import Lab
from ewan.extras.course.words import Words

VERSION = (4, 5)


def write(lab: Lab, text: str, words: Words) -> bytes:
    """The bytes of NAME.ipynb; the same text gives the same bytes."""
    cells = [_cell(number, *each) for number, each in enumerate(_cells(lab, text, words))]
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": VERSION[0],
        "nbformat_minor": VERSION[1],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _cells(lab: Lab, text: str, words: Words) -> Iterator[tuple[str, str]]:
    """Kind and source of each cell."""
    first = True
    for block in markdown.asking(text, words):
        match block.kind:
            case "prose":
                yield "markdown", block.text
            case "sh":
                quote = "'''" if "'''" not in block.text else '"""'
                yield (
                    "code",
                    f"lab.run({quote}\n{block.text}\n{quote})" if "\n" in block.text else f"lab.run({block.text!r})",
                )
            case "figure":
                yield "code", f"lab.figure({block.text!r})"
            case "question":
                question = lab.questions[block.text]
                yield "markdown", markdown.asked(question, words, in_notebook=True)
                chosen = "".join(f", {name}=''" for name in question.settings or {}) or ", ''"
                yield "code", f"lab.answer({block.text!r}{chosen})"
        if first:
            yield "code", "import ewan\n\nlab = ewan.course()\nlab"
            first = False
    yield "code", "lab.check()"


def _cell(number: int, kind: str, source: str) -> dict[str, Any]:
    lines = source.splitlines(keepends=True)
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number:03}", "metadata": {}, "source": lines}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}
