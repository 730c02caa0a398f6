"""Who may change the files that this program makes, and whose they are when sudo runs it.

In: paths that it made, the environment. Out: nothing; under sudo the files belong to the user who called it. Symbolic
links are never followed: what a program in a lab leaves in its results must not make root change another file's owner.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

OTHERS_WRITE = 0o002
GROUP_WRITES = 0o020
MOST_LINKS = 40
"""The number of links that the system follows in one path."""


def restrict_umask() -> None:
    """Takes the right to write from others, and as root from the group too, for all files that this process makes."""
    before = os.umask(OTHERS_WRITE | GROUP_WRITES)
    os.umask(before | OTHERS_WRITE | (GROUP_WRITES if os.geteuid() == 0 else 0))


def give_back(paths: Iterable[Path], environment: Mapping[str, str]) -> None:
    """Under sudo, what was made belongs to the user who called it; OSError where that cannot be done.

    A link changes its own owner; a path that is gone is left out.
    """
    if (owner := caller(environment)) is not None:
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                os.chown(path, *owner, follow_symlinks=False)


def give_back_open(descriptor: int, environment: Mapping[str, str]) -> None:
    """The same for a file that is open, whatever its path leads to by now."""
    if (owner := caller(environment)) is not None:
        os.fchown(descriptor, *owner)


def give_back_tree(directory: Path, environment: Mapping[str, str]) -> None:
    """The same for a directory with all that is in it. Directories are opened one below the other and never by their
    path, so that a link in place of one leads nowhere."""
    if (owner := caller(environment)) is None:
        return
    for _, folders, files, descriptor in os.fwalk(directory, topdown=False):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                os.chown(name, *owner, dir_fd=descriptor, follow_symlinks=False)
    give_back([directory], environment)


def check_alone(directory: Path, environment: Mapping[str, str]) -> None:
    """For root, PermissionError where a user other than root and who called sudo can change what lies in a directory,
    or where its path leads: what root writes there, that user could lead elsewhere. One that is not there is judged by
    where it would be made."""
    if os.geteuid() != 0:
        return
    user, group = caller(environment) or (0, 0)
    # In a user namespace the owner of / may have no number.
    believed = {0, user, Path("/").stat().st_uid}
    for place in _looked_into(directory):
        found = place.stat()
        writes = OTHERS_WRITE | (0 if found.st_gid in (0, group) else GROUP_WRITES)
        keeps = found.st_mode & stat.S_ISVTX  # as /tmp does: no user replaces another's files there
        others = found.st_uid not in believed and _is_known(found.st_uid)
        if others or (found.st_mode & writes and not keeps):
            raise PermissionError(errno.EPERM, "other users can write there", str(place))


def _is_known(uid: int) -> bool:
    """Return whether this machine has such a user. In a container, the owner of a host's directory usually does not
    exist."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _looked_into(path: Path) -> list[Path]:
    """The directories in which the system looks for the parts of a path, through links, and at last the directory that
    it leads to, or in which its first part that is not there would be made."""
    found, rest, links = [Path("/")], list(reversed(path.absolute().parts[1:])), 0
    while rest:
        place = found[-1] / rest.pop()
        if place.name == "..":
            found.append(found[-1].parent)
        elif place.is_symlink():
            if (links := links + 1) > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            target = place.readlink()
            rest += reversed(target.parts[target.is_absolute() :])
            found.append(Path("/") if target.is_absolute() else found[-1])
        elif not place.is_dir():
            break
        else:
            found.append(place)
    return found


def private_directory(path: Path) -> Path:
    """A directory that only this user can enter, made where it is not there.

    OSError where something else lies there, as another user may put it into /tmp: nothing is read from it then.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(
            errno.EPERM, "is no directory that only this user owns: remove it, or set TMPDIR", str(path)
        )
    return path


def own_users(environment: Mapping[str, str]) -> frozenset[int]:
    """The users whose files are this user's own: root, this one and, under sudo, the one who called it."""
    user, _ = caller(environment) or (0, 0)
    return frozenset({0, os.geteuid(), user})


def caller(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """User and group of who called sudo; None without sudo."""
    user, group = environment.get("SUDO_UID", ""), environment.get("SUDO_GID", "")
    if os.geteuid() == 0 and user.isdecimal() and group.isdecimal():
        return int(user), int(group)
    return None
