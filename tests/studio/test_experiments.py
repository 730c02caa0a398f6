"""A person looks at what came out: experiments found by their tags, their certificates, figures with other axes, two
experiments side by side."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.studio.experiments import Made
from tests.studio.server import Server

pytestmark = pytest.mark.untimed


def test_experiments_are_listed_with_what_they_found(page: Page, server: Server, made: Made) -> None:
    made.copy(server.place)
    page.get_by_test_id("page-experiments").click()
    expect(page.get_by_role("row").filter(has_text="complete")).to_have_count(2)
    expect(page.get_by_role("row").filter(has_text="9.")).to_contain_text("4/4")
