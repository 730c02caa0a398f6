"""A server of studio in a directory of its own, and Debian's Chromium that looks at its page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.conftest import Ewan
from tests.extras.studio.experiments import SCENARIO, Made
from tests.extras.studio.server import CHROMIUM, FLAGS, HEIGHT, WIDTH, Server

expect.set_options(timeout=15_000)  # the machine is busy with other tests


@pytest.fixture
def server(tmp_path: Path, state: Path) -> Iterator[Server]:
    server = Server(tmp_path, state)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def looking(browser: Browser) -> Iterator[Page]:
    """A person with a browser of his own. Nothing goes wrong unnoticed in the page, nor is refused by its own
    Content-Security-Policy."""
    wrong: list[str] = []
    with browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if "Content Security" in line.text else None)
        yield page
    assert wrong == []


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """The page."""
    with looking(browser) as page:
        page.goto(server.url)
        yield page


@pytest.fixture(scope="session")
def made(ewan: Ewan, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two experiments, which take ten seconds."""
    place = tmp_path_factory.mktemp("made")
    (place / "brief.scenario.yaml").write_text(SCENARIO)
    for rate in ("10Mbit/s", "20Mbit/s"):
        done = ewan("run", "brief.scenario.yaml", "--runtime", "virtual", "--set", f"rate={rate}", cwd=place)
        assert done.returncode == 0, done.stderr
    return Made(place, *sorted(path.name for path in (place / "results").glob("*-brief*")))
