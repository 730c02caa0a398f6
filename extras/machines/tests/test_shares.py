"""The placement of nodes, the share of each machine in a plan, and the effect of tunnels on links."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ewan.extras.machines import shares, tunnels
from ewan.extras.machines.answers import DelaySpread, TunnelBurst, TunnelMeasurement
from ewan.extras.machines.placement import MachinePlacement, PlacementError, place
from ewan.extras.machines.shares import ShareHost, machine_of_spinner, split, stretched
from ewan.labs import spec
from ewan.labs.base import codec
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import Change, ConstantDelay, UniformDelay
from ewan.labs.link.delay import least_ns
from ewan.labs.plan import Plan, from_json, to_json
from ewan.labs.render import files
from ewan.labs.runtime.base import LabError

MACHINES = ("one", "two", "three")
CPUS = dict.fromkeys(MACHINES, 2)
HOSTS = [ShareHost(name, (0, 1), f"192.0.2.{number}") for number, name in enumerate(MACHINES, 1)]
TAKEN = {(a, b): 100_000 + 1_000 * MACHINES.index(a) for a in MACHINES for b in MACHINES if a != b}


def plan_of(topology: str, **settings: str) -> Plan:
    return compile(spec.from_template(topology, settings), HostFacts(cpus=(0, 1), networks=()))


def placed(topology: str, decided: dict[str, str] | None = None, **settings: str) -> tuple[Plan, MachinePlacement]:
    plan = plan_of(topology, **settings)
    return plan, place(plan, CPUS, decided or {})


@pytest.mark.parametrize(
    ("topology", "settings"),
    [
        ("dumbbell", {"pairs": "4"}),
        ("star", {"arms": "30"}),
        ("parking-lot", {"hops": "4"}),
        ("ring", {"routers": "12"}),
        ("mesh", {}),
        ("four-domain", {}),
        ("grid", {}),
    ],
)
def test_only_wide_area_links_are_cut_and_no_machine_has_much_more_than_its_share(
    topology: str, settings: dict[str, str]
) -> None:
    plan = plan_of(topology, **settings)
    where = place(plan, CPUS, {})
    assert where.machine_of.keys() == {node.name for node in plan.nodes}
    cut = {each.link: each for each in stretched(plan, where)}
    assert tuple(cut) == where.stretched
    links = {link.name: link for link in plan.links}
    for name, each in cut.items():
        assert links[name].role == "wan"
        assert each.near.node == links[name].node, "a tunnel begins at the link's emulator"
        assert each.far in (links[name].a, links[name].b)
    for link in plan.links:  # a host is with its router
        if link.role == "access":
            assert len({where.machine_of[node] for node in (link.a.node, link.b.node, link.node)}) == 1
    if topology in ("star", "ring"):
        sizes = [len(where.nodes_on(name)) for name in MACHINES]
        assert max(sizes) <= 1.3 * len(plan.nodes) / 3, sizes


def test_what_a_person_decided_holds_and_what_cannot_be_is_refused() -> None:
    plan, where = placed("star", {"host[1-5]": "three", "hub": "two"}, arms="9")
    assert {where.machine_of[f"host{number}"] for number in range(1, 6)} == {"three"}
    assert where.machine_of["hub"] == "two"
    for decided, says in (
        ({"left1": "one", "r1": "two"}, "put 3 nodes (r1, left1, access-left1, …) on one machine"),
        ({"nobody": "one"}, 'placement "nobody": there is no node nobody'),
        ({"r1": "one", "r2": "two", "core": "three"}, "core's emulator is on neither machine of its ends"),
    ):
        with pytest.raises(PlacementError) as caught:
            place(plan_of("dumbbell"), CPUS, decided)
        assert says in str(caught.value) or ("on one machine" in says and "on one machine" in str(caught.value))
    assert plan.links


def test_a_part_that_cannot_be_cut_is_on_one_machine_and_others_have_none() -> None:
    plan = plan_of("dumbbell")
    whole = codec.replace(plan, links=tuple(codec.replace(link, role="access") for link in plan.links))
    where = place(whole, CPUS, {})
    assert set(where.machine_of.values()) == {"one"}
    assert where.stretched == ()
    of = split(whole, where, HOSTS, 7, TAKEN)
    assert list(of.of) == ["one"]
    assert codec.replace(of.of["one"], spinners=whole.spinners, host_cpus=whole.host_cpus, pairs=whole.pairs) == whole


def test_the_shares_together_are_the_lab_with_a_tunnel_at_each_cut() -> None:
    plan, where = placed("ring", routers="9")
    of = split(plan, where, HOSTS, 16_777_214, TAKEN)
    for what in ("nodes", "links"):
        together = [each.name for share in of.of.values() for each in getattr(share, what)]
        assert sorted(together) == sorted(each.name for each in getattr(plan, what))
    wires = [wire for share in of.of.values() for wire in share.wires]
    assert len(wires) + len(of.stretched) == len(plan.wires)
    ends: dict[int, list[Any]] = {}
    for name, share in of.of.items():
        for tunnel in share.tunnels:
            ends.setdefault(tunnel.vni, []).append((name, tunnel))
    assert len(ends) == len(of.stretched) and all(1 <= vni < 1 << 24 for vni in ends)
    for (here, a), (there, b) in ends.values():
        assert (a.local, a.remote) == (b.remote, b.local) and here != there
        assert a.link == b.link and (a.forward_ns, a.backward_ns) == (b.forward_ns, b.backward_ns)
    for share in of.of.values():
        assert from_json(to_json(share)) == share


def test_a_tunnel_takes_its_time_from_the_direction_that_crosses_it_that_way() -> None:
    plan, where = placed("dumbbell", {"r1": "one", "r2": "two", "core": "one"})
    (tunnel,) = split(plan, where, HOSTS, 1, TAKEN).of["one"].tunnels
    assert (tunnel.forward_ns, tunnel.backward_ns) == (TAKEN["one", "two"], TAKEN["two", "one"])
    where = place(plan, CPUS, {"r1": "one", "r2": "two", "core": "two"})
    (tunnel,) = split(plan, where, HOSTS, 1, TAKEN).of["one"].tunnels
    assert (tunnel.forward_ns, tunnel.backward_ns) == (TAKEN["one", "two"], TAKEN["two", "one"])
    assert tunnel.end == plan.links[0].a, "the emulator is at the other side"


def test_spinners_are_numbered_through_the_machines() -> None:
    plan, where = placed("star", arms="30")
    of = split(plan, where, [replace(host, cpus=tuple(range(8))) for host in HOSTS], 1, TAKEN)
    assert [machine_of_spinner(of.first_spinner, number) for number in range(6)] == [
        ("one", 0), ("one", 1), ("two", 0), ("two", 1), ("three", 0), ("three", 1),
    ]  # fmt: skip
    for number, spinner in enumerate(of.whole.spinners):
        machine, local = machine_of_spinner(of.first_spinner, number)
        assert of.of[machine].spinners[local] == spinner
        assert {link.node for link in plan.links if link.name in spinner.links} <= where.nodes_on(machine)


def told(ahead: int = 5_000_000, **changes: Any) -> TunnelMeasurement:
    """The measurement of a tunnel of 200 µs each way, whose other machine's clock is so much ahead."""
    delay = DelaySpread(190_000, 200_000, 260_000, 400_000)
    burst = TunnelBurst(packet_bytes=1500, sent=2000, arrived=2000, in_order=2000)
    found = TunnelMeasurement(
        round_trip_ns=DelaySpread(*(2 * each for each in (delay.min, delay.p50, delay.p99, delay.max))),
        there_ns=DelaySpread(*(each + ahead for each in (delay.min, delay.p50, delay.p99, delay.max))),
        back_ns=DelaySpread(*(each - ahead for each in (delay.min, delay.p50, delay.p99, delay.max))),
        offset_ns=ahead,
        offset_at_ns=0,
        offset_uncertainty_ns=190_000,
        offset_scatter_ns=None,
        drift_ppb=None,
        drift_uncertainty_ppb=0,
        sent=1000,
        answered=1000,
        lost_there=0,
        lost_back=0,
        reordered_there=0,
        reordered_back=0,
        duplicated_there=0,
        duplicated_back=0,
        rate_there_bps=2_000_000_000,
        rate_back_bps=2_000_000_000,
        burst_there=burst,
        burst_back=burst,
        mtu=1500,
        mtu_there=1500,
        mtu_back=1500,
    )
    return codec.replace(found, **changes)


def checked(delay: str = "10ms", **changes: Any) -> list[str]:
    plan, where = placed("dumbbell", {"r1": "one", "r2": "two"}, rtt=delay)
    return tunnels.check(plan, stretched(plan, where), [tunnels.read("one", "two", told(**changes))])


def test_what_a_tunnel_takes_is_without_the_difference_of_the_clocks() -> None:
    measured = tunnels.read("one", "two", told())
    assert tunnels.taken_ns([measured]) == {("one", "two"): 200_000, ("two", "one"): 200_000}
    assert (measured.there.p99_ns, measured.back.min_ns) == (260_000, 190_000)
    assert checked() == []


def test_a_link_that_cannot_lie_over_its_tunnel_is_refused_with_what_to_write() -> None:
    with pytest.raises(
        LabError, match=r"link core delays 250us forward, and the tunnel from one to two already takes up"
    ):
        checked("0.5ms")
    with pytest.raises(LabError, match=r'of 1500 bytes, and .* of 1350 at most: write "mtu: 1350"'):
        checked(mtu_back=1350)


def test_what_packets_will_notice_of_a_tunnel_is_said() -> None:
    ahead = 2_000_000_000
    far: dict[str, Any] = {"there_ns": told(ahead).there_ns, "back_ns": told(ahead).back_ns, "offset_ns": ahead}
    said = checked(lost_there=12, rate_back_bps=300_000_000, **far)
    assert any("lost 12 of 1000 packets: so will core" in line for line in said)
    assert any("from two to one carried 300Mbit/s, and core has 1Gbit/s" in line for line in said)
    assert any("the clocks of one and two are 2" in line for line in said)
    plan, where = placed("star", arms="30")
    pairs = [("one", "two"), ("one", "three")]
    said = tunnels.check(plan, stretched(plan, where), [tunnels.read(*pair, told(lost_back=3)) for pair in pairs])
    assert len(said) == 6, "two lines a tunnel, of which one is of both directions"
    assert any(
        re.search(r"to one lost 3 of 1000 packets: so will each of \d+ links over it \(arm12 …\)", line)
        for line in said
    )
    assert any(
        re.search(r"carried 2Gbit/s, and each of \d+ links over it \(arm12 …\) together have", line) for line in said
    )


def test_a_change_to_less_than_the_tunnel_takes_is_refused() -> None:
    plan, where = placed("dumbbell", {"r1": "one", "r2": "two"}, rtt="10ms")
    core, crossing, measured = plan.links[0], stretched(plan, where), [tunnels.read("one", "two", told())]
    for heading in ("forward", "backward", "both"):
        tunnels.check_change(core, heading, Change(delay=ConstantDelay(300_000)), crossing, measured)
        tunnels.check_change(core, heading, Change(rate_bps=8_000), crossing, measured)
        with pytest.raises(LabError, match=r"link core delays 100us (for|back)ward, and the tunnel from"):
            tunnels.check_change(core, heading, Change(delay=ConstantDelay(100_000)), crossing, measured)
    tunnels.check_change(core, "both", Change(delay=ConstantDelay(0)), (), measured)


def test_the_least_delay_of_a_link_counts() -> None:
    assert least_ns(UniformDelay(delay_ns=5, jitter_ns=2)) == 3
    plan, where = placed("dumbbell", {"r1": "one", "r2": "two"}, rtt="10ms")
    core = plan.links[0]
    wide = codec.replace(core.forward, delay=UniformDelay(delay_ns=5_000_000, jitter_ns=4_900_000))
    assert tunnels.shortest_ns(wide) == 100_000
    assert tunnels.shortest_ns(codec.replace(core.forward, delay=ConstantDelay(7))) == 7
    changed = codec.replace(plan, links=(codec.replace(core, forward=wide), *plan.links[1:]))
    with pytest.raises(LabError, match="link core delays 100us forward"):
        tunnels.check(changed, stretched(changed, where), [tunnels.read("one", "two", told())])
    assert shares.PORT != 4789


def test_containers_of_each_machine_know_the_names_of_all_and_reach_the_others_by_vxlan(tmp_path: Path) -> None:
    plan, where = placed("dumbbell")
    made = split(plan, where, HOSTS, 7, TAKEN)
    written = files.written_for_machines(made.whole, made.of, where.machine_of, tmp_path, sheet="", version="1")
    assert len(made.of) == 2
    for name, share in made.of.items():
        assert (tmp_path / name / plan.lab / "hosts").read_text() == files.hosts(plan)
        topology = yaml.safe_load(written[f"clab {name}"].read_text())["topology"]
        assert topology["nodes"].keys() == {node.name for node in share.nodes}
        (tunnel,) = [link for link in topology["links"] if link.get("type") == "vxlan"]
        other = next(host for host in HOSTS if host.name in made.of and host.name != name)
        assert (tunnel["remote"], tunnel["vni"], tunnel["udp-port"]) == (other.address, 8, shares.PORT)
