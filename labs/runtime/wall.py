"""What the virtual kernel and the programs in it see of this machine: the words for `ewan-node launch`, whose wall
stands outside of the kernel's process (labs/node/src/wall).

In: a plan, a program, the folders that it may read. Out: paths, and the options that name them. Shown are the system's
own directories, the folders, what the program says that it needs, and the programs that its commands name by a path,
each with the libraries of its installation; nothing else of a home, and all of it read-only.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from labs.plan import Plan
from labs.runtime.base import LabError
from labs.runtime.program import Program

VARIABLE = "EWAN_WALL"
"""Of the environment: `off` runs the virtual clock without a wall."""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_OF_ETC = """
alternatives bash.bashrc debian_version environment ethertypes fonts frr/vtysh.conf gai.conf group host.conf hostname
hosts inputrc iproute2 java* ld.so.* locale.* localtime lsb-release magic mime.types networks nsswitch.conf openmpi
os-release pam.conf pam.d passwd perl pki/ca-trust pki/tls/certs profile profile.d protocols python* resolv.conf rpc
services shells ssl/certs ssl/openssl.cnf terminfo timezone xattr.conf
"""
"""What programs look up there. Passwords, keys and the settings of daemons are not among it."""
BESIDE = ("lib", "lib32", "lib64", "libexec", "pyvenv.cfg")
"""What a program in a directory `bin` takes from beside it."""
_PLACES = ("bin", "sbin", "libexec")
_LINE_BYTES = 256
"""Of a script's first line, as Linux reads it."""
_MOST_INTERPRETERS = 4
PROCESSES = 1024
EACH = 8
"""Processes for each node and each command, beyond `PROCESSES`."""


def off() -> bool:
    """Whether the user said that there is to be no wall."""
    said = os.environ.get(VARIABLE, "")
    if said not in ("", "off"):
        raise LabError(f"{VARIABLE}={said}: write off, which lets steps do all that you may, or leave it out")
    return said == "off"


@functools.cache
def found(binary: Path) -> dict[str, Any]:
    """Which walls this kernel gives to this user, as `ewan-node walls` tells: `landlock`, its version, 0 without;
    `namespaces`, true or why not; `processes`, whether their number can be limited."""
    shown = subprocess.run([binary, "walls"], capture_output=True, check=False)
    try:
        told = orjson.loads(shown.stdout)
    except orjson.JSONDecodeError:
        return {"landlock": 0, "namespaces": shown.stderr.decode(errors="replace").strip(), "processes": False}
    return dict(told)


def check(needs: Iterable[str]) -> None:
    """LabError for what programs need and this machine has not."""
    for path in needs:
        if not Path(path).exists():
            raise LabError(f"needs: {path}: is not on this machine: write a path that is there")


def options(plan: Plan, program: Program, folders: Sequence[Path], write: Path, more: Sequence[Path]) -> list[str]:
    """For `ewan-node launch`. `write`: the run's directory; `more`: what the kernel itself reads."""
    shown = [*more, *map(Path, SYSTEM), *(visible(plan, program, folders) if runs_programs(plan, program) else ())]
    processes = PROCESSES + EACH * (len(plan.nodes) + len(program.commands))
    reads = (word for path in dict.fromkeys(shown) for word in ("--read", str(path)))
    return [*reads, "--write", str(write), "--processes", str(processes)]


def runs_programs(plan: Plan, program: Program) -> bool:
    """Whether anything of this machine is executed inside, beside the kernel and the node binary."""
    return bool(program.commands or program.prepare) or any(node.services for node in plan.nodes)


def visible(plan: Plan, program: Program, folders: Sequence[Path]) -> list[Path]:
    """What is shown of this machine; paths that are not there may be among it."""
    etc = (path for pattern in _OF_ETC.split() for path in sorted(Path("/etc").glob(pattern)))
    shown = list(etc)
    for folder in folders:
        shown += of_folder(folder)
    shown += map(Path, program.needs)
    for path in named(plan, program, folders[0] if folders else Path("/")):
        shown += of_program(path)
    return shown


def of_folder(folder: Path) -> list[Path]:
    """A folder; of a home, of what is above one and of the machine's first directories only plain files, without hidden
    ones: keys, mail and other work lie below them. Nothing of /etc."""
    folder = folder.resolve()
    if folder.is_relative_to("/etc"):
        return []
    if len(folder.parts) > 2 and not any(home.is_relative_to(folder) for home in _homes(folder)):
        return [folder]
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [each for each in entries if not each.name.startswith(".") and each.is_file() and not each.is_symlink()]


def _homes(path: Path) -> Iterator[Path]:
    """Of this user, of who called sudo, and of whose the path is."""
    uids: list[int | str] = [os.geteuid(), os.environ.get("SUDO_UID", "")]
    with contextlib.suppress(OSError):
        uids.append(path.stat().st_uid)
    for uid in uids:
        try:
            yield Path(pwd.getpwuid(int(uid)).pw_dir).resolve()
        except (KeyError, ValueError):
            continue
    if home := os.environ.get("HOME"):
        yield Path(home).resolve()


def named(plan: Plan, program: Program, directory: Path) -> Iterator[Path]:
    """The files that commands name by a path and that can be executed; `directory`: where commands begin."""
    for word in _words(plan, program):
        for part in {word, word.partition("=")[2]}:
            if "/" in part and len(part) < os.pathconf("/", "PC_PATH_MAX"):
                path = directory / part
                try:
                    if path.is_file() and os.access(path, os.X_OK):
                        yield path
                except (OSError, ValueError):
                    continue
    for node in plan.nodes:
        for text in (node.own.env if node.own else {}).get("PATH", "").split(":"):
            if text.startswith("/"):
                yield Path(text) / "."


def _words(plan: Plan, program: Program) -> Iterator[str]:
    """Each word of each command; of a line of a shell those that it has."""
    started = [each.argv for each in program.commands]
    started += [each.argv for each in program.prepare]
    started += [argv for node in plan.nodes for argv in (node.own.exec if node.own else ())]
    started += [service.argv for node in plan.nodes for service in node.services]
    for argv in started:
        for text in argv:
            yield text
            if any(letter.isspace() for letter in text):
                yield from _of_shell(text)


def _of_shell(text: str) -> Iterable[str]:
    try:
        return list(shlex.shlex(text, posix=True, punctuation_chars=True))
    except ValueError:
        return re.split(r"[\s;|&()'\"]+", text)


def of_program(path: Path, more: int = _MOST_INTERPRETERS) -> list[Path]:
    """A program, what belongs to its installation, and the interpreter of a script with what belongs to that one.

    A program is a file that may be executed: the first line of a script may name anything.
    """
    path = Path(os.path.normpath(path))
    if any(path.is_relative_to(place) for place in SYSTEM):
        return []
    real = path.resolve()
    if not (real.is_dir() or (real.is_file() and os.access(real, os.X_OK))):
        return []
    found = [*_installed(path), *(_installed(real) if real != path else ())]
    if not real.is_dir() and more and (interpreter := _interpreter(real)) is not None:
        found += of_program(interpreter, more - 1)
    return found + (of_program(real, more - 1) if real != path and more else [])


def _installed(path: Path) -> list[Path]:
    place = path if path.is_dir() else path.parent
    if place.name in _PLACES:
        return [place, *(place.parent / name for name in BESIDE)]
    return [path] if path.is_file() else []


def _interpreter(script: Path) -> Path | None:
    try:
        with script.open("rb") as file:
            line = file.read(_LINE_BYTES).split(b"\n")[0]
    except OSError:
        return None
    words = line[2:].split() if line.startswith(b"#!") else []
    if not words or not words[0].startswith(b"/"):
        return None
    interpreter = Path(os.fsdecode(words[0]))
    return interpreter if interpreter.is_file() else None
