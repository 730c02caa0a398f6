"""A virtual machine with one of Debian's own kernels: fetched, given our modules, booted once, its console returned.

In: a package name (linux-image-amd64). Out: what guest.sh printed. Nothing is installed on the host: packages are
downloaded with apt-get and unpacked into the cache (images/cache.sh). QEMU emulates the processor in software, so no
/dev/kvm and no root is needed. The machine's clock counts its instructions and leaps where it is idle: what this host
does beside it changes nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from images.machine.stock import MissingError, check_tools, depends, fetch, kernel_package, needed, pack, with_libraries
from tests.kept import kept

ROOT = Path(__file__).parent.parent.parent
WORK = ROOT / "target" / "vm"
HERE = Path(__file__).parent
# Ours, by their folder: what make makes, and the modules among it.
OWN = {
    "psp": (("module", "tc"), ("sch_psp",)),
    "tcp": (("module",), ("tcp_fast", "tcp_ghstcp", "tcp_bbr3", "tcp_prague")),
}
# What the guest needs of the kernel beside ours, with the modules these depend on.
MODULES = (
    "virtio_pci",
    "virtio_net",
    "veth",
    "sch_netem",
    "cls_u32",
    "sch_ingress",
    "cls_matchall",
    "act_mirred",
    "sch_tbf",
)
# Command → Debian package.
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "tc": "iproute2",
    "iperf3": "iperf3",
    "ping": "iputils-ping",
    "tcpdump": "tcpdump",
    "make": "make",
    "gcc": "gcc",
}
GUEST_TOOLS = ("busybox", "ip", "tc", "iperf3", "ping", "tcpdump")


class Kernel:
    """One of Debian's kernels for amd64, with the headers to build a module for it.

    `image` and `headers` are the packages that always depend on the newest version.
    """

    def __init__(self, image: str, headers: str) -> None:
        check_tools(TOOLS)
        package = kernel_package(image)
        try:
            headers_package = depends(headers, r"linux-headers-[\d.].*-amd64")[0]
            parts = depends(headers_package, r"linux-(headers-.*-common|kbuild-.*)")
        except IndexError:
            raise MissingError(f"apt knows no {headers}: enable bookworm-security, then apt update") from None
        self.version = package.removeprefix("linux-image-")
        self.root = kept("vm") / self.version
        self.work = WORK / self.version
        self.work.mkdir(parents=True, exist_ok=True)
        fetch([package, headers_package, *parts], self.root)
        self.headers = self.root / "usr" / "src" / f"linux-headers-{self.version}"
        self.modules = self.root / "lib" / "modules" / self.version
        self.image = self.root / "boot" / f"vmlinuz-{self.version}"
        makefile = self.headers / "Makefile"
        makefile.write_text(
            re.sub(r"^include \S*(?=/usr/src)", f"include {self.root}", makefile.read_text(), flags=re.M)
        )

    def build(self, part: str) -> tuple[Path, str]:
        """A part's modules for this kernel: where they are, and what the compiler said (W=1)."""
        work = self.work / part
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        for source in (ROOT / "emulator" / "kernel" / part).iterdir():
            if source.name == "Makefile" or source.suffix in (".c", ".h"):
                shutil.copy(source, work)
        command = ["make", "-s", f"KDIR={self.headers}", "W=1", *OWN[part][0]]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"{part} does not build for {self.version}:\n{done.stdout}{done.stderr}")
        return work, done.stderr

    def boot(self, more: dict[str, bytes], processors: int, timeout_s: float) -> dict[str, str]:
        """Runs guest.sh, with `more` files, and returns its "name: value" lines."""
        archive = self.work / "initramfs.gz"
        pack(self.files() | more, archive)
        console = self.work / "console.log"
        # One thread for all processors: with one each, QEMU 7.2 at times runs code that the kernel has just patched
        # (static keys) as it was before, and the kernel stops at a breakpoint (int3) that is no longer there.
        # 2 ns an instruction. Two network cards with a cable between them, no disk, no display.
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", str(processors)]
        command += ["-m", "512", "-icount", "shift=1,sleep=off,align=off", "-rtc", "clock=vm"]
        command += ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"]
        for card in ("card0", "card1"):
            command += ["-netdev", f"hubport,id={card},hubid=0"]
            command += [
                "-device",
                f"virtio-net-pci,netdev={card},mac=02:aa:00:00:00:0{card[-1]},speed=1000,duplex=full",
            ]
        command += ["-kernel", str(self.image), "-initrd", str(archive)]
        command += ["-append", "console=ttyS0 quiet panic=-1 rdinit=/init mitigations=off random.trust_cpu=on"]
        with console.open("wb") as log:
            machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            try:
                machine.wait(timeout_s)
            except subprocess.TimeoutExpired:
                machine.kill()
                machine.wait()
        text = console.read_text(errors="replace").replace("\r", "")
        values = dict(re.findall(r"^([\w-]+): (.*)$", text, flags=re.M))
        if "ended" not in values:
            tail = "\n".join(text.splitlines()[-30:])
            raise AssertionError(f"the machine with {self.version} did not come to its end:\n{tail}")
        return values

    def files(self) -> dict[str, bytes]:
        made = {part: self.build(part)[0] for part in OWN}
        files = {"init": (HERE / "guest.sh").read_bytes(), "lib/tc/q_psp.so": (made["psp"] / "q_psp.so").read_bytes()}
        ours = {name: (made[part] / f"{name}.ko").read_bytes() for part, (_, names) in OWN.items() for name in names}
        modules = needed(self.modules, MODULES) | ours
        files |= {f"modules/{name}.ko": data for name, data in modules.items()}
        files["modules/order"] = " ".join(f"{name}.ko" for name in modules).encode()
        files["etc/passwd"] = b"root:x:0:0::/:/bin/sh\n"
        return files | with_libraries(GUEST_TOOLS, "tools")
