"""`python -m tests.vm.host_modules`, as root: congestion controls of a user's own in Debian's own kernels, by live
commands in an emulated machine.

The machine's root is this one's, read by 9p; what it changes is in its memory. `ewan transfer --load-module` compiles a
module there with the kernel's headers, loads it and unloads it; one command is killed, and `ewan down` unloads what it
left. Nothing is loaded into this machine's kernel. Each row is a result; the exit status is 1 where one is otherwise.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from images.machine.stock import needed, pack, with_libraries
from tests.vm.machine import HERE, ROOT, Kernel

KERNELS = {
    "6.1": ("linux-image-amd64", "linux-headers-amd64"),
    "6.12": ("linux-image-6.12-amd64", "linux-headers-6.12-amd64"),
}
MODULES = ("virtio_pci", "9p", "9pnet_virtio", "overlay", "veth", "sch_tbf", "af_packet")
LONGEST_S = 1800
OURS = "tcp_mine.c: this machine's kernel"
SIGNED = "it takes only modules that are signed with a key of its own, or none any more: run it with --runtime virtual"
EXPECTED = {
    "without": "ewan: congestion control mine: this machine's kernel does not have it: --load-module compiles tcp_mine",
    "with": "mine .*Mbit/s",
    "afterwards": "0$",
    "killed": "1$",
    "down": "module tcp_mine, which a command had left loaded, is unloaded$",
    "removed": "0 $",
    "parameter": "4$",
    "twice": f"{OURS} has a module tcp_mine already",
    "unloaded": r"False False \[\]$",
    "used": r"True \['module tcp_mine stays loaded, as a socket uses it: later, ewan down unloads it'\]$",
    "later": r"\[\] False False$",
    "text": 'tcp_mine.c: parameter alpha "x": write a whole number$',
    "controls": "tcp_mine.c: this kernel has no congestion control other when it is registered",
    "undo": f"{OURS} does not load it: a congestion control needs ssthresh, undo_cwnd",
    "taken": f"{OURS} does not load it: it has a congestion control of this name",
    "syntax": "tcp_mine.c: it does not compile: 1 error of its lines",
    "configuration": f"{OURS} does not load it: it has another version or configuration than the headers",
    "foreign": f"{OURS} has a module tcp_mine already",
    "left": r"\[\] True False True$",
    "version": "tcp_mine.c: the headers in .* are of Linux 9.9, and this kernel is",
    "headers": "tcp_mine.c: the headers of this kernel are not in .*: apt install linux-headers-",
    "lockdown": rf"{OURS} is locked down \(integrity, Secure Boot\): {SIGNED}",
    "signature": f"{OURS} does not load it: {SIGNED}",
}


def results(kernel: Kernel, folder: Path) -> dict[str, str]:
    """The lines of the machine, by their names."""
    modules = needed(kernel.modules, MODULES)
    files = {f"modules/{name}.ko": content for name, content in modules.items()}
    files["modules/order"] = " ".join(f"{name}.ko" for name in modules).encode()
    files |= {
        "init": (HERE / "whole.sh").read_bytes(),
        "checkout": str(ROOT).encode(),
        "kept": str(kernel.root).encode(),
    }
    files |= {"given/script": (HERE / "host_modules.sh").read_bytes()}
    files |= {"given/cases.py": (HERE / "host_modules_cases.py").read_bytes()}
    added = [path for path in folder.rglob("*") if path.is_file()]
    files |= {f"given/data/{path.relative_to(folder)}": path.read_bytes() for path in added}
    pack(files | with_libraries(["busybox"], "usr/bin"), archive := kernel.work / "host_modules.gz")
    words = ["qemu-system-x86_64", "-accel", "tcg,thread=single,tb-size=512", "-cpu", "max", "-m", "2048"]
    words += ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"]
    words += ["-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"]
    words += ["-kernel", str(kernel.image), "-initrd", str(archive)]
    words += ["-append", "console=ttyS0 quiet panic=-1 rdinit=/init mitigations=off random.trust_cpu=on"]
    console = kernel.work / "host_modules.log"
    with console.open("wb") as log:
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=log, timeout=LONGEST_S, check=True)
    said = console.read_text(errors="replace").replace("\r", "")
    return dict(re.findall(r"^([\w-]+): (.*)$", said, flags=re.MULTILINE))


def main() -> int:
    """Prints each result, for the kernels that are named, or for all."""
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        words: list[Path | str] = [ROOT / ".venv/bin/ewan", "cc", "add", ROOT / "labs/congestion/tests/tcp_mine.c"]
        subprocess.run(words, env={**os.environ, "XDG_DATA_HOME": scratch}, check=True, stdout=subprocess.DEVNULL)
        for name in sys.argv[1:] or KERNELS:
            kernel = Kernel(*KERNELS[name])
            found = results(kernel, folder)
            for key, pattern in EXPECTED.items():
                fits = re.match(pattern, found.get(key, "")) is not None
                wrong += not fits
                print(
                    f"{kernel.version}  {'as expected' if fits else 'OTHERWISE'}  {key}: {found.get(key)}", flush=True
                )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
