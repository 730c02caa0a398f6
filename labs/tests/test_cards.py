"""The host's cards in a description: at both ends of a cable, or with machines plugged in. Pure."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from ewan.labs import cards
from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Plan
from ewan.labs.spec import DescriptionError
from ewan.labs.spec.description import parse

HOST = HostFacts(cpus=(0, 1), networks=())


def plan(text: str, topology: str = "{dumbbell: {pairs: 2}}", clock: str = "live") -> Plan:
    facts = HostFacts(HOST.cpus, HOST.networks, "virtual" if clock == "virtual" else "live")
    return compile(parse(f"topology: {topology}\n{text}", Path("t.lab.yaml")), facts)


def refused(text: str, topology: str = "{dumbbell: {pairs: 2}}", clock: str = "live") -> str:
    with pytest.raises(DescriptionError) as error:
        plan(text, topology, clock)
    return str(error.value)


def ends(made: Plan) -> dict[str, str]:
    return {card.name: f"{card.end.node}:{card.end.interface}" for card in made.cards}


def test_a_cable_has_a_card_at_each_end() -> None:
    words = "nodes: {left1: {interface: c1}, r1: {interface: c2}}"
    made = plan(words)
    assert ends(made) == {"c1": "left1:eth0", "c2": "r1:eth1"}
    assert made.wires == plan("").wires, "a cable is a wire"
    assert not any(card.own_mac for card in made.cards)
    both = "nodes: {left1: {interface: c1}, left2: {interface: c3}, r1: {interface: {left1: c2, left2: c4}}}"
    assert ends(plan(both)) == {"c1": "left1:eth0", "c3": "left2:eth0", "c2": "r1:eth1", "c4": "r1:eth2"}
    emulator = "nodes: {host1: {interface: c1}, arm1: {interface: c2}}"
    assert ends(plan(emulator, "star")) == {"c1": "host1:eth0", "c2": "arm1:eth0"}, "the link's own port"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "{left1: {interface: c1}}",
            'its cable ends at r1: write the card of that end too, as "nodes: {r1: {interface: ',
        ),
        ("{r1: {interface: c1}}", "r1 has several neighbours: write to which, like {core: c1}"),
        ("{r1: {interface: {left9: c1}}}", "r1 has no neighbour left9, "),
        ("{left1: {interface: c1}, r1: {interface: c1}}", "c1 is at left1 already: write another card"),
        ("{left1: {interface: a/b}}", 'write the name of a network card of this machine, as "ip link" shows it'),
        ("{left1: {interface: {}}}", 'write a card for a neighbour, like "{r1: eth1}"'),
        ("{left9: {interface: c1}}", "left9"),
    ],
)
def test_what_makes_no_cable_is_refused(words: str, said: str) -> None:
    found = refused(f"nodes: {words}")
    assert found.startswith("t.lab.yaml:2: nodes")
    assert said in found


def test_cards_are_of_nodes_of_the_live_clock_in_namespaces() -> None:
    words = "nodes: {left1: {interface: c1}, r1: {interface: c2}}"
    assert "a lab of the virtual clock has no cards: write --runtime netns" in refused(words, clock="virtual")
    assert "has no cards" in refused("external: {at: r1, interface: c1}", clock="virtual")
    assert 'a card is one node\'s: write it below "nodes:"' in refused("kinds: {host: {interface: c1}}")
    assert (
        cards.refusal(plan(words))
        == "card c1 of left1 can only be in a lab of network namespaces: write --runtime netns"
    )
    assert cards.refusal(plan("")) is None


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("{at: r1, interface: c1}", ["c1"]),
        ("[{at: r1, interface: c1}, {at: r2, interface: c2}]", ["c1", "c2"]),
        ("{lab-side: {at: r1, interface: c1}, far: {at: r1, interface: c2}}", ["c1", "c2"]),
    ],
)
def test_external_ends_are_written_as_one_a_list_or_by_name(words: str, names: list[str]) -> None:
    made = plan(f"external: {words}")
    assert [card.name for card in cards.external(made)] == names
    assert all(card.own_mac for card in made.cards)


def test_an_external_end_has_networks_of_its_own_which_all_routers_reach() -> None:
    made = plan("external: {at: r2, interface: c1}\naccess: {switch: ovs}", "{dumbbell: {pairs: 200}}")
    nodes = {node.name: node for node in made.nodes}
    (end,) = [card.end for card in made.cards]
    port = next(port for port in nodes["r2"].interfaces if port.name == end.interface)
    v4, v6, link_local = (ipaddress.ip_interface(address) for address in port.addresses)
    assert (v4.network.prefixlen, v6.network.prefixlen, str(link_local)) == (24, 64, "fe80::1/64")
    others = [
        ipaddress.ip_interface(address).network
        for node in made.nodes
        for other in node.interfaces
        for address in other.addresses
        if other is not port
    ]
    assert not any(
        net.version == own.version and net.overlaps(own) for net in others for own in (v4.network, v6.network)
    )
    routes = [ipaddress.ip_network(route.to) for route in nodes["r1"].routes]
    for own in (v4.network, v6.network):
        assert any(route.version == own.version and own.subnet_of(route) for route in routes)  # type: ignore[arg-type]
    (service,) = nodes["r2"].services
    assert f"interface={end.interface}" in service.files["dnsmasq.conf"].splitlines()


def test_routing_daemons_tell_others_of_an_external_end() -> None:
    made = plan("external: {at: r2, interface: c1}\nrouting: ospf")
    r2 = next(node for node in made.nodes if node.name == "r2")
    assert [service.name for service in r2.services] == ["zebra", "ospfd", "ospf6d", "dnsmasq"]
    assert "fe80::/64" not in "".join(text for service in r2.services[:3] for text in service.files.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("{at: r9, interface: c1}", 't.lab.yaml:2: external.at "r9": there is no router r9, '),
        ("{at: left1, interface: c1}", "there is no router left1"),
        ("{interface: c1}", 'external.at: is missing: write "at:" too'),
        ("{at: r1, interface: c1, mtu: 9000}", "unknown key of an external end"),
        ("[{at: r1, interface: c1}, {at: r2, interface: c1}]", 'external[1].interface "c1": c1 is at r1 already'),
        ("{bench: {at: r9, interface: c1}}", 'external.bench.at "r9": there is no router r9'),
    ],
)
def test_what_is_no_external_end_is_refused(words: str, said: str) -> None:
    found = refused(f"external: {words}")
    assert said in found
    assert "\n" not in found
