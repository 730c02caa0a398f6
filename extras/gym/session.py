"""A virtual kernel in the background, whose flows one after another ask this process for their windows.

In: a plan, how long episodes last, how many there are. Out: the records of flows, one by one, each of which waits for
its answer: the kernel, and simulated time with it, stands still meanwhile. Nothing is written but to a temporary
directory, which is removed.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ewan.generator import traffic_request
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.congestion import external_program
from ewan.labs.congestion.external import Channel, EventRecord, WindowAnswer
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.runtime import controllers
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.program import KernelModule, Program
from ewan.labs.runtime.virtual import VirtualRuntime

GAP_NS = NS_PER_SECOND
"""The time between two episodes, in which queues drain."""


@dataclass(frozen=True, slots=True)
class Episodes:
    """Episodes in one kernel: `number` of them, each `length_ns` long; `rivals`: the congestion controls of flows that
    send beside the agent's."""

    number: int
    length_ns: int
    rivals: tuple[str, ...] = ()

    def program(self, plan: Plan, module: KernelModule) -> Program:
        """The flows of all episodes; pairs of hosts take turns among an episode's flows."""
        flows = []
        for episode in range(self.number):
            for place, control in enumerate((external_program.NAME, *self.rivals)):
                pair = plan.pairs[place % len(plan.pairs)]
                flows.append(
                    traffic_request.BulkTransfer(
                        pair.source,
                        pair.sink,
                        control,
                        start_ns=episode * (self.length_ns + GAP_NS),
                        duration_ns=self.length_ns,
                    )
                )
        longest_ns = (self.number + 1) * (self.length_ns + GAP_NS)
        request = traffic_request.transfers(plan, flows, "virtual", longest_ns=longest_ns)
        return Program(traffic=request, longest_ns=longest_ns, modules=(module,))


class Prepared(NamedTuple):
    """The programs that each kernel needs, which are found once: to look for them takes longer than to boot."""

    binary: Path
    kernel: Path
    module: KernelModule

    @classmethod
    def of(cls, context: Context) -> Prepared:
        """Builds the kernel where it is missing."""
        binary, kernel = node_binary(context.binary), context.virtual(tell=context.reporter.tell).kernel()
        return cls(binary, kernel, external_program.module())


class Session:
    """A kernel that runs until its flows have ended, or `close`."""

    def __init__(self, prepared: Prepared, plan: Plan, episodes: Episodes) -> None:
        self._of_kernel, of_program = controllers.pair()
        self._channel = Channel(of_program.detach())
        self._stop = threading.Event()
        self._why = "no flow has sent data before its episode was over: write a longer episode"
        arguments = prepared, plan, episodes.program(plan, prepared.module)
        self._thread = threading.Thread(target=self._run, args=arguments, name="ewan-kernel", daemon=True)
        self._thread.start()

    def _run(self, prepared: Prepared, plan: Plan, program: Program) -> None:
        # An agent may learn for hours between two of its actions.
        runtime = VirtualRuntime(prepared.binary, prepared.kernel, stall_s=math.inf, folders=())
        # Not TemporaryDirectory, which Python removes at its end, before `close`.
        scratch = tempfile.mkdtemp(prefix="ewan-gym-")
        try:
            with self._of_kernel:
                runtime.run(plan, program, Path(scratch) / "run", self._stop, controller=self._of_kernel.fileno())
        except LabError as error:
            self._why = str(error)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def receive(self) -> EventRecord:
        """Waits for the next record; LabError when the kernel has ended."""
        record = self._channel.receive()
        if record is None:
            self._thread.join()
            raise LabError(self._why)
        return record

    def answer(self, flow: int, answer: WindowAnswer) -> None:
        """Answers the last record, which is of this flow."""
        self._channel.answer(flow, answer)

    def of(self, owner: object) -> Session:
        """The session itself, which ends with its owner, or when Python ends."""
        self.end = weakref.finalize(owner, self.close)
        return self

    def close(self) -> None:
        """Ends the kernel, wherever it is."""
        self._stop.set()
        self._channel.close()
        self._thread.join()
