"""Counters of a device beside those of our cards behind it, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ewan.analysis import metrics
from ewan.analysis.figures import series
from ewan.analysis.rundata import RunData
from ewan.analysis.tests.synthetic import frame
from ewan.labs.record import tables
from ewan.labs.record.quantities import parse
from ewan.labs.record.series import SERIES

MS = 1_000_000


def told(ms: int, sent: int, link: str = "core", direction: str = "forward", **more: Any) -> dict[str, Any]:
    row = {"link": link, "direction": direction, "time_ns": ms * MS, "interval_ns": MS, "out_bytes": sent}
    return {"uncertainty_ns": 600_000, "restarted": False, **row, **more}


def counted(ms: int, sent: int, link: str = "core", direction: str = "forward") -> dict[str, Any]:
    return {"link": link, "direction": direction, "time_ns": ms * MS, "sent_bytes": sent, "rate_bps": 10**9}


def run(links: list[dict[str, Any]], device: list[dict[str, Any]]) -> RunData:
    given = {"links": frame("links", links), "device": frame("device", device)}
    return RunData(lambda name: given.get(name, tables.empty(name)))


def difference(data: RunData) -> float | None:
    return dict(metrics.computed([parse("device difference")], data)).get("device difference")


LINKS = [counted(0, 5_000), counted(10, 9_000), counted(20, 13_000), counted(20, 999, link="other")]


def test_bytes_of_the_device_are_held_against_ours() -> None:
    # Between the looks at 0 and 20 ms we counted 8000; the device says 7600 there, and more outside.
    device = [told(0, 50_000), told(5, 4_000), told(15, 3_600), told(22, 50_000)]
    assert difference(run(LINKS, device)) == pytest.approx(400 / 8_000)


def test_directions_do_not_make_up_for_each_other() -> None:
    links = [*LINKS, counted(0, 0, direction="backward"), counted(20, 2_000, direction="backward")]
    device = [told(5, 8_400), told(5, 1_600, direction="backward")]
    assert difference(run(links, device)) == pytest.approx((400 + 400) / 10_000)


def test_a_run_without_a_device_has_no_difference() -> None:
    assert difference(run(LINKS, [])) is None
    wanted = series.SeriesChoice(SERIES["device rate"], 10 * MS)
    assert series.of_run(run(LINKS, []), wanted) == {}


@pytest.mark.parametrize(("link", "shown"), [("", True), ("core", True), ("core forward", True), ("other", False)])
def test_the_device_is_drawn_beside_our_count(link: str, shown: bool) -> None:
    device = [told(5, 4_000), told(6, 2_000), told(15, 500, restarted=True)]
    found = series.of_run(run(LINKS, device), series.SeriesChoice(SERIES["device rate"], 10 * MS, link=link))
    if not shown:
        assert found == {}
        return
    assert set(found) == {"core → device", "core → ours"}
    # 3000 bytes in 1 ms are 24 Mbit/s; 4000 in 10 ms are 3.2 Mbit/s.
    assert list(found["core → device"].values) == [24e6, 4e6]
    assert list(found["core → ours"].values) == [3.2e6, 3.2e6]
    assert list(found["core → device"].times) == list(found["core → ours"].times) == [5 * MS, 15 * MS]
