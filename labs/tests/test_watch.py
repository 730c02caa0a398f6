"""The view of running links: sums over a window, drawn as text."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from ewan.labs.commands import watch
from ewan.labs.compile import HostFacts, compile
from ewan.labs.context import Context
from ewan.labs.spec import from_template
from ewan.labs.watch import CAUSES, counters, sparkline, summary, view


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


def test_a_lab_of_kernel_links_says_why_there_is_nothing_to_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"name": "kl", "emulator": "kernel"}
    plan = compile(from_template("dumbbell", settings), HostFacts(cpus=(0, 1), networks=()))
    up = SimpleNamespace(names=lambda: ["kl"], load=lambda name: SimpleNamespace(plan=plan))
    monkeypatch.setattr(Context, "live", lambda context: up)
    monkeypatch.setattr(watch, "as_root", lambda context: None)
    result = CliRunner().invoke(watch.watch_command, ["kl"], obj=Context.of({}))
    assert result.exit_code == 2
    assert "the links of kl are made of the kernel's parts" in result.output


def test_a_link_that_a_fault_ended_shows() -> None:
    plan = compile(from_template("dumbbell", {"name": "wl"}), HostFacts(cpus=(0, 1), networks=()))
    idle = summary(rows(**{name: [] for name in rows()}))
    found = [{"link": "core", "direction": way, "ended": "out of bounds", **idle} for way in ("forward", "backward")]
    table = view(plan, found)
    assert [row[2] for row in table.rows] == ["ended by a fault"] * 2


def test_what_a_device_counts_stands_beside_what_we_count() -> None:
    plan = compile(from_template("dumbbell", {"name": "wl"}), HostFacts(cpus=(0, 1), networks=()))
    device = {"out_packets": 9, "came_packets": 8, "dropped_packets": 1, "out_bytes": 900, "came_bytes": 800}
    found = [{"link": "core", "direction": way} for way in ("forward", "backward")]
    assert counters(plan, found) is None, "a link of ours counts in the other table"
    table = counters(plan, [found[0] | {"device": device}])
    assert table is not None and table.rows == [["core", "r1 → r2", "9", "8", "1", "900", "800"]]
