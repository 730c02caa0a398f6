"""The gallery: a card for each lab and each scenario of labs/library.

In: the files of the library. Out: Markdown, and the picture of each lab.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ewan.generator.scenario import load
from ewan.labs import host, spec
from ewan.labs.base.reading import read_text
from ewan.labs.compile import compile
from ewan.labs.render import svg
from ewan.labs.spec.names import LAB, SCENARIO

HEAD = """# Gallery

Each card is a file of `labs/library/`: one sentence, a command to copy, and a picture of the lab.
`ewan lab compile NAME` draws a lab as it stands here.
Scenarios run in seconds or minutes with `--size quick`, where they have this size.
"""


def markdown(library: Path) -> tuple[str, Mapping[str, str]]:
    """The page, and the pictures of labs by their paths below docs/."""
    labs = [*_labs(library)]
    cards = [
        f"\n### {name}\n\n{text}\n\n```\n{command}\n```\n\n![{name}]({path})\n" for name, text, command, path, _ in labs
    ]
    page = "".join([HEAD, "\n## Labs\n", *cards, "\n## Scenarios\n", *_scenarios(library)])
    return page, {path: picture for *_, path, picture in labs}


def _labs(library: Path) -> Iterator[tuple[str, str, str, str, str]]:
    for file in sorted(library.glob(f"*{LAB}")):
        name = file.name.removesuffix(LAB)
        plan = compile(spec.load(file), host.virtual_facts())
        text = _first_sentence(read_text(file))
        yield name, text, f"ewan lab {name} --runtime virtual", f"gallery/{name}.svg", svg.picture(plan)


def _scenarios(library: Path) -> Iterator[str]:
    for file in sorted(library.glob(f"*{SCENARIO}")):
        name, scenario = file.name.removesuffix(SCENARIO), load(file)
        size = " --size quick" if "quick" in scenario.scales else ""
        about = " ".join((scenario.document.about or _first_sentence(read_text(file))).split())
        source = f" Source: {scenario.document.source}." if scenario.document.source else ""
        command = f"ewan run {name}{size} --runtime virtual"
        yield f"\n### {name}\n\n**{scenario.document.title or name}.** {about}{source}\n\n```\n{command}\n```\n"


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
