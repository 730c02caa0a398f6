"""Outputs of real programs that find ways, in fixtures/hops: of left1 to right1 over r1 and r2, RTT 20 ms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ewan.generator.readers import hops
from ewan.generator.readers.call import calls
from ewan.generator.readers.reader import CommandOutput
from ewan.labs.base.units import NS_PER_MS

FIXTURES = Path(__file__).resolve().parent / "fixtures/hops"
WAY = {1: "10.64.0.6", 2: "10.64.0.2", 3: "10.64.0.17"}


def read(file: str, words: str) -> Any:
    for reader in hops.READERS:
        if found := tuple(calls(words.split(), reader.programs)):
            reading = reader.read(CommandOutput((FIXTURES / file).read_text(), found, 0, None))
            assert reading is not None
            return reading
    raise AssertionError(f"nobody reads {words}")


@pytest.mark.parametrize(
    ("file", "words", "probes", "answers"),
    [
        ("traceroute.txt", "traceroute right1", 9, 7),
        ("traceroute-n.txt", "traceroute -n -q 2 -N 1 right1", 6, 6),
        ("traceroute-loss.txt", "traceroute -n right1", 9, 8),
        ("traceroute-busybox.txt", "busybox traceroute right1", 9, 9),
        ("traceroute-inetutils.txt", "inetutils-traceroute right1", 9, 8),
        ("tcptraceroute.txt", "tcptraceroute -n right1 80", 9, 9),
        ("tcptraceroute-closed.txt", "tcptraceroute right1 81", 9, 9),
        ("tracepath.txt", "tracepath -n right1", 4, 4),
        ("mtr-raw.txt", "mtr --raw -c 5 -n right1", 15, 14),
        ("mtr-raw-loss.txt", "mtr --raw -c 10 -n right1", 30, None),
        ("mtr.txt", "mtr --report -c 5 -n right1", 15, 14),
        ("mtr.json", "mtr --json -c 5 right1", 15, 15),
        ("mtr-csv.txt", "mtr --csv -c 3 -n right1", 9, 9),
        ("mtr-b.txt", "mtr --report -b -c 3 right1", 9, 9),
        ("mtr-loss.txt", "mtr --report -n -c 10 right1", 30, 22),
    ],
)
def test_the_way_and_its_round_trips(file: str, words: str, probes: int, answers: int | None) -> None:
    reading = read(file, words)
    rows = reading.rows["hops"]
    assert reading.problem is None
    assert {row["target"] for row in rows} == {"right1"} and reading.totals["target"] == "right1"
    assert {row["ttl"] for row in rows} == {1, 2, 3}
    assert sum(row["sent_packets"] for row in rows) == probes
    assert answers is None or sum(row["received_packets"] for row in rows) == answers
    for row in rows:
        assert row["address"] in (WAY[row["ttl"]], None)
        if not row["received_packets"]:
            assert row["rtt_ns"] is None and row["address"] is None
            continue
        least, most = (0, NS_PER_MS) if row["ttl"] == 1 else (20 * NS_PER_MS, 22 * NS_PER_MS)
        assert least <= row["rtt_ns"] <= most, row
        assert row["host"] in (WAY[row["ttl"]], {2: "r2", 3: "right1"}.get(row["ttl"]))


def test_probes_have_their_numbers_and_times_as_printed() -> None:
    rows = read("traceroute-loss.txt", "traceroute -n right1").rows["hops"]
    assert [(row["ttl"], row["probe"], row["rtt_ns"]) for row in rows[5:]] == [
        (2, 3, 20_191_000),
        (3, 1, None),
        (3, 2, 20_419_000),
        (3, 3, 20_755_000),
    ]
    last = read("mtr-raw.txt", "mtr --raw right1").rows["hops"][-1]
    assert (last["ttl"], last["probe"], last["rtt_ns"]) == (3, 5, 20_241_000)
    assert read("tracepath.txt", "tracepath right1").rows["hops"][2]["rtt_ns"] == 20_860_000


def test_several_packets_of_mtr_are_one_row() -> None:
    rows = read("mtr-csv.txt", "mtr --csv right1").rows["hops"]
    assert [(row["rtt_min_ns"], row["rtt_ns"], row["rtt_max_ns"]) for row in rows][1] == (20130000, 20270000, 20460000)
    lossy = read("mtr-loss.txt", "mtr --report right1").rows["hops"]
    assert [(row["sent_packets"], row["received_packets"]) for row in lossy] == [(10, 7), (10, 6), (10, 9)]


def test_an_answer_over_another_way_is_that_of_its_probe() -> None:
    """SYN probes of the Linux traceroute go on while no router answers; the fixture's answered out of order."""
    rows = read("traceroute-tcp.txt", "traceroute -T -p 80 right1").rows["hops"]
    assert [row["address"] for row in rows if row["ttl"] == 6] == [None, WAY[3], WAY[3]]
    assert sum(row["sent_packets"] for row in rows) == 18


def test_nobody_answers() -> None:
    rows = read("traceroute-lost.txt", "traceroute -n -m 4 10.99.9.9").rows["hops"]
    assert [(row["ttl"], row["rtt_ns"]) for row in rows] == [(ttl, None) for ttl in range(1, 5) for _ in range(3)]


@pytest.mark.parametrize("words", ["traceroute a", "tcptraceroute a 80", "tracepath a", "mtr --report a"])
@pytest.mark.parametrize("text", ["", "a: Name or service not known\n", '{"report": {"hubs": [{}]}}', "{"])
def test_what_cannot_be_read_is_said(words: str, text: str) -> None:
    for reader in hops.READERS:
        if found := tuple(calls(words.split(), reader.programs)):
            reading = reader.read(CommandOutput(text, found, 0, None))
            assert reading is not None and not reading.rows.get("hops")
            assert reading.problem is not None and "\n" not in reading.problem
