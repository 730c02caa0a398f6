"""A person at the page, in a real browser: draws, is refused, brings a lab up, looks into it, changes it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pytest
from pcapng import FileScanner
from playwright.sync_api import Locator, Page, expect

from tests.conftest import Ewan
from tests.extras.studio.experiments import SCENARIO
from tests.extras.studio.server import Server
from tests.extras.studio.steps import put, save_as, text, until, write

pytestmark = pytest.mark.untimed

VERIFIED_MS, ROUTES_MS = 120_000, 60_000
RED = "rgb(164, 18, 31)"
"""Of what is wrong, in the light scheme."""


def test_text_and_drawing_are_one(page: Page, server: Server) -> None:
    """From the drawing into the text and back; comments stay; what is wrong is said at its line in both. What is not
    saved survives a reload."""
    expect(page.get_by_test_id("node-right1")).to_be_visible()
    page.get_by_test_id("template").select_option("graph")
    page.get_by_test_id("node-r2").click()
    page.get_by_test_id("add-host").click()
    expect(page.get_by_test_id("node-h1")).to_be_visible()
    assert "hosts: [a, b, h1]" in text(page) and "- {between: [r2, h1]}" in text(page)
    assert text(page).startswith("# A network drawn by hand.")
    put_at = re.findall(r"h1: \[-?\d+, -?\d+\]", text(page))[0]

    page.get_by_role("button", name="core", exact=True).click()
    put(page, "rate", "1Gbps/s")
    expect(page.get_by_test_id("refusal")).to_contain_text(
        'line 9: topology.graph.links[2].rate "1Gbps/s": write a rate'
    )
    expect(page.get_by_label("Drawing")).to_contain_text("line 9 is wrong")
    expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
    save_as(page, "drawn.lab.yaml")  # what is not finished is kept too
    until(lambda: "1Gbps/s" in (server.place / "drawn.lab.yaml").read_text())
    expect(page.get_by_label("Drawing")).to_contain_text("line 9 is wrong")
    expect(page.get_by_test_id("virtual")).to_be_disabled()
    put(page, "rate", "1Gbit/s")
    expect(page.get_by_label("Drawing")).to_contain_text("core 1Gbit/s 10ms")

    box = page.get_by_test_id("node-h1").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] - 60, steps=5)
    page.mouse.up()
    until(lambda: (now := re.search(r"h1: \[.*\]", text(page))) is not None and now[0] != put_at)

    page.get_by_test_id("save").click()
    until(lambda: "layout:" in (server.place / "drawn.lab.yaml").read_text())
    write(page, "topology: star\n")
    page.reload()
    expect(page.get_by_test_id("file")).to_have_text("drawn.lab.yaml •")
    assert "star" in text(page)


def test_two_tabs_do_not_write_over_each_other(page: Page, server: Server) -> None:
    save_as(page, "shared.lab.yaml")
    other = page.context.new_page()
    other.goto(server.url)
    other.get_by_label("Open").select_option("here/shared.lab.yaml")
    expect(other.get_by_test_id("file")).to_have_text("shared.lab.yaml")
    write(other, "topology: ring\n")
    other.get_by_test_id("save").click()
    expect(other.get_by_test_id("told")).to_contain_text("is written")
    write(page, "topology: star\n")
    page.get_by_test_id("save").click()
    expect(page.get_by_test_id("told")).to_contain_text("was changed by another user")
    assert (server.place / "shared.lab.yaml").read_text().startswith("topology: ring")


def test_a_verification_in_the_virtual_clock_is_of_its_description(page: Page) -> None:
    """Until that is changed."""
    save_as(page, "mine.lab.yaml")
    page.get_by_test_id("virtual").click()
    verification = page.get_by_test_id("verification")
    heading = verification.get_by_role("heading")
    expect(heading).to_contain_text("verified", timeout=VERIFIED_MS)
    expect(heading).to_have_class("up")
    expect(verification).not_to_contain_text("another description")
    write(page, "topology: dumbbell\nrtt: 30ms\n")
    expect(verification).to_contain_text("of another description than this one")
    expect(heading).to_have_class("quiet")
    write(page, "topology: dumbbell\n")
    expect(heading).to_have_class("up")
    expect(verification).not_to_contain_text("another description")


def test_what_is_typed_is_shown_and_never_run(page: Page) -> None:
    """Markup in a name is text, in the drawing and in the refusal."""
    write(page, "topology: dumbbell\nname: <img src=x onerror=alert(1)>\n")
    expect(page.get_by_test_id("refusal")).to_contain_text("<img src=x")
    assert page.locator("img").count() == 0


def test_a_scenario_is_run_and_its_report_is_read(page: Page, server: Server) -> None:
    (server.place / "brief.scenario.yaml").write_text(SCENARIO)
    page.reload()
    page.get_by_test_id("page-scenario").click()
    page.get_by_test_id("scenario").select_option("here/brief.scenario.yaml")
    expect(page.get_by_test_id("scenario-file")).to_have_text("brief.scenario.yaml")
    page.get_by_test_id("run").click()
    job = page.get_by_role("region", name="Runs").get_by_test_id("job-1")
    expect(job.locator("summary .state.done")).to_be_visible(timeout=VERIFIED_MS)
    page.get_by_test_id("page-experiments").click()
    row = page.locator("tbody tr").filter(has_text="brief")
    expect(row).to_contain_text("complete")
    row.get_by_role("link").click()
    expect(page.frame_locator("iframe").get_by_role("heading", name="A brief transfer")).to_be_visible()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Open the report alone").click()
    expect(opened.value.get_by_role("heading", name="A brief transfer")).to_be_visible()


def captures(process: psutil.Process, lab: str) -> bool:
    """Whether it is `ewan lab capture` of a lab."""
    words = process.info["cmdline"] or []
    return "capture" in words and lab in words


def rtt_ms(page: Page) -> float:
    """The last that ping told in the terminal; 0: none yet."""
    found = re.findall(r"time=([\d.]+) ms", page.get_by_test_id("terminal").inner_text())
    return float(found[-1]) if found else 0.0


@pytest.fixture
def lab(name: str, ewan: Ewan) -> Iterator[str]:
    """The name of a lab that is down afterwards, whatever happens."""
    yield name
    ewan("down", name)


def does_again_what_was_done(page: Page, server: Server, lab: str) -> None:
    """A scenario is made of it and run in the virtual clock: the same changes happen at the same times."""
    page.get_by_test_id("make-scenario").click()
    expect(page.get_by_test_id("scenario-file")).to_have_text(f"{lab}-again.scenario.yaml •")
    marks = page.get_by_role("slider", name=re.compile("^core: "))
    names = [mark.get_attribute("aria-label") for mark in marks.all()]
    assert names[0] == "core: delay 40ms" and names[-3:] == ["core: rate 50Mbit/s", "core: down", "core: up"], names
    page.get_by_test_id("run").click()
    run = page.get_by_role("region", name="Runs").get_by_role("listitem").first
    expect(run.locator("summary .state.done")).to_be_visible(timeout=VERIFIED_MS)
    (events,) = server.place.glob("results/*/runs/001/events.json")
    made = orjson.loads(events.read_bytes())
    times = [float((mark.get_attribute("aria-valuetext") or "").removesuffix("s")) for mark in marks.all()]
    seen = {round(each["at_ns"] / 1e9, 3) for each in made["events"]}
    assert {round(time, 3) for time in times} <= seen, (times, made)


def rows_come_while_it_is_measured(page: Page, ended: Locator) -> None:
    """The delays are there before the rates are; in the end the certificate is."""
    rows = page.get_by_test_id("verified-row")
    expect(rows.filter(has_text="delay p50")).to_have_count(2, timeout=VERIFIED_MS)
    assert rows.filter(has_text="rate").count() == 0
    expect(page.get_by_test_id("verification")).to_contain_text("measured so far")
    expect(ended).to_be_visible(timeout=VERIFIED_MS)
    expect(rows.filter(has_text="rate")).to_have_count(2)
    expect(rows.filter(has_text="release error p99")).to_have_count(2)
    expect(page.get_by_test_id("verification").get_by_role("heading")).to_contain_text("verified")


def test_a_live_lab_from_drawing_to_down(page: Page, server: Server, lab: str, state: Path) -> None:
    """In its middle the server is killed; the lab stays up, and the job is there when another server is."""
    page.get_by_role("button", name="core", exact=True).click()
    put(page, "delay", "10ms")
    put(page, "rate", "100Mbit/s")
    expect(page.get_by_label("Drawing")).to_contain_text("core 100Mbit/s 10ms")
    save_as(page, f"{lab}.lab.yaml")
    page.get_by_test_id("up").click()
    ended = page.get_by_test_id("job-1").locator(".state.done, .state.outside")  # the machine is busy with other tests
    rows_come_while_it_is_measured(page, ended)
    expect(page.get_by_test_id("job-1")).to_contain_text("base RTT")
    expect(page.get_by_test_id("now-core")).to_contain_text("queue")

    page.get_by_test_id("node-left1").dblclick()
    expect(page.get_by_test_id("terminal")).to_contain_text(f"left1@{lab}")
    page.keyboard.type("ping -4 -i 0.2 right1\n")
    until(lambda: 20 <= rtt_ms(page) < 60)

    server.kill()
    server.start()
    page.goto(server.url)
    expect(page.get_by_test_id("job-1")).to_contain_text("base RTT")
    page.get_by_test_id("node-left1").dblclick()
    expect(page.get_by_test_id("terminal")).to_contain_text(f"left1@{lab}")
    page.keyboard.type("ping -4 -i 0.2 right1\n")
    page.locator('[aria-label^="link core"]').focus()
    page.keyboard.press("Enter")
    page.get_by_test_id("delay").fill("40")
    page.get_by_test_id("delay").press("End")
    page.get_by_test_id("delay").fill("40")
    page.get_by_test_id("delay").dispatch_event("pointerup")
    expect(page.get_by_test_id("told")).to_contain_text("delay=40ms")
    expect(page.get_by_label("Drawing")).to_contain_text("core 100Mbit/s 40ms")
    until(lambda: 80 <= rtt_ms(page) < 120)

    page.get_by_test_id("when").fill("2")
    put(page, "rate", "50Mbit/s")
    expect(page.get_by_test_id("told")).to_contain_text("rate=50Mbit/s, both, in 2s")
    expect(page.get_by_test_id("done").get_by_role("row").nth(-1)).to_contain_text("rate=50Mbit/s")
    page.get_by_test_id("when").fill("")

    page.get_by_text("drops, marks, release error").first.click()
    expect(page.locator("details[open] .plot canvas:visible")).to_have_count(3)
    page.get_by_test_id("filter").fill("icmp")
    page.get_by_test_id("longest").fill("2s")
    page.get_by_test_id("show-packets").click()
    expect(page.get_by_test_id("packets")).to_contain_text("echo request", timeout=ROUTES_MS)
    with page.expect_download(timeout=ROUTES_MS) as kept:
        page.get_by_test_id("download").click()
    with kept.value.path().open("rb") as file:
        blocks = [type(block).__name__ for block in FileScanner(file)]
    assert kept.value.suggested_filename == f"{lab}-core-forward.pcapng" and blocks.count("EnhancedPacket") >= 4
    page.get_by_role("button", name="Stop", exact=True).click()
    until(lambda: not [each for each in psutil.process_iter(["cmdline"]) if captures(each, lab)], 10)
    page.get_by_test_id("filter").fill("icmp and")
    page.get_by_test_id("download").click()
    expect(page.get_by_test_id("told")).to_contain_text("icmp and")

    page.get_by_test_id("carrier").click()
    expect(page.get_by_test_id("told")).to_contain_text("down; no other path", timeout=ROUTES_MS)
    expect(page.get_by_test_id("link-core")).to_have_css("stroke", RED)
    page.get_by_test_id("when").fill("1s")
    page.get_by_test_id("carrier").click()
    expect(page.get_by_test_id("told")).to_contain_text("core: up, in 1s")
    expect(page.get_by_test_id("done").get_by_role("row").nth(-1)).to_contain_text("up", timeout=ROUTES_MS)
    does_again_what_was_done(page, server, lab)
    page.get_by_test_id("page-lab").click()
    page.get_by_test_id("take-down").click()
    expect(page.get_by_test_id("terminal")).to_have_count(0, timeout=ROUTES_MS)
    expect(page.get_by_test_id("up")).to_be_enabled()
    shown = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert lab not in shown and not list(state.glob("*"))
