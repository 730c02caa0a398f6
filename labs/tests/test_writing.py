"""Files are written whole or not at all."""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest

from ewan.labs.base import writing
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.state import State
from ewan.labs.runtime.state_documents import DONE, SettingsChange


def test_a_file_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    writing.write(path, "first\n")
    writing.write(path, b"second\n")
    assert path.read_bytes() == b"second\n" and [each.name for each in tmp_path.iterdir()] == ["x.csv"]


def test_threads_that_write_the_same_file_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, texts, opened, open_it = (
        tmp_path / "x.csv",
        ["a" * 9, "b" * 9],
        threading.Barrier(2, timeout=10),
        writing.anew,
    )

    def open_and_wait(new: Path) -> IO[bytes]:
        file = open_it(new)
        opened.wait()
        return file

    monkeypatch.setattr(writing, "anew", open_and_wait)
    with ThreadPoolExecutor(len(texts)) as threads:
        list(threads.map(writing.write, [path] * len(texts), texts))  # an error of one of them is raised here
    assert path.read_text() in texts and [each.name for each in tmp_path.iterdir()] == ["x.csv"]


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may be larger than 1000 bytes."""
    limits, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.usefixtures("small_files")
def test_where_there_is_no_room_the_older_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    writing.write(path, "first\n")
    with pytest.raises(OSError) as refused:
        writing.write(path, "much" * 1000)
    assert refused.value.filename == str(path)
    assert path.read_text() == "first\n" and [each.name for each in tmp_path.iterdir()] == ["x.csv"]


@pytest.mark.usefixtures("small_files")
def test_a_line_that_finds_no_room_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with writing.journal(path) as descriptor:
        writing.add_line(path, descriptor, b"first\n")
        with pytest.raises(OSError) as refused:
            writing.add_line(path, descriptor, b"much" * 1000)
        assert (refused.value.filename, path.read_text()) == (str(path), "first\n")
        writing.add_line(path, descriptor, b"second\n")
    assert path.read_text() == "first\nsecond\n"


@pytest.mark.usefixtures("small_files")
def test_what_was_done_in_a_lab_stays_readable_after_a_line_that_found_no_room(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    state = State(tmp_path)
    first, second = (
        SettingsChange(1, "core", "both", {"delay": "1ms"}),
        SettingsChange(2, "core", "both", {"down": "true"}),
    )
    state.add("x", DONE, first)
    with pytest.raises(LabError, match="File too large"):
        state.add("x", DONE, SettingsChange(1, "core", "both", {"delay": "x" * 1000}))
    state.add("x", DONE, second)
    assert state.lines(SettingsChange, "x", DONE) == [first, second]


def test_no_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        writing.write(tmp_path / "none" / "x.csv", "text")
