"""What `ewan down` says of the links' last counters."""

from __future__ import annotations

from ewan.labs.base import codec
from ewan.labs.commands import removal
from ewan.labs.runtime.answers import Removed

WAY = b"""{"in_packets": 90, "out_packets": 80, "drops": {"ack_filtered": 5, "aqm": 4, "loss": 2, "queue_full": 3,
"store_full": 1}, "lateness_ns": {"p50": 1000, "p99": 2000, "max": 3000}}"""
PORT = b"""{"kind": "packet", "ring_overruns": 0, "refused": 0, "veth_drops": {"receive": 0, "ring_full": 0,
"transmit": 0}}"""
STATS = b"""{"ok": true, "cpu": 1, "shared": false, "gaps": {"classes": [], "count": 0, "lost_ns": 0, "max_ns": 0},
"links": {"core": {"forward": %b, "backward": {}, "ports": [%b, %b]}}}""" % (WAY, PORT, PORT)


def test_each_cause_of_drops_stands_in_its_own_column() -> None:
    text = b"""{"lab": "x", "namespaces": [], "processes": [], "paths": [],
"spinners": [{"spinner": 0, "stats": %b}]}"""
    _, columns, (row,) = removal.counters(codec.decode(Removed, text % STATS, "removed"))
    told = dict(zip(columns, row, strict=True))
    assert [told[name] for name in ("in", "out", "lost", "queue full", "AQM", "no room")] == [
        "90",
        "80",
        "2",
        "3",
        "4",
        "1",
    ]
