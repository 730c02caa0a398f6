"""Hosts with several links, links with another MTU, and ways back by other links: what the compiler makes of them."""

from __future__ import annotations

import ipaddress

import pytest

from ewan.labs.compile import HostFacts
from ewan.labs.forwarding import Forwarding
from ewan.labs.plan import Node, Plan
from ewan.labs.render import path_line, table
from ewan.labs.tests.texts import described, refusal

PHONE = """
topology:
  graph:
    hosts: [phone, server]
    routers: [home, tower, core]
    links:
      - {name: wifi, between: [phone, home], role: wan, rate: 40Mbit/s, delay: 5ms}
      - {name: lte, between: [tower, phone], role: wan, rate: 20Mbit/s, delay: 25ms}
      - {between: [home, core], delay: 5ms}
      - {between: [tower, core], delay: 5ms}
      - {between: [server, core]}
    pairs: [[phone, server]]
"""
SATELLITE = """
topology:
  graph:
    hosts: [server, home, other]
    routers: [hub, dish, exchange]
    links:
      - {between: [server, hub]}
      - {name: satellite, between: [hub, dish], delay: 250ms}
      - {name: cable, between: [dish, exchange], delay: 10ms}
      - {name: trunk, between: [exchange, hub], delay: 5ms}
      - {between: [home, dish]}
      - {between: [other, dish]}
    pairs: [[server, home], [server, other]]
routes: [{at: hub, to: home, over: satellite}]
"""
TWO_LINKS = """
topology:
  graph:
    hosts: [a, b, c]
    routers: [x, y]
    links:
      - {between: [a, x]}
      - {name: c1, between: [c, x], role: wan, rate: 20Mbit/s, delay: 1ms}
      - {name: c2, between: [x, c], role: wan, rate: 10Mbit/s, delay: 2ms}
      - {name: slow, between: [y, x], rate: 50Mbit/s, delay: 30ms}
      - {name: fast, between: [x, y], rate: 10Mbit/s, delay: 10ms}
      - {name: other, between: [x, y], rate: 10Mbit/s, delay: 10ms}
      - {between: [y, b]}
    pairs: [[a, b], [c, b]]
"""
MS = 10**6


def node(plan: Plan, name: str) -> Node:
    (found,) = [each for each in plan.nodes if each.name == name]
    return found


def crossed(plan: Plan, source: str, sink: str) -> list[str]:
    return [hop.link for hop in Forwarding(plan).path(source, sink).hops]


def test_packets_leave_a_host_by_the_link_of_their_source_address() -> None:
    plan = described(PHONE)
    phone = node(plan, "phone")
    wifi, lte = phone.interfaces
    assert [port.name for port in (wifi, lte)] == ["eth0", "eth1"]
    defaults = [route for route in phone.routes if not route.source]
    assert {route.interface for route in defaults} == {"eth0"}, "the first link's"
    by_source = {route.source: route.interface for route in phone.routes if route.source}
    own = {text.split("/")[0]: port.name for port in (wifi, lte) for text in port.addresses}
    assert by_source == own
    for route in phone.routes:
        (port,) = [each for each in (wifi, lte) if each.name == route.interface]
        assert any(ipaddress.ip_address(route.via) in ipaddress.ip_interface(a).network for a in port.addresses)


def test_an_end_of_a_path_may_be_one_of_a_hosts_links() -> None:
    plan = described(PHONE)
    assert crossed(plan, "phone", "server") == ["wifi", "home-core", "server-core"]
    assert crossed(plan, "phone:wifi", "server") == crossed(plan, "phone", "server")
    assert crossed(plan, "phone:lte", "server") == ["lte", "tower-core", "server-core"]
    assert crossed(plan, "server", "phone:lte") == ["server-core", "tower-core", "lte"]
    assert crossed(plan, "server:server-core", "phone:lte") == ["server-core", "tower-core", "lte"]
    forwarding = Forwarding(plan)
    assert forwarding.rtt_ns("phone", "server") == 20 * MS
    assert forwarding.rtt_ns("phone:lte", "server") == 60 * MS
    with pytest.raises(ValueError, match="phone has no link dsl"):
        forwarding.path("phone:dsl", "server")


def test_buffers_are_made_for_the_longer_link() -> None:
    plan = described(PHONE)
    (wifi,) = [link for link in plan.links if link.name == "wifi"]
    assert wifi.forward.queue.limit_bytes == 40 * 60 * 1000 // 8, "one BDP of 60 ms"


def test_the_wanted_rtt_is_of_the_longest_of_all_links() -> None:
    text = PHONE.replace(", delay: 25ms", "").replace("topology:", "rtt: 80ms\ntopology:", 1)
    forwarding = Forwarding(described(text))
    assert forwarding.rtt_ns("phone:lte", "server") == 80 * MS


def test_a_way_back_by_other_links() -> None:
    plan = described(SATELLITE)
    pair, plain = plan.pairs
    assert [hop.link for hop in pair.forward.hops] == ["server-hub", "satellite", "home-dish"]
    assert [hop.link for hop in pair.backward.hops] == ["home-dish", "cable", "trunk", "server-hub"]
    assert pair.rtt_ns == 265 * MS
    assert [hop.link for hop in plain.forward.hops] == ["server-hub", "trunk", "cable", "other-dish"]
    forwarding = Forwarding(plan)
    for each in plan.pairs:
        assert forwarding.followed(each.source, each.sink) == each.forward
        assert forwarding.followed(each.sink, each.source) == each.backward
    assert table.pairs(plan)[0][-1] == "satellite, back cable trunk"
    assert table.pairs(plan)[1][-1] == "trunk cable"
    there, back, *_ = path_line.lines(described(SATELLITE.replace(", [server, other]", "")))
    assert there == "server ─── hub ══ satellite ══ dish ─── home"
    assert back == "home ─── dish ══ cable ══ exchange ══ trunk ══ hub ─── server"


def test_a_route_to_a_router_is_one_to_all_its_hosts() -> None:
    plan = described(SATELLITE.replace("to: home", "to: dish"))
    assert all(pair.forward.hops[1].link == "satellite" for pair in plan.pairs)
    plan = described(SATELLITE.replace("{at: hub, to: home,", "{at: hub, to: [home, other],"))
    assert all(pair.forward.hops[1].link == "satellite" for pair in plan.pairs)
    both = SATELLITE.replace("over: satellite}]", "over: satellite}, {at: hub, to: dish, over: trunk}]")
    assert described(both) == described(SATELLITE), "what is written of a host comes first"


def test_a_route_holds_for_each_link_of_its_host() -> None:
    text = PHONE.replace(
        "      - {between: [server",
        "      - {name: cross, between: [home, tower], delay: 9ms}\n      - {between: [server",
    )
    plan = described(text + "routes: [{at: core, to: phone, over: tower-core}, {at: tower, to: home, over: cross}]\n")
    assert crossed(plan, "server", "phone") == ["server-core", "tower-core", "cross", "wifi"]
    assert crossed(plan, "server", "phone:lte") == ["server-core", "tower-core", "lte"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("at: hub", "at: home", '.at "home": there is no router home: write one of hub, dish, exchange'),
        ("to: home, o", "to: hom, o", '.to "hom": there is no host or router hom: write "home"'),
        ("over: satellite", "over: cable", "no link cable leads from hub to a router"),
        ("over: satellite", "over: server-hub", "no link server-hub leads from hub to a router"),
        ("at: hub", "at: dish", "home is at dish itself"),
        ("satellite}]", "satellite}, {at: hub, to: home, over: trunk}]", "says of home at hub what a route before"),
        ("{at: hub", "{at: exchange, to: home, over: trunk}, {at: hub", "ok"),
        (
            "{at: hub, to: home, over: satellite}",
            "{at: exchange, to: home, over: trunk}",
            "packets to home go in a circle (hub → exchange → hub): leave this out",
        ),
        ("topology:", "routing: ospf\ntopology:", "ospf finds the routes: leave them out, or write routing: static"),
    ],
)
def test_routes_that_lead_nowhere_are_refused(old: str, new: str, message: str) -> None:
    text = SATELLITE.replace(old, new, 1)
    assert text != SATELLITE
    if message == "ok":
        described(text)
    else:
        assert message in refusal(text)


def among(plan: Plan, source: str, sink: str) -> list[str]:
    """The crossed links, of those that have others beside them."""
    return [link for link in crossed(plan, source, sink) if "-" not in link]


def test_of_several_links_between_two_routers_packets_take_that_of_least_delay() -> None:
    plan = described(TWO_LINKS)
    assert among(plan, "a", "b") == ["fast"] == among(plan, "b", "a")
    assert {pair.sink: pair.rtt_ns for pair in plan.pairs if pair.source == "a"} == {"b": 20 * MS}
    turned = described(TWO_LINKS + "routes: [{at: y, to: [a, x], over: slow}, {at: x, to: b, over: other}]\n")
    assert (among(turned, "a", "b"), among(turned, "b", "a")) == (["other"], ["slow"])
    assert among(turned, "b", "c") == ["slow", "c1"]


def test_a_host_chooses_among_its_links_to_one_router_by_the_address() -> None:
    plan = described(TWO_LINKS)
    assert among(plan, "c", "b") == ["c1", "fast"]
    assert among(plan, "c:c2", "b") == ["c2", "fast"]
    assert among(plan, "b", "c:c2") == ["fast", "c2"]
    assert among(plan, "a", "c:c2") == ["c2"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (", delay: 30ms", "", 'packets take that of less delay: write its "delay:"'),
        ("topology:", "routing: ospf\ntopology:", "of which ospf would take one: write routing: static"),
        ("name: other", "name: fast", "fast names two things: write another name for one"),
        ("routers: [x, y]", "routers: [x]\n    switches: [y]", "and frames would go in a circle: leave it out"),
    ],
)
def test_several_links_that_cannot_be_are_refused(old: str, new: str, message: str) -> None:
    assert message in refusal(TWO_LINKS.replace(old, new, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            PHONE.replace("routers:", "switches: [tower]\n    routers:").replace("home, tower, core", "home, core"),
            "phone has several links, and this one leads to a switch: link it to a router",
        ),
        (PHONE + "access: {switch: ovs}\n", "phone has several links, which lead to routers: leave it out"),
        (PHONE + "nodes: {phone: {too_big: silent}}\n", "phone is a host: only routers find a packet too big"),
    ],
)
def test_what_a_host_with_several_links_cannot_be(text: str, message: str) -> None:
    assert message in refusal(text)


def test_each_link_has_its_own_mtu() -> None:
    plan = described("topology: dumbbell\nlinks: {core: {mtu: 1400}}\nkinds: {router: {too_big: silent}}\n")
    mtus = {(each.name, port.name): port.mtu for each in plan.nodes for port in each.interfaces}
    assert mtus["r1", "eth0"] == mtus["core", "eth0"] == mtus["core", "eth1"] == 1400
    assert mtus["left1", "eth0"] == mtus["r1", "eth1"] == 1500
    own = node(plan, "r1").own
    assert own is not None and own.too_big == "silent"
    assert node(described("topology: dumbbell\nkinds: {router: {too_big: reported}}\n"), "r1").own is None


@pytest.mark.parametrize(("said", "sysctl"), [("on", "1"), ("off", None)])
def test_a_sender_may_probe_for_the_mtu(said: str, sysctl: str | None) -> None:
    plan = described(f"topology: dumbbell\nhosts: {{left1: {{stack: {{mtu_probing: {said}}}}}}}\n")
    assert node(plan, "left1").sysctls.get("net/ipv4/tcp_mtu_probing") == sysctl


def test_both_clocks_have_the_same_routes() -> None:
    live, virtual = described(SATELLITE), described(SATELLITE, HostFacts((0,), (), "virtual"))
    assert {each.name: each.routes for each in live.nodes if each.kind != "emulator"} == {
        each.name: each.routes for each in virtual.nodes if each.kind != "emulator"
    }
