"""The process of a virtual kernel: the place of its memory, and its CPUs."""

from __future__ import annotations

import os
from pathlib import Path

from ewan.labs.runtime import guests


def test_the_place_of_a_killed_command_is_removed_and_one_in_use_is_not(tmp_path: Path) -> None:
    left = tmp_path / f"{guests.PREFIX}left"
    left.mkdir()
    (left / "memory").write_bytes(b"x")
    stranger = tmp_path / "another-program"
    stranger.mkdir()
    with guests.memory_place(tmp_path) as one, guests.memory_place(tmp_path) as other:
        assert not left.exists()
        assert sorted(tmp_path.iterdir()) == sorted([stranger, one, other])
    assert list(tmp_path.iterdir()) == [stranger]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / f"{guests.PREFIX}link").symlink_to(tmp_path / "kept")
    with guests.memory_place(shared):
        pass
    assert (tmp_path / "kept").exists()


def test_a_guest_is_on_its_cpus_from_its_start_and_its_starter_stays_where_it_is(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    cpu = max(before)
    show = ["sh", "-c", "grep Cpus_allowed_list /proc/self/status > shown"]
    with guests.guest(show, tmp_path, os.open(tmp_path, os.O_RDONLY), {cpu}, tmp_path) as guest:
        guest.wait()
    assert (tmp_path / "shown").read_text().split() == ["Cpus_allowed_list:", str(cpu)]
    assert os.sched_getaffinity(0) == before
