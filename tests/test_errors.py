"""Bad input: one line that says what, where and what to write instead; exit status 2; nothing created."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Ewan

CASES = {
    "bare number": (["lab", "dumbbell", "--rtt", "100"], ["100", "100ms"]),
    "rate per second per second": (["lab", "dumbbell", "--rate", "1 Gbps/s"], ["1 Gbps/s", "1Gbit/s"]),
    "negative delay": (["lab", "dumbbell", "--rtt", "-5ms"], ["-5ms"]),
    "loss above one": (["lab", "dumbbell", "--loss", "120%"], ["120%", "100"]),
    "unknown topology": (["lab", "dumbell"], ["dumbell", "dumbbell"]),
    "ready lab misspelt": (["lab", "satelite"], ["satelite", "satellite"]),
    "rate below the range": (["lab", "dumbbell", "--rate", "1kbit/s"], ["1kbit/s", "8kbit/s"]),
    "rate above the range": (["lab", "dumbbell", "--rate", "4Tbit/s"], ["4Tbit/s", "1Tbit/s"]),
    "buffer below one packet": (["lab", "dumbbell", "--buffer", "100B"], ["100B", "packet"]),
    "no pairs": (["lab", "dumbbell", "--pairs", "0"], ["0"]),
    "MTU": (["lab", "dumbbell", "--mtu", "100"], ["100", "576"]),
    "option out of range": (["run", "udp-cbr", "--seeds", "0"], ["--seeds", "0", "x>=1"]),
    "word too many": (["run", "udp-cbr", "twice"], ["twice", "ewan run --help"]),
    "no such command": (["lub"], ["lub", "ewan --help"]),
    "no experiment": (["exp", "resume", "setup.sh"], ["setup.sh", "experiment.json"]),
    "missing file": (["lab", "nowhere.lab.yaml"], ["nowhere.lab.yaml"]),
    "name of two lines": (["lab", "compile", "star", "--name", "a\nb"], ["a b", "small letters"]),
    "command of two lines": (["lab\nup"], ["lab", "up", "ewan --help"]),
    "device": (["run", "/dev/zero"], ["/dev/zero", ".yaml"]),
    "other people's file": (["run", "/etc/passwd"], ["/etc/passwd", ".yaml"]),
}


@pytest.mark.parametrize(("arguments", "says"), CASES.values(), ids=CASES.keys())
def test_refused_in_one_line(ewan: Ewan, state: Path, arguments: list[str], says: list[str]) -> None:
    result = ewan(*arguments)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    for words in says:
        assert words in result.stderr
    assert not list(state.glob("*/manifest.json"))


DESCRIPTIONS = {
    "unknown key": ("topology: dumbbell\nwan:\n  rate: 1Gbit/s\n  bandwith: 1Gbit/s\n", 4, ["bandwith"]),
    "bare number": ("topology: dumbbell\nrtt: 100\n", 2, ["100", "ms"]),
    "wrong unit": ("topology: star\nwan: {rate: 1 Gbps/s}\n", 2, ["1 Gbps/s", "1Gbit/s"]),
    "negative delay": ("topology: dumbbell\nlinks:\n  core:\n    delay: -1ms\n", 4, ["-1ms"]),
    "loss": ("topology: dumbbell\nwan:\n  loss: 101%\n", 3, ["101%"]),
    "RTT below the access delays": ("topology: dumbbell\nrtt: 1ms\naccess:\n  delay: 10ms\n", 2, ["1ms"]),
    "not YAML": ("topology: [dumbbell\n", 2, []),
}


@pytest.mark.parametrize(("text", "line", "says"), DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
def test_a_file_is_refused_with_its_line(ewan: Ewan, tmp_path: Path, text: str, line: int, says: list[str]) -> None:
    path = tmp_path / "bad.lab.yaml"
    path.write_text(text)
    result = ewan("lab", "compile", str(path), "-o", str(tmp_path / "out"))
    assert result.returncode == 2, result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert f"bad.lab.yaml:{line}:" in result.stderr
    for words in says:
        assert words in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "command",
    ["lab exec left1 -- true", "lab shell left1", "down nobody", "lab verify", "lab watch", "lab set core rate=1G"],
)
def test_without_a_lab_the_command_says_how_to_get_one(ewan: Ewan, command: str) -> None:
    result = ewan(*command.split())
    assert result.returncode == 2
    assert "lab" in result.stderr and len(result.stderr.strip().splitlines()) == 1
