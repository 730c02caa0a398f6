"""Makes the archive of the sources: `make sdist`, or `python -m images.wheel.sdist`.

In: a Git work tree whose files are committed. Out: target/wheel/ewan-VERSION.tar.gz, with all files that git knows and
the package's metadata as PKG-INFO. It is the source of the programs in the wheel, and builds like a clone: links stay
links, which hatchling's own archive would leave out or follow. The same commit gives the same bytes.
"""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target/wheel"
EPOCH_S = 1_735_689_600
"""The time of all members: 2025-01-01, as in the virtual kernel."""
EXECUTABLE, ORDINARY = 0o755, 0o644


def main() -> Path:
    """The archive's path."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, check=False)
    if listed.returncode:
        sys.exit("sdist: the files are those that git knows, and this tree has no git")
    names = sorted(name for name in listed.stdout.decode().split("\0") if name)
    if absent := [name for name in names if not (ROOT / name).exists() and not (ROOT / name).is_symlink()]:
        sys.exit(f"sdist: {absent[0]} is known to git and not there")
    builder = WheelBuilder(str(ROOT))
    information = builder.config.core_metadata_constructor(builder.metadata).encode()
    packed = archive(f"ewan-{builder.metadata.version}", names, information)
    TARGET.mkdir(parents=True, exist_ok=True)
    place = TARGET / f"ewan-{builder.metadata.version}.tar.gz"
    place.write_bytes(packed)
    print(place.relative_to(ROOT))
    return place


def archive(top: str, names: list[str], information: bytes) -> bytes:
    """The compressed archive: nothing of the day, the user or the directory is in it."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            path, member = ROOT / name, tarfile.TarInfo(f"{top}/{name}")
            member.mtime = EPOCH_S
            if path.is_symlink():
                member.type, member.linkname = tarfile.SYMTYPE, str(path.readlink())
                tar.addfile(member)
                continue
            content = path.read_bytes()
            member.size = len(content)
            member.mode = EXECUTABLE if path.stat().st_mode & 0o100 else ORDINARY
            tar.addfile(member, io.BytesIO(content))
        member = tarfile.TarInfo(f"{top}/PKG-INFO")
        member.size, member.mtime, member.mode = len(information), EPOCH_S, ORDINARY
        tar.addfile(member, io.BytesIO(information))
    return gzip.compress(plain.getvalue(), mtime=EPOCH_S)


if __name__ == "__main__":
    main()
