"""Reading what others wrote: bounded, and without an effect on the terminal."""

import os
from pathlib import Path

import pytest

from ewan.labs.base import reading
from ewan.labs.record import experiment


def test_the_end_of_a_file_is_read_without_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("first\nlast\n")
    assert reading.end_of(path, 100) == ("first\nlast\n", True)
    assert reading.end_of(path, 5) == ("last\n", False)
    os.truncate(path, 10 << 40)
    assert reading.end_of(path, 100) == ("\0" * 100, False)


def test_what_others_wrote_does_nothing_to_a_terminal() -> None:
    assert reading.printable("a\tb\x1b]0;title\x07é", kept="\t") == "a\tb?]0;title?é"


def test_a_file_of_holes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "links.parquet"
    path.write_bytes(b"x")
    files = {path.name: experiment.checksum(path)}
    assert experiment.damage(tmp_path, path.name, files) == ""
    os.truncate(path, 1 << 40)
    assert "has holes in place of nearly all of its bytes" in experiment.damage(tmp_path, path.name, files)
    with pytest.raises(OSError, match="has holes"):
        reading.open_regular(path, 2 << 40)
