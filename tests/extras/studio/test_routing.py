"""A person at a lab with OSPF: a link is failed on the page, the other path is drawn, ping goes on by it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson
import pytest
from playwright.sync_api import Page, expect

from tests.conftest import Ewan
from tests.extras.studio.server import Server

pytestmark = pytest.mark.untimed

ROUTES_MS = 90_000
RING = "topology: {ring: {routers: 3}}\nrtt: 20ms\nwan: {rate: 100Mbit/s}\nrouting: ospf\nname: NAME\n"


@pytest.fixture
def lab(name: str, ewan: Ewan, server: Server) -> Iterator[str]:
    """A ring of three routers that is up."""
    (server.place / f"{name}.lab.yaml").write_text(RING.replace("NAME", name))
    up = ewan("up", f"{name}.lab.yaml", cwd=server.place)
    assert up.returncode == 0, up.stderr
    yield name
    ewan("down", name)


def test_a_link_fails_and_the_other_path_is_drawn(page: Page, server: Server, lab: str, ewan: Ewan) -> None:
    """The link is seen to be down after a reload and in a second tab; the command line tells the same path."""
    page.goto(f"{server.url}#/lab/{lab}.lab.yaml")
    page.reload()
    page.get_by_test_id("path-source").select_option("host1")
    page.get_by_test_id("path-sink").select_option("host2")
    there = page.get_by_test_id("path-there")
    expect(there).to_contain_text("r1 → ring1 → r2 → access-host2", timeout=ROUTES_MS)
    page.get_by_test_id("node-host1").dblclick()
    expect(page.get_by_test_id("terminal")).to_contain_text(f"host1@{lab}")
    page.keyboard.type("ping -4 -i 0.2 host2\n")
    expect(page.get_by_test_id("terminal")).to_contain_text("time=", timeout=ROUTES_MS)

    page.locator('[aria-label^="link ring1"]').focus()
    page.keyboard.press("Enter")
    page.get_by_test_id("carrier").click()
    expect(page.get_by_test_id("told")).to_contain_text("ring1: down", timeout=ROUTES_MS)
    expect(there).to_contain_text("r1 → ring3 → r3 → ring2 → r2", timeout=ROUTES_MS)
    expect(page.get_by_test_id("path-back")).to_contain_text("r2 → ring2 → r3 → ring3 → r1")
    expect(page.get_by_test_id("on-path-ring2")).to_have_class(re.compile("both"))
    expect(page.get_by_test_id("on-path-ring1")).to_have_count(0)
    before = page.get_by_test_id("terminal").inner_text().count("time=")
    page.wait_for_function(
        "n => (document.querySelector('[data-testid=terminal]').innerText.match(/time=/g) ?? []).length !== n",
        arg=before,
    )
    told = orjson.loads(ewan("lab", "path", "--lab", lab, "host1", "host2", "--json").stdout)
    ways = [[step["link"] for step in way["steps"]] for way in told.values()]
    assert ways == [
        ["access-host1", "ring3", "ring2", "access-host2"],
        ["access-host2", "ring2", "ring3", "access-host1"],
    ]

    page.reload()
    for each in (page, page.context.new_page()):
        each.goto(f"{server.url}#/lab/{lab}.lab.yaml")
        expect(each.get_by_label("Drawing")).to_contain_text(re.compile(r"ring1.*down"))
    page.reload()
    page.get_by_test_id("node-r1").click()
    expect(page.get_by_test_id("routes")).to_contain_text("at hand")
    page.locator('[aria-label^="link ring1"]').focus()
    page.keyboard.press("Enter")
    page.get_by_test_id("carrier").click()
    expect(page.get_by_test_id("told")).to_contain_text("ring1: up", timeout=ROUTES_MS)
    expect(page.get_by_label("Drawing")).not_to_contain_text(re.compile(r"ring1.*down"))
