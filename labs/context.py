"""The settings of this process: the node binary, the state directory of labs, the runtime, and the way to report to the
user.

In: the environment and the terminal, once, in `ewan/cli.py`; then the option --runtime. Out: a `Context`, which is
handed down; no other module asks the environment for these.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ewan.labs.base.product import CLI, DEFAULT_ROOT, NODE_BINARY, RESULTS, ROOT
from ewan.labs.base.reporter import Reporter, Tell
from ewan.labs.runtime.base import LabError, LiveChoice, Name
from ewan.labs.runtime.binary import node_binary

if TYPE_CHECKING:
    from ewan.labs.congestion.host_kernel import HostKernel
    from ewan.labs.runtime.live import LiveRuntime
    from ewan.labs.runtime.multi_machine import MultiMachineRuntime
    from ewan.labs.runtime.progress import RunProgress
    from ewan.labs.runtime.virtual import VirtualRuntime

COMMAND = (sys.executable, "-P", str(CLI))
"""The words that start `ewan` in a process of its own, which imports nothing from the directory where it is started."""

DEFAULT_STORE = RESULTS / "store"
RUNTIME_VARIABLE = "EWAN_RUNTIME"
"""The variable of the environment with the default runtime of the command line."""
STORE_VARIABLE = "EWAN_STORE"
"""The variable of the environment with the directory of the store, or off."""
VARIABLES = {
    RUNTIME_VARIABLE: "runtime of commands that name none: `netns`, `containerlab` or `virtual`",
    "EWAN_STATE": "directory for the state of live labs (default: `/run/ewan`)",
    "EWAN_ENGINE": "container engine: `docker` or `podman` (default: the engine that answers)",
    "EWAN_NODE": "`ewan-node` program in place of the built one",
    "EWAN_CACHE": "directory of the cache, or `off`",
    "EWAN_SHARED_CACHE": "directory of a cache for all users of the machine, which is only read, or `off` (default: "
    "`/var/cache/ewan`)",
    STORE_VARIABLE: "directory of [the store](../how-to/experiments/sweeps.md) of results, or `off` (default: "
    "`results/store`)",
    "EWAN_KERNEL": "virtual kernel in place of the built one",
    "EWAN_WALL": "`off`: steps of the virtual clock may do all that the user may ([what steps can "
    "reach](../explanation/virtual-clock.md#what-steps-can-reach))",
    "EWAN_SCHED": "how links wait. By default they sleep while no packet is on its way, and spin otherwise. `spin`: "
    "they never sleep. `fifo`: they never sleep and have real-time priority on a CPU that the system keeps free. "
    "`shared`: they leave their CPU to other programs and are milliseconds late, for work without exact times",
    "EWAN_PROMETHEUS_PORT": "port of Prometheus in a lab of containers",
    "EWAN_GRAFANA_PORT": "port of Grafana in a lab of containers",
    "XDG_CACHE_HOME": "directory of the user's caches, in which ewan has its own (default: `~/.cache`)",
    "DOCKER_HOST": "address of the container engine",
    "SSH_AUTH_SOCK": "socket of the SSH agent, for labs over several machines",
    "NO_COLOR": "no colours in the output",
    "COLUMNS": "width of the output",
}
"""The variables of the environment that commands and the programs that they start obey, with their meaning; sudo
removes the others."""


def _store(environment: Mapping[str, str]) -> Path | None:
    said = environment.get(STORE_VARIABLE)
    return None if said == "off" else Path(said or DEFAULT_STORE)


@dataclass(frozen=True, slots=True)
class Context:
    """`binary`: the wished-for path of `ewan-node`; `state`: the state root; `environment`: all of its variables."""

    reporter: Reporter
    binary: Path
    state: Path
    environment: Mapping[str, str]
    runtime: Name = "auto"
    """The value of --runtime, or of the environment in its place."""
    store: Path | None = None
    """The directory in which results of the virtual clock are kept for all experiments (experiments/store); None:
    nowhere."""
    machines: Path | None = None
    """The value of --machines: the file of the machines over which a new lab stretches."""
    trusted: bool = False
    """True with --trust: files from elsewhere are executed without asking."""
    load_modules: bool = False
    """True with --load-module: modules of the user's own are loaded into this machine's kernel."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Context:
        """The context of this process."""
        wide = not sys.stdout.isatty() and "COLUMNS" not in environment
        binary, state = environment.get("EWAN_NODE"), environment.get("EWAN_STATE")
        return cls(
            Reporter(wide),
            Path(binary or NODE_BINARY),
            Path(state or DEFAULT_ROOT).absolute(),
            environment,
            store=_store(environment),
        )

    def live(self, choice: str | None = None, show: Tell = lambda progress: None) -> LiveRuntime:
        """The runtime of all live labs.

        It makes new labs by `choice`, or else by the runtime of this context. `show` receives the progress while a lab
        is made.
        """
        from ewan.labs.runtime.live import LiveRuntime
        from ewan.labs.runtime.state import Owner

        return LiveRuntime(
            self.binary,
            cast(LiveChoice, choice or self.runtime),
            self.state,
            show=show,
            tell=self.reporter.note,
            multi_machine=lambda: self.multi_machine(show),
            stretched=self.machines is not None,
            owner=Owner.of(self.environment, ROOT),
        )

    def multi_machine(self, show: Tell = lambda progress: None) -> MultiMachineRuntime:
        """The runtime of labs over the machines of --machines; LabError if no installed extra makes them."""
        from ewan.extra import installed

        makers = list(installed().machines.values())
        if not makers:
            raise LabError("labs over several machines need an extra that makes them, and none is installed")
        found: MultiMachineRuntime = makers[0]()(self, show)
        return found

    def host_kernel(self) -> HostKernel:
        """This machine's kernel, which gets congestion controls for the length of a block."""
        from ewan.labs.congestion.host_kernel import HostKernel

        return HostKernel(node_binary(self.binary), self.state, self.load_modules, self.reporter.warn)

    def virtual(
        self,
        show: Callable[[RunProgress], None] = lambda progress: None,
        tell: Tell = lambda line: None,
        kernel: str | None = None,
    ) -> VirtualRuntime:
        """The runtime of the virtual clock; `tell` receives the output of the build of its kernel. `kernel`: the name
        of one that the user added, in place of the default one."""
        from ewan.labs.kernels import library
        from ewan.labs.runtime.virtual import VirtualRuntime

        path = None if kernel is None else library.path_of(kernel, self.environment)
        return VirtualRuntime(self.binary, path, show=show, tell=tell)
