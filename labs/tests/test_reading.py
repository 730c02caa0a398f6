"""Reading what others wrote: bounded, and without an effect on the terminal."""

import os
from pathlib import Path

from labs import reading


def test_the_end_of_a_file_is_read_without_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("first\nlast\n")
    assert reading.end_of(path, 100) == ("first\nlast\n", True)
    assert reading.end_of(path, 5) == ("last\n", False)
    os.truncate(path, 10 << 40)
    assert reading.end_of(path, 100) == ("\0" * 100, False)


def test_what_others_wrote_does_nothing_to_a_terminal() -> None:
    assert reading.printable("a\tb\x1b]0;title\x07é", kept="\t") == "a\tb?]0;title?é"
