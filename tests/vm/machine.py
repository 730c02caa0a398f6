"""A virtual machine with one of Debian's own kernels: fetched, given our modules, booted once, its console returned.

In: a package name (linux-image-amd64). Out: what guest.sh printed. Nothing is installed on the host: packages are
downloaded with apt-get and unpacked into the cache (images/cache.sh). QEMU emulates the processor in software, so no
/dev/kvm and no root is needed. The machine's clock counts its instructions and leaps where it is idle: what this host
does beside it changes nothing.
"""

from __future__ import annotations

import fcntl
import lzma
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

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
MODULES = ("veth", "sch_netem", "cls_u32", "sch_ingress", "cls_matchall", "act_mirred", "sch_tbf")
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


class MissingError(Exception):
    """Something this host lacks, in one line, with the remedy."""


def check_tools() -> None:
    absent = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if absent:
        raise MissingError(f"the virtual machine needs packages: apt install {' '.join(absent)}")


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise MissingError(f"{' '.join(str(part) for part in command)}: {said[-1] if said else done.returncode}")
    return done.stdout


def depends(package: str, pattern: str) -> list[str]:
    """The packages it depends on directly whose names match."""
    lines = run("apt-cache", "depends", "--no-recommends", "--no-suggests", package).splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if "Depends:" in line]
    return [name for name in names if re.fullmatch(pattern, name)]


def fetch(packages: Iterable[str], into: Path) -> None:
    """Download and unpack, once; `into` then holds the packages' files. Whoever comes meanwhile waits."""
    done, archives = into / ".done", into / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    with (into / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            return
        run("apt-get", "download", *packages, cwd=archives)
        for archive in archives.glob("*.deb"):
            run("dpkg-deb", "-x", archive, into)
        shutil.rmtree(archives)
        done.touch()


class Kernel:
    """One of Debian's kernels for amd64, with the headers to build a module for it.

    `image` and `headers` are the packages that always depend on the newest version.
    """

    def __init__(self, image: str, headers: str) -> None:
        check_tools()
        try:
            package = depends(image, r"linux-image-[\d.].*")[0]
            headers_package = depends(headers, r"linux-headers-[\d.].*-amd64")[0]
            parts = depends(headers_package, r"linux-(headers-.*-common|kbuild-.*)")
        except IndexError:
            raise MissingError(f"apt knows no {image}: enable bookworm-security, then apt update") from None
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

    def needed(self, names: Iterable[str]) -> dict[str, bytes]:
        """These modules and all they depend on, each after those it needs; what the kernel has built in is left out."""
        found: dict[str, bytes] = {}
        for name in names:
            paths = list(self.modules.rglob(f"{name}.ko*")) + list(self.modules.rglob(f"{name.replace('_', '-')}.ko*"))
            if not paths:
                continue
            data = paths[0].read_bytes()
            if paths[0].suffix == ".xz":
                data = lzma.decompress(data)
            depends_on = re.search(rb"\0depends=([^\0]*)\0", data)
            if depends_on and depends_on[1]:
                found |= self.needed(depends_on[1].decode().split(","))
            found[name] = data
        return found

    def boot(self, more: dict[str, bytes], processors: int, timeout_s: float) -> dict[str, str]:
        """Runs guest.sh, with `more` files, and returns its "name: value" lines."""
        archive = self.work / "initramfs.gz"
        pack(self.files() | more, archive)
        console = self.work / "console.log"
        # One thread for all processors: with one each, QEMU 7.2 at times runs code that the kernel has just patched
        # (static keys) as it was before, and the kernel stops at a breakpoint (int3) that is no longer there.
        # 2 ns an instruction. No network card, no disk, no display.
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", str(processors)]
        command += ["-m", "512", "-icount", "shift=1,sleep=off,align=off", "-rtc", "clock=vm"]
        command += ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"]
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
        modules = self.needed(MODULES) | ours
        files |= {f"modules/{name}.ko": data for name, data in modules.items()}
        files["modules/order"] = " ".join(f"{name}.ko" for name in modules).encode()
        files["etc/passwd"] = b"root:x:0:0::/:/bin/sh\n"
        for tool in GUEST_TOOLS:
            path = Path(shutil.which(tool) or tool).resolve()
            files[f"tools/{tool}"] = path.read_bytes()
            for library in libraries(path):
                files[library.lstrip("/")] = Path(library).read_bytes()
        return files


def libraries(program: Path) -> list[str]:
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True)
    return re.findall(r"(/\S+) \(0x", done.stdout)


def pack(files: dict[str, bytes], archive: Path) -> None:
    """An initramfs: a cpio archive in the "newc" format (kernel: driver-api/early-userspace/buffer-format)."""
    folders = {str(parent) for name in files for parent in Path(name).parents if str(parent) != "."}
    folders |= {"proc", "sys", "dev", "run", "tmp", "etc", "bin"}
    entries = [(name, 0o040755, b"") for name in sorted(folders)]
    entries += [(name, 0o100755, data) for name, data in files.items()]
    entries.append(("TRAILER!!!", 0, b""))
    plain = archive.with_suffix("")
    with plain.open("wb") as out:
        for inode, (name, mode, data) in enumerate(entries, 1):
            fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
            head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
            out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))
    run("gzip", "-1", "-f", "-k", plain)
    plain.with_name(plain.name + ".gz").replace(archive)
