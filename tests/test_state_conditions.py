"""Changes of links and flows that wait for the state of a congestion control, in the virtual clock: the example of the
documents, and more."""

from __future__ import annotations

import threading
from pathlib import Path

import polars as pl
import pytest

from ewan.generator import records, scenario
from ewan.generator.scenario import ScheduledRun
from ewan.labs import host
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.congestion import library
from ewan.labs.record import events
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from tests.documents import yaml_blocks

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.virtual

DOCUMENT = ROOT / "docs/how-to/experiments/own-congestion-control.md"
(DRAIN,) = [text for _, text in yaml_blocks(DOCUMENT) if text.startswith("# drain.scenario.yaml")]
MORE = """  - when: {flow: bulk, state: {mode: DRAIN, cwnd_gain: "> 2"}}
    at: 100ms
    link: core
    direction: forward
    delay: 9ms
  - {when: {flow: bulk, state: {mode: PROBE_RTT}}, link: core, down: true}
"""
"""BBR looks for the least RTT after 10 s, which the example has not."""
BBR = f"sample: 1ms\n{DRAIN}{MORE}".replace("bulk, from", "bulk, streams: 2, from")
MINE = """lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 20Mbit/s}}
sample: 1ms
cc: {mine: {source: tcp_mine.c}}
steps: [{name: bulk, from: left1, to: right1, for: 1s, congestion: mine, bulk: }]
"""


def scheduled(place: Path, text: str) -> ScheduledRun:
    """The one run of a scenario, beside the source of a control."""
    place.mkdir(exist_ok=True)
    (place / "tcp_mine.c").write_bytes((ROOT / "labs/congestion/tests/tcp_mine.c").read_bytes())
    (run,) = scenario.parse(text, place / "x.scenario.yaml").runs()
    return run.schedule(compile(run.spec, host.virtual_facts()), "virtual")


def ran(place: Path, text: str) -> Path:
    """The directory of this run."""
    made = scheduled(place, text)
    return VirtualRuntime(BINARY).run(made.plan, made.program, place / "run", threading.Event()).directory


def series(directory: Path) -> pl.DataFrame:
    """The samples of the first step's two streams."""
    return records.csv(directory / "traffic/series.csv", "series").filter(pl.col("flow") < 2)


def first_ns(directory: Path, column: str, value: str | int) -> int:
    found = series(directory).filter(pl.col(column) == value)["time_ns"].min()
    assert isinstance(found, int)
    return found


@pytest.fixture(scope="module")
def bbr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("when") / "bbr", BBR)


def test_a_change_of_a_link_comes_at_the_first_look_at_which_the_state_is_there(bbr: Path) -> None:
    drains_ns = first_ns(bbr, "cc.mode", "DRAIN")
    assert NS_PER_SECOND // 10 < drains_ns < NS_PER_SECOND
    made = events.read(bbr)
    assert made is not None
    told = sorted((each.applied_ns, each.direction, each.when) for each in made if each.applied_ns is not None)
    assert told == [
        (drains_ns, "backward", "mode DRAIN of bulk"),
        (drains_ns, "forward", "mode DRAIN of bulk"),
        (drains_ns + 100 * NS_PER_MS, "forward", "mode DRAIN and cwnd_gain > 2 of bulk"),
    ]
    # What does not come is not made, and is no error.
    assert [(each.when, each.error) for each in made if each.applied_ns is None] == [("mode PROBE_RTT of bulk", None)]


def test_a_flow_starts_when_the_state_is_there(bbr: Path) -> None:
    (second,) = [each for each in records.traffic_records(bbr / "traffic/traffic.json") if each["flow"] == 2]
    starts_ns = first_ns(bbr, "cc.mode", "PROBE_BW")
    assert (second["started_ns"], second["ended_ns"]) == (starts_ns, starts_ns + NS_PER_SECOND)


def test_a_rerun_is_equal_to_the_byte(bbr: Path, tmp_path: Path) -> None:
    again = ran(tmp_path / "again", BBR)
    for name in ("events.json", "traffic/series.csv", "traffic/goodput.csv", "traffic/traffic.json"):
        assert (again / name).read_bytes() == (bbr / name).read_bytes(), name


def test_looks_at_the_state_change_nothing_that_is_sent(tmp_path: Path) -> None:
    plain = DRAIN.partition("  - {name: later")[0].replace("for: 2s", "for: 1s") + "sample: 1ms\n"
    never = f"{plain}events: [{{when: {{flow: bulk, state: {{mode: PROBE_RTT}}}}, link: core, down: true}}]\n"
    one, other = (ran(tmp_path / name, text) for name, text in (("plain", plain), ("never", never)))
    assert (one / "traffic/series.csv").read_bytes() == (other / "traffic/series.csv").read_bytes()


def test_the_state_of_a_control_of_ones_own_is_waited_for(tmp_path: Path) -> None:
    waits = 'events: [{when: {flow: bulk, state: {losses: ">= 1"}, every: 2ms}, link: core, rate: 10Mbit/s}]\n'
    directory = ran(tmp_path / "mine", MINE + waits)
    lost_ns, made = first_ns(directory, "cc.losses", 1), events.read(directory)
    assert made is not None and len(made) == 2
    # Looked at every 2 ms, and in the series every 1 ms.
    assert all(each.applied_ns is not None and 0 <= each.applied_ns - lost_ns < 2 * NS_PER_MS for each in made)


def test_what_a_control_of_ones_own_has_not_is_refused_before_the_first_run(tmp_path: Path) -> None:
    text = MINE + "events: [{when: {flow: bulk, state: {mode: DRAIN}}, link: core, down: true}]\n"
    program = scheduled(tmp_path, text).program
    with pytest.raises(LabError, match=r"^when: the state of mine has no mode, write one of losses$"):
        library.check_states(program, VirtualRuntime(BINARY), BINARY)
