"""The gallery: a card for each lab and each scenario of labs/library; and the library's table of contents.

In: the files of the library. Out: Markdown, and the picture of each lab and of each scenario's first one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ewan.generator.scenario import Scenario, load
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

    def card(self, picture: str) -> str:
        """`picture`: its path below docs/."""
        source = [f"Source: {self.source.rstrip('.')}."] if self.source else []
        result = [f"Result: {self.expected.rstrip('.')}."] if self.expected else []
        said = " ".join([self.about, *source])
        return "\n\n".join(
            [f"\n### {self.name}", said, f"```\n{self.command}\n```", *result, f"![{self.name}]({picture})\n"]
        )

    def row(self, ending: str) -> str:
        cells = (f"[{self.name}]({self.name}{ending})", self.shows, self.source)
        return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"


def markdown(library: Path) -> tuple[str, Mapping[str, str]]:
    """The page, and the pictures by their paths below docs/."""
    pictures: dict[str, str] = {}

    def card(entry: _Entry, name: str, plan: Plan) -> str:
        path = f"gallery/{name}.svg"
        pictures[path] = svg.picture(plan)
        return entry.card(path)

    labs = []
    for file in sorted(library.glob(f"*{LAB}")):
        plan = compile(spec.load(file), host.virtual_facts())
        labs.append(card(_lab(file, _pairs(plan)), _name(file, LAB), plan))
    scenarios = []
    for file in sorted(library.glob(f"*{SCENARIO}")):
        scenario = load(file)
        first = scenario.runs(scale=_quick(scenario))[0]
        entry = _scenario(file, scenario)
        scenarios.append(card(entry, f"{entry.name}.scenario", compile(first.spec, host.virtual_facts())))
    return "".join([HEAD, "\n## Labs\n", *labs, "\n## Scenarios\n", *scenarios]), pictures


def index(library: Path) -> str:
    """The library's README: a row for each file."""
    labs = (_lab(file, "").row(LAB) for file in sorted(library.glob(f"*{LAB}")))
    head = "| name | what it shows | source |\n|---|---|---|\n"
    files = sorted(library.glob(f"*{SCENARIO}"))
    scenarios = (_scenario(file, load(file)).row(SCENARIO) for file in files)
    return "".join([INDEX, "## Labs\n\n", head, *labs, "\n## Scenarios\n\n", head, *scenarios])


def _name(file: Path, ending: str) -> str:
    return file.name.removesuffix(ending)


def _lab(file: Path, expected: str) -> _Entry:
    name, text = _name(file, LAB), read_text(file)
    sentence = _first_sentence(text)
    return _Entry(name, sentence, sentence, source_of(text), f"ewan lab {name} --runtime virtual", expected)


def _pairs(plan: Plan) -> str:
    """Return the base RTT and the bottleneck of each kind of pair, with the first pair of the kind."""
    kinds: dict[tuple[str, str], str] = {}
    for source, sink, rtt, bottleneck, *_ in table.pairs(plan):
        kinds.setdefault((rtt, bottleneck), f"{source} to {sink}: base RTT {rtt}, bottleneck {bottleneck}")
    first = list(kinds.values())[:MOST_PAIRS]
    more = ["and others"] if len(kinds) > len(first) else []
    return "; ".join([*first, *more]) + "."


def _quick(scenario: Scenario) -> str | None:
    return "quick" if "quick" in scenario.scales else None


def _scenario(file: Path, scenario: Scenario) -> _Entry:
    name, document = _name(file, SCENARIO), scenario.document
    size = " --size quick" if _quick(scenario) else ""
    shows = document.title or name
    about, source, expected = (
        " ".join((words or "").split())
        for words in (document.about or _first_sentence(read_text(file)), document.source, document.expected)
    )
    command = f"ewan run {name}{size} --runtime virtual"
    return _Entry(name, f"{shows}.", f"**{shows}.** {about}", source, command, expected)


def source_of(text: str) -> str:
    """Return the text after "Source:" in a comment of a lab's description, to the end of the comment."""
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
