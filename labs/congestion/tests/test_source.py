"""A source is read with the headers beside it, and with nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.labs.congestion import source
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.runtime.base import LabError


def write(folder: Path, files: dict[str, str]) -> Path:
    """Writes files; the first is the source."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / next(iter(files))


def test_headers_are_read_through_headers(tmp_path: Path) -> None:
    files = {
        "tcp_mine.c": '#include <net/tcp.h>\n#include "parts/b.h"\n/* #include "c.h" */\n#include "none.h"\n',
        "parts/b.h": '#include "../a.h"\n#include "deep.h"\n',
        "a.h": '#include "parts/b.h"\n',
        "parts/deep.h": "",
        "c.h": "",
    }
    found = source.read(write(tmp_path, files))
    assert list(found.files) == ["tcp_mine.c", "a.h", "parts/b.h", "parts/deep.h"]
    assert found.files == {name: files[name].encode() for name in found.files}


def test_the_digest_is_that_of_the_text_and_of_each_header() -> None:
    alone = ModuleSource("tcp_mine.c", b"a", {})
    assert alone.digest == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    headers = [{"a.h": b"b"}, {"a.h": b"c"}, {"b.h": b"b"}, {"a.h": b"b", "b.h": b""}]
    others = {ModuleSource("tcp_mine.c", b"a", each).digest for each in headers}
    assert len({alone.digest, *others}) == 5


@pytest.mark.parametrize(("file", "name", "bpf"), [("tcp_a.c", "tcp_a", False), ("tcp_a.bpf.c", "tcp_a", True)])
def test_the_file_tells_the_module(file: str, name: str, bpf: bool) -> None:
    found = ModuleSource(file, b"", {})
    assert (found.name, found.bpf) == (name, bpf)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("tcp_mine.c", '\n#include "../other.h"\n', r'tcp_mine\.c:2: "\.\./other\.h" lies outside of the folder'),
        ("tcp_mine.c", '#include "a/../../x.h"\n', r'tcp_mine\.c:1: "a/\.\./\.\./x\.h" lies outside'),
        ("tcp_mine.c", '#include "/etc/passwd"\n', r':1: "/etc/passwd" lies outside of the folder of tcp_mine\.c'),
        ("tcp_mine.c", '#include "control.json"\n', r':1: "control\.json": give it a name of letters'),
        ("tcp_mine.c", '#include "link.h"\n', r':1: "link\.h" is a link out of the folder'),
        ("tcp_mine.c", '#include "large.h"\n', r':1: "large\.h": is larger than 1 MiB'),
        ("tcp_mine.c", "\0", r"tcp_mine\.c: is no text of C"),
        ("tcp-mine.c", "", "such as tcp_mine.c or tcp_mine.bpf.c"),
    ],
)
def test_what_is_no_source_is_refused_with_its_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    folder = tmp_path / "mine"
    path = write(folder, {name: text, "control.json": "{}", "large.h": " " * (source.MOST_BYTES + 1)})
    (tmp_path / "other.h").write_text("")
    (folder / "link.h").symlink_to(tmp_path / "other.h")
    with pytest.raises(LabError, match=said):
        source.read(path)


def test_headers_have_a_size_together(tmp_path: Path) -> None:
    files = {f"h{number}.h": " " * source.MOST_BYTES for number in range(5)}
    text = "".join(f'#include "{name}"\n' for name in files)
    with pytest.raises(LabError, match=r'tcp_mine\.c:4: with "h3\.h" the source has more than 4 MiB'):
        source.read(write(tmp_path, {"tcp_mine.c": text, **files}))


def test_a_program_has_the_kernels_structures_of_its_clock(tmp_path: Path) -> None:
    text = '#include "vmlinux.h"\n#include "mine.h"\n'
    for name in ("tcp_mine.bpf.c", "tcp_mine.c"):
        found = source.read(write(tmp_path, {name: text, "vmlinux.h": "", "mine.h": ""}))
        assert ("vmlinux.h" in found.headers) == (not found.bpf)
