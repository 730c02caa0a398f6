"""Reads the properties of this host's processors and of its kernel's scheduler; nothing is measured.

In: files below /proc, /sys and /boot, of which any may be absent, and the clocks' resolutions. Out: `Processors`, each
fact with where it was read, or without a value and with why; and, pure, what that means for a lab. Needs no root.
"""

from __future__ import annotations

import gzip
import os
import platform
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ewan.calibration.host.finding import Finding
from ewan.labs.base.codec import Document, Struct
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.host import cpus_of

CPUS = "sys/devices/system/cpu"
DEBUG = "sys/kernel/debug/sched/preempt"
DMI = "sys/class/dmi/id"
CLOCKS = "sys/devices/system/clocksource/clocksource0"
CLOCK_MONOTONIC_COARSE = 6
"""Advances by the tick, and so its resolution is a tick's length (clock_getres(2))."""

HYPERVISORS: Mapping[str, str] = {
    "KVMKVMKVM": "KVM",
    "MicrosoftHv": "Hyper-V",
    "VMwareVMware": "VMware",
    "XenVMMXenVMM": "Xen",
    "bhyvebhyve": "bhyve",
    "TCGTCGTCGTCG": "QEMU without KVM",
    "VBoxVBoxVBox": "VirtualBox",
    "ACRNACRNACRN": "ACRN",
}
"""By what the hypervisor calls itself (CPUID leaf 0x40000000), its spaces left out."""
MACHINES = ("KVM", "QEMU", "VMware", "VirtualBox", "Xen", "Virtual Machine", "Google Compute", "Amazon EC2", "Bochs")
"""Words of DMI names by which a virtual machine is known."""
NOT_AFFECTED = "Not affected"
UNSTEADY = ("powersave", "ondemand", "conservative", "schedutil")
"""Governors that change the clock frequency with the load."""


class Fact(Struct):
    """`value` as the kernel words it; None where it is unknown. `source`: where it was read, or why it is not known."""

    value: str | None
    source: str

    @property
    def known(self) -> str:
        """For people."""
        return "unknown" if self.value is None else self.value


class Processors(Document, tag="ewan-processors/1"):
    """CPUs are listed as the kernel does: `0-3,8`. `siblings`: threads that share a core, a list for each core that has
    several; `numa_nodes`: the CPUs of each. `mitigations`: what these processors are affected by, and what the kernel
    does about it. `hz`: timer interrupts a second."""

    model: str
    usable: tuple[int, ...]
    online: Fact
    hz: Fact
    preemption: Fact
    tick: Fact
    nohz_full: Fact
    isolated: Fact
    governor: Fact
    idle: Fact
    smt: Fact
    siblings: tuple[str, ...]
    numa_nodes: tuple[str, ...]
    virtualisation: Fact
    clock_source: Fact
    autogroup: Fact
    mitigations: Mapping[str, str]

    @property
    def link_cpu(self) -> int:
        """The CPU on which links spin."""
        return self.usable[-1]


def measure(
    progress: Callable[[str], None] = lambda line: None,
    *,
    hypervisor: str | None = None,
    root: Path = Path("/"),
    usable: Sequence[int] | None = None,
    tick_s: float | None = None,
) -> Processors:
    """Reads all of it; `hypervisor`: what it calls itself (`Timers.hypervisor`). The rest is this machine's where it is
    not given: the tree of files, CPUs that this process may use, the tick's length."""
    progress("processors: reading what the kernel tells")
    read = _Reader(root)
    configuration = configuration_of(root)
    first = read.first_processor()
    cpus = tuple(sorted(os.sched_getaffinity(0) if usable is None else usable))
    return Processors(
        model=first.get("model name", platform.machine()),
        usable=cpus,
        online=read.fact(f"{CPUS}/online"),
        hz=_hz(configuration, time.clock_getres(CLOCK_MONOTONIC_COARSE) if tick_s is None else tick_s),
        preemption=_preemption(read, configuration),
        tick=_tick(configuration),
        nohz_full=read.fact(f"{CPUS}/nohz_full", absent="none"),
        isolated=read.fact(f"{CPUS}/isolated", absent="none"),
        governor=_governor(read),
        idle=_idle(read),
        smt=_smt(read),
        siblings=_groups(read.all(f"{CPUS}/cpu[0-9]*/topology/thread_siblings_list")),
        numa_nodes=tuple(read.all("sys/devices/system/node/node[0-9]*/cpulist").values()),
        virtualisation=_virtualisation(read, first, hypervisor),
        clock_source=read.fact(f"{CLOCKS}/current_clocksource"),
        autogroup=_autogroup(read),
        mitigations={
            Path(name).name: state
            for name, state in read.all(f"{CPUS}/vulnerabilities/*").items()
            if not state.startswith(NOT_AFFECTED)
        },
    )


class _Reader:
    """Files below a root. What cannot be read is None, or a fact without a value."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def text(self, path: str) -> str | None:
        try:
            return (self._root / path).read_text(errors="replace").strip()
        except OSError:
            return None

    def fact(self, path: str, absent: str | None = None) -> Fact:
        """`absent`: what holds where the file is not there, or empty."""
        try:
            text = (self._root / path).read_text(errors="replace").strip()
        except FileNotFoundError:
            return Fact(absent, f"no /{path}")
        except OSError as error:
            return Fact(None, f"/{path}: {error.strerror}")
        return Fact(text or absent or "none", f"/{path}")

    def all(self, pattern: str) -> dict[str, str]:
        """The text of each file that matches, in the order of the numbers in their paths."""
        found = [path for path in self._root.glob(pattern) if path.is_file()]
        found.sort(key=lambda path: ([int(digits) for digits in re.findall(r"\d+", str(path))], str(path)))
        texts = {str(path): self.text(str(path.relative_to(self._root))) for path in found}
        return {path: text for path, text in texts.items() if text}

    def first_processor(self) -> dict[str, str]:
        """The first one of /proc/cpuinfo."""
        lines = (self.text("proc/cpuinfo") or "").split("\n\n")[0].splitlines()
        return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def configuration_of(root: Path = Path("/")) -> dict[str, str] | None:
    """Options of the kernel that are set, from wherever this system keeps them; None where it does not."""
    read = _Reader(root)
    release = read.text("proc/sys/kernel/osrelease") or platform.release()
    for place in ("proc/config.gz", f"boot/config-{release}"):
        try:
            raw = (root / place).read_bytes()
            text = gzip.decompress(raw).decode() if place.endswith(".gz") else raw.decode()
        except (OSError, EOFError, UnicodeDecodeError, zlib.error):
            continue
        lines = (line.partition("=") for line in text.splitlines() if line.startswith("CONFIG_"))
        return {key: value for key, _, value in lines}
    return None


def _hz(configuration: Mapping[str, str] | None, tick_s: float) -> Fact:
    if configuration is not None and (hz := configuration.get("CONFIG_HZ")):
        return Fact(hz, "CONFIG_HZ")
    # Where there are timers of high resolution, other clocks tell them, and this one the tick's length all the same.
    if tick_s > 1 / NS_PER_SECOND:
        return Fact(str(round(1 / tick_s)), "resolution of CLOCK_MONOTONIC_COARSE")
    return Fact(None, "no kernel configuration, and CLOCK_MONOTONIC_COARSE tells no tick")


def _preemption(read: _Reader, configuration: Mapping[str, str] | None) -> Fact:
    """The preemption model that was chosen at run time, if that can be read; otherwise at boot; otherwise when the
    kernel was built."""
    if (text := read.text(DEBUG)) and (chosen := re.search(r"\((\w+)\)", text)):
        return Fact(chosen[1], f"/{DEBUG}")
    if read.text("sys/kernel/realtime") == "1":
        return Fact("realtime", "/sys/kernel/realtime")
    version = read.text("proc/version") or ""
    if "PREEMPT_RT" in version:
        return Fact("realtime", "/proc/version")
    dynamic = "PREEMPT_DYNAMIC" in version
    boot = re.search(r"(?:^|\s)preempt=(\w+)", read.text("proc/cmdline") or "")
    if dynamic and boot:
        return Fact(boot[1], "/proc/cmdline")
    models = {"LAZY": "lazy", "NONE": "none", "VOLUNTARY": "voluntary"}
    for option, model in models.items():
        if configuration is not None and configuration.get(f"CONFIG_PREEMPT_{option}") == "y":
            return Fact(model, f"CONFIG_PREEMPT_{option}")
    if configuration is not None and configuration.get("CONFIG_PREEMPT") == "y":
        return Fact("full", "CONFIG_PREEMPT")
    if dynamic:
        return Fact(None, f"chosen at boot: /{DEBUG} tells it to root, and there is no kernel configuration")
    if re.search(r"\bPREEMPT\b", version):
        return Fact("full", "/proc/version")
    return Fact(None, "no kernel configuration, and /proc/version does not say")


def _tick(configuration: Mapping[str, str] | None) -> Fact:
    """The CPUs on which the timer interrupt stops: none, idle ones, or also those of nohz_full."""
    if configuration is None:
        return Fact(None, "no kernel configuration")
    options = (("CONFIG_NO_HZ_FULL", "stops on idle CPUs, and on those of nohz_full"),
               ("CONFIG_NO_HZ_IDLE", "stops on idle CPUs"), ("CONFIG_HZ_PERIODIC", "never stops"))  # fmt: skip
    for option, meaning in options:
        if configuration.get(option) == "y":
            return Fact(meaning, option)
    return Fact(None, "the kernel configuration does not say")


def _governor(read: _Reader) -> Fact:
    found = read.all(f"{CPUS}/cpu[0-9]*/cpufreq/scaling_governor")
    if not found:
        return Fact(None, f"no /{CPUS}/cpu0/cpufreq: the firmware or the hypervisor sets the frequency")
    return Fact(", ".join(dict.fromkeys(found.values())), f"/{CPUS}/cpu*/cpufreq/scaling_governor")


def _idle(read: _Reader) -> Fact:
    """The idle driver and governor, which determine how long an idle CPU takes to wake up."""
    driver, governor = (read.text(f"{CPUS}/cpuidle/current_{what}") for what in ("driver", "governor"))
    if driver is None:
        return Fact(None, f"no /{CPUS}/cpuidle/current_driver")
    return Fact(f"{driver}, {governor}" if governor else driver, f"/{CPUS}/cpuidle")


def _smt(read: _Reader) -> Fact:
    active = read.fact(f"{CPUS}/smt/active")
    return Fact({"0": "off", "1": "on"}.get(active.value or "", active.value), active.source)


def _groups(lists: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in lists.values() if len(cpus_of(each)) > 1))


def _virtualisation(read: _Reader, first: Mapping[str, str], hypervisor: str | None) -> Fact:
    if hypervisor:
        return Fact(HYPERVISORS.get(hypervisor, hypervisor), "CPUID")
    if name := read.text("sys/hypervisor/type"):
        return Fact(name, "/sys/hypervisor/type")
    flagged = "hypervisor" in first.get("flags", "").split()
    vendor, product = (read.text(f"{DMI}/{name}") for name in ("sys_vendor", "product_name"))
    named = " ".join(word for word in (vendor, product) if word)
    if named and (flagged or any(word in named for word in MACHINES)):
        return Fact(named, f"/{DMI}")
    if flagged:
        return Fact("a hypervisor", "/proc/cpuinfo")
    if "flags" in first or named:
        return Fact("none", "/proc/cpuinfo" if "flags" in first else f"/{DMI}")
    return Fact(None, "neither CPUID nor DMI can be read")


def _autogroup(read: _Reader) -> Fact:
    found = read.fact("proc/sys/kernel/sched_autogroup_enabled", absent="off")
    return Fact({"0": "off", "1": "on"}.get(found.value or "", found.value), found.source)


def findings(processors: Processors) -> Iterator[Finding]:
    """Findings on the processors that a lab on this host can expect."""
    yield _scheduler(processors)
    yield _frequency(processors)
    yield from _cores(processors)
    yield _machine(processors)
    source = processors.clock_source
    good = source.value == "tsc"
    meaning = "time is read without a system call" if good else "each look at the clock is dearer; releases are later"
    yield Finding("clock source", source.known, "good" if good else "limited", meaning)
    if processors.mitigations:
        meaning = "system calls, and so packets, take longer than without (mitigations= of the kernel's command line)"
        yield Finding("mitigations", ", ".join(processors.mitigations), "good", meaning)


def _scheduler(processors: Processors) -> Finding:
    found = f"HZ {processors.hz.known}, preemption {processors.preemption.known}"
    quiet = cpus_of(processors.nohz_full.value or "")
    if processors.link_cpu in quiet:
        found += f", no tick on CPU {processors.link_cpu}"
    meaning = "how long a program waits for a CPU that is busy, and how often the tick interrupts it"
    return Finding("scheduler", found, "good", meaning)


def _frequency(processors: Processors) -> Finding:
    governor = processors.governor
    words = [word.strip() for word in (governor.value or "").split(",")]
    if governor.value is None:
        return Finding("frequency", "not set by this kernel", "good", governor.source)
    unsteady = [word for word in words if word in UNSTEADY]
    if unsteady:
        meaning = "idle CPUs are slow at first, so packets/s vary: cpupower frequency-set -g performance"
        return Finding("frequency", f"governor {governor.value}", "limited", meaning)
    return Finding("frequency", f"governor {governor.value}", "good", "CPUs are as fast after a pause as before")


def _cores(processors: Processors) -> Iterator[Finding]:
    own = processors.link_cpu
    beside = [cpu for group in processors.siblings if own in cpus_of(group) for cpu in cpus_of(group) if cpu != own]
    if beside:
        meaning = f"a busy program there slows links down: keep it free (cpus: {{hosts: […]}} without {beside[0]})"
        yield Finding("shared core", f"CPU {own} of the links shares one with CPU {beside[0]}", "limited", meaning)
    elif processors.smt.value is not None:
        yield Finding("shared core", "none with the links' CPU", "good", "no other thread slows links down")
    if len(processors.numa_nodes) > 1:
        found = f"{len(processors.numa_nodes)} nodes: CPUs {'; '.join(processors.numa_nodes)}"
        meaning = "packets between them take longer: keep a lab on one (taskset, or cpus: of the description)"
        yield Finding("NUMA", found, "limited", meaning)


def _machine(processors: Processors) -> Finding:
    found = processors.virtualisation
    if found.value in (None, "none"):
        return Finding("virtualisation", found.known, "good", "no hypervisor takes CPUs away")
    meaning = "the hypervisor may take CPUs away (steal), and each timer interrupt is dearer"
    return Finding("virtualisation", str(found.value), "limited", meaning)
