"""Restricts the part of this machine that the virtual kernel and the programs in it can see: the words for `ewan-node
launch`, whose wall stands outside of the kernel's process (emulator/node/src/wall).

In: a plan, a program, the folders that it may read. Out: paths, and the options that name them. Visible are the
system's own directories, the folders, the paths that the program lists as its needs, and the programs that its commands
name by a path, each with the libraries of its installation. Nothing else of a home is visible, and everything is
read-only. No visible path contains a symbolic link: links are followed here, and a link of another user is followed
only to files of that user.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import re
import shlex
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ewan.labs.base import codec, ownership
from ewan.labs.base.codec import Struct
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Program

VARIABLE = "EWAN_WALL"
"""A variable of the environment: `off` runs the virtual clock without a wall."""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_OF_ETC = """
alternatives bash.bashrc debian_version environment ethertypes fonts frr/vtysh.conf gai.conf group host.conf hostname
hosts inputrc iproute2 java* ld.so.* locale.* localtime lsb-release magic mime.types networks nsswitch.conf openmpi
os-release pam.conf pam.d passwd perl pki/ca-trust pki/tls/certs profile profile.d protocols python* resolv.conf rpc
services shells ssl/certs ssl/openssl.cnf terminfo timezone xattr.conf
"""
"""The files that programs look up there. Passwords, keys and the settings of daemons are not among them."""
BESIDE = ("lib", "lib32", "lib64", "libexec", "pyvenv.cfg")
"""The folders and files beside a directory `bin` that its programs use."""
_PLACES = ("bin", "sbin", "libexec")
_LINE_BYTES = 256
"""The length of a script's first line that Linux reads."""
_MOST_INTERPRETERS = 4
_MOST_LINKS = 40
_FOR_OTHERS = 0o004, 0o001
"""The rights to read and to enter."""
Users = frozenset[int]
PROCESSES = 1024
EACH = 8
"""Processes for each node and each command, beyond `PROCESSES`."""


def off() -> bool:
    """Return whether the user switched the wall off."""
    said = os.environ.get(VARIABLE, "")
    if said not in ("", "off"):
        raise LabError(f"{VARIABLE}={said}: write off, which lets steps do all that you may, or leave it out")
    return said == "off"


class Walls(Struct, forbid_unknown_fields=False):
    """`landlock`: its version, 0 without; `namespaces`: true, or why not; `processes`: whether their number can be
    limited."""

    landlock: int
    namespaces: bool | str
    processes: bool


@functools.cache
def found(binary: Path) -> Walls:
    """The walls that this kernel gives to this user, as `ewan-node walls` reports."""
    shown = subprocess.run([binary, "walls"], capture_output=True, check=False)
    try:
        return codec.decode(Walls, shown.stdout, "")
    except ValueError:
        return Walls(0, shown.stderr.decode(errors="replace").strip(), False)


def check(needs: Iterable[str]) -> None:
    """LabError for what programs need and this machine has not."""
    for path in needs:
        if not Path(path).exists():
            raise LabError(f"needs: {path}: is not on this machine: write a path that is there")


def options(plan: Plan, program: Program, folders: Sequence[Path], write: Path, more: Sequence[Path]) -> list[str]:
    """For `ewan-node launch`. `write`: the run's directory; `more`: what the kernel itself reads."""
    shown = [*more, *map(Path, SYSTEM), *(visible(plan, program, folders) if runs_programs(plan, program) else ())]
    processes = PROCESSES + EACH * (len(plan.nodes) + len(program.commands))
    # A link of a path that is needed may lead elsewhere by now.
    return [
        *readable(shown, [Path(path) for path in program.needs]),
        "--write",
        str(write),
        "--processes",
        str(processes),
    ]


def readable(shown: Iterable[Path], named: Iterable[Path] = ()) -> list[str]:
    """The options that let a process read what `shown` leads to, also by the links among `shown` and `named`."""
    shown = list(shown)
    reads = dict.fromkeys(_led(path)[0] for path in shown)
    links = (path for path in dict.fromkeys((*shown, *named)) if _is_link_to(path, reads))
    return [
        *(word for path in reads for word in ("--read", str(path))),
        *(word for path in links for word in ("--link", str(path))),
    ]


def runs_programs(plan: Plan, program: Program) -> bool:
    """Return whether anything of this machine is executed inside, beside the kernel and the node binary."""
    return bool(program.commands or program.prepare) or any(node.services for node in plan.nodes)


def visible(plan: Plan, program: Program, folders: Sequence[Path]) -> list[Path]:
    """The paths of this machine that are visible; some of them may not exist."""
    shown = of_etc()
    for folder in folders:
        shown += of_folder(folder)
    for each in program.needs:
        shown += of_needed(Path(each), program.needs)
    for path in named(plan, program, folders[0] if folders else Path("/")):
        shown += of_program(path)
    return shown


def of_etc() -> list[Path]:
    """The files that programs look up in /etc."""
    return [path for pattern in _OF_ETC.split() for path in sorted(Path("/etc").glob(pattern))]


def of_folder(folder: Path) -> list[Path]:
    """A folder; of a home, of what is above one and of the machine's first directories only plain files, without hidden
    ones: keys, mail and other work lie below them. Nothing of /etc."""
    folder = folder.resolve()
    if folder.is_relative_to("/etc"):
        return []
    if len(folder.parts) > 2 and not _holds_a_home(folder):
        return [folder]
    return _plain_files(folder)


def of_needed(path: Path, needs: Sequence[str]) -> list[Path]:
    """The paths that make a needed path visible. Of a home, and of a folder above one, only plain files are visible. A
    link of another user is followed only if `needs` contains its target too: the user was asked about that target."""
    real, strangers = _led(path)
    if strangers and str(real) not in needs:
        return []
    return _plain_files(real) if real.is_dir() and _holds_a_home(real) else [real]


def _holds_a_home(folder: Path) -> bool:
    return any(home.is_relative_to(folder) for home in _homes(folder))


def _plain_files(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [each for each in entries if not each.name.startswith(".") and each.is_file() and not each.is_symlink()]


def _homes(path: Path) -> Iterator[Path]:
    """The homes of this user, of the caller of sudo, and of the owner of the path."""
    uids = set(ownership.own_users(os.environ)) - {0} | {os.geteuid()}
    with contextlib.suppress(OSError):
        uids.add(path.stat().st_uid)
    for uid in sorted(uids):
        with contextlib.suppress(KeyError):
            yield Path(pwd.getpwuid(uid).pw_dir).resolve()
    if home := os.environ.get("HOME"):
        yield Path(home).resolve()


def named(plan: Plan, program: Program, directory: Path) -> Iterator[Path]:
    """The files that commands name by a path and that can be executed; `directory`: where commands begin."""
    yield from executables(_words(plan, program), directory)
    for node in plan.nodes:
        for text in (node.own.env if node.own else {}).get("PATH", "").split(":"):
            if text.startswith("/"):
                yield Path(text) / "."


def executables(words: Iterable[str], directory: Path) -> Iterator[Path]:
    """The files that words name by a path from `directory`, and that can be executed."""
    for word in words:
        for part in {word, word.partition("=")[2]}:
            if "/" in part and len(part) < os.pathconf("/", "PC_PATH_MAX"):
                path = directory / part
                try:
                    if path.is_file() and os.access(path, os.X_OK):
                        yield path
                except (OSError, ValueError):
                    continue


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


def of_program(path: Path, more: int = _MOST_INTERPRETERS, through: Users = frozenset()) -> list[Path]:
    """A program, what belongs to its installation, and the interpreter of a script with what belongs to that one.

    A program is a file that may be executed: the first line of a script may name anything. `through`: other users whose
    links or scripts lead there.
    """
    path = Path(os.path.normpath(path))
    if _is_of_system(path):
        return []
    real, strangers = _led(path)
    strangers |= through
    if not (real.is_dir() or (real.is_file() and os.access(real, os.X_OK))) or not _may_be_shown(real, strangers):
        return []
    found = [*_installed(path, strangers), *(_installed(real, strangers) if real != path else ())]
    if not real.is_dir() and more and (interpreter := _interpreter(real)) is not None:
        found += of_program(interpreter, more - 1, strangers | _others({real.stat().st_uid}))
    return found + (of_program(real, more - 1, strangers) if real != path and more else [])


def _installed(path: Path, through: Users) -> list[Path]:
    place = path if path.is_dir() else path.parent
    if place.name not in _PLACES:
        return [path] if path.is_file() else []
    whole = _led(place.parent)[0]
    beside = [place, *(place.parent / name for name in BESIDE)]
    return [path] * path.is_file() + [each for each in beside if _belongs(each, whole, through)]


def _belongs(path: Path, whole: Path, through: Users) -> bool:
    """Return whether a path beside a program may be visible: it is no home, and no other user's link leads out of the
    installation, which is `whole`."""
    real, strangers = _led(path)
    if real.is_dir() and _holds_a_home(real):
        return False
    if strangers and not real.is_relative_to(whole) and not _is_of_system(real) and not _is_of(real, strangers):
        return False
    return not real.exists() or _may_be_shown(real, strangers | through)


def _may_be_shown(real: Path, strangers: Users) -> bool:
    """Return whether the target of other users' links may be visible: it is theirs, or they could read it
    themselves."""
    if not strangers or _is_of_system(real) or _is_of(real, strangers):
        return True
    read, enter = _FOR_OTHERS
    wanted = read | (enter if real.is_dir() else 0)
    return real.stat().st_mode & wanted == wanted and all(each.stat().st_mode & enter for each in real.parents)


def _is_of(real: Path, users: Users) -> bool:
    return real.exists() and users == {real.stat().st_uid}


def _is_of_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in SYSTEM)


def _is_link_to(path: Path, shown: Iterable[Path]) -> bool:
    real, _ = _led(path)
    return real != path and any(real.is_relative_to(each) for each in shown)


def _led(path: Path) -> tuple[Path, Users]:
    """The target of a path, with no link on the way, and the owners of the links that lead there: users other than
    root, this one and the caller of sudo."""
    place, rest = Path("/"), list(reversed(path.absolute().parts[1:]))
    owners: list[int] = []
    while rest:
        name = rest.pop()
        here = place.parent if name == ".." else place / name
        try:
            found = here.lstat()
            target = here.readlink() if stat.S_ISLNK(found.st_mode) and len(owners) < _MOST_LINKS else None
        except OSError:
            target = None
        if target is None:
            place = here
            continue
        owners.append(found.st_uid)
        rest += reversed(target.parts[target.is_absolute() :])
        place = Path("/") if target.is_absolute() else place
    return place, _others(owners)


def _others(users: Iterable[int]) -> Users:
    # In a user namespace root's number may be another.
    return frozenset(users) - ownership.own_users(os.environ) - {Path("/").stat().st_uid}


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
