"""Hosts that are machines with a kernel of their own: QEMU in the node's namespace, with the node's addresses.

In: a plan whose lab is up. Out: machines that answer, and what kernels they run. Until a machine is started its node is
a namespace like others, so that a lab is verified before; then the namespace's interface carries the machine's packets
and has no address any more. Programs of the node run in the machine from then on (emulator/lab/src/machine.rs). QEMU
runs in the namespace, so that it ends with the lab.
"""

from __future__ import annotations

import ipaddress
import shlex
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ewan.labs.base.product import BUILT, from_source
from ewan.labs.compile.machines import CONTROL as CONTROL_CARD
from ewan.labs.plan import Interface, Node, Plan
from ewan.labs.runtime import machine_tunnels
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.locks import held

MACHINES = BUILT / "machine"
"""The folder of the files that images/machine builds, by the machine's name."""
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "dbclient": "dropbear-bin", "dropbearkey": "dropbear-bin"}
MEMORY_MIB = 256
ACCELERATORS = ("kvm", "tcg,thread=single")
"""The first that works."""
LONGEST_S = 120.0
"""A machine boots within 5 s on processors of its own; emulated ones on a busy host take their time."""
LOCK_WAIT_S = 2 * LONGEST_S
ANSWER_S = 30.0
READY = "ewan: ready"
LOOK_S = 0.2
FIRST_TABLE = 100
"""As in emulator/lab/src/fill.rs."""
CONTROL_NETWORK, CONTROL, CONTROL_MAC = "192.0.2.0/24", "192.0.2.15", "52:65:77:61:6e:01"
"""The addresses of the connection over which programs are started; no lab has these addresses (RFC 5737)."""
PORT = 2222
FOLDER, KEY, PENDING, PID = "machine", "key", "pending", "pid"
CONSOLE, SENT, LOCK = "console.log", "files.tar", "machines.lock"
"""In the node's own directory. emulator/lab/src/machine.rs takes `key` for the word that the machine has taken
over."""


def of(plan: Plan) -> tuple[Node, ...]:
    """The nodes that are machines."""
    return tuple(node for node in plan.nodes if node.machine is not None)


def check(plan: Plan) -> None:
    """LabError for what machines need and is not here; before anything is made."""
    for node in of(plan):
        if not (MACHINES / str(node.machine) / "release").exists():
            remedy = from_source("make machine")
            raise LabError(f"lab {plan.lab}: {node.name} is a machine, and {node.machine} is not built: {remedy}")
        for tool, package in TOOLS.items():
            if shutil.which(tool) is None:
                raise LabError(f"lab {plan.lab}: {node.name} is a machine: there is no {tool}: apt install {package}")


def start(binary: Path, directory: Path, plan: Plan, tell: Callable[[str], None]) -> dict[str, str]:
    """Starts the machines of a lab that do not run yet, and waits until they answer.

    `directory`: the lab's. Returns by node what `uname -r` says in it; LabError.
    """
    nodes = of(plan)
    if not nodes:
        return {}
    with held(directory / LOCK, LOCK_WAIT_S, f"lab {plan.lab}: its machines have been started by another for long"):
        new = [node for node in nodes if not (_folder(directory, node) / KEY).exists()]
        for node in new:
            _start(binary, directory, plan, node)
        deadline = time.monotonic() + LONGEST_S
        for node in new:
            tell(f"waiting for the machine {node.name}")
            _wait(directory, plan, node, deadline)
            (_folder(directory, node) / PENDING).rename(_folder(directory, node) / KEY)
        return {node.name: _release(binary, directory, plan, node) for node in nodes}


def _start(binary: Path, directory: Path, plan: Plan, node: Node) -> None:
    folder = _folder(directory, node)
    folder.mkdir(parents=True, exist_ok=True)
    own, host = folder / PENDING, folder / "host_key"
    public = {path: _new_key(path) for path in (own, host)}
    (folder / ".ssh").mkdir(exist_ok=True)
    (folder / ".ssh/known_hosts").write_text(f"127.0.0.1 {public[host]}\n")
    (folder / "authorized_keys").write_text(public[own] + "\n")
    (folder / "setup").write_text(guest_script(node))
    with tarfile.open(folder / SENT, "w") as sent:
        for path, name in (
            (folder / "setup", "machine/setup"),
            (host, "machine/host_key"),
            (folder / "authorized_keys", "root/.ssh/authorized_keys"),
            (directory / "hosts", "etc/hosts"),
        ):
            sent.add(path, name)
    words = [str(binary), "exec", "--state", str(directory), node.name, "--"]
    first, second = (shlex.join(qemu(node, folder, MACHINES / str(node.machine), each)) for each in ACCELERATORS)
    # A /dev/kvm that is there need not work: QEMU fails then, or the machine stands still where the processor has no
    # support for it.
    usable = "[ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo"
    script = f"{namespace_script(node)}{usable} && {first} 2>/dev/null || exec {second}\n"
    done = subprocess.run([*words, "sh", "-e", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise _failed(plan, node, said[-1] if said else f"it ended with status {done.returncode}")


def _new_key(path: Path) -> str:
    """Makes a key, and returns its public half as one line."""
    path.unlink(missing_ok=True)
    done = subprocess.run(["dropbearkey", "-t", "ed25519", "-f", str(path)], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith("ssh-"):
            return " ".join(line.split()[:2])
    raise LabError(f"dropbearkey made no key: {done.stderr.strip()}")


def _wait(directory: Path, plan: Plan, node: Node, deadline: float) -> None:
    """Until the machine says on its console that it is ready."""
    folder = _folder(directory, node)
    console = folder / CONSOLE
    while True:
        text = console.read_text(errors="replace") if console.exists() else ""
        if READY in text:
            return
        runs = running(folder)
        if not runs or time.monotonic() > deadline:
            why = f"did not answer within {LONGEST_S:.0f} s" if runs else "ended"
            last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "nothing")
            raise _failed(plan, node, f"{why}; its console ({console}) says last: {last}")
        time.sleep(LOOK_S)


def running(folder: Path) -> bool:
    """Return whether the machine's QEMU runs; one that has ended and still waits for its parent does not."""
    try:
        process = Path("/proc") / (folder / PID).read_text(errors="replace").strip()
        return (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _release(binary: Path, directory: Path, plan: Plan, node: Node) -> str:
    """The output of `uname -r` on the machine; the machine's server listens soon after the machine is ready."""
    words = [str(binary), "exec", "--state", str(directory), node.name, "--", "uname", "-r"]
    deadline = time.monotonic() + ANSWER_S
    while True:
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ANSWER_S)
        except subprocess.TimeoutExpired:
            raise _failed(plan, node, f"runs no command within {ANSWER_S:.0f} s") from None
        if done.returncode == 0:
            return done.stdout.strip()
        if time.monotonic() > deadline:
            said = done.stderr.strip().splitlines()
            raise _failed(plan, node, f"runs no command: {said[-1] if said else f'status {done.returncode}'}")
        time.sleep(LOOK_S)


def _failed(plan: Plan, node: Node, why: str) -> LabError:
    return LabError(f"lab {plan.lab}: the machine {node.name}: {why}: remove the lab with `ewan down {plan.lab}`")


def _folder(directory: Path, node: Node) -> Path:
    return directory / "nodes" / node.name / FOLDER


def _wired(node: Node) -> list[Interface]:
    """The interfaces at which wires end. Tunnels end in the machine, so that their kinds are of its kernel."""
    return [port for port in node.interfaces if port.tunnel is None]


def namespace_script(node: Node) -> str:
    """The script by which the node's interfaces carry a machine's packets: each is bridged with a tap and keeps no
    address.

    The interface gets another MAC address, because a bridge does not forward packets that are addressed to one of its
    ports.
    """
    lines = []
    for number, port in enumerate(_wired(node)):
        name, tap, bridge = port.name, f"tap{number}", f"bridge{number}"
        lines += [
            f"ip tuntap add dev {tap} mode tap",
            f"ip link add {bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            *(f"echo 1 >/proc/sys/net/ipv6/conf/{each}/disable_ipv6" for each in (name, tap, bridge)),
            f"ip address flush dev {name}",
            f"ip link set {name} address {_other(port.mac)}",
            f"ip link set {tap} mtu {port.mtu} txqueuelen 10000 master {bridge} up",
            f"ip link set {name} master {bridge}",
            f"ip link set {bridge} mtu {port.mtu} up",
        ]
    return "".join(line + "\n" for line in lines)


def _other(mac: str) -> str:
    """A MAC address that no interface of a lab has: of the two bits that may be set beside ours, the second."""
    first, rest = mac.split(":", 1)
    return f"{int(first, 16) ^ 0x04:02x}:{rest}"


def qemu(node: Node, folder: Path, image: Path, accelerator: str) -> list[str]:
    """The command that starts the machine in the node's namespace, and comes back when it runs.

    Its cards do no work of the kernel's, so that no packet is longer than the MTU.
    """
    plain = ",".join(
        f"{each}=off"
        for each in (
            *("csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo"),
            *("host_tso4", "host_tso6", "host_ecn", "host_ufo"),
        )
    )
    words = ["qemu-system-x86_64", "-accel", accelerator, "-cpu", "max"]
    words += ["-smp", "1", "-m", str(MEMORY_MIB), "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
    words += ["-serial", f"file:{folder / CONSOLE}", "-kernel", str(image / "kernel")]
    words += ["-initrd", str(image / "initramfs.gz")]
    words += ["-append", "console=ttyS0 quiet panic=-1 rdinit=/init mitigations=off random.trust_cpu=on"]
    words += ["-fw_cfg", f"name=opt/ewan/machine,file={folder / SENT}"]
    for number, port in enumerate(_wired(node)):
        words += ["-netdev", f"tap,id=lab{number},ifname=tap{number},script=no,downscript=no,vhost=off"]
        words += ["-device", f"virtio-net-pci,netdev=lab{number},mac={port.mac},romfile=,{plain}"]
    forwarded = f"hostfwd=tcp:127.0.0.1:{PORT}-{CONTROL}:22"
    words += ["-netdev", f"user,id=control,restrict=on,ipv6=off,net={CONTROL_NETWORK},{forwarded}"]
    words += ["-device", f"virtio-net-pci,netdev=control,mac={CONTROL_MAC},romfile="]
    return [*words, "-daemonize", "-pidfile", str(folder / PID)]


def guest_script(node: Node) -> str:
    """The script that gives the machine the node's interfaces, sysctls and routes, as emulator/lab/src/fill.rs gives
    them to others.

    The machine's first process (images/machine/init) runs it. Settings that the machine's kernel refused appear on its
    console.
    """
    macs = {**{port.mac: port.name for port in _wired(node)}, CONTROL_MAC: CONTROL_CARD}
    lines = [
        f"hostname {node.name}",
        # No name is taken while another interface has it.
        "for at in /sys/class/net/*; do",
        '    case "$(cat $at/address)" in',
        *(f"    {mac}) ip link set ${{at##*/}} name new{number} ;;" for number, mac in enumerate(macs)),
        "    esac",
        "done",
        *(f"ip link set new{number} name {name}" for number, name in enumerate(macs.values())),
        'set_to() { echo "$2" >/proc/sys/$1 || echo "ewan: this kernel refuses $1 = $2"; }',
        *(f"set_to {shlex.quote(key)} {shlex.quote(value)}" for key, value in node.sysctls.items()),
        f"ip address add {CONTROL}/24 dev {CONTROL_CARD}",
        f"ip link set {CONTROL_CARD} up",
    ]
    if any(port.tunnel is not None for port in node.interfaces):
        lines.append("while read -r module; do insmod $module; done </modules/tunnels")
    told = _told(node)
    for port in node.interfaces:
        if port.tunnel is not None:
            lines += machine_tunnels.lines(port, port.tunnel, _table(node, port.tunnel.local))
        lines += [f"ip link set {port.name} mtu {port.mtu}", f"ip link set {port.name} up"]
        lines += _addressed(port, told)
        lines += [
            f"ip neighbour replace {each.address} lladdr {each.mac} dev {port.name} nud permanent"
            for each in port.neighbours
        ]
    sources: set[str] = set()
    for route in node.routes:
        more = "" if not route.metric else f" metric {route.metric}"
        if route.source:
            table = _table(node, route.source)
            more += f" table {table}"
            if route.source not in sources:
                family = 6 if ":" in route.source else 4
                lines.append(f"ip -{family} rule add from {route.source} table {table} priority {table}")
            sources.add(route.source)
        lines.append(f"ip route add {route.to} via {route.via} dev {route.interface} onlink{more}{told}")
    return "".join(line + "\n" for line in lines)


def _table(node: Node, address: str) -> int:
    """The routing table for packets from one of the node's addresses."""
    has = [address in [text.partition("/")[0] for text in port.addresses] for port in node.interfaces]
    return FIRST_TABLE + has.index(True)


def _told(node: Node) -> str:
    """The settings for TCP in routes, as ip-route(8) writes them."""
    words: Sequence[str] = []
    if node.stack is not None:
        words = [" quickack 1"] if node.stack.quick_acks else []
        words = [*words, f" window {node.stack.window_bytes}"] if node.stack.window_bytes is not None else words
    return "".join(words)


def _addressed(port: Interface, told: str) -> list[str]:
    lines = []
    for text in port.addresses:
        address = ipaddress.ip_interface(text)
        four = address.version == 4
        lines.append(f"ip address add {address} dev {port.name}{'' if four else ' nodad'}")
        if told and address.network.num_addresses > 1:
            how = f"scope link src {address.ip}" if four else "metric 256"
            lines.append(f"ip route replace {address.network} dev {port.name} proto kernel {how}{told}")
    return lines
