"""Dependencies point one way: this reads every import and fails on any arrow that the design does not draw."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PARTS = ("labs", "emulator", "generator", "calibration", "analysis", "studio")

# part → what it may import of the project (by longest prefix). Each module of a part has a rule: a new one fails here.
ALLOWED: dict[str, tuple[str, ...]] = {
    "labs.units": ("labs.units",),
    "labs.errors": (),
    "labs.garbage": (),
    "labs.interrupt": (),
    "labs.limits": (),
    "labs.processes": ("labs.interrupt",),
    "labs.reading": (),
    "labs.writing": ("labs.interrupt", "labs.ownership"),
    "labs.documents": ("labs.errors", "labs.reading"),
    "labs.typed": (),
    "labs.images": (),
    "labs.own": (),
    "labs.ownership": (),
    "labs.cache": ("labs.errors", "labs.ownership", "labs.writing"),
    "labs.shell": (),
    "labs.sheet": ("labs.units",),
    "labs.wording": (),
    "labs.traces": ("labs.units", "labs.traces"),
    "labs.streams": (),
    "labs.reporter": (),
    "labs.record": ("labs.record", "labs.documents", "labs.reading", "labs.writing", "labs.typed", "labs.wording"),
    "labs.record.bounds": ("labs.units",),
    "labs.record.independent": (),
    "labs.record.figures": ("labs.units", "labs.record", "labs.wording"),
    "labs.record.disturbances": ("labs.units", "labs.record"),
    "labs.record.uncounted": ("labs.units", "labs.record"),
    "labs.stages": ("labs.units", "labs.typed", "labs.stages"),
    "labs.plan": ("labs.own", "labs.stages", "labs.typed", "labs.garbage"),
    "labs.cards": ("labs.plan",),
    "labs.forwarding": ("labs.plan", "labs.stages"),
    "labs.following": ("labs.forwarding", "labs.plan"),
    "labs.hardware": (
        "labs.units",
        "labs.errors",
        "labs.ownership",
        "labs.reading",
        "labs.typed",
        "labs.wording",
        "labs.stages",
        "labs.hardware",
    ),
    "labs.spec": (
        "labs.units",
        "labs.errors",
        "labs.wording",
        "labs.reading",
        "labs.spec",
        "labs.traces",
        "labs.hardware.abilities",
        "labs.hardware.catalogue",
    ),
    "labs.importing": (
        "labs.units",
        "labs.errors",
        "labs.wording",
        "labs.reading",
        "labs.spec",
        "labs.importing",
    ),
    "labs.topologies": ("labs.units", "labs.spec", "labs.topologies"),
    "labs.compile": (
        "labs.units",
        "labs.wording",
        "labs.spec",
        "labs.topologies",
        "labs.traces",
        "labs.stages",
        "labs.own",
        "labs.plan",
        "labs.garbage",
        "labs.hardware",
        "labs.compile",
    ),
    "labs.host": ("labs.compile", "labs.cache"),
    "labs.descriptions": (
        "labs.compile",
        "labs.context",
        "labs.host",
        "labs.plan",
        "labs.reading",
        "labs.reporter",
        "labs.spec",
        "labs.trust",
    ),
    "labs.trust": (
        "labs.cache",
        "labs.capture.words",
        "labs.context",
        "labs.hardware.catalogue",
        "labs.ownership",
        "labs.plan",
        "labs.reading",
        "labs.runtime",
        "labs.writing",
    ),
    "labs.change": ("labs.units", "labs.spec", "labs.stages", "labs.plan", "labs.compile", "labs.hardware"),
    "labs.doing": ("labs.plan", "labs.change", "labs.runtime"),
    "labs.render": (
        "labs.units",
        "labs.stages",
        "labs.own",
        "labs.plan",
        "labs.cards",
        "labs.images",
        "labs.writing",
        "labs.render",
    ),
    "labs.runtime": (
        "labs.interrupt",
        "labs.units",
        "labs.errors",
        "labs.documents",
        "labs.ownership",
        "labs.reading",
        "labs.writing",
        "labs.stages",
        "labs.own",
        "labs.plan",
        "labs.images",
        "labs.hardware",
        "labs.capture.words",
        "labs.runtime",
    ),
    "labs.runtime.live": ("labs.plan", "labs.capture.words", "labs.runtime", "labs.cluster.formats"),
    "labs.runtime.cluster": (
        "labs.interrupt",
        "labs.capture.words",
        "labs.stages",
        "labs.plan",
        "labs.compile.facts",
        "labs.cluster",
        "labs.render.files",
        "labs.runtime",
    ),
    "labs.runtime.keeper": ("labs.units", "labs.reading", "labs.stages", "labs.plan", "labs.hardware"),
    "labs.runtime.containerlab": (
        "labs.interrupt",
        "labs.units",
        "labs.own",
        "labs.plan",
        "labs.cards",
        "labs.images",
        "labs.render",
        "labs.capture.words",
        "labs.runtime",
    ),
    "labs.capture": ("labs.units", "labs.errors", "labs.wording", "labs.plan", "labs.capture"),
    "labs.cluster": (
        "labs.units",
        "labs.errors",
        "labs.ownership",
        "labs.typed",
        "labs.wording",
        "labs.spec",
        "labs.stages",
        "labs.plan",
        "labs.host",
        "labs.compile.placement",
        "labs.runtime.base",
        "labs.cluster",
    ),
    "labs.cluster.formats": (),
    **{
        f"labs.cluster.{name}": (
            "labs.units",
            "labs.writing",
            "labs.plan",
            "labs.runtime.base",
            "labs.interrupt",
            "labs.runtime.machines",
            "labs.runtime.namespaces",
            "labs.runtime.own",
            "labs.runtime.program",
            "labs.runtime.services",
            "labs.cluster",
        )
        for name in ("programs", "needs", "following", "merging", "running")
    },
    "labs.cluster.capturing": ("labs.capture", "labs.runtime.base", "labs.writing", "labs.cluster"),
    "labs.cluster.probing": ("labs.units", "labs.runtime.base", "labs.runtime.probes", "labs.cluster"),
    "labs.context": ("labs.reporter", "labs.rundir", "labs.runtime", "labs.cluster.reading", "labs.trust"),
    "labs.routes": ("labs.units", "labs.plan", "labs.runtime", "labs.change"),
    "labs.rundir": ("labs.runtime", "labs.interrupt", "labs.ownership", "labs.writing"),
    "labs.clock": ("labs.units", "labs.record", "labs.runtime", "labs.writing"),
    "labs.batch": ("labs.units", "labs.plan", "labs.shell", "labs.capture", "labs.runtime"),
    "labs.flows": ("labs.units", "labs.plan", "labs.sheet", "labs.runtime"),
    "labs.watch": ("labs.units", "labs.stages", "labs.plan", "labs.sheet", "labs.runtime"),
    "labs.commands": ("labs",),
    "emulator": ("labs.units", "labs.errors", "labs.reading", "labs.stages", "labs.hardware", "emulator"),
    "emulator.hardware.simulator": (
        "labs.interrupt",
        "labs.units",
        "labs.errors",
        "labs.hardware",
        "labs.stages",
        "labs.plan",
        "labs.runtime.spinners",
        "emulator",
    ),
    "emulator.hardware.cli": ("labs", "emulator"),
    "generator": ("labs", "generator"),
    "calibration": ("labs", "generator", "analysis", "calibration"),
    "analysis": (
        "labs.units",
        "labs.interrupt",
        "labs.processes",
        "labs.documents",
        "labs.reading",
        "labs.writing",
        "labs.typed",
        "labs.wording",
        "labs.record",
        "analysis",
    ),
    "studio": (
        "labs",
        "generator.scenario",
        "generator.engine.labelling",
        "analysis.listing",
        "analysis.standing",
        "studio",
    ),
    "studio.server.outcomes": ("labs", "analysis", "calibration.report", "studio"),
    "studio.server.reader": ("labs.context", "analysis.load", "studio"),
    "studio.server.areas.verifications": ("labs", "calibration.kept", "calibration.report", "studio"),
    "studio.server.areas.verdicts": ("labs", "generator.scenario", "calibration.verdict", "studio"),
    "studio.server.areas.replays": ("labs", "generator.engine.source", "analysis.load", "analysis.replayed", "studio"),
    "analysis.cli": ("labs", "analysis"),
    "analysis.compare.cli": ("labs", "analysis"),
}

COMMANDS = (
    "labs.commands",
    "emulator.hardware.cli",
    "generator.cli",
    "generator.recorded_cli",
    "generator.course.cli",
    "generator.advice.cli",
    "generator.engine.cli",
    "generator.engine.ending",
    "generator.engine.several",
    "generator.engine.crate.cli",
    "generator.engine.rerun",
    "generator.engine.tag",
    "generator.shards.cli",
    "studio.cli",
    "generator.shards.shard",
    "generator.shards.collect",
    "generator.store.cli",
    "generator.suites.cli",
    "generator.course.grading_cli",
    "generator.course.handing_cli",
    "generator.papers.cli",
    "generator.transfers.cli",
    "calibration.cli",
    "calibration.advice.cli",
    "calibration.calibrate_cli",
    "calibration.host.cli",
    "calibration.bench",
    "calibration.paper_figures",
    "analysis.cli",
    "analysis.compare.cli",
)
"""The modules of commands: they alone read the command line, and print."""

DRAWING = ("labs.sheet", "labs.reporter")
"""What else knows the library that draws on terminals."""

ENVIRONMENT = {
    "generator.workers.remote": "when the job ends that it is in: a worker on another machine has no context",
    "labs.runtime.keeper": "who called sudo, as whom the driver runs, and what drivers get of the environment",
    "labs.cluster.ssh": "whose SSH configuration it is under sudo",
    "labs.cluster.terminal": "the kind of terminal, which a program on another machine is told",
    "labs.processes": "tells polars how many threads it may have, in processes of its own",
    "labs.host": "where the cache is, which has the back end that calibration found better",
    "labs.writing": "who called sudo, whose links are followed",
    "labs.rundir": "who called sudo, to give the results back",
    "labs.runtime.clab": "containerlab gets the environment, but for a few words",
    "labs.runtime.containerlab": "the ports of dashboards, beside a container engine that reads the environment too",
    "labs.runtime.container_engine": "the container engine's own client reads it",
    "labs.runtime.kernel": "which kernel, also for programs that have no context",
    "labs.runtime.guests": "the guest's PATH",
    "labs.runtime.wall": "whose homes are hidden, and whether there is to be a wall, for programs that have no context",
}
"""Modules that ask the environment while they work, and why the context does not tell them."""


@dataclass(frozen=True)
class Module:
    """A module of the product, parsed once for all rules."""

    path: Path
    name: str
    nodes: tuple[ast.AST, ...]

    @property
    def tree(self) -> ast.AST:
        return self.nodes[0]

    @property
    def imports(self) -> list[str]:
        """The full names that the module imports, at its top or later."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.path}: write imports in full"
                found += [f"{node.module}.{alias.name}" for alias in node.names]
        return found


@functools.cache
def modules() -> tuple[Module, ...]:
    return tuple(
        Module(path.relative_to(ROOT), named(path), tuple(ast.walk(ast.parse(path.read_text()))))
        for part in PARTS
        for path in sorted((ROOT / part).rglob("*.py"))
        if "tests" not in path.parts and "target" not in path.parts
    )


def parents(name: str) -> list[str]:
    """A dotted name and all that it is below, the longest first."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def longest(name: str) -> str:
    """The most specific rule that covers a module."""
    found = next((parent for parent in parents(name) if parent in ALLOWED), None)
    assert found is not None, f"{name} has no rule: write in ALLOWED what it may import"
    return found


def within(name: str, *prefixes: str) -> bool:
    """Whether a dotted name is one of the prefixes, or below one."""
    return any(parent in prefixes for parent in parents(name))


def named(path: Path) -> str:
    """A module's dotted name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def test_imports_follow_the_arrows() -> None:
    wrong = []
    for module in modules():
        rule = longest(module.name)
        for name in module.imports:
            if name.split(".")[0] in (*PARTS, "ewan") and not within(name, *ALLOWED[rule]):
                wrong.append(f"{module.path} imports {name}; {rule} may import {ALLOWED[rule] or 'nothing'}")
    assert not wrong, "\n".join(wrong)


def test_only_commands_read_the_command_line_and_print() -> None:
    wrong = []
    for module in modules():
        if within(module.name, *COMMANDS):
            continue
        for name in module.imports:
            if within(name, "click", *COMMANDS):
                wrong.append(f"{module.path} imports {name}: it is no command")
            if within(name, "rich") and module.name not in DRAWING:
                wrong.append(f"{module.path} imports {name}: give it a Reporter")
    assert not wrong, "\n".join(wrong)


def test_nothing_is_asked_of_the_process_at_import() -> None:
    """A module is the same wherever it is imported: what a process was told is in the context."""
    wrong = [
        f"{module.path}:{line}: {what} at import: take it from the context"
        for module in modules()
        for line, what in asked(module.tree, at_import=True)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_context_tells_what_the_environment_says() -> None:
    wrong = []
    for module in modules():
        lines = [line for line, what in asked(module.tree, at_import=False) if what == "the environment"]
        if module.name in ENVIRONMENT and not lines:
            wrong.append(f"{module.path} asks the environment no more: take it out of ENVIRONMENT")
        if module.name not in ENVIRONMENT:
            wrong += [f"{module.path}:{line}: take it from the context" for line in lines]
    assert not wrong, "\n".join(wrong)


def asked(tree: ast.AST, at_import: bool) -> Iterator[tuple[int, str]]:
    """Lines that ask the environment or the terminal, or that make a console; at import: outside functions' bodies."""
    pending = [tree]
    while pending:
        node = pending.pop()
        inside = list(ast.iter_child_nodes(node))
        if at_import and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = [*node.decorator_list, *node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        if at_import and isinstance(node, ast.Lambda):
            inside = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        pending += inside
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "getenv"):
                yield node.lineno, "the environment"
            case ast.ImportFrom(module="os", names=names) if {"environ", "getenv"} & {each.name for each in names}:
                yield node.lineno, "the environment"
            case ast.Call(func=ast.Name(id="Console") | ast.Attribute(attr="Console")):
                yield node.lineno, "a console"
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdin" | "stdout" | "stderr" | "argv"):
                yield node.lineno, "the terminal"


def test_the_rules_see_a_wrong_arrow() -> None:
    assert longest("labs.compile") == "labs.compile"
    assert longest("labs.commands.up") == "labs.commands"
    assert longest("labs.runtime.netns") == "labs.runtime"
    with pytest.raises(AssertionError, match=r"labs\.new has no rule"):
        longest("labs.new")


def test_what_is_asked_at_import_is_seen() -> None:
    text = (
        "import os, sys\nWIDE = sys.stdout.isatty()\nA = os.environ.get('A')\nclass B:\n    c = Console()\n"
        "def d(e=os.getenv('E')):\n    return os.environ['F']\n"
    )
    tree = ast.parse(text)
    assert sorted(line for line, _ in asked(tree, at_import=True)) == [2, 3, 5, 6]
    assert sorted(line for line, _ in asked(tree, at_import=False)) == [2, 3, 5, 6, 7]


def test_help_and_removal_import_nothing_heavy() -> None:
    """`ewan --version` and `ewan down --help` take a tenth of a second: most of it is what they import."""
    text = "import sys, ewan, labs.commands.down, labs.commands.use\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {
        "rich",
        "yaml",
        "pydantic",
        "networkx",
        "numpy",
        "polars",
        "psutil",
        "jinja2",
        "matplotlib",
        "asyncio",
        "asyncssh",
        "labs.compile",
    }
    assert not heavy & set(done.stdout.split())


def value_of(node: ast.AST) -> int | float | None:
    """The number that a constant expression of literals stands for; None for any other expression."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.BinOp(left=left, op=ast.Pow() | ast.Mult() as operator, right=right):
            one, other = value_of(left), value_of(right)
            if one is None or other is None or abs(other) > 1000:
                return None
            return one**other if isinstance(operator, ast.Pow) else one * other
    return None


FACTOR_NAME = re.compile(r"_?((NS|US|MS|BITS|BYTES|BPS)_PER_[A-Z]+|BITS|PP[MBT]|KILO|MEGA|GIGA)")


def factors(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Lines that spell a conversion factor of a million or a billion, or that define a constant named as a factor."""
    for node in nodes:
        value = value_of(node)
        if value in (1e6, 1e9):
            assert isinstance(node, ast.expr)
            yield node.lineno, f"{value:g}"
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and FACTOR_NAME.fullmatch(target.id):
                    yield node.lineno, target.id


def test_only_units_knows_the_conversion_factors() -> None:
    """Bits per byte and nanoseconds per second are spelled once, in labs/units."""
    wrong = [
        f"{module.path}:{line}: {what} belongs to labs/units"
        for module in modules()
        if module.path.parent != Path("labs/units")
        for line, what in factors(module.nodes)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_conversion_factor_is_seen_in_any_spelling() -> None:
    text = "a = 1e6\nb = 10**9\nc = 1e3**2\nd = 1000 * 1000\nPPM = NS_PER_MS\nBITS = 8\nNS_PER_US = e\nf = 1e3\n"
    assert sorted({line for line, _ in factors(ast.walk(ast.parse(text)))}) == [1, 2, 3, 4, 5, 6, 7]
