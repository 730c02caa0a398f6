"""A figure over time in characters: what stands on its axes."""

from __future__ import annotations

import pytest

from ewan.analysis.figures import terminal


@pytest.mark.parametrize(
    ("unit", "value", "shown", "top"),
    [("ns", 155_000_000, "ms", "155.0"), ("bit/s", 9_500_000, "Mbit/s", "9.5"), ("count", 40, "", "40.0")],
)
def test_its_unit_is_the_one_of_the_drawn_figure(unit: str, value: int, shown: str, top: str) -> None:
    rows = [f"RTT,{unit},{second},{value * second}" for second in range(2)]
    text = terminal.drawn("\n".join(["series,unit,time (s),value", *rows]), "RTT", 80)
    lines = text.splitlines()
    assert any(line.startswith(f"{top}┤") for line in lines), text
    assert lines[-1].split()[0] == (shown or terminal.TIME.split()[0])
