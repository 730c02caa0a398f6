"""Plans of the virtual clock: which links the kernel emulates, what hosts send through, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ewan.labs import host
from ewan.labs.base.codec import replace
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import Psp
from ewan.labs.plan import Interface, Plan, to_json
from ewan.labs.spec import DescriptionError, from_template, parse
from ewan.labs.tests.walk import Network

LIVE = HostFacts(cpus=(0, 1), networks=())
VIRTUAL = host.virtual_facts()


def virtual(template: str = "dumbbell", **overrides: str) -> Plan:
    return compile(from_template(template, {"rtt": "100ms", "rate": "100M", **overrides}), VIRTUAL)


def written(text: str, facts: HostFacts = VIRTUAL) -> Plan:
    return compile(parse(text, Path("x.lab.yaml")), facts)


def refusal(text: str, facts: HostFacts = VIRTUAL) -> str:
    with pytest.raises(DescriptionError) as refused:
        written(text, facts)
    return str(refused.value)


def backend(wan: str) -> str:
    (core,) = written(f"topology: dumbbell\nwan: {wan}").links
    return core.backend


@pytest.mark.parametrize(
    "wan",
    [
        "{}",
        "{loss: 0.1%, corrupt: 1ppm, duplicate: 1ppb}",
        "{loss: {gilbert-elliott: {to_bad: 1%, to_good: 20%}}}",
        "{loss: {markov: {p13: 1%, p31: 20%}}}",
        "{jitter: 1ms, distribution: uniform, reorder: true}",
        "{queue: codel}",
        "{queue: pie, buffer: 100pkt}",
        "{queue: red, rate: 10Mbit/s}",
        "{rate: 8kbit/s, framing: ip}",
        "{rate: 100Gbit/s, buffer: 1GB}",
    ],
)
def test_auto_takes_our_own_model_and_kernel_can_say_it_too(wan: str) -> None:
    assert backend(wan) == "ewan"
    (core,) = written(f"topology: dumbbell\nwan: {wan}\nemulator: kernel").links
    assert core.backend == "kernel"


REFUSED = {
    "{loss: {every: 100}}": 'x.lab.yaml:2: wan.loss.every "100"',
    '{loss: {pattern: "001"}}': "x.lab.yaml:2: wan.loss",
    "{jitter: 1ms}": 'x.lab.yaml:2: wan.jitter "1ms": on core, netem has no normal distribution',
    "{acks: filter}": 'x.lab.yaml:2: wan.acks "filter": on core, the kernel\'s queues filter none',
    "{displace: {share: 1%, packets: 3}}": "x.lab.yaml:2: wan.displace",
    "{jitter: 1ms, correlation: 90%}": 'x.lab.yaml:2: wan.correlation "90%": on core, netem\'s own keeps neither',
    "{jitter: 1ms, distribution: pareto}": 'x.lab.yaml:2: wan.distribution "pareto"',
    "{jitter: 1ms, distribution: uniform}": 'x.lab.yaml:2: wan.jitter "1ms": on core, netem lets packets overtake',
    "{delay: 4s, jitter: 3s, distribution: uniform, reorder: true}": 'x.lab.yaml:2: wan.jitter "3s"',
    "{rate: 100Gbit/s, buffer: 5GB}": 'x.lab.yaml:2: wan.buffer "5GB"',
    "{queue: red, rate: 1Gbit/s}": "x.lab.yaml:2: wan.queue",
    "{queue: {codel: {target: 500ns}}}": "x.lab.yaml:2: wan.queue",
    "{queue: {pie: {alpha: 0.1Hz}}}": "x.lab.yaml:2: wan.queue",
    "{queue: drr}": "x.lab.yaml:2: wan.queue",
    "{queue: {fq-codel: {target: 500ns}}}": "x.lab.yaml:2: wan.queue",
    "{queue: {dualpi2: {classic: 0.5%}}}": "x.lab.yaml:2: wan.queue",
    "{queue: {dualpi2: {step: 500ns}}}": "x.lab.yaml:2: wan.queue",
    "{queue: {priority: {classes: [{name: a}]}}}": "x.lab.yaml:2: wan.queue",
    "{backward: {loss: {every: 100}}}": "x.lab.yaml:2: wan.backward.loss",
}


@pytest.mark.parametrize(("wan", "says"), REFUSED.items())
def test_what_netem_cannot_say_is_refused_of_it(wan: str, says: str) -> None:
    assert backend(wan) == "ewan"
    for wanted in ("kernel", "tbf"):
        said = refusal(f"topology: dumbbell\nwan: {wan}\nemulator: {wanted}")
        assert said.startswith(says.split(' "')[0].split(".every")[0]), said
        assert "write" in said and said.endswith("emulator: user") and "\n" not in said


def test_a_refusal_says_which_setting_and_what_to_write() -> None:
    said = refusal("topology: dumbbell\nwan: {jitter: 1ms, distribution: uniform}\nemulator: kernel")
    assert said == (
        'x.lab.yaml:2: wan.jitter "1ms": on core, netem lets packets overtake under jitter: '
        'write "reorder: true", or emulator: user'
    )


def test_nothing_spins_in_the_virtual_clock() -> None:
    for emulator in ("auto", "user", "kernel", "tbf"):
        assert virtual(emulator=emulator).spinners == ()


def test_the_live_clock_takes_our_own_link_unless_told() -> None:
    for wanted, taken in (("auto", "user"), ("user", "user"), ("kernel", "kernel"), ("tbf", "tbf")):
        plan = written(f"topology: dumbbell\nemulator: {wanted}", LIVE)
        assert [link.backend for link in plan.links] == [taken]
        # Without a spinner, no CPU is kept from hosts and nothing steered away from one.
        assert plan.host_cpus == ((0,) if taken == "user" else (0, 1))
        assert any(port.steer for port in Network(plan).ports.values()) == (taken == "user")


def psp(port: Interface) -> Psp:
    assert isinstance(port.egress, Psp)
    return port.egress


def test_hosts_send_through_psp_at_their_access_rate() -> None:
    network = Network(virtual(access="1G"))
    card = psp(network.ports["left1", "eth0"])
    assert (card.rate_bps, card.overhead_bytes, card.minimum_bytes) == (1_000_000_000, 24, 84)
    assert (card.limit_packets, card.limit_bytes) == (1000, 1_538_000)
    back = network.ports["r1", "eth1"].egress
    assert back == replace(card, dither_ns=0, seed=0), "a router sends at the same rate, without a host's dither"
    assert not any(port.steer for port in network.ports.values())


def test_ip_framing_takes_the_ethernet_header_off() -> None:
    plan = written("topology: dumbbell\naccess: {framing: ip, rate: 10Mbit/s}")
    card = psp(Network(plan).ports["left1", "eth0"])
    assert (card.rate_bps, card.overhead_bytes, card.minimum_bytes) == (10_000_000, -14, 0)


def test_a_host_on_an_emulated_link_has_no_rate_of_its_own() -> None:
    card = psp(Network(virtual("star")).ports["host1", "eth0"])
    assert (card.rate_bps, card.limit_packets) == (0, 10_000)


def dithers(plan: Plan) -> dict[str, int]:
    return {n.name: psp(n.interfaces[0]).dither_ns for n in plan.nodes if n.kind == "host"}


def test_a_host_dithers_by_a_packets_time_at_the_bottleneck() -> None:
    # 1538 bytes at 100 Mbit/s.
    assert dithers(virtual()) == {"left1": 123_040, "right1": 123_040}
    assert dithers(virtual(access="10M"))["left1"] == 1_230_400
    slow = written("topology: {parking-lot: {hops: 2}}\nwan: {rate: 1Gbit/s}\nlinks: {hop2: {rate: 10Mbit/s}}")
    found = dithers(slow)
    assert found["left1"] == 1_230_400, "its way has the slow hop in it"
    assert found["in1-1"] == 12_304, "its way has not"


def test_a_host_without_a_pair_goes_by_the_slowest_link() -> None:
    graph = "topology: {graph: {hosts: [a, b, c], routers: [r], pairs: [[a, b]], links: [%s]}}"
    links = "{between: [a, r]}, {between: [b, r]}, {between: [c, r], rate: 1Mbit/s, delay: 5ms}"
    assert dithers(written(graph % links)) == {"a": 1_231, "b": 1_231, "c": 12_304_000}


def test_dither_can_be_chosen_or_left_out() -> None:
    assert dithers(virtual(dither="0")) == {"left1": 0, "right1": 0}
    assert dithers(virtual(dither="10us")) == {"left1": 10_000, "right1": 10_000}
    assert dithers(virtual(dither="auto")) == dithers(virtual())
    assert dithers(written("topology: dumbbell\ndither: 0")) == {"left1": 0, "right1": 0}


def test_each_host_has_a_seed_of_its_own_that_follows_the_plans() -> None:
    def seeds(seed: str, pairs: str) -> dict[str, int]:
        plan = virtual(seed=seed, pairs=pairs)
        return {n.name: psp(n.interfaces[0]).seed for n in plan.nodes if n.kind == "host"}

    few, many = seeds("1", "1"), seeds("1", "4")
    assert len(set(many.values())) == 8
    assert few["left1"] == many["left1"] != seeds("2", "1")["left1"]


def test_dither_is_of_the_virtual_clock() -> None:
    said = refusal("topology: dumbbell\ndither: 10us", LIVE)
    assert said.startswith('x.lab.yaml:2: dither "10us": dither is of the virtual clock')
    for fine in ("0", "auto", "0ms"):
        assert written(f"topology: dumbbell\ndither: {fine}", LIVE) == written("topology: dumbbell", LIVE)


def test_a_dither_without_a_unit_is_refused() -> None:
    assert refusal("topology: dumbbell\ndither: 5") == 'x.lab.yaml:2: dither "5": write a duration as "5ms"'


def test_a_plan_does_not_depend_on_the_machine() -> None:
    plan = written("topology: dumbbell\ncpus: {spin: [7], hosts: [6]}")
    assert plan.host_cpus == (0,)
    assert to_json(plan) == to_json(written("topology: dumbbell"))


def test_auto_takes_what_calibration_found_better_where_the_kernel_can_express_it(tmp_path: Path) -> None:
    facts = HostFacts(cpus=(0, 1), networks=(), preferred="kernel")
    plain = compile(from_template("dumbbell", {"rtt": "20ms"}), facts)
    assert plain.links[0].backend == "kernel"
    radio = "topology: dumbbell\nrtt: 20ms\nwan: {rate: 10Mbit/s, harq: {errors: 10%, round: 8ms, rounds: 3}}"
    assert written(radio, facts).links[0].backend == "user"
    (tmp_path / "host").mkdir()
    assert host.preferred(tmp_path) == host.preferred(None) == "user"
    (tmp_path / host.PREFERRED).write_text(f"kernel {os.uname().release}\n")
    assert host.preferred(tmp_path) == "kernel"
    (tmp_path / host.PREFERRED).write_text("kernel 2.6.18\n")
    assert host.preferred(tmp_path) == "user"
