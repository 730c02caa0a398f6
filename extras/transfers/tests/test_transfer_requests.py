"""Files of transfer requests: their meaning on a lab, refusals, and the scenarios of plans."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from ewan.extras.transfers import outcomes, reading, scenario_text, strategies
from ewan.extras.transfers.reading import TransferRequests
from ewan.generator import scenario
from ewan.generator.tests.scenarios import FACTS, flows, planned
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import tables
from ewan.labs.spec import DescriptionError
from tests.conftest import ROOT

LAB = "lab: {topology: {dumbbell: {pairs: 2}}, rtt: 20ms, wan: {rate: 100Mbit/s}}\n"
TWO = (
    LAB
    + """congestion: bic
requests:
  - {name: first, from: left1, to: right1, volume: 5MB, deadline: 60s, rate: 200Mbit/s}
  - {name: second, from: left2, to: right2, volume: 5MB, deadline: 60s, rate: 50Mbit/s}
"""
)
# Of 1538 bytes of a full packet on the wire, 1448 are payload.
HEADERS = 1538 / 1448


def asked(text: str) -> TransferRequests:
    return reading.parse(text, Path("wanted.yaml"), FACTS)


def test_links_count_headers_and_requests_payload() -> None:
    first, second = asked(TWO).problem.requests
    (core,) = (link for link, rate in asked(TWO).problem.capacity.items() if rate == 100e6)
    assert core == asked(TWO).problem.bottleneck == "core forward"
    assert first.links[core] == pytest.approx(HEADERS)
    assert (first.volume_bits, first.deadline_s) == (40e6, 60)
    # The largest rate is the link's, where the application takes more.
    assert asked(TWO).problem.alone_bps(first) == pytest.approx(100e6 / HEADERS)
    assert asked(TWO).problem.alone_bps(second) == pytest.approx(50e6 / HEADERS)


def test_a_plan_becomes_a_scenario_that_holds_sources_to_its_rates() -> None:
    wanted = asked(TWO)
    plan = strategies.one_after_another(wanted.problem)
    text = scenario_text.text(wanted, plan, "ts2", "psp")
    assert "- {name: first, at: 0ms, from: left1, to: right1, pacing: psp 100Mbit/s, bulk: 5MB}" in text
    assert "- {name: second, after: first, from: left2, to: right2, pacing: psp 50Mbit/s, bulk: 5MB}" in text
    unpaced = scenario_text.text(wanted, plan, "ts2", None)
    (run,) = scenario.parse(unpaced, Path("wanted-ts2.scenario.yaml")).runs()
    sent = flows(planned(run))
    assert [(flow["after"], flow["work"]["bytes"]) for flow in sent] == [([], 5_000_000), ([0], 5_000_000)]
    assert {flow["socket"]["congestion"] for flow in sent} == {"bic"}


def test_what_was_promised_stands_beside_what_was_seen(tmp_path: Path) -> None:
    plan = strategies.at_once(asked(TWO).problem)
    promised = plan.transfers[0].end_s
    rows = [
        {
            "step": "first",
            "scheduled_ns": 0,
            "started_ns": 0,
            "completion_ns": round((promised + 0.25) * NS_PER_SECOND),
        },
        {"step": "second", "scheduled_ns": 0, "started_ns": 5, "completion_ns": None},
    ]
    flows_seen = pl.DataFrame(rows, schema={key: tables.TABLES["flows"][key] for key in rows[0]})
    missing = [pl.lit(None, kind).alias(name) for name, kind in tables.TABLES["flows"].items() if name not in rows[0]]
    tables.write(tmp_path, "flows", flows_seen.with_columns(missing))
    first, second = outcomes.compared(plan, tmp_path)
    assert (first.start_s, first.satisfied) == (0, True)
    assert first.late_s == pytest.approx(0.25)
    assert (second.end_s, second.late_s, second.satisfied) == (None, None, False)
    assert outcomes.longest_s([first]) == pytest.approx(promised + 0.25) and outcomes.longest_s([first, second]) is None


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("{name: a, from: left9, to: right1, volume: 1MB}", 'from "left9": there is no such host, write "left2"'),
        ("{name: a, from: left1, to: left1, volume: 1MB}", "left1 sends to itself"),
        ("{name: a, from: left1, to: right1, volume: 0B}", "is nothing: write a volume"),
        ("{name: a, from: left1, to: right1, volume: 5}", 'write a volume as "5MB"'),
        ("{name: a, from: left1, to: right1, volume: 1MB, start: 5s, deadline: 5s}", "is not after its start, 5s"),
        ("{name: a, from: left1, to: right1, volume: 1MB, rate: fast}", 'write a rate as "1Gbit/s"'),
        ("{name: a, from: left1, to: right1, volume: 1MB, dedline: 5s}", 'unknown key of a request, write "deadline"'),
        ("{name: a, from: left1, to: right1}", 'is missing: write "volume:" too'),
        (", ".join(["{name: a, from: left1, to: right1, volume: 1MB}"] * 2), "two requests are called a"),
        ("", "has no requests"),
    ],
)
def test_a_wrong_request_is_refused_in_one_line(request_: str, said: str) -> None:
    with pytest.raises(DescriptionError, match=re.escape(said)) as error:
        asked(f"{LAB}requests: [{request_}]")
    assert "\n" not in str(error.value) and str(error.value).startswith("wanted.yaml:")


def test_the_example_of_the_library_has_one_of_each_kind() -> None:
    """One is late with TS1, two are refused by TS2, and all could be satisfied."""
    problem = reading.load(ROOT / "labs/library/transfers.yaml", FACTS).problem
    assert [each.request.name for each in strategies.at_once(problem).late] == ["report"]
    accepted = strategies.one_after_another(problem).accepted
    assert [each.request.name for each in accepted] == ["backup", "results"]
