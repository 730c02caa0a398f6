"""A data channel of WebRTC over a lossy path, and over one with little buffer."""

import sys
from pathlib import Path

PEER = str(Path(__file__).parent / "peer.py")
VOLUME = 300_000


def channel(lab):
    """A receiver at one end, and a sender of VOLUME bytes at the other."""
    lab.right1.start([sys.executable, PEER, "receive", "9000"], ready="tcp:9000")
    return lab.left1.start([sys.executable, PEER, "send", "right1", "9000", str(VOLUME)], flows={"to": "right1"})


def test_all_bytes_come_in_spite_of_losses(ewan):
    lab = ewan.lab("dumbbell", rtt="40ms", rate="10Mbit/s", loss="1%")
    sender = channel(lab)
    result = lab.run(longest="120s")
    assert sender.exit_code == 0
    assert result.flow(sender).lost.by_link > 0


def test_a_short_queue_is_not_overrun_for_ever(ewan):
    lab = ewan.lab("dumbbell", rtt="40ms", rate="5Mbit/s", buffer="10pkt")
    sender = channel(lab)
    result = lab.run(longest="120s")
    assert sender.exit_code == 0
    assert result.flow(sender).received_bytes >= VOLUME
