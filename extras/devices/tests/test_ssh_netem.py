"""The commands of tc, and the values read from its output on Debian's kernel 6.1 (iproute2 6.1)."""

from __future__ import annotations

import pytest

from ewan.extras.devices.serve import DeviceRefusedError
from ewan.extras.devices.ssh_netem import commands, parsed
from ewan.labs.base.codec import replace
from ewan.labs.hardware.driver import Counters
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link import BernoulliLoss, DropTail, GilbertElliottLoss, NormalDelay, Queue, UniformDelay

PRINTED = """[{"kind":"netem","handle":"1:","root":true,"refcnt":2,"options":{"limit":100000,"delay":{"delay":0.05,\
"jitter":8e-06,"correlation":0},"loss-random":{"loss":0.01,"correlation":0},"rate":{"rate":125000000000,\
"packetoverhead":0,"cellsize":0,"celloverhead":0},"ecn":false,"gap":0},"bytes":1096,"packets":10,"drops":0,\
"overlimits":0,"requeues":0,"backlog":0,"qlen":0},{"kind":"tbf","handle":"10:","parent":"1:1","options":{"rate":1250000,\
"burst":3000,"lat":77600},"bytes":986,"packets":9,"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0},\
{"kind":"bfifo","handle":"20:","parent":"10:1","options":{"limit":125000},"bytes":452,"packets":4,"drops":0,\
"overlimits":0,"requeues":0,"backlog":0,"qlen":0}]"""
SETTINGS = DeviceSettings(
    rate_bps=10_000_000,
    delay=UniformDelay(50_000_000, 8000),
    reorder=False,
    loss=BernoulliLoss(10_000_000),
    corrupt_ppb=0,
    duplicate_ppb=0,
    queue=Queue(limit_packets=None, limit_bytes=125_000, discipline=DropTail()),
)


def test_what_tc_printed_is_what_was_set() -> None:
    settings, counters = parsed(PRINTED)
    assert settings == SETTINGS
    assert counters == Counters(10, 1096, 0)


def test_what_tc_is_told() -> None:
    netem, tbf, fifo = (" ".join(words) for words in commands("eth2", SETTINGS, 1500))
    assert netem == (
        "tc qdisc replace dev eth2 root handle 1: stab overhead 24 netem limit 1000000 delay 50000us 8us "
        "loss random 1.0000000% corrupt 0.0000000% duplicate 0.0000000% rate 1tbit"
    )
    assert tbf == "tc qdisc replace dev eth2 parent 1:1 handle 10: tbf rate 10000000bit burst 1538 limit 125000"
    assert fifo == "tc qdisc replace dev eth2 parent 10:1 handle 20: bfifo limit 125000"


def test_the_table_of_delays_is_told_by_netems_handle() -> None:
    """tc prints no table; another handle makes a new netem, which has no table of before."""
    normal = replace(SETTINGS, delay=NormalDelay(50_000_000, 8000))
    netem, tbf, _ = (" ".join(words) for words in commands("eth2", normal, 1500))
    assert "root handle 2: stab" in netem and "delay 50000us 8us distribution normal loss" in netem
    assert "parent 2:1 handle 10: tbf" in tbf
    printed = PRINTED.replace('"handle":"1:"', '"handle":"2:"').replace('"1:1"', '"2:1"')
    assert parsed(printed)[0] == normal


def test_losses_in_bursts_are_read() -> None:
    other = PRINTED.replace(
        '"loss-random":{"loss":0.01,"correlation":0}', '"loss-gemodel":{"p":0.01,"r":0.1,"1-h":0.5,"1-k":0.005}'
    )
    assert parsed(other)[0].loss == GilbertElliottLoss(
        to_bad_ppb=10_000_000, to_good_ppb=100_000_000, loss_bad_ppb=500_000_000, loss_good_ppb=5_000_000
    )


@pytest.mark.parametrize("printed", ["", "[]", "{}", "[1]", "null", PRINTED.replace("tbf", "htb"), PRINTED[:-40]])
def test_other_disciplines_are_refused(printed: str) -> None:
    with pytest.raises(DeviceRefusedError, match="reset it first"):
        parsed(printed)
