"""The machines of a lab that stretches over several: what each is, and what else it did while links were measured.

In: each machine's report before and after the probes (`ewan.labs.runtime.base.RemoteMachine`), and the spinners'
answers. Out: each as a certificate has it, and in words what disturbed the links. Pure.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence

from ewan.calibration import machine
from ewan.calibration.machine import MachineLoad, Process
from ewan.labs.record import Emulating, MachineFacts, processor
from ewan.labs.runtime.base import RemoteMachine
from ewan.labs.runtime.spinner_stats import SpinnerStats

_BINARY = "ewan-node-"
"""The beginning of a process name of the binary that was sent; the kernel keeps 15 letters of a name."""
KIB = 1024
Answers = Sequence[SpinnerStats | None]


def measured(
    before: Mapping[str, RemoteMachine], after: Mapping[str, RemoteMachine], spinners: tuple[Answers, Answers]
) -> dict[str, tuple[Emulating, MachineLoad]]:
    """Each machine by its name. `spinners`: all answers to `stats`, before and after, by the numbers of the plan."""
    found = {}
    for name, then in before.items():
        now = after[name]
        facts = facts_of(now.files)
        answers = [(spinners[0][number], spinners[1][number]) for number in now.spinners]
        load = machine.between(_snapshot(then.files), _snapshot(now.files), answers, facts.cpus)
        cpus = tuple(sorted({answer.cpu for _, answer in answers if answer is not None}))
        found[name] = Emulating(facts, cpus, tuple(now.host_cpus), load.recorded()), load
    return found


def facts_of(files: Mapping[str, str]) -> MachineFacts:
    """As `ewan.labs.record.host_facts` has them of this machine."""
    kernel, _, architecture = files.get("uname", "").partition(" ")
    cpu = processor(files.get("cpuinfo", ""))
    memory = re.search(r"^MemTotal:\s+(\d+) kB", files.get("meminfo", ""), re.MULTILINE)
    return MachineFacts(
        kernel=kernel,
        machine=architecture,
        cpu_model=cpu.get("model name", architecture),
        cpus=len(re.findall(r"^cpu\d+ ", files.get("stat", ""), re.MULTILINE)),
        memory_bytes=int(memory[1]) * KIB if memory else 0,
        clock_source=files.get("clocksource") or "unknown",
        hypervisor="hypervisor" in cpu.get("flags", "").split(),
        versions={},
    )


def _snapshot(files: Mapping[str, str]) -> machine.Snapshot:
    """Without kernel threads and the processes of the lab: those that name it, and those of its binary that probe."""
    own = {int(number) for number in re.findall(r"/proc/(\d+)/cmdline", files.get("lab", ""))}
    processes: dict[tuple[int, int], Process] = {}
    for line in files.get("processes", "").splitlines():
        # A name may have a line break in it.
        with contextlib.suppress(ValueError, IndexError):
            key, process = machine.process_of(line)
            if not (machine.is_of_kernel(key, process) or key[0] in own or process.name.startswith(_BINARY)):
                processes[key] = process
    return machine.of_texts(files["stat"], files["loadavg"], processes, files.get("clocksource") or "unknown")
