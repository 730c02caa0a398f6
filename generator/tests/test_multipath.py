"""Flows by a host's links, and over several of them: their requests, the links that they cross, and what is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from ewan.analysis.load import PlanNodes
from ewan.generator.scenario.schedule import ScheduledRun, schedule
from ewan.generator.tests.scenarios import parse, planned
from ewan.labs.base import codec
from ewan.labs.base.source import DescriptionError
from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import to_json
from ewan.labs.record.traffic import Multipath

TEXT = """
name: several
lab:
  topology:
    graph:
      hosts: [phone, server, twin]
      routers: [home, tower, core]
      links:
        - {name: wifi, between: [phone, home], delay: 5ms}
        - {name: lte, between: [phone, tower], delay: 25ms}
        - {between: [home, core], delay: 5ms}
        - {between: [tower, core], delay: 5ms}
        - {between: [server, core]}
        - {name: one, between: [twin, core]}
        - {name: two, between: [twin, home]}
steps:
  - {name: a, from: FROM, to: TO, for: 1s, bulk: , MORE}
"""


def scheduled(source: str, sink: str, more: str = "multipath: {}", clock: Any = "virtual") -> ScheduledRun:
    text = TEXT.replace("FROM", source).replace("TO", sink).replace("MORE", more)
    (run,) = parse(text).runs()
    return schedule(run, compile(run.spec, HostFacts((0,), (), clock)), clock)


def addresses(made: ScheduledRun) -> dict[str, str]:
    """The first address of each link of a host, by words like `phone:lte`."""
    found = codec.decode(PlanNodes, to_json(made.plan), "plan").addresses
    return {min(own, key=len): end for end, own in found.items() if ":" in end}


def paths(made: ScheduledRun) -> Multipath:
    assert made.program.traffic is not None
    found = made.program.traffic.flows[0].socket.multipath
    assert found is not None
    return found


def crossed(made: ScheduledRun) -> list[str]:
    (path,) = made.document.paths
    return [hop.link for hop in path.hops]


def test_a_flow_has_the_address_of_its_hosts_link() -> None:
    made = scheduled('"phone:lte"', "server", "dscp: 0")
    assert made.program.traffic is not None
    (flow,) = made.program.traffic.flows
    assert flow.from_ is not None and flow.from_.netns.endswith("-phone")
    assert addresses(made)[flow.from_.address] == "phone:lte"
    (told,) = made.document.flows
    assert (told.source, told.ends) == ("phone:lte", ("phone", "server"))
    assert crossed(made) == ["lte", "tower-core", "server-core"]


def test_iperf3_binds_to_the_address_of_its_hosts_link() -> None:
    made = scheduled('"phone:lte"', "server", "generator: iperf3")
    server, client = made.program.commands
    assert (server.node, client.node) == ("server", "phone")
    assert addresses(made)[client.argv[client.argv.index("-B") + 1]] == "phone:lte"
    assert "-B" not in scheduled("phone", "server", "generator: iperf3").program.commands[1].argv
    towards = scheduled("server", '"phone:lte"', "generator: iperf3").program.commands[1].argv
    assert addresses(made)[towards[towards.index("-c") + 1]] == "phone:lte"


def test_paths_begin_at_each_address_of_the_source() -> None:
    made = scheduled("phone", "server")
    assert paths(made).paths == 2 and paths(made).to == ()
    assert [addresses(made)[each] for each in paths(made).from_] == ["phone:lte"]
    assert crossed(made) == ["wifi", "home-core", "server-core", "lte", "tower-core"]
    other = scheduled('"phone:lte"', "server")
    assert [addresses(other)[each] for each in paths(other).from_] == ["phone:wifi"]


def test_a_sink_tells_of_its_further_addresses() -> None:
    made = scheduled("server", "phone")
    assert paths(made).from_ == ()
    assert [addresses(made)[each] for each in paths(made).to] == ["phone:lte"]
    both = scheduled("phone", "twin")
    assert paths(both).paths == 3
    assert [addresses(both)[each] for each in (*paths(both).from_, *paths(both).to)] == ["phone:lte", "twin:two"]
    fewer = scheduled("phone", "twin", "multipath: {paths: 2}")
    assert (len(paths(fewer).from_), len(paths(fewer).to)) == (1, 0)


def test_one_path_is_plain_tcp() -> None:
    made = scheduled("phone", "server", "multipath: {paths: 1}")
    assert made.program.traffic is not None
    assert made.program.traffic.flows[0].socket.multipath is None
    plain = scheduled("phone", "server", "dscp: 0")
    assert orjson.loads(codec.document(made.document)) == orjson.loads(codec.document(plain.document))


@pytest.mark.parametrize(
    ("source", "sink", "more", "message"),
    [
        ("server", "phone", "multipath: {paths: 3}", 'paths "3": server and phone have 2 at most: write 2'),
        ("server", "phone", "multipath: {scheduler: redundant}", "has no scheduler redundant: write default"),
        ("server", "phone", "multipath: {}, mss: 1000", "is not of a flow over several paths"),
        ("server", "phone", "multipath: {}, ecn: true", "is not of a flow over several paths"),
        ("server", "phone", "multipath: {}, pacing: psp 1Mbit/s", "is not of a flow over several paths"),
        ("server", "phone", "multipath: {}, generator: iperf3", "iperf3 has one path"),
        ("server", '"phone:lte"', "generator: ditg", "ditg chooses no link of a host: write only the host, or"),
        ("server", '"phone:dsl"', "dscp: 0", "there is no node phone:dsl in the lab"),
        ('"phone:wifi"', '"phone:lte"', "dscp: 0", "phone:wifi sends to itself"),
        (
            "server",
            "phone",
            "multipath: {paths: 2}}\n  - {name: b, from: twin, to: phone, bulk: 1MB, multipath: {paths: 3}",
            "phone has 2 paths",
        ),
    ],
)
def test_what_paths_cannot_be(source: str, sink: str, more: str, message: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        scheduled(source, sink, more)
    assert message in str(refused.value)


def test_hosts_with_one_link_each_have_one_path() -> None:
    text = "name: x\nlab: dumbbell\nsteps: [{name: a, from: left1, to: right1, bulk: 1MB, multipath: {}}]\n"
    (run,) = parse(text).runs()
    with pytest.raises(DescriptionError, match="neither left1 nor right1 has several links: leave it out"):
        planned(run)
    requests = text.replace("bulk: 1MB", "requests: {count: 1, request: 1B, response: 1B}")
    (run,) = parse(requests).runs()
    with pytest.raises(DescriptionError, match="a step of kind requests has none"):
        planned(run)
