"""The gallery: a card for each lab and each scenario of labs/library; and the library's table of contents.

In: the files of the library. Out: Markdown, and the picture of each lab.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ewan.generator.scenario import load
from ewan.labs import host, spec
from ewan.labs.base.reading import read_text
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.render import svg, table
from ewan.labs.spec.names import LAB, SCENARIO

HEAD = """# Gallery

Each card is a file of `labs/library/`: what it shows and its source, a command to copy, the result to expect, and a
picture of the lab. `ewan lab compile NAME` draws a lab as it stands here.
Scenarios run in seconds or minutes with `--size quick`, where they have this size.
"""
MOST_PAIRS = 3
"""Kinds of pairs that a card names."""

INDEX = """# Labs and scenarios

Made from the files of this folder (`ewan docs`); do not edit. [The gallery](../../docs/gallery.md) has a card for each.

"""


@dataclass(frozen=True)
class _Entry:
    """A file of the library: what it shows, the source of that, the command that runs it, and what comes out."""

    name: str
    shows: str
    about: str
    source: str
    command: str
    expected: str

    def card(self, picture: str = "") -> str:
        said = " ".join([self.about, *([f"Source: {self.source.rstrip('.')}."] if self.source else [])])
        result = [f"Result: {self.expected}\n"] if self.expected else []
        return "\n".join([f"\n### {self.name}\n", f"{said}\n", f"```\n{self.command}\n```\n", *result, picture])

    def row(self, ending: str) -> str:
        cells = (f"[{self.name}]({self.name}{ending})", self.shows, self.source)
        return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"


def markdown(library: Path) -> tuple[str, Mapping[str, str]]:
    """The page, and the pictures of labs by their paths below docs/."""
    plans = {file: compile(spec.load(file), host.virtual_facts()) for file in sorted(library.glob(f"*{LAB}"))}
    pictures = {f"gallery/{_name(file, LAB)}.svg": svg.picture(plan) for file, plan in plans.items()}
    labs = (
        _lab(file, _pairs(plan)).card(f"![{_name(file, LAB)}]({path})\n")
        for (file, plan), path in zip(plans.items(), pictures, strict=True)
    )
    page = "".join([HEAD, "\n## Labs\n", *labs, "\n## Scenarios\n", *(each.card() for each in _scenarios(library))])
    return page, pictures


def index(library: Path) -> str:
    """The library's README: a row for each file."""
    labs = (_lab(file, "").row(LAB) for file in sorted(library.glob(f"*{LAB}")))
    head = "| name | what it shows | source |\n|---|---|---|\n"
    scenarios = (each.row(SCENARIO) for each in _scenarios(library))
    return "".join([INDEX, "## Labs\n\n", head, *labs, "\n## Scenarios\n\n", head, *scenarios])


def _name(file: Path, ending: str) -> str:
    return file.name.removesuffix(ending)


def _lab(file: Path, expected: str) -> _Entry:
    name, text = _name(file, LAB), read_text(file)
    sentence = _first_sentence(text)
    return _Entry(name, sentence, sentence, source_of(text), f"ewan lab {name} --runtime virtual", expected)


def _pairs(plan: Plan) -> str:
    """What the verification of a lab finds: base RTT and bottleneck of each kind of pair, by its first one."""
    kinds: dict[tuple[str, str], str] = {}
    for source, sink, rtt, bottleneck, *_ in table.pairs(plan):
        kinds.setdefault((rtt, bottleneck), f"{source} to {sink}: base RTT {rtt}, bottleneck {bottleneck}")
    first = list(kinds.values())[:MOST_PAIRS]
    more = ["and others"] if len(kinds) > len(first) else []
    return "; ".join([*first, *more]) + "."


def _scenarios(library: Path) -> Iterator[_Entry]:
    for file in sorted(library.glob(f"*{SCENARIO}")):
        name, scenario = _name(file, SCENARIO), load(file)
        document = scenario.document
        size = " --size quick" if "quick" in scenario.scales else ""
        shows = document.title or name
        about, source, expected = (
            " ".join((words or "").split())
            for words in (document.about or _first_sentence(read_text(file)), document.source, document.expected)
        )
        command = f"ewan run {name}{size} --runtime virtual"
        yield _Entry(name, f"{shows}.", f"**{shows}.** {about}", source, command, expected)


def source_of(text: str) -> str:
    """What a comment of a lab's description says after "Source:", to the end of the comment."""
    found = re.search(r"^# Source: ((?:.*\n)(?:# .*\n)*)", text, re.MULTILINE)
    return "" if found is None else " ".join(found[1].replace("\n# ", " ").split())


def _first_sentence(text: str) -> str:
    """The comment with which a file begins, up to the first line that draws."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        lines.append(line.removeprefix("# ").strip())
        if re.search(r"[.?!]$", lines[-1]):
            break
    return " ".join(lines)
