"""The report on A4: no table, figure or text is wider than the paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ewan.analysis import report
from ewan.analysis.tests import synthetic

pytestmark = pytest.mark.slow

A4_PX = 680
"""The text's width: 210 mm without margins of 15 mm, at 96 px an inch."""
POINTS = [
    {"congestion": name, "buffer": "0.125BDP", "application": "completion of short transfers", "reverse": 1}
    for name in ("reno", "cubic", "scalable")
] + [{"congestion": name, "buffer": "1BDP", "application": "long", "reverse": 1} for name in ("reno", "cubic")]
TOO_WIDE = """width => [...document.querySelectorAll('table, pre, svg, dl')]
  .filter(each => each.getBoundingClientRect().right > width + 1 || each.scrollWidth > each.clientWidth + 1)
  .map(each => each.closest('section').id + ': ' + each.textContent.trim().slice(0, 60))"""


def test_nothing_is_cut_at_the_width_of_a4(browser: Browser, tmp_path: Path) -> None:
    told = {"normalise": {"by": "congestion", "to": "reno"}}
    experiment = synthetic.experiment(tmp_path, POINTS, pairs=2, seconds=4, told=told)
    page_of_report = report.write(experiment)
    with browser.new_context(viewport={"width": A4_PX, "height": 1000}) as context:
        page = context.new_page()
        page.emulate_media(media="print")
        page.goto(page_of_report.as_uri())
        assert page.evaluate(TOO_WIDE, A4_PX) == []
        assert page.evaluate("document.documentElement.scrollWidth") == A4_PX
