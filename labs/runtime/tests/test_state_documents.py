"""Documents of a lab's state directory: what version 0.1 left is read, and what is damaged is said with its place."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import zstandard

from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.state import Owner, State
from ewan.labs.runtime.state_documents import APPLIED, DONE, AppliedPlan, SettingsChange
from tests.conftest import ROOT

LAB = "made01"


def test_what_version_0_1_left_of_a_lab_is_read(tmp_path: Path) -> None:
    packed = (ROOT / "tests/made_by_0_1/lab-that-is-up.tar.zst").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompressobj().decompress(packed))) as archive:
        archive.extractall(tmp_path, filter="data")
    state = State(tmp_path)
    head, applied = state.manifest(LAB), state.read(AppliedPlan, LAB, APPLIED)
    assert head is not None and (head.format, len(head.id)) == ("ewan-manifest/1", 32)
    assert applied is not None and applied.namespaces == 5 and list(applied.warnings.values()) == [4]
    assert state.owner(LAB) == Owner(0, "/srv/ewan")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", r"manifest\.json: it is \[\], not an object"),
        ("{", r"manifest\.json: is no JSON"),
        ('{"format": "ewan-manifest/1"}', r"manifest\.json: has no key 'id'"),
        ('{"format": "ewan-manifest/1", "id": 7}', r"manifest\.json: id is 7, not a string"),
    ],
)
def test_a_damaged_manifest_is_said_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / LAB).mkdir()
    (tmp_path / LAB / "manifest.json").write_text(text)
    with pytest.raises(LabError, match=says):
        State(tmp_path).manifest(LAB)


def test_a_line_that_says_no_change_is_said_with_its_place(tmp_path: Path) -> None:
    (tmp_path / LAB).mkdir()
    (tmp_path / LAB / DONE).write_text('{"due_unix_ns": 1, "link": "core", "direction": "up", "words": {}}\n{"due')
    with pytest.raises(LabError, match=r"done\.jsonl: direction is 'up'"):
        State(tmp_path).lines(SettingsChange, LAB, DONE)
