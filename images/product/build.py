"""Builds the container image of the product itself: what pip installs, upon the file system of the image of hosts.

In: the wheel in target/wheel, the packages' lock. Out: target/images/ewan.tar, which `docker load` and `podman load`
take, and the image in the engine that answers. The virtual clock runs in it as an ordinary user. Python's packages are
those of requirements.lock; every time stamp is the lock's date.
"""

from __future__ import annotations

import argparse
import gzip
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from ewan import __version__
from ewan.labs import images
from images.container import archive, build, container_engine
from images.container.packages import ImagesError
from images.locks import hold

ROOT = Path(__file__).resolve().parents[2]
NAME = f"{images.REPOSITORY}/ewan:{__version__}"
PYTHON = "3.11"
"""The version of Debian 12, whose packages are the file system."""
PLACE = "opt/ewan"
HOME = "home/ewan"
LAUNCHER = b'#!/bin/sh\nexec python3 -P /opt/ewan/ewan/cli.py "$@"\n'
USER = 1000
SETTINGS = {
    "Entrypoint": ["ewan"],
    "Cmd": ["--help"],
    "User": str(USER),
    "WorkingDir": f"/{HOME}",
}


def wheel() -> Path:
    """The wheel of this version; ImagesError where it is not made."""
    found = sorted((ROOT / "target/wheel").glob(f"ewan-{__version__}-*_{platform.machine()}.whl"))
    if not found:
        raise ImagesError("target/wheel has no wheel of this version: make wheel")
    return found[-1]


def versions(lock: str) -> str:
    """The versions of a lock file, as pip takes them for constraints."""
    return "".join(f"{line}\n" for line in re.findall(r"^[\w.-]+==[^ ]+", lock, re.MULTILINE))


def install(file: Path, folder: Path) -> None:
    """Installs the wheel and what it needs into a folder. ImagesError with pip's last line where that fails."""
    constraints = folder.with_suffix(".constraints")
    constraints.write_text(versions((ROOT / "requirements.lock").read_text()))
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-compile", "--only-binary=:all:"]
    words += ["--python-version", PYTHON, "--target", str(folder), "-c", str(constraints), str(file)]
    done = subprocess.run([sys.executable, "-P", "-m", "pip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImagesError(f"pip: {(done.stderr.strip() or 'unknown reason').splitlines()[-1]}")


def layer(file: Path, target: Path, epoch: int) -> archive.Layer:
    """The layer of the product. The files' order, owners and times are the same each time."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime, entry.mode = epoch, 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return None if entry.name.startswith(f"{PLACE}/bin/") else entry

    with tempfile.TemporaryDirectory(prefix="ewan-product-") as scratch:
        folder = Path(scratch) / "packages"
        install(file, folder)
        new = target.with_suffix(".new")
        with tarfile.open(new, "w", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(folder.rglob("*")):
                tar.add(path, f"{PLACE}/{path.relative_to(folder)}", recursive=False, filter=plain)
            archive.add(tar, "usr/local/bin/ewan", LAUNCHER, epoch, 0o755)
            archive.add(tar, f"usr/local/lib/python{PYTHON}/dist-packages/ewan.pth", b"/opt/ewan\n", epoch)
            home = tarfile.TarInfo(HOME)
            # Whoever runs it, also as another user than the image says, writes results here.
            home.type, home.mode, home.uid, home.gid, home.mtime = tarfile.DIRTYPE, 0o1777, USER, USER, epoch
            tar.addfile(home)
        new.rename(target)
    return archive.Layer(target, archive.digest(target), f"ewan {__version__}")


def make(kept: Path, target: Path) -> Path:
    """Makes the archive. Raises ImagesError."""
    target.mkdir(parents=True, exist_ok=True)
    with hold(kept / ".file-systems.lock"):
        lock = build.current_lock(kept)
        system = build.file_systems(["host"], lock, kept)["host"]
    file = wheel()
    layers = [system, layer(file, target / "ewan-product.tar", lock.epoch)]
    labels = {images.VERSION_LABEL: __version__, "org.opencontainers.image.title": "ewan"}
    settings = {**SETTINGS, "Env": [f"PATH={archive.SEARCHED}", "LC_ALL=C.UTF-8", f"HOME=/{HOME}"]}
    config = archive.configuration("ewan", layers, labels, lock.architecture, lock.epoch, settings)
    made = target / "ewan.tar"
    small = [packed(each, target) for each in layers]
    archive.write(made, NAME, config, small, lock.epoch)
    for each in (*small, layers[1]):
        each.file.unlink()
    return made


def packed(each: archive.Layer, target: Path) -> archive.Layer:
    """A layer whose file is compressed; its name is still the digest of what is in it, as engines want it."""
    file = target / f"ewan-{each.sha256[:12]}.tar.gz"
    with each.file.open("rb") as source, file.open("wb") as sink, gzip.GzipFile("", "wb", 4, sink, mtime=0) as pack:
        shutil.copyfileobj(source, pack, 1 << 20)
    return archive.Layer(file, each.sha256, each.what)


def main() -> None:
    """Make the image, load it where an engine answers, and print its name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--archive", action="store_true", help="only make the archive")
    asked = parser.parse_args()
    try:
        made = make(asked.kept, ROOT / "target/images")
        build.say(f"{made.relative_to(ROOT)}: {made.stat().st_size / 1e6:.0f} MB")
        engine = None if asked.archive else container_engine.find()
        if engine:
            done = subprocess.run([*engine, "load", "-q", "-i", str(made)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise ImagesError(f"{engine} load: {done.stderr.strip().splitlines()[-1]}")
        print(NAME if engine else made)
    except ImagesError as error:
        build.say(str(error))
        sys.exit(2)


if __name__ == "__main__":
    main()
