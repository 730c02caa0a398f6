"""Drops of hosts: counted once, told in words, read whatever a file holds."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ewan.labs.record import host_drops, tables
from ewan.labs.record.host_drops import KINDS, NAMES, NodeCounters
from tests import summaries


def test_a_drop_that_two_counters_have_is_told_once() -> None:
    own = {"UdpInErrors": 50, "UdpRcvbufErrors": 30, "Udp6RcvbufErrors": 4, "Udp6InErrors": 4, "UdpInCsumErrors": 19}
    assert host_drops.of_kinds(own) == {"receive buffer": 34, "UDP checksum": 19, "UDP received": 1}
    assert host_drops.lines({"right1": own}) == [
        "right1 dropped 34 datagrams for want of receive buffer (SO_RCVBUF)",
        "right1 dropped 19 datagrams that had been damaged on their way",
        "right1 dropped 1 datagram not whole (UdpInErrors)",
    ]


def test_a_sender_s_own_queue_explains_what_ip_and_the_socket_count() -> None:
    own = {"QdiscDropped": 40, "UdpSndbufErrors": 40, "IpOutDiscards": 80}
    assert host_drops.of_kinds(own) == {"queue": 40}


def test_the_most_comes_first_and_many_are_cut_short() -> None:
    found = {f"h{number}": {"UdpRcvbufErrors": number} for number in range(1, 13)}
    told = host_drops.lines(found)
    assert told[0].startswith("h12 dropped 12 datagrams") and told[-1] == "4 more counts of drops are kept"
    assert len(told) == 9 and host_drops.lines({}) == []


def test_each_kind_names_its_counters_alone_and_known_others() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for name, kind in KINDS.items():
        assert set(kind.beyond) < KINDS.keys() - {name}


def test_two_looks_give_what_grew() -> None:
    before = [NodeCounters("a", {"UdpRcvbufErrors": 5, "IpInReceives": 1}), NodeCounters("b", {})]
    after = [
        NodeCounters("a", {"UdpRcvbufErrors": 7, "IpInReceives": 9, "TcpExtListenDrops": 1}),
        NodeCounters("new", {"UdpRcvbufErrors": 7}),
    ]
    assert host_drops.grown(before, after) == {"a": {"UdpRcvbufErrors": 2, "TcpExtListenDrops": 1}}
    assert host_drops.grown(before, before) == {}


@pytest.mark.parametrize(
    "text, found",
    [
        ("node,counter,count\nright1,UdpRcvbufErrors,7\n", {"right1": {"UdpRcvbufErrors": 7}}),
        ("node,counter,count\nright1,UdpRcvbufErrors,7\nright1,IpIn", {"right1": {"UdpRcvbufErrors": 7}}),
        ("node,counter,count\nright1,Rcvbuf,7\nright1,UdpRcvbufErrors,-1\nright1,UdpRcvbufErrors,9" + "9" * 40, {}),
        ("\x00\xff", {}),
        (None, {}),
    ],
)
def test_what_a_run_left_may_be_anything(tmp_path: Path, text: str | None, found: host_drops.Counts) -> None:
    if text is not None:
        (tmp_path / "drops.csv").write_text(text)
    assert host_drops.read(tmp_path / "drops.csv") == found


def test_an_experiment_says_in_which_runs() -> None:
    runs = [
        summaries.run({"number": n, "dropped": {"right1": {"UdpRcvbufErrors": n}} if n > 1 else {}}) for n in (1, 2, 3)
    ]
    assert host_drops.of_runs(runs) == ["right1 dropped 5 datagrams for want of receive buffer (SO_RCVBUF) (runs 2, 3)"]
    assert host_drops.of_runs(runs[:1]) == []


def test_the_table_gives_the_counts() -> None:
    rows = {"node": ["a", "a"], "counter": ["IpReasmFails", "IpReasmTimeout"], "count": [9, 2]}
    frame = pl.DataFrame(rows, schema=tables.TABLES["drops"])
    assert host_drops.counts(frame) == {"a": {"IpReasmFails": 9, "IpReasmTimeout": 2}}
    assert host_drops.of_kinds(host_drops.counts(frame)["a"]) == {"reassembly time": 2, "reassembly": 7}
