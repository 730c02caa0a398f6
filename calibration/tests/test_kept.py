"""Certificates are found by what a person calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from ewan.calibration import kept, report
from ewan.labs.base.codec import replace
from ewan.labs.record import CERTIFICATE_FILE, CERTIFICATES_FOLDER, Certificate, MachineFacts, Row, to_json

HOST = MachineFacts("6.18", "x86_64", "a CPU", 2, 4 << 30, "tsc", True, {"python": "3.11"})


def certificate(lab: str, clock: Literal["live", "virtual"] = "live") -> Certificate:
    row = Row("core", "forward", "loss", "ppb", 0, 0, 0, 0, "ok")
    made = Certificate("ab" * 32, lab, "2026-11-22T10:00:00Z", HOST, {}, (row,), {}, {}, 10**9)
    return replace(made, clock=clock, time=made.time if clock == "live" else "")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name in ("20261122T100000Z-here", "20261122T110000Z-here-2", "20261122T120000Z-there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / CERTIFICATE_FILE).write_bytes(to_json(certificate(name.split("-")[1])))
    (tmp_path / "20261122T130000Z-begun").mkdir()
    several = tmp_path / "20261121T100000Z-sweep" / CERTIFICATES_FOLDER
    several.mkdir(parents=True)
    for digits in ("aa", "bb"):
        (several / f"{digits}.json").write_bytes(to_json(certificate("sweep", "virtual")))
    return tmp_path


def found(where: str | None, results: Path) -> list[str]:
    return [str(path.relative_to(results)) for path in kept.find(where, results)]


def test_the_last_one_is_that_of_the_newest_directory_with_one(results: Path) -> None:
    assert found(None, results) == ["20261122T120000Z-there/certificate.json"]


def test_a_lab_has_its_newest_and_an_experiment_all_of_its_labs(results: Path) -> None:
    assert found("here", results) == ["20261122T110000Z-here-2/certificate.json"]
    assert found("20261122T100000Z-here", results) == ["20261122T100000Z-here/certificate.json"]
    names = [f"20261121T100000Z-sweep/certificates/{each}.json" for each in ("aa", "bb")]
    assert found("sweep", results) == found(str(results / "20261121T100000Z-sweep"), results) == names
    assert found(str(results / names[0]), results) == names[:1]


@pytest.mark.parametrize(
    ("where", "why"),
    [("nobody", "neither a file or directory, nor a lab"), ("20261122T130000Z-begun", "neither")],
)
def test_what_has_none_is_said_in_a_line(results: Path, where: str, why: str) -> None:
    with pytest.raises(LookupError, match=why):
        kept.find(where, results)
    with pytest.raises(LookupError, match=r"has no certificate.json"):
        kept.find(str(results / "20261122T130000Z-begun"), results)
    with pytest.raises(LookupError, match="no certificate in"):
        kept.find(None, results / "20261122T130000Z-begun")


def test_circumstances_are_those_of_the_clock() -> None:
    live = report.circumstances(certificate("here"))
    assert live[0] == "lab here, live clock, 2026-11-22T10:00:00Z" and "kernel" in live[1]
    virtual = report.circumstances(certificate("here", "virtual"))
    assert virtual[0] == "lab here, virtual clock" and virtual[1].startswith("virtual kernel")
    assert f"plan {'ab' * 32}" in live and f"plan {'ab' * 32}" in virtual
