"""The last verification of a lab: the newest certificate, also while it is not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ewan.calibration.tests.test_kept import certificate
from ewan.extras.studio.tests.test_experiments_area import client_of
from ewan.labs.base.codec import replace
from ewan.labs.record import CERTIFICATE_FILE, SO_FAR_FILE, Row, to_json

ROWS = (
    Row("core", "forward", "delay p50", "ns", 10_000_000, 10_020_000, 20_000, 100_000, "ok"),
    Row("core", "forward", "rate", "bit/s", 10**8, 9 * 10**7, -(10**7), 10**5, "outside", "<b>taken</b>"),
)


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    return client_of(tmp_path)


def keep(here: Path, name: str, file: str, rows: tuple[Row, ...]) -> Path:
    path = here / "results" / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_json(replace(certificate("wan"), rows=rows)))
    return path


def asked(client: TestClient, lab: str = "wan") -> Any:
    answer = client.get(f"/api/labs/{lab}/verification")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_lab_that_nobody_measured_has_none(client: TestClient, tmp_path: Path) -> None:
    assert asked(client) is None
    keep(tmp_path, "20261122T100000Z-other", CERTIFICATE_FILE, ROWS)
    assert asked(client) is None


def test_rows_come_and_the_certificate_takes_their_place(client: TestClient, tmp_path: Path) -> None:
    keep(tmp_path, "20261122T100000Z-wan", CERTIFICATE_FILE, ROWS[:1])
    assert asked(client)["whole"] and asked(client)["passed"]

    part = keep(tmp_path, "20261122T110000Z-wan", SO_FAR_FILE, ())
    assert not asked(client)["whole"] and asked(client)["rows"] == []
    keep(tmp_path, "20261122T110000Z-wan", SO_FAR_FILE, ROWS[:1])
    found = asked(client)
    assert [row[:2] for row in found["rows"]] == [["core →", "delay p50"]] and found["words"] == ""

    keep(tmp_path, "20261122T110000Z-wan", CERTIFICATE_FILE, ROWS)
    part.unlink()
    found = asked(client)
    assert found["whole"] and not found["passed"] and "NOT verified" in found["words"]
    assert found["rows"][1][-1] == "1" and found["notes"] == ["<b>taken</b>"]
    assert found["directory"] == "results/20261122T110000Z-wan" and found["advice"]


def test_nothing_of_other_places_is_read(client: TestClient, tmp_path: Path) -> None:
    keep(tmp_path / "elsewhere", "20261122T100000Z-wan", CERTIFICATE_FILE, ROWS)
    (tmp_path / "results").mkdir()
    (tmp_path / "results/20261122T100000Z-wan").symlink_to(tmp_path / "elsewhere/results/20261122T100000Z-wan")
    assert asked(client) is None
    for lab in ("..", "%2e%2e%2felsewhere", "wan%00", "*", "<b>"):
        answer = client.get(f"/api/labs/{lab}/verification")
        assert answer.status_code in (404, 400) or answer.json() is None


def test_one_of_another_version_is_none(client: TestClient, tmp_path: Path) -> None:
    path = tmp_path / "results/20261122T100000Z-wan" / CERTIFICATE_FILE
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert asked(client) is None
