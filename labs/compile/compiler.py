"""Description in, plan out: pure, deterministic, no I/O.

Comes in: a `Spec` and what the host already uses. Goes out: the `Plan`, in which everything is decided; defaults
are applied here and nowhere else. What cannot be built is refused with a `DescriptionError`. Each step takes what the
ones before it gave, and changes nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ewan.labs.base.garbage import uncollected
from ewan.labs.base.units import bytes_in
from ewan.labs.compile import cards, hops, machines, node_overrides, pacing, stacks, sysctls
from ewan.labs.compile.crossings import Crossings
from ewan.labs.compile.egress import Egresses
from ewan.labs.compile.facts import HostFacts
from ewan.labs.compile.numbering import number_links
from ewan.labs.compile.outline import Outline, outline
from ewan.labs.compile.placement import place
from ewan.labs.compile.routes import Daemons, Routes, daemons, routes
from ewan.labs.compile.settings import access_rate
from ewan.labs.compile.wiring import WiredNode, WiringResult, wire
from ewan.labs.link.egress import paced
from ewan.labs.plan import Containers, Node, OwnKernel, Plan
from ewan.labs.spec import Spec
from ewan.labs.spec.values import DEFAULT_KERNEL


def compile(spec: Spec, host: HostFacts) -> Plan:
    """The plan of a description; equal input gives equal plans."""
    with uncollected():
        return _compile(spec, host)


def _compile(spec: Spec, host: HostFacts) -> Plan:
    lab = outline(spec, host)
    crossings = Crossings(lab)
    packet_ns = crossings.packet_times() if host.clock == "virtual" else {}
    egresses = Egresses(spec, host.clock, lab.paths.longest_rtt_ns, packet_ns)
    numbering = number_links(lab)
    wired = wire(lab, numbering, egresses)
    found, running = routes(lab, numbering, wired), daemons(lab, numbering, wired)
    spun = [link.name for link in wired.links if link.backend == "user"]
    spinners, host_cpus = place(spec, host.cpus, spun, chosen=host.clock == "live")
    of_kinds = _sysctls(lab, wired, numbering.with_v6)
    ttl = hops.ttl_of(spec, lab.layout, lab.paths)
    description, wanted = spec.description, spec.description.containers
    virtual = host.clock == "virtual"
    of_host = cards.cards(spec, wired.wires, wired.cards, wired.external, virtual=virtual)
    backups = sysctls.of_backups(found.given, numbering.with_v6)
    nodes = [
        _node(
            machine,
            found,
            running.get(machine.name),
            of_kinds[machine.kind],
            hops.sysctls(ttl, machine, numbering) | backups.get(machine.name, {}),
        )
        for machine in wired.machines.values()
    ]
    return Plan(
        lab=description.name or description.topology.kind,
        topology=description.topology.kind,
        seed=description.seed,
        routing=description.routing,
        containers=Containers(node_overrides.managed(spec), wanted.dashboards, wanted.ovs_bridge),
        nodes=node_overrides.nodes(
            spec,
            pacing.hosts(
                spec,
                machines.hosts(spec, stacks.hosts(spec, nodes), virtual),
                {card.end for card in of_host},
                virtual=virtual,
            ),
            virtual=virtual,
        ),
        wires=tuple(wired.wires),
        links=tuple(wired.links),
        spinners=spinners,
        pairs=tuple(crossings.pair(source, sink) for source, sink in lab.layout.pairs),
        host_cpus=host_cpus,
        cards=of_host,
        hardware=tuple(wired.hardware),
        kernel=_kernel(spec, virtual=virtual),
        always_spins=not virtual and description.cpus.idle == "spin",
    )


def _kernel(spec: Spec, *, virtual: bool) -> OwnKernel | None:
    """The kernel that the description names, if it is not the default one."""
    name = spec.description.kernel
    if name is None or name == DEFAULT_KERNEL:
        return None
    if not virtual:
        raise spec.error(
            ("kernel",), "is of the virtual clock; a live lab has this machine's kernel: write --runtime virtual", name
        )
    return OwnKernel(name)


def _node(
    machine: WiredNode, found: Routes, runs: Daemons | None, of_kind: dict[str, str], of_node: dict[str, str]
) -> Node:
    """A machine with its routes and daemons as a node of the plan.

    `of_kind` are the sysctls of the node's kind; all nodes without sysctls of their own share that one object.
    `of_node` are those that depend on its interfaces.
    """
    name = machine.name
    own_sysctls = of_node if runs is None else of_node | runs.sysctls
    return Node(
        name,
        machine.kind,
        machine.all_interfaces if runs is None else runs.interfaces,
        tuple(found.given.get(name, ())),
        of_kind | own_sysctls if own_sysctls else of_kind,
        machine.services if runs is None else (*runs.services, *machine.services),
        tuple(found.learned.get(name, ())),
        stack=None,
        machine=None,
    )


def _sysctls(lab: Outline, wired: WiringResult, with_v6: bool) -> Mapping[str, dict[str, str]]:
    """By kind of node: socket buffers hold twice what the longest path and the largest queue hold."""
    rate, queue = 0, 0
    for link in wired.links:
        for way in (link.forward, link.backward):
            rate = max(rate, way.rate_bps) if link.role == "wan" else rate
            waiting = way.queue.limit_bytes or (way.queue.limit_packets or 0) * way.framing.minimum_bytes
            queue = max(queue, waiting)
    ports = (port for name in lab.layout.switches for port in wired.machines[name].interfaces)
    queue = max([queue, *(card.limit_bytes for port in ports if (card := paced(port.egress)) is not None)])
    for network in lab.networks:
        card = paced(wired.machines[network.switch].interfaces[0].egress)
        queue = max(queue, card.limit_bytes) if card is not None else queue
    rate = rate or access_rate(lab.layout.edges, lab.links).bps
    return sysctls.of_nodes(bytes_in(rate, lab.paths.longest_rtt_ns), queue, with_v6)
