"""A lab's shares, made on their machines: the node binary is sent, tunnels are measured, namespaces and links started.

In: connections, facts, plans. Out: what there is then; LabError in one line. Whoever calls removes what was made.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ewan.extras.machines import facts as machine_facts
from ewan.extras.machines import shares, tunnels
from ewan.extras.machines.answers import TunnelMeasurement, TunnelMeasurementRequest
from ewan.extras.machines.facts import ClusterMachineFacts
from ewan.extras.machines.file import Cluster
from ewan.extras.machines.joint_probes import Offset
from ewan.extras.machines.queries import ASK_S, SHARES, WORK_S, Relays, all_of, answer_of, done
from ewan.extras.machines.records import ClusterLabRecord
from ewan.labs import plan as plans
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.plan import Plan
from ewan.labs.runtime.answers import Removed
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.requests import StatsRequest
from ewan.labs.runtime.state_documents import MANIFEST, AppliedPlan, Head

if TYPE_CHECKING:
    from ewan.extras.machines.ssh import ConnectedMachine, Fleet

Show = Callable[[str], None]

SENT = "~/.cache/ewan/ewan-node-"
"""On each machine, then the binary's hash."""


class Pace(NamedTuple):
    """The load of a tunnel: timed packets, the time between them, and the bytes of a burst each way."""

    packets: int
    interval_ns: int
    rate_bytes: int


TIMED = Pace(500, NS_PER_MS, 4 << 20)
"""The load of each tunnel that measures it: half a second of packets, and a burst each way."""
COMPARED = Pace(100, NS_PER_MS, 0)
"""To compare two clocks."""
LEAST_MTU = 576
START_S = 30.0
POLL_S = 0.05
_SPINNER = (
    'cd / && exec setsid -f env EWAN_SCHED="$5" "$1" link --state "$2" --spinner "$3" --id "$4" '
    '>"$2/spinner-$3.log" 2>&1 </dev/null'
)
_EXEC = 'mkdir -p "${1%/*}" || exit; log=$1; shift; "$@" >"$log" 2>&1 </dev/null; code=$?; cat "$log"; exit $code'
_WRITE = 'cat >"$1.new" && mv "$1.new" "$1"'


def facts(fleet: Fleet, cluster: Cluster) -> dict[str, ClusterMachineFacts]:
    """The facts about each machine; LabError where one lacks a need of labs."""
    of = {machine.name: machine for machine in cluster.machines}

    def ask(remote: ConnectedMachine) -> ClusterMachineFacts:
        told = remote.run(["sh", "-c", machine_facts.SCRIPT, "sh", of[remote.name].interface], longest_s=ASK_S)
        done(remote.name, told)
        return machine_facts.read(of[remote.name], told.stdout.decode(errors="replace"))

    found = all_of(fleet, ask, list(of))
    machine_facts.check_together(found)
    return found


def send(fleet: Fleet, names: Sequence[str], binary: Path, show: Show) -> dict[str, str]:
    """The node binary, to machines that have not got it yet; its path on each."""
    data = binary.read_bytes()
    name = SENT + hashlib.sha256(data).hexdigest()
    gone: dict[str, float] = {}

    def put(remote: ConnectedMachine) -> str:
        def fed(share: float) -> None:
            gone[remote.name] = share
            show(f"sending the node binary: {min(gone.values()):.0%} to {', '.join(gone)}")

        return remote.put(data, name, 0o755, named_by_content=True, longest_s=WORK_S, fed=fed)

    show("looking for the node binary")
    return all_of(fleet, put, names)


def measure(
    fleet: Fleet,
    binary: Mapping[str, str],
    found: Mapping[str, ClusterMachineFacts],
    plan: Plan,
    crossing: Sequence[shares.TunnelWire],
    show: Show,
) -> list[tunnels.TunnelQuality]:
    """Each tunnel that the wires `crossing` need, one after the other, with packets as large as theirs."""
    links = {link.name: link for link in plan.links}
    wanted: dict[tuple[str, str], int] = {}
    order = list(found)
    for each in crossing:
        first, second = sorted((each.near_machine, each.far_machine), key=order.index)
        wanted[first, second] = max(tunnels.mtu_of(plan, links[each.link]), wanted.get((first, second), 0))
    addresses = {name: each.address for name, each in found.items()}
    measured = []
    for number, ((first, second), mtu) in enumerate(wanted.items(), 1):
        show(f"measuring the tunnel between {first} and {second} ({number} of {len(wanted)})")
        told = _stretch(fleet, binary, addresses, (first, second), mtu, TIMED)
        measured.append(tunnels.read(first, second, told))
    return measured


def offsets(fleet: Fleet, record: ClusterLabRecord, names: Sequence[str] | None = None) -> dict[str, Offset]:
    """The other machines' clocks, compared with the first one's now, one after the other; `names`: only these."""
    first, *others = [machine.name for machine in record.machines]
    found = {}
    for other in (name for name in others if names is None or name in names):
        told = _stretch(fleet, record.binary, record.addresses, (first, other), LEAST_MTU, COMPARED)
        found[other] = Offset(told.offset_ns, told.offset_uncertainty_ns)
    return found


def _stretch(
    fleet: Fleet,
    binary: Mapping[str, str],
    addresses: Mapping[str, str],
    between: tuple[str, str],
    mtu: int,
    how: Pace,
) -> TunnelMeasurement:
    """The measurement by `ewan-node stretch` of a tunnel of its own between two machines; the tunnel is removed
    afterwards."""
    first, second = between
    vni = secrets.randbelow(shares.VNIS - 1) + 1

    def request(here: str, there: str) -> bytes:
        asked = TunnelMeasurementRequest(vni, addresses[here], addresses[there], shares.PORT, mtu, *how)
        return codec.line(asked)

    answering = fleet[second].start([binary[second], "stretch", "answer"])
    try:
        answering.write(request(second, first))
        if b"ready" not in answering.readline(ASK_S):
            raise LabError(f"machine {second}: {answering.wait(ASK_S).said}")
        told = fleet[first].run([binary[first], "stretch", "measure"], request(first, second), longest_s=WORK_S)
        return answer_of(TunnelMeasurement, first, told)
    finally:
        answering.close()


def check_absent(fleet: Fleet, names: Sequence[str], lab: str) -> None:
    """LabError where a machine has a share of a lab of this name, which was made from elsewhere."""

    def look(remote: ConnectedMachine) -> None:
        if remote.run(["test", "-e", str(SHARES / lab)], longest_s=ASK_S).returncode == 0:
            raise LabError(
                f"machine {remote.name} has a share of a lab {lab} already, made from elsewhere: give this lab another "
                f"name, or remove that share there: EWAN_STATE={SHARES} ewan down {lab}"
            )

    all_of(fleet, look, names)


def make(
    fleet: Fleet,
    binary: Mapping[str, str],
    split: shares.Shares,
    hosts: str,
    scheduling: str,
    check: Callable[[], None],
    show: Show,
) -> list[str]:
    """Make all shares, side by side, with their links running; return the machines' warnings.

    `hosts`: the file of names of the whole lab; `check` raises when there is a reason to stop."""
    lab, names = split.whole.lab, list(split.of)
    texts = {name: plans.to_json(share) for name, share in split.of.items()}
    directory = str(SHARES / lab)

    def apply(remote: ConnectedMachine) -> list[str]:
        command = [binary[remote.name], "apply", "--plan", "/dev/stdin", "--state", directory]
        applied = answer_of(AppliedPlan, remote.name, remote.run(command, texts[remote.name], longest_s=WORK_S))
        words = ["sh", "-c", _WRITE, "sh", f"{directory}/hosts"]
        done(remote.name, remote.run(words, hosts.encode(), longest_s=ASK_S))
        return list(applied.warnings)

    def spin(remote: ConnectedMachine) -> None:
        manifest = answer_of(Head, remote.name, remote.run(["cat", f"{directory}/{MANIFEST}"], longest_s=ASK_S))
        for number in range(len(split.of[remote.name].spinners)):
            words = [binary[remote.name], directory, str(number), manifest.id, scheduling]
            done(remote.name, remote.run(["sh", "-c", _SPINNER, "sh", *words], longest_s=ASK_S))

    show(f"making the shares of {', '.join(names)}")
    said = all_of(fleet, apply, names)
    check()
    show("starting the links")
    all_of(fleet, spin, names)
    relays = Relays(fleet, lab, binary)
    try:
        _wait(fleet, relays, split, check)
    finally:
        relays.close()
    every = dict.fromkeys(warning for each in said.values() for warning in each)
    return [f"{', '.join(name for name in names if warning in said[name])}: {warning}" for warning in every]


def _wait(fleet: Fleet, relays: Relays, split: shares.Shares, check: Callable[[], None]) -> None:
    """Waits until each spinner answers; LabError with the output of one that does not."""
    deadline = time.monotonic() + START_S
    for name, share in split.of.items():
        for number in range(len(share.spinners)):
            while True:
                try:
                    relays.ask(name, number, StatsRequest())
                    break
                except LabError as error:
                    check()
                    if time.monotonic() > deadline:
                        log = str(SHARES / share.lab / f"spinner-{number}.log")
                        last = fleet[name].run(["tail", "-n", "1", log], longest_s=ASK_S)
                        said = last.stdout.decode(errors="replace").strip()
                        raise LabError(f"machine {name}: spinner {number} does not answer: {said or error}") from None
                time.sleep(POLL_S)


def attempt(
    fleet: Fleet, record: ClusterLabRecord, lab: str, longest_s: float, check: Callable[[], None]
) -> Callable[[str, Sequence[str], Path], str]:
    """A function that runs a command in a node for `ewan.labs.runtime.node_overrides`; `check` is called meanwhile. The
    log is also there."""

    def run(node: str, argv: Sequence[str], log: Path) -> str:
        machine = record.machine_of[node]
        there = SHARES / lab / "nodes" / node / log.name
        enter = [record.binary[machine], "exec", "--state", str(SHARES / lab), node, "--", *argv]
        with ThreadPoolExecutor(1) as pool, fleet[machine].start(["sh", "-c", _EXEC, "sh", str(there), *enter]) as way:
            ending = pool.submit(way.wait, longest_s)
            while not ending.done():
                check()
                wait([ending], POLL_S)
            try:
                told = ending.result()
            except LabError as error:
                return str(error)
        log.write_bytes(told.stdout)
        if told.returncode == 0:
            return ""
        return told.said if told.stdout.strip() else f"ended with status {told.returncode}"

    return run


def remove(fleet: Fleet, binary: Mapping[str, str], lab: str, names: Sequence[str]) -> dict[str, Removed | LabError]:
    """The namespaces, processes and paths that each machine removed of its share, or its error."""

    def take_down(remote: ConnectedMachine) -> Removed:
        command = [binary[remote.name], "down", "--state", str(SHARES / lab)]
        told = answer_of(Removed, remote.name, remote.run(command, longest_s=WORK_S))
        remote.run(["rmdir", str(SHARES)], longest_s=ASK_S)  # it stays where other labs are
        return told

    return fleet.each(take_down, names)
