"""`ewan transfer`: a run for each congestion control, its table, and cwnd over time in the record."""

from __future__ import annotations

import csv
from pathlib import Path

import orjson
import pytest

from tests.conftest import Ewan

pytestmark = pytest.mark.virtual

LAB = ("dumbbell", "--rtt", "40ms", "--rate", "10M", "--pairs", "2", "--runtime", "virtual")


def test_each_variant_has_its_own_run_and_series(ewan: Ewan, tmp_path: Path) -> None:
    result = ewan("transfer", *LAB, "--cc", "reno,cubic", "--flows", "2", "--for", "3s", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    document = orjson.loads(result.stdout)
    for variant in ("reno", "cubic"):
        flows = document["flows"][variant]
        assert [flow["name"] for flow in flows] == ["0 left1 to right1", "1 left2 to right2"]
        assert 0.8 * 9.41e6 < sum(flow["goodput_bps"] for flow in flows) < 9.41e6
        with (tmp_path / document["directory"] / variant / "series.csv").open() as file:
            samples = list(csv.DictReader(file))
        for number in ("0", "1"):
            windows = [int(each["cwnd_segments"]) for each in samples if each["flow"] == number]
            assert windows[0] == 10 < max(windows), "the initial window (RFC 6928), and slow start"


def test_a_volume_is_sent_to_its_last_byte(ewan: Ewan, tmp_path: Path) -> None:
    result = ewan("transfer", *LAB, "--volume", "1MB", "--json", cwd=tmp_path)
    (flow,) = orjson.loads(result.stdout)["flows"]["cubic"]
    # 691 segments at 10 Mbit/s take 0.85 s; connecting and slow start some round trips more.
    assert flow["received_bytes"] == 1_000_000
    assert 0.85e9 < flow["completion_ns"] < 0.85e9 + 6 * 40e6


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (("--cc", "vegan"), "congestion control vegan: the virtual kernel has none of that name: write one of "),
        (("--volume", "10"), '--volume "10": write a size as "10kB"'),
        (("--for", "0s"), 'there is nothing to send: write --for "10s" or --volume "100MB"'),
        (("--sample", "1us"), '--sample "1us": write at least "0.1ms", or "0s" for none'),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(ewan: Ewan, tmp_path: Path, wrong: tuple[str, str], says: str) -> None:
    result = ewan("transfer", *LAB, *wrong, cwd=tmp_path)
    assert result.returncode == 2
    assert says in result.stderr.splitlines()[-1]
