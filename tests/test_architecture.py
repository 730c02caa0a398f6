"""Dependencies point one way: this reads every import and fails on any arrow that the design does not draw."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.architecture import LAYERS, PARTS, ROOT, level, modules, parents, within

DRAWING = ("ewan.labs.base.sheet", "ewan.labs.base.reporter")
"""What else knows the library that draws on terminals."""

CONTRACT = "ewan.extra"
"""What an extra may add: commands are among it."""

ENVIRONMENT = {
    "ewan.cli": "it makes the context",
    "ewan.extras.executors.remote": "when the job ends that it is in: a worker on another machine has no context",
    "ewan.extras.gym.environment": "a program that makes an environment has no command line",
    "ewan.experiments.api.experiment": "a test suite has no command line: it makes its own context",
    "ewan.extras.course.session": "a notebook has no command line: it makes its own context",
    "ewan.generator.scenario.controls": "where the user's congestion controls are, of runs that are made later, too",
    "ewan.labs.runtime.keeper": "who called sudo, as whom the driver runs, and what drivers get of the environment",
    "ewan.extras.machines.ssh": "whose SSH configuration it is under sudo",
    "ewan.extras.machines.terminal": "the kind of terminal, which a program on another machine is told",
    "ewan.labs.base.processes": "tells polars how many threads it may have, in processes of its own",
    "ewan.labs.congestion.external": "the socket that a program inherits, which has no context",
    "ewan.labs.runtime.controllers": "the user's program gets the environment",
    "ewan.labs.host": "where the cache is, which has the back end that calibration found better",
    "ewan.labs.base.writing": "who called sudo, whose links are followed",
    "ewan.labs.rundir": "who called sudo, to give the results back",
    "ewan.labs.runtime.clab": "containerlab gets the environment, but for a few words",
    "ewan.labs.runtime.containerlab": "the ports of dashboards, and a container engine reads the environment too",
    "ewan.labs.runtime.container_engine": "the container engine's own client reads it",
    "ewan.labs.runtime.kernel": "which kernel, also for programs that have no context",
    "ewan.labs.runtime.kernel_modules": "where the cache is, which has the compiled modules",
    "ewan.labs.runtime.guests": "the guest's PATH",
    "ewan.labs.runtime.memory_homes": "where the cache is, which has the memory of a kernel where /dev/shm has no room",
    "ewan.labs.runtime.wall": "whose homes are hidden, and whether there is a wall, for programs that have no context",
}
"""Modules that ask the environment while they work, and why the context does not tell them."""


def is_command(name: str) -> bool:
    """Whether a module, or the one that this is imported from, may read the command line: those of its layer, and of
    an extra its package, which has its EXTRA, and the modules that are named so."""
    if name in ("ewan", *(f"ewan.{part}" for part in PARTS)):
        return False
    layer = LAYERS[level(name)].name
    own = [each.rpartition(".")[2] for each in parents(name)[:2]]
    if layer == "extras" and name.count(".") == 2:
        return True
    of_an_extra = any(each.endswith(("cli", "paper_figures")) for each in own)
    return layer == "command line" or (layer == "extras" and of_an_extra)


def test_no_layer_imports_one_above_it() -> None:
    wrong = []
    for module in modules():
        for name in module.of_the_product:
            own, other = level(module.name), level(name)
            if other > own:
                wrong.append(f"{module.path} imports {name}: {LAYERS[own].name} stands below {LAYERS[other].name}")
    assert not wrong, "\n".join(wrong)


def test_only_commands_read_the_command_line_and_print() -> None:
    wrong = []
    for module in modules():
        for name in module.imports:
            if within(name, "rich") and module.name not in DRAWING and not is_command(module.name):
                wrong.append(f"{module.path} imports {name}: give it a Reporter")
            ours = name in module.of_the_product and is_command(name)
            if (ours or within(name, "click")) and not is_command(module.name) and module.name != CONTRACT:
                wrong.append(f"{module.path} imports {name}: it is no command")
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


def test_the_longest_name_decides_the_layer() -> None:
    assert LAYERS[level("ewan.labs.commands.up")].name == "command line"
    assert LAYERS[level("ewan.experiments.engine.cli.run_command")].name == "command line"
    assert LAYERS[level("ewan.experiments.engine.unit")].name == "experiment"
    with pytest.raises(AssertionError, match=r"labs\.new has no layer"):
        level("ewan.labs.new")


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
    text = "import sys, ewan, ewan.labs.commands.down, ewan.labs.commands.use\nprint(*sys.modules)"
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
    """Bits per byte and nanoseconds per second are spelled once, in labs/base/units."""
    wrong = [
        f"{module.path}:{line}: {what} belongs to labs/base/units"
        for module in modules()
        if module.path.parent != Path("labs/base/units")
        for line, what in factors(module.nodes)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_conversion_factor_is_seen_in_any_spelling() -> None:
    text = "a = 1e6\nb = 10**9\nc = 1e3**2\nd = 1000 * 1000\nPPM = NS_PER_MS\nBITS = 8\nNS_PER_US = e\nf = 1e3\n"
    assert sorted({line for line, _ in factors(ast.walk(ast.parse(text)))}) == [1, 2, 3, 4, 5, 6, 7]


def test_a_class_name_of_the_core_stands_for_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for module in modules():
        if not module.name.startswith("ewan.extras."):
            for node in module.nodes:
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(str(module.path))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert not twice, "give each its own name"
