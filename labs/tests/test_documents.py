"""Documents that machines wrote are checked where they are read: kind of file, size, JSON, types."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from ewan.labs import record
from ewan.labs.base import documents
from ewan.labs.base.codec import Struct
from ewan.labs.base.documents import DocumentError
from ewan.labs.record import MachineFacts, Row, Uncertainty, experiment, summary


class Small(Struct):
    """A document."""

    kind: Literal["a", "b"]
    counts: tuple[int, ...]
    share: float | None = None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"kind": "c", "counts": []}', """kind is "c\""""),
        (b'{"kind": "a"}', "has no key 'counts'"),
        (b'{"kind": "a", "counts": [1, 2.5]}', "counts[1] is 2.5"),
        (b'{"kind": "a", "counts": [true]}', "counts[0] is True"),
        (b'{"kind": "a", "counts": ["1"]}', "counts[0] is '1'"),
        (b'{"kind": "a", "counts": [], "more": 1}', "has an unknown key 'more'"),
        (b'{"kind": "a", "counts": [%s]}' % (b"9" * 5000), "counts[0] is a number out of range"),
        (b'{"kind": "a", "counts": [], "share": NaN}', "is no JSON"),
        (b"[" * 100_000, "is wrong, not an object"),
        (b"\xff\xfe", "is no JSON: JSON is malformed"),
        (b"", "is no JSON"),
        (b"[]", "it is []"),
        (b'{"kind": "a", "counts": "%s"}' % (b"x" * 100_000), "counts is 'xxxx"),
    ],
)
def test_a_wrong_document_is_refused_in_a_line_with_its_place(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "small.json"
    path.write_bytes(content)
    with pytest.raises(DocumentError) as refused:
        documents.read(Small, path)
    line = str(refused.value)
    assert line.startswith(f"{path}: ") and why.replace('"c"', "'c'") in line
    assert len(line) < 400 and line.isprintable()


def test_a_right_document_is_a_value() -> None:
    assert documents.parse(Small, b'{"kind": "a", "counts": [1], "share": 1}', "it") == Small("a", (1,), 1.0)


def test_no_file_but_a_regular_one_of_a_bounded_size_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "memory").symlink_to("/proc/self/mem")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 30)
    for name, why in {
        "fifo": "is not a regular file",
        "memory": "is not a regular file",
        "zero": "is not a regular file",
        "folder": "is a directory",
        "large": "is larger than 256 MiB",
    }.items():
        with pytest.raises(DocumentError, match=f"^{re.escape(str(tmp_path / name))}: {why}"):
            documents.read(Small, tmp_path / name)
    with pytest.raises(FileNotFoundError):
        documents.read(Small, tmp_path / "none")


CERTIFICATE = record.Certificate(
    plan_sha256="0" * 64,
    lab="x",
    time="",
    host=MachineFacts("6.12", "x86_64", "cpu", 2, 1 << 30, "tsc", True, {"python": "3.11"}),
    tolerances={},
    rows=(
        Row("wan", "forward", "rate", "bit/s", 1e9, 1e9, 0, 1e6, "ok", uncertainty=Uncertainty({"clock": 1.0}, 2.0)),
    ),
    probes={},
    spinners={},
    elapsed_ns=1,
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("clock", "sundial"),
        ("policy", "lenient"),
        ("elapsed_ns", "1"),
        ("elapsed_ns", True),
        ("elapsed_ns", 1.5),
        ("probes", []),
        ("lab", None),
        ("rows", {}),
        ("rows.0", None),
        ("rows.0.verdict", "splendid"),
        ("rows.0.measured", "1"),
        ("rows.0.needs", 2.5),
        ("rows.0.colour", "red"),
        ("rows.0.uncertainty.expanded", None),
        ("rows.0.uncertainty.components", {"clock": "x"}),
        ("host.cpus", "2"),
        ("host.versions", {"python": 3}),
        ("machines", {"a": {}}),
    ],
)
def test_a_certificate_with_any_wrong_type_is_refused(path: str, value: Any) -> None:
    document = orjson.loads(record.to_json(CERTIFICATE))
    *outer, last = path.split(".")
    place = document
    for key in outer:
        place = place[int(key) if key.isdigit() else key]
    place[int(last) if last.isdigit() else last] = value
    with pytest.raises(DocumentError, match="not a certificate: ") as refused:
        record.from_json(orjson.dumps(document))
    assert last in str(refused.value) or "machines" in str(refused.value)


def test_a_certificate_is_read_as_it_was_written() -> None:
    assert record.from_json(record.to_json(CERTIFICATE)) == CERTIFICATE


@pytest.mark.parametrize("points", [None, [3], [{"parameters": {}, "metrics": []}], [{"parameters": {"a": []}}]])
def test_a_summary_of_wrong_types_is_refused(tmp_path: Path, points: Any) -> None:
    document = {"format": summary.FORMAT, "status": "complete", "points": points, "runs": [], "beside": []}
    (tmp_path / summary.FILE).write_bytes(orjson.dumps(document))
    with pytest.raises(DocumentError, match=r"summary\.json: .*points"):
        summary.read(tmp_path)


@pytest.mark.parametrize("content", [b"[%s{}]" % (b"{}," * 30), b"[%s1]" % (b"1," * 100), b"[" * 40])
def test_a_document_of_more_values_than_any_is_not_parsed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(documents, "MOST_VALUES", 100)
    monkeypatch.setattr(documents, "MOST_FOLDED", 30)
    monkeypatch.setattr(orjson, "loads", lambda content: pytest.fail("it was parsed"))
    with pytest.raises(DocumentError, match=r"it: has more values than any record of a lab"):
        documents.json_of(content, "it")
    with pytest.raises(DocumentError, match=r"experiment\.json: has more values"):
        experiment.from_json(content, Path("x"))
