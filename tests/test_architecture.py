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
    "ewan.labs.units": ("ewan.labs.units",),
    "ewan.labs.errors": (),
    "ewan.labs.garbage": (),
    "ewan.labs.interrupt": (),
    "ewan.labs.limits": (),
    "ewan.labs.processes": ("ewan.labs.interrupt",),
    "ewan.labs.reading": (),
    "ewan.labs.writing": ("ewan.labs.interrupt", "ewan.labs.ownership"),
    "ewan.labs.documents": ("ewan.labs.errors", "ewan.labs.reading"),
    "ewan.labs.typed": (),
    "ewan.labs.images": (),
    "ewan.labs.own": (),
    "ewan.labs.ownership": (),
    "ewan.labs.cache": ("ewan.labs.errors", "ewan.labs.ownership", "ewan.labs.writing"),
    "ewan.labs.shell": (),
    "ewan.labs.sheet": ("ewan.labs.units",),
    "ewan.labs.wording": (),
    "ewan.labs.traces": ("ewan.labs.units", "ewan.labs.traces"),
    "ewan.labs.streams": (),
    "ewan.labs.reporter": (),
    "ewan.labs.record": (
        "ewan.labs.record",
        "ewan.labs.documents",
        "ewan.labs.reading",
        "ewan.labs.writing",
        "ewan.labs.typed",
        "ewan.labs.wording",
    ),
    "ewan.labs.record.bounds": ("ewan.labs.units",),
    "ewan.labs.record.independent": (),
    "ewan.labs.record.figures": ("ewan.labs.units", "ewan.labs.record", "ewan.labs.wording"),
    "ewan.labs.record.disturbances": ("ewan.labs.units", "ewan.labs.record"),
    "ewan.labs.record.uncounted": ("ewan.labs.units", "ewan.labs.record"),
    "ewan.labs.stages": ("ewan.labs.units", "ewan.labs.typed", "ewan.labs.stages"),
    "ewan.labs.plan": ("ewan.labs.own", "ewan.labs.stages", "ewan.labs.typed", "ewan.labs.garbage"),
    "ewan.labs.cards": ("ewan.labs.plan",),
    "ewan.labs.forwarding": ("ewan.labs.plan", "ewan.labs.stages"),
    "ewan.labs.following": ("ewan.labs.forwarding", "ewan.labs.plan"),
    "ewan.labs.hardware": (
        "ewan.labs.units",
        "ewan.labs.errors",
        "ewan.labs.ownership",
        "ewan.labs.reading",
        "ewan.labs.typed",
        "ewan.labs.wording",
        "ewan.labs.stages",
        "ewan.labs.hardware",
    ),
    "ewan.labs.spec": (
        "ewan.labs.units",
        "ewan.labs.errors",
        "ewan.labs.wording",
        "ewan.labs.reading",
        "ewan.labs.spec",
        "ewan.labs.traces",
        "ewan.labs.hardware.abilities",
        "ewan.labs.hardware.catalogue",
    ),
    "ewan.labs.importing": (
        "ewan.labs.units",
        "ewan.labs.errors",
        "ewan.labs.wording",
        "ewan.labs.reading",
        "ewan.labs.spec",
        "ewan.labs.importing",
    ),
    "ewan.labs.topologies": ("ewan.labs.units", "ewan.labs.spec", "ewan.labs.topologies"),
    "ewan.labs.compile": (
        "ewan.labs.units",
        "ewan.labs.wording",
        "ewan.labs.spec",
        "ewan.labs.topologies",
        "ewan.labs.traces",
        "ewan.labs.stages",
        "ewan.labs.own",
        "ewan.labs.plan",
        "ewan.labs.garbage",
        "ewan.labs.hardware",
        "ewan.labs.compile",
    ),
    "ewan.labs.host": ("ewan.labs.compile", "ewan.labs.cache"),
    "ewan.labs.descriptions": (
        "ewan.labs.compile",
        "ewan.labs.context",
        "ewan.labs.host",
        "ewan.labs.plan",
        "ewan.labs.reading",
        "ewan.labs.reporter",
        "ewan.labs.spec",
        "ewan.labs.trust",
    ),
    "ewan.labs.trust": (
        "ewan.labs.cache",
        "ewan.labs.capture.words",
        "ewan.labs.context",
        "ewan.labs.hardware.catalogue",
        "ewan.labs.ownership",
        "ewan.labs.plan",
        "ewan.labs.reading",
        "ewan.labs.runtime",
        "ewan.labs.writing",
    ),
    "ewan.labs.change": (
        "ewan.labs.units",
        "ewan.labs.spec",
        "ewan.labs.stages",
        "ewan.labs.plan",
        "ewan.labs.compile",
        "ewan.labs.hardware",
    ),
    "ewan.labs.doing": ("ewan.labs.plan", "ewan.labs.change", "ewan.labs.runtime"),
    "ewan.labs.render": (
        "ewan.labs.units",
        "ewan.labs.stages",
        "ewan.labs.own",
        "ewan.labs.plan",
        "ewan.labs.cards",
        "ewan.labs.images",
        "ewan.labs.writing",
        "ewan.labs.render",
    ),
    "ewan.labs.runtime": (
        "ewan.labs.interrupt",
        "ewan.labs.units",
        "ewan.labs.errors",
        "ewan.labs.documents",
        "ewan.labs.ownership",
        "ewan.labs.reading",
        "ewan.labs.writing",
        "ewan.labs.stages",
        "ewan.labs.own",
        "ewan.labs.plan",
        "ewan.labs.images",
        "ewan.labs.hardware",
        "ewan.labs.capture.words",
        "ewan.labs.runtime",
    ),
    "ewan.labs.runtime.live": (
        "ewan.labs.plan",
        "ewan.labs.capture.words",
        "ewan.labs.runtime",
        "ewan.labs.cluster.formats",
    ),
    "ewan.labs.runtime.cluster": (
        "ewan.labs.interrupt",
        "ewan.labs.capture.words",
        "ewan.labs.stages",
        "ewan.labs.plan",
        "ewan.labs.compile.facts",
        "ewan.labs.cluster",
        "ewan.labs.render.files",
        "ewan.labs.runtime",
    ),
    "ewan.labs.runtime.keeper": (
        "ewan.labs.units",
        "ewan.labs.reading",
        "ewan.labs.stages",
        "ewan.labs.plan",
        "ewan.labs.hardware",
    ),
    "ewan.labs.runtime.containerlab": (
        "ewan.labs.interrupt",
        "ewan.labs.units",
        "ewan.labs.own",
        "ewan.labs.plan",
        "ewan.labs.cards",
        "ewan.labs.images",
        "ewan.labs.render",
        "ewan.labs.capture.words",
        "ewan.labs.runtime",
    ),
    "ewan.labs.capture": (
        "ewan.labs.units",
        "ewan.labs.errors",
        "ewan.labs.wording",
        "ewan.labs.plan",
        "ewan.labs.capture",
    ),
    "ewan.labs.cluster": (
        "ewan.labs.units",
        "ewan.labs.errors",
        "ewan.labs.ownership",
        "ewan.labs.typed",
        "ewan.labs.wording",
        "ewan.labs.spec",
        "ewan.labs.stages",
        "ewan.labs.plan",
        "ewan.labs.host",
        "ewan.labs.compile.placement",
        "ewan.labs.runtime.base",
        "ewan.labs.cluster",
    ),
    "ewan.labs.cluster.formats": (),
    **{
        f"ewan.labs.cluster.{name}": (
            "ewan.labs.units",
            "ewan.labs.writing",
            "ewan.labs.plan",
            "ewan.labs.runtime.base",
            "ewan.labs.interrupt",
            "ewan.labs.runtime.machines",
            "ewan.labs.runtime.namespaces",
            "ewan.labs.runtime.own",
            "ewan.labs.runtime.program",
            "ewan.labs.runtime.services",
            "ewan.labs.cluster",
        )
        for name in ("programs", "needs", "following", "merging", "running")
    },
    "ewan.labs.cluster.capturing": (
        "ewan.labs.capture",
        "ewan.labs.runtime.base",
        "ewan.labs.writing",
        "ewan.labs.cluster",
    ),
    "ewan.labs.cluster.probing": (
        "ewan.labs.units",
        "ewan.labs.runtime.base",
        "ewan.labs.runtime.probes",
        "ewan.labs.cluster",
    ),
    "ewan.labs.context": (
        "ewan.labs.reporter",
        "ewan.labs.rundir",
        "ewan.labs.runtime",
        "ewan.labs.cluster.reading",
        "ewan.labs.trust",
    ),
    "ewan.labs.routes": ("ewan.labs.units", "ewan.labs.plan", "ewan.labs.runtime", "ewan.labs.change"),
    "ewan.labs.rundir": ("ewan.labs.runtime", "ewan.labs.interrupt", "ewan.labs.ownership", "ewan.labs.writing"),
    "ewan.labs.clock": ("ewan.labs.units", "ewan.labs.record", "ewan.labs.runtime", "ewan.labs.writing"),
    "ewan.labs.batch": (
        "ewan.labs.units",
        "ewan.labs.plan",
        "ewan.labs.shell",
        "ewan.labs.capture",
        "ewan.labs.runtime",
    ),
    "ewan.labs.flows": ("ewan.labs.units", "ewan.labs.plan", "ewan.labs.sheet", "ewan.labs.runtime"),
    "ewan.labs.watch": (
        "ewan.labs.units",
        "ewan.labs.stages",
        "ewan.labs.plan",
        "ewan.labs.sheet",
        "ewan.labs.runtime",
    ),
    "ewan.labs.commands": ("ewan.labs",),
    "ewan.emulator": (
        "ewan.labs.units",
        "ewan.labs.errors",
        "ewan.labs.reading",
        "ewan.labs.stages",
        "ewan.labs.hardware",
        "ewan.emulator",
    ),
    "ewan.emulator.hardware.simulator": (
        "ewan.labs.interrupt",
        "ewan.labs.units",
        "ewan.labs.errors",
        "ewan.labs.hardware",
        "ewan.labs.stages",
        "ewan.labs.plan",
        "ewan.labs.runtime.boxes",
        "ewan.labs.runtime.spinners",
        "ewan.emulator",
    ),
    "ewan.emulator.hardware.cli": ("ewan.labs", "ewan.emulator"),
    "ewan.generator": ("ewan.labs", "ewan.generator"),
    "ewan.calibration": ("ewan.labs", "ewan.generator", "ewan.analysis", "ewan.calibration"),
    "ewan.analysis": (
        "ewan.labs.units",
        "ewan.labs.interrupt",
        "ewan.labs.processes",
        "ewan.labs.documents",
        "ewan.labs.reading",
        "ewan.labs.writing",
        "ewan.labs.typed",
        "ewan.labs.wording",
        "ewan.labs.record",
        "ewan.analysis",
    ),
    "ewan.studio": (
        "ewan.labs",
        "ewan.generator.scenario",
        "ewan.generator.engine.labelling",
        "ewan.analysis.listing",
        "ewan.analysis.standing",
        "ewan.studio",
    ),
    "ewan.studio.server.outcomes": ("ewan.labs", "ewan.analysis", "ewan.calibration.report", "ewan.studio"),
    "ewan.studio.server.reader": ("ewan.labs.context", "ewan.analysis.load", "ewan.studio"),
    "ewan.studio.server.areas.verifications": (
        "ewan.labs",
        "ewan.calibration.kept",
        "ewan.calibration.report",
        "ewan.studio",
    ),
    "ewan.studio.server.areas.verdicts": (
        "ewan.labs",
        "ewan.generator.scenario",
        "ewan.calibration.verdict",
        "ewan.studio",
    ),
    "ewan.studio.server.areas.replays": (
        "ewan.labs",
        "ewan.generator.engine.source",
        "ewan.analysis.load",
        "ewan.analysis.replayed",
        "ewan.studio",
    ),
    "ewan.analysis.cli": ("ewan.labs", "ewan.analysis"),
    "ewan.analysis.compare.cli": ("ewan.labs", "ewan.analysis"),
}

COMMANDS = (
    "ewan.labs.commands",
    "ewan.emulator.hardware.cli",
    "ewan.generator.cli",
    "ewan.generator.recorded_cli",
    "ewan.generator.course.cli",
    "ewan.generator.advice.cli",
    "ewan.generator.engine.cli",
    "ewan.generator.engine.ending",
    "ewan.generator.engine.several",
    "ewan.generator.engine.crate.cli",
    "ewan.generator.engine.rerun",
    "ewan.generator.engine.tag",
    "ewan.generator.shards.cli",
    "ewan.studio.cli",
    "ewan.generator.shards.shard",
    "ewan.generator.shards.collect",
    "ewan.generator.store.cli",
    "ewan.generator.suites.cli",
    "ewan.generator.course.grading_cli",
    "ewan.generator.course.handing_cli",
    "ewan.generator.papers.cli",
    "ewan.generator.transfers.cli",
    "ewan.calibration.cli",
    "ewan.calibration.advice.cli",
    "ewan.calibration.calibrate_cli",
    "ewan.calibration.host.cli",
    "ewan.calibration.bench",
    "ewan.calibration.paper_figures",
    "ewan.analysis.cli",
    "ewan.analysis.compare.cli",
)
"""The modules of commands: they alone read the command line, and print."""

DRAWING = ("ewan.labs.sheet", "ewan.labs.reporter")
"""What else knows the library that draws on terminals."""

ENVIRONMENT = {
    "ewan.generator.workers.remote": "when the job ends that it is in: a worker on another machine has no context",
    "ewan.labs.runtime.keeper": "who called sudo, as whom the driver runs, and what drivers get of the environment",
    "ewan.labs.cluster.ssh": "whose SSH configuration it is under sudo",
    "ewan.labs.cluster.terminal": "the kind of terminal, which a program on another machine is told",
    "ewan.labs.processes": "tells polars how many threads it may have, in processes of its own",
    "ewan.labs.host": "where the cache is, which has the back end that calibration found better",
    "ewan.labs.writing": "who called sudo, whose links are followed",
    "ewan.labs.rundir": "who called sudo, to give the results back",
    "ewan.labs.runtime.clab": "containerlab gets the environment, but for a few words",
    "ewan.labs.runtime.containerlab": "the ports of dashboards, and a container engine reads the environment too",
    "ewan.labs.runtime.container_engine": "the container engine's own client reads it",
    "ewan.labs.runtime.kernel": "which kernel, also for programs that have no context",
    "ewan.labs.runtime.guests": "the guest's PATH",
    "ewan.labs.runtime.wall": "whose homes are hidden, and whether there is a wall, for programs that have no context",
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
    """A module's dotted name; `path` is below one of the folders that `ewan` links to."""
    return ".".join(("ewan", *path.relative_to(ROOT).with_suffix("").parts))


def test_imports_follow_the_arrows() -> None:
    wrong = []
    for module in modules():
        rule = longest(module.name)
        for name in module.imports:
            if name.startswith("ewan.") and name != "ewan.__version__" and not within(name, *ALLOWED[rule]):
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
    assert longest("ewan.labs.compile") == "ewan.labs.compile"
    assert longest("ewan.labs.commands.up") == "ewan.labs.commands"
    assert longest("ewan.labs.runtime.netns") == "ewan.labs.runtime"
    with pytest.raises(AssertionError, match=r"labs\.new has no rule"):
        longest("ewan.labs.new")


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
        "ewan.labs.compile",
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
