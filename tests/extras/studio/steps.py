"""What a person does at the lab's page, again and again."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page, expect


def text(page: Page) -> str:
    """The description, as the editor shows it."""
    return "\n".join(page.locator('.lab [role="textbox"] .cm-line').all_inner_texts())


def put(page: Page, field: str, value: str) -> None:
    page.get_by_test_id(f"field-{field}").fill(value)
    page.get_by_test_id(f"field-{field}").press("Enter")


def write(page: Page, description: str) -> None:
    """In the editor, in place of what is there."""
    page.get_by_test_id("text").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(description)


def until(what: Callable[[], bool], within_s: float = 30) -> None:
    end = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def save_as(page: Page, name: str) -> None:
    page.once("dialog", lambda dialog: dialog.accept(name))
    page.get_by_test_id("save").click()
    expect(page.get_by_test_id("file")).to_have_text(name)
