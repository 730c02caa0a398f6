"""Paths that people have, in both clocks: several links of a host, another MTU in mid-path, another way back."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Ewan
from tests.experiments import only

MS = 10**6

SEVERAL = """
name: several
lab: multihomed
steps:
  - {name: default, from: phone, to: server, for: 1s, bulk: }
  - {name: other, at: 1s, from: "phone:lte", to: server, for: 1s, bulk: }
  - {name: down, at: 2s, from: server, to: "phone:lte", for: 1s, bulk: }
  - {name: calls, at: 3s, from: "phone:lte", to: server, udp: {count: 10, size: 100B, interval: 10ms}}
"""

SUBFLOWS = """
name: subflows
lab: multihomed
steps:
  - {name: up, from: phone, to: server, for: 2s, multipath: {}, bulk: }
  - {name: down, at: 3s, from: server, to: phone, multipath: {paths: 2}, bulk: 10MB}
"""

TURNED = """
name: turned
lab: satellite-down
steps:
  - {name: up, on: home, run: ping -4 -c 1 server}
  - {name: down, on: server, run: ping -4 -c 1 home}
  - {name: calls, from: server, to: home, udp: {count: 10, size: 100B, interval: 10ms}}
  - {name: answers, from: home, to: server, udp: {count: 10, size: 100B, interval: 10ms}}
"""

NARROW = """
name: narrow
topology: dumbbell
rtt: 2ms
wan: {rate: 100Mbit/s, mtu: 1400}
nodes: {r1: {too_big: silent}}
"""


def run(text: str, place: Path, ewan: Ewan) -> Path:
    """The directory of the only run."""
    (place / "x.scenario.yaml").write_text(text)
    answer = ewan("run", "x", "--runtime", "virtual", cwd=place)
    assert answer.returncode == 0, answer.stderr
    return only(place) / "runs/001"


@pytest.mark.virtual
def test_a_flow_takes_the_link_of_its_address(tmp_path: Path, ewan: Ewan) -> None:
    flows = pl.read_parquet(run(SEVERAL, tmp_path, ewan) / "flows.parquet")
    rows = {row["step"]: row for row in flows.iter_rows(named=True)}
    assert {name: (row["source"], row["sink"]) for name, row in rows.items()} == {
        "default": ("phone", "server"),
        "other": ("phone:lte", "server"),
        "down": ("server", "phone:lte"),
        "calls": ("phone:lte", "server"),
    }
    for name, base_ms, rate in (("default", 20, 40e6), ("other", 60, 20e6), ("down", 60, 20e6)):
        assert base_ms * MS <= rows[name]["min_rtt_ns"] < (base_ms + 1) * MS, "propagation and some packets' time"
        assert 0.5 * rate < rows[name]["goodput_bps"] < rate
    assert rows["calls"]["lost_packets"] == 0
    assert 30 * MS < rows["calls"]["delay_min_ns"] < 31 * MS


@pytest.mark.virtual
def test_a_flow_over_several_paths_uses_each_and_reports_each(tmp_path: Path, ewan: Ewan) -> None:
    at = run(SUBFLOWS, tmp_path, ewan)
    flows = {row["step"]: row for row in pl.read_parquet(at / "flows.parquet").iter_rows(named=True)}
    assert 45e6 < flows["up"]["goodput_bps"] < 60e6, "more than the 40 Mbit/s of the faster link"
    assert flows["down"]["received_bytes"] == 10_000_000
    assert flows["down"]["completion_ns"] < 10_000_000 * 8e9 / 40e6
    table = pl.read_parquet(at / "subflows.parquet")
    for step in ("up", "down"):
        own = table.filter(pl.col("flow") == flows[step]["flow"])
        last = own.filter(pl.col("time_ns") == own["time_ns"].max()).sort("subflow")
        assert last["subflow"].to_list() == [1, 2]
        assert last["from" if step == "up" else "to"].n_unique() == 2, "the phone's two addresses"
        for least_ms, found in zip((20, 60), last["min_rtt_ns"], strict=True):
            assert least_ms * MS <= found < (least_ms + 1) * MS
        series = pl.read_parquet(at / "series.parquet").filter(pl.col("flow") == flows[step]["flow"])
        now = series.filter(pl.col("time_ns") == own["time_ns"].max())
        assert now["cwnd_segments"].item() == last["cwnd_segments"].sum()
        assert now["srtt_ns"].item() == last["srtt_ns"][0]
    assert flows["up"]["min_rtt_ns"] == table.filter(pl.col("flow") == flows["up"]["flow"])["min_rtt_ns"].min()


@pytest.mark.virtual
def test_the_way_back_has_other_links_and_another_delay(tmp_path: Path, ewan: Ewan) -> None:
    at = run(TURNED, tmp_path, ewan)
    pings = "".join(file.read_text() for file in sorted((at / "commands").glob("*.out")))
    assert re.findall(r"ttl=(\d+)", pings) == ["62", "61"], "two routers from the server, three from the home"
    flows = {row["step"]: row for row in pl.read_parquet(at / "flows.parquet").iter_rows(named=True)}
    assert 250 * MS < flows["calls"]["delay_min_ns"] < 251 * MS
    assert 15 * MS < flows["answers"]["delay_min_ns"] < 16 * MS


@pytest.mark.untimed
def test_live_packets_leave_by_the_link_of_their_address(tmp_path: Path, ewan: Ewan) -> None:
    up = ewan("lab", "multihomed", "--runtime", "netns", timeout=600)
    assert "multihomed" in up.stdout, up.stderr
    try:
        rules = ewan("lab", "exec", "--lab", "multihomed", "phone", "--", "ip", "-4", "rule").stdout
        own = re.findall(r"from (\S+) lookup 10[01]", rules)
        assert len(own) == 2
        for address, least_ms in zip(own, (20, 60), strict=True):
            words = ("ping", "-4", "-c", "3", "-i", "0.2", "-I", address, "server")
            answer = ewan("lab", "exec", "--lab", "multihomed", "phone", "--", *words).stdout
            found = re.search(r"min/avg/max/mdev = ([\d.]+)/", answer)
            assert found is not None and least_ms <= float(found[1]) < least_ms + 40, answer
        shown = ewan("lab", "path", "--lab", "multihomed", "phone:lte", "server").stdout
        assert re.search(r"phone:lte → server +lte, tower-core, server-core", shown), shown
        assert re.search(r"server → phone:lte +server-core, tower-core, lte", shown), shown
        wrong = ewan("lab", "path", "--lab", "multihomed", "phone:dsl", "server")
        assert wrong.returncode == 2 and "phone has no link dsl: its links are wifi, lte" in wrong.stderr
    finally:
        ewan("down", "multihomed")


@pytest.mark.untimed
def test_live_routers_are_silent_or_report_a_packet_too_big(tmp_path: Path, ewan: Ewan) -> None:
    (tmp_path / "narrow.lab.yaml").write_text(NARROW)
    up = ewan("lab", "narrow.lab.yaml", "--runtime", "netns", timeout=600, cwd=tmp_path)
    assert "narrow" in up.stdout, up.stderr
    try:
        # r1 is the router of left1, r2 that of right1.
        for family in ("-4", "-6"):
            for host, peer, reports in (("left1", "right1", False), ("right1", "left1", True)):
                words = ("ping", family, "-c", "3", "-i", "0.2", "-W", "1", "-M", "do", "-s", "1420", peer)
                answer = ewan("lab", "exec", "--lab", "narrow", host, "--", *words)
                assert "100% packet loss" in answer.stdout, answer.stdout
                heard = re.search(r"mtu ?[=:] ?1400", answer.stdout + answer.stderr) is not None
                assert heard is reports, answer.stdout
                small = ewan("lab", "exec", "--lab", "narrow", host, "--", "ping", family, "-c", "1", peer)
                assert small.returncode == 0, "other messages pass"
    finally:
        ewan("down", "narrow")
