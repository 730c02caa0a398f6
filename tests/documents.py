"""The commands that README.md and docs/**/*.md show, with what the documents say of them.

In: a document. Out: its commands in order. A fenced block with lines that begin with "$ " is a session: commands with
their output. In other blocks (not of YAML), lines that begin with a program are commands. `ewan …` and `make …` between
backquotes are mentions: they may leave words out.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

OTHERS = ("docs/contribute/", "docs/reference/commands.md")
"""What contributors read, and the page that is made of the commands' help."""
DOCUMENTS = [
    ROOT / "README.md",
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not path.relative_to(ROOT).as_posix().startswith(OTHERS)
    ),
]
PROGRAMS = ("ewan", "make", "sudo", "git")
OURS = ".venv/bin/ewan"
_MENTION = re.compile(r"`((?:ewan|make) [^`]+)`")
_COMMENT = re.compile(r"\s{2,}#.*|\s+# .*")


@dataclass(frozen=True)
class DocumentedCommand:
    """`refusal`: the error that the document shows, in one line; empty where the command ends well."""

    document: str
    line: int
    text: str
    refusal: str = ""
    mention: bool = False

    def __str__(self) -> str:
        return f"{self.document}:{self.line}: {self.text}"

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


def commands(path: Path) -> list[DocumentedCommand]:
    """All of a document, in its order."""
    name = path.relative_to(ROOT).as_posix()
    found: list[DocumentedCommand] = []
    lines = path.read_text().splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.startswith("```"):
            end = next(at for at in range(number + 1, len(lines)) if lines[at].startswith("```"))
            if not line.startswith("```yaml"):
                found += _block(name, number + 2, lines[number + 1 : end])
            number = end
        else:
            found += [DocumentedCommand(name, number + 1, text, mention=True) for text in _MENTION.findall(line)]
        number += 1
    return found


def _block(document: str, first: int, lines: list[str]) -> list[DocumentedCommand]:
    session = any(line.startswith("$ ") for line in lines)
    found = []
    at = 0
    while at < len(lines):
        line = lines[at]
        begins = line.startswith("$ ") if session else line.split(" ")[0] in PROGRAMS
        if begins:
            text, start = line.removeprefix("$ "), at
            while text.endswith("\\"):
                at += 1
                text = text[:-1].rstrip() + " " + lines[at].strip()
            after = lines[at + 1] if at + 1 < len(lines) else ""
            refusal = after if session and after.startswith("ewan: ") else ""
            found += [
                DocumentedCommand(document, first + start, part, refusal)
                for part in _COMMENT.sub("", text).split(" && ")
            ]
        at += 1
    return found


def yaml_blocks(path: Path) -> list[tuple[int, str]]:
    """The line and the text of each block of YAML."""
    lines = path.read_text().splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("```yaml")]
    ends = [next(at for at in range(start + 1, len(lines)) if lines[at].startswith("```")) for start in starts]
    return [(start + 2, "\n".join(lines[start + 1 : end]) + "\n") for start, end in zip(starts, ends, strict=True)]


def of_ewan(words: list[str]) -> list[list[str]]:
    """The commands of `ewan` that a command line stands for: itself, or what make would run. Fails for what is none."""
    if words[0] == "ewan":
        return [words[1:]]
    if words[0] != "make":
        return []
    told = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    makefile = (ROOT / "Makefile").read_text()
    for variable in (word.partition("=")[0] for word in words[1:] if re.match(r"[A-Z]+=", word)):
        assert re.search(rf"\b{variable}\b", makefile), f"the Makefile does not know {variable}"
    lines = told.stdout.replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith(OURS)]
