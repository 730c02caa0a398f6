"""Flipped bits of caches: what was built, fetched or kept is used with the bytes that it had, or not at all.

A program with its note, a package that was downloaded, and an entry of the store are changed at random: in place, cut
off, or by another file.
"""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from ewan.experiments.store import Store
from ewan.experiments.store.entry import DamagedError, EntryOrigin
from ewan.labs.runtime import whole
from ewan.labs.runtime.base import LabError
from images.container import packages
from images.kernel import build
from tests.torture import harness, mutations

TIER = "torture"
QUICK = 100
LONG = 5000

KEY = "0" * 64


def trial(seed: int, place: Path) -> None:
    draw = random.Random(seed)
    content = draw.randbytes(draw.choice((1, 100, 20_000)))
    with harness.within_time():
        draw.choice((_program, _package, _entry))(draw, place, content)


def _changed(draw: random.Random, path: Path, content: bytes) -> bytes:
    """The file's bytes after a change, in place or by another file."""
    change = draw.choice((mutations.flipped, mutations.flipped, mutations.flipped, mutations.cut_off, mutations.moved))
    new = change(content, draw)
    if draw.random() < 0.3:
        path.unlink()
    path.write_bytes(new)
    return new


def _program(draw: random.Random, place: Path, content: bytes) -> None:
    path = place / "linux"
    path.write_bytes(content)
    build.write_sum(path)
    new = _changed(draw, path, content)
    assert build.whole(path) == (new == content)
    whole.check.cache_clear()
    try:
        whole.check(path, "build it anew")
    except LabError as refused:
        assert new != content
        return harness.one_line(str(refused))
    assert new == content


def _package(draw: random.Random, place: Path, content: bytes) -> None:
    digest = hashlib.sha256(content).hexdigest()
    package = packages.Package("x", "1", "debian", "pool/x_1_all.deb", len(content), digest, ("host",))
    path = place / package.file
    path.write_bytes(content)
    new = _changed(draw, path, content)
    assert packages._is_there(package, place) == (new == content)


def _entry(draw: random.Random, place: Path, content: bytes) -> None:
    store, left = Store(place / "store"), place / "left"
    left.write_bytes(content)
    store.put(KEY, EntryOrigin("run", "s", "x", "1", "", 1, 1), {"left": left})
    _changed(draw, store.path(KEY), store.path(KEY).read_bytes())
    try:
        assert store.take(KEY, place / "taken") is not None
    except DamagedError as refused:
        return harness.one_line(str(refused))
    assert (place / "taken/left").read_bytes() == content
