"""A plan as a containerlab topology file (NAME.clab.yml) that brings the lab up by itself.

Comes in: a plan, the lab's directory as the file will name it, the version of the images. Goes out: YAML that is valid
against containerlab's own schema, equal for equal plans. Every node starts `ewan-node container`, which gives it what
the plan says; the file holds only what the engine must know: images, CPUs, wires.
"""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

import yaml

from ewan.labs.base.codec import JsonValue
from ewan.labs.base.units import Duration, Rate
from ewan.labs.link import Bare, Fifo, Psp, Sources, Tbf
from ewan.labs.node_overrides import NodeOverrides, PublishedPort
from ewan.labs.plan import Interface, Node, Plan, digest
from ewan.labs.render import dashboards
from ewan.labs.render.dashboards import ContainerNode

PREFIX = "ewan"
ENTRY = "/usr/local/bin/ewan-node"
LAB = "/lab"
"""The path of the lab's directory in every container."""
BRIDGES = "bridges.sh"
"""In the lab's directory, where switches are bridges of the host."""
PATIENCE_S = 60
LONGEST_INTERFACE = 15
MANY_PAIRS = 8
# In a link's short form containerlab takes these for special ends, so nodes of these names need the long form.
_SPECIAL = ("macvlan", "veth", "mgmt-net", "host", "brief", "vxlan", "vxlan-stitch", "dummy")


class _Flow(list[JsonValue]):
    """A list that is written on one line."""


class _Inline(dict[str, str]):
    """A mapping that is written on one line."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(
    _Flow, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)
_Dumper.add_representer(
    _Inline, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)
)


@dataclass(frozen=True, slots=True)
class ImageProgram:
    """The program that the image of a node runs, its user and its directory (OCI: Entrypoint with Cmd, User,
    WorkingDir).

    `image`: the engine's name of the image, if it differs from the plan's.
    """

    words: tuple[str, ...]
    user: str = ""
    directory: str = ""
    image: str = ""


def render(
    plan: Plan,
    *,
    directory: str,
    version: str,
    ports: dashboards.Ports = dashboards.PORTS,
    wait: bool = True,
    scheduling: str = "",
    binary: str = "",
    programs: Mapping[str, ImageProgram] | None = None,
) -> str:
    """The topology file.

    directory: the lab's, relative to the file; version: the tag of the images; ports: of the dashboards, on this
    machine; wait: whether a deployment lasts until all nodes are ready, else whoever deploys sees to that; scheduling:
    EWAN_SCHED of the emulators, where it is set; binary: the node binary, relative to the file or absolute, for nodes
    of images of one's own; programs: what runs in nodes whose images say it, of the others what the plan says.
    """
    known = programs or {}
    nodes = {node.name: _node(plan, node, version) for node in plan.nodes}
    for node in plan.nodes:
        if node.own is not None and not is_bridge(plan, node):
            nodes[node.name] |= _own(node.own, nodes[node.name]["entrypoint"], binary, known.get(node.name), wait)
    for node in plan.nodes if scheduling else ():
        if node.kind == "emulator":
            nodes[node.name].setdefault("env", {})["EWAN_SCHED"] = scheduling
    if wait:
        # Nothing else waits for this node, which takes one of containerlab's workers meanwhile, and gives up in time.
        last = _last(plan).name
        nodes[last]["exec"] = [f"{ENTRY} ready --lab {LAB} --node {last} --patience-s {PATIENCE_S}"]
    nodes |= dashboards.nodes(plan, version=version, ports=ports)
    document = {
        "name": plan.lab,
        "prefix": PREFIX,
        "mgmt": _management(plan),
        "topology": {"defaults": _defaults(plan, directory), "nodes": nodes, "links": _links(plan)},
    }
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
    return _header(plan, directory, version, nodes, ports) + str(text)


def image(kind: str, version: str) -> str:
    """The image of nodes of a kind; labs/images.py builds them under these names."""
    return f"{PREFIX}/{kind}:{version}"


def needs_binary(plan: Plan) -> bool:
    """Return whether a node is of an image that has no node binary of ours."""
    return any(node.own is not None and node.own.image is not None for node in plan.nodes)


def is_bridge(plan: Plan, node: Node) -> bool:
    """Return whether a node is no container but a bridge of the host's Open vSwitch."""
    return plan.containers.ovs_bridge and node.kind == "switch"


def bridge_port(plan: Plan, node: str, interface: str) -> str:
    """The name of a bridge's port: it is an interface of the host, so it must be short, and no other's."""
    name = f"{node}-{interface.removeprefix('eth')}"
    if len(name) <= LONGEST_INTERFACE:
        return name
    return _short(plan.lab, node, interface)


def _short(*parts: str) -> str:
    """A name that an interface of the host may have, and hardly any other has."""
    return PREFIX + hashlib.sha256("/".join(parts).encode()).hexdigest()[:10]


def bridges_script(plan: Plan) -> str:
    """The manual steps if switches are the host's bridges, as a shell script."""
    switches = [node for node in plan.nodes if is_bridge(plan, node)]
    mark = f"external_ids:{PREFIX}={plan.lab}"
    add, limit, remove = [], [], []
    for node in switches:
        add += [f"ovs-vsctl --may-exist add-br {node.name}", f"ip link set {node.name} up"]
        for port in node.interfaces:
            limit += _limit(bridge_port(plan, node.name, port.name), port, mark)
        remove += [f"ovs-vsctl --if-exists del-br {node.name}"]
    remove += [f"ovs-vsctl --bare --columns=_uuid find QoS {mark} | xargs -r -n 1 ovs-vsctl destroy QoS"]
    cases = (("add", add), ("limit", limit or [":"]), ("remove", remove))
    body = "".join(f"{word})\n" + "".join(f"    {line}\n" for line in lines) + "    ;;\n" for word, lines in cases)
    return (
        "#!/bin/sh\n"
        f"# Bridges of the host's Open vSwitch for the lab {plan.lab}, as root:\n"
        f"#   sh {BRIDGES} add      before containerlab deploy: the bridges\n"
        f"#   sh {BRIDGES} limit    after it: rates and queues of their ports\n"
        f"#   sh {BRIDGES} remove   after containerlab destroy\n"
        "# containerlab takes bridges of the kernel's datapath only (module openvswitch).\n"
        'set -eu\ncase "${1-}" in\n'
        f"{body}"
        f'*)\n    echo "write one of: add, limit, remove" >&2\n    exit 2\n    ;;\nesac\n'
    )


def _limit(port: str, interface: Interface, mark: str) -> list[str]:
    """The root queueing discipline of a bridge's port in tc's words, as the node binary sets it elsewhere."""
    egress = interface.egress
    # Open vSwitch takes a discipline that it does not know of away, unless this option keeps it.
    keep = f"ovs-vsctl --id=@keep create QoS type=linux-noop {mark} -- set port {port} qos=@keep"
    root = f"tc qdisc replace dev {port} root"
    match egress:
        case Tbf():
            stab = f" stab overhead {egress.overhead_bytes}" if egress.overhead_bytes else ""
            numbers = f"rate {egress.rate_bps}bit burst {egress.burst_bytes} limit {egress.limit_bytes}"
            return [keep, f"{root}{stab} tbf {numbers}"]
        case Fifo(limit_packets):
            return [keep, f"{root} pfifo limit {limit_packets}"]
        case Bare() | Psp() | Sources():  # psp is of the virtual clock, which has no containers; sources are hosts
            return []
        case _:
            assert_never(egress)


def _management(plan: Plan) -> dict[str, str]:
    """Without a management network no node is in any: the engine's own name makes containerlab create none."""
    if not plan.containers.management:
        return {"network": "bridge"}
    return {"network": f"{PREFIX}-{plan.lab}", "bridge": _short(plan.lab, "management"), "ipv4-subnet": "auto"}


def _defaults(plan: Plan, directory: str) -> dict[str, JsonValue]:
    defaults: dict[str, JsonValue] = {
        "kind": "linux",
        "restart-policy": "no",
        "image-pull-policy": "never",
        "binds": _Flow([f"{directory}:{LAB}"]),
        "labels": {"ewan.lab": plan.lab, "ewan.plan": digest(plan)},
    }
    return defaults if plan.containers.management else defaults | {"network-mode": "none"}


def _node(plan: Plan, node: Node, version: str) -> ContainerNode:
    if is_bridge(plan, node):
        return {"kind": "ovs-bridge"}
    return {
        "image": image(node.kind, version),
        "entrypoint": f"{ENTRY} container --lab {LAB} --node {node.name}",
        "cpu-set": ",".join(str(cpu) for cpu in _cpus(plan, node.name)),
        "labels": {"ewan.kind": node.kind},
    }


def _own(own: NodeOverrides, entry: str, binary: str, program: ImageProgram | None, commands: bool) -> ContainerNode:
    """containerlab's own keys. An image of one's own needs nothing of ours: the node binary is bound into it, and is
    the entrypoint, which makes the node and then starts what the image itself would have run.

    commands: whether the entrypoint runs the node's commands. containerlab's `exec` would run them when the node is
    there, which may be before its links are.
    """
    keys: ContainerNode = {}
    binds = [f"{bind.source}:{bind.target}{':ro' if bind.read_only else ''}" for bind in own.binds]
    program = program or ImageProgram((*own.entrypoint, *own.cmd))
    if own.image is not None:
        keys |= {"image": program.image or own.image, "user": "0"}
        binds = [f"{binary}:{ENTRY}:ro", *binds]
    if commands and own.exec:
        entry = keys["entrypoint"] = f"{entry} --commands"
    if program.words:
        as_whom = [f"--user={program.user}"] if program.user else []
        where = [f"--directory={program.directory}"] if program.directory else []
        keys["entrypoint"] = _escaped(f"{entry} {shlex.join([*as_whom, *where, '--', *program.words])}")
    if binds:
        keys["binds"] = binds
    if own.ports:
        keys["ports"] = [_published(port) for port in own.ports]
    if own.env:
        keys["env"] = {name: _escaped(value) for name, value in own.env.items()}
    return keys


def _published(port: PublishedPort) -> str:
    address = f"[{port.address}]" if ":" in port.address else port.address
    return f"{address}:{port.port}:{port.node_port}/{port.protocol}"


def _escaped(text: str) -> str:
    """As containerlab reads it back: it takes a topology file for a template, and then expands variables in it."""
    return text.replace("$", "$$").replace("{{", "{{ `{{` }}")


def _last(plan: Plan) -> Node:
    """The node that waits until all are ready, so that `deploy` ends when the lab can be used."""
    return [node for node in plan.nodes if node.kind == "host"][-1]


def _cpus(plan: Plan, name: str) -> list[int]:
    """The hosts' CPUs; an emulator has its spinner's too, to which nothing but the spinner's own thread keeps."""
    emulated = next((link.name for link in plan.links if link.node == name), None)
    spinning = {spinner.cpu for spinner in plan.spinners if emulated in spinner.links}
    return sorted(spinning.union(plan.host_cpus))


def _links(plan: Plan) -> list[dict[str, JsonValue]]:
    nodes = {node.name: node for node in plan.nodes}
    mtus = {(node.name, port.name): port.mtu for node in plan.nodes for port in node.interfaces}
    links: list[dict[str, JsonValue]] = []
    for wire in plan.wires:
        ends = []
        for end in (wire.a, wire.b):
            bridge = is_bridge(plan, nodes[end.node])
            ends.append((end.node, bridge_port(plan, end.node, end.interface) if bridge else end.interface))
        mtu = mtus[wire.a.node, wire.a.interface]
        if any(node in _SPECIAL for node, _ in ends):
            endpoints: list[JsonValue] = [_Inline({"node": node, "interface": interface}) for node, interface in ends]
            links.append({"type": "veth", "endpoints": _Flow(endpoints), "mtu": mtu})
        else:
            links.append({"endpoints": _Flow(f"{node}:{interface}" for node, interface in ends), "mtu": mtu})
    for tunnel in plan.tunnels:
        far = _Inline({"node": tunnel.end.node, "interface": tunnel.end.interface})
        where: dict[str, JsonValue] = {"remote": tunnel.remote, "vni": tunnel.vni, "udp-port": tunnel.port}
        links.append({"type": "vxlan", "endpoint": far, **where, "mtu": mtus[tunnel.end.node, tunnel.end.interface]})
    return links


def _header(
    plan: Plan, directory: str, version: str, nodes: Mapping[str, ContainerNode], ports: dashboards.Ports
) -> str:
    """The purpose of the file, its use and its requirements, as comments. It contains no $ and no {{: containerlab
    expands both."""
    kinds = Counter(node.kind for node in plan.nodes)
    plural = {"switch": "switches"}
    counted = ", ".join(
        f"{number} {kind if number == 1 else plural.get(kind, f'{kind}s')}" for kind, number in kinds.items()
    )
    images = sorted({node["image"] for node in nodes.values() if "image" in node})
    file, host = f"{plan.lab}.clab.yml", _last(plan).name
    lines = [
        f"{plan.lab}: {counted}, as containers; routes: {plan.routing}.",
        f"Written by `ewan lab compile` {version}; plan {digest(plan)[:12]}, which is {directory}/plan.json.",
        "",
        f"  containerlab deploy -t {file}                as root; done when every node is ready",
        f"  docker exec -it {PREFIX}-{plan.lab}-{host} bash",
        f"  containerlab destroy -t {file} --cleanup",
        "",
        f"Images: {', '.join(images)}",
        "  (`make images` builds them; `docker save` and `docker load` take them to another machine).",
        f"Files: {directory}/ is bound at {LAB} in every node and moves with this file.",
    ]
    if plan.links:
        lines.append(
            f"Links change by `ewan lab adopt {file}`, then `ewan lab set {plan.links[0].name} delay=80ms`; not by "
            "`containerlab tools netem`, whose place other queues have."
        )
    emulators = sorted({spinner.cpu for spinner in plan.spinners})
    if emulators:
        lines.append(
            f"CPUs: links spin on {_listed(emulators)}, everything else runs on {_listed(plan.host_cpus)}; for a "
            "machine with others, compile there."
        )
    if any(is_bridge(plan, node) for node in plan.nodes):
        script = f"{directory}/{BRIDGES}"
        lines.append(f"Switches are bridges of the host's Open vSwitch: sh {script} add, deploy, sh {script} limit.")
    if plan.containers.dashboards:
        lines.append(
            f"Dashboards: Grafana at http://127.0.0.1:{ports.grafana}, Prometheus at http://127.0.0.1:{ports.prometheus}."
        )
    for pair in plan.pairs[:MANY_PAIRS]:
        rtt, rate = Duration(pair.rtt_ns), Rate(pair.bottleneck_bps)
        lines.append(f"Base RTT {pair.source} - {pair.sink}: {rtt}, at {rate}.")
    if len(plan.pairs) > MANY_PAIRS:
        lines.append(f"... and {len(plan.pairs) - MANY_PAIRS} more pairs.")
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _listed(cpus: tuple[int, ...] | list[int]) -> str:
    return ("CPU " if len(cpus) == 1 else "CPUs ") + ", ".join(str(cpu) for cpu in cpus)
