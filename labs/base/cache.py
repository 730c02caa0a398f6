"""The user's cache directory, which all clones share: the same place that images/cache.sh names for scripts.

In: the environment. Out: a directory of the cache for one kind of thing. Where there is no cache, it is in this
project's target/, or, for an installed package, in the system's directory for temporary files. Under sudo it is the
cache of the user who called it.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ewan.labs.base import ownership, writing
from ewan.labs.base.errors import UserError
from ewan.labs.base.product import INSTALLED

TAG = "CACHEDIR.TAG"
SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55\n# Built by ewan; make clean CACHE=1 removes it.\n"


class NoCacheError(UserError, OSError):
    """Neither a cache nor the project can be written."""


def root(environment: Mapping[str, str]) -> Path | None:
    """The cache's directory; None with EWAN_CACHE=off, or without a home. UserError for a path that is not absolute."""
    named = environment.get("EWAN_CACHE", "")
    if named == "off":
        return None
    if named:
        if not named.startswith("/"):
            raise UserError(f"EWAN_CACHE={named}: write an absolute path, or off")
        return Path(named)
    wanted = environment.get("XDG_CACHE_HOME", "")
    if wanted.startswith("/"):
        return Path(wanted) / "ewan"
    own = home(environment)
    return own / ".cache/ewan" if own is not None else None


def data(environment: Mapping[str, str], kind: str) -> Path | None:
    """The folder of things of a kind that the user added, which need not exist; None without a home. It is below the
    data directory (XDG Base Directory Specification), under sudo that of the user who called it."""
    wanted = environment.get("XDG_DATA_HOME", "")
    if wanted.startswith("/"):
        return Path(wanted) / "ewan" / kind
    found = home(environment)
    return None if found is None else found / ".local/share/ewan" / kind


def home(environment: Mapping[str, str]) -> Path | None:
    """The user's home; under sudo that of the user who called it. None without one."""
    if (found := ownership.caller(environment)) is not None:
        try:
            return Path(pwd.getpwuid(found[0]).pw_dir)
        except KeyError:
            return None
    return Path(environment["HOME"]) if environment.get("HOME") else None


def kept(environment: Mapping[str, str], kind: str, project: Path) -> Path:
    """The directory for things of this kind, made; in the project's target/ where the cache cannot be written, or
    for an installed package in the system's directory for temporary files.

    No other user reads a user's own cache, or holds a lock in it. NoCacheError where neither can be.
    """
    cache = root(environment)
    if cache is not None:
        try:
            _make(cache / kind, environment)
            if not environment.get("EWAN_CACHE"):
                with suppress(PermissionError):
                    cache.chmod(0o700)
            if not (cache / TAG).exists():
                writing.write(cache / TAG, SIGNATURE)
                ownership.give_back([cache / TAG], environment)
            if os.access(cache / kind, os.W_OK):
                return cache / kind
        except OSError:
            pass  # a home that cannot be written
    place = project / "target" / kind
    try:
        if INSTALLED:  # an installed package is only read
            place = ownership.private_directory(Path(tempfile.gettempdir()) / f"ewan-{os.geteuid()}") / kind
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoCacheError(
            f"{error.filename or place}: {error.strerror}, and there is no cache: let EWAN_CACHE be a directory that "
            "you may write"
        ) from None
    return place


def _make(place: Path, environment: Mapping[str, str]) -> None:
    if place.is_dir():
        return
    _make(place.parent, environment)
    place.mkdir(exist_ok=True)
    ownership.give_back([place], environment)
