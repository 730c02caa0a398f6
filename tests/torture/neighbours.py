"""What another user leaves in common places changes, stops and misleads nothing.

Directories and links with the names that workers use, trees of links where root gives files back, processes that call
themselves spinners, entries in a shared store, records of labs: each is made at random as a stranger would.
"""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

from ewan.experiments.store import Store
from ewan.experiments.store.entry import DamagedError, EntryOrigin
from ewan.extras.executors import remote
from ewan.labs.base import ownership
from ewan.labs.base.errors import UserError
from ewan.labs.runtime import spinners
from ewan.labs.runtime.live import LiveRuntime
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.state import Owner
from tests.torture import harness, mutations

TIER = "torture"
QUICK = 100
LONG = 5000

CALLER, STRANGER = 61001, 61002
SUDO = {"SUDO_UID": str(CALLER), "SUDO_GID": str(CALLER)}
KEY = "0" * 64


def trial(seed: int, place: Path) -> None:
    draw = random.Random(seed)
    with harness.within_time():
        draw.choice((_squatted, _links, _called, _entry, _record))(draw, place)


def _squatted(draw: random.Random, place: Path) -> None:
    """A worker's directories are its own."""
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    tmp = place / "tmp"
    tmp.mkdir(mode=0o777)
    usual = tmp / f"ewan-{os.getuid()}"
    kind = draw.choice(("none", "folder", "link", "file", "fifo"))
    match kind:
        case "folder":
            usual.mkdir()
        case "link":
            usual.symlink_to(elsewhere)
        case "file":
            usual.write_text("x")
        case "fifo":
            os.mkfifo(usual)
    if kind in ("folder", "file", "fifo"):
        usual.chmod(draw.choice((0o700, 0o755, 0o777)))
    if kind != "none" and draw.random() < 0.7:
        os.chown(usual, STRANGER, STRANGER, follow_symlinks=False)
    before, tempfile.tempdir = tempfile.tempdir, str(tmp)
    try:
        remote._above.cache_clear()
        remote.provide([b"kernel"])
        path = remote._sent("x").parent
    finally:
        tempfile.tempdir = before
        remote._above.cache_clear()
    for each in (path, path.parent):
        found = each.lstat()
        assert found.st_uid == os.getuid() and found.st_mode & 0o777 == 0o700, f"{kind}: {each}"
    assert not list(elsewhere.iterdir())


def _links(draw: random.Random, place: Path) -> None:
    """Root gives back what is in a directory, and nothing else."""
    outside, directory = place / "outside", place / "results"
    outside.mkdir()
    (outside / "secret").write_text("x")
    directory.mkdir()
    folders = [directory]
    for number in range(draw.randrange(1, 30)):
        path = draw.choice(folders) / f"n{number}"
        match draw.randrange(5):
            case 0:
                path.mkdir()
                folders.append(path)
            case 1:
                path.write_text("x")
            case 2:
                path.symlink_to(draw.choice((outside, outside / "secret", Path("/etc/passwd"), Path("nowhere"), path)))
            case 3:
                os.mkfifo(path)
            case _:
                path.symlink_to(directory, target_is_directory=True)
    before = {path: path.lstat().st_uid for path in (outside, outside / "secret", Path("/etc/passwd"))}
    ownership.give_back_tree(directory, SUDO)
    assert {path: path.lstat().st_uid for path in before} == before
    for top, names, files in os.walk(directory):
        assert all((Path(top) / name).lstat().st_uid == CALLER for name in (*names, *files))


class _Process:
    """What psutil tells of a process."""

    def __init__(self, words: list[str], user: int) -> None:
        self._words, self.real = words, user

    def cmdline(self) -> list[str]:
        return self._words

    def uids(self) -> _Process:
        return self


def _called(draw: random.Random, place: Path) -> None:
    """Of strangers' processes none is a spinner, whatever it calls itself."""
    words = ["ewan-node", "link", "--state", "/run/ewan/x", "--spinner", "0", "--id", "abc"]
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(words) + 1)
        new = mutations.mutated(draw.choice(words).encode(errors="surrogateescape"), draw).decode(
            errors="surrogateescape"
        )
        words[at : at + draw.randrange(2)] = [new]
    user = draw.choice((0, os.getuid(), STRANGER))
    found = spinners.number_of(_Process(words, user), draw.choice((None, "abc")))  # type: ignore[arg-type]
    assert found is None or (user != STRANGER and 0 <= found < 100_000)


def _entry(draw: random.Random, place: Path) -> None:
    """An entry of a shared store gives the bytes that were put in, or none."""
    store, left = Store(place / "store"), place / "left"
    left.write_bytes(content := draw.randbytes(draw.randrange(2000)))
    store.put(KEY, EntryOrigin("run", "s", "x", "1", "", 1, 1), {"left": left})
    path = store.path(KEY)
    strange = draw.random() < 0.5
    path.write_bytes(mutations.mutated(path.read_bytes(), draw) if draw.random() < 0.8 else draw.randbytes(500))
    if strange:
        os.chown(path, STRANGER, STRANGER)
    try:
        found = store.take(KEY, place / "taken")
    except DamagedError as refused:
        assert not strange
        return harness.one_line(str(refused))
    assert found is None if strange else (place / "taken/left").read_bytes() == content


def _record(draw: random.Random, place: Path) -> None:
    """Files in a state directory are read in a line."""
    (place / "x").mkdir()
    mine = Owner(CALLER, "/a")
    documents = {
        "manifest.json": b'{"format": "ewan-manifest/1", "lab": "x", "id": "abc", "namespaces": [], "spinners": 1}',
        "owner.json": b'{"uid": 61001, "checkout": "/a"}',
        "applied.json": b'{"warnings": {}}',
        "plan.json": b'{"format": "ewan-plan/9", "lab": "x"}',
        "down.json": b'{"links": []}',
    }
    for name, content in documents.items():
        if draw.random() < 0.8:
            text = mutations.mutated(content, draw, structured=True) if draw.random() < 0.5 else content
            (place / "x" / name).write_bytes(text)
    for ask in (
        lambda: LiveRuntime(state=place, owner=mine).owners(),
        lambda: NetnsRuntime(state=place).status("x"),
        lambda: NetnsRuntime(state=place).load("x"),
        lambda: LiveRuntime(state=place).runtime_of("x"),
    ):
        try:
            ask()
        except UserError as refused:
            harness.one_line(str(refused))
