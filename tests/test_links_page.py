"""docs/explanation/links.md shows every stage of a link, and its pictures are those that the model makes today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ewan.calibration import trains
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.link.loss import LossKeys
from ewan.labs.link.queue import QueueKeys

PAGE = (Path(__file__).parents[1] / "docs/explanation/links.md").read_text()
ELSEWHERE = {"framing", "delay"}
"""Settings of what a packet is and of the link as a whole, which the page names with the others."""


def test_every_setting_of_a_link_is_on_the_page() -> None:
    words = [*DirectionKeys.model_fields, *LossKeys.words(), *QueueKeys.words()]
    missing = [word for word in words if not re.search(rf"\b{word}\b", PAGE) and word not in ELSEWHERE | {"bernoulli"}]
    assert not missing, f"write what {', '.join(missing)} does to packets into docs/explanation/links.md"


def test_the_page_shows_every_picture_and_no_other() -> None:
    shown = re.findall(r"\(links/([a-z0-9-]+)\.svg\)", PAGE)
    assert sorted(shown) == sorted(trains.TRAINS) == sorted(path.stem for path in trains.PLACE.iterdir())


@pytest.mark.parametrize("name", trains.TRAINS)
def test_a_picture_is_current(name: str) -> None:
    drawn = (trains.PLACE / f"{name}.svg").read_text()
    assert trains.picture(trains.TRAINS[name]) == drawn, "python -m ewan.calibration.trains draws it anew"


def test_a_picture_tells_what_was_dropped_and_marked() -> None:
    """The lines of a step that marks: nothing else tells whether the pictures say what they are about."""
    train = trains.TRAINS["step"]
    lines = trains.treated(train.settings, trains.packets(train.sources))
    assert any(line.marked for line in lines) and all(line.left_ns is not None for line in lines)
    train = trains.TRAINS["drop-tail"]
    lines = trains.treated(train.settings, trains.packets(train.sources))
    assert 8 <= sum(line.left_ns is None for line in lines) <= 12
