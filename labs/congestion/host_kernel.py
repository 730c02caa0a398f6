"""The congestion controls of a user's own in this machine's kernel, for the live clock.

In: modules with their sources. Out: a kernel that has their controls while a block runs, and no longer. LabError in one
line for what this machine cannot do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ewan.labs.runtime import bpf_programs
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import KernelModule

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@dataclass(frozen=True, slots=True)
class HostKernel:
    """`binary`: the node binary, which starts compilers in their sandbox."""

    binary: Path

    @contextlib.contextmanager
    def having(self, modules: Iterable[KernelModule]) -> Iterator[None]:
        """While the block runs, this kernel has the controls of all these modules."""
        compiled = [(module, self._compiled(module)) for module in modules]
        with contextlib.ExitStack() as held:
            for module, path in compiled:
                held.enter_context(bpf_programs.registered({module.source.file: path}))
                _check_controls(module)
            yield

    def check(self, modules: Iterable[KernelModule]) -> None:
        """LabError for the first module that this kernel does not take, or that has not the controls that it is said
        to have; each is tried by itself."""
        for module in modules:
            with self.having([module]):
                pass

    def _compiled(self, module: KernelModule) -> Path:
        if module.source.bpf:
            if module.parameters:
                raise LabError(f"{module.source.file}: a BPF program has no parameters: leave them out")
            return bpf_programs.compiled(module.source, self.binary)
        raise LabError(
            f"congestion control {', '.join(module.controls)}: {module.source.file} is a module of the virtual kernel, "
            "and this run is in the live clock: write --runtime virtual"
        )


def _check_controls(module: KernelModule) -> None:
    there = AVAILABLE.read_text().split()
    lacking = [name for name in module.controls if name not in there]
    if lacking:
        raise LabError(
            f"{module.source.file}: this kernel has no congestion control {', '.join(lacking)} when it is registered: "
            "write the .name of its struct tcp_congestion_ops"
        )
