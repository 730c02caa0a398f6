"""Processors of a host: facts from captured files of several machines, files that are absent, and what follows."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from ewan.calibration.host import processors
from ewan.calibration.host.processors import DMI, Fact, Processors
from ewan.labs.base import codec
from ewan.labs.host import cpus_of

CPUS = "sys/devices/system/cpu"

GUEST: Mapping[str, str] = {
    "proc/version": "Linux version 6.18.44 (builder@host) (gcc (GCC) 15.3.0) #1 SMP PREEMPT_DYNAMIC @0\n",
    "proc/cmdline": "console=ttyS0 quiet reboot=k panic=1\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu tsc hypervisor\n\nprocessor\t: 1\n",
    f"{CPUS}/online": "0-1\n",
    f"{CPUS}/isolated": "\n",
    f"{CPUS}/smt/active": "0\n",
    f"{CPUS}/cpu0/topology/thread_siblings_list": "0\n",
    f"{CPUS}/cpu1/topology/thread_siblings_list": "1\n",
    f"{CPUS}/cpuidle/current_driver": "haltpoll\n",
    f"{CPUS}/cpuidle/current_governor": "haltpoll\n",
    f"{CPUS}/vulnerabilities/meltdown": "Not affected\n",
    f"{CPUS}/vulnerabilities/spectre_v2": "Mitigation: Retpolines; STIBP: disabled\n",
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "proc/sys/kernel/sched_autogroup_enabled": "1\n",
}
"""A small virtual machine, without the kernel's configuration."""

OPTIONS = "# Linux\nCONFIG_HZ=250\nCONFIG_HZ_250=y\n# CONFIG_NO_HZ_FULL is not set\nCONFIG_NO_HZ_IDLE=y\n"

SERVER: Mapping[str, str] = {
    "proc/version": "Linux version 6.1.0-37-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 preempt=full nohz_full=2-3,6-7 isolcpus=3\n",
    "proc/sys/kernel/osrelease": "6.1.0-37-amd64\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6226R\nflags\t\t: fpu tsc\n",
    "boot/config-6.1.0-37-amd64": OPTIONS + "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n",
    f"{CPUS}/online": "0-7\n",
    f"{CPUS}/nohz_full": "2-3,6-7\n",
    f"{CPUS}/isolated": "3\n",
    f"{CPUS}/smt/active": "1\n",
    **{f"{CPUS}/cpu{k}/topology/thread_siblings_list": f"{k % 4},{k % 4 + 4}\n" for k in range(8)},
    **{f"{CPUS}/cpu{k}/cpufreq/scaling_governor": "powersave\n" for k in range(8)},
    "sys/devices/system/node/node0/cpulist": "0-1,4-5\n",
    "sys/devices/system/node/node1/cpulist": "2-3,6-7\n",
    "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
    "sys/class/dmi/id/product_name": "PowerEdge R640\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
}
"""A machine of one's own with two sockets."""


def tree(root: Path, files: Mapping[str, str], **more: str) -> Path:
    for name, text in {**files, **more}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return root


def read(root: Path, usable: tuple[int, ...] = (0, 1), hypervisor: str | None = None, tick_s: float = 0) -> Processors:
    return processors.measure(root=root, usable=usable, hypervisor=hypervisor, tick_s=tick_s)


def test_a_virtual_machine(tmp_path: Path) -> None:
    found = read(
        tree(tmp_path, GUEST, **{"proc/config.gz": OPTIONS + "CONFIG_PREEMPT_NONE=y\n"}), hypervisor="KVMKVMKVM"
    )
    assert found.model == "AMD EPYC"
    assert found.hz == Fact("250", "CONFIG_HZ")
    assert found.preemption == Fact("none", "CONFIG_PREEMPT_NONE")
    assert found.tick == Fact("stops on idle CPUs", "CONFIG_NO_HZ_IDLE")
    assert (found.isolated.value, found.nohz_full.value) == ("none", "none")
    assert found.governor.value is None and "cpufreq" in found.governor.source
    assert found.idle.value == "haltpoll, haltpoll"
    assert (found.smt.value, found.siblings, found.numa_nodes) == ("off", (), ("0-1",))
    assert found.virtualisation == Fact("KVM", "CPUID")
    assert found.mitigations == {"spectre_v2": "Mitigation: Retpolines; STIBP: disabled"}
    assert codec.decode(Processors, codec.sorted_line(found), "processors") == found


def test_a_server(tmp_path: Path) -> None:
    found = read(tree(tmp_path, SERVER), usable=tuple(range(8)))
    assert found.preemption == Fact("full", "/proc/cmdline")
    assert (found.nohz_full.value, found.isolated.value) == ("2-3,6-7", "3")
    assert found.governor.value == "powersave"
    assert found.siblings == ("0,4", "1,5", "2,6", "3,7")
    assert found.numa_nodes == ("0-1,4-5", "2-3,6-7")
    assert found.virtualisation.value == "none"
    words = {each.what: each for each in processors.findings(found)}
    assert "no tick on CPU 7" in words["scheduler"].found
    assert words["shared core"].found == "CPU 7 of the links shares one with CPU 3"
    limited = {what for what, each in words.items() if each.verdict == "limited"}
    assert limited == {"frequency", "shared core", "NUMA", "clock source"}


def test_nothing_there_is_no_error(tmp_path: Path) -> None:
    found = read(tmp_path, usable=(0,))
    facts = [getattr(found, name) for name in Processors.__struct_fields__]
    unknown = [fact for fact in facts if isinstance(fact, Fact) and fact.value is None]
    # What is absent means something for three of them.
    assert len(unknown) == len([fact for fact in facts if isinstance(fact, Fact)]) - 3
    assert all(fact.source for fact in unknown)
    assert list(processors.findings(found))
    assert codec.decode(Processors, codec.sorted_line(found), "processors") == found


@pytest.mark.parametrize(
    "files, model",
    [
        ({processors.DEBUG: "none voluntary (full) lazy\n", "proc/cmdline": "preempt=none"}, "full"),
        ({"sys/kernel/realtime": "1\n"}, "realtime"),
        ({"proc/version": "Linux version 6.6 #1 SMP PREEMPT_RT Debian"}, "realtime"),
        ({"proc/version": "6.6 #1 SMP PREEMPT_DYNAMIC", "proc/cmdline": "quiet preempt=voluntary"}, "voluntary"),
        ({"proc/version": "Linux version 5.4 #1 SMP PREEMPT"}, "full"),
        ({"proc/version": "Linux version 5.4 #1 SMP", "proc/config.gz": "CONFIG_PREEMPT_VOLUNTARY=y\n"}, "voluntary"),
        ({"proc/version": "Linux version 6.6 #1 SMP PREEMPT_DYNAMIC"}, None),
        ({"proc/version": "Linux version 5.4 #1 SMP"}, None),
        ({"proc/version": "Linux version 5.4 #1 SMP", "proc/config.gz": "CONFIG_PREEMPT=y\n"}, "full"),
    ],
)  # fmt: skip
def test_the_preemption_model(tmp_path: Path, files: Mapping[str, str], model: str | None) -> None:
    assert read(tree(tmp_path, files)).preemption.value == model


def test_the_tick_is_told_by_the_coarse_clock_where_there_is_no_configuration(tmp_path: Path) -> None:
    assert read(tree(tmp_path, GUEST), tick_s=0.004).hz == Fact("250", "resolution of CLOCK_MONOTONIC_COARSE")
    assert read(tree(tmp_path, GUEST), tick_s=1e-9).hz.value is None


@pytest.mark.parametrize(
    "files, hypervisor, name",
    [
        ({}, "VMwareVMware", "VMware"),
        ({}, "SRESRESRESRE", "SRESRESRESRE"),
        ({"sys/hypervisor/type": "xen\n"}, None, "xen"),
        ({f"{DMI}/sys_vendor": "QEMU\n", f"{DMI}/product_name": "Standard PC\n"}, None, "QEMU Standard PC"),
        ({"proc/cpuinfo": "flags : fpu hypervisor\n"}, None, "a hypervisor"),
        ({"proc/cpuinfo": "flags : fpu\n"}, None, "none"),
        ({}, None, None),
    ],
)  # fmt: skip
def test_virtualisation(tmp_path: Path, files: Mapping[str, str], hypervisor: str | None, name: str | None) -> None:
    assert read(tree(tmp_path, files), hypervisor=hypervisor).virtualisation.value == name


def test_a_damaged_configuration_is_none(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/version": "Linux"})
    (tmp_path / "proc/config.gz").write_bytes(b"\x1f\x8b damaged")
    assert read(tmp_path).tick.value is None


@pytest.mark.parametrize(
    "text, found", [("0-3,8", (0, 1, 2, 3, 8)), ("5", (5,)), ("none", ()), ("", ()), ("4,0-1", (0, 1, 4))]
)
def test_a_list_of_cpus(text: str, found: tuple[int, ...]) -> None:
    assert cpus_of(text) == found


def test_this_machine_is_read_without_root() -> None:
    found = processors.measure()
    assert found.usable == tuple(sorted(os.sched_getaffinity(0)))
    assert set(found.usable) <= set(cpus_of(found.online.value or ""))
    # Every kernel has one of these; the coarse clock tells it where nothing else does.
    assert found.hz.value in {"100", "250", "300", "1000"}
