"""What disturbed a live run, from its tables: each kind, what marks a run, what is told alone, and in which second."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ewan.labs.base import codec
from ewan.labs.record import disturbances
from ewan.labs.record.disturbances import Disturbance
from ewan.labs.record.summary import AllDisturbances
from ewan.labs.record.tables import TABLES

SECOND = 1_000_000_000
SOON = 300_000
"""A look comes a little after its second is full."""


def releases(*rows: dict[str, Any]) -> pl.DataFrame:
    """Each row a second of core forward, in order, unless it says otherwise."""
    usual = {
        "link": "core",
        "direction": "forward",
        "spinner": 0,
        "interval_ns": SECOND,
        "released_packets": 10_000,
        "bound_ns": 500_000,
        "late_packets": 0,
        "lateness_max_ns": 20_000,
        "overrun_packets": 0,
        "down": False,
        "ended": False,
    }
    return frame("releases", [{"time_ns": (n + 1) * SECOND + SOON, **usual, **row} for n, row in enumerate(rows)])


def spinners(*rows: dict[str, Any]) -> pl.DataFrame:
    usual = {"spinner": 0, "cpu": 1, "interval_ns": SECOND, "taken_ns": 0, "gap_max_ns": 0, "shared": False}
    return frame("spinners", [{"time_ns": (n + 1) * SECOND + SOON, **usual, **row} for n, row in enumerate(rows)])


def machine(*rows: dict[str, Any]) -> pl.DataFrame:
    usual = {
        "interval_ns": SECOND,
        "cpu_ns": 2 * SECOND,
        "stolen_ns": 0,
        "stepped_ns": 0,
        "clocksource": "tsc",
        "changed": False,
    }
    return frame("machine", [{"time_ns": (n + 1) * SECOND + SOON, **usual, **row} for n, row in enumerate(rows)])


def frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLES[table])


def of_links(*rows: dict[str, Any]) -> list[Disturbance]:
    """What of links alone is judged."""
    quiet: list[dict[str, Any]] = [{} for _ in rows]
    return disturbances.judge(releases(*rows), spinners(*quiet), machine(*quiet))


def test_a_quiet_run_has_no_disturbance() -> None:
    quiet: list[dict[str, Any]] = [{}, {}, {}]
    found = disturbances.judge(releases(*quiet), spinners(*quiet), machine(*quiet))
    assert found == [] and disturbances.seconds(found) == [] and disturbances.summary(found, 3 * SECOND) is None


def test_a_run_that_nobody_watched_says_so() -> None:
    assert disturbances.watched_ns(machine()) is None
    assert disturbances.watched_ns(machine({}, {})) == 2 * SECOND + SOON


def test_more_than_one_late_packet_in_a_hundred_marks_its_second() -> None:
    found = of_links({"late_packets": 100}, {}, {"late_packets": 101, "lateness_max_ns": 3_145_727}, {})
    assert [(each.kind, each.marks) for each in found] == [("late", False), ("late", True)]
    assert found[1].words == "101 of 10,000 packets left core forward later than 500 µs, up to 3.15 ms"
    assert disturbances.seconds(found) == [2]
    assert disturbances.intervals(found) == [(2 * SECOND + SOON, 3 * SECOND + SOON)]


def test_what_took_the_cpu_is_named_with_what_was_late() -> None:
    taken = {"taken_ns": 58_000_000, "gap_max_ns": 52_400_000}
    found = disturbances.judge(
        releases({"late_packets": 200, "lateness_max_ns": 52_000_000}),
        spinners(taken),
        machine({"stolen_ns": 60_000_000}),
    )
    cause = "CPU 1 was taken from its links for 58 ms, 52.4 ms at once, the hypervisor took 60 ms of CPU time"
    assert found[0].words.endswith(f"up to 52 ms: {cause}")
    assert [(each.kind, each.marks) for each in found] == [("late", True), ("taken", False), ("steal", False)]


@pytest.mark.parametrize(
    ("taken", "told"),
    [({"taken_ns": 9_000_000, "gap_max_ns": 900_000}, []), ({"gap_max_ns": 1_100_000}, ["taken"]),
     ({"shared": True}, ["shared"])],
)  # fmt: skip
def test_a_cpu_that_was_taken_marks_nothing_where_no_packet_was_late(taken: dict[str, Any], told: list[str]) -> None:
    found = disturbances.judge(releases({}), spinners(taken), machine({}))
    assert [each.kind for each in found] == told and disturbances.seconds(found) == []


@pytest.mark.parametrize(
    ("row", "kind", "marks", "words"),
    [
        ({"stolen_ns": 180_000_000}, "steal", False, "the hypervisor took 180 ms of CPU time"),
        ({"stepped_ns": -2_000_000}, "step", True, "the clock was set by -2 ms"),
        ({"changed": True, "clocksource": "hpet"}, "clock source", True, "the kernel's clock source became hpet"),
    ],
)
def test_what_happens_to_the_machine(row: dict[str, Any], kind: str, marks: bool, words: str) -> None:
    (found,) = disturbances.judge(releases({}, {}), spinners({}, {}), machine({}, row))
    assert (found.kind, found.marks, found.words, found.link) == (kind, marks, words, None)
    assert disturbances.seconds([found]) == ([1] if marks else [])


def test_what_is_too_little_of_the_machine_is_not_told() -> None:
    rows = ({"stolen_ns": 10_000_000}, {"stepped_ns": 9_000})
    assert disturbances.judge(releases({}, {}), spinners({}, {}), machine(*rows)) == []


def test_packets_that_found_no_room_mark_unless_the_link_was_taken_down() -> None:
    (found,) = of_links({"overrun_packets": 34}, {"overrun_packets": 50, "down": True})
    assert (found.kind, found.marks, found.words) == ("overrun", True, "34 packets found no room at core forward")
    assert disturbances.seconds([found]) == [0]


def test_a_link_that_ended_marks() -> None:
    (found,) = of_links({}, {"ended": True})
    assert found.kind == "ended" and found.marks and "fault in the program" in found.words


def test_a_second_of_few_packets_is_judged_with_those_that_follow() -> None:
    """A p99 takes a hundred of them: one that is late of ten says nothing, two of a hundred do."""
    few = {"released_packets": 25}
    alone = of_links(*[few] * 3, {**few, "late_packets": 1}, *[few] * 4)
    assert [each.marks for each in alone] == [False]
    both = of_links({**few, "late_packets": 1}, few, few, {**few, "late_packets": 1}, *[few] * 4)
    assert disturbances.seconds(both) == [0, 3]
    apart = of_links(*[few] * 3, {**few, "late_packets": 1}, {**few, "late_packets": 1}, *[few] * 3)
    assert [each.marks for each in apart] == [False, False]


def test_the_last_few_packets_are_judged_with_those_before() -> None:
    found = of_links({"late_packets": 100}, {"released_packets": 4, "late_packets": 2, "interval_ns": SECOND // 2})
    assert [each.marks for each in found] == [True, True], "102 of 10,004"
    found = of_links({}, {"released_packets": 4, "late_packets": 2, "interval_ns": SECOND // 2})
    assert [each.marks for each in found] == [False]


def test_each_direction_is_judged_alone() -> None:
    other = {"direction": "backward", "time_ns": SECOND + SOON, "late_packets": 150}
    found = of_links({"late_packets": 60}, other)
    assert [(each.where, each.marks) for each in found] == [("core backward", True), ("core forward", False)]


@pytest.mark.parametrize(
    ("begin_s", "end_s", "seconds"),
    [(2.0004, 3.0003, [2]), (6.0, 6.7, [6]), (3.0, 4.2, [3, 4]), (4.7, 5.0004, [4]), (0.0, 1.0, [0])],
)
def test_the_seconds_of_an_interval(begin_s: float, end_s: float, seconds: list[int]) -> None:
    begin, end = round(begin_s * SECOND), round(end_s * SECOND)
    assert disturbances.seconds([Disturbance(begin, end, "late", "core forward", "core", True, "")]) == seconds


def test_times_are_those_of_the_links_asked_for_and_of_all_links() -> None:
    def made(begin_s: int, link: str | None, marks: bool = True) -> Disturbance:
        return Disturbance(begin_s * SECOND, (begin_s + 1) * SECOND, "late", "", link, marks, "")

    found = [made(1, "a"), made(2, "b"), made(4, None), made(6, "a", marks=False)]
    assert disturbances.intervals(found) == [(SECOND, 3 * SECOND), (4 * SECOND, 5 * SECOND)]
    assert disturbances.intervals(found, ["b"]) == [(2 * SECOND, 3 * SECOND), (4 * SECOND, 5 * SECOND)]


def test_one_line_tells_the_seconds_the_places_and_the_first_cause() -> None:
    late = {"late_packets": 300, "lateness_max_ns": 4_000_000}
    found = of_links(*[{}] * 12, late, *[{}] * 4, late, *[{}] * 12)
    told = disturbances.summary(found, 30 * SECOND + SOON)
    assert told is not None
    assert told.startswith(
        "links left their tolerance in 2 of 30 s (core forward at 12 s, 17 s): 300 of 10,000 packets"
    )
    found = of_links(*[late] * 9)
    told = disturbances.summary(found, 9 * SECOND)
    assert told is not None and "in 9 of 9 s (core forward at 0 s, 1 s, 2 s, 3 s, 4 s and 4 more)" in told


def test_of_all_runs_the_share_of_the_load_is_told() -> None:
    total = AllDisturbances(4, 120 * SECOND, (2, 4), 5, 31, 1000, 0.031)
    told = disturbances.in_all(total)
    assert told == (
        "links left their tolerance in 2 of 4 runs (2, 4), in 5 of 120 s; 3.1 % of the load crossed them then"
    )
    assert disturbances.in_all(None) == "" and disturbances.in_all(codec.replace(total, runs=())) == ""
