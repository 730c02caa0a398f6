"""HSTTS: the poster's arithmetic, its refusals, and its scenarios."""

from __future__ import annotations

import pkgutil
from fractions import Fraction as Exact
from pathlib import Path
from typing import Any

import pytest

from ewan.analysis.tests import synthetic
from ewan.cli import main
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.tests.origins import origin
from ewan.extras.suites import applications as package
from ewan.extras.suites import cli as suite_cli
from ewan.extras.suites import hstts, overview
from ewan.extras.suites.application import COMPLETION, RESPONSES_IN_TIME, Application, ApplicationTraffic
from ewan.extras.suites.applications import APPLICATIONS
from ewan.extras.suites.hstts import ApplicationScenario, SuiteRequest
from ewan.extras.suites.parameters import Defaults, Parameters, elsewhere, markdown, resolve
from ewan.extras.suites.profiles import PROFILES
from ewan.generator import scenario
from ewan.labs import host
from ewan.labs.base.product import ROOT
from ewan.labs.commands.errors import Refused
from ewan.labs.compile import compile as compile_spec
from ewan.labs.context import Context
from ewan.labs.link import BernoulliLoss
from ewan.labs.plan import Plan
from ewan.labs.record.metrics import METRICS
from ewan.labs.record.traffic import ArrivalsWork, usual
from ewan.labs.spec import DescriptionError

QUICK = Defaults("1G", "20ms", cg="1.0")
PAGE = ROOT / "docs/how-to/experiments/hstts.md"


def resolved(**given: str) -> Parameters:
    return resolve(given, QUICK)


def built(app: str, topology: str = "dumbbell", **given: str) -> ApplicationScenario:
    (one,) = hstts.build(SuiteRequest((app,), topology, given))
    return one


def first(one: ApplicationScenario) -> tuple[scenario.ScenarioRun, Plan]:
    run = scenario.parse(one.text, one.file).runs()[0]
    return run, compile_spec(run.spec, host.virtual_facts())


@pytest.mark.parametrize(
    ("given", "rate", "access", "k", "m", "cg"),
    [
        ({}, 10**9, 10**8, 10, 10, Exact(1)),
        ({"CG": "2.0"}, 10**9, 10**8, 10, 20, Exact(2)),
        ({"CG": "0.8", "K": "10"}, 10**9, 10**8, 10, 8, Exact("0.8")),
        ({"M": "15"}, 10**9, 10**8, 10, 15, Exact("1.5")),
        ({"RATE": "10G", "CA": "1G"}, 10**10, 10**9, 10, 10, Exact(1)),
        ({"CA": "1G"}, 10**10, 10**9, 10, 10, Exact(1)),
        ({"M": "10", "CG": "1"}, 10**9, 10**8, 10, 10, Exact(1)),
        ({"M": "4", "CG": "0.8", "CA": "100M"}, 5 * 10**8, 10**8, 5, 4, Exact("0.8")),
        ({"K": "10", "RATE": "1G", "CA": "100M", "M": "10", "CG": "1.0"}, 10**9, 10**8, 10, 10, Exact(1)),
        ({"K": "1.5", "RATE": "150M", "CG": "2"}, 150 * 10**6, 10**8, Exact("1.5"), 3, Exact(2)),
    ],
)
def test_what_is_not_given_follows(given: dict[str, str], rate: int, access: int, k: int, m: int, cg: Exact) -> None:
    result = resolved(**given)
    assert result.access is not None
    assert (result.rate.bps, result.access.bps) == (rate, access)
    assert (result.k, result.m, result.cg) == (Exact(k), m, cg)


def test_reverse_pairs_are_as_many_as_the_level_says() -> None:
    assert resolved(R="0").reverse == 0
    assert resolved(R="0.8").reverse == 8
    assert resolved(R="1.5", CA="1G", RATE="10G").reverse == 15


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"CG": "1.0", "M": "5", "K": "10"}, "CG=1.0 M=5 K=10: C_g = M·C_a/C = 0.5: leave one out"),
        ({"K": "10", "RATE": "1G", "CA": "200M"}, "K=10 RATE=1G CA=200M: K = C/C_a = 5: leave one out"),
        (
            {"CG": "1.0", "M": "5", "RATE": "1G", "CA": "100M"},
            "CG=1.0 M=5 RATE=1G CA=100M: C_g = M·C_a/C = 0.5: leave one out",
        ),
        (
            {"CG": "0.85", "K": "10"},
            "CG=0.85 K=10: M = C_g·K = 8.5 is not a whole number of sources: write CG=0.8 (M = 8)",
        ),
        ({"CG": "0.8", "K": "1"}, "CG=0.8 K=1: M = C_g·K = 0.8 is not a whole number of sources: write CG=1 (M = 1)"),
        (
            {"R": "1.5", "K": "1"},
            "R=1.5 K=1: N_r = R·C/C_a = 1.5 is not a whole number of pairs: write R=2 (N_r = 2)",
        ),
        ({"K": "3"}, "RATE=1G K=3: C_a = C/K is not a whole number of bit/s: write RATE=999.999999Mbit/s"),
        ({"K": "0"}, 'K "0": write a number above 0'),
        ({"M": "0"}, 'M "0": write a whole number from 1 to 20000'),
        ({"CG": "much"}, 'CG "much": write a plain number, like CG=1.0'),
        ({"RATE": "1"}, 'RATE "1": write a rate as "1Mbit/s"'),
        ({"RTT": "20"}, 'RTT "20": write a duration as "20ms", or Mix'),
        ({"B": "web"}, 'B "web": write one of 0, WMI, WMII, CBR, VBR-Poisson, VBR-Pareto, VBR-Weibull (web, constant or variable bit rate)'),  # noqa: E501
        ({"LOSS": "0.1"}, 'LOSS "0.1": write a fraction as "10%" or "0.1%"'),
        ({"BUFFER": "100"}, 'BUFFER "100": write a buffer as "1BDP", "255pkt", "500kB" or "100ms"'),
        ({"RTT": "0ms"}, 'RTT "0ms" has no BDP for a BUFFER of 1BDP: write "BUFFER=100pkt" too'),
        ({"MTU": "100"}, 'MTU "100": write the largest IP packet in bytes, from 576 to 65535'),
        ({"NS": "0"}, 'NS "0": write a whole number from 1 to 1000'),
        ({"K": "1000000", "RATE": "1G"}, "RATE=1G K=1000000: C_a = C/K = 1000 bit/s: write what gives 8kbit/s to 1Tbit/s"),  # noqa: E501
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused_with_the_arithmetic(given: dict[str, str], says: str) -> None:
    with pytest.raises(DescriptionError) as error:
        resolved(**given)
    assert str(error.value) == says


def test_values_outside_the_posters_are_noted_and_run() -> None:
    assert resolved(RTT="20ms", NS="10", R="1.5").notes == ()
    assert resolved(RTT="300ms", M="5", NS="12").notes == (
        "RTT = 300ms is outside the poster's 1ms to 200ms",
        "C_g = 0.5 is outside the poster's 0.8 to 2",
        "N_s = 12 is outside the poster's 1 to 10",
    )
    assert resolved(RATE="100M").notes == ("C_a = 10Mbit/s is outside the poster's 100Mbit/s to 10Gbit/s",)


def test_only_a_dumbbell_has_a_bottleneck_with_sources() -> None:
    with pytest.raises(DescriptionError, match=r"^K=5 CG=1: TOPO=star has no single bottleneck with M sources"):
        elsewhere({"K": "5", "CG": "1"}, QUICK, "star")
    with pytest.raises(DescriptionError, match=r"^RTT=Mix: needs one RTT for each pair"):
        elsewhere({"RTT": "mix"}, QUICK, "star")


@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize("app", list(APPLICATIONS))
def test_every_application_is_a_scenario(app: str, profile: str) -> None:
    (one,) = hstts.build(SuiteRequest((app,), "dumbbell", {"B": "WMII"}, profile, ("reno", "cubic"), seeds=2))
    result = scenario.parse(one.text, one.file)
    runs = result.runs()
    assert len(runs) == 2 * 2 * (3 if app == "PA" else 1)
    assert {run.parameters["congestion"] for run in runs} == {"reno", "cubic"}
    normalise = result.document.normalise
    assert normalise is not None and (normalise.by, normalise.to) == ("congestion", "reno")
    assert result.name == f"hstts-{app.lower()}"


def test_bulk_is_one_volume_a_source_and_reverse_pairs_do_the_same() -> None:
    run, plan = first(built("BU", CG="1.5", R="0.5", RTT="19.8ms"))
    flows = run.schedule(plan, "virtual").document.flows
    load = [flow for flow in flows if flow.role == "load"]
    reverse = [flow for flow in flows if flow.role == "reverse"]
    assert [(flow.source, flow.sink) for flow in load] == [(f"left{n}", f"right{n}") for n in range(1, 16)]
    assert [(flow.source, flow.sink) for flow in reverse] == [(f"right{n}", f"left{n}") for n in range(16, 21)]
    assert [flow.scheduled_ns for flow in load] == [n * 60_000_000 for n in range(15)]
    assert {flow.volume_bytes for flow in flows} == {22_500_000}
    access = {wire.a.node for wire in plan.wires if wire.a.node.startswith("left")}
    assert len(access) == 20
    (core,) = plan.links
    assert core.forward.rate_bps == 10**9
    assert {pair.rtt_ns for pair in plan.pairs} == {19_800_000}


def test_the_papers_profile_has_the_papers_sizes() -> None:
    (one,) = hstts.build(SuiteRequest(("BU",), "dumbbell", {}, "paper"))
    run, plan = first(one)
    flows = run.schedule(plan, "virtual").document.flows
    assert {flow.volume_bytes for flow in flows} == {30 * 10**9 // 8}
    assert sorted({flow.scheduled_ns or 0 for flow in flows})[:2] == [0, 10**9]
    assert {pair.bottleneck_bps for pair in plan.pairs} == {10**9}, "the nodes' own links"


def test_streams_share_a_sources_volume() -> None:
    run, plan = first(built("BU", NS="5", R="0", CG="1.0"))
    flows = run.schedule(plan, "virtual").document.flows
    assert len(flows) == 50
    assert {flow.volume_bytes for flow in flows} == {4_500_000}


def test_tuning_is_one_source_at_full_speed() -> None:
    run, plan = first(built("TU", RATE="10G"))
    (flow,) = run.schedule(plan, "virtual").document.flows
    assert (flow.source, flow.sink, flow.volume_bytes) == ("left1", "right1", 375_000_000)
    assert plan.pairs[0].bottleneck_bps == 10**10
    with pytest.raises(DescriptionError, match=r"^M=5: TU has one source and one sink: leave M out$"):
        built("TU", M="5")


def test_peers_send_both_ways_on_one_connection() -> None:
    run, plan = first(built("PP", CG="1.0"))
    program = run.schedule(plan, "virtual").program
    assert program.traffic is not None
    assert [flow.bidirectional for flow in program.traffic.flows] == [True] * 10


def test_web_files_fill_the_share_that_is_said() -> None:
    run, plan = first(built("WM", NS="2", CG="1.0"))
    program = run.schedule(plan, "virtual").program
    assert program.traffic is not None
    flows = program.traffic.flows
    assert sum(flow.work.kind == "requests" for flow in flows) == 2 * 10 * 2, "N_s sessions, ways"
    files = [flow.work for flow in flows if isinstance(flow.work, ArrivalsWork)]
    assert len(files) == 20
    for work in files:
        rate = usual(work.size_bytes) * 8 / (usual(work.interval_ns) / 10**9)
        assert rate == pytest.approx(0.9 * 10**8, rel=1e-6)


def test_ranks_are_on_both_sides_in_turn() -> None:
    one = built("PA", M="2")
    patterns = []
    for run in scenario.parse(one.text, one.file).runs():
        (flow,) = run.schedule(compile_spec(run.spec, host.virtual_facts()), "virtual").document.flows
        assert flow.members == ("left1", "right1", "left2", "right2")
        patterns.append(run.parameters["pattern"])
    assert list(dict.fromkeys(patterns)) == ["all-to-all", "neighbour-exchange", "barrier"]
    with pytest.raises(DescriptionError, match=r"^NS=5: PA's ranks have one connection to each other: leave NS out$"):
        built("PA", NS="5")


def test_background_fills_its_share_from_nodes_of_its_own() -> None:
    for word, share in (("WMI", 0.1), ("WMII", 0.3)):
        run, plan = first(built("BU", B=word, R="0", CG="1.0"))
        schedule = run.schedule(plan, "virtual")
        background = [flow for flow in schedule.document.flows if flow.role == "background"]
        assert {(flow.source, flow.sink) for flow in background} == {("left11", "right11"), ("right11", "left11")}
        assert {flow.congestion for flow in background} == {"cubic"}
        assert schedule.program.traffic is not None
        for flow in background:
            work = schedule.program.traffic.flows[flow.request or 0].work
            assert isinstance(work, ArrivalsWork)
            rate = usual(work.size_bytes) * 8 / (usual(work.interval_ns) / 10**9)
            assert rate == pytest.approx(share * 10**9, rel=1e-6)


def test_mixed_rtts_go_over_the_pairs_in_turn() -> None:
    run, plan = first(built("BU", RTT="Mix", M="4", R="0.2"))
    assert [pair.rtt_ns for pair in plan.pairs] == [1_000_000, 20_000_000, 200_000_000] * 2
    assert run.name == "congestion=reno seed=1"


def test_elsewhere_all_pairs_send() -> None:
    run, plan = first(built("BU", "parking-lot", RTT="60ms", LOSS="0.1%", MTU="9000"))
    flows = run.schedule(plan, "virtual").document.flows
    assert [(flow.source, flow.sink) for flow in flows] == [(pair.source, pair.sink) for pair in plan.pairs]
    assert max(pair.rtt_ns for pair in plan.pairs) == 60_000_000
    assert all(isinstance(link.forward.loss, BernoulliLoss) for link in plan.links if link.role == "wan")
    _, plan = first(built("BU", MTU="576"))
    assert all(":" not in address for node in plan.nodes for each in node.interfaces for address in each.addresses)
    run, plan = first(built("PA", "star"))
    (flow,) = run.schedule(plan, "virtual").document.flows
    assert flow.members == ("host1", "host2", "host3")


def test_the_whole_suite_takes_what_each_application_can_have() -> None:
    apps = hstts.names("all")
    result = hstts.build(SuiteRequest(apps, "dumbbell", {"CG": "0.8", "NS": "5", "R": "0.8", "RATE": "1G"}))
    assert [(each.app, each.parameters.m, each.parameters.streams) for each in result] == [
        ("TU", 1, 5),
        ("WM", 8, 5),
        ("PP", 8, 5),
        ("BU", 8, 5),
        ("PA", 8, 1),
    ]


def test_names_of_applications_and_congestion_controls() -> None:
    assert hstts.names("bu, tu") == ("BU", "TU")
    with pytest.raises(
        DescriptionError, match=r'^APP "XX": write one of TU, WM, PP, BU, PA, several with commas, or all$'
    ):
        hstts.names("XX")
    assert hstts.congestion_controls("cubic,bic", "reno") == (("reno", "cubic", "bic"), True)
    assert hstts.congestion_controls("cubic,reno,cubic", "reno") == (("cubic", "reno"), False)
    with pytest.raises(DescriptionError, match=r'^CC "RENO": write the kernel\'s name of a congestion control'):
        hstts.congestion_controls("cubic,RENO", "reno")


def test_every_module_of_the_package_is_an_application() -> None:
    """A module that is not registered would be no application at all."""
    modules = {each.name for each in pkgutil.iter_modules(package.__path__)}
    registered = {vars(package)[name].APPLICATION.word for name in modules}
    assert registered == set(APPLICATIONS) and len(modules) == len(APPLICATIONS)


@pytest.mark.parametrize("app", APPLICATIONS.values(), ids=list(APPLICATIONS))
def test_every_application_has_its_metrics_its_overview_and_its_row_in_the_manual(app: Application) -> None:
    """Before any run: the table of the suite is made when all runs have ended."""
    (one,) = hstts.build(SuiteRequest((app.word,), "dumbbell", {}))
    result = scenario.parse(one.text, one.file)
    assert result.document.metrics[: len(app.metrics)] == app.metrics
    kinds = {step.kind for run in result.runs(seeds=1) for step in run.document.steps}
    for metric in (*app.metrics, *app.overview):
        assert metric == RESPONSES_IN_TIME or METRICS[metric].step in (None, *kinds), metric
    assert set(app.sizes["quick"]) <= set(result.parameters)
    assert f"\n| {app.word} | " in PAGE.read_text()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"metrics": ()}, "application XX: metrics is empty"),
        ({"overview": ()}, "application XX: overview is empty"),
        ({"metrics": ("goodness",)}, "application XX: metrics names 'goodness', which is no metric"),
        ({"overview": ("mean response time",)}, "application XX: overview names 'mean response time', which is not"),
        ({"sizes": {"quick": {}}}, "application XX: sizes has no profile 'paper'"),
        ({"sizes": {"quick": {"volume": "1Gbit"}, "paper": {}}}, "application XX: sizes: 'volume' is not in every"),
    ],
)
def test_an_application_that_says_too_little_is_named(changes: dict[str, Any], says: str) -> None:
    whole: dict[str, Any] = {
        "word": "XX",
        "title": "x",
        "about": "",
        "sizes": {"quick": {}, "paper": {}},
        "traffic": lambda case: ApplicationTraffic({}, (), 0),
        "metrics": COMPLETION,
        "overview": COMPLETION[:1],
    }
    assert Application(**whole).scenario == "hstts-xx"
    with pytest.raises(ValueError, match=says):
        Application(**whole | changes)


def test_the_overview_has_the_rows_of_each_application(tmp_path: Path) -> None:
    """The share of responses in time stands where the application's overview has it."""
    interval = {"mean": 1e9, "low": None, "high": None, "n": 1, "unit": "ns"}
    metrics = dict.fromkeys(APPLICATIONS["WM"].overview, interval)
    point = {"parameters": {"congestion": "reno"}, "seeds": 1, "runs": [1], "complete": True, "normalised": {}}
    synthetic.summary(tmp_path, [{**point, "metrics": metrics}])
    Experiment.create(tmp_path, origin(), "virtual").save()
    rows = overview.Suite({"WM": tmp_path}, ("reno",), "reno", 10**9).rows()
    assert [row.metric for row in rows] == list(APPLICATIONS["WM"].overview)
    assert [row.reference for row in rows] == [1e9, 1e9, None, 1e9]


def test_the_last_lines_name_the_directories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {app: tmp_path / f"20260102T030405Z-hstts-{app.lower()}" for app in ("BU", "TU")}
    for place in places.values():
        place.mkdir()
        Experiment.create(place, origin(), "virtual").finish("complete")
    (places["BU"] / "report.html").touch()
    suite_cli.conclude(Context.of({}), overview.Suite(places, ("reno",), "reno", 10**9), as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        f"BU  complete  directory: {places['BU']}  report: report.html",
        f"TU  complete  directory: {places['TU']}",
    ]


def test_the_page_has_the_ranges() -> None:
    assert markdown() in PAGE.read_text()


def swept(app: str = "BU", topology: str = "dumbbell", **given: str) -> list[scenario.ScenarioRun]:
    asked = SuiteRequest((app,), topology, given, congestion=("reno", "bic"), seeds=1)
    (one,) = hstts.build(asked)
    return list(scenario.parse(one.text, one.file).runs())


def lab_of(run: scenario.ScenarioRun) -> Any:
    """The data of its lab."""
    return run.raw["lab"]


def steps_of(run: scenario.ScenarioRun) -> Any:
    """The data of its steps."""
    return run.raw["steps"]


def senders(run: scenario.ScenarioRun) -> dict[str, int]:
    """The number of flows of each role."""
    flows = run.schedule(compile_spec(run.spec, host.virtual_facts()), "virtual").document.flows
    return {role: sum(flow.role == role for flow in flows) for role in ("load", "reverse", "background")}


def test_several_values_are_a_sweep_with_the_senders_of_each() -> None:
    """C_g = M/K and N_r = R·K: 5 or 20 sources, none or 8 pairs the other way, in one lab of 28 pairs."""
    runs = swept(CG="0.5,2.0", R="0,0.8")
    assert len(runs) == 2 * 2 * 2
    seen = {(run.parameters["cg"], run.parameters["r"]): senders(run) for run in runs}
    assert seen == {
        (cg, r): {"load": load, "reverse": reverse, "background": 0}
        for cg, load in (("0.5", 5), ("2.0", 20))
        for r, reverse in (("0", 0), ("0.8", 8))
    }
    assert len({run.spec.description.topology.choice.pairs for run in runs}) == 1


def test_a_sweep_at_one_value_sends_what_that_value_alone_does() -> None:
    """Volume, offsets and rates do not depend on the other swept values."""
    alone, _ = first(built("BU", K="5", CG="2.0", R="0"))
    (within, *_) = [run for run in swept(K="5,10", CG="2.0", R="0") if run.parameters["k"] == "5"]
    assert senders(alone) == senders(within) == {"load": 10, "reverse": 0, "background": 0}
    for key in ("access", "wan", "rtt"):
        assert lab_of(alone)[key] == lab_of(within)[key]


def test_streams_background_and_rates_are_swept() -> None:
    runs = swept(NS="1,5", B="0,WMI,CBR", RATE="100M,1G", CG="1.0", R="0")
    assert len(runs) == 2 * 3 * 2 * 2
    for run in runs:
        flows = senders(run)
        assert flows["load"] == 10 * int(run.parameters["ns"])
        assert (flows["background"] > 0) == (run.parameters["b"] != "0")
        assert lab_of(run)["wan"]["rate"] == {"100M": "100Mbit/s", "1G": "1Gbit/s"}[str(run.parameters["rate"])]


@pytest.mark.parametrize("app", list(APPLICATIONS))
def test_every_application_can_be_swept(app: str) -> None:
    given = {"RTT": "1ms,20ms"} if app == "TU" else {"CG": "0.5,1.0", "RTT": "1ms,20ms"}
    runs = swept(app, **given)
    assert {run.parameters["rtt"] for run in runs} == {"1ms", "20ms"}
    for run in runs:
        run.schedule(compile_spec(run.spec, host.virtual_facts()), "virtual")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"CG": "0.5,"}, 'CG "0.5,": write values with commas between, like CG=1,2'),
        ({"K": "10,10"}, 'K "10,10": 10 is there twice: write each value once'),
        ({"RTT": "1ms,Mix"}, 'RTT "1ms,Mix": Mix gives each pair an RTT of its own: write only Mix'),
        ({"CG": "0.5,0.85"}, "CG=0.85 K=10: M = C_g·K = 8.5 is not a whole number of sources: write CG=0.8 (M = 8)"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(DescriptionError) as error:
        swept(**given)
    assert str(error.value) == says


def test_on_a_switch_the_bottleneck_is_its_port_to_the_router() -> None:
    """C_g, M, K and R mean the same as in a dumbbell: 20 cards of 100 Mbit/s behind a port of 1 Gbit/s."""
    run, plan = first(built("BU", "switched", CG="2.0", R="0.5"))
    flows = senders(run)
    assert (flows["load"], flows["reverse"]) == (20, 5)
    assert {pair.bottleneck_bps for pair in plan.pairs} == {10**8}  # a single flow: its card
    port = lab_of(run)["access"]["switch"]["ovs"]
    assert (port["rate"], port["buffer"], lab_of(run)["wan"]["rate"]) == ("1Gbit/s", "1BDP", "10Gbit/s")


@pytest.mark.parametrize(
    ("word", "pairs"),
    # Of 1 Gbit/s each way a tenth and three tenths; half of a card of 100 Mbit/s, or of 1 Gbit/s, is the most.
    [("CBR", 2), ("vbr", 2), ("VBR-Weibull", 2), ("WMI", 2), ("WMII", 6)],
)
def test_behind_a_switch_the_background_is_shared_by_pairs(word: str, pairs: int) -> None:
    run, plan = first(built("BU", "switched", B=word, CG="1.0", R="0.5"))
    own = [flow for flow in run.schedule(plan, "virtual").document.flows if flow.role == "background"]
    assert {flow.source for flow in own} == {
        f"{side}{10 + n}" for side in ("left", "right") for n in range(1, pairs + 1)
    }
    assert len(own) == 2 * pairs and senders(run)["reverse"] == 5
    assert "links" not in lab_of(run), "cards behind a switch are equal"
    if word == "CBR":
        assert {step["udp"]["rate"] for step in steps_of(run) if step["name"].startswith("cbr")} == {"50Mbit/s"}
    one, _ = first(built("BU", "switched", B=word, CG="1.0", K="1", R="0"))
    assert senders(one)["background"] == 2, "a card as fast as the bottleneck"


def test_behind_a_switch_the_background_is_swept() -> None:
    text = built("BU", "switched", B="0,CBR,VBR,WMII", CG="1.0", K="5,10", R="0").text
    runs = scenario.parse(text, Path("x")).runs()
    found = {(str(run.parameters["b"]), str(run.parameters["k"])): senders(run)["background"] for run in runs}
    pairs = {"0": (0, 0), "CBR": (1, 2), "VBR": (1, 2), "WMII": (3, 6)}  # of K = 5 and of K = 10
    assert found == {(word, k): 2 * n for word, both in pairs.items() for k, n in zip(("5", "10"), both, strict=True)}


def generated(app: str, *names: str, **given: str) -> list[Any]:
    asked = SuiteRequest((app,), "dumbbell", given, congestion=("reno",), generators=names)
    (one,) = hstts.build(asked)
    return list(scenario.parse(one.text, Path("x")).runs())


def test_the_load_is_sent_by_another_generator_and_the_rest_by_ours() -> None:
    for run in generated("PA", "openmpi", K="2", R="0.5"):
        flows = run.schedule(compile_spec(run.spec, host.virtual_facts()), "virtual").document.flows
        assert {(flow.role, flow.generator) for flow in flows} == {("load", "openmpi"), ("reverse", "ewan")}


def test_generators_are_swept_as_congestion_controls_are() -> None:
    runs = generated("PA", "ewan", "openmpi", CG="0.5,1.0", K="2")
    assert len(runs) == 2 * 2 * 3 * 3  # generators, levels, patterns, seeds
    assert {run.parameters["generator"] for run in runs} == {"ewan", "openmpi"}
    assert len(generated("PA", "ewan", "openmpi", K="2")) == 2 * 3 * 3


def test_what_a_generator_cannot_send_is_refused() -> None:
    assert hstts.generators("ewan, openmpi") == ("ewan", "openmpi")
    with pytest.raises(DescriptionError, match='--generator "openmp": there is no such generator, write "openmpi"'):
        hstts.generators("openmp")
    (run, *_) = generated("BU", "openmpi")
    with pytest.raises(DescriptionError, match=r"openmpi exchanges only messages, not bulk"):
        run.schedule(compile_spec(run.spec, host.virtual_facts()), "virtual")


def test_background_of_packets_fills_a_tenth_of_the_bottleneck() -> None:
    for word in ("CBR", "VBR-Poisson", "vbr-pareto", "VBR-Weibull"):
        run, plan = first(built("BU", B=word, CG="1.0"))
        flows = run.schedule(plan, "virtual").document.flows
        packets = [flow for flow in flows if flow.role == "background"]
        assert len(packets) == 2, word
        assert {flow.kind for flow in packets} == {"udp"}


def test_a_congestion_control_that_is_none_is_refused_in_one_line() -> None:
    with pytest.raises(Refused, match=r"RENO.*cubic"):
        main(["hstts", "--cc", "RENO"], standalone_mode=False)
