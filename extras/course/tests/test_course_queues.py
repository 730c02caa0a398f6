"""What waits at a link, by a table that is made up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import polars as pl
import pytest

from ewan.extras.course.measures.base import MeasuredRun, NoValueError
from ewan.extras.course.measures.queues import most_waiting


@dataclass
class Looked:
    """A run whose links were looked at."""

    links: pl.DataFrame

    def table(self, name: str) -> pl.DataFrame:
        assert name == "links"
        return self.links


def test_the_most_that_waited_is_of_one_link_and_direction() -> None:
    rows = [("core", "forward", 10), ("core", "forward", 30), ("core", "backward", 90), ("access", "forward", 70)]
    run = cast(MeasuredRun, Looked(pl.DataFrame(rows, schema=["link", "direction", "queue_bytes"], orient="row")))
    assert most_waiting(run) == 30
    assert most_waiting(run, link="access") == 70
    with pytest.raises(NoValueError):
        most_waiting(run, link="cor")
