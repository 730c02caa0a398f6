"""The second stage, live: labs are brought up, one at a time. Each is taken down before the next, and at the end in any
case.

In: plans. Out: labs that are up. The experiment's document names the lab that it has up, so that an engine that was
killed leaves nothing that the next one cannot remove."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ewan.experiments.engine.experiment import Experiment
from ewan.labs.base import interrupt
from ewan.labs.context import Context
from ewan.labs.plan import Plan, digest
from ewan.labs.record.experiment import DeployedLab
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import KernelModule, Program


class Deployment:
    """Deployment of labs. The experiment's `runtime` is the requested one, and from the first lab on the one in
    use."""

    def __init__(self, experiment: Experiment, context: Context) -> None:
        self._experiment = experiment
        self._context = context
        self._labs = context.live()
        self._up: Plan | None = None
        self._modules: tuple[KernelModule, ...] = ()
        self._in_kernel = contextlib.ExitStack()
        self._as_up: Plan

    def ensure(self, plan: Plan) -> Plan:
        """The plan's lab is up afterwards, and no other of this experiment's; the plan as it is up, which over several
        machines has the spinners of all of them."""
        if self._up is not None and digest(self._up) == digest(plan):
            return self._as_up
        self._remove_own()
        self._remove_left()
        document = self._experiment.document
        over_machines = self._context.machines is not None
        with interrupt.deferred():
            for warning in (self._labs if over_machines else self._context.live(document.runtime)).up(plan):
                self._context.reporter.tell(f"warning: {warning}")
            self._up = self._as_up = plan
            if over_machines:
                self._as_up = self._labs.load(plan.lab).plan
            versions = self._labs.versions(plan.lab)
            document.runtime = versions["runtime"]
            document.host.versions.update(versions)
            identity = self._labs.load(plan.lab).manifest.id
            self._remember(DeployedLab(lab=plan.lab, id=identity))
        return self._as_up

    def have(self, modules: tuple[KernelModule, ...]) -> None:
        """This machine's kernel has the congestion controls of these modules afterwards, and of no others; sockets of a
        lab may hold those before."""
        if self._context.machines is None and modules != self._modules:
            if self._modules:
                self.close()
            self._in_kernel.enter_context(self._context.host_kernel().having(modules))
            self._modules = modules

    def batch(self, plan: Plan, program: Program, directory: Path) -> None:
        """Runs it in the lab that is up; a lab in which that failed is not used again."""
        try:
            for node, release in self._labs.start_machines(plan.lab).items():
                self._experiment.document.host.versions[f"kernel of {node}"] = release
            self._labs.batch(plan.lab, program, directory)
        except LabError as error:
            try:
                self.close()
            except LabError as left:  # of a machine that was lost, say
                raise LabError(f"{error}; {left}") from None
            raise

    def close(self) -> None:
        """Takes the lab down that is up, if there is one, and the congestion controls out of this machine's kernel."""
        with interrupt.deferred(), self._in_kernel:
            self._modules = ()
            self._remove_own()

    def _remove_own(self) -> None:
        with interrupt.deferred():
            if self._up is not None:
                lab, self._up = self._up.lab, None
                self._labs.down(lab)
                self._remember(None)

    def _remove_left(self) -> None:
        """Takes down the lab that a killed engine left up; a lab of the same name with another id stays."""
        left = self._experiment.document.deployed
        if left is None:
            return
        if left.lab in self._labs.names():
            try:
                ours = self._labs.load(left.lab).manifest.id == left.id
            except LabError:
                ours = False
            if ours:
                self._labs.down(left.lab)
        self._remember(None)

    def _remember(self, lab: DeployedLab | None) -> None:
        self._experiment.document.deployed = lab
        self._experiment.save_lab()
