"""Fills the wheel with what is no module: the programs, the sources of the virtual kernel, the page of Studio.

Called by hatchling (pyproject.toml) when a wheel is built; an editable installation needs none of it. In: a source tree
with its compilers, and EWAN_WHEEL_FOR=aarch64 for a wheel for that machine. Out: a map of files to their paths in the
wheel, where they stand as in the source tree (labs/base/product.py). The same sources, compilers and libraries give the
same wheel, byte for byte.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAG = "py3-none-manylinux_2_17_{machine}"
"""The programs are static; Linux 3.17 has all the system calls that glibc 2.17 is for."""
TRIPLE = "{machine}-unknown-linux-gnu"
KERNEL_MACHINE, OTHER_MACHINE = "x86_64", "aarch64"
"""The machine of the virtual kernel, and the one whose wheel has only the node binary, for live labs."""
FOLDERS = ("emulator/kernel", "emulator/model", "images/kernel")
"""The sources of the virtual kernel beside Debian's package, as its licence asks; commands read some of them."""
FILES = (
    "Cargo.lock",
    "Cargo.toml",
    "emulator/traffic/src/congestion_info.json",
    "images/cache.sh",
    "pyproject.toml",
    "requirements.lock",
)
LEFT_OUT = ("tests", "target", "out", "__pycache__")
TERMS = """ewan is under the Apache License 2.0 (LICENSE), as is programs/ewan-node in this package. That program holds
Rust crates, whose licences are in CRATES, and parts of the GNU C library, which is under the GNU Lesser General Public
License, version 2.1 or later (LGPL-2.1). The sources of ewan make the program with any version of that library.

emulator/kernel and the patches in images/kernel are under the GNU General Public License, version 2 or later (GPL-2).
"""
KERNEL_TERMS = """
programs/linux.xz is a Linux kernel, under the GNU General Public License, version 2 (GPL-2), with parts of the GNU C
library. Its source is Debian's package linux-source-6.12 in the version and with the SHA-256
    {source}
which Debian hands out at https://snapshot.debian.org, with the patches, the options and the sources in images/kernel,
emulator/kernel and emulator/model beside this file. images/kernel/build.py builds it of them. Whoever hands this
package on hands that source on too, or offers it for three years to whoever asks.
"""


class BuildError(Exception):
    """A part of the wheel cannot be built here; a line for the user."""


class WheelHook(BuildHookInterface[Any]):
    """See the module."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files; `version`: "standard", or "editable" for an installation of the source tree itself."""
        if version == "editable":
            return
        root = Path(self.root)
        self._made = tempfile.TemporaryDirectory(prefix="ewan-wheel-")
        made = Path(self._made.name)
        machine = os.environ.get("EWAN_WHEEL_FOR") or KERNEL_MACHINE
        if machine not in (KERNEL_MACHINE, OTHER_MACHINE):
            raise BuildError(f"EWAN_WHEEL_FOR={machine}: write {KERNEL_MACHINE} or {OTHER_MACHINE}")
        build_data |= {"pure_python": False, "tag": TAG.format(machine=machine)}
        build_data["force_include"] |= {str(path): f"ewan/{name}" for name, path in contents(root, made, machine)}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what was made only for the wheel."""
        if version != "editable":
            self._made.cleanup()


def contents(root: Path, made: Path, machine: str) -> Iterator[tuple[str, Path]]:
    """The files by their paths in the package; `made`: a folder for those that are no files of the tree."""
    terms = TERMS
    if machine == KERNEL_MACHINE:
        # Where it is there, no other build is waited for.
        kernel = printed(root, "images/kernel/build.sh", "--path") or built(root, "images/kernel/build.sh")
        packed = made / "linux.xz"
        packed.write_bytes(lzma.compress(kernel.read_bytes(), check=lzma.CHECK_CRC64, preset=9))
        yield "programs/linux.xz", packed
        yield "programs/linux.config", kernel.with_name("config")
        terms += KERNEL_TERMS.format(source=(kernel.parents[1] / "cache/source").read_text().strip())
        program, strip = built(root, "images/node/build.sh"), "strip"
    else:
        program = built(root, "images/node/build.sh", "--for", TRIPLE.format(machine=machine))
        strip = f"{machine}-linux-gnu-strip"
    node = made / "ewan-node"
    # Most of the program is debug information.
    subprocess.run([strip, "-o", node, program], check=True)
    node.chmod(0o755)
    yield "programs/ewan-node", node
    for name, text in (("LICENCES", terms), ("CRATES", crates(root, machine)), ("COMMIT", described(root))):
        (made / name).write_text(text)
        yield name, made / name
    page = built(root, "extras/studio/page/build.sh") / "page"
    yield from ((f"studio/{path.relative_to(page)}", path) for path in files(page))
    for folder in FOLDERS:
        yield from ((str(path.relative_to(root)), path) for path in files(root / folder))
    yield from ((name, root / name) for name in FILES)


def files(folder: Path) -> list[Path]:
    """All files below a folder, but for tests and what is built there."""
    below = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in below if not set(LEFT_OUT) & set(path.relative_to(folder).parts)]


def printed(root: Path, script: str, *words: str) -> Path | None:
    """The path that a script of the tree prints last; None where it fails."""
    # What a bundle brought here is not handed on: its compilers are not known.
    environment = {**os.environ, "BUNDLE": "off"}
    done = subprocess.run([root / script, *words], stdout=subprocess.PIPE, text=True, check=False, env=environment)
    lines = done.stdout.splitlines()
    return (root / lines[-1]).resolve() if done.returncode == 0 and lines else None


def built(root: Path, script: str, *words: str) -> Path:
    """The same of a script that builds it where it is missing."""
    if (path := printed(root, script, *words)) is None:
        raise BuildError(f"{script} built nothing (see above), and the wheel needs it")
    return path


def crates(root: Path, machine: str) -> str:
    """The licences of the Rust crates in the node binary, each text once, as the crates have them."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform"]
    done = subprocess.run([*command, TRIPLE.format(machine=machine)], cwd=root, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise BuildError("cargo metadata failed (see above), and the wheel needs the licences of the crates")
    data = json.loads(done.stdout)
    packages = {each["id"]: each for each in data["packages"]}
    uses = {
        node["id"]: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        for node in data["resolve"]["nodes"]
    }
    waiting = [each["id"] for each in data["packages"] if each["name"] == "ewan-node"]
    found: set[str] = set()
    while waiting:
        if (one := waiting.pop()) not in found:
            found.add(one)
            waiting += uses[one]
    foreign = sorted((each for each in map(packages.__getitem__, found) if each["source"]), key=lambda each: each["id"])
    by_text: dict[str, list[str]] = {}
    for each in foreign:
        folder = Path(each["manifest_path"]).parent
        for path in sorted(path for path in folder.iterdir() if re.match(r"(LICEN[CS]E|COPYING|NOTICE)", path.name)):
            by_text.setdefault(path.read_text().strip(), []).append(f"{each['name']} {each['version']}")
    listed = "".join(f"{each['name']} {each['version']}: {each['license']}\n" for each in foreign)
    texts = "".join(f"\n{'-' * 72}\n{', '.join(names)}\n\n{text}\n" for text, names in by_text.items())
    return f"The Rust crates in programs/ewan-node, and the Rust standard library: MIT OR Apache-2.0\n\n{listed}{texts}"


def described(root: Path) -> str:
    """The commit of the source tree, which experiments record; empty without git."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() + "\n"
    except OSError:
        return "\n"
