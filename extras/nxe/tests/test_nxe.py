"""NXE's XML as a scenario and back: its meaning, its refusals, the parts that are never read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ewan.experiments.scenarios import in_another_format
from ewan.experiments.scenarios import load as load_any
from ewan.extras.nxe import reader as nxe_reading
from ewan.extras.nxe import tree, vocabulary, writer
from ewan.extras.simulators.network import network
from ewan.generator import scenario as scenarios
from ewan.generator.scenario import DescriptionError, ScenarioRun
from ewan.generator.scenario.writing import to_yaml
from ewan.generator.tests.scenarios import FACTS, parse, planned
from ewan.labs.base import codec
from ewan.labs.base.product import LIBRARY
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile as compile_spec
from ewan.labs.forwarding import Forwarding
from ewan.labs.record.traffic import MessagesWork
from ewan.labs.spec import names

POSTER = LIBRARY / "nxe-poster.xml"
TEXT = POSTER.read_text()


def read(text: str) -> ScenarioRun:
    return next(iter(nxe_reading.parse(text, Path("x.xml")).scenario.runs()))


def test_the_posters_example_is_ten_flows_between_two_sites() -> None:
    run = read(TEXT)
    plan = compile_spec(run.spec, FACTS)
    lab = network(plan)
    assert len(lab.hosts) == 20 and lab.routers == ("ag", "sagittaire", "capricorne")
    rates = {link.name: link.forward.rate_bps for link in lab.links}
    assert rates["access-sagittaire10"] == 10**9 and rates["capricorne-ag"] == 10**10
    assert Forwarding(plan).rtt_ns("capricorne3", "sagittaire3") == 4 * NS_PER_MS  # 1 ms a site, each way
    found = planned(run).document.flows
    assert [(flow.source, flow.sink) for flow in found] == [
        (f"capricorne{number}", f"sagittaire{number}") for number in range(1, 11)
    ]
    assert [flow.scheduled_ns for flow in found] == [(5 + number) * NS_PER_SECOND for number in range(10)]
    assert {flow.congestion for flow in found} == {"reno"}


def file_of(name: str) -> Path | None:
    """The file in NXE's XML that a name means."""
    found = in_another_format(name)
    return None if found is None else found[1]


def test_an_experiment_is_found_by_its_bare_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert file_of("nxe-poster") == file_of("nxe-poster.xml") == POSTER
    (tmp_path / POSTER.name).write_text(TEXT)
    assert file_of("nxe-poster") == file_of("nxe-poster.xml") == Path(POSTER.name)
    assert file_of("./other.xml") == Path("other.xml") and file_of("other.xml") == Path("other.xml")
    (tmp_path / "udp-cbr.xml").write_text(TEXT)
    assert file_of("udp-cbr") is None and file_of("nothing") is None
    assert load_any("nxe-poster")[0].name == "nxe-poster"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("<date>5<", "<date>5x<", '54:9: <date> "5x": write a duration'),
        ("<capacity>10000<", "<capacity>10 Giga<", '29:9: <capacity> "10 Giga": write a rate'),
        ("<number>10<", "<number>0<", '6:7: <number> "0": is no number of nodes: write 1 to'),
        ("<aggreg>AG<", "<aggreg>GA<", '23:7: <aggreg> "GA": its link is to AG: write that'),
        ("<from>capricorne<", "<from>paprika<", '28:9: <from> "paprika": is no site and no aggregator, write'),
        ("<target>sagittaire{1-10}", "<target>sagittaire{1-11}", '51:7: <target> "sagittaire{1-11}": no site has a'),
        ("<target>sagittaire{1-10}", "<target>capricorne{1-10}", "capricorne1 serves nothing: write a node of type"),
        ("<type>client", "<type>peer", '50:7: <type> "peer": is no role: write server, client or command'),
        ("<script>launch_client.sh", "<script>mine.sh", '56:9: <script> "mine.sh": a client runs launch_client.sh'),
        ("--protocol reno<", "--protocl reno<", 'launch_client.sh has no "--protocl", write "--protocol"'),
        ("<label>Reno", "<labl>Reno", "mismatched tag: write well-formed XML"),
        ("<offset>1</offset>", "<offset>1</offset><offset>2</offset>", '<offset> "2": stands twice in <step>'),
        ("<date>5</date>", "", "52:7: <step>: has no <date>: write one"),
        ("<date>5</date>", "<date></date>", "54:9: <date>: is empty: write its value"),
        ("<site>", '<site kind="cluster">', '4:5: <site> has an attribute "kind": write it as an element'),
        ("<experiment>", "<!DOCTYPE experiment [<!ENTITY a 'b'>]><experiment>", "has a document type"),
        ("<experiment>", "<!DOCTYPE experiment SYSTEM 'file:///etc/passwd'><experiment>", "has a document type"),
        ("<delay>1<", "<delay>&a;<", "undefined entity: write well-formed XML"),
    ],
)
def test_what_cannot_be_said_is_refused_at_its_place(before: str, after: str, said: str) -> None:
    text = TEXT.replace(before, after)
    if before == "<target>sagittaire{1-10}" and "capricorne" in after:
        text = text.replace("<id>capricorne{1-10}", "<id>sagittaire{1-10}")
    assert text != TEXT
    with pytest.raises(DescriptionError, match=rf"^x\.xml:\d+:\d+: .*{re.escape(said.split(': ', 1)[-1])}") as caught:
        planned(read(text))
    assert said in str(caught.value)


def test_the_page_has_the_schema() -> None:
    assert vocabulary.table() in (LIBRARY.parents[1] / "docs/how-to/experiments/nxe.md").read_text()


def test_depth_and_number_of_elements_are_bounded() -> None:
    for text in ("<a>" * 10_000, "<a>" + "<b/>" * 110_000):
        with pytest.raises(DescriptionError, match=r"nested more than|holds more than"):
            tree.read(text, "x.xml")


SMALL = """<experiment>
  <parameter><name>rate</name><value>10</value><value>20</value></parameter>
  <parameter><name>volume</name><value>1MB</value></parameter>
  <configuration><repetitions>2</repetitions><protocol>bic</protocol></configuration>
  <topology>
    <site><sitename>a</sitename><delay>5</delay><aggreg>R</aggreg></site>
    <site><sitename>b</sitename><aggreg>R</aggreg></site>
    <aggregator><aggregid>R</aggregid><link><from>a</from><name>core</name><capacity>${rate}</capacity></link></aggregator>
  </topology>
  <scenario>
    <node><id>b</id><type>server</type>
      <step><label>s</label><date>0</date><script>launch_server.sh</script></step></node>
    <node><id>a</id><type>client</type><target>b</target>
      <step><label>Two files</label><date>0.5</date><repeat><times>2</times><every>exponential:3</every></repeat>
        <script>launch_client.sh</script><scriptparam>--volume ${volume} --streams 2</scriptparam></step>
      <step><label>two files</label><date>uniform:1:2</date>
        <script>launch_client.sh</script><scriptparam>--packet 1000B --rate 1Mbit/s --duration 2</scriptparam></step>
    </node>
    <node><id>a</id><type>command</type>
      <step><label>probe</label><date>1</date><script>ping</script><scriptparam>-c 3 b</scriptparam></step></node>
  </scenario>
</experiment>"""


def test_parameters_are_a_sweep_and_repetitions_are_seeds() -> None:
    runs = nxe_reading.parse(SMALL, Path("x.xml")).scenario.runs()
    assert [(run.parameters["rate"], run.seed) for run in runs] == [(10, 1), (10, 2), (20, 1), (20, 2)]
    core = next(link for link in network(compile_spec(runs[3].spec, FACTS)).links if link.name == "core")
    assert core.forward.rate_bps == 20_000_000 and core.forward.delay_ns == 5 * NS_PER_MS
    steps = runs[0].document.steps
    assert [step.name for step in steps] == ["two-files", "two-files-2", "probe"]
    assert steps[0].at.choice.ns == NS_PER_SECOND // 2 and steps[0].repeat is not None
    assert steps[0].repeat.every.kind == "exponential" and steps[0].repeat.every.choice.mean.ns == 3 * NS_PER_SECOND
    assert steps[2].run == "ping -c 3 b"
    found = planned(runs[0]).document.flows
    assert [flow.volume_bytes for flow in found] == [500_000] * 4 + [None]
    assert found[0].congestion == "bic" and found[4].kind == "udp"


def test_the_yaml_that_it_becomes_is_the_same_scenario() -> None:
    scenario = nxe_reading.parse(SMALL, Path("x.xml")).scenario
    again = scenarios.parse(scenario.text, Path("x.scenario.yaml"))
    assert [run.name for run in again.runs()] == [run.name for run in scenario.runs()]
    for one, other in zip(scenario.runs(), again.runs(), strict=True):
        assert said(one) == said(other)


def said(run: ScenarioRun) -> Any:
    """A run's lab, whichever end of a link is named first, and all that it sends and runs."""
    plan = compile_spec(run.spec, FACTS)
    schedule = run.schedule(plan, "virtual")
    lab = network(plan)
    turned = [
        link if link.a < link.b else replace(link, a=link.b, b=link.a, forward=link.backward, backward=link.forward)
        for link in lab.links
    ]
    asked = [] if schedule.program.traffic is None else schedule.program.traffic.flows
    # Addresses go by the order of nodes, which is another one.
    sent = [codec.replace(flow, from_=None, to=None) for flow in asked]
    sent = [
        codec.replace(flow, work=codec.replace(flow.work, ranks=())) if isinstance(flow.work, MessagesWork) else flow
        for flow in sent
    ]
    tools = {index for index, told in enumerate(schedule.document.commands) if told.tool}
    commands = [
        (each.node, each.argv if index not in tools else (), each.at_ns)
        for index, each in enumerate(schedule.program.commands)
    ]
    network_said = ({link.name: link for link in turned}, set(lab.hosts), set(lab.routers), lab.mtu)
    return network_said, schedule.document.flows, sent, commands


def round_trip(run: ScenarioRun) -> ScenarioRun:
    return read(writer.experiment(run, compile_spec(run.spec, FACTS)))


NOT_IN_XML = {
    **dict.fromkeys(("rtt-change", "branch-failover", "branch-vpn", "multipath"), "no changes of links"),
    **dict.fromkeys(("docsis-uploads", "nr-blockage"), "slot .* cannot be expressed"),
    **dict.fromkeys(("l4s-beside-cubic", "leaf-spine", "queues-beside-the-kernel"), "queue .* cannot be expressed"),
    "path-mtu": "has interfaces of 1500 and of 1400 bytes",
    "access-networks": "delay .* cannot be expressed",
    "incast": "NXE starts steps at their times",
    "video": "NXE ends no command when others have ended",
    "jgn2-receivers": "no settings of hosts",
    **dict.fromkeys(("media-capacity", "media-capacity-two", "media-feedback"), "no changes of links"),
    **dict.fromkeys(
        ("media-alike", "media-long-tcp", "media-pause", "media-rtts", "media-short-tcp"), "NXE sends no video"
    ),
    **dict.fromkeys(
        ("paced-bottleneck", "paced-congestion", "paced-reno", "paced-sources", "transfer-service"), "no option for it"
    ),
}
"""Scenarios of the library that NXE cannot say, and why."""


@pytest.mark.parametrize("file", sorted(LIBRARY.glob(f"*{names.SCENARIO}")), ids=lambda file: file.name.split(".")[0])
def test_scenarios_of_the_library_come_back_from_xml(file: Path) -> None:
    scenario = scenarios.load(file)
    run = scenario.runs(scale="quick" if "quick" in scenario.scales else None)[0]
    reason = NOT_IN_XML.get(file.name.removesuffix(names.SCENARIO))
    if reason is not None:
        with pytest.raises(DescriptionError, match=reason):
            round_trip(run)
        return
    assert said(round_trip(run)) == said(run)


durations = st.integers(1, 10_000).map(lambda ms: f"{ms}ms")
volumes = st.integers(1, 10**9).map(lambda size: f"{size}B")
rates = st.integers(100, 10**5).map(lambda kbit: f"{kbit}kbit/s")
keys = st.fixed_dictionaries


def laws(values: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """A value, or a law of such values."""
    shaped = st.tuples(st.sampled_from(["pareto", "weibull", "gamma"]), values, st.sampled_from(["1.2", "1.35", "2"]))
    return st.one_of(
        values,
        values.map(lambda mean: {"exponential": {"mean": mean}}),
        shaped.map(lambda law: {law[0]: {"mean": law[1], "shape": law[2]}}),
    )


requests = {"request": laws(volumes), "response": laws(volumes), "think": laws(durations)}
works = st.one_of(
    keys({"bulk": volumes}),
    keys({"bidirectional": volumes, "congestion": st.sampled_from(["reno", "bic"])}),
    keys({"udp": keys({"rate": rates, "size": st.just("1470B")}), "for": durations}),
    keys({"arrivals": keys({"interval": laws(durations), "size": laws(volumes)}), "for": durations}),
    keys({"requests": keys({"count": st.integers(1, 9), "new_connection": st.booleans(), **requests})}),
)
repeats = keys({"times": st.integers(1, 3), "every": laws(durations)})
timings = keys(
    {"at": laws(durations), "offset": laws(durations)},
    optional={"role": st.sampled_from(["reverse", "cross"]), "repeat": repeats},
)
ends = st.sampled_from(
    [
        {"from": "left[1-3]", "to": "right[1-3]"},
        {"from": "left1", "to": "right[2-3]"},
        {"from": "right[4-5],left3", "to": "left1"},
    ]
)
wide = keys(
    {"rate": rates, "buffer": st.sampled_from(["20pkt", "250kB"])},
    optional={"loss": st.sampled_from(["0.1%", "2%"]), "delay": durations, "backward": st.just({"rate": "3Mbit/s"})},
)


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.lists(st.tuples(works, timings, ends), min_size=1, max_size=3), wide, st.sampled_from([1500, 9000]))
def test_what_both_can_say_survives_the_way_through_xml(steps: list[Any], wan: dict[str, Any], mtu: int) -> None:
    lab: dict[str, Any] = {"topology": {"dumbbell": {"pairs": 3, "reverse_pairs": 2}}, "mtu": mtu, "wan": wan}
    document: dict[str, Any] = {
        "lab": lab if "delay" in wan else {**lab, "rtt": "30ms"},
        "longest": "80000s",
        "steps": [{"name": f"s{number}", **who, **when, **what} for number, (what, when, who) in enumerate(steps)],
    }
    run = next(iter(parse(to_yaml(document)).runs()))
    assert said(round_trip(run)) == said(run)


def test_what_decides_about_looking_is_named_in_a_comment() -> None:
    run = scenarios.load("parallel-streams").runs(scale="quick")[0]
    text = writer.experiment(run, compile_spec(run.spec, FACTS), repetitions=3)
    assert "<repetitions>3</repetitions>" in text
    assert "left out, as NXE has no element for it: beside" in text
    assert len(nxe_reading.parse(text, Path("x.xml")).scenario.runs()) == 3


TRIANGLE = (
    "hosts: [left1, right1], routers: [a, b, c], links: [{between: [left1, a]}, {between: [right1, c]}, "
    "{between: [a, b], delay: 1ms}, {between: [b, c], delay: 1ms}, {between: [a, c], delay: 1ms}, "
)


@pytest.mark.parametrize(
    ("lab", "said"),
    [
        ("{topology: dumbbell, wan: {queue: codel}}", r"core \(r1 to r2\): queue codel cannot be expressed: write"),
        ("{topology: dumbbell, wan: {jitter: 1ms}}", "delay .* cannot be expressed: write a constant one"),
        ("{topology: dumbbell, wan: {framing: ip}}", 'NXE counts what is on the wire: write "framing: wire"'),
        ("{topology: dumbbell, access: {switch: ovs}}", "a switch cannot be expressed"),
        ("{topology: dumbbell, wan: {slot: 1ms}}", "slot 1ms cannot be expressed"),
        ("{topology: {graph: {" + TRIANGLE + "{between: [left1, b]}]}}}", "left1 .* several links cannot be expressed"),
        (
            "{topology: {graph: {" + TRIANGLE + "]}}, routes: [{at: a, to: right1, over: a-b}]}",
            "left1 to right1 .* a way back by other links cannot be expressed",
        ),
    ],
)
def test_a_lab_that_xml_cannot_say_is_refused_by_its_link(lab: str, said: str) -> None:
    run = next(iter(parse(f"lab: {lab}\nsteps: [{{name: a, from: left1, to: right1, bulk: 1MB}}]\n").runs()))
    with pytest.raises(DescriptionError, match=said):
        writer.experiment(run, compile_spec(run.spec, FACTS))
