"""The store: a key for all that decides a result, entries that are whole or absent, and damage that is found."""

from __future__ import annotations

import ast
import dataclasses
import io
import os
import signal
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from click.testing import CliRunner

from ewan.experiments.engine import unit
from ewan.experiments.store import DamagedError, EntryOrigin, Store, choice, entry, key
from ewan.experiments.store import store as store_module
from ewan.experiments.store.cli import store_command
from ewan.experiments.store.store import StoredEntry
from ewan.experiments.tests.engines import CONTEXT, jobs
from ewan.labs.base import codec
from ewan.labs.base.product import ROOT
from ewan.labs.record.schedule import unnamed_to_json

RUN: dict[str, Any] = {
    "plan": "1" * 64,
    "program": "2" * 64,
    "schedule": "3" * 64,
    "kernel": "4" * 64,
    "binary": "5" * 64,
    "tables": "6" * 64,
    "programs": {"ping": "7" * 64},
}
ORIGIN = EntryOrigin("run", "streams", "20260101T000000Z-streams", "seed=1", "2026-01-01T00:00:00+00:00", 5, 4)
KEY = key.of_run(**RUN)


@pytest.fixture
def left(tmp_path: Path) -> dict[str, Path]:
    """The files of a run, by name."""
    contents = {"flows.parquet": os.urandom(3000), "commands/1-left1.out": b"pong\n" * 90, "empty": b""}
    for name, content in contents.items():
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_bytes(content)
    return {name: tmp_path / "run" / name for name in contents}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_key_covers_each_thing_that_decides_a_result() -> None:
    keys = {KEY}
    for name, value in RUN.items():
        keys.add(key.of_run(**{**RUN, name: {"ping": "8" * 64} if name == "programs" else "8" * len(value)}))
    keys.add(key.of_run(**{**RUN, "programs": {}}))
    keys.add(key.of_run(**{**RUN, "programs": {"pin": "g" + "7" * 64}}))
    assert len(keys) == len(RUN) + 3
    # A key of today's is looked for by tomorrow's version: it may change only with `FORMAT`.
    assert KEY == "faa43c14af697121b940023d5d1301b69cee2656c81b81a790d32f1b727c1807"


def test_what_was_asked_for_is_not_in_the_key() -> None:
    """The same plan, program and flows give the same tables, with any names of the scenario and its values."""
    job = jobs()[0]
    named = codec.replace(job.schedule, scenario="another", run="x=1 seed=7", parameters={"x": 1}, seed=7)
    assert named != job.schedule and unnamed_to_json(named) == unnamed_to_json(job.schedule)
    flows = codec.replace(job.schedule, flows=())
    assert unnamed_to_json(flows) != unnamed_to_json(job.schedule)


def test_programs_of_this_machine_are_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs()[0]
    plan = b'{"nodes": [{"services": [{"argv": ["ewan-node", "dhcp"]}], "own": {"exec": [["ip", "link"]]}}]}'
    asked = b'{"commands": [{"argv": ["tool", "-x"]}], "prepare": [{"argv": ["sysctl", "-w"]}]}'
    assert key.program_names(plan, asked) == ["ip", "sysctl", "tool"]
    monkeypatch.setattr(key, "SEARCH", str(tmp_path))
    assert key.program_checksums(plan, asked)["tool"] == key.MISSING
    tool = tmp_path / "tool"
    found = set()
    for text in ("#!/bin/sh\n", "#!/bin/sh\ntrue\n"):
        tool.write_text(text)
        tool.chmod(0o755)
        found.add(key.program_checksums(plan, asked)["tool"])
    assert len(found) == 2
    one, other = (unit.key_of(job.contents, unit.Versions("k", binary)) for binary in "bc")
    assert one == unit.key_of(job.contents, unit.Versions("k", "b")) != other


def test_all_that_makes_tables_is_in_the_key() -> None:
    """Every module that a module of tables imports is in the key, except those that change no table."""
    elsewhere = {
        "ewan.experiments.engine.experiment",
        "ewan.generator.scenario.captures",
        "ewan.generator.scenario.fields",
        "ewan.generator.scenario.flows",
        "ewan.generator.scenario.laws",
    }
    covered = {path.relative_to(ROOT).as_posix() for path in key.sources(key.TABLES)}
    for path in key.sources(key.TABLES):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and node.module.startswith(("ewan.generator", "ewan.experiments"))
            ):
                names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
            for name in names:
                module = f"{name.removeprefix('ewan.').replace('.', '/')}.py"
                known = module in covered or name in elsewhere or not (ROOT / module).exists()
                assert known, f"{path}: imports {name}: write it into key.TABLES"


def test_an_entry_comes_back_as_it_was_put_in(store: Store, left: dict[str, Path], tmp_path: Path) -> None:
    assert store.take(KEY, tmp_path) is None and not store.has(KEY)
    told = store.put(KEY, ORIGIN, left)
    assert store.has(KEY) and store.manifest(KEY) == told and store.verify(KEY) == told
    assert store.take(KEY, tmp_path / "back") == told
    for name, path in left.items():
        assert (tmp_path / "back" / name).read_bytes() == path.read_bytes()
    found = store.read(KEY)
    assert found is not None and found[1] == {name: path.read_bytes() for name, path in left.items()}
    (listed,) = store.entries()
    assert (listed.key, listed.bytes) == (KEY, store.path(KEY).stat().st_size)
    # The same results from the same origin are the same bytes; `tar` unpacks them.
    assert entry.packed(told, left) == store.path(KEY).read_bytes()
    listing = subprocess.run(["tar", "--zstd", "-tf", store.path(KEY)], capture_output=True, text=True, check=True)
    assert listing.stdout.splitlines() == ["manifest.json", *sorted(left)]


def test_any_byte_that_is_changed_or_missing_is_found(store: Store, left: dict[str, Path], tmp_path: Path) -> None:
    told = store.put(KEY, ORIGIN, left)
    whole = store.path(KEY).read_bytes()
    contents = {name: path.read_bytes() for name, path in left.items()}
    places = [*range(0, len(whole), 7)]
    spoiled = [whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :] for at in places]
    spoiled += [whole[:at] for at in (0, 1, len(whole) // 2, len(whole) - 1)]
    found = 0
    for content in spoiled:
        try:
            assert entry.read(io.BytesIO(content), KEY) == (told, contents), "changed, and taken for whole"
        except DamagedError:
            found += 1
    assert found > len(spoiled) * 0.99, "but for bytes that say nothing, like a bit that is reserved"


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "", "a\0b"])
def test_an_entry_of_others_leaves_its_place_nowhere(store: Store, left: dict[str, Path], name: str) -> None:
    told = entry.manifest(KEY, ORIGIN, left)
    evil = codec.replace(told, files={name: entry.File(0, "")})
    store.put_packed(KEY, entry.packed(codec.replace(evil, files={}), {}))
    assert store.verify(KEY) is not None
    with pytest.raises(DamagedError, match=r"outside of its place|is no whole archive"):
        store.put_packed(KEY, _with_manifest(evil))
        store.verify(KEY)
    with pytest.raises(DamagedError, match=r"is the entry of"):
        entry.read_manifest(io.BytesIO(entry.packed(told, left)), "0" * 64)


def _with_manifest(told: entry.Manifest) -> bytes:
    """An entry that has only its manifest."""
    text = codec.compact(told)
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        info = tarfile.TarInfo(entry.MANIFEST)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return zstandard.ZstdCompressor().compress(plain.getvalue())


def test_a_damaged_entry_is_set_aside_and_found_no_more(store: Store, left: dict[str, Path]) -> None:
    store.put(KEY, ORIGIN, left)
    store.path(KEY).write_bytes(b"cut off")
    with pytest.raises(DamagedError, match="is no whole archive"):
        store.manifest(KEY)
    aside = store.set_aside(KEY)
    assert aside is not None and aside.read_bytes() == b"cut off" and store.leavings() == [aside]
    assert not store.has(KEY) and list(store.entries()) == []


def test_links_in_a_folder_of_another_user_lead_nowhere(
    store: Store, left: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, folder = tmp_path / "other", store.path(KEY).parent
    other.mkdir()
    (other / "file").write_bytes(b"root's")
    folder.mkdir(parents=True)
    store.path(KEY).symlink_to(other / "file")
    assert not store.has(KEY), "a link is no entry"
    with monkeypatch.context() as known:
        known.setattr(store_module, "_own", lambda: "known")
        (folder / f".{KEY}.known").symlink_to(other / "file")
        with pytest.raises(FileExistsError):
            store.put(KEY, ORIGIN, left)
    store.put(KEY, ORIGIN, left)
    assert store.has(KEY) and not store.path(KEY).is_symlink()
    (store.root / "damaged").symlink_to(other)
    assert store.set_aside(KEY) is None
    folder.rename(store.root / "away")
    folder.symlink_to(other)
    with pytest.raises(NotADirectoryError):
        store.put(KEY, ORIGIN, left)
    assert [(path.name, path.read_bytes()) for path in other.iterdir()] == [("file", b"root's")]


def test_what_another_user_keeps_to_himself_is_as_if_it_were_not_there(
    store: Store, left: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is not damaged, and is left where it is."""
    store.put(KEY, ORIGIN, left)

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(store_module, "open_regular", refused)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not store.has(KEY) and store.take(KEY, tmp_path / "back") is None and store.manifest(KEY) is None


def test_a_writer_that_is_killed_leaves_no_entry(store: Store, left: dict[str, Path], tmp_path: Path) -> None:
    """SIGKILL in the middle of a put: nothing is found, and the next one puts it there."""
    text = (
        "import sys, time\nfrom pathlib import Path\nfrom ewan.experiments.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "def write(to):\n    to.write(b'half'); to.flush(); print('half', flush=True); time.sleep(60)\n"
        "store._write(sys.argv[2], write)\n"
    )
    command = [sys.executable, "-c", text, str(store.root), KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "half\n"
        writer.send_signal(signal.SIGKILL)
    assert not store.has(KEY) and list(store.entries()) == []
    (half,) = store.path(KEY).parent.iterdir()
    assert store.leavings() == [], "it may still be written"
    os.utime(half, (1, 1))
    assert store.leavings() == [half]
    assert store.put(KEY, ORIGIN, left) == store.verify(KEY)


def test_writers_and_readers_at_once_see_whole_entries(store: Store, left: dict[str, Path]) -> None:
    told = entry.manifest(KEY, ORIGIN, left)
    wrong: list[object] = []

    def work(writes: bool) -> None:
        for _ in range(25):
            try:
                found = store.put(KEY, ORIGIN, left) if writes else store.verify(KEY)
                assert found in (told, None)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(number % 2 == 0,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and store.verify(KEY) == told
    assert [path.name for path in store.path(KEY).parent.iterdir()] == [store.path(KEY).name]


def test_nothing_but_our_own_is_removed(store: Store, left: dict[str, Path]) -> None:
    """The root may be a directory with other files in it."""
    store.put(KEY, ORIGIN, left)
    others = [store.root / name for name in ("ab/.profile", "ab/x.tar.zst", "damaged/thesis.tex", "notes")]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
        os.utime(path, (1, 1))
    assert store.leavings() == [] and [each.key for each in store.entries()] == [KEY]


def listed(key: str, seconds: float, size: int, scenario: str = "a") -> choice.EntryListing:
    told = entry.Manifest(key, codec.replace(ORIGIN, scenario=scenario), {})
    return choice.EntryListing(StoredEntry(key, Path(key), size, seconds), told)


def test_what_is_chosen() -> None:
    entries = [listed("new", 30, 10), listed("old", 10, 40, "b"), listed("mid", 20, 50)]
    entries.append(choice.EntryListing(StoredEntry("bad", Path("bad"), 1, 15), None, "is no whole archive"))

    def keys(**asked: Any) -> list[str]:
        return [each.found.key for each in choice.chosen(entries, choice.EntryChoice(**asked))]

    assert keys() == ["old", "bad", "mid", "new"]
    assert keys(before=15) == ["old", "bad"] and keys(experiment="b") == ["old"]
    assert keys(experiment=ORIGIN.experiment) == ["old", "mid", "new"] and keys(keys={"mid"}) == ["mid"]
    assert keys(most_bytes=101) == [] and keys(most_bytes=100) == ["old"] and keys(most_bytes=60) == ["old", "bad"]
    assert keys(most_bytes=0) == ["old", "bad", "mid", "new"]
    assert keys(most_bytes=100, experiment="a") == ["mid"], "of the others nothing goes"


def test_the_command_shows_verifies_and_removes(store: Store, left: dict[str, Path]) -> None:
    context = dataclasses.replace(CONTEXT, store=store.root)

    def said(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(store_command, words, obj=context)
        return result.exit_code, result.output

    assert orjson.loads(said("list", "--json")[1])["entries"] == []
    store.put(KEY, ORIGIN, left)
    other = key.of_run(**{**RUN, "plan": "9" * 64})
    store.put(other, codec.replace(ORIGIN, scenario="another"), left)
    status, shown = said("list", "--json")
    assert (status, [each["scenario"] for each in orjson.loads(shown)["entries"]]) == (0, ["streams", "another"])
    assert said("verify", "--json")[0] == 0
    store.path(other).write_bytes(store.path(KEY).read_bytes())
    status, shown = said("verify", "--json")
    (damaged,) = orjson.loads(shown)["damaged"]
    assert status == 1 and damaged["key"] == other and "is the entry of" in damaged["damage"]
    assert not store.has(other)
    for words, why in {
        (): "what may go?",
        ("--older-than", "30"): 'write how long ago, like "30d"',
        ("--larger-than", "30"): 'write a size as "30kB"',
    }.items():
        status, shown = said("prune", *words)
        assert status == 2 and why in shown
    assert said("prune", "--older-than", "1d", "--json")[0] == 0 and store.has(KEY) and not store.leavings()
    assert said("prune", "--experiment", "streams")[0] == 0 and not store.has(KEY)
    context = dataclasses.replace(CONTEXT, store=None)
    assert said() == (2, "ewan: EWAN_STORE=off: there is no store: leave it out, or name a directory\n")


def test_an_entry_that_says_it_is_too_large_is_not_unpacked(
    store: Store, left: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = store.put(KEY, ORIGIN, left)
    monkeypatch.setattr(entry, "MOST_BYTES", told.bytes - 1)
    with pytest.raises(DamagedError, match="an entry has at most 0 MiB"):
        store.take(KEY, tmp_path / "place")
    assert not (tmp_path / "place").exists()
