"""Adds a kernel to the library: it is built in the sandbox, started, and put into its place when it runs.

In: a tree, an archive, a version of Debian's or patches on the default kernel's source. Out: the kernel in the
library, or LabError, which leaves the library as it was. The build is that of images/kernel/own.py. One kernel is added
at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ewan.labs.base import cache, codec, ownership, writing
from ewan.labs.base.product import ROOT
from ewan.labs.congestion import library as controls
from ewan.labs.kernels import library
from ewan.labs.kernels.library import NOTE, AddedKernel
from ewan.labs.runtime import wall
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.virtual import VirtualRuntime

_FAULT = "kernel: fault: "
"""The beginning of the line by which images/kernel/own.py ends."""
_SYSTEM = (*wall.SYSTEM, "/etc/alternatives")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """A kernel that is to be added. `source`: a tree or an archive; `debian`: a version, "7.3"; without both the
    default kernel's source. `patches`: a folder of patches of the user."""

    name: str
    source: Path | None = None
    debian: str = ""
    patches: Path | None = None

    def path(self) -> str:
        """Where it comes from, for the note; empty where it is downloaded."""
        of = self.source if self.source is not None or self.debian else self.patches
        return "" if of is None else str(of.resolve())


def add(wanted: Wanted, binary: Path, environment: Mapping[str, str], tell: Tell) -> AddedKernel:
    """Builds a kernel, starts it, and puts it into the library; `tell` receives the lines of the build. One that was
    added from the same place is replaced."""
    name = library.check_name(wanted.name)
    if (place := library.folder(environment)) is None:
        raise LabError("there is no home for kernels: set XDG_DATA_HOME to a directory of yours")
    before = library.added(environment).get(name)
    if before is not None and (before.source.path or wanted.debian) != (wanted.path() or _debian_of(before)):
        origin = before.source.path or before.source.what
        raise LabError(f"kernel {name} is of {origin} already: choose another name, or ewan kernel remove {name}")
    made = [each for each in (place, *place.parents) if not each.exists()]
    try:
        with _alone(place, tell):
            new = place / f".new-{name}"
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            try:
                said = _built(wanted, binary, environment, new, tell)
                tell("kernel: starting it")
                said["congestion"] = _started(new / "linux", binary)
                said["name"] = name
                said["source"]["path"] = wanted.path()
                note: AddedKernel = codec.from_data(AddedKernel, {"format": "ewan-kernel/1", **said}, "")
                writing.write(new / NOTE, codec.document(note))
                _into_place(new, place / name)
            finally:
                shutil.rmtree(new, ignore_errors=True)
        ownership.give_back(made, environment)
        ownership.give_back_tree(place / name, environment)
    except OSError as error:
        raise LabError(writing.trouble(error, place, "make room there, or set XDG_DATA_HOME")) from None
    return note


def _debian_of(kernel: AddedKernel) -> str:
    """The version of Debian's package that a kernel was made of; empty for others."""
    return kernel.source.what.removeprefix("linux-source-").partition("_")[0] if kernel.source.kind == "debian" else ""


@contextlib.contextmanager
def _alone(place: Path, tell: Tell) -> Iterator[None]:
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("kernel: another ewan kernel add is running: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _into_place(new: Path, place: Path) -> None:
    old = new.with_name(f".old-{place.name}")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def _built(wanted: Wanted, binary: Path, environment: Mapping[str, str], new: Path, tell: Tell) -> dict[str, Any]:
    """Lets images/kernel/own.py build it into `new`; what that says of it."""
    work = cache.kept(environment, library.KIND, ROOT).resolve()
    default = cache.kept(environment, "kernel", ROOT).resolve()
    words: list[Path | str] = [sys.executable, "-P", "-m", "images.kernel.own", "--name", wanted.name]
    words += ["--work", work, "--default", default, "--out", new.resolve()]
    if wanted.source is not None:
        words += ["--source", wanted.source]
    if wanted.debian:
        words += ["--debian", wanted.debian]
    if wanted.patches is not None:
        words += ["--patches", wanted.patches]
    if not wall.off():
        words += ["--", binary, "launch", *wall.readable(map(Path, _SYSTEM))]
    last = ""
    own = {**environment, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own) as build:
        assert build.stdout is not None and build.stderr is not None
        try:
            for line in build.stderr:
                last = line.strip() or last
                if not line.startswith(_FAULT):
                    tell(line.rstrip("\n"))
            said = build.stdout.read()
        except BaseException:
            build.terminate()
            raise
    if build.returncode:
        why = last.removeprefix(_FAULT).removeprefix("kernel: ")
        raise LabError(f"kernel add: {why or f'the build ended with {build.returncode}'}")
    found: dict[str, Any] = json.loads(said)
    return found


def _started(kernel: Path, binary: Path) -> tuple[str, ...]:
    """The congestion controls that a kernel says it has, when a lab is made in it."""
    try:
        return controls.in_kernel(VirtualRuntime(binary, kernel), ())
    except LabError as error:
        raise LabError(f"kernel add: it is built, and makes no lab: {error}") from None
