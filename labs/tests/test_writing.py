"""Files are written whole or not at all."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from labs import writing


def test_a_file_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    writing.write(path, "first\n")
    writing.write(path, b"second\n")
    assert path.read_bytes() == b"second\n" and [each.name for each in tmp_path.iterdir()] == ["x.csv"]


def test_where_there_is_no_room_the_older_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    writing.write(path, "first\n")
    limits, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(OSError) as refused:
            writing.write(path, "much" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert refused.value.filename == str(path)
    assert path.read_text() == "first\n" and [each.name for each in tmp_path.iterdir()] == ["x.csv"]


def test_no_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        writing.write(tmp_path / "none" / "x.csv", "text")
