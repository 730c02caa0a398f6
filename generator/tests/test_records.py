"""The records of a run become tables with the numbers and names of its schedule."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from ewan.calibration.tests.plans import plan
from ewan.generator import records
from ewan.generator.tests import schedules
from ewan.generator.tests.schedules import FLOW
from ewan.labs.base.codec import replace
from ewan.labs.link import Change
from ewan.labs.record import disturbances, tables
from ewan.labs.record.events import EventOutcome


def test_flows_have_the_numbers_and_names_of_the_schedule(tmp_path: Path) -> None:
    (tmp_path / "traffic").mkdir()
    each = [{"flow": 0, "part": part, "kind": "bulk", "connected_ns": 9, "error": None} for part in (1, 0)]
    (tmp_path / "traffic/traffic.json").write_bytes(orjson.dumps({"flows": each}))
    header = ",".join(tables.TABLES["goodput"])
    (tmp_path / "traffic/goodput.csv").write_text(f"{header}\n0,1,200,100,40,50\n0,0,100,100,30,\n0,0,2")
    assert records.collect(tmp_path, schedules.schedule([replace(FLOW, bidirectional=True)])) is None
    flows = tables.read(tmp_path, "flows")
    assert flows.select("flow", "part", "source", "sink").rows() == [
        (7, 0, "left1", "right1"),
        (7, 1, "right1", "left1"),
    ]
    goodput = tables.read(tmp_path, "goodput")
    assert goodput.rows() == [(7, 0, 100, 100, 30, None), (7, 1, 200, 100, 40, 50)], "what was cut short is left out"


def test_a_flow_without_a_record_says_so(tmp_path: Path) -> None:
    why = records.collect(tmp_path, schedules.schedule([FLOW]))
    assert why == "both left1 to right1: it left no record"
    (row,) = tables.read(tmp_path, "flows").rows(named=True)
    assert row["error"] == "it left no record" and row["volume_bytes"] == 100 and row["received_bytes"] is None


def test_a_rank_is_a_source(tmp_path: Path) -> None:
    flow = replace(FLOW, kind="messages", members=("left1", "left2"))
    (tmp_path / "traffic").mkdir()
    each = [{"flow": 0, "part": part, "kind": "messages", "error": None} for part in (0, 1)]
    (tmp_path / "traffic/traffic.json").write_bytes(orjson.dumps({"flows": each}))
    records.collect(tmp_path, schedules.schedule([flow]))
    assert tables.read(tmp_path, "flows")["source"].to_list() == ["left1", "left2"]


def test_the_rate_of_a_link_that_events_change_is_its_mean(tmp_path: Path) -> None:
    links = plan().links
    zeros = ",".join(["0"] * (len(tables.TABLES["links"]) - 4))
    rows = "".join(f"core,forward,{time},5,{zeros}\n" for time in (0, 1000))
    (tmp_path / "links.csv").write_text(f"{','.join(tables.TABLES['links'])}\n{rows}")
    made = {
        "link": "core",
        "direction": "forward",
        "at_ns": 900,
        "applied_ns": 900,
        "change": {"rate_bps": 5},
        "error": None,
    }
    (tmp_path / "events.json").write_bytes(orjson.dumps({"format": "ewan-events/1", "events": [made]}))
    records.collect(tmp_path, schedules.schedule(), links)
    mean = (links[0].forward.rate_bps * 900 + 5 * 100) / 1000
    assert tables.read(tmp_path, "links")["rate_bps"].to_list() == [5, round(mean)]
    (tmp_path / "events.json").write_bytes(orjson.dumps({"events": [{"link": 1}]}))
    with pytest.raises(ValueError, match="events"):
        records.collect(tmp_path, schedules.schedule(), links)


def test_what_links_and_events_may_do_to_packets() -> None:
    plain, copying = plan().links, plan(duplicate_ppb=5).links
    assert records._treatment(plain, []) == (False, False)
    assert records._treatment(copying, []) == (True, False)
    assert records._treatment(plan(reorder=True).links, []) == (False, True)
    changes = [Change(duplicate_ppb=1), Change(reorder=True)]
    made = [EventOutcome(1, "core", "forward", each, 1, None) for each in changes]
    assert records._treatment(plain, made) == (True, True)


def test_columns_that_are_not_the_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("link,rate\ncore,1\n")
    with pytest.raises(ValueError, match="columns are link, rate, expected link, direction"):
        records.collect(tmp_path, schedules.schedule())


def test_what_disturbed_a_run_is_judged_by_its_sources_or_its_tables(tmp_path: Path) -> None:
    assert records.disturbed(tmp_path) is None, "nobody watched"
    rows = {
        "releases": "core,forward,0,1000300000,1000000000,5000,500000,60,4000000,0,false,false\ncore,back",
        "spinners": "0,1,1000300000,1000000000,15000000,14000000,false\n",
        "machine": "1000300000,1000000000,2000000000,0,0,tsc,false\n",
    }
    for table, text in rows.items():
        (tmp_path / f"{table}.csv").write_text(",".join(tables.TABLES[table]) + f"\n{text}")
    before = records.disturbed(tmp_path)
    assert before is not None
    found, until_ns = before
    assert until_ns == 1_000_300_000 and [each.kind for each in found] == ["late", "taken"]
    assert disturbances.seconds(found) == [0]
    records.collect(tmp_path, schedules.schedule())
    for table in rows:
        (tmp_path / f"{table}.csv").unlink()
    assert records.disturbed(tmp_path) == before


def test_columns_of_a_congestion_control_have_the_kinds_of_their_values(tmp_path: Path) -> None:
    known = tables.TABLES["series"]
    names = ["cc.pacing_gain", "cc.mode", "cc.round", "cc.beta", "cc.never"]
    row = ",".join("1" for _ in known)
    (tmp_path / "series.csv").write_text(
        f"{','.join([*known, *names])}\n{row},1.0,DRAIN,7,0.5,\n{row},,3,-1,2,\n{row},,,18446744073709551615,,\n"
    )
    frame = records.csv(tmp_path / "series.csv", "series")
    found = {name: frame[name].to_list() for name in names}
    assert found["cc.pacing_gain"] == [1.0, None, None]
    assert found["cc.mode"] == ["DRAIN", "3", None]
    assert found["cc.beta"] == [0.5, 2.0, None] and found["cc.round"][:2] == [7, -1]
    assert found["cc.never"] == [None] * 3
    tables.write(tmp_path, "series", frame)
    assert tables.read(tmp_path, "series").equals(frame)


def test_other_columns_of_a_series_are_refused(tmp_path: Path) -> None:
    (tmp_path / "series.csv").write_text(f"{','.join(tables.TABLES['series'])},mode\n")
    with pytest.raises(ValueError, match=r"columns are .*mode, expected"):
        records.csv(tmp_path / "series.csv", "series")
