"""Pages name only options and keys that exist: options of a command by their present names, or of another program; keys
of a description, a scenario or another document."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import click
import pytest

from ewan import cli
from ewan.labs.commands.reference import commands_of, options_of

ROOT = Path(__file__).parents[2]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
OF_OTHERS = {
    "cargo": "--lib --locked --profile --ranges --release",
    "containerlab": "--cleanup --debug",
    "colima, docker": "--arch --cpus --rm --vm-type",
    "devcontainer, images/build.sh": "--archives --last",
    "Dummynet, iptables, tc": "--drd --long --set-class",
    "iperf3, ping": "--client --daemon --server --time",
    "make bench, make torture": "--long --minutes",
    "NXE's programs": "--both --compute --dscp --duration --ecn --interval --iterations --messages --mss --nodelay "
    "--off --on --protocl --protocol --rcvbuf --reconnect --request --response --sndbuf --streams --think --window",
    "pip": "--find-links --no-build-isolation --no-deps --no-index",
    "programs that a scenario runs": "--raw --report",
    "pytest, by our plugin": "--ewan-artifacts --ewan-record",
    "rustup": "--component",
    "Slurm": "--array --cpus-per-task --wait --wrap",
    "tar": "--zstd",
    "the programs of ns-2 and ns-3": "--until",
}


@cache
def known() -> frozenset[str]:
    """All options that a page may name."""
    context = click.Context(cli.main, info_name="ewan")
    own = [name for _, command in commands_of(cli.main, context) for each in options_of(command) for name in each.opts]
    others = [name for names in OF_OTHERS.values() for name in names.split()]
    return frozenset([*own, *others, "--help", "--version"])


def pages() -> list[Path]:
    """README.md of the product and of its folders, and all pages of docs/."""
    folders = ("docs", "emulator", "images", "labs", "generator", "calibration", "analysis", "experiments", "extras")
    found = [page for folder in folders for page in sorted((ROOT / folder).rglob("*.md"))]
    return [
        ROOT / "README.md",
        *(
            page
            for page in found
            if "node_modules" not in page.parts and (page.name == "README.md" or "docs" in page.parts)
        ),
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_options_that_exist(page: Path) -> None:
    text = page.read_text()
    found = [(text.count("\n", 0, each.start()) + 1, each[0]) for each in OPTION.finditer(text)]
    wrong = [f"{page.relative_to(ROOT)}:{line}: {option}" for line, option in found if option not in known()]
    assert not wrong, f"{'; '.join(wrong)}: write the present name of the option"


COMMAND = re.compile(r"`(ewan\s[^`]{1,200})`")


@cache
def commands() -> dict[tuple[str, ...], frozenset[str]]:
    """The options of each command, by the words that call it."""
    found = commands_of(cli.main, click.Context(cli.main, info_name="ewan"))
    return {
        tuple(path.split()): frozenset([name for each in options_of(command) for name in each.opts] + ["--help"])
        for path, command in found
    }


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_in_a_sentence_has_the_options_that_it_is_given(page: Path) -> None:
    wrong = []
    for found in COMMAND.finditer(page.read_text()):
        words = found[1].partition(" -- ")[0].split()
        own = max((path for path in commands() if tuple(words[: len(path)]) == path), key=len, default=None)
        given = {word for word in words if OPTION.fullmatch(word)}
        if own is not None and given - commands()[own]:
            wrong.append(f"{found[1]}: {', '.join(sorted(given - commands()[own]))}")
    assert not wrong, f"{page.relative_to(ROOT)}: {'; '.join(wrong)}: write the command's present options"


KEY = re.compile(r"(?<!`)`([a-z][a-z_-]*): ?[^`/]*`(?!`)")
KEYS_OF_OTHERS = {
    "core": "the name of a link",
    "engine": "a file of executors",
    "network-mode": "containerlab's files",
    "placement": "a file of machines",
    "runs": "a course.yaml",
    "tcp": "an address of a device",
}
TABLES = (
    "docs/reference/description.md",
    "docs/reference/scenario.md",
    "docs/contribute/adding/course-lab.md",
    "docs/how-to/experiments/executors.md",
    "docs/how-to/experiments/transfers.md",
    "docs/how-to/labs/machines.md",
    "docs/how-to/testing/files.md",
)
"""The pages whose tables list the keys of a document in their first column."""


@cache
def keys() -> frozenset[str]:
    """All keys that a page may name."""
    cells = [cell for page in TABLES for cell in re.findall(r"^\|([^|]*)\|", (ROOT / page).read_text(), re.MULTILINE)]
    return frozenset([key for cell in cells for key in re.findall(r"`([a-z0-9_ -]+)`", cell)])


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_keys_that_exist(page: Path) -> None:
    wrong = sorted({found for found in KEY.findall(page.read_text()) if found not in keys() | KEYS_OF_OTHERS.keys()})
    assert not wrong, f"{page.relative_to(ROOT)}: no document has the key {', '.join(wrong)}"
