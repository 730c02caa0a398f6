"""Builds the container images and loads them: lists, lock and ewan-node in, `ewan/<kind>:<version>` out.

Called through build-images.sh. Standard output carries one line per image, its name (or its archive where no engine
is there to load it); progress and errors (one line, status 2) go to standard error. The directory --kept, which all
clones share (images/cache.sh), holds the packages in `debs` and the file systems as `<kind>-<key>.rootfs.tar`, the key
being the hash of what went in. The clone's own target/images holds the finished archives, `<kind>.tar`.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ewan.labs import images
from images.container import archive, container_engine, packages, rootfs
from images.container.packages import ImagesError, Lock, Package
from images.locks import hold

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 2  # file systems that are built at the same time
NEWEST = 4  # file systems of a kind that stay when another one is built


def say(what: str) -> None:
    """One line on standard error."""
    print(f"images: {what}", file=sys.stderr, flush=True)


def node_binary() -> Path:
    """The ewan-node that goes into the images. Raises ImagesError where it is not built."""
    path = Path(os.environ.get("EWAN_NODE") or ROOT / "target/release/ewan-node")
    if not path.exists():
        raise ImagesError(f"{path} is not there: make setup")
    return path


def current_lock(target: Path) -> Lock:
    """The lock in force; written anew where RELOCK is set. Raises ImagesError."""
    if os.environ.get("RELOCK") == "1":
        say(f"asking the mirror for the packages of {packages.RELEASE} (a new lock)")
        lock = packages.resolve(target)
        packages.LOCK.write_text(lock.write())
        say(f"{packages.LOCK.relative_to(ROOT)}: {len(lock.packages)} packages as of {lock.date}")
        return lock
    if not packages.LOCK.exists():
        raise ImagesError(f"{packages.LOCK} is missing: {packages.RELOCK}")
    lock = packages.read_lock(packages.LOCK.read_text())
    if lock.architecture != packages.architecture():
        raise ImagesError(f"the lock is for {lock.architecture}, this is {packages.architecture()}: {packages.RELOCK}")
    return lock


def place(kind: str, lock: Lock, kept: Path) -> Path:
    """The file in which an image's file system is kept; its name has the hash of everything that it depends on."""
    wanted = [*packages.wanted(packages.BASE), *packages.wanted(kind)]
    parts = [lock.key(packages.BASE), lock.key(kind), lock.date, *wanted, Path(rootfs.__file__).read_text()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return kept / f"{kind}-{key}.rootfs.tar"


def note_of(path: Path) -> Path:
    """The file with a file system's SHA-256: written last, so that what has one is complete."""
    return path.with_suffix(".sha256")


def file_system(kind: str, lock: Lock, kept: Path) -> archive.Layer:
    """The layer of an image's packages, built where it is not there yet (upon the base, which is)."""
    own = kind if packages.wanted(kind) else packages.BASE
    path = place(own, lock, kept)
    if not note_of(path).exists():
        begin = time.monotonic()
        below = None if own == packages.BASE else place(packages.BASE, lock, kept)
        count = len(lock.of(own)) - (len(lock.of(packages.BASE)) if below else 0)
        say(f"{own}: installing {count} packages")
        rootfs.build(own, lock, kept / "debs", path, below)
        note_of(path).write_text(archive.digest(path))
        say(f"{own}: file system of {path.stat().st_size / 1e6:.0f} MB in {time.monotonic() - begin:.0f} s")
        remove_oldest(own, kept)
    note_of(path).touch()
    return archive.Layer(path, note_of(path).read_text(), f"Debian {lock.release} with the packages of {lock.date}")


def remove_oldest(kind: str, kept: Path) -> None:
    """Leaves the `NEWEST` file systems of a kind that were used last: other clones may have other locks."""
    notes = sorted(kept.glob(f"{kind}-*.rootfs.sha256"), key=lambda note: note.stat().st_mtime)
    for note in notes[:-NEWEST]:
        note.unlink()
        note.with_suffix(".tar").unlink(missing_ok=True)


def file_systems(kinds: list[str], lock: Lock, kept: Path) -> dict[str, archive.Layer]:
    """The layers of several images: what is lacking is downloaded at once, then the base is built, then the others."""
    own = [kind if packages.wanted(kind) else packages.BASE for kind in kinds]
    lacking = [kind for kind in dict.fromkeys(own) if not note_of(place(kind, lock, kept)).exists()]
    if lacking:
        rootfs.need_mmdebstrap()
        names: dict[str, Package] = {package.name: package for kind in lacking for package in lock.of(kind)}
        megabytes = sum(package.size for package in names.values()) / 1e6
        say(f"{len(names)} Debian packages ({megabytes:.0f} MB) for {', '.join(lacking)}")
        begin = time.monotonic()
        if count := packages.fetch(lock, list(names.values()), kept / "debs"):
            say(f"{count} of them downloaded in {time.monotonic() - begin:.0f} s")
        file_system(packages.BASE, lock, kept)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(kinds, pool.map(lambda kind: file_system(kind, lock, kept), kinds), strict=True))


def build(kinds: list[str], kept: Path, target: Path) -> dict[str, tuple[Path, dict[str, str]]]:
    """Makes the archives in `target`; gives each kind's archive and labels. Raises ImagesError."""
    binary = node_binary()
    with hold(kept / ".file-systems.lock", _say_waiting):
        lock = current_lock(kept)
        layers = file_systems(kinds, lock, kept)
    node = archive.node_layer(binary, target / "ewan-node.tar", lock.epoch)
    built = {}
    for kind in kinds:
        labels = archive.labels(images.digest(binary), lock.key(kind))
        both = [layers[kind], node]
        config = archive.configuration(kind, both, labels, lock.architecture, lock.epoch)
        path, note = target / f"{kind}.tar", target / f"{kind}.id"
        identity = f"docker.io/{images.IMAGES[kind]} {hashlib.sha256(config).hexdigest()}"
        if not (path.exists() and note.exists() and note.read_text() == identity):
            note.unlink(missing_ok=True)
            archive.write(path, images.IMAGES[kind], config, both, lock.epoch)
            note.write_text(identity)
        built[kind] = (path, labels)
    return built


def deliver(built: dict[str, tuple[Path, dict[str, str]]], *, to_engine: bool) -> None:
    """Loads what the engine does not have yet; without one, says how to."""
    command = container_engine.find() if to_engine else None
    if not command:
        for path, _ in built.values():
            print(path)
        if to_engine:
            first = next(iter(built.values()))[0]
            say(f"no container engine answers: start Docker and run make images again, or docker load -i {first} …")
        return
    for kind, (path, labels) in built.items():
        name = images.IMAGES[kind]
        there = container_engine.inspect(command, name)
        if not there or any(there[1].get(label) != value for label, value in labels.items()):
            container_engine.load(command, name, path)
            there = container_engine.inspect(command, name)
            say(f"{name} loaded into {command}" + (f", {there[2] / 1e6:.0f} MB" if there else ""))
        print(name)


def _say_waiting() -> None:
    say("another build is running: waiting for it")


def main(arguments: list[str] | None = None) -> int:
    """The program; its exit status: 2 for what the person who called it can put right."""
    parser = argparse.ArgumentParser(prog="build-images.sh", description="Builds the container images if needed.")
    choices = [*images.KINDS, *images.EXTRAS]
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(choices)}; else all but the last")
    parser.add_argument("--archives", action="store_true", help="load nothing: print the archives' paths")
    parser.add_argument("--kept", type=Path, required=True, help="where packages and file systems are kept")
    parser.add_argument("--target", type=Path, default=ROOT / "target/images", help="where the archives go")
    options = parser.parse_args(arguments)
    target: Path = options.target.resolve()
    try:
        if unknown := [kind for kind in options.kinds if kind not in choices]:
            raise ImagesError(f'there is no image "{unknown[0]}": write one of {", ".join(choices)}')
        # Another file than that of the file systems, which may be kept in the same directory.
        with hold(target / ".lock", _say_waiting):
            built = build(options.kinds or list(images.KINDS), options.kept.resolve(), target)
            deliver(built, to_engine=not options.archives)
    except ImagesError as error:
        say(str(error))
        return 2
    except OSError as error:
        reason = "no space left: 2 GB are needed" if error.errno == errno.ENOSPC else error.strerror
        say(f"{error.filename or target}: {reason}")
        return 2
    except KeyboardInterrupt:
        say("interrupted; what is built so far is kept")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
