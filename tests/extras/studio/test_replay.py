"""A run of the virtual clock, shown again on its drawing: events, time, a link and a flow, what there is not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from ewan.analysis.tests.synthetic import vouch
from tests.conftest import Ewan
from tests.extras.studio.conftest import looking
from tests.extras.studio.server import Server

pytestmark = pytest.mark.untimed

SCENARIO = """
name: changes
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}
watch: 10ms
steps:
  - {name: load, from: left1, to: right1, for: 2s, bulk: {}}
events:
  - {at: 500ms, link: core, rate: 5Mbit/s}
  - {at: 1s, link: core, down: true}
  - {at: 1200ms, link: core, up: true}
"""


@pytest.fixture(scope="module")
def ran(ewan: Ewan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of one run, whose link is slower from 0.5 s on, fails at 1 s and is mended at 1.2 s."""
    place = tmp_path_factory.mktemp("ran")
    (place / "changes.scenario.yaml").write_text(SCENARIO)
    done = ewan("run", "changes.scenario.yaml", "--runtime", "virtual", cwd=place)
    assert done.returncode == 0, done.stderr
    (found,) = (place / "results").glob("*-changes")
    return found


@pytest.fixture(scope="module")
def server(ran: Path, state: Path) -> Iterator[Server]:
    """For who may look and change nothing."""
    server = Server(ran.parent.parent, state)
    server.start("--view")
    yield server
    server.kill()


@pytest.fixture(scope="module")
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """One page for all of these tests."""
    with looking(browser) as page:
        page.goto(server.url)
        expect(page.get_by_test_id("file")).to_be_visible()
        yield page


@pytest.fixture
def replay(page: Page, ran: Path) -> Page:
    """The replay, from its begin."""
    page.evaluate("name => { location.hash = `#/replay/${name}/1` }", ran.name)
    expect(page.get_by_test_id("moment")).to_have_text("0.00 s of 2.00 s")
    return page


def test_the_list_of_experiments_leads_to_replays(page: Page, ran: Path) -> None:
    page.get_by_test_id("page-experiments").click()
    page.get_by_test_id(f"replays-{ran.name}").click()
    page.get_by_role("link", name="run 1").click()
    shown = page.get_by_label("Drawing of the run")
    expect(shown.get_by_test_id("node-left1")).to_be_visible()
    expect(shown.get_by_test_id("now-core")).to_contain_text("queue")


def test_events_are_marks_that_lead_to_their_moment(replay: Page) -> None:
    """The drawing says what the link was then."""
    shown = replay.get_by_label("Drawing of the run")
    expect(shown).to_contain_text("core 10Mbit/s 10ms")
    replay.get_by_test_id("event-set").click()
    expect(replay.get_by_test_id("moment")).to_have_text("0.50 s of 2.00 s")
    expect(shown).to_contain_text("core 5Mbit/s 10ms")
    expect(replay.get_by_test_id("event-set")).to_have_attribute("aria-label", "set at 0.50 s: core: rate 5 Mbit/s")
    replay.get_by_test_id("event-fail").click()
    expect(shown).to_contain_text("down")
    replay.get_by_test_id("event-mend").click()
    expect(shown).not_to_contain_text("down")


def test_time_is_moved_by_keys_and_the_address_says_where_one_is(replay: Page, ran: Path) -> None:
    """As another person opens it."""
    moment = replay.get_by_test_id("moment")
    for _ in range(3):
        replay.keyboard.press("ArrowRight")
    replay.keyboard.press("ArrowLeft")
    expect(moment).to_have_text("0.02 s of 2.00 s")
    replay.keyboard.press("End")
    expect(moment).to_have_text("2.00 s of 2.00 s")
    replay.get_by_label("Drawing of the run").locator('[aria-label^="link core"]').focus()
    replay.keyboard.press("Enter")
    expect(replay.get_by_test_id("values-forward")).to_contain_text("of 5Mbit/s, queue")
    replay.get_by_test_id("slider").fill("700000000")
    address = replay.url
    assert address.endswith(f"#/replay/{ran.name}/1/link/core/0.7s")
    replay.reload()
    expect(moment).to_have_text("0.70 s of 2.00 s")
    expect(replay.get_by_test_id("values-forward")).to_contain_text("of 5Mbit/s")
    expect(replay.locator(".chart canvas")).to_have_count(6)


def test_it_plays_at_its_speed_until_the_end(replay: Page) -> None:
    moment = replay.get_by_test_id("moment")
    replay.get_by_test_id("speed").select_option("0.01")
    replay.keyboard.press("Escape")
    replay.locator("h2").first.click()
    replay.keyboard.press("Space")
    expect(replay.get_by_role("button", name="Pause")).to_be_visible()
    expect(moment).not_to_have_text("0.00 s of 2.00 s")
    replay.get_by_test_id("play").click()
    assert float(moment.inner_text().split()[0]) < 0.5  # of 2 s, which would be over at 1×
    for speed in ("0", "10"):
        replay.get_by_test_id("slider").fill("1500000000")
        replay.get_by_test_id("speed").select_option(speed)
        replay.get_by_test_id("play").click()
        expect(moment).to_have_text("2.00 s of 2.00 s")
        expect(replay.get_by_role("button", name="Play")).to_be_visible()


def test_a_flow_has_its_goodput_cwnd_and_rtt(replay: Page) -> None:
    replay.get_by_test_id("slider").fill("300000000")
    row = replay.get_by_role("row").filter(has=replay.get_by_test_id("flow-0.0"))
    expect(row).to_contain_text("Mbit/s")
    expect(row).to_contain_text("ms")
    replay.get_by_test_id("flow-0.0").click()
    expect(replay.get_by_label("Drawing of the run").get_by_test_id("on-path-core")).to_have_count(1)
    charts = replay.locator(".chart")
    expect(charts).to_have_count(3)
    expect(charts.nth(1)).to_contain_text("congestion window")
    inked = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(v => v > 0)"
    assert charts.nth(2).locator("canvas").evaluate(inked)
    box = charts.nth(0).locator(".u-over").bounding_box()
    assert box is not None
    replay.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(replay.get_by_test_id("moment")).to_have_text("1.00 s of 2.00 s")


@pytest.mark.parametrize(
    ("words", "told"),
    [("nothing/1", "there is no such experiment"), ("{}/7", "has no run 7"), ("..%2F..%2Fetc/1", "nothing is here")],
)
def test_what_there_is_not_is_said(page: Page, ran: Path, words: str, told: str) -> None:
    page.evaluate("words => { location.hash = `#/replay/${words}` }", words.format(ran.name))
    expect(page.get_by_test_id("told")).to_contain_text(told)


def test_a_run_whose_links_were_not_sampled_says_so(page: Page, ran: Path) -> None:
    bare = shutil.copytree(ran, ran.parent / "bare")
    (bare / "runs/001/links.parquet").unlink()
    vouch(bare)
    page.evaluate("location.hash = '#/replay/bare/1'")
    expect(page.get_by_test_id("no-series")).to_be_visible()
    expect(page.get_by_label("Drawing of the run").get_by_test_id("node-right1")).to_be_visible()
    expect(page.get_by_test_id("moment")).to_contain_text("of 2.0")
