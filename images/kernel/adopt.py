"""A virtual kernel that was built elsewhere, of the sources of this clone, in this cache.

In: the kernel, its configuration, the headers for its modules, the stated origin of them. Out: the place that a build
here would have given them, so that nothing else asks where a kernel comes from.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from images.kernel.build import HERE, VERSION, Build, lock, whole, write_sum


def key_of(source: str) -> str:
    """The key of the kernel that this clone's sources and Debian's archive `source` (its identity, as the cache notes
    it) make; empty for an archive of another version."""
    return _build(Path(), source).key() if source.startswith(f"{VERSION} ") else ""


def adopt(target: Path, key: str, source: str, files: Sequence[Path]) -> bool:
    """Moves files into `target`, the cache's directory of kernels: `linux` and what stands beside it; whether this
    clone will use them.

    A cache in which kernels are built of another archive keeps to that.
    """
    (target / "cache").mkdir(parents=True, exist_ok=True)
    with lock(target) as held:
        build = Build(target, HERE / "patches", [HERE / "fragment.config"], held)
        note = build.source.note
        if note.exists() and note.read_text().strip() != source:
            if build.tree.exists():
                print("kernel: this cache builds its own, of another archive of Debian's", file=sys.stderr)
                return False
            note.unlink()
        place, scratch = target / key, target / f"{key}.new"
        if not (place / "linux").exists() or not whole(place / "linux"):
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            for file in files:
                file.rename(scratch / file.name)
            (scratch / "linux").chmod(0o755)
            write_sum(scratch / "linux")
            shutil.rmtree(place, ignore_errors=True)
            scratch.rename(place)
        for file in files:
            if not (place / file.name).exists():
                file.rename(place / file.name)  # a kernel of the same sources may stand there without it
        # The last: by the note a kernel is looked for.
        if not note.exists():
            new = note.with_name("source.new")
            new.write_text(source + "\n")
            new.rename(note)
        build.publish(key)
    return True


def _build(target: Path, source: str) -> Build:
    """The build of this clone, with `source` in place of its archive's identity."""
    build = Build(target, HERE / "patches", [HERE / "fragment.config"], None)
    build.source.known = source
    return build
