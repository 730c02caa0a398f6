"""Assigns links to CPUs, and leaves the other CPUs to end hosts and routers.

Comes in: the CPUs that may be used and the names of the emulated links. Goes out: spinners and `host_cpus`.
"""

from __future__ import annotations

from ewan.labs.plan import Spinner
from ewan.labs.spec import Spec
from ewan.labs.spec.fields import CpuPlan

CPUS_PER_SPINNER = 4


def place(
    spec: Spec, cpus: tuple[int, ...], links: list[str], chosen: bool = True
) -> tuple[tuple[Spinner, ...], tuple[int, ...]]:
    """One spinner, on the last CPU; one more for each four CPUs beyond. Hosts get what is left.

    `chosen`: as the description's `cpus:` says, which means this machine's CPUs and not those of the virtual clock.
    """
    wanted = spec.description.cpus if chosen else CpuPlan()
    if not cpus:
        raise spec.error(("cpus",), "this process may use no CPU: allow one (taskset, cpuset)")
    for key, own in (("spin", wanted.spin), ("hosts", wanted.hosts)):
        if own is not None:
            if not own or len(set(own)) != len(own):
                raise spec.error(("cpus", key), f'write each CPU once, like "[{cpus[-1]}]"')
            missing = sorted(set(own) - set(cpus))
            if missing:
                have = ", ".join(str(cpu) for cpu in cpus)
                raise spec.error(("cpus", key), f"this process may not use CPU {missing[0]}: write some of {have}")
    return share_out(cpus, links, wanted.spin, wanted.hosts)


def share_out(
    cpus: tuple[int, ...],
    links: list[str],
    spin: tuple[int, ...] | None = None,
    hosts: tuple[int, ...] | None = None,
) -> tuple[tuple[Spinner, ...], tuple[int, ...]]:
    """The spinners of `links` on some of a machine's CPUs, and what hosts get; where a person chose, as they did."""
    count = max(1, min(len(cpus) // CPUS_PER_SPINNER, len(links)))
    left = [cpu for cpu in cpus if hosts is None or cpu not in hosts]
    spin = spin or tuple(left[-count:]) or cpus[-1:]
    if not links:
        return (), hosts or cpus
    hosts = hosts or tuple(cpu for cpu in cpus if cpu not in spin) or spin
    used = spin[: len(links)]
    return tuple(Spinner(cpu, tuple(links[index :: len(used)])) for index, cpu in enumerate(used)), hosts
