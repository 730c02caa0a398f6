"""Metrics of a link that the kernel emulates, in the virtual clock, where every packet can be counted."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from ewan.labs.context import Context
from tests.conftest import Ewan

pytestmark = pytest.mark.virtual

PACKETS, LIMIT, RATE_BPS = 100, 20, 100_000_000
# ping's 1400 bytes with the headers of ICMPv6 and IPv6, and what the link's framing adds.
FRAME_BYTES = 1400 + 8 + 40 + 38


def samples(page: str) -> dict[str, float]:
    """Each sample of direction `forward` by its name, and by its cause where it has one."""
    found = {}
    for line in page.splitlines():
        if 'direction="forward"' in line:
            name, value = line.split(" ")
            cause = name.partition('cause="')[2].partition('"')[0]
            found[name.split("{")[0] + (f" {cause}" if cause else "")] = float(value)
    return found


@pytest.fixture(scope="module")
def outputs(ewan: Ewan, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What ping said of a burst that the link's queue could not hold, and the page after it."""
    directory = tmp_path_factory.mktemp("kernel")
    shutil.copy(Context.of(os.environ).binary, directory / "ewan-node")
    done = ewan(
        *(
            "lab",
            "batch",
            "dumbbell",
            "--name",
            "kernelpage",
            "--rtt",
            "20ms",
            "--rate",
            "100Mbit/s",
            "--buffer",
            f"{LIMIT}pkt",
        ),
        *("--emulator", "kernel", "--ip", "6", "--dither", "0", "--runtime", "virtual"),
        *("--do", f"left1: ping -q -c {PACKETS} -s 1400 -f -l {PACKETS} right1"),
        *("--do", "left1 at 1s: ./ewan-node metrics --state /run/ewan/kernelpage --once"),
        cwd=directory,
    )
    # ping says by its status that packets were lost.
    found = [path.read_text() for path in sorted(directory.glob("results/*/commands/*-left1.out"))]
    assert len(found) == 2 and all(found), done.stderr
    return found[0], found[1]


@pytest.fixture(scope="module")
def page(outputs: tuple[str, str]) -> str:
    return outputs[1]


def test_packets_go_out_or_have_a_cause(outputs: tuple[str, str]) -> None:
    said, page = outputs
    (received,) = map(int, re.findall(r"(\d+) received", said))
    found = samples(page)
    assert 0 < found["ewan_link_dropped_packets_total queue"] == PACKETS - received
    assert found["ewan_link_dropped_packets_total netem"] == 0
    # Nobody else sends but the runtime, which looks whether the pair answers: small packets, a few.
    others = found["ewan_link_out_packets_total"] - received
    others_bytes = found["ewan_link_out_bytes_total"] - received * FRAME_BYTES
    assert 0 <= others <= 4
    assert 84 * others <= others_bytes <= 200 * others


def test_the_link_is_empty_afterwards_and_was_never_late(page: str) -> None:
    found = samples(page)
    for metric in ("queue_bytes", "queue_packets", "delay_line_packets", "late_packets_total", "lateness_max_seconds"):
        assert found[f"ewan_link_{metric}"] == 0, metric


def test_its_settings_are_told_as_a_user_links_are(page: str) -> None:
    found = samples(page)
    assert found["ewan_link_rate_bytes_per_second"] == RATE_BPS / 8
    assert found["ewan_link_delay_seconds"] == 0.01
    assert found["ewan_link_queue_limit_packets"] == LIMIT
    assert 'ewan_up{lab="kernelpage",link="core",backend="kernel"} 1' in page.splitlines()
    assert "ewan_spinner" not in page
