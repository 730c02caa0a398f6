"""Steps and events that wait for the state of a congestion control: what the programs are asked, in any sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.generator.records import flow_rows
from ewan.generator.scenario import parse as parse_scenario
from ewan.generator.tests.scenarios import FACTS, HEAD, only, parse, planned
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import compile as compile_spec
from ewan.labs.congestion import variables
from ewan.labs.record.tables import MORE
from ewan.labs.record.traffic import StateComparison, StateCondition
from ewan.labs.spec import DescriptionError

BULK = "{name: bulk, from: left1, to: right1, for: 5s, congestion: bbr, bulk: }"
TEXT = f"""
steps:
  - {{name: later, when: {{flow: bulk, state: {{mode: "!= STARTUP"}}}}, at: 1s, from: left2, to: right2, bulk: 1MB}}
  - {BULK}
  - {{name: ping, when: {{flow: bulk, state: {{mode: DRAIN}}}}, on: left1, run: ping -c 3 right1}}
events:
  - {{when: {{flow: bulk, state: {{mode: PROBE_BW, bw_bps: ">= 5000000"}}, every: 10ms}}, link: core, down: true}}
  - {{at: 2s, link: core, up: true}}
"""


def test_a_condition_counts_as_a_step() -> None:
    schedule = only(TEXT)
    traffic = schedule.program.traffic
    assert traffic is not None
    first = StateCondition(3, 1, 10**6, (StateComparison("mode", "!=", "STARTUP"),))
    rates = StateComparison("mode", "=", "PROBE_BW"), StateComparison("bw_bps", ">=", "5000000")
    assert (traffic.conditions[0], traffic.conditions[2]) == (first, StateCondition(5, 1, 10**7, rates))
    bulk, later = traffic.flows
    assert (later.after, later.start_ns, bulk.waits_for, bulk.step) == ((3,), NS_PER_SECOND, (), 1)
    assert [command.after for command in schedule.program.commands] == [(4,)]
    # The commands and the links are in another process, which is told of what they wait for.
    assert traffic.told == (4, 5)
    told = [(event.at_ns, event.after, event.when) for event in schedule.program.events]
    assert told == [(2 * NS_PER_SECOND, (), ""), (0, (5,), "mode PROBE_BW and bw_bps >= 5000000 of bulk")]
    # The state may come as late as the flow ends.
    assert schedule.program.expected_ns > 6 * NS_PER_SECOND
    _, row = flow_rows(schedule.document.flows, [{"part": 0, "flow": 0, "error": None}])
    assert row["error"] == "did not start: mode != STARTUP of bulk did not come"


def test_a_sweep_goes_over_states() -> None:
    text = (
        HEAD
        + "sweep: {mode: [DRAIN, PROBE_BW], losses: [1, 2.5]}\n"
        + f"steps: [{BULK}]\n"
        + 'events: [{when: {flow: bulk, state: {mode: "${mode}", cwnd_gain: "> ${losses}"}}, link: core, up: true}]'
    )
    words = [planned(run).program.events[0].when for run in parse(text).runs()]
    assert words == [
        f"mode {mode} and cwnd_gain > {gain} of bulk" for mode in ("DRAIN", "PROBE_BW") for gain in (1, 2.5)
    ]


def test_a_step_without_members_has_no_state() -> None:
    text = TEXT.replace("from: left1, to: right1, for", 'from: "left[1-0]", to: "right[1-0]", for')
    with pytest.raises(DescriptionError, match=r"steps\[1\]: has no member in this run, and so no state"):
        only(text)


def test_a_module_shows_its_state_in_the_virtual_clock_alone(tmp_path: Path) -> None:
    text = HEAD + f"cc: {{mine: {{source: tcp_mine.c}}}}\n{TEXT}".replace("bbr", "mine")
    (run,) = parse_scenario(text, tmp_path / "x.scenario.yaml").runs()
    with pytest.raises(
        DescriptionError, match=r'steps\[0\].when.flow "bulk": mine shows its state in the virtual clock'
    ):
        run.schedule(compile_spec(run.spec, FACTS), "live")


def test_each_variable_that_a_kernel_tells_is_a_column() -> None:
    told = {name for control in variables.controls() for name in variables.told(control)}
    assert {f"cc.{name}" for name in told} == set(MORE["series"])
