"""Reports which labs this machine can run, and the consequence of each part that it lacks.

In: /proc, the environment, the kernel's configuration where it is readable, `ewan-node timers`, and what was tried.
Out: findings, in an order for reading. Changes nothing on the machine.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from ewan.calibration.host import surroundings, timers, trials
from ewan.calibration.host.finding import Finding, Verdict
from ewan.calibration.host.processors import configuration_of
from ewan.labs import images
from ewan.labs.base.product import INSTALLED, extra
from ewan.labs.base.units.shown import about
from ewan.labs.record import host_facts
from ewan.labs.runtime import bpf_programs, clab, container_engine, memory_homes, wall
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.kernel import MACHINE
from ewan.labs.runtime.kernel import built as kernel_of_virtual_clock
from ewan.labs.runtime.memory import free_memory_bytes

COMPILERS = ("gcc", "make", "flex", "bison", "bc", "cargo")
"""Tools that build the virtual kernel and that not every Linux has."""
TIMERS_S = 1.5
"""A part of what is worth knowing of the timers; `ewan measure host` takes longer."""


def findings(binary: Path, environment: Mapping[str, str]) -> list[Finding]:
    """All that was found; the timers are measured, which takes about two seconds."""
    tried = trials.live(os.geteuid() == 0)
    clocks = timers.findings(timers.measure(binary, TIMERS_S, lambda line: None))
    inside = [*privileges(), *live(tried), *processors(), *kernel(tried)]
    parts = [*virtual(binary), *containers(binary), *tools(), *(packages() if INSTALLED else ())]
    return [*around(environment).findings(), *inside, *clocks, *parts]


def around(environment: Mapping[str, str]) -> surroundings.Surroundings:
    """The surroundings of this machine."""
    marks = [mark for mark in surroundings.MARKS if Path(mark).exists()]
    version = Path("/proc/version").read_text(errors="replace")
    return surroundings.Surroundings(platform.machine(), version, environment, marks)


def live(tried: trials.LiveTrial) -> Iterator[Finding]:
    """Findings on whether live labs can be made."""
    root = os.geteuid() == 0
    yield trials.live_finding(tried, root, shutil.which("sudo") is not None)


def privileges() -> Iterator[Finding]:
    """Who is asking."""
    if os.geteuid() == 0:
        yield Finding("privileges", "root", "good", "what live labs need")
    elif shutil.which("sudo"):
        yield Finding("privileges", "sudo", "good", "what live labs need, if it lets you be root")
    else:
        yield Finding("privileges", "neither root nor sudo", "limited", "simulated time needs none")


def processors() -> Iterator[Finding]:
    """CPUs to spin on, and free memory."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == 1:
        meaning = "links share the only CPU with the hosts: delays are off by milliseconds"
        yield Finding("CPUs", "1", "limited", meaning)
    else:
        found = f"{len(cpus)} ({host_facts({}).cpu_model})"
        yield Finding("CPUs", found, "good", f"links spin on CPU {cpus[-1]}, hosts run on the rest")
    yield Finding(
        "free memory",
        about(free_memory_bytes(), "size"),
        "good",
        "holds what is in flight: rate × delay + queue, per direction",
    )


# option → (name, where it is used, what its absence means)
OPTIONS = {
    "CONFIG_NET_NS": ("network namespaces", "every node is one", "no live lab"),
    "CONFIG_VETH": ("veth", "every wire is a pair", "no live lab"),
    "CONFIG_NET_SCH_TBF": ("tbf", "holds the rate of access links", "access links cannot be limited"),
    "CONFIG_IPV6": ("IPv6", "ip: 6 and dual", "only ip: 4"),
    "CONFIG_NET_SCH_NETEM": ("netem", "can be compared with the user link", "not needed: links are our own"),
}


def kernel(tried: trials.LiveTrial) -> Iterator[Finding]:
    """Findings on the parts of the kernel that live labs use: as they were tried, else as configured."""
    yield Finding("kernel", platform.release(), "good", "Linux")
    configuration = configuration_of()
    if configuration is None:
        yield Finding("kernel options", "not readable", "limited", "found out when a lab comes up")
    for option, (name, use, absence) in OPTIONS.items():
        told = configuration is not None and configuration.get(option) in ("y", "m")
        present = told or name in tried.worked or (option == "CONFIG_NET_NS" and bool(tried.worked))
        if configuration is None and not present:
            continue
        needed: Verdict = "missing" if absence == "no live lab" else "limited"
        needed = "good" if absence.startswith("not needed") else needed
        yield Finding(
            name, "present" if present else "absent", "good" if present else needed, use if present else absence
        )
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    yield Finding(
        "congestion controls",
        " ".join(available),
        "good" if "cubic" in available else "limited",
        "for congestion: in scenarios",
    )


def virtual(binary: Path) -> Iterator[Finding]:
    """Findings on the needs of the virtual clock: its kernel, or the tools that build it, and shared memory to hold a
    lab."""
    if platform.machine() != MACHINE:
        return
    built, lacking = kernel_of_virtual_clock(), [name for name in COMPILERS if not shutil.which(name)]
    if built is not None:
        yield trials.simulated(binary, built)
        yield trials.walled(wall.found(binary), "root" if os.geteuid() == 0 else "user")
    elif not lacking:
        yield Finding("simulated time", "kernel not built yet", "good", "built on first use, or by make kernel")
    else:
        meaning = "none yet: a release bundle (docs/start/install.md), or install what is missing"
        yield Finding("simulated time", f"no kernel; {', '.join(lacking)} missing", "limited", meaning)
    try:
        home = memory_homes.found(binary=binary)
    except LabError as error:
        yield Finding("shared memory", "not usable", "limited", str(error))
    else:
        if home.free_bytes is None:
            room = f"{memory_homes.SHARED_MEMORY} not usable, a file system of its own"
        else:
            room = f"{about(home.free_bytes, 'size')} in {home.directory}"
        yield Finding("shared memory", room, "good", "holds a lab of the virtual clock")


def containers(binary: Path) -> Iterator[Finding]:
    """Findings on the needs of labs of containers; without an engine labs are made of namespaces."""
    try:
        found = container_engine.find()
    except LabError as error:
        yield Finding("container engine", "none answers", "limited", f"no labs of containers: {error}")
    else:
        yield Finding("container engine", f"{found.kind} {found.version()}", "good", "labs of containers")
        wanted = [images.image(kind) for kind in images.KINDS]
        there, digest = found.images(wanted), images.digest(binary)
        labels = {name: dict(there[name].labels) if name in there else None for name in wanted}
        wrong = [each for name in wanted if (each := images.complaint(name, labels[name], digest))]
        meaning = f"no labs of containers: {wrong[0]}" if wrong else "what nodes of containers are made of"
        shown = f"{len(wanted) - len(wrong)} of {len(wanted)}, {images.TAG}"
        yield Finding("container images", shown, "limited" if wrong else "good", meaning)
    try:
        path = clab.binary()
        with clab.version_of(path) as version:
            yield Finding("containerlab", version(), "good", "wires containers")
    except LabError as error:
        yield Finding("containerlab", "absent", "limited", f"no labs of containers: {error}")


def tools() -> Iterator[Finding]:
    """Programs that people use in nodes."""
    for tool, use in (
        ("ip", "to look at namespaces by hand"),
        ("ping", "in nodes"),
        ("iperf3", "in nodes"),
        ("tcpdump", "in nodes"),
    ):
        found = shutil.which(tool)
        yield Finding(tool, "present" if found else "absent", "good" if found else "limited", use)
    for tool, (package, there) in bpf_programs.tools().items():
        meaning = "no congestion control of yours that is a BPF program, in live labs: apt install"
        if there:
            yield Finding(tool, "present", "good", "for congestion controls that are BPF programs, in live labs")
        else:
            yield Finding(tool, "absent", "limited", f"{meaning} {package}")


OPTIONAL = {
    "report": ("figures, comparisons, archives", ("matplotlib", "scipy", "rocrate")),
    "studio": ("the lab in a browser", ("starlette", "uvicorn", "websockets")),
    "containers": ("labs over several machines", ("asyncssh",)),
    "cluster": ("runs on other machines' cores", ("distributed", "dask_jobqueue")),
    "notebook": ("notebooks of teaching labs", ("jupyterlab", "ipykernel")),
}
"""The extras of the package: what each is for, and the modules that it brings."""


def packages() -> Iterator[Finding]:
    """Findings on the extras of the installed package."""
    for name, (use, modules) in OPTIONAL.items():
        lacking = [module for module in modules if importlib.util.find_spec(module) is None]
        if lacking:
            remedy = extra(name, "make setup")
            yield Finding(f"ewan[{name}]", f"{', '.join(lacking)} missing", "limited", f"without {use}: {remedy}")
        else:
            yield Finding(f"ewan[{name}]", "present", "good", use)
