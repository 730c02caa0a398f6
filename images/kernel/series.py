"""The series of patches that make a kernel one of the virtual clock, as data: what each is needed for, and what is lost
without it.

In: a folder of patches, whose first lines say so (`Needed-for`, `Without-it`), with folders of other texts for newer
kernels; or a user's own folder of patches. Out: patches in their order, and what came of applying them to the files
of a tree.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KINDS = ("exactness", "features", "speed")
Version = tuple[int, ...]
_HEADER = re.compile(r"^(Subject|Needed-for|Without-it|Not-needed-with): (.*)$", re.MULTILINE)
_MOST_SAID = 400


class SeriesError(Exception):
    """A series that cannot be read: one line, with the file."""


@dataclass(frozen=True)
class Text:
    """The text of a patch for trees of `version` and newer; `strip`: the parts of a path that `patch` leaves out."""

    path: Path
    version: Version = ()
    strip: int = 1

    def names(self) -> set[str]:
        """The files that it changes or makes, within the tree."""
        found = re.findall(r"^(?:---|\+\+\+) ([^\t\n]+)", self.path.read_text(errors="replace"), re.MULTILINE)
        parts = [name.strip().split("/") for name in found if name.strip() != "/dev/null"]
        return {"/".join(each[self.strip :]) for each in parts if len(each) > self.strip}


@dataclass(frozen=True)
class Patch:
    """One change of the series. `kind`: what it is needed for, one of KINDS; `lost`: what is lost without it, a
    sentence; `tree_has`: a file, and a text in it by which a tree has the change already."""

    name: str
    title: str
    kind: str
    lost: str
    tree_has: tuple[str, str] | None
    texts: tuple[Text, ...]

    def texts_for(self, version: Version) -> list[Text]:
        """Its texts, from the text that fits a tree of this version best."""
        newest_first = sorted(self.texts, key=lambda text: text.version, reverse=True)
        return sorted(newest_first, key=lambda text: text.version > version)


def read(folder: Path) -> list[Patch]:
    """The series of a folder; its order is that of the names."""
    variants = [place for place in sorted(folder.iterdir()) if place.is_dir() and version_of(place.name)]
    found = []
    for path in sorted(folder.glob("*.patch")):
        said = dict(_HEADER.findall(path.read_text().partition("\n---\n")[0]))
        missing = [name for name in ("Subject", "Needed-for", "Without-it") if not said.get(name)]
        if missing or said["Needed-for"] not in KINDS:
            raise SeriesError(
                f"{path}: write what it is for into its first lines: Needed-for: {'|'.join(KINDS)}, and Without-it: "
                "what is lost without it"
            )
        file, _, text = said.get("Not-needed-with", "").partition(": ")
        others = [Text(place / path.name, version_of(place.name)) for place in variants if (place / path.name).exists()]
        found.append(
            Patch(
                path.name,
                said["Subject"],
                said["Needed-for"],
                said["Without-it"],
                (file, text) if file else None,
                (Text(path), *others),
            )
        )
    for place in variants:
        if strange := sorted({each.name for each in place.iterdir()} - {patch.name for patch in found}):
            raise SeriesError(f"{place / strange[0]}: {folder} has no patch of this name: its number may have changed")
    return found


def version_of(name: str) -> Version:
    """`7.3` as numbers; empty for what is no version."""
    return tuple(map(int, name.split("."))) if re.fullmatch(r"\d+(\.\d+)+", name) else ()


def own(folder: Path) -> list[Text]:
    """The patches of a user's own folder: as its file `series` lists them, which quilt writes, or else all *.patch in
    the order of their names."""
    listed = folder / "series"
    try:
        if not listed.exists():
            found = [Text(path) for path in sorted(folder.glob("*.patch"))]
        else:
            found = [_of_line(folder, number, line) for number, line in _lines(listed)]
    except OSError as error:
        raise SeriesError(f"{error.filename or folder}: {error.strerror}") from None
    if not found:
        raise SeriesError(f"{folder}: there is no patch in it: write files *.patch there, or a list of them: series")
    return found


def _lines(listed: Path) -> list[tuple[int, str]]:
    lines = (line.partition("#")[0].strip() for line in listed.read_text(errors="replace").splitlines())
    return [(number, line) for number, line in enumerate(lines, 1) if line]


def _of_line(folder: Path, number: int, line: str) -> Text:
    where = f"{folder / 'series'}:{number}"
    try:
        name, *options = shlex.split(line)
    except ValueError:
        raise SeriesError(f"{where}: write the name of a patch, and -p0 or -p1 behind it") from None
    strip = 1
    for option in options:
        if not re.fullmatch(r"-p\d", option):
            raise SeriesError(f"{where}: {option}: write the name of a patch, and -p0 or -p1 behind it")
        strip = int(option[2:])
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise SeriesError(f"{where}: {name}: there is no such file in {folder}")
    return Text(path, (), strip)


def apply(text: Text, files: Path, fuzz: int) -> str:
    """Applies a patch to the files below `files`; all of it or nothing. Returns the fault, empty if there is none."""
    if outside := [name for name in text.names() if name.startswith("/") or ".." in name.split("/")]:
        return f"{outside[0]} is no file of the tree"
    with tempfile.TemporaryDirectory(dir=files.parent, prefix=".patch-") as scratch:
        names = sorted(text.names())
        for name in names:
            if (files / name).is_file():
                _copy(files / name, Path(scratch) / name)
        command = ["patch", f"-p{text.strip}", "--no-backup-if-mismatch", f"--fuzz={fuzz}", "-t", "-N", "-d", scratch]
        with text.path.open("rb") as file:
            done = subprocess.run(command, stdin=file, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            return fault_of(done.stdout + done.stderr, names, files)
        for name in names:
            if (Path(scratch) / name).is_file():
                _copy(Path(scratch) / name, files / name)
            else:
                (files / name).unlink(missing_ok=True)
    return ""


def fault_of(said: str, names: Sequence[str], files: Path) -> str:
    """The first fault in the output of `patch`: the file, and the piece of it."""
    if missing := [name for name in names if not (files / name).is_file() and f"patching file {name}" not in said]:
        return f"the tree has no {missing[0]}"
    name = ""
    for line in said.splitlines():
        if found := re.match(r"(?:checking|patching) file '?(.+?)'?(?: \(.*\))?$", line):
            name = found[1]
        elif found := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
            return f"{name}, hunk {found[1]} at line {found[2]}"
        elif "Reversed (or previously applied)" in line:
            return f"{name} has this change already"
    return " ".join(said.split())[:_MOST_SAID] or "patch gives no reason"


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
