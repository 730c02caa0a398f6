"""A network emulation lab whose links are measured before anyone trusts them. For notebooks: `load` and `course`.

The folders of the product stand beside this one; links in it make them the packages `ewan.labs`, `ewan.analysis` and so
on.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ewan.analysis.api import Results
    from ewan.experiments.api.experiment import run as run
    from ewan.experiments.api.experiment import scenario as scenario
    from ewan.experiments.api.experiment import sweep as sweep
    from ewan.experiments.api.lab import lab as lab
    from ewan.experiments.api.values import seconds as seconds
    from ewan.labs.base.errors import UserError as UserError

# Only this file has the version: the package, ewan-node and the images read it there. pathlib would cost 4 ms.
with open(os.path.join(os.path.dirname(__file__), "VERSION"), encoding="ascii") as _file:  # noqa: PTH120, PTH118, PTH123
    __version__ = _file.read().strip()


def load(directory: str | os.PathLike[str]) -> Results:
    """An experiment's results, for notebooks: `ewan.load("results/…").metric("utilisation").by("buffer")`."""
    from pathlib import Path

    from ewan.analysis.api import Results

    return Results(Path(directory))


_API = {
    "lab": "experiments.api.lab",
    "run": "experiments.api.experiment",
    "scenario": "experiments.api.experiment",
    "seconds": "experiments.api.values",
    "sweep": "experiments.api.experiment",
    "UserError": "labs.base.errors",
}
"""The names of `import ewan` for test suites, by the module that has each. It is imported when the name is used."""


def __getattr__(name: str) -> Callable[..., Any]:
    """A function that an extra adds, like `ewan.course()`. Python asks here for each module of this package too."""
    if name in _API:
        from importlib import import_module

        function: Callable[..., Any] = getattr(import_module(f"ewan.{_API[name]}"), name)
        return function
    from importlib.machinery import PathFinder

    if not name.startswith("_") and PathFinder.find_spec(f"ewan.{name}", __path__) is None:
        from ewan.extra import installed

        if load := installed().functions.get(name):
            return load()
    raise AttributeError(f"ewan has no {name}: no extra that is installed adds it")
