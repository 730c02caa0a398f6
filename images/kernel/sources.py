"""The source of a kernel of one's own, as a directory of files: a tree, an archive, a package of Debian's.

In: what the user named. Out: the directory, and what it is, for the note of the kernel. Nothing of it is executed here,
and nothing is written into a tree.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from images.kernel import build
from images.kernel.series import Version

SUITES = ("trixie-backports", "sid")
"""Debian's suites that hold newer kernels than the stable release."""
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# What a build leaves in a tree, and files that belong to other programs.
_PRODUCTS = ["*.o", "*.a", "*.ko", "*.cmd", "*.mod", "*.mod.c", "*.symvers", "*/modules.order", "*/modules.builtin*"]
_PRODUCTS += ["*/vmlinux", "*/linux", "*/System.map", "./.config*", "./.tmp_*", "*/include/generated/*"]
_PRODUCTS += ["./include/config/*"]
_SKIPPED = re.compile("|".join(fnmatch.translate(each) for each in (*build.NOT_NEEDED, *_PRODUCTS)))
_NO_FILES = {".git", ".pc", ".svn"}


class SourceError(Exception):
    """The source cannot be used: one line, with what to do."""


@dataclass(frozen=True)
class Source:
    """`directory`: of its files; `mine`: they may be moved from there; `kind`: tree, archive, debian or default;
    `what`: its name; `sha256`: of the archive, empty for a tree; `commit`: that a tree of Git has checked out."""

    directory: Path
    mine: bool
    kind: str
    what: str
    sha256: str = ""
    commit: str = ""


@contextmanager
def opened(path: Path, scratch: Path) -> Iterator[Source]:
    """A tree, or an archive that is unpacked below `scratch` meanwhile."""
    if path.is_dir():
        yield Source(path, False, "tree", path.resolve().name, commit=commit(path))
        return
    if not path.exists():
        raise SourceError(f"{path}: there is no such file or directory: name a tree of Linux's source, or an archive")
    if not tarfile_like(path):
        raise SourceError(f"{path} is no archive that tar reads: name a tree of Linux's source, or a .tar.xz of one")
    with _unpacked(scratch, ["tar", "-x", "-f", str(path)], str(path)) as directory:
        yield Source(_top(directory), True, "archive", path.name, build.sha256(path))


@contextmanager
def debian(version: str, archives: Path, scratch: Path) -> Iterator[Source]:
    """The newest `linux-source-VERSION` of Debian's; fetched once."""
    name = f"linux-source-{version}"
    deb = next(iter(sorted(archives.glob(f"{name}_*.deb"))), None)
    if deb is None or not build.whole(deb):
        deb = _fetched(name, archives)
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".deb-") as place:
        build.say(f"unpacking {deb.name}")
        with (Path(place) / "tar").open("wb") as inner:
            outer = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE)
            member = f"./usr/src/{name}.tar.xz"
            taken = subprocess.run(["tar", "-x", "-O", "-f", "-", member], stdin=outer.stdout, stdout=inner)
        if outer.wait() or taken.returncode:
            raise SourceError(f"{deb} cannot be unpacked: remove it, and run this again")
        with _unpacked(scratch, ["tar", "-x", "-J", "-f", inner.name], str(deb)) as directory:
            yield Source(
                _top(directory), True, "debian", deb.name.split("_all")[0].replace("%3a", ":"), build.sha256(deb)
            )


@contextmanager
def default(target: Path, scratch: Path) -> Iterator[Source]:
    """The source of the default kernel, whose cache is `target`."""
    (target / "cache").mkdir(parents=True, exist_ok=True)
    with build.lock(target):
        source = build.Source(target / "cache")
        identity = source.identity()
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".source-") as place:
        build.say("unpacking the source of the default kernel")
        with (scratch / "unpack.log").open("wb") as log:
            try:
                source.unpack(Path(place), log)
            except RuntimeError as error:
                raise SourceError(str(error)) from None
        yield Source(Path(place), True, "default", f"{build.PACKAGE}_{build.VERSION}", identity.split()[-1])


def checked(source: Source, said: str) -> Version:
    """The version of a tree that has User-Mode Linux; `said`: the source as the user wrote it."""
    makefile = source.directory / "Makefile"
    head = makefile.read_text(errors="replace")[:2000] if makefile.is_file() else ""
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) *= *(\d+)", head, re.MULTILINE))
    if not {"VERSION", "PATCHLEVEL"} <= set(found):
        raise SourceError(f"{said} is no source of Linux: it has no Makefile with VERSION and PATCHLEVEL")
    version = tuple(int(found[name]) for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if name in found)
    words = ".".join(map(str, version))
    kconfig = source.directory / "arch/um/Kconfig"
    if not kconfig.is_file() or not (source.directory / "arch/x86/um").is_dir():
        raise SourceError(f"{said}: this Linux {words} has no arch/um and arch/x86/um, in which the virtual clock runs")
    if "UML_TIME_TRAVEL_SUPPORT" not in kconfig.read_text(errors="replace"):
        raise SourceError(
            f"{said}: this Linux {words} has no simulated time (UML_TIME_TRAVEL_SUPPORT): take 5.5 or newer"
        )
    return version


def files(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files and symbolic links that a build reads, without what earlier builds left."""
    places = [""]
    while places:
        below = places.pop()
        with os.scandir(directory / below) as entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    places += [] if entry.name in _NO_FILES else [f"{name}/"]
                elif not _SKIPPED.match(f"./{name}"):
                    yield name, entry.stat(follow_symlinks=False)


def commit(tree: Path) -> str:
    """The commit that is checked out; empty where it is not to be read. Git itself would execute what the tree's
    configuration says."""
    try:
        place = tree / ".git"
        if place.is_file():
            place = tree / place.read_text().removeprefix("gitdir:").strip()
        head = (place / "HEAD").read_text().strip()
        if (common := place / "commondir").exists():
            place = place / common.read_text().strip()
        if name := head.partition("ref: ")[2]:
            direct = place / name
            packed = (place / "packed-refs").read_text() if not direct.exists() else ""
            lines = (line.split() for line in packed.splitlines())
            head = direct.read_text().strip() if direct.exists() else next(a for a, b in lines if b == name)
        return head if re.fullmatch("[0-9a-f]{40,64}", head) else ""
    except (OSError, ValueError, StopIteration):
        return ""


def tarfile_like(path: Path) -> bool:
    """Return whether tar lists a first member."""
    try:
        return tarfile.is_tarfile(path)
    except OSError:
        return False


@contextmanager
def _unpacked(scratch: Path, command: list[str], said: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".source-") as place:
        excludes = [f"--exclude={pattern}" for pattern in build.NOT_NEEDED]
        options = ["--no-same-owner", "--no-same-permissions", "-C", place]
        done = subprocess.run([*command, *options, *excludes], capture_output=True, text=True)
        if done.returncode:
            if "No space left" in done.stderr:
                raise OSError(28, os.strerror(28), scratch)
            # It says first what it does about such names, and only then what it cannot do.
            lines = [line for line in done.stderr.splitlines() if ": Removing leading " not in line]
            why = (lines or ["tar gives no reason"])[0]
            raise SourceError(f"{said} cannot be unpacked: {why}")
        yield Path(place)


def _top(directory: Path) -> Path:
    """The tree in an archive: its folder that has a Makefile, or the archive itself. A link is no such folder: it may
    lead out of the archive."""
    inside = (each for each in sorted(directory.iterdir()) if not each.is_symlink() and (each / "Makefile").is_file())
    return directory if (directory / "Makefile").is_file() else next(inside, directory)


def _fetched(name: str, archives: Path) -> Path:
    """Downloads a package by a configuration of apt's own: nothing is installed, and the system's lists stay."""
    if not shutil.which("apt-get") or not KEYS.exists():
        raise SourceError(
            f"{name}: this machine has no apt with Debian's keys: download the source elsewhere, and add the archive"
        )
    mirror = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN)", "Created-By: Packages"],
        capture_output=True,
        text=True,
    ).stdout
    sites = [line.split()[0] for line in mirror.splitlines() if line.endswith(" Debian") and "security" not in line]
    if not sites:
        raise SourceError(f"{name}: apt of this machine knows no archive of Debian's: add an archive of the source")
    with tempfile.TemporaryDirectory(dir=archives, prefix=".apt-") as aside:
        place = Path(aside)
        (place / "lists/partial").mkdir(parents=True)
        lines = [f"deb [signed-by={KEYS}] {sites[0]} {suite} main" for suite in SUITES]
        (place / "sources.list").write_text("\n".join(lines) + "\n")
        options = {"Dir::Etc::sourcelist": place / "sources.list", "Dir::Etc::sourceparts": "-"}
        options |= {"Dir::State::lists": place / "lists", "Dir::Cache": place, "Acquire::Languages": "none"}
        own = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        build.say(f"looking for {name} in {' and '.join(SUITES)} of Debian")
        for words in (["update", "-q"], ["download", "-q", name]):
            done = subprocess.run(["apt-get", *own, *words], cwd=place, capture_output=True, text=True)
            if done.returncode:
                why = [line for line in done.stderr.splitlines() if line.startswith("E:")] or ["no reason given"]
                there = subprocess.run(
                    ["apt-cache", *own, "search", "--names-only", r"^linux-source-[0-9.]*$"],
                    capture_output=True,
                    text=True,
                ).stdout
                known = ", ".join(line.split()[0].removeprefix("linux-source-") for line in there.splitlines())
                raise SourceError(f"{name} cannot be had ({why[0]}); Debian has {known or 'none that apt reaches'}")
        found = next(place.glob(f"{name}_*.deb"))
        kept = archives / found.name
        build.write_sum(found)
        found.replace(kept)
        found.with_name(found.name + build.SUM).replace(kept.with_name(kept.name + build.SUM))
    return kept


def digest(entries: dict[str, str]) -> str:
    """One SHA-256 of all files, each with its own."""
    return hashlib.sha256("\n".join(f"{sha} {name}" for name, sha in sorted(entries.items())).encode()).hexdigest()
