"""A virtual machine with Debian's own kernel that stands for a dedicated box: two cards in a bridge, reached by SSH.

Out: a config for OpenSSH's client, in which the box is the host `box`. The kernel is Debian's package, fetched into the
cache; QEMU emulates the processor where there is no KVM, so its times mean nothing, and what its kernel says does.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from images.machine.stock import check_tools, fetch, kernel_package, needed, pack, with_libraries
from tests.kept import kept

HERE = Path(__file__).parent
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "dropbear": "dropbear-bin",
    "dropbearkey": "dropbear-bin",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "busybox": "busybox-static",
    "dash": "dash",
    "ip": "iproute2",
    "tc": "iproute2",
    "ping": "iputils-ping",
}
GUEST = ("dropbear", "busybox", "dash", "ip", "tc", "ping")
MODULES = ("virtio_pci", "virtio_net", "veth", "bridge", "sch_netem", "sch_tbf")
BOOTS_S = 120


@contextmanager
def box(folder: Path, cards: tuple[str, str] | None = None) -> Iterator[Path]:
    """The SSH config's path while the box is there.

    `cards`: interfaces of this machine, made here, that are cabled to its eth1 and eth2, a bridge of their own; needs
    root.
    """
    check_tools(TOOLS)
    package = kernel_package("linux-image-amd64")
    release = package.removeprefix("linux-image-")
    root = kept("vm") / f"box-{release}"
    fetch([package], root)
    port = _free_port()
    config, sent = _keys(folder, port)
    modules = needed(root / "lib/modules" / release, MODULES)
    files = {f"modules/{name}.ko": data for name, data in modules.items()} | sent
    files["modules/order"] = " ".join(f"{name}.ko" for name in modules).encode()
    files |= {"init": (HERE / "box.sh").read_bytes(), "etc/passwd": b"root:x:0:0::/root:/bin/sh\n"}
    files |= {str(each.relative_to("/")): each.read_bytes() for each in _tables()}
    files |= {"etc/shells": b"/bin/sh\n"} | with_libraries(GUEST, "usr/bin")
    archive = folder / "initramfs.gz"
    pack(files, archive)
    console = folder / "console.log"
    words = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "1", "-m", "256"]
    words += ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", f"file:{console}"]
    words += ["-kernel", str(root / "boot" / f"vmlinuz-{release}"), "-initrd", str(archive)]
    words += ["-append", "console=ttyS0 quiet panic=-1 rdinit=/init mitigations=off random.trust_cpu=on"]
    forwarded = f"hostfwd=tcp:127.0.0.1:{port}-192.0.2.15:22"
    words += ["-netdev", f"user,id=control,restrict=on,ipv6=off,net=192.0.2.0/24,{forwarded}"]
    words += ["-device", "virtio-net-pci,netdev=control,romfile="]
    with ExitStack() as ending:
        for card in cards or ():
            subprocess.run(["ip", "tuntap", "add", "dev", card, "mode", "tap"], check=True)
            ending.callback(subprocess.run, ["ip", "link", "del", card], check=True)
            words += ["-netdev", f"tap,id={card},ifname={card},script=no,downscript=no,vnet_hdr=off"]
            words += ["-device", f"virtio-net-pci,netdev={card},romfile="]
        yield from _running(words, console, config)


def _running(words: list[str], console: Path, config: Path) -> Iterator[Path]:
    machine = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        _wait(machine, console)
        yield config
    finally:
        machine.kill()
        machine.wait()


def _tables() -> list[Path]:
    """netem's tables of delays, where this machine's tc looks for them."""
    found = [each for each in Path("/usr/lib").glob("**/tc/*.dist") if each.is_file()]
    assert found, "iproute2 came without its tables of delays"
    return found


def _wait(machine: subprocess.Popen[bytes], console: Path) -> None:
    deadline = time.monotonic() + BOOTS_S
    while not console.exists() or "box: ready" not in console.read_text(errors="replace"):
        assert machine.poll() is None, "QEMU ended"
        assert time.monotonic() < deadline, f"the box is not up after {BOOTS_S} s:\n{console.read_text()[-2000:]}"
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _keys(folder: Path, port: int) -> tuple[Path, dict[str, bytes]]:
    """The client's config, and the box's files: its own key, and the one that may come in."""
    made = ["dropbearkey", "-t", "ed25519", "-f", str(folder / "host_key")]
    said = subprocess.run(made, check=True, capture_output=True, text=True).stdout
    public = next(line for line in said.splitlines() if line.startswith("ssh-ed25519"))
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {public}\n")
    config = folder / "config"
    config.write_text(
        f"Host box\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {folder / 'key'}\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {known}\n  StrictHostKeyChecking yes\n"
    )
    return config, {
        "box/host_key": (folder / "host_key").read_bytes(),
        "root/.ssh/authorized_keys": (folder / "key.pub").read_bytes(),
    }
