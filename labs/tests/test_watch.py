"""The view of running links: sums over a window, drawn as text."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.commands import watch
from ewan.labs.compile import HostFacts, compile
from ewan.labs.context import Context
from ewan.labs.hardware.counts import DeviceCount
from ewan.labs.link.direction import Heading
from ewan.labs.runtime.requests import SeriesColumns
from ewan.labs.spec import from_template
from ewan.labs.watch import HEADINGS, WatchedDirection, counters, sparkline, summary, view


def added_up(rows: SeriesColumns, ended: str | None = None, way: Heading = "forward") -> WatchedDirection:
    return summary("core", way, ended, rows)


def test_a_window_adds_up() -> None:
    columns = SeriesColumns(
        out_bytes=(125_000, 0), out_packets=(100, 0), lost=(1, 2), queue_max_bytes=(7, 3), lateness_max_ns=(5, 900)
    )
    found = added_up(columns)
    assert found.rate_bps == 500_000_000  # 125 kB in 2 ms
    assert (found.out_packets, found.lost_packets, found.lateness_max_ns) == (100, 3, 900)
    assert codec.line(found) == (
        b'{"link":"core","direction":"forward","ended":null,"rate_bps":500000000,"out_packets":100,'
        b'"queue_course_bytes":[7],"queue_max_bytes":7,"lost_packets":3,"queue_full_packets":0,"aqm_packets":0,'
        b'"store_full_packets":0,"lateness_max_ns":900}\n'
    )


def test_bars_fill_with_the_queue() -> None:
    assert sparkline([0, 1, 50, 100], 100) == " ▁▄█"


def test_an_idle_link_has_no_rate() -> None:
    assert added_up(SeriesColumns()).rate_bps == 0


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
    found = [added_up(SeriesColumns(), "out of bounds", way) for way in HEADINGS]
    table = view(plan, found)
    assert [row[2] for row in table.rows] == ["ended by a fault"] * 2


def test_what_a_device_counts_stands_beside_what_we_count() -> None:
    plan = compile(from_template("dumbbell", {"name": "wl"}), HostFacts(cpus=(0, 1), networks=()))
    ours = added_up(SeriesColumns())
    assert counters(plan, [ours]) is None, "a link of ours counts in the other table"
    table = counters(plan, [replace(ours, device=DeviceCount(9, 900, 1, 8, 800, None))])
    assert table is not None and table.rows == [["core", "r1 → r2", "9", "8", "1", "900", "800"]]
