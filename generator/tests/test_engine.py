"""The engine's parts that need no lab: stop conditions, comparisons, archives, records, what is refused beforehand."""

from __future__ import annotations

import dataclasses
import os
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from generator import congestion, records, scenario
from generator.engine import (
    Facts,
    Parts,
    archive,
    compare,
    engine,
    experiment,
    reservation,
    show,
    stopping,
    stored,
    verification,
)
from generator.engine.experiment import Experiment, Job
from generator.engine.progress import Board
from generator.rows import frame_of
from generator.scenario import Stop
from generator.tests.origins import origin
from labs import routes
from labs.context import Context
from labs.plan import Plan
from labs.record import Certificate, MachineFacts, Row, tables
from labs.record.experiment import Entry
from labs.runtime import memory
from labs.runtime import occupied as occupied_module
from labs.runtime.base import LabError
from labs.runtime.occupied import occupied
from labs.runtime.program import Command, Event, Preparation, Program
from labs.runtime.progress import Progress
from labs.runtime.virtual import VirtualRuntime
from labs.stages import Change
from labs.units import NS_PER_MS, NS_PER_SECOND

CONTEXT = Context.of(os.environ)
TEXT = """
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}
seeds: 2
longest: 10s
sample: 100ms
steps:
  - {name: load, from: left1, to: right1, congestion: reno, for: 1s, bulk: {}}
"""


def jobs(text: str = TEXT) -> list[Job]:
    return list(engine.jobs(scenario.parse(text, Path("engine.scenario.yaml")).runs(), virtual=True))


def half_of_range(values: Sequence[float], confidence: float) -> tuple[float, float]:
    return sum(values) / len(values), (max(values) - min(values)) / 2


STOP = Stop("mean goodput", within=0.05, confidence=0.95, at_least=3, at_most=6)
A: stopping.Point = (("cc", "reno"),)
B: stopping.Point = (("cc", "bic"),)


def test_points_that_are_narrow_enough_are_not_repeated() -> None:
    result = {A: [100.0, 101.0, 99.0], B: [100.0, 130.0, 70.0]}
    seeds = {A: [1, 2, 3], B: [1, 2, 3]}
    assert stopping.further(STOP, result, seeds, half_of_range, at_once=2) == [(B, 4), (B, 5)]


def test_as_many_runs_as_fit_at_once_and_no_more_than_allowed() -> None:
    result = {A: [1.0, 9.0], B: [1.0, 9.0]}
    seeds = {A: [1, 2], B: [1, 2]}
    assert stopping.further(STOP, result, seeds, half_of_range, at_once=4) == [(A, 3), (B, 3), (A, 4), (B, 4)]
    assert stopping.further(STOP, result, {A: [1, 2, 3, 4, 5, 6], B: [1, 2, 3, 4, 5]}, half_of_range, 4) == [(B, 6)]
    assert stopping.further(STOP, result, {A: list(range(6)), B: list(range(6))}, half_of_range, 4) == []


def test_one_value_is_never_enough() -> None:
    assert not stopping.reached(dataclasses.replace(STOP, at_least=1), [100.0], half_of_range)
    assert not stopping.reached(STOP, [100.0, 100.0], half_of_range), "at least three"
    assert stopping.reached(STOP, [100.0, 100.0, 100.0], half_of_range)


def test_welch_finds_what_is_beyond_noise_and_nothing_else() -> None:
    before = [100.0, 101.0, 99.0, 100.5, 99.5]
    assert compare.judge("fairness per flow", before, [100.2, 99.8, 100.9, 99.3, 100.0], 0.01)[0] == "within noise"
    assert compare.judge("fairness per flow", before, [110.0, 111.0, 109.0, 110.5, 109.5], 0.01)[0] == "different"
    assert compare.judge("fairness per flow", before, list(reversed(before)), 0.01)[0] == "same"


def test_single_runs_have_a_stated_tolerance_or_none() -> None:
    assert compare.judge("aggregate goodput", [100.0], [109.0], 0.01)[0] == "within noise"
    verdict, why = compare.judge("aggregate goodput", [100.0], [120.0], 0.01)
    assert verdict == "different" and "different above 10%" in why
    assert compare.judge("queue loss", [0.0], [0.001], 0.01)[0] == "shown"


def summary(goodputs: Sequence[float]) -> dict[str, Any]:
    each = [{"metrics": {"mean goodput": {"value": value, "unit": "bit/s"}}, "parameters": {}} for value in goodputs]
    return {"runs": each}


def test_a_live_repetition_is_judged_metric_by_metric() -> None:
    (finding,) = compare.live(summary([9.1e6, 9.2e6, 9.3e6]), summary([4.1e6, 4.2e6, 4.3e6]))
    assert (finding.what, finding.before, finding.now) == ("mean goodput", "9.2 Mbit/s", "4.2 Mbit/s")
    assert finding.verdict == "different"


def test_the_first_difference_is_named(tmp_path: Path) -> None:
    for name in ("before", "now"):
        place = tmp_path / name
        place.mkdir()
        rows = [{"flow": 0, "part": 0, "number": n, "start_ns": n * 10, "duration_ns": 5} for n in range(3)]
        if name == "now":
            rows[2]["duration_ns"] = 6
        tables.write(place, "exchanges", frame_of(rows, "exchanges"))
        (place / "wall.json").write_text(name)
    before, now = tmp_path / "before", tmp_path / "now"
    assert compare.first_difference(before, now) == ("exchanges.parquet: row 2, duration_ns: 5 ns before, 6 ns now"), (
        "wall.json is of the machine"
    )
    (now / "events.json").write_text("{}")
    assert compare.first_difference(before, now) == "events.json is only in the repetition"


def test_an_archive_is_the_same_bytes_whoever_packs_it_when(tmp_path: Path) -> None:
    packed = []
    for name, age in (("a", 1), ("b", 10**9)):
        place = tmp_path / name
        (place / "runs/001/traffic").mkdir(parents=True)
        for file in ("experiment.json", "runs/001/flows.parquet", "runs/001/traffic/series.csv", ".reserve"):
            (place / file).write_text(file)

            os.utime(place / file, (age, age))
        archive.clean(place)
        packed.append(archive.pack(place, "x").read_bytes())
    assert packed[0] == packed[1]
    unpacked = archive.unpack(tmp_path / "a/x.tar.zst", tmp_path / "out")
    assert sorted(path.name for path in unpacked.rglob("*") if path.is_file()) == ["experiment.json", "flows.parquet"]


def test_a_program_is_read_back_as_it_was_written() -> None:
    program = Program(
        commands=(Command("left1", ("ping", "right1"), 5, True),),
        prepare=(Preparation("left1", ("true",)),),
        events=(Event(7, "core", "forward", Change(rate_bps=1)),),
        traffic={"flows": []},
        longest_ns=9,
        expected_ns=8,
        watch_ns=3,
    )
    assert stored.program(program.to_json(), 8) == program
    assert stored.program(program.to_json(), 8).to_json() == program.to_json()
    with pytest.raises(ValueError, match="format"):
        stored.program(b'{"format": "ewan-program/0"}', 0)


FLOW = {
    "number": 7,
    "request": 0,
    "name": "both left1 to right1",
    "step": "both",
    "role": "load",
    "transfer": 3,
    "kind": "bulk",
    "generator": "ewan",
    "source": "left1",
    "sink": "right1",
    "congestion": "reno",
    "scheduled_ns": 5,
    "volume_bytes": 100,
}


def test_flows_have_the_numbers_and_names_of_the_schedule(tmp_path: Path) -> None:
    (tmp_path / "traffic").mkdir()
    each = [{"flow": 0, "part": part, "kind": "bulk", "connected_ns": 9, "error": None} for part in (1, 0)]
    (tmp_path / "traffic/traffic.json").write_bytes(orjson.dumps({"flows": each}))
    header = ",".join(tables.TABLES["goodput"])
    (tmp_path / "traffic/goodput.csv").write_text(f"{header}\n0,1,200,100,40,50\n0,0,100,100,30,\n0,0,2")
    request = {"flows": [{"work": {"kind": "bulk", "bidirectional": True}}]}
    assert records.collect(tmp_path, {"flows": [FLOW]}, request) is None
    flows = tables.read(tmp_path, "flows")
    assert flows.select("flow", "part", "source", "sink").rows() == [
        (7, 0, "left1", "right1"),
        (7, 1, "right1", "left1"),
    ]
    goodput = tables.read(tmp_path, "goodput")
    assert goodput.rows() == [(7, 0, 100, 100, 30, None), (7, 1, 200, 100, 40, 50)], "what was cut short is left out"


def test_a_flow_without_a_record_says_so(tmp_path: Path) -> None:
    why = records.collect(tmp_path, {"flows": [FLOW]}, {"flows": [{"work": {}}]})
    assert why == "both left1 to right1: it left no record"
    (row,) = tables.read(tmp_path, "flows").rows(named=True)
    assert row["error"] == "it left no record" and row["volume_bytes"] == 100 and row["received_bytes"] is None


def test_a_rank_is_a_source(tmp_path: Path) -> None:
    flow = {**FLOW, "kind": "messages", "members": ["left1", "left2"]}
    (tmp_path / "traffic").mkdir()
    each = [{"flow": 0, "part": part, "kind": "messages", "error": None} for part in (0, 1)]
    (tmp_path / "traffic/traffic.json").write_bytes(orjson.dumps({"flows": each}))
    records.collect(tmp_path, {"flows": [flow]}, {"flows": [{"work": {"kind": "messages"}}]})
    assert tables.read(tmp_path, "flows")["source"].to_list() == ["left1", "left2"]


def test_columns_that_are_not_the_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("link,rate\ncore,1\n")
    with pytest.raises(ValueError, match="columns are link, rate, expected link, direction"):
        records.collect(tmp_path, {"flows": []}, None)


def test_the_virtual_kernel_has_the_congestion_controls_of_the_papers() -> None:
    assert {"reno", "cubic", "bic", "highspeed", "scalable", "htcp", "westwood", "vegas", "bbr"} <= set(
        congestion.in_virtual()
    )


def test_the_refusal_of_a_congestion_control_hints_at_the_virtual_clock() -> None:
    missing = [name for name in congestion.in_virtual() if name not in congestion.in_live(congestion.in_virtual())]
    if missing:
        with pytest.raises(LabError, match=f"{missing[0]}: this kernel lets nodes have .*reno.*--runtime virtual"):
            congestion.refuse(missing[:1], virtual=False)
        with pytest.raises(LabError, match=f"--runtime virtual, whose kernel has {missing[0]}$"):
            congestion.refuse([missing[0], "vegan"], virtual=False)
    with pytest.raises(LabError, match=r"vegan: this kernel lets nodes have [^:]*$"):
        congestion.refuse(["reno", "vegan"], virtual=False)
    congestion.refuse(["reno"], virtual=False)


def test_a_missing_tool_is_refused_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    (first, _) = jobs(TEXT.replace("congestion: reno,", "congestion: reno, generator: iperf3,"))
    reservation.tools(reservation.needs([first], virtual=True))
    monkeypatch.setattr(reservation, "SEARCHED", "/nowhere")
    with pytest.raises(LabError, match=r"^iperf3, which .* is not on this machine: install the package iperf3$"):
        reservation.tools(reservation.needs([first], virtual=True))


def test_records_that_the_disk_cannot_hold_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "available", lambda place: 1 << 20)
    with pytest.raises(LabError, match=r"records would be written, and 1MB are free in .*: make room there"):
        reservation.disk(reservation.needs(jobs(), virtual=True), tmp_path)


def test_plans_that_differ_by_their_seed_are_one_family() -> None:
    one, two = jobs()
    assert one.entry.plan_sha256 != two.entry.plan_sha256 and one.entry.family == two.entry.family
    (other, _) = jobs(TEXT.replace("20ms", "21ms"))
    assert other.entry.family != one.entry.family


def certificate(plan: Plan, verdict: Any) -> Certificate:
    facts = MachineFacts("", "", "", 1, 0, "", False, {})
    row = Row("core", "forward", "rate", "bit/s", 1e7, 2e7, 1e7, 1.0, verdict)
    return Certificate("", plan.lab, "", facts, {}, (row,), {}, {}, 0, "virtual")


def parts(verdict: str) -> Parts:
    """An engine's surroundings in which every lab has the same verdict, and nothing is analysed."""

    def certify(context: Context, plan: Plan, place: Path, virtual: bool, stop: threading.Event) -> Certificate:
        return certificate(plan, verdict)

    def analyse(place: Path) -> dict[str, Any]:
        return {"runs": [], "points": [], "beside": []}

    return Parts(certify, analyse, lambda place: place / "report.html", half_of_range)


def begun(place: Path, verdict: str, unverified: bool) -> int:
    facts = Facts({}, origin(scenario="engine"))
    prepared = engine.prepare(jobs(), facts, virtual=True, directory=place, unverified=unverified)
    return engine.run(prepared, parts=parts(verdict), context=CONTEXT)


@pytest.mark.parametrize(
    ("clock", "verdict", "says"),
    [
        ("live", "not measured", "beyond what this host can measure: core rate (too busy): --runtime virtual can"),
        ("live", "outside", "outside tolerance: core rate"),
        ("live", "ok", ""),
        ("virtual", "not measured", ""),
    ],
)
def test_what_a_host_cannot_show_is_not_believed(clock: Any, verdict: Any, says: str) -> None:
    (first, _) = jobs()
    made = certificate(first.plan, verdict)
    row = dataclasses.replace(made.rows[0], note="too busy")
    assert verification.refusal(dataclasses.replace(made, rows=(row,), clock=clock)) == says


def test_a_lab_outside_its_tolerances_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(verification.UnverifiedLabError, match="run 1: outside tolerance: core rate: nothing was run"):
        begun(tmp_path, "outside", unverified=False)
    document = orjson.loads((tmp_path / "experiment.json").read_bytes())
    assert document["status"] == "refused"
    assert [run["status"] for run in document["runs"]] == ["waiting", "waiting"]
    assert not list(tmp_path.glob("runs/*/flows.parquet"))


def test_a_lab_whose_routes_are_not_found_is_refused_with_the_reason(tmp_path: Path) -> None:
    def certify(context: Context, plan: Plan, place: Path, virtual: bool, stop: threading.Event) -> Certificate:
        raise routes.NotConvergedError("OSPF has not converged after 120s, no route from left1 to right1")

    without = dataclasses.replace(parts("ok"), certify=certify)
    facts = Facts({}, origin(scenario="engine"))
    says = "^lab engine of run 1: OSPF has not converged after 120s, no route from left1 to right1: nothing was run$"
    with pytest.raises(verification.UnverifiedLabError, match=says):
        prepared = engine.prepare(jobs(), facts, virtual=True, directory=tmp_path, unverified=True)
        engine.run(prepared, parts=without, context=CONTEXT)
    assert orjson.loads((tmp_path / "experiment.json").read_bytes())["status"] == "refused"


def test_unverified_runs_all_the_same_and_the_record_says_so(tmp_path: Path) -> None:
    assert begun(tmp_path, "outside", unverified=True) == 0
    document = orjson.loads((tmp_path / "experiment.json").read_bytes())
    assert document["unverified"] is True
    assert [run["verified"] for run in document["runs"]] == [False, False]
    assert pl.read_parquet(tmp_path / "runs/001/flows.parquet")["received_bytes"][0] > 1e5


def test_what_was_killed_before_its_document_was_there_has_not_begun(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path, origin(), "virtual")
    made.add(jobs()[0])
    with pytest.raises(LabError, match=r"the experiment had not begun when it ended: run it once more$"):
        Experiment.load(tmp_path)


def test_tables_that_the_document_does_not_record_are_made_again(tmp_path: Path) -> None:
    """As after a crash between a run's tables and the document."""

    def crash(place: Path) -> dict[str, Any]:
        raise KeyboardInterrupt

    facts, whole = Facts({}, origin(scenario="engine")), parts("ok")
    with pytest.raises(KeyboardInterrupt):
        crashing = dataclasses.replace(whole, analyse=crash)
        prepared = engine.prepare(jobs(), facts, virtual=True, directory=tmp_path)
        engine.run(prepared, parts=crashing, context=CONTEXT)
    written = {path: path.read_bytes() for path in tmp_path.glob("runs/*/*.parquet")}
    assert len(written) == 2 * len(tables.TABLES)
    left = Experiment.load(tmp_path)
    for path in written:
        left.disown(path.relative_to(tmp_path).as_posix())
        path.write_bytes(b"cut off")
    left.document.stages["logs"].status = "running"
    left.save()
    assert engine.resume(tmp_path, parts=whole, context=CONTEXT) == 0
    assert {path: path.read_bytes() for path in written} == written
    Experiment.load(tmp_path).check()


def test_a_killed_verification_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path, origin(), "virtual")
    first = jobs()[0]
    made.add(first)
    scratch = tmp_path / f"certificates/.{first.entry.family[:12]}"
    (scratch / "root/proc").mkdir(parents=True)
    (scratch / "uml").mkdir()
    seen: list[bool] = []

    def certify(context: Context, plan: Plan, place: Path, virtual: bool, stop: threading.Event) -> Certificate:
        seen.append(place.exists())
        return certificate(plan, "ok")

    verification.certify(CONTEXT, made, made.runs, dataclasses.replace(parts("ok"), certify=certify), None, 1)
    assert seen == [False] and not scratch.exists()


def test_what_a_killed_command_left_of_a_virtual_lab_is_replaced(tmp_path: Path) -> None:
    (first, _) = jobs()
    (tmp_path / "root/proc").mkdir(parents=True)
    (tmp_path / "uml").mkdir()
    assert not VirtualRuntime().run(first.plan, first.program, tmp_path).interrupted
    assert not (tmp_path / "root").exists() and not (tmp_path / "uml").exists()


def test_a_directory_is_for_one_virtual_lab_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with occupied(tmp_path) as lock:
        inherited = os.dup(lock)
    monkeypatch.setattr(occupied_module, "WAIT_S", 0.1)
    with pytest.raises(LabError, match="another virtual lab is at work there"), occupied(tmp_path):
        pass
    monkeypatch.setattr(occupied_module, "WAIT_S", 10)
    ending = threading.Timer(0.1, lambda: os.close(inherited))
    ending.start()
    with occupied(tmp_path):
        ending.join()


def test_a_document_survives_its_writing(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path, origin(), "virtual")
    made.add(jobs()[0])
    made.save()
    read = Experiment.load(tmp_path)
    assert read.runs == made.runs and read.job(read.runs[0]).program == made.job(made.runs[0]).program
    (tmp_path / "experiment.json").write_text('{"format": "ewan-experiment/0"}')
    with pytest.raises(LabError, match="this version reads"):
        Experiment.load(tmp_path)
    (tmp_path / "experiment.json").write_text('{"format": "ewan-experiment/1"}')
    with pytest.raises(LabError, match=r"experiment\.json: an older version made this experiment"):
        Experiment.load(tmp_path)
    assert dataclasses.fields(Entry) and experiment.STAGES["logs"] == "log handling"


def test_a_run_that_is_held_up_is_seen_in_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven runs of a minute took 3 s each; the twelfth has come to 0.6 s of it in 100 s, and needs hours."""
    now_ns = 0
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns)
    board = Board("execution", 12, 12 * 60 * NS_PER_SECOND)
    for number in range(12):
        board.begin(number, 60 * NS_PER_SECOND)
        if number == 11:
            break
        now_ns += 3 * NS_PER_SECOND
        board.move(number, Progress(3 * NS_PER_SECOND, 60 * NS_PER_SECOND))
        board.end(number)
    assert board.words() == "execution: 11 of 12 runs have ended, about 3s left"
    now_ns += 100 * NS_PER_SECOND
    board.move(11, Progress(100 * NS_PER_SECOND, 600 * NS_PER_MS))
    left = re.fullmatch(r".*, about (\d+)s left", board.words())
    assert left is not None and 1000 < int(left[1]) < 10_000, board.words()


@pytest.mark.parametrize(
    ("measured", "cells"),
    [
        ({"mean": 9.24e6, "low": 9.0e6, "high": 9.48e6, "unit": "bit/s"}, ["speed (Mbit/s)", "9.240 ± 0.240", "–"]),
        ({"mean": 0.025, "low": None, "high": None, "unit": "share"}, ["speed (%)", "2.500", "–"]),
        ({"mean": 150.5e9, "low": 150.4e9, "high": 150.6e9, "unit": "ns"}, ["speed (s)", "150.5 ± 0.1", "–"]),
        ({"mean": 0.99931, "low": None, "high": None, "unit": "ratio"}, ["speed", "0.9993", "–"]),
    ],
)
def test_values_are_shown_in_the_unit_that_the_first_one_fills(measured: dict[str, Any], cells: list[str]) -> None:
    assert show.row("speed", [measured, None]) == cells
