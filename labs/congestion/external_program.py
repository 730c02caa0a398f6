"""The congestion control `external`, whose windows a program of the user's sets in the virtual clock.

In: the program's words, its declared thinking time. Out: the module that gives it to the virtual kernel, and the
program as a part of a run, checked.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from ewan.labs.base import reading
from ewan.labs.base.product import ROOT
from ewan.labs.congestion import source
from ewan.labs.runtime import controllers
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Controller, KernelModule

NAME = "external"
"""The congestion control's name."""
SOURCE = ROOT / "emulator/kernel/external/tcp_external.c"
MOST_BYTES = 4 << 20
"""The size of all files of a program together."""
_REMEDY = (
    "; the files of a program have at most 4 MiB together: name a large one by its absolute path as an argument, which "
    "an archive does not have"
)


def of_user(text: str) -> Controller:
    """The program of `--program`, which starts in the current directory. LabError for one that cannot be started."""
    argv = words(text)
    controllers.check(argv, Path.cwd())
    return Controller(argv)


def words(text: str) -> tuple[str, ...]:
    """The words of a command; LabError where it has none."""
    try:
        found = tuple(shlex.split(text))
    except ValueError as error:
        raise LabError(f"{text}: {str(error).lower()}: close the quotes") from None
    if not found:
        raise LabError('"": write a program and its arguments, "./mine.py"')
    return found


def module(thinks_ns: int = 0) -> KernelModule:
    """The module that gives the virtual kernel the congestion control; an answer takes effect `thinks_ns` later in
    simulated time."""
    return KernelModule(source.read(SOURCE), (NAME,), f"thinks_ns={thinks_ns}" if thinks_ns else "")


def files(folder: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The files of a program, by their paths in `folder`, sorted; of a folder all files below it. LabError for those
    that lie elsewhere, are too large together, or are not there."""
    found: dict[str, bytes] = {}
    left, top = MOST_BYTES, folder.resolve()
    for name in names:
        path = folder / name
        if not path.exists():
            raise LabError(f"{name}: there is no such file beside the scenario")
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if each.is_dir():
                continue
            if not each.resolve().is_relative_to(top):
                raise LabError(f"{name}: it lies outside of the scenario's folder: put it there")
            try:
                content = reading.read_bytes(each, left)
            except OSError as error:
                raise LabError(f"{each}: {error.strerror}{_REMEDY if error.errno == errno.EFBIG else ''}") from None
            left -= len(content)
            found[os.path.normpath(each.relative_to(folder))] = content
    return dict(sorted(found.items()))
