"""The layers of the product and what each module imports; `python -m tests.architecture` draws their picture.

In: the sources. Out: `LAYERS`, `modules()`, and docs/explanation/architecture.svg.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
PARTS = ("labs", "generator", "calibration", "analysis", "experiments", "extras")


class Layer(NamedTuple):
    """What stands on all layers before it, and imports nothing of those after it. `holds`: dotted names of modules and
    packages; the longest one that fits decides where a module belongs."""

    name: str
    holds: tuple[str, ...]


def of(package: str, *names: str) -> tuple[str, ...]:
    return tuple(f"ewan.{package}.{name}" for name in names)


LAYERS = (
    Layer("base", ("ewan.extra", *of("labs", "base"))),
    Layer("link", of("labs", "link", "traces")),
    Layer(
        "lab",
        of(
            "labs",
            "spec",
            "compile",
            "plan",
            "change",
            "topologies",
            "forwarding",
            "routed_paths",
            "routing_documents",
            "cards",
            "node_overrides",
        )
        + of("labs", "host", "images", "hardware", "render"),
    ),
    Layer("record", of("labs", "record")),
    Layer(
        "run",
        of("labs", "congestion", "context", "descriptions", "trust", "rundir", "clock", "runtime", "capture", "batch")
        + of("labs", "flows", "kernels", "routes", "link_changes", "watch"),
    ),
    Layer(
        "traffic",
        of(
            "generator",
            "scenario",
            "congestion",
            "external",
            "readers",
            "commands",
            "counted_flows",
            "own_sockets",
            "link_rates",
            "records",
            "rows",
            "iperf3_report",
        )
        + of("generator", "tars", "traffic_request", "iperf3_report"),
    ),
    Layer("results", ("ewan.analysis",)),
    Layer("measure", ("ewan.calibration",)),
    Layer("experiment", ("ewan.experiments",)),
    Layer(
        "command line",
        of("labs", "commands")
        + of("analysis", "cli", "compare.cli")
        + of("calibration", "cli", "calibrate_cli", "host.cli", "kernel_cli")
        + of("generator", "cli", "congestion_cli", "recorded_cli")
        + of("experiments", "engine.cli", "engine.interruption", "engine.rerun", "engine.several", "engine.tag")
        + of("experiments", "shards.cli", "shards.collect", "shards.shard", "store.cli")
        + ("ewan.__main__", "ewan.cli", "ewan.commands"),
    ),
    Layer("extras", ("ewan.extras",)),
)
"""The order in which the product is built, written here and nowhere else."""


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

    @property
    def of_the_product(self) -> list[str]:
        """Those of the names that are the product's; its version is no module."""
        return [name for name in self.imports if name.startswith("ewan.") and name != "ewan.__version__"]


@functools.cache
def modules() -> tuple[Module, ...]:
    """The modules of the product, without tests, and without ewan_aioquic, which nodes run and which imports none."""
    found = [path for part in PARTS for path in sorted((ROOT / part).rglob("*.py"))]
    return tuple(
        Module(path.relative_to(ROOT), named(path), tuple(ast.walk(ast.parse(path.read_text()))))
        for path in [*found, *(ROOT / "ewan" / f"{name}.py" for name in ("__main__", "cli", "commands", "extra"))]
        if "tests" not in path.parts and "target" not in path.parts and "ewan_aioquic" not in path.parts
    )


def parents(name: str) -> list[str]:
    """A dotted name and all that it is below, the longest first."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def level(name: str) -> int:
    """The place in LAYERS of a module, or of what is imported from one."""
    for parent in parents(name):
        for number, layer in enumerate(LAYERS):
            if parent in layer.holds:
                return number
    raise AssertionError(f"{name} has no layer: write it into LAYERS")


def within(name: str, *prefixes: str) -> bool:
    """Whether a dotted name is one of the prefixes, or below one."""
    return any(parent in prefixes for parent in parents(name))


def named(path: Path) -> str:
    """A module's dotted name; `path` is below one of the folders that `ewan` links to, or in it."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "ewan" else ("ewan", *parts)
    return ".".join(parts[:-1] if path.name == "__init__.py" else parts)


PICTURE = ROOT / "docs/explanation/architecture.svg"
HOLDS = {
    "base": "quantities, documents, reading, wording, cache",
    "link": "the table of settings; a file a stage",
    "lab": "description, topologies, compiler, plan",
    "record": "typed documents: schedule, certificate, metrics",
    "run": "runtimes, live changes, capture",
    "traffic": "scenario, tools, readers of their output",
    "results": "metrics, statistics, figures, report",
    "measure": "verification, host, certificates",
    "experiment": "engine, store, shards",
    "command line": "composes, no logic",
    "extras": "course, suites, papers, machines, Studio, …",
}
"""What the picture says of each layer."""


@functools.cache
def arrows() -> frozenset[tuple[str, str]]:
    """Which layer imports which other one."""
    found = {
        (LAYERS[level(module.name)].name, LAYERS[level(name)].name)
        for module in modules()
        for name in module.of_the_product
    }
    return frozenset((own, other) for own, other in found if own != other)


def picture() -> str:
    """The layers from the first to the last as rows; a dot in a row marks a layer that this one imports."""
    names = [layer.name for layer in LAYERS]
    row, left, cell = 26, 446, 30
    width, height = left + cell * len(names) + 16, 128 + row * len(names)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text x="12" y="96" font-weight="bold">layer</text>',
        '<text x="128" y="96" font-weight="bold">holds</text>',
    ]
    for number, name in enumerate(names):
        x, y = left + cell * number + cell // 2, 112 + row * number
        lines += [
            f'<text transform="translate({x + 5},98) rotate(-60)">{escape(name)}</text>',
            f'<rect x="8" y="{y}" width="{width - 16}" height="{row - 4}" rx="4" fill="#eef3fa"/>',
            f'<text x="14" y="{y + 16}" font-weight="bold">{escape(name)}</text>',
            f'<text x="128" y="{y + 16}">{escape(HOLDS[name])}</text>',
            f'<rect x="{x - 9}" y="{y + 4}" width="18" height="14" rx="3" fill="#c8d3e3"/>',
        ]
        lines += [
            f'<circle cx="{left + cell * names.index(other) + cell // 2}" cy="{y + 11}" r="5" fill="#2f5f9e"/>'
            for other in names
            if (name, other) in arrows()
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture())
