"""A network emulation lab whose links are measured before anyone trusts them. For notebooks: `load` and `course`.

The folders of the product stand beside this one; links in it make them the packages `ewan.labs`, `ewan.analysis` and so
on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from ewan.analysis.api import Results
    from ewan.generator.course.session import Session

__version__ = "0.1.0"


def load(directory: str | os.PathLike[str]) -> Results:
    """An experiment's results, for notebooks: `ewan.load("results/…").metric("utilisation").by("buffer")`."""
    from pathlib import Path

    from ewan.analysis.api import Results

    return Results(Path(directory))


def course(folder: str | os.PathLike[str] = ".") -> Session:
    """A lab of the course, for notebooks, in a folder that `ewan course start` made: `ewan.course().check()`."""
    import os
    from pathlib import Path

    from ewan.analysis.api import Results
    from ewan.analysis.one_run import OneRun
    from ewan.generator.course.session import Session
    from ewan.labs.context import Context

    return Session(Path(folder), Context.of(os.environ), OneRun, Results)
