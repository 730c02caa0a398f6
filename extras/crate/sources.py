"""The project's sources that an experiment was run with: version, commit, the packages of their build.

In: the commit that the experiment's record names, git. Out: `ProjectSources`. Where that commit is not in this clone,
this version's data stand in for it, and `exact` is false."""

from __future__ import annotations

import re
import subprocess
import tomllib
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

from ewan.labs.base.product import INSTALLED, ROOT

LOCK, PROJECT, CRATES, KERNEL = "requirements.lock", "pyproject.toml", "Cargo.lock", "images/kernel/build.py"
EXTRAS = ("report", "containers")
"""Extras whose packages are in the lock file, too."""
NODE = "ewan-node"
"""The package of Cargo.lock whose version is the product's, in every commit."""
DIRTY = "-dirty"
_COMMIT = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
"""The form of the name that `git describe` gives a commit; git takes none such for an option."""
_SSH = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//)[\w./~-]+")
_SCHEMES = ("https", "http", "ssh", "git")


@dataclass(frozen=True, slots=True)
class LockedCrate:
    """A package of Cargo.lock that is of a registry."""

    name: str
    version: str
    checksum: str | None


@dataclass(frozen=True, slots=True)
class ProjectSources:
    """`commit`: None where the record names none; `changed`: the tree had changes beyond it. `exact`: the rest was read
    at that commit. `repository`: the address from which others get it, None where the user gave none."""

    version: str
    commit: str | None
    changed: bool
    exact: bool
    repository: str | None
    runtime_packages: frozenset[str]
    """Names of Python packages that pyproject.toml asks for, tests apart."""
    lock: str
    crates: tuple[LockedCrate, ...]
    kernel_package: str
    kernel_version: str
    """The version of the Debian package that holds the virtual kernel's source."""


def of(commit: str | None, repository: str | None, root: Path = ROOT) -> ProjectSources:
    """The sources at a commit, as an experiment's record names it; of this version where git does not know it."""
    plain = commit.removesuffix(DIRTY) if commit and _COMMIT.fullmatch(commit) else None
    texts = {name: _at(root, plain, name) for name in (LOCK, PROJECT, CRATES, KERNEL)}
    exact = None not in texts.values()
    lock, project, crates, kernel = (
        text if exact and text is not None else (root / name).read_text() for name, text in texts.items()
    )
    described = tomllib.loads(project)["project"]
    optional = described.get("optional-dependencies", {})
    asked = [*described["dependencies"], *(each for name in EXTRAS for each in optional.get(name, ()))]
    packages = tomllib.loads(crates)["package"]
    named = re.compile(r'^(PACKAGE|VERSION) = "([^"]+)"', re.MULTILINE)
    constants = dict(named.findall(kernel))
    return ProjectSources(
        version=next(each["version"] for each in packages if each["name"] == NODE),
        commit=plain,
        changed=bool(commit and commit.endswith(DIRTY)),
        exact=exact,
        repository=repository or origin(root),
        runtime_packages=frozenset(normalised(re.split(r"[<>=!~\[; ]", each)[0]) for each in asked),
        lock=lock,
        crates=tuple(
            LockedCrate(each["name"], each["version"], each.get("checksum")) for each in packages if "source" in each
        ),
        kernel_package=constants["PACKAGE"],
        kernel_version=constants["VERSION"],
    )


def normalised(name: str) -> str:
    """A Python package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def origin(root: Path) -> str | None:
    """The address from which this clone came, for others: without a password, and None for a path of this machine."""
    return shareable(_git(root, "remote", "get-url", "origin") or "")


def shareable(url: str) -> str | None:
    """A repository's address as others may read it; None for an address that means nothing on another machine."""
    url = url.strip()
    parts = urllib.parse.urlsplit(url)
    if parts.scheme in _SCHEMES and parts.hostname:
        user = f"{parts.username}@" if parts.scheme == "ssh" and parts.username else ""
        port = f":{parts.port}" if parts.port else ""
        return urllib.parse.urlunsplit((parts.scheme, f"{user}{parts.hostname}{port}", parts.path, "", ""))
    return url if _SSH.fullmatch(url) else None


def _at(root: Path, commit: str | None, name: str) -> str | None:
    return _git(root, "show", f"{commit}:{name}") if commit else None


def _git(root: Path, *words: str) -> str | None:
    if INSTALLED:  # around an installed package there may be another user's repository
        return None
    try:
        shown = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return shown.stdout if shown.returncode == 0 else None
