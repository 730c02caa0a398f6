"""A script of tc and the lab that `ewan lab import` makes of it do the same: side by side in the virtual clock.

The script itself runs in a host of a lab whose links do nothing. Both labs have real Linux queueing below a program's
sockets; what differs is whether netem and tbf work, or the link that the description says.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from ewan.extras.importers.conversion import describe
from tests.conftest import ROOT

pytestmark = pytest.mark.virtual

SCRIPT = """\
tc qdisc del dev eth0 root
tc qdisc add dev eth0 root handle 1: netem delay 50ms loss 1%
tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 10mbit burst 16kb latency 100ms
"""
NOTHING = "topology: dumbbell\nrtt: 0ms\nlinks: {core: {rate: 10Gbit/s, buffer: 1000pkt}}\n"
LOAD = "ping -q -c 1000 -i 0.002 -s 1400 right1; iperf3 -4 -u -b 15M -l 1400 -t 4 -J -c right1"


class Seen(NamedTuple):
    """Of pings: the least RTT in ms and how many were lost; of UDP that is too much: bit/s received, datagrams lost."""

    rtt_ms: float
    lost: int
    received_bps: float
    dropped: int


def seen(lab: Path, before: str) -> Seen:
    words = [
        sys.executable,
        str(ROOT / "ewan" / "cli.py"),
        "lab",
        "batch",
        str(lab),
        "--runtime",
        "virtual",
        "--dither",
        "0",
        "--json",
    ]
    words += ["--service", "right1: iperf3 -s", "--do", f"left1: {before}{LOAD}"]
    done = subprocess.run(words, cwd=lab.parent, capture_output=True, text=True, timeout=300, check=True)
    document = json.loads(done.stdout)
    printed = (lab.parent / document["directory"] / document["commands"][0]["out"]).read_text()
    rtt = re.search(r"rtt min/avg/max/mdev = ([0-9.]+)/", printed)
    counts = re.search(r"(\d+) packets transmitted, (\d+) received", printed)
    assert rtt is not None and counts is not None, printed
    total = json.loads(printed[printed.index("{") :])["end"]["sum"]
    interval = total["bytes"] * (1 - total["lost_packets"] / total["packets"]) * 8 / total["seconds"]
    return Seen(float(rtt[1]), int(counts[1]) - int(counts[2]), interval, total["lost_packets"])


def test_an_imported_script_does_what_the_script_does(tmp_path: Path) -> None:
    script, nothing, imported = (tmp_path / name for name in ("shape.sh", "nothing.lab.yaml", "imported.lab.yaml"))
    script.write_text(SCRIPT)
    nothing.write_text(NOTHING)
    imported.write_text(describe(SCRIPT, "shape.sh")[0])
    original = seen(nothing, f"sh {script}; ")
    ours = seen(imported, "")
    # The way back of the imported lab is a card of 1 Gbit/s, on which a ping of 1442 bytes takes 11.5 µs.
    assert ours.rtt_ms == pytest.approx(original.rtt_ms, abs=0.03)
    assert original.rtt_ms == pytest.approx(50, abs=0.05)
    # 1000 pings and 1 %: 10 ± 3.1. Draws differ, so within 4 deviations of what is configured.
    assert 0 < original.lost < 23
    assert 0 < ours.lost < 23
    # 15 Mbit/s of 1400 bytes into 10 Mbit/s of 1442: 9.71 Mbit/s arrive, less 1 %, once the bucket is empty.
    assert ours.received_bps == pytest.approx(original.received_bps, rel=0.01)
    assert ours.dropped == pytest.approx(original.dropped, rel=0.02)
