"""The checksums of a crate, in the file and in the format that `sha256sum -c` reads.

In: names of files with their SHA-256; or a crate's directory. Out: the file's text; LabError for the first file whose
bytes are not those that it records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ewan.labs.base.reading import MOST_RECORD, read_text
from ewan.labs.record.experiment import checksum, inside
from ewan.labs.runtime.base import LabError

SUMS = "SHA256SUMS"
_LINE = re.compile(r"(\\?)([0-9a-f]{64}) [ *](.+)")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
"""In names of lines that begin with a backslash."""


def text(sums: Mapping[str, str]) -> str:
    """A line for each file, sorted by name; `sums`: SHA-256 in hexadecimal digits by name."""
    return "".join(_line(name, sums[name]) for name in sorted(sums))


def _line(name: str, digest: str) -> str:
    if not {"\n", "\r"} & set(name):
        return f"{digest}  {name}\n"
    return f"\\{digest}  {''.join(_ESCAPES.get(letter, letter) for letter in name)}\n"


def _named(line: re.Match[str]) -> str:
    """The name of a file in a line."""
    plain = {escape: letter for letter, escape in _ESCAPES.items()}
    return re.sub(r"\\[\\nr]", lambda found: plain[found[0]], line[3]) if line[1] else line[3]


def size(names: Iterable[str]) -> int:
    """The size (bytes) of the text for files of these names, whose contents do not matter."""
    return len(text(dict.fromkeys(names, "0" * 64)).encode())


def check(directory: Path, shown: Path | None = None) -> None:
    """LabError where a file of a crate is missing or changed; a directory without checksums is none of a crate.

    `shown` stands for the directory in messages.
    """
    path, named = directory / SUMS, shown or directory
    if not path.exists():
        return
    try:
        # Not splitlines(), which ends lines also where the file has none.
        lines = [_LINE.fullmatch(line) for line in read_text(path, MOST_RECORD).removesuffix("\n").split("\n")]
        recorded = inside({_named(line): line[2] for line in lines if line is not None})
    except OSError as error:
        raise LabError(f"{named}: {SUMS}: {error.strerror}") from None
    except ValueError as error:
        raise LabError(f"{named}: {SUMS}: {error}: take another copy of the crate") from None
    if None in lines:
        number = lines.index(None) + 1
        raise LabError(f"{named}: {SUMS}: line {number} is no checksum of a file: take another copy of the crate")
    for name, wanted in recorded.items():
        file = directory / name
        if not file.is_file():
            raise LabError(f"{named}: {name} is missing, {SUMS} records it: take another copy of the crate")
        if checksum(file) != wanted:
            raise LabError(
                f"{named}: {name} is changed or damaged, its bytes are not those that {SUMS} records: "
                "take another copy of the crate"
            )
