"""A submission is data that a stranger made: whatever is handed in is read or refused, in one line, and quickly."""

from __future__ import annotations

import io
import json
import stat
import struct
import time
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ewan.extras.course import submission
from ewan.extras.course.submission import DOCUMENT, NOTEBOOK, Submission, SubmissionError
from tests.extras.course.handed_in import document, handed_in, zipped

GOOD = orjson.dumps(document())
MOST_S = 5.0
MOST_MEMORY = 32 << 20


def read(content: bytes) -> Submission:
    """However hostile: no more than five seconds, no more than 32 MiB."""
    begun = time.monotonic()
    tracemalloc.start()
    try:
        return submission.read(content)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert time.monotonic() - begun < MOST_S, "so long for one submission"
        assert peak < MOST_MEMORY, f"{peak >> 20} MiB for one submission"


def refused(content: bytes) -> str:
    with pytest.raises(SubmissionError) as found:
        read(content)
    line = str(found.value)
    assert "\n" not in line and line.isprintable() and len(line) < 300
    return line


def member(change: Callable[[zipfile.ZipInfo], None], content: bytes = GOOD) -> bytes:
    """A zip whose one member was changed before it was written."""
    file = io.BytesIO()
    info = zipfile.ZipInfo(DOCUMENT)
    info.compress_type = zipfile.ZIP_DEFLATED
    change(info)
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(info, content)
    return file.getvalue()


def test_what_hand_in_packs_is_read_again_and_is_the_same_each_time() -> None:
    told = submission.from_json(GOOD)
    assert read(submission.packed(told)) == told
    assert submission.packed(told) == submission.packed(told)
    assert read(submission.packed(told, b"{}")) == told
    assert told.answers["tuned"] == {"send_buffer": "1MB"}


def test_the_document_alone_is_read_too() -> None:
    """Gradescope unpacks what students upload."""
    assert read(GOOD).student == "4711"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/etc/passwd", "only submission.json"),
        ("../submission.json", "only submission.json"),
        ("a/../submission.json", "only submission.json"),
        ("submission.json/", "only submission.json"),
        ("..\\submission.json", "only submission.json"),
        ("C:\\submission.json", "only submission.json"),
        ("submission.json\x1b[2J", "only submission.json"),
        ("SUBMISSION.JSON", "only submission.json"),
        ("x" * 60_000, "too many members"),
    ],
)
def test_other_names_are_refused(name: str, words: str) -> None:
    assert words in refused(zipped({DOCUMENT: GOOD, name: b"x"}))


def test_a_name_with_nul_is_refused() -> None:
    content = zipped({DOCUMENT + "X/../../a": GOOD}).replace(b"submission.jsonX", b"submission.json\0")
    assert "may be in it" in refused(content)


def test_a_name_twice_is_refused() -> None:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as made:
        warnings.simplefilter("ignore")
        made.writestr(DOCUMENT, GOOD)
        made.writestr(DOCUMENT, b"{}")
    assert "twice" in refused(file.getvalue())


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_links_devices_and_directories_are_refused(kind: int) -> None:
    def change(info: zipfile.ZipInfo) -> None:
        info.external_attr = (kind | 0o777) << 16

    assert "no file" in refused(member(change, b"/etc/passwd"))


def test_encrypted_ones_are_refused() -> None:
    content = bytearray(handed_in())
    start = content.index(b"PK\x01\x02")
    content[start + 8] |= 1
    content[6] |= 1
    assert "encrypted" in refused(bytes(content))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_without_a_limit_are_refused(method: int) -> None:
    assert "method" in refused(zipped({DOCUMENT: GOOD}, method))


def test_a_bomb_that_says_its_size_is_refused() -> None:
    assert "of more than" in refused(zipped({DOCUMENT: bytes(64 << 20)}))


def test_a_bomb_that_hides_its_size_is_refused() -> None:
    """Headers say a hundred bytes, the data expands to 64 MB."""
    content = bytearray(zipped({DOCUMENT: bytes(64 << 20)}))
    start = content.index(b"PK\x01\x02")
    struct.pack_into("<L", content, start + 24, 100)
    struct.pack_into("<L", content, 22, 100)
    refused(bytes(content))


def test_members_that_share_their_data_are_refused() -> None:
    """A bomb without nesting: the members of the list all lie at one place."""
    content = bytearray(zipped({DOCUMENT: GOOD, NOTEBOOK: b"{}"}))
    second = content.rindex(b"PK\x01\x02")
    struct.pack_into("<L", content, second + 42, 0)
    refused(bytes(content))


def test_thousands_of_members_are_refused_before_they_are_looked_at() -> None:
    assert "too many members" in refused(zipped({DOCUMENT: GOOD, **{f"{number}": b"" for number in range(5000)}}))


def test_a_wrong_count_and_size_of_the_list_are_refused() -> None:
    for offset, value in ((8, 60_000), (10, 60_000), (12, 1 << 30), (16, 1 << 31)):
        content = bytearray(handed_in())
        start = content.rindex(b"PK\x05\x06")
        struct.pack_into("<H" if offset < 12 else "<L", content, start + offset, value)
        try:
            assert read(bytes(content)).student == "4711"  # a count is not looked at
        except SubmissionError as error:
            assert "\n" not in str(error)


def test_zip64_is_refused() -> None:
    content = handed_in()
    start = content.rindex(b"PK\x05\x06")
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    assert "zip64" in refused(content[:start] + locator + content[start:])


def test_every_truncated_one_is_refused() -> None:
    content = handed_in()
    for length in range(len(content)):
        refused(content[:length])


def test_every_flipped_byte_is_refused_or_changes_nothing() -> None:
    content = handed_in()
    told = read(content)
    for place in range(len(content)):
        for bit in (1, 128):
            changed = bytearray(content)
            changed[place] ^= bit
            try:
                assert read(bytes(changed)) == told
            except SubmissionError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        b"hello",
        b"\x7fELF" + bytes(100),
        b"Rar!\x1a\x07\x00",
        b"\x1f\x8b\x08" + bytes(64),
        b"%PDF-1.7",
        b"PK\x05\x06",
    ],
)
def test_what_is_no_zip_is_refused(content: bytes) -> None:
    assert "ewan course hand-in" in refused(content)


def test_an_empty_zip_is_refused() -> None:
    assert "has no submission.json" in refused(zipped({}))


def test_a_file_that_is_too_large_is_refused_unread() -> None:
    assert "larger than" in refused(bytes(submission.MOST_BYTES + 1))


def test_something_behind_the_end_is_refused() -> None:
    assert "behind its end" in refused(handed_in() + b"MZ")


@pytest.mark.parametrize(
    "content",
    [
        GOOD.decode().replace("square root", "Wurzel aus π").encode("utf-16"),
        GOOD.replace(b"square root", b"\xfcber"),
        GOOD.replace(b"square root", b"\xed\xa0\x80"),
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b"square root", b"a\nb"),
        GOOD.replace(b'"square root"', b'"\\ud800"'),
        GOOD[:-1],
        GOOD + b"{}",
        b"[" * 100_000,
        b'{"format":' + b"[" * 500_000,
        b'{"answers":' * 50_000,
        b"[]",
        b"null",
        b"1" * 1_000_000,
        b'{"a":' + b"9" * 1_500_000 + b"}",
    ],
)
def test_what_is_no_document_is_refused(content: bytes) -> None:
    refused(zipped({DOCUMENT: content}))


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"format": "ewan-submission/9"}, "format"),
        ({"lab": "../../etc"}, "lab"),
        ({"lab": "bufferbloat\n"}, "lab"),
        ({"student": "47 11"}, "student"),
        ({"student": "../4711"}, "student"),
        ({"student": "=cmd|' /C calc'!A0"}, "student"),
        ({"student": "4711\u202e"}, "student"),
        ({"student": 4711}, "student"),
        ({"content": "0" * 63}, "content"),
        ({"language": "../x"}, "language"),
        ({"answers": {"pipe": None}}, "answers"),
        ({"answers": {"pipe": ["1", "2"]}}, "answers"),
        ({"answers": {"pipe": {"a": {"b": "c"}}}}, "answers"),
        ({"answers": {"pipe": "x" * 20_001}}, "answers"),
        ({"answers": {"pipe": 10**400}}, "out of range"),
        ({"answers": {"pipe": 7}}, "answers"),
        ({"answers": {"pipe": True}}, "answers"),
        ({"answers": {"__class__": "x"}}, "answers"),
        ({"answers": {f"q{number}": "x" for number in range(101)}}, "answers"),
        ({"answers": {"tuned": {f"q{number}": "x" for number in range(101)}}}, "answers"),
        ({"answers": []}, "answers"),
        ({"experiments": [{}]}, "experiments"),
        ({"checks": [{"at": "now", "verdicts": {"pipe": "right"}}] * 1001}, "checks"),
        ({"run": "rm -rf /"}, "run"),
    ],
)
def test_what_a_document_may_not_say_is_refused_by_its_key(changed: dict[str, object], key: str) -> None:
    line = refused(json.dumps(document(**changed)).encode())
    assert key in line


def test_numbers_that_are_none_are_refused() -> None:
    for number in (b"NaN", b"Infinity", b"1e999", b"-1e999"):
        refused(GOOD.replace(b'"42kB"', number))


def test_a_key_twice_counts_once() -> None:
    told = read(GOOD.replace(b'"student"', b'"student":"1","student"'))
    assert told.student == "4711"


def test_compressed_garbage_is_refused() -> None:
    squeezed = zlib.compress(b"x" * 1000)
    content = zipped({DOCUMENT: squeezed}, zipfile.ZIP_STORED)
    refused(content)
    start = content.index(squeezed)
    refused(content[: start + 3] + b"\xff" * 5 + content[start + 8 :])


def test_a_large_honest_one_is_read() -> None:
    """The most that hand-in writes: two limits above all that labs ask."""
    words = {f"q{number}": "wörds " * 3000 for number in range(60)}
    content = handed_in(answers=words)
    assert read(content).answers["q7"] == words["q7"]


def read_or_refused(content: bytes) -> None:
    try:
        submission.read(content)
    except SubmissionError as error:
        assert str(error).isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    read_or_refused(content)
    read_or_refused(b"PK\x03\x04" + content)
    read_or_refused(zipped({DOCUMENT: content}))


@given(st.sampled_from(list(document())), JSON)
@settings(max_examples=300, deadline=None)
def test_any_value_of_any_key_is_read_or_refused(key: str, value: object) -> None:
    read_or_refused(json.dumps(document(**{key: value})).encode())


@given(st.binary(min_size=1, max_size=6), st.integers(0, 10_000), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_splice_is_read_or_refused(piece: bytes, place: int, over: bool) -> None:
    content = handed_in()
    at = place % len(content)
    read_or_refused(content[:at] + piece + content[at + len(piece) * over :])
