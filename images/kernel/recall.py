"""Tells a cache of which archive of Debian's its kernels were made, where it has kernels and no note of that.

Kernels are named by all that goes into them, the archive too: without the note it would be downloaded, 150 MB, to
compute the name of a kernel that is there. In: the cache's directory of kernels. The archive's hash is in the index
that apt has fetched; the note is written where it names a kernel of today's sources that is there and whole.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from images.kernel.adopt import key_of
from images.kernel.build import PACKAGE, VERSION, whole


def recall(target: Path) -> bool:
    """Restore the note from a kernel in the cache, and return whether the note exists now."""
    note = target / "cache/source"
    if note.exists():
        return True
    source = f"{VERSION} {VERSION} {_listed()}"
    kernel = target / key_of(source) / "linux"
    if not (kernel.exists() and whole(kernel)):
        return False
    note.parent.mkdir(exist_ok=True)
    note.write_text(f"{source}\n")
    return True


def _listed() -> str:
    """The SHA-256 of the archive by apt's index; empty where it has none."""
    try:
        shown = subprocess.run(["apt-cache", "show", f"{PACKAGE}={VERSION}"], capture_output=True, text=True).stdout
    except OSError:
        return ""
    found = re.search(r"^SHA256: ([0-9a-f]{64})$", shown, re.MULTILINE)
    return found[1] if found else ""


if __name__ == "__main__":
    recall(Path(sys.argv[1]))
