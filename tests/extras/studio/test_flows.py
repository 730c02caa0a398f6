"""TCP flows of a lab that is up: in the page, and on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import Ewan
from tests.extras.studio.server import Server

pytestmark = pytest.mark.untimed

LAB = "topology: dumbbell\nname: {}\nrtt: 20ms\nwan: {{rate: 20Mbit/s}}\n"


@pytest.fixture
def lab(name: str, ewan: Ewan, server: Server) -> Iterator[str]:
    """A lab that is up, unverified, whose description is in the server's directory."""
    file = server.place / f"{name}.lab.yaml"
    file.write_text(LAB.format(name))
    done = ewan("up", str(file))
    assert done.returncode == 0, done.stderr
    yield name
    ewan("down", name)


def test_flows_of_a_node_are_seen_while_they_go(page: Page, lab: str, ewan: Ewan, state: Path) -> None:
    """A transfer's goodput, cwnd and RTT; the command line tells the same; when the lab is down nothing of it stays."""
    page.evaluate(f"location.hash = '#/lab/{lab}.lab.yaml'")
    page.reload()
    expect(page.get_by_text(f"{lab} is up")).to_be_visible()
    page.get_by_test_id("node-left1").click()
    flows = page.get_by_test_id("flows")
    expect(flows).to_contain_text("None at the moment")

    # It goes into the background before it listens, and whoever comes earlier is refused.
    server = "iperf3 -s -D && until ss -Hltn sport = :5201 | grep -q .; do sleep 0.05; done"
    assert ewan("lab", "exec", "--lab", lab, "right1", "--", "timeout", "20", "sh", "-c", server).returncode == 0
    transfer = "iperf3 -c right1 -t 60 >/dev/null 2>&1 &"
    assert ewan("lab", "exec", "--lab", lab, "left1", "--", "sh", "-c", transfer).returncode == 0
    row = flows.get_by_role("row").filter(has_text="Mbit/s")  # not that over which iperf3 agrees on the transfer
    expect(row).to_contain_text("right1:5201", timeout=20_000)
    expect(row).to_contain_text("ms")
    expect(row).to_have_attribute("aria-current", "true")
    expect(page.get_by_test_id("flow-plots").locator("canvas")).to_have_count(3)

    told = json.loads(ewan("lab", "watch", lab, "--flows", "--once", "--json").stdout)["flows"]
    assert {(flow["node"], flow["peer"]) for flow in told} == {("left1", "right1")}
    # In bit/s, of a link of 20 Mbit/s that a busy machine may hold up for a part of the quarter of a second.
    assert 3e6 < told[0]["sent_bps"] < 60e6 and told[0]["rtt_ns"] >= 20e6 and told[0]["cwnd_segments"] > 10
    shown = ewan("lab", "watch", lab, "--flows", "--once").stdout
    assert f"TCP flows of {lab}" in shown and "→ right1:5201" in shown

    assert ewan("down", lab).returncode == 0
    expect(flows).to_have_count(0)
    expect(page.get_by_test_id("up")).to_be_enabled()


def test_a_lab_that_is_not_up_has_no_flows_to_watch(ewan: Ewan) -> None:
    done = ewan("lab", "watch", "nobody", "--flows", "--once")
    assert done.returncode == 2 and "no lab named nobody is up" in done.stderr
