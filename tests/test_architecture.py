"""Dependencies point one way: this reads every import and fails on any arrow that the design does not draw."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PARTS = ("labs", "generator", "calibration", "analysis")

# part → what it may import of the project (by longest prefix)
ALLOWED: dict[str, tuple[str, ...]] = {
    "labs.units": ("labs.units",),
    "labs.reading": (),
    "labs.typed": (),
    "labs.stages": ("labs.units", "labs.typed", "labs.stages"),
    "labs.plan": ("labs.stages", "labs.typed"),
    "labs.record": ("labs.record",),
    "labs.forwarding": ("labs.plan", "labs.stages"),
    "labs.images": (),
    "labs.spec": ("labs.units", "labs.reading", "labs.spec"),
    "labs.topologies": ("labs.units", "labs.spec", "labs.topologies"),
    "labs.compile": ("labs.units", "labs.spec", "labs.topologies", "labs.stages", "labs.plan", "labs.compile"),
    "labs.render": ("labs.stages", "labs.plan", "labs.units", "labs.images", "labs.render"),
    "labs.runtime": ("labs.stages", "labs.plan", "labs.units", "labs.images", "labs.runtime"),
    "labs.runtime.containerlab": (
        "labs.stages",
        "labs.plan",
        "labs.units",
        "labs.images",
        "labs.render",
        "labs.runtime",
    ),
    "labs": ("labs",),
    "generator": ("labs", "generator"),
    "calibration": ("labs", "generator", "analysis", "calibration"),
    "analysis": ("labs.units", "labs.reading", "labs.typed", "labs.record", "analysis"),
    "analysis.cli": ("labs", "analysis"),
}


def modules() -> list[Path]:
    return [
        path
        for part in PARTS
        for path in sorted((ROOT / part).rglob("*.py"))
        if "tests" not in path.parts and "target" not in path.parts
    ]


def longest(name: str) -> str:
    """The most specific rule that covers a module."""
    rules = [rule for rule in ALLOWED if name == rule or name.startswith((rule + ".", rule + "_"))]
    return max(rules, key=len)


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.split(".")[0] in (*PARTS, "ewan")]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_arrows(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    rule = longest(module)
    for name in imports(path):
        allowed = any(name == prefix or name.startswith(prefix + ".") for prefix in ALLOWED[rule])
        assert allowed, f"{path.relative_to(ROOT)} imports {name}; {rule} may import {ALLOWED[rule] or 'nothing'}"


def test_the_rules_see_a_wrong_arrow() -> None:
    assert longest("labs.compile") == "labs.compile"
    assert longest("labs.cli") == "labs"
    assert longest("labs.runtime.netns") == "labs.runtime"


def test_only_units_knows_the_conversion_factors() -> None:
    """Bits per byte and nanoseconds per second are spelled once, in labs/units."""
    for path in modules():
        if path.parent == ROOT / "labs/units":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, int | float)
                and not isinstance(node.value, bool)
            ):
                factor = node.value in (1e9, 1e6)
                assert not factor, f"{path.relative_to(ROOT)}:{node.lineno}: {node.value} belongs to labs/units"
