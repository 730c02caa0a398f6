"""A person looks at what came out: experiments found by their tags, their certificates, figures with other axes, two
experiments side by side, and links that another tab opens."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.conftest import Ewan
from tests.extras.studio.conftest import looking
from tests.extras.studio.experiments import Made
from tests.extras.studio.server import Server

pytestmark = pytest.mark.untimed

Open = Callable[[str], Page]
BROKEN = "20250101T000000Z-broken"

DRAWN_MS, MADE_MS = 30_000, 60_000


@pytest.fixture(scope="module")
def place(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with both experiments, and one that cannot be read."""
    place = tmp_path_factory.mktemp("place")
    made.copy(place)
    (place / "results" / BROKEN).mkdir()
    (place / "results" / BROKEN / "experiment.json").write_text("{")
    return place


@pytest.fixture(scope="module")
def studio(place: Path, state: Path) -> Iterator[Server]:
    """One for all tests: the second question to it is answered sooner."""
    studio = Server(place, state)
    studio.start()
    yield studio
    studio.kill()


@pytest.fixture
def opened(browser: Browser, studio: Server) -> Iterator[Open]:
    """The page at a part of an address, as somebody has it who opens a link."""
    with looking(browser) as page:
        page.goto(studio.url)

        def open_at(where: str) -> Page:
            page.goto("about:blank")
            page.goto(f"{root(studio)}/#/experiments{where}")
            return page

        yield open_at


def root(server: Server) -> str:
    return server.url.partition("/?")[0]


def rows_of(page: Page) -> Locator:
    """Experiments that are listed."""
    return page.get_by_label("Experiments", exact=True).locator("tbody tr")


def kept(page: Page, button: str) -> Path:
    """The file that a button gives."""
    with page.expect_download(timeout=DRAWN_MS) as found:
        page.get_by_test_id(button).click()
    path = Path(found.value.path())
    return path.rename(path.with_name(found.value.suggested_filename))


def test_experiments_are_found_by_tags_and_words(opened: Open, place: Path, made: Made) -> None:
    page = opened("")
    rows = rows_of(page)
    expect(rows).to_have_count(3)
    expect(page.get_by_test_id(f"experiment-{made.first}")).to_contain_text("4/4")
    expect(page.get_by_test_id(f"experiment-{made.first}")).to_contain_text("verified")
    page.get_by_test_id(f"experiment-{made.first}").get_by_role("link").click()
    page.get_by_test_id("add-tag").fill("figure-3 draft")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("tag-draft")).to_be_visible()
    page.get_by_role("button", name="take the tag draft away").click()
    expect(page.get_by_test_id("tag-draft")).to_have_count(0)
    page.get_by_test_id("edit-labels").click()
    page.get_by_test_id("label-name").fill("<b>Slow</b> <img src=x>")
    page.get_by_test_id("label-note").fill("x" * 5000)
    page.get_by_test_id("keep-labels").click()
    expect(page.get_by_test_id("told")).to_contain_text("note: write at most 4000")
    page.get_by_test_id("label-note").fill("for section 4 <script>")
    page.get_by_test_id("keep-labels").click()
    expect(page.get_by_role("heading", name="<b>Slow</b> <img src=x>")).to_be_visible()
    expect(page.locator("p.note")).to_have_text("for section 4 <script>")
    assert page.locator("section img, h2 b").count() == 0, "markup is text"

    page.get_by_test_id("page-experiments").click()
    page.get_by_test_id("by-tag").select_option("figure-3")
    expect(rows).to_have_count(1)
    expect(page).to_have_url(re.compile(r"#/experiments\?tag=figure-3$"))
    other = opened("?text=section&clock=virtual")
    expect(other.get_by_test_id("found")).to_have_text("1 of 3 experiments")
    expect(rows_of(other)).to_contain_text("<b>Slow</b>")
    assert '"figure-3"' in (place / "results" / made.first / "experiment.json").read_text()


def test_one_that_cannot_be_read_says_so(opened: Open) -> None:
    page = opened("?sort=name")
    expect(rows_of(page)).to_have_count(3)
    row = page.get_by_test_id(f"experiment-{BROKEN}")
    expect(row).to_contain_text("not readable")
    row.get_by_role("link").click()
    expect(page.get_by_test_id("unreadable")).to_contain_text("is damaged")
    opened("/secret")
    expect(page.get_by_test_id("unreadable")).to_contain_text("there is no such experiment")


def test_certificates_results_and_the_report(opened: Open, place: Path, made: Made) -> None:
    (place / "results" / made.second / "report.html").unlink()
    page = opened(f"/{made.second}")
    page.get_by_test_id("make-report").click()
    report = page.frame_locator("iframe")
    expect(report.get_by_role("heading", name="A brief transfer")).to_be_visible(timeout=MADE_MS)
    assert page.get_by_test_id("report").get_attribute("sandbox") == "allow-downloads"
    page.get_by_test_id("part-runs").click()
    run = page.get_by_test_id("runs").locator("tbody tr").nth(2)
    expect(run).to_contain_text("40ms")
    run.get_by_role("link", name=re.compile("^[0-9a-f]{12}$")).click()
    certificate = page.get_by_test_id("certificate")
    expect(certificate).to_contain_text("brief verified: 17 of 17 measurements within tolerance")
    expect(certificate.get_by_role("row").filter(has_text="delay p50").first).to_contain_text("20.0552 ms")
    page.get_by_test_id("part-results").click()
    expect(page.get_by_test_id("tables")).to_contain_text("aggregate goodput (Mbit/s)")
    page.get_by_test_id("part-files").click()
    archive = kept(page, "export-csv")
    assert archive.name == f"{made.second}-csv.zip" and archive.read_bytes()[:2] == b"PK"


def test_a_figure_with_other_axes_is_exported(opened: Open, place: Path, made: Made, ewan: Ewan) -> None:
    """Its files are those that the command beside it writes."""
    page = opened(f"/{made.first}/figure")
    expect(page.get_by_test_id("figure").locator("img")).to_have_attribute(
        "data-line", "aggregate goodput by rtt", timeout=DRAWN_MS
    )
    page.get_by_test_id("choose-kind").select_option("time")
    page.get_by_test_id("choose-what").select_option("cwnd")
    page.get_by_test_id("field-run").fill("3")
    page.get_by_test_id("field-run").press("Enter")
    page.get_by_test_id("field-from").fill("1s")
    page.get_by_test_id("field-from").press("Enter")
    line = "cwnd over time, run 3, from 1s"
    picture = page.get_by_test_id("figure").locator("img")
    expect(picture).to_have_attribute("data-line", line, timeout=DRAWN_MS)
    assert picture.evaluate("image => image.naturalWidth") > 100, "it can be drawn by a browser"
    svg, data = kept(page, "figure-svg"), kept(page, "figure-csv")
    assert svg.name == "cwnd-over-time-run-3-from-1s.svg" and svg.read_text().startswith("<?xml")
    rows = list(csv.DictReader(data.open()))
    assert {row["rtt"] for row in rows} == {"40ms"} and min(float(row["time (s)"]) for row in rows) >= 1
    command = shlex.split(page.get_by_test_id("figure-command").inner_text())
    assert command[:5] == ["ewan", "results", "plot", f"results/{made.first}", line]
    assert ewan(*command[1:], cwd=place).returncode == 0
    assert (place / command[-1]).read_bytes() == svg.read_bytes()
    assert (place / command[-1]).with_suffix(".csv").read_bytes() == data.read_bytes()

    page.get_by_test_id("figure-line").fill("godput by rtt")
    page.get_by_test_id("figure-line").press("Enter")
    expect(page.get_by_test_id("figure-wrong")).to_have_text('"godput by rtt": unknown metric, write "goodput"')
    expect(picture).to_have_attribute("data-line", line)

    page.get_by_test_id("figure-line").fill("goodput by rtt, scale log, points all")
    page.get_by_test_id("figure-line").press("Enter")
    expect(page.get_by_test_id("choose-scale of x")).to_have_value("log", timeout=DRAWN_MS)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_test_id("choose-points")).to_have_value("all", timeout=DRAWN_MS)


def test_two_experiments_side_by_side(opened: Open, made: Made) -> None:
    page = opened("")
    for name in (made.second, made.first):
        page.get_by_test_id(f"experiment-{name}").get_by_role("checkbox").check()
    page.get_by_test_id("side-by-side").click()
    expect(page).to_have_url(re.compile(f"#/experiments/{made.first}/beside/{made.second}$"))
    expect(page.get_by_role("row").filter(has_text="rate").first).to_contain_text("20Mbit/s")
    expect(page.get_by_role("row").filter(has_text="core → rate")).to_contain_text("20 Mbit/s of 20 Mbit/s")
    both = page.get_by_test_id("figure-both")
    expect(both.locator("img")).to_have_attribute("data-line", "aggregate goodput by rtt", timeout=DRAWN_MS)
    rows = list(csv.DictReader(kept(page, "figure-both-csv").open()))
    assert [(row["experiment"], row["rtt"]) for row in rows] == [
        (f"rate = {rate}", rtt) for rate in ("10Mbit/s", "20Mbit/s") for rtt in ("20ms", "40ms")
    ]
    assert float(rows[2]["mean"]) > 1.5 * float(rows[0]["mean"])
    page.get_by_test_id("choose-lines").select_option("experiment")
    expect(both.locator("img")).to_have_attribute(
        "data-line", "aggregate goodput by rtt, lines experiment", timeout=DRAWN_MS
    )
    expect(page.get_by_test_id("figure-both-command")).to_contain_text(f"--beside results/{made.second}")
    page.get_by_test_id("apart").click()  # the page's address says whether it is checked, which comes a little later
    expect(page.get_by_test_id("apart")).to_be_checked()
    for side in ("first", "second"):
        expect(page.get_by_test_id(f"figure-{side}").locator("img")).to_be_visible(timeout=DRAWN_MS)


def test_a_link_is_opened_by_somebody_else(browser: Browser, opened: Open, studio: Server, made: Made) -> None:
    """It has no token; who has none is told what to do, and the address with the token leads to the same place."""
    page = opened(f"/{made.first}/figure/{quote('rtt over time', safe='')}?style=slide")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_test_id("copy-link").click()
    expect(page.get_by_test_id("told")).to_contain_text("the link is copied")
    link: str = page.evaluate("navigator.clipboard.readText()")
    assert "token" not in link and link == page.url
    with looking(browser) as other:
        refused = other.goto(link)
        assert refused is not None and refused.status == 401
        expect(other.locator("body")).to_contain_text("open the address with ?token= that ewan studio printed")
        other.goto(f"{studio.url}#{link.partition('#')[2]}")
        expect(other).to_have_url(link)
        expect(other.get_by_test_id("choose-size")).to_have_value("slide", timeout=DRAWN_MS)
        expect(other.get_by_test_id("figure-command")).to_contain_text("'rtt over time' --style slide")
    page.goto(studio.url)
    assert "token" not in page.url


def test_view_shows_and_changes_nothing(browser: Browser, place: Path, state: Path, made: Made) -> None:
    before = (place / "results" / made.first / "experiment.json").read_bytes()
    projector = Server(place, state)
    with looking(browser) as page:
        page.goto(projector.start("--view"))
        page.goto(f"{root(projector)}/#/experiments/{made.first}")
        expect(page.get_by_test_id("make-report")).to_be_disabled()
        expect(page.get_by_test_id("add-tag")).to_have_count(0)
        page.get_by_test_id("part-figure").click()
        expect(page.get_by_test_id("figure").locator("img")).to_be_visible(timeout=DRAWN_MS)
    projector.kill()
    assert (place / "results" / made.first / "experiment.json").read_bytes() == before
