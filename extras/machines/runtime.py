"""The live runtime over several machines: each has a share of the lab, as namespaces, and wires to others are tunnels.

In: plans, and the machines. Out: labs. Here, where the user types, nothing is made but the lab's state directory, whose
manifest names the machines before anything is made on them. On a machine only the node binary is needed, which is sent;
everything goes through SSH, so that nothing listens there but the tunnels' UDP port. A share's state is below SHARES.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ewan.extras.machines import deployment, inventory, needs, shares, tunnels
from ewan.extras.machines.facts import ClusterMachineFacts
from ewan.extras.machines.file import Cluster, ClusterMachine
from ewan.extras.machines.joint_probes import JointProbes
from ewan.extras.machines.joint_runs import JointRuns
from ewan.extras.machines.placement import place
from ewan.extras.machines.programs import NodePlaces
from ewan.extras.machines.queries import SHARES, Relays
from ewan.extras.machines.reading import load
from ewan.extras.machines.records import ClusterLabRecord
from ewan.extras.machines.routes import ClusterRoutes
from ewan.extras.machines.samples import JointSamples, asking
from ewan.labs import plan as plans
from ewan.labs import trust
from ewan.labs.base import codec
from ewan.labs.base.interrupt import deferred
from ewan.labs.base.product import DEFAULT_ROOT
from ewan.labs.compile.facts import HostFacts
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.render.files import hosts as hosts_file
from ewan.labs.routing_documents import Convergence, Recovery, RoutingTable
from ewan.labs.runtime import node_overrides
from ewan.labs.runtime.answers import NodeStatus, Removed, Status
from ewan.labs.runtime.base import Answer, LabError, OpenCapture, RemoteMachine, Seen
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.inspections import Inspection
from ewan.labs.runtime.multi_machine import MachineNeeds, MissingPrograms
from ewan.labs.runtime.namespaces import NAMESPACES
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.probe_documents import Probe, ProbeAnswer
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.requests import LinkRequest, LinkSetRequest
from ewan.labs.runtime.state_documents import APPLIED, DOWN, MANIFEST, AppliedPlan, LinksDown

if TYPE_CHECKING:
    from ewan.extras.machines.ssh import Fleet
    from ewan.labs.capture.words import CaptureRequest

Show = Callable[[str], None]


class PreparedLab(NamedTuple):
    """A lab that could be made."""

    fleet: Fleet
    shares: shares.Shares
    record: ClusterLabRecord
    warnings: tuple[str, ...]

    @property
    def machine_of(self) -> Mapping[str, str]:
        """The machine of each node."""
        return self.record.machine_of

    @property
    def whole(self) -> Plan:
        """The plan of the lab, with the spinners of all machines."""
        return self.shares.whole

    @property
    def plans(self) -> Mapping[str, Plan]:
        """The share of each machine."""
        return self.shares.of


class ClusterRuntime(NetnsRuntime):
    """See `ewan.labs.runtime.base.LiveClockRuntime`. `cluster`: of new labs; those that are up know theirs."""

    def __init__(
        self,
        binary: Path | None = None,
        state: Path = DEFAULT_ROOT,
        cluster: Cluster | None = None,
        *,
        scheduling: str = "",
        connect_s: float | None = None,
        show: Show = lambda progress: None,
    ) -> None:
        super().__init__(binary, state)
        self._cluster = cluster
        self._scheduling = scheduling
        self._connect_s = connect_s
        self._show = show
        self._fleets: dict[tuple[ClusterMachine, ...], Fleet] = {}
        self._facts: dict[str, ClusterMachineFacts] = {}
        self._relays: dict[str, Relays] = {}

    # Of new labs

    def host_facts(self) -> HostFacts:
        """The facts that the compiler needs about the machines together: the networks of all of them are in use."""
        found = self._ask_facts()
        first = next(iter(found.values()))
        return HostFacts(
            cpus=first.cpus,
            networks=tuple(sorted({network for each in found.values() for network in each.networks})),
            datapath="system" if all(each.vswitch for each in found.values()) else "netdev",
        )

    def where(self, plan: Plan) -> NodePlaces:
        """The places that the nodes of a lab would get that is not made yet."""
        found, cluster = self._ask_facts(), self._known()
        placed = place(plan, {name: len(each.cpus) for name, each in found.items()}, cluster.placement)
        cpus = {name: each.cpus for name, each in found.items() if placed.nodes_on(name)}
        return NodePlaces(plan, placed.machine_of, shares.stretched(plan, placed), cpus)

    def lacking(self, wanted: MachineNeeds, searched: str) -> dict[str, MissingPrograms]:
        """The programs and congestion controls that the machines lack for the runs."""
        cluster = self._known()
        return needs.lacking(self._fleet(cluster.machines, cluster.ssh_config), wanted, searched)

    def prepare(self, plan: Plan) -> PreparedLab:
        """The lab that would be made: machines are asked, tunnels measured; only the node binary stays on them."""
        cluster, binary = self._known(), node_binary(self._wanted)
        needs.check_possible(plan)
        found = self._ask_facts()
        where = place(plan, {name: len(each.cpus) for name, each in found.items()}, cluster.placement)
        fleet = self._fleet(cluster.machines, cluster.ssh_config)
        used = [machine.name for machine in cluster.machines if where.nodes_on(machine.name)]
        sent = deployment.send(fleet, used, binary, self._show)
        crossing = shares.stretched(plan, where)
        measured = deployment.measure(fleet, sent, found, plan, crossing, self._show)
        warnings = tunnels.check(plan, crossing, measured)
        gives = [shares.ShareHost(name, found[name].cpus, found[name].address) for name in used]
        split = shares.split(plan, where, gives, secrets.randbelow(shares.VNIS), tunnels.taken_ns(measured))
        record = ClusterLabRecord(
            id=secrets.token_hex(16),
            lab=plan.lab,
            machines=tuple(machine for machine in cluster.machines if machine.name in used),
            ssh_config=None if cluster.ssh_config is None else str(cluster.ssh_config),
            binary=sent,
            machine_of=dict(where.machine_of),
            first_spinner=dict(split.first_spinner),
            stretched=split.stretched,
            tunnels=tuple(measured),
            addresses={name: found[name].address for name in used},
            host_cpus={name: share.host_cpus for name, share in split.of.items()},
        )
        return PreparedLab(fleet, split, record, tuple(warnings))

    def up(self, plan: Plan) -> list[str]:
        """The machines' facts, the tunnels between them, then each machine's share, side by side."""
        fleet, split, record, said = self.prepare(plan)
        warnings, sent = list(said), record.binary
        with self._state.locked(), deferred() as check:
            self._check_new(plan.lab)
            deployment.check_absent(fleet, list(split.of), plan.lab)
            self._write(plan.lab, split.whole, record)
            try:
                hosts = hosts_file(split.whole)
                warnings += deployment.make(fleet, sent, split, hosts, self._scheduling, check, self._show)
                self._show("running the nodes' commands")
                enter = deployment.attempt(fleet, record, plan.lab, node_overrides.LONGEST_S, check)
                node_overrides.run_by(split.whole, self._state.directory(plan.lab), enter)
                self._state.write(plan.lab, APPLIED, AppliedPlan(dict.fromkeys(warnings, 1)))
                return warnings
            except BaseException as error:
                left = self._take_down(fleet, plan.lab, record)
                if isinstance(error, LabError) and left:
                    raise LabError(f"{error}; {_left(plan.lab, left)}") from None
                raise

    # Of labs that are up

    def down(self, name: str) -> Removed:
        """Each machine removes its share; one that cannot be reached keeps it, and is named until it was reached."""
        with self._state.locked(), deferred():
            record = self._record(name)
            if record is None:
                shutil.rmtree(self._state.directory(name), ignore_errors=True)
                return _together(name, ())
            fleet = self._fleet(record.machines, record.config, missing=True)
            removed: list[Removed] = []
            left = self._take_down(fleet, name, record, removed)
        if left:
            raise LabError(_left(name, left))
        return _together(name, removed)

    def _take_down(
        self, fleet: Fleet, lab: str, record: ClusterLabRecord, removed: list[Removed] | None = None
    ) -> dict[str, LabError]:
        """The machines that could not remove their shares; the lab's own record goes with the last one."""
        relays = self._relays.pop(lab, None)
        if relays is not None:
            relays.close()
        results = deployment.remove(fleet, record.binary, lab, [machine.name for machine in record.machines])
        left = {name: told for name, told in results.items() if isinstance(told, LabError)}
        for told in results.values():
            if removed is not None and not isinstance(told, LabError):
                removed.append(told)
        if not left:
            shutil.rmtree(self._state.directory(lab), ignore_errors=True)
        return left

    def exec(self, name: str, node: str, argv: Sequence[str]) -> int:
        """Execute a program on the node's machine, on this terminal."""
        record = self.record(name)
        machine = record.machine_of.get(node)
        if machine is None:
            known = ", ".join(list(record.machine_of)[:10])
            raise LabError(f"lab {name} has no node {node}; it has {known}")
        fleet = self._fleet(record.machines, record.config)
        command = [record.binary[machine], "exec", "--state", str(SHARES / name), node, "--", *argv]
        status: int = fleet[machine].terminal(command)
        return status

    def control(self, name: str, target: int | str, request: LinkRequest[Answer]) -> Answer:
        """Asks the spinner on its machine; it numbers its own from 0."""
        record = self.record(name)
        number = target if isinstance(target, int) else self._serving(name, target)
        if number is None or number < 0:
            raise LabError(f"link {target} is not one of our own back end")
        if isinstance(request, LinkSetRequest):
            self._check_change(name, record, request)
        machine, local = record.machine_of_spinner(number)
        return self._relays_of(name, record).ask(machine, local, request)

    def samples(self, name: str) -> AbstractContextManager[JointSamples]:
        """The samples of the links, asked of their machines for a page of metrics; a machine may be out of reach."""
        record, plan = self.record(name), self.load(name).plan
        relays = self._relays_of(name, record, missing=True)
        machine_of = {link.name: record.machine_of[link.node] for link in plan.links}
        return asking(plan, machine_of, lambda machine: relays.samples(machine, record.first_spinner.get(machine, 0)))

    def _relays_of(self, name: str, record: ClusterLabRecord, *, missing: bool = False) -> Relays:
        if name not in self._relays:
            fleet = self._fleet(record.machines, record.config, missing=missing)
            self._relays[name] = Relays(fleet, name, record.binary)
        return self._relays[name]

    def probe(
        self, name: str, probes: Sequence[Probe], tell: Callable[[str], None], seen: Seen | None = None
    ) -> ProbeAnswer:
        """A process on each machine has the ends that are there; their clocks are compared before and after."""
        record = self.record(name)
        fleet = self._fleet(record.machines, record.config)
        joint = JointProbes(
            start=lambda machine, words: fleet[machine].start([record.binary[machine], *words]),
            machine_of={f"{NAMESPACES}/ewan-{name}-{node}": machine for node, machine in record.machine_of.items()},
            offsets=lambda: deployment.offsets(fleet, record),
            cpus=record.host_cpus,
            binary=node_binary(self._wanted),
        )
        return joint.run(probes, tell, seen)

    def inspect(self, name: str, what: Inspection[Answer]) -> list[Answer]:
        """Each machine's node binary enters the namespaces of its share."""
        record = self.record(name)
        fleet = self._fleet(record.machines, record.config)
        return inventory.inspect(fleet, record, name, what)

    def _check_change(self, name: str, record: ClusterLabRecord, request: LinkSetRequest) -> None:
        link = next(each for each in self.load(name).plan.links if each.name == request.link)
        tunnels.check_change(link, request.direction, request.change, record.stretched, record.tunnels)

    def converge(self, name: str, longest_s: float = 120.0) -> Convergence | None:
        """Wait until the routes of all machines' nodes together carry every pair."""
        plan = self.load(name).plan
        return None if plan.routing == "static" else self._routes_of(plan).settle(longest_s)

    def routes(self, name: str) -> dict[str, RoutingTable]:
        """The routes of all nodes, from their machines."""
        return self._routes_of(self.load(name).plan).tables()

    def carrier(self, name: str, link: str, up: bool, longest_s: float = 60.0) -> Recovery:
        """Both machines of a stretched link take the carrier of their interfaces, and the routes of all are watched."""
        plan = self.load(name).plan
        found = next((each for each in plan.links if each.name == link), None)
        if found is None:
            raise LabError(f"lab {name} has no link {link}; it has {', '.join(each.name for each in plan.links[:10])}")
        before = self._state.read(LinksDown, name, DOWN) or LinksDown(())
        down = LinksDown((*(each for each in before.links if each != link), *(() if up else (link,))))
        return self._routes_of(plan).set_carrier(found, up, longest_s, lambda: self._state.write(name, DOWN, down))

    def _routes_of(self, plan: Plan) -> ClusterRoutes:
        record, file = self.record(plan.lab), self._state.directory(plan.lab) / "plan.json"
        return ClusterRoutes(self._fleet(record.machines, record.config), record, plan, file, node_binary(self._wanted))

    def batch(self, name: str, program: Program, directory: Path) -> None:
        """Each machine runs its part, in step with the others; when one dies, the others end."""
        JointRuns(self._routes_of(self.load(name).plan)).run(program, directory)

    def capture(self, name: str, wanted: CaptureRequest, piped: bool = False) -> OpenCapture:
        """A process on each machine that has taps; their packets become one pcapng, by the first machine's clock."""
        from ewan.extras.machines.joint_capture import JointCapture

        record = self.record(name)
        fleet = self._fleet(record.machines, record.config)
        return JointCapture(
            name,
            wanted,
            piped,
            start=lambda machine, words: fleet[machine].start([record.binary[machine], *words]),
            machine_of=record.machine_of,
            cpus=record.host_cpus,
            compare=lambda machines: deployment.offsets(fleet, record, machines),
        )

    def start_machines(self, name: str, tell: Callable[[str], None] = lambda line: None) -> dict[str, str]:
        """No machines: hosts that are machines of their own are refused."""
        return {}

    def elsewhere(self, name: str) -> Mapping[str, RemoteMachine]:
        """All of its machines."""
        record, plan = self.record(name), self.load(name).plan
        return inventory.elsewhere(self._fleet(record.machines, record.config), record, plan)

    def versions(self, name: str) -> dict[str, str]:
        """The runtime, and the properties of tunnels between machines."""
        told = {f"tunnel {each.first} – {each.second}": tunnels.words(each) for each in self.record(name).tunnels}
        return {"runtime": "cluster", **told}

    def status(self, name: str) -> Status:
        """The status with `machines`: the SSH target, the nodes and the error of each."""
        status = super().status(name)
        record = self._record(name)
        if record is None:
            return status
        told = inventory.machines(self._fleet(record.machines, record.config, missing=True), record)
        status = codec.replace(status, machines=told)
        dead = [f"machine {each.machine}: {each.error}" for each in told if each.error]
        return codec.replace(status, state="incomplete", note="; ".join(dead)) if dead else status

    def _nodes(self, plan: Plan) -> tuple[NodeStatus, ...]:
        record = self.record(plan.lab)
        return inventory.nodes(self._fleet(record.machines, record.config, missing=True), record, plan)

    def _processes(self, plan: Plan, identity: str) -> dict[int, int]:
        return {}

    def _known(self) -> Cluster:
        if self._cluster is None:
            raise LabError("which machines? write --machines FILE")
        return self._cluster

    def _ask_facts(self) -> dict[str, ClusterMachineFacts]:
        if not self._facts:
            cluster = self._known()
            fleet = self._fleet(cluster.machines, cluster.ssh_config)
            self._show("asking the machines what they have")
            self._facts = deployment.facts(fleet, cluster)
        return self._facts

    def _fleet(self, wanted: tuple[ClusterMachine, ...], config: Path | None, *, missing: bool = False) -> Fleet:
        """Connections to the machines, kept until this process ends. `missing`: some may be out of reach."""
        from ewan.extras.machines.ssh import CONNECT_S, Fleet

        fleet = self._fleets.get(wanted)
        if fleet is None:
            self._show("connecting to the machines")
            fleet = self._fleets[wanted] = Fleet(
                wanted, config, all_needed=not missing, connect_s=self._connect_s or CONNECT_S
            )
            fleet.__enter__()
        return fleet

    def _record(self, name: str) -> ClusterLabRecord | None:
        return self._state.read(ClusterLabRecord, name, MANIFEST)

    def record(self, name: str) -> ClusterLabRecord:
        """The record of a lab's machines; LabError where there is no such lab."""
        record = self._record(name)
        if record is None:
            raise self._absent(name)
        return record

    def _write(self, lab: str, plan: Plan, record: ClusterLabRecord) -> None:
        """Write the state, the manifest first: removal of the lab depends on it."""
        directory = self._state.directory(lab)
        try:
            directory.mkdir(parents=True)
        except OSError as error:
            raise LabError(f"{directory}: {error.strerror}") from None
        self._state.write(lab, MANIFEST, record)
        (directory / "plan.json").write_bytes(plans.to_json(plan))


def _together(lab: str, shares: Sequence[Removed]) -> Removed:
    """The namespaces, processes and paths that were removed on all machines together."""
    return Removed(
        lab=lab,
        namespaces=tuple(each for share in shares for each in share.namespaces),
        processes=tuple(each for share in shares for each in share.processes),
        paths=tuple(each for share in shares for each in share.paths),
        spinners=tuple(each for share in shares for each in share.spinners),
    )


def _left(lab: str, left: Mapping[str, LabError]) -> str:
    said = "; ".join(str(error) for error in left.values())
    return f"{said}: what lab {lab} has there is left: `ewan down {lab}` again when it can be reached"


def runtime(context: Context, show: Show) -> ClusterRuntime:
    """The runtime that makes labs over the machines of --machines. The user is asked to trust files of others that
    decide which programs are executed."""
    machines = None if context.machines is None else load(context.machines)
    if context.machines is not None and machines is not None:
        for file in (context.machines, *([machines.ssh_config] if machines.ssh_config else [])):
            trust.ask_for_file(context, file)
    scheduling = context.environment.get("EWAN_SCHED", "")
    return ClusterRuntime(context.binary, context.state, machines, scheduling=scheduling, show=show)
