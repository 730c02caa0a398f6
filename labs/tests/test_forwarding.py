"""Paths of any two hosts, by the routes of the plan; independent of labs/compile/paths.py and of labs/tests/walk.py."""

from __future__ import annotations

from itertools import pairwise, permutations
from pathlib import Path

import pytest

from ewan.labs.compile import HostFacts, compile
from ewan.labs.forwarding import Forwarding
from ewan.labs.plan import Hop, Plan
from ewan.labs.spec import from_template, load, parse

HOST = HostFacts((0, 1), ())
LIBRARY = sorted((Path(__file__).resolve().parents[1] / "library").glob("*.lab.yaml"))
TEMPLATES = [
    ("dumbbell", {"pairs": "3", "reverse_pairs": "1"}),
    ("dumbbell", {"pairs": "3", "switch": "ovs"}),
    ("dumbbell", {"pairs": "2", "ip": "6", "access": "10Mbit/s"}),
    ("star", {"arms": "5"}),
    ("ring", {"routers": "7"}),
    ("ring", {"routers": "7", "routing": "ospf"}),
    ("mesh", {"routers": "5", "routing": "bgp", "ip": "6"}),
    ("grid", {"rows": "3", "columns": "4", "routing": "isis"}),
    ("four-domain", {"hosts": "3", "switch": "ovs"}),
    ("chain", {"hops": "5", "pairs": "2"}),
]


def check(plan: Plan, *, turned: bool = False) -> None:
    """`turned`: the description has routes of its own."""
    forwarding = Forwarding(plan)
    for pair in plan.pairs:
        assert forwarding.followed(pair.source, pair.sink) == pair.forward
        assert forwarding.followed(pair.sink, pair.source) == pair.backward
    hosts = [node.name for node in plan.nodes if node.kind == "host"][:8]
    for source, sink in permutations(hosts, 2):
        there, back = forwarding.path(source, sink), forwarding.path(sink, source)
        if not turned:
            assert [hop.link for hop in there.hops] == [hop.link for hop in back.hops][::-1]
        ends = [forwarding.ends(hop) for hop in there.hops]
        assert ends[0][0].node == source and ends[-1][1].node == sink
        assert all(one[1].node == next_[0].node for one, next_ in pairwise(ends)), "in a row"
        rates = [rate for hop in there.hops if (rate := forwarding.rate_bps(hop))]
        assert there.bottleneck_bps == min(rates) == forwarding.rate_bps(there.slowest)


@pytest.mark.parametrize(("template", "settings"), TEMPLATES)
def test_the_routes_lead_along_the_pairs_paths(template: str, settings: dict[str, str]) -> None:
    check(compile(from_template(template, settings), HOST))


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: file.name)
def test_in_the_librarys_labs_too(file: Path) -> None:
    spec = load(file)
    check(compile(spec, HOST), turned=bool(spec.description.routes))


def test_hosts_that_are_no_pair_have_a_path_and_an_rtt() -> None:
    text = """
topology:
  graph:
    hosts: [a, b, c]
    routers: [r1, r2, r3]
    links:
      - {between: [a, r1]}
      - {between: [r2, b]}
      - {between: [r3, c]}
      - {name: short, between: [r2, r1], delay: 1ms}
      - {name: direct, between: [r1, r3], delay: 9ms}
      - {name: long, between: [r2, r3], delay: 2ms, rate: 5Mbit/s}
    pairs: [[a, b]]
"""
    forwarding = Forwarding(compile(parse(text, Path("x.lab.yaml")), HOST))
    assert forwarding.path("a", "c").hops == (
        Hop("a-r1", "forward"),
        Hop("short", "backward"),
        Hop("long", "forward"),
        Hop("r3-c", "forward"),
    )
    assert (forwarding.path("a", "c").slowest, forwarding.path("a", "c").bottleneck_bps) == (
        Hop("long", "forward"),
        5_000_000,
    )
    assert forwarding.rtt_ns("a", "c") == 6_000_000
    assert forwarding.path("b", "a").hops[1] == Hop("short", "forward")
    with pytest.raises(ValueError, match="no node d"):
        forwarding.path("a", "d")


def test_hosts_of_one_switch_meet_there_alone() -> None:
    forwarding = Forwarding(compile(from_template("dumbbell", {"pairs": "2", "switch": "ovs"}), HOST))
    assert forwarding.path("left1", "left2").hops == (Hop("access-left1", "forward"), Hop("access-left2", "backward"))
    assert [hop.link for hop in forwarding.path("left1", "right2").hops] == [
        "access-left1", "sw-r1", "core", "sw-r2", "access-right2",
    ]  # fmt: skip
