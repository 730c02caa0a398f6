"""Builds what machines of a lab boot: one of Debian's own kernels, and an initramfs with the programs of a host.

usage: python3 -m images.machine.build NAME KEPT LINK

In: a machine's name, the directory of the cache for these. Out: in it, below the hash of what went in, `kernel`,
`initramfs.gz` and `release` (what `uname -r` will say); LINK shows it. One line and status 2 where this host lacks
something.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from images.machine import stock

HERE = Path(__file__).resolve().parent
KERNELS = {"debian-12": ("linux-image-amd64", "6.1.")}
"""By the name of a machine: the package that depends on its newest kernel, and how that kernel's version begins."""
TOOLS = {
    "busybox": "busybox-static",
    "dash": "dash",
    "dropbear": "dropbear-bin",
    "ip": "iproute2",
    "ss": "iproute2",
    "tc": "iproute2",
    "iperf3": "iperf3",
    "ping": "iputils-ping",
    "setpriv": "util-linux",
}
"""Programs of the guest, and the packages that have them."""
MODULES = ("virtio_pci", "virtio_net", "qemu_fw_cfg", "tcp_diag", "sch_fq")
TUNNELS = ("ip_gre", "ip6_gre", "vxlan", "wireguard")
"""Modules that only a machine at which tunnels end loads: some bring interfaces with them."""
UNPACKED = {"wg": "wireguard-tools"}
"""Programs of the guest that this host need not have: they are taken out of their packages, and load only libc."""
CONGESTION = "kernel/net/ipv4/tcp_*.ko*"


def main(name: str, kept: Path, link: Path) -> None:
    """Builds it where it is not there."""
    image, begins = KERNELS[name]
    stock.check_tools({**TOOLS, "qemu-system-x86_64": "qemu-system-x86", "apt-get": "apt", "dpkg-deb": "dpkg"})
    package = stock.kernel_package(image)
    release = package.removeprefix("linux-image-")
    if not release.startswith(begins):
        raise stock.MissingError(f"{image} is {release} here, and {name} has {begins}x: build it on {name}")
    programs = stock.with_libraries(TOOLS, "usr/bin")
    built = kept / _key(package, programs)
    if not (built / "release").exists():
        print(f"machine: {name}: fetching {package} and packing it", file=sys.stderr)
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept) as work:
            _build(package, release, programs, Path(work))
            built.mkdir(exist_ok=True)  # whoever was quicker built the same
            for part in ("kernel", "initramfs.gz", "release"):
                (Path(work) / part).replace(built / part)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(built)


def _key(package: str, programs: dict[str, bytes]) -> str:
    digest = hashlib.sha256(package.encode())
    for source in sorted(HERE.glob("*")):
        if source.is_file():
            digest.update(source.read_bytes())
    for path, data in sorted(programs.items()):
        digest.update(path.encode() + hashlib.sha256(data).digest())
    return digest.hexdigest()[:16]


def _build(package: str, release: str, programs: dict[str, bytes], work: Path) -> None:
    root = work / "packages"
    stock.fetch([package, *UNPACKED.values()], root)
    modules = root / "lib/modules" / release
    congestion = {path.name.partition(".")[0] for path in modules.glob(CONGESTION)}
    loaded = stock.needed(modules, (*MODULES, *sorted(congestion)))
    of_tunnels = {name: data for name, data in stock.needed(modules, TUNNELS).items() if name not in loaded}
    files = {f"modules/{name}.ko": data for name, data in (loaded | of_tunnels).items()}
    files |= programs | {f"usr/bin/{name}": (root / "usr/bin" / name).read_bytes() for name in UNPACKED}
    for order, names in (("order", loaded), ("tunnels", of_tunnels)):
        files[f"modules/{order}"] = "".join(f"/modules/{name}.ko\n" for name in names).encode()
    files["init"] = (HERE / "init").read_bytes()
    files["machine/run"] = (HERE / "run").read_bytes()
    files["etc/passwd"] = b"root:x:0:0::/root:/bin/sh\n"
    files["etc/shells"] = b"/bin/sh\n"
    stock.pack(files, work / "initramfs.gz")
    shutil.copy(root / "boot" / f"vmlinuz-{release}", work / "kernel")
    (work / "release").write_text(release + "\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    except stock.MissingError as missing:
        print(f"machine: {missing}", file=sys.stderr)
        sys.exit(2)
