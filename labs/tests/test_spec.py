"""What a person wrote wrongly, and the one line that they read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ewan.labs.base.units import Duration, Fraction, Rate
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import DelayTable, LossPattern
from ewan.labs.link.disciplines import KINDS
from ewan.labs.spec import DescriptionError, from_template, json_schema, load, markdown, override
from ewan.labs.spec.fields import Topology

HOST = HostFacts(cpus=(0, 1), networks=())
ROOT = Path(__file__).resolve().parents[2]
ONE_LIST = [word for word, kind in KINDS.items() if kind.plan.one_list]


def refusal_of(text: str, folder: Path) -> str:
    """The error for a description, from reading or compiling, without the folder."""
    file = folder / "x.lab.yaml"
    file.write_text(text)
    with pytest.raises(DescriptionError) as refusal:
        compile(load(file), HOST)
    assert "\n" not in str(refusal.value)
    return str(refusal.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'x.lab.yaml:1: is empty: write at least "topology: dumbbell"'),
        ("- a", 'x.lab.yaml:1: description: a description consists of keys: write at least "topology: dumbbell"'),
        ("rtt: 100ms", 'x.lab.yaml:1: topology: is missing: write "topology:" too'),
        ("topology: dumbell", 'x.lab.yaml:1: topology "dumbell": unknown topology, write "dumbbell"'),
        ("topology: {dumbell: {}}", 'x.lab.yaml:1: topology.dumbell: unknown topology, write "dumbbell"'),
        (
            "topology: star\nwan:\n  rat: 1G",
            'x.lab.yaml:3: wan.rat "1G": unknown key, write "rate"',
        ),
        (
            "topology: star\nlinks:\n  arm1:\n    forward: {dely: 1ms}",
            'x.lab.yaml:4: links.arm1.forward.dely "1ms": unknown key, write "delay"',
        ),
        ("topology: star\nrtt: 100", 'x.lab.yaml:2: rtt "100": write a duration as "100ms"'),
        ("topology: star\nrtt: -5ms", 'x.lab.yaml:2: rtt "-5ms": a duration is not negative: write "5ms"'),
        (
            "topology: star\n\nwan:\n  rate: 1 Gbps/s",
            'x.lab.yaml:4: wan.rate "1 Gbps/s": write a rate as "1Gbit/s"',
        ),
        (
            "topology: star\nwan: {loss: 120%}",
            'x.lab.yaml:2: wan.loss "120%": a fraction is between 0% and 100%: write one within, like "0.1%"',
        ),
        (
            "topology: star\nwan: {loss: {gilbert: {}}}",
            'x.lab.yaml:2: wan.loss.gilbert: unknown loss model, write "gilbert-elliott"',
        ),
        (
            "topology: star\nwan: {loss: {gilbert-elliott: {to_bad: 1%}}}",
            'x.lab.yaml:2: wan.loss.gilbert-elliott.to_good: is missing: write "to_good:" too',
        ),
        (
            "topology: star\nwan:\n  queue: best",
            f'x.lab.yaml:3: wan.queue "best": unknown queue discipline, write one of {", ".join(KINDS)}',
        ),
        (
            "topology: {star: {}, ring: {}}",
            "x.lab.yaml:1: topology: write exactly one of dumbbell, parking-lot, star, chain, ring, mesh, fishbone, "
            "four-domain, grid, graph",
        ),
        (
            "topology: {dumbbell: {pairs: 0}}",
            'x.lab.yaml:1: topology.dumbbell.pairs "0": write a whole number from 1 to 20000, like "2"',
        ),
        ("topology: star\nwan: 3", 'x.lab.yaml:2: wan "3": is a group of keys: write its keys below it'),
        ("topology: star\nwan:\n rate: 1G\n rate: 2G", "x.lab.yaml:4: wan.rate: is written twice: write it once"),
        ("topology: [", "x.lab.yaml:2: did not find expected node content: write YAML"),
        ("topology: star\nip: 5", 'x.lab.yaml:2: ip "5": write "4", "6" or "dual"'),
        (
            "topology: star\nmtu: 500",
            'x.lab.yaml:2: mtu "500": write the largest IP packet in bytes without a unit, from 576 to 65535, '
            'like "1500"',
        ),
        (
            "topology: star\nmtu: 600",
            'x.lab.yaml:2: mtu "600": IPv6 needs 1280 (RFC 8200): write at least "1280", or ip 4',
        ),
        (
            "topology: star\nname: Big Lab",
            'x.lab.yaml:2: name "Big Lab": write a name of small letters, digits and hyphens that begins with a '
            'letter, like "dumbbell"',
        ),
        (
            f"topology: star\nname: {'a' * 40}",
            f'x.lab.yaml:2: name "{"a" * 40}": has 40 characters: write a name of at most 32',
        ),
        ("topology: star\nemulator: netem", 'x.lab.yaml:2: emulator "netem": write "auto", "user", "kernel" or "tbf"'),
        (
            "topology: star\nlinks: {arm9: {loss: 1%}}",
            'x.lab.yaml:2: links.arm9: there is no such link, write "arm3"',
        ),
        (
            "topology: dumbbell\nrtt: 10ms\naccess: {delay: 5ms}",
            'x.lab.yaml:2: rtt "10ms": is smaller than the delays of access and other links from left1 to right1: '
            'write at least "20ms"',
        ),
        (
            "topology: dumbbell\nrtt: 10ms\nwan: {delay: 50ms}",
            'x.lab.yaml:2: rtt "10ms": is smaller than the delays of access and other links from left1 to right1: '
            'write "100ms"',
        ),
        (
            "topology: chain\nlinks: {hop1: {delay: 5ms}}",
            'x.lab.yaml:1: rtt: hop2 has no delay of its own: write "rtt: 100ms" or its "delay:" too',
        ),
        (
            "topology: dumbbell\nwan: {forward: {delay: 5ms}}",
            'x.lab.yaml:2: wan.forward.delay "5ms": core has a delay forward only: write one for backward too',
        ),
        (
            "topology: {dumbbell: {pairs: 2}}\nrtt: [1ms, 2ms, 3ms]",
            "x.lab.yaml:2: rtt: lists 3 RTTs for 2 pairs: write one for each pair",
        ),
        (
            "topology: star\nrtt: [1ms, 2ms, 3ms]",
            'x.lab.yaml:2: rtt: a list is for the pairs of a dumbbell, not for a star: write "100ms"',
        ),
        (
            "topology: {dumbbell: {pairs: 2}}\nrtt: [9ms, 20ms]\naccess: {delay: 1ms}",
            'x.lab.yaml:2: rtt: a list sets the access delays: leave out "delay:" there, or write one RTT',
        ),
        (
            "topology: dumbbell\nwan: {buffer: 1kB}",
            'x.lab.yaml:2: wan.buffer "1kB": holds 1kB, less than one packet of 1.538kB: write at least "1pkt"',
        ),
        (
            "topology: dumbbell\nwan: {buffer: 0pkt}",
            'x.lab.yaml:2: wan.buffer "0pkt": holds no packet: write at least "1pkt"',
        ),
        (
            "topology: dumbbell\naccess: {buffer: 1kB}",
            'x.lab.yaml:2: access.buffer "1kB": holds less than one packet of 1.538kB: write at least "1pkt"',
        ),
        (
            "topology: dumbbell\nrtt: 20ms\nwan: {jitter: 11ms}",
            'x.lab.yaml:3: wan.jitter "11ms": is more than the delay of 10ms on core: write at most "10ms"',
        ),
        (
            "topology: dumbbell\nwan: {distribution: pareto}",
            'x.lab.yaml:2: wan.distribution "pareto": has nothing to spread: write "jitter: 1ms" too',
        ),
        (
            "topology: dumbbell\nwan: {acks: filter, queue: drr}",
            'x.lab.yaml:2: wan.acks "filter": drr has several queues, and only one is filtered: write "acks: keep", '
            f"or {', '.join(ONE_LIST[:-1])} or {ONE_LIST[-1]}",
        ),
        (
            "topology: dumbbell\nwan: {displace: 1%}",
            'x.lab.yaml:2: wan.displace "1%": write "{share: 1%, packets: 3}" or "none"',
        ),
        (
            "topology: dumbbell\nwan: {displace: {share: 1%, packets: 1001}}",
            'x.lab.yaml:2: wan.displace.packets "1001": write a whole number from 1 to 1000, like "2"',
        ),
        (
            "topology: dumbbell\nwan: {displace: {share: 1%, packets: 3, within: 0ms}}",
            'x.lab.yaml:2: wan.displace: a packet that waits for others needs time: write "within: 50ms"',
        ),
        (
            "topology: dumbbell\nwan: {correlation: 90%}",
            'x.lab.yaml:2: wan.correlation "90%": has nothing to correlate: write "jitter: 1ms" too',
        ),
        (
            "topology: dumbbell\nwan: {jitter: 1ms, correlation: 100%}",
            'x.lab.yaml:2: wan.correlation "100%": all packets would be alike: write less than 100%, like "90%"',
        ),
        (
            "topology: dumbbell\nwan: {jitter: 1ms, distribution: uniform, correlation: 90%}",
            'x.lab.yaml:2: wan.correlation "90%": uniform delays are independent: write "distribution: normal", '
            'or "correlation: 0%"',
        ),
        (
            "topology: dumbbell\nwan: {reorder: true}",
            'x.lab.yaml:2: wan.reorder "true": a constant delay reorders nothing: write "jitter: 1ms" too',
        ),
        (
            "topology: dumbbell\nrtt: 20s\nwan: {rate: 100G}",
            'x.lab.yaml:3: wan.rate "100G": core must hold 100Gbit/s × 10s = 125GB in flight and 250GB in its buffer, '
            "more than 8.589934592GB: write a lower rate, delay or buffer",
        ),
        (
            "topology: dumbbell\nmtu: 65535\nwan: {rate: 8kbit/s}",
            'x.lab.yaml:3: wan.rate "8kbit/s": one packet of 65.573kB takes 65.573s on core: '
            "write a smaller mtu or a higher rate",
        ),
        (
            "topology: dumbbell\nwan: {buffer: 5pkt, queue: red}",
            'x.lab.yaml:2: wan.queue "red": RED needs a packet of 1.538kB ≤ min 1.281kB < max 3.845kB ≤ buffer 7.69kB: '
            "write a larger buffer, or min and max",
        ),
        (
            "topology: {dumbbell: {pairs: 2}}\naccess: {switch: ovs}\nlinks: {access-left2: {mtu: 9000}}",
            'x.lab.yaml:3: links.access-left2.mtu "9000": access-left2 has 9000 and access-left1 has 1500, and a '
            'switch between them sends no "packet too big": write the same MTU for both',
        ),
        (
            "topology: dumbbell\ncpus: {spin: [7]}",
            "x.lab.yaml:2: cpus.spin: this process may not use CPU 7: write some of 0, 1",
        ),
        (
            "topology: dumbbell\nwan: {delay: {table: none.txt}}",
            "x.lab.yaml:2: wan.delay: none.txt: No such file or directory: "
            "write a file's path relative to the description",
        ),
        (
            "topology: dumbbell\nwan: {loss: {pattern: 0012}}",
            'x.lab.yaml:2: wan.loss.pattern "0012": the pattern is not 1 to 1048576 of "0" (through) and "1" (lost): '
            'write like "0001"',
        ),
        (
            "topology: dumbbell\nwan: {loss: {markov: {p13: 60%, p31: 10%, p14: 50%}}}",
            "x.lab.yaml:2: wan.loss: p13 and p14 leave the state received with more than 100%: write smaller ones",
        ),
    ],
)
def test_refused_in_a_file(text: str, message: str, tmp_path: Path) -> None:
    assert refusal_of(text, tmp_path) == message


GRAPH = """topology:
  graph:
    hosts: [a, b]
    routers: [r, s]
    links:
      - {between: [a, r]}
      - {between: [b, s]}
      - {between: [r, s]}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[b, s]}",
            "[b, t]}",
            "x.lab.yaml:7: topology.graph.links[1].between: there is no node t: write one of a, b, r, s",
        ),
        ("[r, s]}", "[r, r]}", "x.lab.yaml:8: topology.graph.links[2].between: links r to itself: write another end"),
        (
            "      - {between: [r, s]}\n",
            "",
            "x.lab.yaml:5: topology.graph.links: no links lead from r to s: link them",
        ),
        (
            "[r, s]}",
            "[a, b]}",
            "x.lab.yaml:8: topology.graph.links[2]: links host a to host b: put a router between",
        ),
        ("[r, s]}", "[r, s], name: a}", "x.lab.yaml:2: topology.graph: a names two things: write another name for one"),
        (
            "      - {between: [r, s]}\n",
            "      - {between: [r, s]}\n      - {between: [s, r]}\n",
            "x.lab.yaml:8: topology.graph.links[2]: links r to s beside another link, and packets take that of less "
            'delay: write its "delay:"',
        ),
        (
            "[r, s]}\n",
            "[r, s], cost: 5}\n",
            'x.lab.yaml:8: topology.graph.links[2].cost "5": routes other than those of the shortest delay are written '
            'of the lab: write "routes:"',
        ),
        (
            "[r, s]}\n",
            "[r, s], forward: {mtu: 1400}}\n",
            'x.lab.yaml:8: topology.graph.links[2].forward.mtu "1400": a link has one MTU for both directions: '
            'write "mtu:" of the link',
        ),
        ("[a, b]", "[a, b, c]", "x.lab.yaml:3: topology.graph.hosts: host c has no link: link it to a router"),
        (
            "[r, s]}\n",
            "[r, s]}\n    pairs: [[a, x]]\n",
            "x.lab.yaml:9: topology.graph.pairs[0]: there is no host x: write one of a, b",
        ),
        (
            "[r, s]}\n",
            "[r, s]}\n    pairs: [[a, a]]\n",
            "x.lab.yaml:9: topology.graph.pairs[0]: pairs a with itself: write two",
        ),
    ],
)
def test_refused_in_a_graph(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in GRAPH
    assert refusal_of(GRAPH.replace(old, new), tmp_path) == message


@pytest.mark.parametrize(
    ("template", "overrides", "message"),
    [
        ("dumbell", {}, 'TOPO "dumbell": unknown topology, write "dumbbell"'),
        ("parking_lot", {}, 'TOPO "parking_lot": unknown topology, write "parking-lot"'),
        (
            "graph",
            {},
            'TOPO "graph": has no template: write the path of its description, like labs/library/graph.lab.yaml',
        ),
        ("dumbbell", {"rtt": "100"}, 'RTT "100": write a duration as "100ms"'),
        ("dumbbell", {"rtt": "-1ms"}, 'RTT "-1ms": a duration is not negative: write "1ms"'),
        ("dumbbell", {"rate": "1 Gbps/s"}, 'RATE "1 Gbps/s": write a rate as "1Gbit/s"'),
        ("dumbbell", {"pairs": "0"}, 'PAIRS "0": write a whole number from 1 to 20000, like "2"'),
        ("star", {"pairs": "2"}, 'PAIRS "2": star has no such setting, write its own: ARMS'),
        ("star", {"color": "red"}, 'COLOR "red": unknown setting, write one of name, rtt, mtu'),
        ("star", {"loss": "0.1"}, 'LOSS "0.1": write a fraction as "10%" or "0.1%"'),
        ("star", {"buffer": "100"}, 'BUFFER "100": write a buffer as "1BDP", "255pkt", "500kB" or "100ms"'),
        ("star", {"mtu": "1000"}, 'MTU "1000": IPv6 needs 1280 (RFC 8200): write at least "1280", or ip 4'),
        ("star", {"emulator": "x"}, 'EMULATOR "x": write "auto", "user", "kernel" or "tbf"'),
        ("dumbbell", {"rtt": "1ms,2ms"}, 'RTT "1ms,2ms": lists 2 RTTs for 1 pairs: write one for each pair'),
    ],
)
def test_refused_on_the_command_line(template: str, overrides: dict[str, str], message: str) -> None:
    with pytest.raises(DescriptionError) as refusal:
        compile(from_template(template, overrides), HOST)
    assert str(refusal.value).startswith(message)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"none.lab.yaml: No such file or directory: write the path"):
        load(tmp_path / "none.lab.yaml")


def test_no_cpu_to_spin_on() -> None:
    with pytest.raises(DescriptionError, match="this process may use no CPU"):
        compile(from_template("dumbbell", {}), HostFacts((), ()))


def test_a_file_names_its_lab(tmp_path: Path) -> None:
    file = tmp_path / "my-lab.lab.yaml"
    file.write_text("topology: dumbbell")
    assert load(file).description.name == "my-lab"


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "x.lab.yaml"
    file.write_text("topology: dumbbell\nrtt: 10ms\nwan: {rate: 10M, loss: {every: 10}, backward: {rate: 1M}}\n")
    spec = override(load(file), {"rate": "1G", "rtt": "50ms", "loss": "0.1%", "pairs": "3", "name": "other"})
    description = spec.description
    assert description.wan.rate == Rate(10**9)
    assert description.wan.backward is not None and description.wan.backward.rate == Rate(10**6)
    assert description.wan.loss is not None and description.wan.loss.choice == Fraction(10**6)
    assert (description.rtt, description.name) == (Duration(50_000_000), "other")
    assert description.topology.choice.pairs == 3
    with pytest.raises(DescriptionError, match=r'^RATE "x": write a rate as "1Gbit/s"$'):
        override(spec, {"rate": "x"})


def test_an_override_without_effect_is_refused(tmp_path: Path) -> None:
    text = "topology: dumbbell\nwan:\n  forward: {rate: 10M}\n  backward: {rate: 1M}\n"
    spec = load(_write(tmp_path, text))
    with pytest.raises(DescriptionError) as refusal:
        override(spec, {"rate": "1G"})
    line = f'RATE "1G": {tmp_path}/x.lab.yaml:3: both directions say their own: write it there'
    assert str(refusal.value) == line
    assert override(spec, {"loss": "1%"}).description.wan.loss is not None


def _write(folder: Path, text: str) -> Path:
    (folder / "x.lab.yaml").write_text(text)
    return folder / "x.lab.yaml"


def test_files_of_delays_and_losses_are_beside_the_description(tmp_path: Path) -> None:
    (tmp_path / "delays.txt").write_text("10ms  # usual\n\n12ms\n")
    (tmp_path / "losses.txt").write_text("0001\n0000\n")
    text = "topology: dumbbell\nwan: {delay: {table: delays.txt}, loss: {pattern: {file: losses.txt}}, reorder: true}"
    plan = compile(load(_write(tmp_path, text)), HOST)
    assert plan.links[0].forward.delay == DelayTable((10_000_000, 12_000_000))
    assert plan.links[0].forward.loss == LossPattern("00010000")
    assert plan.pairs[0].rtt_ns == 22_000_000
    (tmp_path / "delays.txt").write_text("10ms\n12\n")
    assert refusal_of(text, tmp_path).endswith('wan.delay: delays.txt:2: "12": write a duration as "12ms"')


def test_yaml_words_stay_words(tmp_path: Path) -> None:
    """`no` is a fine name for a host, though YAML 1.1 took it for false."""
    text = GRAPH.replace("[a, b]", "[no, b]").replace("[a, r]", "[no, r]")
    assert compile(load(_write(tmp_path, text)), HOST).nodes[0].name == "no"


def test_the_schema_and_the_page_know_every_key() -> None:
    page, schema = markdown(), json.dumps(json_schema())
    for word in ["topology", "gilbert-elliott", "drop-tail", "framing", "reverse_pairs", "interval", *Topology.words()]:
        assert f"`{word}`" in page
        assert f'"{word}"' in schema


def test_the_page_in_docs_is_current() -> None:
    assert (ROOT / "docs/reference/description.md").read_text() == markdown(), (
        "write labs.spec.markdown() to docs/reference/description.md"
    )
