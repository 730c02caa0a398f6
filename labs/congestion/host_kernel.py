"""The congestion controls of a user's own in this machine's kernel, for the live clock.

In: modules with their sources. Out: a kernel that has their controls while a block runs, and no longer. LabError in one
line for what this machine cannot do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ewan.labs.base.reporter import Tell
from ewan.labs.runtime import bpf_programs, host_modules, kernel_modules
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import KernelModule

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@dataclass(frozen=True, slots=True)
class HostKernel:
    """`binary`: the node binary, which starts compilers in their sandbox; `state`: the state root of live labs.
    `loads`: the user allows modules to be loaded. `tell` gets a line for one that stays loaded."""

    binary: Path
    state: Path
    loads: bool
    tell: Tell

    @contextlib.contextmanager
    def having(self, modules: Iterable[KernelModule]) -> Iterator[None]:
        """While the block runs, this kernel has the controls of all these modules."""
        ready = [(module, self._ready(module)) for module in modules]
        with contextlib.ExitStack() as held:
            for module, entering in ready:
                held.enter_context(entering)
                _check_controls(module)
            yield

    def check(self, modules: Iterable[KernelModule]) -> None:
        """LabError for the first module that this kernel does not take, or that lacks one of its controls; each is
        tried by itself."""
        for module in modules:
            with self.having([module]):
                pass

    def _ready(self, module: KernelModule) -> AbstractContextManager[None]:
        """The module, compiled for this kernel, which has it as long as the context lasts."""
        file = module.source.file
        if module.source.bpf:
            kernel_modules.check_parameters(module, {})
            return bpf_programs.registered({file: bpf_programs.compiled(module.source, self.binary)})
        if not self.loads:
            raise LabError(
                f"congestion control {', '.join(module.controls)}: this machine's kernel does not have it: "
                f"--load-module compiles {file} for this kernel and loads it, or run it with --runtime virtual"
            )
        built = host_modules.built(module.source, self.binary)
        kernel_modules.check_parameters(module, built.parameters)
        return host_modules.loaded(module, built, self.state, self.tell)


def _check_controls(module: KernelModule) -> None:
    there = AVAILABLE.read_text().split()
    lacking = [name for name in module.controls if name not in there]
    if lacking:
        raise LabError(
            f"{module.source.file}: this kernel has no congestion control {', '.join(lacking)} when it is registered: "
            "write the .name of its struct tcp_congestion_ops"
        )
