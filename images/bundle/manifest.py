"""The contents of a release bundle, and the clones that it fits.

In: a file of a bundle, or a clone. Out: a `Manifest`; BundleError, one line.

A bundle is an xz-compressed tar archive: `manifest.json` first, then each file that the manifest names, with its
SHA-256 and size. Hashes of sources name the origin of the files, so that a bundle serves all clones of these sources,
and no other. This module uses the standard library only, because it runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FORMAT = "ewan-bundle/1"
MANIFEST, NODE, KERNEL, CONFIG, LICENCES = "manifest.json", "ewan-node", "linux", "linux.config", "LICENCES"
HEADERS = "linux.headers.tar.xz"
"""All that a build of a module for the kernel reads (images/kernel/build.py)."""
KERNEL_MACHINE = "x86_64"
"""User-Mode Linux runs only there; a bundle for another machine has the node binary."""
MOST_BYTES = 512 << 20
"""The largest size of a file; a larger file is no bundle."""
MOST_MANIFEST_BYTES = 64 << 10


class BundleError(Exception):
    """A bundle that cannot be used; a line for the user."""


class OtherSourcesError(BundleError):
    """It is whole, but not for this clone or this machine."""


@dataclass(frozen=True, slots=True)
class File:
    """A member of the archive: SHA-256 in hexadecimal digits, bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """`machine` as `uname -m` says it; `node`: the hash of the node binary's sources (images/node/build.sh --sources);
    `kernel`: the virtual kernel's key, and `source`: Debian's archive that it was made of (images/kernel/build.py),
    both empty where the bundle has none; `compilers`: what built them, for people."""

    machine: str
    node: str
    kernel: str
    source: str
    compilers: Mapping[str, str]
    files: Mapping[str, File]

    def name(self) -> str:
        """The bundle's file name."""
        key = hashlib.sha256(f"{self.node} {self.kernel}".encode()).hexdigest()[:12]
        return f"ewan-bundle-{self.machine}-{key}.tar.xz"

    def to_json(self) -> bytes:
        """The same bytes for the same manifest."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, sort_keys=True).encode() + b"\n"


def read(content: bytes) -> Manifest:
    """A manifest; BundleError for any other bytes."""
    try:
        document = json.loads(content)
        if document.pop("format") != FORMAT:
            raise BundleError("its format is another one: it was made by another version of ewan")
        files = {name: File(str(each["sha256"]), int(each["size"])) for name, each in document.pop("files").items()}
        return Manifest(files=files, **document)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BundleError("its manifest cannot be read") from None


def expected(has_kernel: bool) -> tuple[str, ...]:
    """The names of a bundle's files, in their order in the archive."""
    return (LICENCES, NODE, KERNEL, CONFIG, HEADERS) if has_kernel else (LICENCES, NODE)


def node_sources() -> str:
    """The hash of the node binary's sources in this clone."""
    script = ROOT / "images/node/build.sh"
    return subprocess.run([script, "--sources"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
