"""A lab as a notebook for Jupyter: the same text, its commands and figures as cells of Python. Pure.

In: a lab's rendered text. Out: a notebook of format 4.5 (nbformat), as JSON. The cells use only `ewan.course()`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ewan.extras.course import markdown
from ewan.extras.course.reading import Lab
from ewan.extras.course.words import LanguageWords
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct

VERSION = (4, 5)


class NotebookCell(Struct, tag_field="cell_type", tag="markdown", omit_defaults=False):
    """A cell of text. `source`: its lines with their ends."""

    id: str
    metadata: dict[str, str]
    source: list[str]


class CodeCell(NotebookCell, tag="code"):
    """A cell that was not executed."""

    execution_count: int | None = None
    outputs: tuple[str, ...] = ()


class Kernel(Struct):
    """The kernel that executes a notebook."""

    display_name: str
    language: str
    name: str


class Language(Struct):
    """The language of a notebook's code."""

    name: str


class NotebookMetadata(Struct):
    """Metadata of the notebook: who executes its cells."""

    kernelspec: Kernel
    language_info: Language


class NotebookDocument(Struct):
    """NAME.ipynb."""

    cells: list[NotebookCell]
    metadata: NotebookMetadata
    nbformat: int
    nbformat_minor: int


_PYTHON = NotebookMetadata(Kernel("Python 3", "python", "python3"), Language("python"))


def write(lab: Lab, text: str, words: LanguageWords) -> bytes:
    """The bytes of NAME.ipynb; the same text gives the same bytes."""
    cells = [_cell(number, *each) for number, each in enumerate(_cells(lab, text, words))]
    return codec.ordered(NotebookDocument(cells, _PYTHON, *VERSION))


def _cells(lab: Lab, text: str, words: LanguageWords) -> Iterator[tuple[str, str]]:
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


def _cell(number: int, kind: str, source: str) -> NotebookCell:
    cell = NotebookCell if kind == "markdown" else CodeCell
    return cell(f"cell-{number:03}", {}, source.splitlines(keepends=True))
