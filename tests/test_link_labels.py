"""A link in a page is labelled by what it leads to: a label that is a file's name is the name of its target."""

from __future__ import annotations

import re
import subprocess

import pytest

from ewan.labs.base.product import ROOT

LINK = re.compile(r"\[`?(?P<label>[^\]`]*\.md)`?\]\((?P<target>[^)#\s]+)[^)]*\)")
PAGES = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.splitlines()


def wrong(page: str, text: str) -> list[str]:
    """The links of a page whose label is the name of another file than the target."""
    return [
        found[0]
        for found in LINK.finditer(text)
        if not str((ROOT / page).parent.joinpath(found["target"]).resolve()).endswith(f"/{found['label']}")
    ]


@pytest.mark.parametrize("page", PAGES)
def test_a_label_that_is_a_file_is_the_target(page: str) -> None:
    assert not wrong(page, (ROOT / page).read_text()), "label the link by the title of the page"


def test_a_label_that_is_another_file_is_found() -> None:
    page = "docs/tutorials/course.md"
    assert len(wrong(page, "[analysis.md](../how-to/results.md) and [`docs/import.md`](../how-to/import.md#x)")) == 2
    assert not wrong(page, "[results.md](../results.md#x), [Results](results.md), [docs/start/x.md](../start/x.md)")
