from __future__ import annotations

import os
import shlex
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ewan.labs.base.codec import replace
from ewan.labs.commands.compile import compile_command
from ewan.labs.compile import HostFacts, compile
from ewan.labs.context import Context
from ewan.labs.plan import Containers, Plan, Service, digest, from_json, to_json
from ewan.labs.render import containerlab, files
from ewan.labs.spec import from_template, load, parse

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden"
LIBRARY = sorted((Path(__file__).resolve().parents[1] / "library").glob("*.lab.yaml"))
HOST = HostFacts((0, 1, 2), ())
VERSION = "1.2.3"


def rendered(plan: Plan, directory: str = "here") -> dict[str, Any]:
    document = yaml.safe_load(containerlab.render(plan, directory=directory, version=VERSION))
    assert isinstance(document, dict)
    return document


def dumbbell(**overrides: str) -> Plan:
    return compile(from_template("dumbbell", overrides), HOST)


def switched(plan: Plan, router: str, **containers: bool) -> Plan:
    """The plan with a switch in a router's place."""
    nodes = tuple(replace(n, kind="switch") if n.name == router else n for n in plan.nodes)
    return replace(plan, nodes=nodes, containers=Containers(**containers))


def golden() -> str:
    plan = from_json((GOLDEN / "dumbbell.plan.json").read_bytes())
    return containerlab.render(plan, directory=plan.lab, version=VERSION)


def test_the_golden_file() -> None:
    """`python -m ewan.labs.tests.test_containerlab` writes it anew, after the golden plans."""
    assert golden() == (GOLDEN / "dumbbell.clab.yml").read_text()


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: file.name)
def test_the_file_has_every_node_and_every_wire_of_the_plan(file: Path) -> None:
    plan = compile(load(file), HOST)
    document = rendered(plan)
    nodes, links = document["topology"]["nodes"], document["topology"]["links"]
    assert list(nodes)[: len(plan.nodes)] == [node.name for node in plan.nodes]
    for node in plan.nodes:
        assert nodes[node.name]["image"] == f"ewan/{node.kind}:{VERSION}"
        command = shlex.split(nodes[node.name]["entrypoint"])
        assert command[1:] == ["container", "--lab", "/lab", "--node", node.name]
    assert [(link["endpoints"], link["mtu"]) for link in links] == [
        ([f"{end.node}:{end.interface}" for end in (wire.a, wire.b)], plan.nodes[0].interfaces[0].mtu)
        for wire in plan.wires
    ]
    assert (document["name"], document["prefix"]) == (plan.lab, "ewan")


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: file.name)
def test_nothing_in_the_file_is_expanded_by_containerlab(file: Path) -> None:
    """It takes the whole text for a template and then for one with environment variables, comments too."""
    text = containerlab.render(compile(load(file), HOST), directory="here", version=VERSION)
    assert "$" not in text and "{{" not in text


def test_equal_plans_give_equal_files_that_name_the_plan() -> None:
    plan = dumbbell()
    text = containerlab.render(plan, directory="here", version=VERSION)
    assert text == containerlab.render(from_json(to_json(plan)), directory="here", version=VERSION)
    assert yaml.safe_load(text)["topology"]["defaults"]["labels"]["ewan.plan"] == digest(plan)


def test_a_link_that_spins_has_its_cpu_and_everything_else_the_hosts() -> None:
    plan = dumbbell()
    sets = {name: node["cpu-set"] for name, node in rendered(plan)["topology"]["nodes"].items()}
    # The emulator's other threads stay where everything else is: the spinner alone goes to its CPU.
    assert sets == {"left1": "0,1", "right1": "0,1", "r1": "0,1", "r2": "0,1", "core": "0,1,2"}
    by_kernel = compile(from_template("dumbbell", {"emulator": "kernel"}), HOST)
    assert rendered(by_kernel)["topology"]["nodes"]["core"]["cpu-set"] == ",".join(map(str, by_kernel.host_cpus))


def test_emulators_are_told_how_their_spinner_shares_its_cpu() -> None:
    text = containerlab.render(dumbbell(), directory="here", version=VERSION, scheduling="shared")
    nodes = yaml.safe_load(text)["topology"]["nodes"]
    assert {name: node["env"] for name, node in nodes.items() if "env" in node} == {"core": {"EWAN_SCHED": "shared"}}


def test_one_host_waits_for_all_nodes_and_no_node_for_another() -> None:
    """A node that waits for one that cannot be made would keep containerlab for ever."""
    nodes = rendered(dumbbell())["topology"]["nodes"]
    assert [name for name, node in nodes.items() if "exec" in node] == ["right1"]
    assert nodes["right1"]["exec"] == ["/usr/local/bin/ewan-node ready --lab /lab --node right1 --patience-s 60"]
    assert "stages" not in str(nodes)
    alone = containerlab.render(dumbbell(), directory="here", version=VERSION, wait=False)
    assert "ready" not in yaml.safe_dump(yaml.safe_load(alone))


def test_without_a_management_network_a_node_has_the_labs_interfaces_only() -> None:
    document = rendered(dumbbell())
    assert document["mgmt"] == {"network": "bridge"}  # the engine's own, so that none is created
    assert document["topology"]["defaults"]["network-mode"] == "none"


def test_with_a_management_network_the_labs_interfaces_begin_at_eth1() -> None:
    plan = compile(parse("topology: dumbbell\ncontainers: {management: true}", Path("m.lab.yaml")), HOST)
    document = rendered(plan)
    assert document["mgmt"]["network"] == "ewan-m"
    assert len(document["mgmt"]["bridge"]) <= 15, "an interface of the host"
    assert "network-mode" not in document["topology"]["defaults"]
    ends = [end for link in document["topology"]["links"] for end in link["endpoints"]]
    assert min(ends).partition(":")[2] == "eth1"
    assert not any(end.endswith(":eth0") for end in ends)


def test_a_node_whose_name_is_containerlabs_own_word_stays_a_node() -> None:
    links = "[{between: [host, r]}, {between: [r, s]}, {between: [s, b]}]"
    text = f"topology: {{graph: {{hosts: [host, b], routers: [r, s], links: {links}}}}}"
    document = rendered(compile(parse(text, Path("w.lab.yaml")), HOST))
    of_host = [link for link in document["topology"]["links"] if "host" in str(link)]
    assert of_host and all(link["type"] == "veth" for link in of_host)
    assert {"node": "host", "interface": "eth0"} in of_host[0]["endpoints"]


def test_a_switch_is_a_container_unless_the_hosts_bridges_are_wanted() -> None:
    assert rendered(switched(dumbbell(), "r1"))["topology"]["nodes"]["r1"]["image"] == f"ewan/switch:{VERSION}"
    document = rendered(switched(dumbbell(), "r1", ovs_bridge=True))
    assert document["topology"]["nodes"]["r1"] == {"kind": "ovs-bridge"}
    ends = [end for link in document["topology"]["links"] for end in link["endpoints"] if end.startswith("r1:")]
    assert ends == ["r1:r1-0", "r1:r1-1"]


def test_a_bridges_ports_are_short_and_no_others() -> None:
    plan = dumbbell()
    names = [containerlab.bridge_port(plan, f"sw-{'long-' * 5}{n}", f"eth{k}") for n in range(30) for k in range(30)]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 15
    other = replace(plan, lab="other")
    assert containerlab.bridge_port(other, "sw-long-long-long", "eth0") != containerlab.bridge_port(
        plan, "sw-long-long-long", "eth0"
    )


def test_the_bridges_script_says_what_ports_hold(tmp_path: Path) -> None:
    plan = switched(dumbbell(), "r1", ovs_bridge=True)
    log = tmp_path / "log"
    for tool in ("ovs-vsctl", "tc", "ip"):
        stub = tmp_path / tool
        stub.write_text(f'#!/bin/sh\necho "{tool} $*" >>{log}\n')
        stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
    script = files.of_lab(plan)[containerlab.BRIDGES]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-s", *words], input=script, text=True, capture_output=True, env=path, check=False, timeout=20
        )

    assert [run(word).returncode for word in ("add", "limit", "remove")] == [0, 0, 0]
    done = log.read_text()
    assert "ovs-vsctl --may-exist add-br r1" in done and "ovs-vsctl --if-exists del-br r1" in done
    assert "tc qdisc replace dev r1-1 root stab overhead 24 tbf rate 10000000000bit burst" in done
    assert run().returncode == 2 and "write one of: add, limit, remove" in run().stderr


def test_the_labs_directory_has_names_and_configuration_to_read(tmp_path: Path) -> None:
    plan = dumbbell()
    zebra = Service("zebra", "daemon", ("zebra", "-f", "{run}/zebra.conf"), {"zebra.conf": "log file {run}/z\n"}, None)
    nodes = tuple(replace(n, services=(zebra,)) if n.name == "r1" else n for n in plan.nodes)
    files.lay_out(replace(plan, nodes=nodes), tmp_path)
    assert (tmp_path / "nodes/r1/zebra.conf").read_text() == "log file /lab/nodes/r1/z\n"
    assert {path.name for path in (tmp_path / "nodes").iterdir()} == {node.name for node in plan.nodes}
    lines = (tmp_path / "hosts").read_text().splitlines()
    first = {node.name: [address.split("/")[0] for address in node.interfaces[0].addresses] for node in plan.nodes}
    assert [line for line in lines if line.endswith(" left1")] == [f"{address} left1" for address in first["left1"]]
    assert not any(line.endswith(" core") for line in lines)


def test_the_hosts_file_is_the_one_that_nodes_write() -> None:
    golden = Path(__file__).resolve().parents[2] / "tests/golden"
    plan = from_json((golden / "dumbbell.plan.json").read_bytes())
    assert files.hosts(plan) == (golden / "dumbbell.hosts").read_text()


def written(plan: Plan, output: Path) -> dict[str, Path]:
    return files.written(plan, output, sheet="a table", version=VERSION)


def test_compiling_again_replaces_what_is_the_labs_own_and_nothing_else(tmp_path: Path) -> None:
    made = written(dumbbell(pairs="2"), tmp_path)
    lab = made["directory"]
    for own in ("nodes/left1/zebra.log", "spinner-0.log", "changes.jsonl"):
        (lab / own).write_text("of an earlier deployment")
    for foreign in (lab / "notes.txt", tmp_path / "notes.txt", tmp_path / "other.clab.yml"):
        foreign.write_text("mine")
    written(dumbbell(), tmp_path)
    assert {path.name for path in (lab / "nodes").iterdir()} == {"left1", "right1", "r1", "r2", "core"}
    assert not (lab / "nodes/left1/zebra.log").exists() and not list(lab.glob("spinner-*"))
    assert [path.read_text() for path in (lab / "notes.txt", tmp_path / "other.clab.yml")] == ["mine", "mine"]
    assert from_json((lab / "plan.json").read_bytes()) == dumbbell()


def test_a_directory_of_somebody_elses_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "dumbbell/nodes").mkdir(parents=True)
    (tmp_path / "dumbbell/nodes/thesis.tex").write_text("mine")
    with pytest.raises(OSError, match="is not the directory of a lab dumbbell"):
        written(dumbbell(), tmp_path)
    assert (tmp_path / "dumbbell/nodes/thesis.tex").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["dumbbell"]


def test_a_lab_that_is_up_keeps_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / ("deep/" * 30)  # a path too long for a socket's address
    lab = written(dumbbell(), output)["directory"]
    monkeypatch.chdir(lab)
    with socket.socket(socket.AF_UNIX) as spinner:
        spinner.bind("spinner-0.sock")
        spinner.listen()
        with pytest.raises(OSError, match="in use by a lab that is up"):
            written(dumbbell(), output)
    written(dumbbell(), output)  # its socket is left, but nobody answers


def test_a_plan_of_the_virtual_clock_has_no_containers(tmp_path: Path) -> None:
    made = files.written(dumbbell(), tmp_path, sheet="", version=VERSION, live=False)
    assert sorted(made) == ["picture", "plan", "table"]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in made.values()}


def test_dashboards_are_beside_the_nodes_and_wired_to_none() -> None:
    plan = compile(parse("topology: dumbbell\ncontainers: {dashboards: true}", Path("d.lab.yaml")), HOST)
    document = rendered(plan)
    extra = document["topology"]["nodes"].keys() - {node.name for node in plan.nodes}
    assert extra == {"prometheus", "grafana"}
    assert not any(end.split(":")[0] in extra for link in document["topology"]["links"] for end in link["endpoints"])
    assert "network-mode" not in document["topology"]["defaults"]
    assert "dashboards/prometheus.yml" in files.of_lab(plan)


def test_the_command_leaves_a_table_that_says_something(tmp_path: Path) -> None:
    done = CliRunner().invoke(compile_command, ["dumbbell", "--rtt", "100ms", "-o", str(tmp_path)], obj=Context.of({}))
    assert done.exit_code == 0, done.output
    assert "core           r1 ↔ r2" in (tmp_path / "dumbbell.txt").read_text()


if __name__ == "__main__":
    (GOLDEN / "dumbbell.clab.yml").write_text(golden())
