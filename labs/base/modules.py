"""Parts of the product that are found by the files in which they are: a queue discipline, a traffic tool, a measure."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType


def modules_of(package: str) -> Iterator[ModuleType]:
    """The modules of a package, imported, in the order of their names; the package may be importing just now."""
    for found in pkgutil.iter_modules(importlib.import_module(package).__path__):
        yield importlib.import_module(f"{package}.{found.name}")
