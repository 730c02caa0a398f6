"""Every package that the product imports is declared in pyproject.toml, and none that it does not need."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.conftest import ROOT

OWN = ("labs", "emulator", "generator", "calibration", "analysis", "experiments", "extras", "images", "tests", "ewan")
# Run as programs or plugins, or stubs for mypy: nothing imports them.
BESIDE_DASK = {"bokeh", "dask"}  # which it shows its dashboard with, and which it is a part of
BESIDE_UVICORN = {"websockets"}  # which it serves websockets with
ALONE = ("ewan_aioquic", "hook.py", "sdist.py")
"""Modules, and a folder of some, that run where not all of the product is installed, or more than it."""
TOOLS = {"hatchling", "httpx2", "mypy", "ruff", "pytest-timeout"}  # httpx2: of Starlette's TestClient


def imported(paths: list[Path]) -> set[str]:
    """Names of the top-level modules that these files import and that are not Python's own or ours."""
    names: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    tops = {name.partition(".")[0] for name in names}
    return {name for name in tops if name not in sys.stdlib_module_names and name not in OWN}


def distributions(modules: set[str]) -> set[str]:
    """What is to be installed for these modules, by its normalised name."""
    known = installed()
    return {normal(known[module][0]) for module in modules}


@functools.cache
def installed() -> Mapping[str, list[str]]:
    """The distributions that bring each top-level module."""
    return packages_distributions()


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=\[ ]", name)[0]).lower()


def test_every_import_is_declared_and_every_declared_package_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {normal(each) for each in project["dependencies"]}
    for extra in ("report", "containers"):
        declared |= {normal(each) for each in project["optional-dependencies"][extra]}
    declared |= {normal(each) for each in project["optional-dependencies"]["cluster"]} - BESIDE_DASK
    declared |= {normal(each) for each in project["optional-dependencies"]["gym"]}
    declared |= {normal(each) for each in project["optional-dependencies"]["studio"]} - BESIDE_UVICORN
    for_tests = {normal(each) for extra in ("dev", "browser") for each in project["optional-dependencies"][extra]}
    files = [ROOT / "ewan" / "cli.py"]
    for part in OWN[:-1]:
        files += [path for path in (ROOT / part).rglob("*.py") if not set(ALONE) & set(path.parts)]
    product = [path for path in files if "tests" not in path.relative_to(ROOT).parts]
    assert distributions(imported(product)) == declared
    needed = distributions(imported(files)) - declared - BESIDE_UVICORN
    stubs = {name for name in for_tests if name.startswith("types-") or name.endswith("-stubs")}
    assert needed == for_tests - TOOLS - stubs
