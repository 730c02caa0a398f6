"""The view of running links: sums over a window, drawn as text."""

from __future__ import annotations

from labs.watch import CAUSES, sparkline, summary


def rows(**columns: list[int]) -> dict[str, list[int]]:
    names = ("out_bytes", "out_packets", "queue_max_bytes", *CAUSES, "lateness_max_ns")
    return {name: columns.get(name, [0, 0]) for name in names}


def test_a_window_adds_up() -> None:
    found = summary(rows(out_bytes=[125_000, 0], out_packets=[100, 0], lost=[1, 2], lateness_max_ns=[5, 900]))
    assert found["rate_bps"] == 500_000_000  # 125 kB in 2 ms
    assert found["out_packets"] == 100
    assert found["lost_packets"] == 3
    assert found["lateness_max_ns"] == 900


def test_bars_fill_with_the_queue() -> None:
    assert sparkline([0, 1, 50, 100], 100) == " ▁▄█"


def test_an_idle_link_has_no_rate() -> None:
    assert summary(rows(**{name: [] for name in rows()}))["rate_bps"] == 0
