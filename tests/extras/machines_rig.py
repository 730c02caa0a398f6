"""Machines of a cluster on one host: namespaces of their own, Debian's sshd in each, and a network between them.

In: how many, the MTU of the network between them, whether it has IPv6. Out: their names and addresses, an SSH
configuration that reaches them, and what can happen to them: a power cut, a cable that is pulled, packets lost or late.

Needs root. Each machine has its own PID, mount, UTS and network namespaces, /run, users (root; worker, who may use
sudo; guest, who may not) and home directories; the rest of the file system and the CPUs are the host's. The
coordinator, from which they are reached, is one more network namespace, into which `inside` brings a thread and what it
starts. Nothing of this is seen in the host's namespaces, and all ends when this process does, whatever ended it: what
remains then is the temporary directory.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ewan.extras.machines.file import Cluster, ClusterMachine
from ewan.labs.base.units import NS_PER_MS

ROOT = Path(__file__).parents[2]
NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight")
COORDINATOR = "coordinator"
INTERFACE = "eth1"
"""The interface of each machine, and of the coordinator, that reaches the others."""
NETWORK_4 = ipaddress.ip_network("192.0.2.0/24")
NETWORK_6 = ipaddress.ip_network("2001:db8:e:a::/64")
WORKER, GUEST = "worker", "guest"
_FIRST_USER = 64001
_CLONE_NEWNET = 0x40000000


def _sshd() -> tuple[str, str]:
    """The daemon, and where libraries are that came with it."""
    if (found := shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")) is not None:
        return found, ""
    unpacked = ROOT / "target/sshd/usr"
    assert (unpacked / "sbin/sshd").exists(), "there is no sshd: run ./setup.sh tests"
    return str(unpacked / "sbin/sshd"), ":".join(map(str, unpacked.glob("lib/*-linux-gnu*")))


def _within(namespace: int, *words: str, text: str | None = None) -> str:
    """Runs a program in the network namespace of a process, with the host's file system."""
    command = ["nsenter", f"--net=/proc/{namespace}/ns/net", "--", *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr or done.stdout}{text or ''}"
    return done.stdout


class _Namespace:
    """A network namespace without a name, there while its process is."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "there is no network namespace"
        self.pid = self._process.pid

    def close(self) -> None:
        _ended(self._process)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


class _Running:
    """A machine that is up: the process that made its namespaces, whose child is the machine's first process."""

    def __init__(self, name: str, directory: Path) -> None:
        alone = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child"]
        first = [
            sys.executable,
            "-I",
            "-S",
            str(ROOT / "tests/extras/machines_machine.py"),
            name,
            str(directory),
            *_sshd(),
        ]
        self.name = name
        self.process = subprocess.Popen([*alone, *first], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
        self.first = int(self._said())
        self.handle = os.pidfd_open(self.first)

    def _said(self) -> bytes:
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said, f"machine {self.name} did not come up: see sshd.log in its directory, and above"
        return said

    def serve(self) -> None:
        """Starts sshd and waits for it; the network is there."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self._said()

    def close(self) -> None:
        """Ends the first process and with it all others of the machine, and waits for it."""
        _ended(self.process)
        # It ends when all other processes of its PID namespace have ended.
        ended, _, _ = select.select([self.handle], [], [], 10)
        os.close(self.handle)
        assert ended, f"machine {self.name} was killed and is still there"


class Rig:
    """Machines that are up; `machines` makes it."""

    interface = INTERFACE

    def __init__(self, directory: Path, count: int, mtu: int, ipv6: bool) -> None:
        self.directory = directory
        self.names = NAMES[:count]
        self.mtu = mtu
        ends = (*self.names, COORDINATOR)
        self.address_4 = {name: str(NETWORK_4[number]) for number, name in enumerate(ends, start=1)}
        self.address_6 = {name: str(NETWORK_6[number]) for number, name in enumerate(ends, start=1)} if ipv6 else {}
        self.ssh_config = directory / "ssh_config"
        self.known_hosts = directory / "known_hosts"
        self.user_key = directory / "user_key"
        self.file = directory / "machines.yaml"
        self._running: dict[str, _Running] = {}
        self._delays: dict[str, subprocess.Popen[bytes]] = {}
        self._switch = _Namespace()
        self._coordinator = _Namespace()
        _within(
            self._switch.pid, "ip", "-batch", "-", text=f"link add bridge type bridge\nlink set bridge mtu {mtu} up\n"
        )
        self._write()
        self._plug(COORDINATOR, self._coordinator.pid)
        for name in self.names:
            self.revive(name)

    @property
    def cluster(self) -> Cluster:
        """The machines, as root reaches them."""
        return Cluster(tuple(self.machine(name) for name in self.names), self.ssh_config)

    def machine(self, name: str, user: str = "root", sudo: bool = False) -> ClusterMachine:
        """One of them, as this user reaches it."""
        ssh = name if user == "root" else f"{user}@{name}"
        return ClusterMachine(name, ssh, INTERFACE, address=None, cpus=None, sudo=sudo)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread, and the threads and processes that it starts meanwhile, are in the coordinator's network."""
        with (
            Path("/proc/thread-self/ns/net").open() as before,
            Path(f"/proc/{self._coordinator.pid}/ns/net").open() as there,
        ):
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def namespace(self, name: str) -> int:
        """A process whose network namespace is the machine's."""
        return self._running[name].process.pid

    def first(self, name: str) -> int:
        """The machine's first process: all its namespaces are."""
        return self._running[name].first

    def kill(self, name: str) -> None:
        """As a power cut: nothing more comes from the machine, and all that ran there is gone."""
        # First the cable: the kernel would close the connections of the processes that end.
        _within(self._switch.pid, "ip", "link", "delete", name)
        if name in self._delays:
            _ended(self._delays.pop(name))
            _within(self._switch.pid, "ip", "link", "delete", f"{name}-d")
        self._running.pop(name).close()

    def revive(self, name: str) -> None:
        """The machine boots: its files are there, its /run is empty."""
        self._running[name] = running = _Running(name, self.directory / name)
        self._plug(name, running.process.pid)
        running.serve()

    def hang(self, name: str) -> None:
        """Nothing runs on the machine any more; its kernel still answers."""
        self._all(name, signal.SIGSTOP)

    def wake(self, name: str) -> None:
        """It goes on."""
        self._all(name, signal.SIGCONT)

    def _all(self, name: str, number: signal.Signals) -> None:
        inside = Path(f"/proc/{self.first(name)}/ns/pid").readlink()
        for process in Path("/proc").glob("[0-9]*"):
            # It may end meanwhile.
            with suppress(OSError):
                if (process / "ns/pid").readlink() == inside:
                    os.kill(int(process.name), number)

    def pull(self, name: str) -> None:
        """Pulls the machine's cable."""
        _within(self._switch.pid, "ip", "link", "set", name, "down")

    def plug(self, name: str) -> None:
        """Puts the cable back."""
        _within(self._switch.pid, "ip", "link", "set", name, "up")

    def lose(self, share: float, names: Sequence[str] | None = None, udp_port: int | None = None) -> None:
        """From now on this share of the packets that these machines send is lost; `udp_port`: of those to it alone."""
        self.lose_none()
        what = "" if udp_port is None else f"udp dport {udp_port} "
        what += f"numgen random mod 1000000 < {round(share * 1e6)} " if share < 1 else ""
        lines = ["add table netdev loss"]
        for name in names or self.names:
            device = f"{name}-e" if name in self._delays else name
            lines.append(f'add chain netdev loss {name} {{ type filter hook ingress device "{device}" priority 0; }}')
            lines.append(f"add rule netdev loss {name} {what}drop")
        _within(self._switch.pid, "nft", "-f", "-", text="\n".join(lines) + "\n")

    def lose_none(self) -> None:
        """No packet is lost any more."""
        # "add" makes that "delete" finds it.
        _within(self._switch.pid, "nft", "add table netdev loss; delete table netdev loss")

    def narrow(self, mtu: int, names: Sequence[str] | None = None) -> None:
        """The network swallows larger packets to and from these machines; their interfaces do not know it."""
        for name in names or self.names:
            _within(self._switch.pid, "ip", "link", "set", name, "mtu", str(mtu))

    def delay(self, name: str, delay_ms: float) -> None:
        """What this machine sends arrives so much later, to a few µs; 0: as before.

        A program carries the packets, up to some ten thousand a second: interfaces leave it no work (no offloads).
        """
        if name in self._delays:
            _ended(self._delays.pop(name))
            _within(self._switch.pid, "ip", "link", "delete", f"{name}-d")
            _within(self._switch.pid, "ip", "link", "set", name, "master", "bridge")
        if delay_ms == 0:
            return
        for namespace in (self._coordinator.pid, *(running.process.pid for running in self._running.values())):
            _within(namespace, "ethtool", "-K", INTERFACE, "tx", "off", "tso", "off", "gso", "off")
        lines = [
            f"link set {name} nomaster",
            f"link add {name}-d up mtu {self.mtu} type veth peer name {name}-e mtu {self.mtu}",
            f"link set {name}-e master bridge up",
        ]
        _within(self._switch.pid, "ip", "-batch", "-", text="\n".join(lines) + "\n")
        carrier = [sys.executable, "-I", "-S", str(ROOT / "tests/extras/machines_delay.py"), name, f"{name}-d"]
        command = ["nsenter", f"--net=/proc/{self._switch.pid}/ns/net", *carrier, str(round(delay_ms * NS_PER_MS))]
        self._delays[name] = process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", "there is no delay"

    def close(self) -> None:
        for process in self._delays.values():
            _ended(process)
        for running in self._running.values():
            running.close()
        self._coordinator.close()
        self._switch.close()

    def _plug(self, name: str, namespace: int) -> None:
        """A cable from the bridge to an interface in a namespace, with its addresses."""
        # The same card after each boot: the others remember its address.
        card = f"02:00:00:00:00:{[*self.names, COORDINATOR].index(name) + 1:02x}"
        ends = f"type veth peer name {INTERFACE} address {card} mtu {self.mtu} netns {namespace}"
        bridged = f"link add {name} mtu {self.mtu} {ends}\nlink set {name} master bridge up\n"
        _within(self._switch.pid, "ip", "-batch", "-", text=bridged)
        lines = ["link set lo up", f"link set {INTERFACE} up"]
        lines.append(f"address add {self.address_4[name]}/{NETWORK_4.prefixlen} dev {INTERFACE}")
        if name in self.address_6:
            lines.append(f"address add {self.address_6[name]}/{NETWORK_6.prefixlen} dev {INTERFACE} nodad")
        _within(namespace, "ip", "-batch", "-", text="\n".join(lines) + "\n")

    def _write(self) -> None:
        """Keys, the machines' files, and the user's."""
        self.key(self.user_key)
        for name in self.names:
            self._furnish(self.directory / name)
        self.known_hosts.write_text(
            "".join(
                f"{','.join((name, *addresses))} {self.host_key(name)}\n"
                for name in self.names
                for addresses in [[of[name] for of in (self.address_4, self.address_6) if name in of]]
            )
        )
        hosts = "".join(
            f"Host {name}\n  HostName {self.address_4[name]}\n  HostKeyAlias {name}\n" for name in self.names
        )
        self.ssh_config.write_text(
            f"{hosts}Host *\n  User root\n  IdentityFile {self.user_key}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile none\n"
        )
        machines = "".join(f"  {name}: {{ssh: {name}, interface: {INTERFACE}}}\n" for name in self.names)
        self.file.write_text(f"ssh_config: ssh_config\nmachines:\n{machines}")

    def host_key(self, name: str) -> str:
        """A machine's public host key, as known_hosts has it."""
        return " ".join((self.directory / name / "host_key.pub").read_text().split()[:2])

    def _furnish(self, place: Path) -> None:
        """A machine's directory: keys, users, homes."""
        users = {"root": 0, WORKER: _FIRST_USER, GUEST: _FIRST_USER + 1, "sshd": _FIRST_USER + 2}
        etc = place / "etc"
        etc.mkdir(parents=True)
        for path in (place.parent, place):
            path.chmod(0o755)
        self.key(place / "host_key")
        shutil.copy(f"{self.user_key}.pub", place / "authorized_keys")
        homes = {name: f"/run/machine/home/{name}" for name in users}
        own = {
            "passwd": "".join(f"{name}:x:{number}:{number}::{homes[name]}:/bin/sh\n" for name, number in users.items()),
            "group": "".join(f"{name}:x:{number}:\n" for name, number in users.items()),
        }
        for name, text in own.items():
            # What daemons of the host's packages run as.
            others = [
                line for line in Path("/etc", name).read_text().splitlines(True) if line.split(":")[0] not in users
            ]
            (etc / name).write_text(text + "".join(others))
        (etc / "shadow").write_text("".join(f"{name}:*:19000:0:99999:7:::\n" for name in users))
        (etc / "sudoers").write_text(f"root ALL=(ALL) ALL\n{WORKER} ALL=(ALL) NOPASSWD: ALL\n{GUEST} ALL=(ALL) ALL\n")
        (etc / "sudoers").chmod(0o440)
        (etc / "hosts").write_text(f"127.0.0.1 localhost {place.name}\n")
        for name, number in users.items():
            home = place / "home" / name
            home.mkdir(parents=True)
            os.chown(home, number, number)
        # No password, and who may log in: what Debian has, without PAM. Ten sessions a connection, as everywhere.
        (place / "sshd_config").write_text(
            "HostKey /run/machine/host_key\nAuthorizedKeysFile /run/machine/authorized_keys\nStrictModes no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPidFile none\nUseDNS no\n"
        )

    @staticmethod
    def key(path: Path) -> None:
        """A new pair of keys: `path`, and `path` with .pub."""
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def machines(count: int, mtu: int = 1500, ipv6: bool = True) -> Iterator[Rig]:
    """So many machines, up and joined; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="ewan-machines-") as directory:
        rig = Rig(Path(directory), count, mtu, ipv6)
        try:
            yield rig
        finally:
            rig.close()


def main() -> None:
    """`python -m tests.extras.machines_rig 3 -- COMMAND …`: runs a command where the coordinator is.

    `{machines}` in its words is the path of the machines' file.
    """
    count, dashes, *command = sys.argv[1:]
    assert dashes == "--" and command, main.__doc__
    with machines(int(count), mtu=1600) as rig, rig.inside():
        named = [word.replace("{machines}", str(rig.file)) for word in command]
        raise SystemExit(subprocess.run(named).returncode)


if __name__ == "__main__":
    main()
