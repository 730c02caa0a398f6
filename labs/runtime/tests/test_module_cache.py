"""What is not used leaves the cache of modules; what a process may need stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ewan.labs.runtime import module_cache

NOW, DAY = 1_000_000_000.0, 86_400.0


def put(place: Path, name: str, days: float) -> None:
    """An entry that was used so many days ago."""
    path = place / name
    if name.endswith((".ko", ".json", ".bpf.o")):
        path.write_text("")
    else:
        path.mkdir()
        (path / "vmlinux.h").write_text("")
    os.utime(path, (NOW - days * DAY, NOW - days * DAY))


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir() if path.name != module_cache.LOCK)


def test_the_headers_that_were_used_last_stay(tmp_path: Path) -> None:
    for number, days in enumerate([9, 2, 5, 3, 4]):
        put(tmp_path, f"headers-{number}", days)
    module_cache.prune(tmp_path, NOW)
    assert names(tmp_path) == ["headers-1", "headers-3", "headers-4"]


def test_what_was_used_within_a_day_stays(tmp_path: Path) -> None:
    for number in range(6):
        put(tmp_path, f"headers-{number}", 0.9)
    put(tmp_path, ".build-running", 0.1)
    before = names(tmp_path)
    module_cache.prune(tmp_path, NOW)
    assert names(tmp_path) == before


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    put(tmp_path, ".build-killed", 2)
    put(tmp_path, ".headers-killed", 2)
    module_cache.prune(tmp_path, NOW)
    assert names(tmp_path) == []


def test_modules_stay_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module_cache.KEPT, "[0-9a-f]*", 2)
    for name, days in (("0a.ko", 5), ("1b.json", 3), ("f2.bpf.o", 2)):
        put(tmp_path, name, days)
    module_cache.prune(tmp_path, NOW)
    assert names(tmp_path) == ["1b.json", "f2.bpf.o"]


def test_nothing_is_removed_while_something_is_looked_up(tmp_path: Path) -> None:
    put(tmp_path, ".build-killed", 2)
    with module_cache.looking(tmp_path):
        module_cache.prune(tmp_path, NOW)
        assert names(tmp_path) == [".build-killed"]


def test_an_entry_that_is_used_is_young_again(tmp_path: Path) -> None:
    put(tmp_path, "0a.ko", 9)
    module_cache.used(tmp_path / "0a.ko", tmp_path / "none")
    assert (tmp_path / "0a.ko").stat().st_mtime > NOW
