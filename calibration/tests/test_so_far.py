"""What is known while a lab is measured: told now and then, kept until the whole certificate is there."""

from __future__ import annotations

from pathlib import Path

from ewan.calibration import kept, report, so_far
from ewan.calibration.tests.test_kept import certificate
from ewan.labs.record import CERTIFICATE_FILE, SO_FAR_FILE, Certificate, to_json


class Clock:
    """Seconds that pass when somebody says so."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_telling_takes_a_tenth_of_the_time_at_most() -> None:
    clock, told = Clock(), []
    teller = so_far.PartialCertificateWriter(lambda known: told.append(clock.seconds), clock)

    def slow() -> Certificate:
        clock.seconds += 1
        return certificate("here")

    for _ in range(200):
        teller.offer(slow)
        clock.seconds += 0.5
    assert len(told) > 5
    assert len(told) / (clock.seconds - 100) <= 0.1 + 0.01


def test_rows_are_there_until_the_certificate_is(tmp_path: Path) -> None:
    directory = tmp_path / "20261122T100000Z-here"
    directory.mkdir()
    assert kept.newest("here", tmp_path) is None
    so_far.write(directory)(certificate("here"))
    assert kept.newest("here", tmp_path) == directory / SO_FAR_FILE
    assert report.read(directory / SO_FAR_FILE).rows == certificate("here").rows
    (directory / CERTIFICATE_FILE).write_bytes(to_json(certificate("here")))
    assert kept.newest("here", tmp_path) == directory / CERTIFICATE_FILE
    so_far.forget(directory)
    assert kept.newest("here", tmp_path) == directory / CERTIFICATE_FILE
    assert kept.newest("there", tmp_path) is None


def test_where_there_is_no_room_the_measuring_goes_on(tmp_path: Path) -> None:
    so_far.write(tmp_path / "gone")(certificate("here"))
    so_far.forget(tmp_path / "gone")
