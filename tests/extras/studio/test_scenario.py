"""A person and a scenario: text and time line are one, runs wait for each other, what they cost is said before."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.extras.studio.server import Server

pytestmark = pytest.mark.untimed

DONE_MS = 120_000
SCENARIO = """# Two events.
name: brief
title: A brief transfer
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}   # small
parameters: {late: 3s}
sweep: {congestion: [cubic, reno]}
steps:
  - {name: load, from: left1, to: right1, for: 4s, congestion: ${congestion}, bulk: }
events:
  - {at: 1s, link: core, delay: 40ms}   # longer
  - {at: ${late}, link: core, delay: 10ms}
"""


def text(page: Page) -> str:
    """The scenario, as the editor shows it."""
    return "\n".join(page.locator('[data-testid="scenario-text"] .cm-line').all_inner_texts())


def write(page: Page, scenario: str) -> None:
    """In the editor, in place of what is there."""
    page.get_by_test_id("scenario-text").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(scenario)


def shown(page: Page) -> None:
    """The scenario page, where `SCENARIO` is written."""
    page.get_by_test_id("page-scenario").click()
    write(page, SCENARIO)
    expect(page.get_by_test_id("step-load")).to_be_visible()
    expect(page.get_by_role("heading", name="A brief transfer")).to_be_visible()


def test_text_and_time_line_are_one(page: Page, server: Server) -> None:
    """An event is dragged, moved by keys, added and removed; comments stay; what is wrong is said at its line; what is
    not saved survives a reload, and the address opens what is."""
    shown(page)
    first = page.get_by_test_id("event-0")
    expect(first).to_have_attribute("aria-valuetext", "1s")
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    expect(first).to_have_attribute("aria-valuetext", "1.55s")
    assert "- {at: 1.55s, link: core, delay: 40ms}   # longer" in text(page)
    box = first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 1, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 8, steps=8)
    page.mouse.up()
    at = first.get_attribute("aria-valuetext") or ""
    assert 1.9 < float(at.removesuffix("s")) < 3 and f"{{at: {at}, link: core" in text(page)
    expect(page.get_by_test_id("event-1")).to_have_attribute("aria-disabled", "true")  # a parameter says when

    write(page, text(page).replace(f"at: {at}", "at: 2s"))
    expect(first).to_have_attribute("aria-valuetext", "2s")
    page.get_by_test_id("event-at").fill("2500ms")
    page.get_by_test_id("event-what").select_option("fail")
    page.get_by_test_id("add-event").click()
    expect(page.get_by_test_id("event-2")).to_have_attribute("aria-label", "core: down")
    assert "  - {at: 2500ms, link: core, down: true}" in text(page)
    page.get_by_test_id("remove-event-1").click()
    expect(page.get_by_test_id("event-2")).to_have_count(0)
    assert "${late}" not in text(page) and "# longer" in text(page) and "# small" in text(page)

    write(page, text(page).replace("at: 2500ms", "at: 25s"))
    expect(page.get_by_test_id("scenario-refusal")).to_contain_text('line 11: events[1].at "25s": is when all is over')
    expect(page.locator(".scenario .cm-lint-marker-error")).to_have_count(1)
    expect(page.get_by_test_id("run")).to_be_disabled()
    expect(page.get_by_test_id("save-scenario")).to_be_enabled()
    write(page, text(page).replace("at: 25s", "at: 3s"))
    expect(page.get_by_test_id("scenario-refusal")).to_have_text("")

    page.once("dialog", lambda dialog: dialog.accept("mine.scenario.yaml"))
    page.get_by_test_id("save-scenario").click()
    expect(page.get_by_test_id("scenario-file")).to_have_text("mine.scenario.yaml")
    assert "at: 3s" in (server.place / "mine.scenario.yaml").read_text()
    expect(page).to_have_url(re.compile("#/scenario/mine.scenario.yaml$"))
    first.focus()
    page.keyboard.press("Home")
    page.reload()
    expect(page.get_by_test_id("scenario-file")).to_have_text("mine.scenario.yaml •")
    expect(first).to_have_attribute("aria-valuetext", "0s")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_test_id("scenario-file")).to_have_text("mine.scenario.yaml")
    expect(other.get_by_test_id("event-0")).to_have_attribute("aria-valuetext", "2s")


def test_the_sweep_is_a_small_table(page: Page) -> None:
    shown(page)
    table = page.get_by_test_id("points")
    expect(table.get_by_role("row")).to_have_count(3)
    page.get_by_test_id("point-2").click()
    expect(page.get_by_test_id("step-load")).to_have_attribute(
        "title", "bulk, left1 → right1, 0s to 4s, congestion reno"
    )
    page.get_by_test_id("field-congestion").fill("cubic, reno, bic")
    page.get_by_test_id("field-congestion").press("Enter")
    expect(table.get_by_role("row")).to_have_count(4)
    assert "sweep: {congestion: [cubic, reno, bic]}" in text(page)


def test_what_it_costs_is_said_before_it_is_run(page: Page) -> None:
    """Of a lab and of a scenario; a text that changes has another verdict, and one that is wrong has none."""
    cost = re.compile("a second with all pairs sending takes about|virtual kernel is not built")
    expect(page.get_by_test_id("verdict-virtual")).to_contain_text(cost, timeout=DONE_MS)
    expect(page.get_by_test_id("verdict-live")).to_contain_text(re.compile("runs here|more than|refused|not known"))
    shown(page)
    verdict = page.locator(".scenario").get_by_test_id("verdict-virtual")
    expect(verdict).to_contain_text(re.compile("its runs take about .* of wall time"), timeout=DONE_MS)
    write(page, SCENARIO.replace("reno]", "nosuch]"))
    expect(page.locator(".scenario").get_by_test_id("verdict-live")).to_contain_text("✗ is refused: congestion control")
    write(page, SCENARIO.replace("20ms", "20"))
    expect(verdict).to_have_count(0)


def test_runs_wait_for_each_other(page: Page, server: Server) -> None:
    """Three are begun; in the middle one is taken out, the page is loaded again and the server killed and started.
    Each point of the sweep is told with its result."""
    (server.place / "brief.scenario.yaml").write_text(SCENARIO)
    page.goto(f"{server.url}#/scenario/brief.scenario.yaml")
    expect(page.get_by_test_id("scenario-file")).to_have_text("brief.scenario.yaml")
    for _ in range(3):
        page.get_by_test_id("run").click()
    runs = page.get_by_role("region", name="Runs")
    waiting = page.get_by_test_id("waiting").get_by_role("listitem")
    expect(waiting).to_have_count(2)
    expect(runs.get_by_test_id("job-1").locator(".state.running").first).to_be_visible()
    waiting.nth(0).get_by_role("button", name="Take brief, virtual out").click()
    expect(waiting).to_have_count(1)
    expect(runs.get_by_test_id("job-3").locator(".state")).to_have_text("waiting")
    server.kill()
    server.start()
    page.goto(server.url)
    page.get_by_test_id("page-scenario").click()
    for number in (1, 3):
        done = runs.get_by_test_id(f"job-{number}").locator("summary .state.done")
        expect(done).to_be_visible(timeout=DONE_MS)
    rows = runs.get_by_test_id("job-3").get_by_test_id("sweep").get_by_role("row")
    expect(rows.nth(0)).to_contain_text("aggregate goodput (Mbit/s)")
    for at, congestion in ((1, "cubic"), (2, "reno")):
        expect(rows.nth(at)).to_contain_text(re.compile(f"^{congestion}done[5-9]\\.[0-9]"))
    assert len(list((server.place / "results/.studio/jobs").glob("*/ended.json"))) == 2
