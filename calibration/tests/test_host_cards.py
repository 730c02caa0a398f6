"""Network cards of a host: what they say of themselves, and interfaces that say little or are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.calibration import lab_cards
from ewan.calibration.host import cards, paths
from ewan.calibration.host.buffers import read_buffers
from ewan.calibration.host.cards import NetworkCard, read_card
from ewan.calibration.host.paths import PathMeasurements
from ewan.labs.base import codec
from ewan.labs.record.machine_load import LabCard
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.inspections import CardFacts


def test_the_loopback_says_little_and_is_read() -> None:
    found = read_card("lo")
    assert (found.driver, found.speed_bps, found.rings_packets) == (None, None, ())
    assert found.mtu_bytes == int(Path("/sys/class/net/lo/mtu").read_text())
    # The kernel's own, for want of a card; the loopback leaves segments whole on every Linux.
    assert "tso" in found.offloads and "rx-software" in found.time_stamps
    assert not found.stamps_in_hardware


def test_a_card_is_what_its_files_and_the_answers_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "eth9"
    (place / "device").mkdir(parents=True)
    (tmp_path / "drivers/ixgbe").mkdir(parents=True)
    (place / "device/driver").symlink_to(tmp_path / "drivers/ixgbe")
    (place / "speed").write_text("10000\n")
    (place / "mtu").write_text("9000\n")
    answers = {
        cards.GET_RINGS: (4096, 0, 0, 4096, 512, 0, 0, 1024),
        cards.GET_TIME_STAMPS: (0b1011111, *[0] * 9),
        cards.OFFLOADS["tso"]: (1,),
        cards.OFFLOADS["gro"]: (0,),
    }
    monkeypatch.setattr(cards, "_ask", lambda name, command, words: answers.get(command, ()))
    found = read_card("eth9", tmp_path)
    stamps = ("tx-hardware", "tx-software", "rx-hardware", "rx-software", "software", "raw-hardware")
    assert found == NetworkCard("eth9", "ixgbe", 10**10, 9000, (512, 1024), ("tso",), stamps)
    whole = PathMeasurements(0, (), (), (), read_buffers(), "needs root", {}, (found,))
    assert codec.decode(PathMeasurements, codec.sorted_line(whole), "paths") == whole
    told = next(each for each in paths.findings(whole) if each.what == "card eth9")
    assert told.found == "10Gbit/s, MTU 9000, offloads on: tso; stamps packets itself"


@pytest.mark.parametrize("speed", ["-1\n", "damaged\n"])
def test_a_port_without_a_cable_has_no_speed(tmp_path: Path, speed: str) -> None:
    (tmp_path / "eth9").mkdir()
    (tmp_path / "eth9/speed").write_text(speed)
    assert read_card("eth9", tmp_path).speed_bps is None


@pytest.mark.parametrize("name", ["eth77", "../net/lo"])
def test_an_interface_that_is_not_there_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(LabError, match=r"there is none of this name: write one of .*lo"):
        read_card(name)


def test_cards_of_a_lab_say_whether_they_stamp_packets() -> None:
    place = "enp1s0", "left1", "eth0"
    found = lab_cards.facts([CardFacts(*place, 10**9, 0b101), CardFacts(*place, None, 0b11010)])
    assert [each.stamps_in_hardware for each in found] == [True, False]
    assert found[1] == LabCard("enp1s0", "eth0", "left1", None, False, ("tx-software", "rx-software", "software"))
