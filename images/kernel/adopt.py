"""A virtual kernel that was built elsewhere, of the sources of this clone, in this cache.

In: the kernel, its configuration, the stated origin of both. Out: the place that a build here would have given
them, so that nothing else asks where a kernel comes from.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from images.kernel.build import HERE, VERSION, Build, lock, whole, write_sum


def key_of(source: str) -> str:
    """The key of the kernel that this clone's sources and Debian's archive `source` (its identity, as the cache notes
    it) make; empty for an archive of another version."""
    return _build(Path(), source).key() if source.startswith(f"{VERSION} ") else ""


def adopt(target: Path, key: str, source: str, kernel: Path, configuration: Path) -> bool:
    """Moves both into `target`, the cache's directory of kernels; whether this clone will use them.

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
            kernel.chmod(0o755)
            kernel.rename(scratch / "linux")
            configuration.rename(scratch / "config")
            write_sum(scratch / "linux")
            shutil.rmtree(place, ignore_errors=True)
            scratch.rename(place)
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
