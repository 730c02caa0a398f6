"""UDT: the commands of its two ends, its refusals, the rows of their records; `tools/udt` holds captured ones.

The link lost 67 packets of the volume and 70 of the timed transfer, as its own counter (137) says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ewan.experiments.engine import reservation
from ewan.experiments.tests.engines import TEXT, jobs
from ewan.generator import external, scenario
from ewan.generator.external import udt
from ewan.generator.external.transfer import Output
from ewan.generator.rows import Row
from ewan.generator.scenario import ScheduledRun
from ewan.generator.tests import schedules
from ewan.labs.base.source import DescriptionError
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.runtime.base import LabError

TOOLS = Path(__file__).resolve().parent / "tools"
PAYLOAD = 1500 - 20 - 8 - 16


def scheduled(text: str) -> ScheduledRun:
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    return run.schedule(compile_spec(run.spec, HostFacts((0, 1), (), "virtual")), "virtual")


def step(words: str) -> str:
    return f"lab: dumbbell\nsteps: [{{name: a, generator: udt, from: left1, to: right1, {words}}}]\n"


def captured(name: str, volume: int | None, stderr: str = "", **other: Path) -> Any:
    """Rows of captured outputs, as if the commands had begun at T0."""
    ends = {end: TOOLS / f"udt/{name}-{end}.json" for end in ("send", "receive")} | other
    at_ns = 300 * NS_PER_MS
    row: Row = {"flow": 0, "part": 0, "scheduled_ns": at_ns, "volume_bytes": volume, "congestion": None}
    return udt.rows(
        Output(schedules.FLOW, row, ends["send"].read_bytes(), stderr, Path(), 0, 200 * NS_PER_MS, ends["receive"])
    )


def test_both_ends_start_early_and_the_sender_waits() -> None:
    server, client = scheduled(step("at: 1s, for: 2s, bulk: , send_buffer: 4MB, dscp: 46")).program.commands
    assert (server.node, client.node) == ("right1", "left1")
    assert server.at_ns == client.at_ns == NS_PER_SECOND - udt.LEAD_NS and server.service
    assert " --after-ns 300000000 --for-ns 2000000000" in " ".join(client.argv)
    assert "--buffer 4000000" in " ".join(client.argv) and "--buffer" not in server.argv and "46" in server.argv


def test_a_schedule_begins_when_both_ends_are_there() -> None:
    schedule = scheduled(step("bulk: 1MB"))
    assert schedule.document.begin_ns == udt.LEAD_NS
    assert {command.at_ns for command in schedule.program.commands} == {0}
    assert schedule.document.flows[0].congestion is None
    assert "1000000" in schedule.program.commands[0].argv and "1000000" in schedule.program.commands[1].argv


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("bulk: 1MB, congestion: reno", 'congestion "reno": udt has a congestion control of its own: leave it out'),
        ("bulk: 1MB, streams: 2", 'streams "2": udt makes one connection'),
        ("bulk: 1MB, mss: 1000", "udt sends packets of the path's MTU: leave it out"),
        ("bulk: 1MB, ecn: true", "udt is not TCP"),
        ("for: 1s, udp: {size: 100B, rate: 1Mbit/s}", "udp: udt sends only bulk, not udp"),
    ],
)
def test_what_is_not_for_udt_is_refused(words: str, message: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        scheduled(step(words))
    assert message in str(refused.value)


@pytest.mark.parametrize("words", ["congestion: udt", ""])
def test_its_own_control_may_be_named_and_a_default_is_not_its(words: str) -> None:
    """A sweep over congestion controls names it beside the others'."""
    text = step(f"bulk: 1MB{', ' if words else ''}{words}") + "defaults: {congestion: bic}\n"
    assert scheduled(text).document.flows[0].congestion is None


def test_a_complete_volume_tells_its_time_and_its_losses() -> None:
    rows = captured("volume", 2_000_000)
    (flow,) = rows["flows"]
    assert flow["received_bytes"] == 2_000_000 and flow["segment_bytes"] == PAYLOAD and flow["congestion"] == "udt"
    assert flow["completion_ns"] == 4_230_516_964 - 1_018_000_000 - 300 * NS_PER_MS
    assert flow["received_packets"] == -(-2_000_000 // PAYLOAD)
    assert flow["lost_packets"] == flow["retransmitted_segments"] == 67
    assert sum(each["delivered_bytes"] for each in rows["goodput"]) == 2_000_000
    assert sum(each["arrived_bytes"] for each in rows["goodput"]) == pytest.approx(2_000_000, abs=PAYLOAD)


def test_a_sender_that_the_clock_ends_has_no_completion_time() -> None:
    rows = captured("timed", None)
    (flow,) = rows["flows"]
    assert flow["completion_ns"] is None and flow["lost_packets"] is None
    assert flow["sent_packets"] - flow["received_packets"] == 70
    assert flow["received_bytes"] == sum(each["delivered_bytes"] for each in rows["goodput"])
    assert flow["goodput_bps"] * (flow["ended_ns"] - flow["scheduled_ns"]) == pytest.approx(
        flow["received_bytes"] * 8 * NS_PER_SECOND
    )


def test_the_senders_state_is_a_series() -> None:
    series = captured("volume", 2_000_000)["series"]
    assert [each["time_ns"] for each in series[:2]] == [400 * NS_PER_MS, 600 * NS_PER_MS]
    assert all(20 * NS_PER_MS < each["srtt_ns"] < 100 * NS_PER_MS for each in series)
    # A packet of 1472 bytes in a period of 3040019 ns.
    assert series[-1]["retransmitted_segments"] == 67
    assert series[1]["pacing_rate_bps"] == pytest.approx(1472 * 8 / 3.04e-3, rel=0.1)


@pytest.mark.parametrize(
    ("other", "stderr", "error"),
    [
        ({"send": ""}, "ewan-udt: connecting: Connection setup failure: timed out\n", "udt: connecting: Connection"),
        ({"send": '{"format"'}, "", "udt: its output is not whole"),
        ({"receive": ""}, "", "udt: its receiver left no record"),
    ],
)
def test_what_was_not_said_is_an_error(other: dict[str, str], stderr: str, error: str, tmp_path: Path) -> None:
    for end, text in other.items():
        (tmp_path / end).write_text(text)
    rows = captured("volume", 2_000_000, stderr, **{end: tmp_path / end for end in other})
    assert rows["flows"][0]["error"].startswith(error) and "goodput" not in rows


def test_where_the_program_is_not_built_it_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "/nowhere/ewan-udt"
    monkeypatch.setattr(udt, "PROGRAM", missing)
    tool = dataclasses.replace(udt.TOOL, programs={missing: "libudt-dev"})
    monkeypatch.setattr(external, "TOOLS", {"udt": tool})
    (first, *_) = jobs(TEXT.replace("congestion: reno,", "generator: udt,"))
    with pytest.raises(LabError, match=r'^/nowhere/ewan-udt, .* is not on this machine: write "make udt"'):
        reservation.tools(reservation.needs([first], virtual=True))
